"""Long runs that resume: a folder made part by part, whose finished parts are noted with size and SHA-256.

Parts are written into a workplace beside the target (`.NAME.partial`). One that is no longer as it was noted is made again,
with those behind it. The folder gets its name when all of it is there, with a `manifest.json` that says what the run was and
what lies in each part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files.paths import is_plain, place_of, probe, sha256_of, sync, typed, workplace, workplace_of
from koktok.files.write import publish, refuse_another, settle

MANIFEST = "manifest.json"
_NOTES, _SHARDS = "progress.jsonl", "shards"
_MOST_MANIFEST = 1 << 28
"""Bytes of a manifest; a million shards have less."""

Make = Callable[["Checkpoint"], Mapping[str, Any]]
"""Writes the shards that are not in the notes into their folder and notes them; returns what the manifest says besides. Other
files that it leaves in that folder go with the shards."""


def noted_files(files: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of files by name, which the disk has when this returns."""
    noted = {}
    for file in files:
        sync(file)
        noted[file.name] = {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
    return noted


def whole(folder: Path, part: Mapping[str, Any]) -> bool:
    """Whether every file of a part lies in a folder as it was noted."""
    for name, noted in part["files"].items():
        file = folder / name
        if not is_plain(name) or not file.is_file() or file.stat().st_size != noted["bytes"]:
            return False
        if sha256_of(file) != noted["sha256"]:
            return False
    return True


class Checkpoint:
    """Notes of finished parts in `folder`: a line of JSON a part, appended, so that the millionth costs what the first did.

    The first line holds `run`: all that the parts depend on.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> notes = Checkpoint(folder / "notes.jsonl", folder, {"size": 3})
    >>> _ = (folder / "a").write_bytes(b"first")
    >>> notes.add({"name": "one"}, ["a"])["files"]["a"]["bytes"]
    5
    >>> again = Checkpoint(folder / "notes.jsonl", folder, {"size": 3})
    >>> [part["name"] for part in again.parts if again.whole(part)]
    ['one']
    >>> _ = (folder / "a").write_bytes(b"fir")
    >>> [part["name"] for part in again.parts if again.whole(part)]
    []
    """

    def __init__(self, notes: Path, folder: Path, run: Mapping[str, Any]) -> None:
        self.notes, self.folder, self.run = notes, folder, dict(run)
        self.before: dict[str, Any] | None = None
        self.parts: list[dict[str, Any]] = []
        self._torn = False
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            first, *rest = notes.read_bytes().split(b"\n")
            self._torn = rest[-1:] != [b""]  # what has no end was being written
            self.before = dict(json.loads(first)["run"])
            self.parts = list(takewhile(_is_part, map(json.loads, rest[:-1])))

    def whole(self, part: Mapping[str, Any]) -> bool:
        """Whether every file of a part is there as it was noted."""
        return whole(self.folder, part)

    def keep(self, parts: Iterable[dict[str, Any]]) -> None:
        """Begin the notes anew, with these parts of an earlier run."""
        self.parts = list(parts)
        self.before, self._torn = self.run, False
        lines = [{"run": self.run}, *self.parts]
        draft = self.notes.with_name(f"{self.notes.name}.draft")
        draft.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        sync(draft)
        draft.replace(self.notes)

    def add(self, part: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Note a finished part with its files; both are on the disk when this returns."""
        if self.before != self.run or self._torn:
            self.keep(self.parts if self.before == self.run else [])
        noted = {**part, "files": noted_files(self.folder / name for name in names)}
        with self.notes.open("ab") as out:
            out.write(f"{json.dumps(noted)}\n".encode())
            out.flush()
            os.fsync(out.fileno())
        self.parts.append(noted)
        return noted


def _is_part(noted: Any) -> bool:
    """Whether a note has files with a size and a digest."""
    try:
        return all(isinstance(file["bytes"], int) and file["sha256"] for file in noted["files"].values())
    except (AttributeError, KeyError, TypeError):
        return False


def read_manifest(folder: str | Path, key: str, layout: int, *, wrong: str, hint: str) -> dict[str, Any]:
    """The manifest of a folder that `resumable` made, whose `key` says which layout it has.

    `wrong` and `hint` are for the ArtifactError: when there is no manifest, or it is damaged, or of another layout.
    """
    file = Path(folder) / MANIFEST
    try:
        if file.is_file() and file.stat().st_size > _MOST_MANIFEST:
            raise ValueError(f"{MANIFEST} has {file.stat().st_size:,} bytes; at most {_MOST_MANIFEST:,} are read")
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        found = manifest[key]
        if found != layout:
            raise ArtifactError(
                f"`{folder}` has layout {found}; this koktok reads {layout}", hint="pip install -U koktok"
            )
        for shard in manifest["shards"]:
            if not is_plain(shard["name"]) or not _is_part(shard):
                raise ValueError(f"{MANIFEST} has the shard {shard!r:.80}; expected a plain name, and its files")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, ArtifactError):
            raise
        what = f"there is no {error} in {MANIFEST}" if isinstance(error, KeyError) else error
        raise ArtifactError(f"`{folder}` {wrong}: {what}", hint=hint) from error
    return manifest


def resumable(
    out: str | Path,
    run: Mapping[str, Any],
    make: Make,
    *,
    same: Callable[[dict[str, Any]], bool] = lambda _: True,
    force: bool = False,
) -> dict[str, Any]:
    """Make a folder of shards, or go on where a run of the same kind was stopped; returns its manifest.

    `run` is all that the shards depend on, in plain values that JSON can write; `same` says of the manifest of a whole
    folder of such a run whether it is of the same text, and then it is what was wanted. UsageError when something else is
    at that place, or shards of another run are, without `force`. InputError when another process writes there, or the disk
    says no.
    """
    target = place_of(out)
    probe(target)
    with ExitStack() as until_done:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            work = until_done.enter_context(workplace(workplace_of(target, ".partial"), wait=1))
            if settle(work, target):  # a run was killed when all was there but the last files
                (work / _NOTES).unlink(missing_ok=True)
        there = _manifest_at(target)
        if there is not None and run.items() <= there.items() and same(there):
            return there
        if target.exists() and (not target.is_dir() or any(file != work for file in target.iterdir())):
            if there is None:
                raise UsageError(f"there is something at `{target}`", hint="--out NEW-FOLDER")
            if not force:
                raise refuse_another(target, "result")
        notes = _begun(work, run, force=force)
        until_done.callback(_leave_nothing_empty, notes)
        with writing(target):
            manifest = {**run, **make(notes), "shards": notes.parts}
            shards = {name for shard in notes.parts for name in shard["files"]}
            others = noted_files(
                file for file in sorted(notes.folder.iterdir()) if file.name not in {*shards, MANIFEST}
            )
            if others:
                manifest["files"] = others
            listed = notes.folder / MANIFEST
            listed.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
            sync(listed)
            new = _listed(manifest) | {MANIFEST: sha256_of(listed)}
            old = {} if there is None else _listed(there) | {MANIFEST: sha256_of(target / MANIFEST)}
            publish(notes.folder, target, new, old, last=MANIFEST)
            notes.notes.unlink()
    return manifest


def _manifest_at(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder that `resumable` made; None where there is none."""
    with suppress(OSError, ValueError, RecursionError):
        if not (folder / MANIFEST).is_symlink() and (folder / MANIFEST).stat().st_size <= _MOST_MANIFEST:
            found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if (
                isinstance(found, dict)
                and isinstance(found.get("shards"), list)
                and all(map(_is_part, found["shards"]))
            ):
                return found
    return None


def _listed(manifest: Mapping[str, Any]) -> dict[str, str]:
    """All files of a manifest by SHA-256."""
    parts = [*manifest["shards"], *([manifest] if _is_part(manifest) else [])]
    return {name: file["sha256"] for part in parts for name, file in part["files"].items() if is_plain(name)}


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


def _begun(work: Path, run: Mapping[str, Any], *, force: bool) -> Checkpoint:
    """The shards that an earlier run of the same kind has finished, up to the first that is not as it was noted."""
    notes = Checkpoint(work / _NOTES, work / _SHARDS, run)
    another = notes.before != run
    if notes.parts and another and not force:
        before = notes.before or {}
        other = ", ".join(sorted(key for key in run if before.get(key) != run[key]))
        raise UsageError(
            f"`{work}` holds {len(notes.parts)} shards of another run; what differs: {other}",
            hint=f"rm -r {typed(work)}, or --force",
        )
    done = [] if another else list(takewhile(notes.whole, notes.parts))
    notes.folder.mkdir(exist_ok=True)
    if done != notes.parts:
        notes.keep(done)
    kept = {name for shard in done for name in shard["files"]}
    for file in notes.folder.iterdir():
        if file.name not in kept and re.fullmatch(rf"shard-\d{{5,}}\..*|{re.escape(MANIFEST)}", file.name):
            file.unlink()  # of the shard at which the run was stopped
    return notes
