"""A folder that is made shard by shard, by a run that may be killed: the same command goes on behind what is finished.

This file adds: going on. Shards are written into a workplace beside the target (`.NAME.partial`); what is finished is noted
with its size and digest. A shard that is no longer as it was noted is made again, with those behind it. The folder gets its
name when all of it is there, with a `manifest.json` that says what the run was and what lies in each shard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files.checkpoint import Checkpoint
from koktok.files.product import publish, settle
from koktok.files.workplace import place_of, probe, sha256_of, sync, typed, workplace, workplace_of

MANIFEST = "manifest.json"
_NOTES, _SHARDS = "progress.jsonl", "shards"

Make = Callable[[Checkpoint], Mapping[str, Any]]
"""Writes the shards that are not in the notes into their folder and notes them; returns what the manifest says besides. Other
files that it leaves in that folder go with the shards."""


def read_manifest(folder: str | Path, key: str, layout: int, *, wrong: str, hint: str) -> dict[str, Any]:
    """The manifest of a folder that `resumable` made.

    Parameters
    ----------
    folder : str or Path
    key : str
        Where the manifest says which layout the folder has.
    layout : int
        The one that is read.
    wrong, hint : str
        What an error says of a folder that has no such manifest, and what to type.

    Raises
    ------
    ArtifactError
        When there is none, or another layout.
    """
    try:
        manifest: dict[str, Any] = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
        found = manifest[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"`{folder}` {wrong}: {error}", hint=hint) from error
    if found != layout:
        raise ArtifactError(f"`{folder}` has layout {found}; this koktok reads {layout}", hint="pip install -U koktok")
    return manifest


def resumable(out: str | Path, run: Mapping[str, Any], make: Make, *, again: bool = False) -> dict[str, Any]:
    """Make a folder of shards, or go on where a run of the same kind was stopped; returns its manifest.

    Parameters
    ----------
    out : str or Path
        A folder that is not there yet, or empty.
    run : mapping
        All that the shards depend on, in plain values that JSON can write.
    again : bool
        A folder that is there already, whole and of such a run, is what was wanted, and no error.

    Raises
    ------
    UsageError
        When something else is at that place, or another run has left its shards there.
    InputError
        When another process writes there, or the disk says no.
    """
    target = place_of(out)
    probe(target)
    with ExitStack() as until_done:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            work = until_done.enter_context(workplace(workplace_of(target, ".partial"), wait=1))
            if settle(work, target):  # a run was killed when all was there but the name
                (work / _NOTES).unlink(missing_ok=True)
                again = True
            if again and (target / MANIFEST).is_file():
                whole: dict[str, Any] = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
                if run.items() <= whole.items():
                    return whole
        if target.exists() and (not target.is_dir() or any(file != work for file in target.iterdir())):
            raise UsageError(f"there is something at `{target}`", hint="--out NEW-FOLDER")
        notes = _begun(work, run)
        until_done.callback(_leave_nothing_empty, notes)
        with writing(target):
            manifest = {**run, **make(notes), "shards": notes.parts}
            listed = notes.folder / MANIFEST
            listed.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
            noted = {name: file["sha256"] for shard in notes.parts for name, file in shard["files"].items()}
            others = [file for file in notes.folder.iterdir() if file.name not in noted]
            for file in others:
                sync(file)
            new = noted | {file.name: sha256_of(file) for file in others}
            publish(notes.folder, target, new, {}, last=MANIFEST)
            notes.notes.unlink()
    return manifest


def _leave_nothing_empty(notes: Checkpoint) -> None:
    """An error before the first shard leaves no workplace behind."""
    with suppress(OSError):  # there is something in it
        notes.folder.rmdir()
        if not notes.parts:
            notes.notes.unlink(missing_ok=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Errors of the system as ours, which say that the same command goes on."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space and give the same command again"
        ) from error


def _begun(work: Path, run: Mapping[str, Any]) -> Checkpoint:
    """The shards that an earlier run of the same kind has finished, up to the first that is not as it was noted."""
    notes = Checkpoint(work / _NOTES, work / _SHARDS, run)
    if notes.parts and notes.before != run:
        before = notes.before or {}
        other = ", ".join(sorted(key for key in run if before.get(key) != run[key]))
        raise UsageError(
            f"`{work}` holds {len(notes.parts)} shards of another run; what differs: {other}",
            hint=f"rm -r {typed(work)}",
        )
    whole = list(takewhile(notes.whole, notes.parts))
    notes.folder.mkdir(exist_ok=True)
    if whole != notes.parts:
        notes.keep(whole)
    kept = {name for shard in whole for name in shard["files"]}
    for file in notes.folder.iterdir():
        if file.name not in kept and re.fullmatch(rf"shard-\d{{5,}}\..*|{re.escape(MANIFEST)}", file.name):
            file.unlink()  # of the shard at which the run was stopped
    return notes
