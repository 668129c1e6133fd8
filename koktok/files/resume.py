"""Long runs that resume: a folder made part by part, whose finished parts are noted with size and SHA-256.

Parts are written into a workplace beside the target (`.NAME.partial`). A part that has changed since is written again, with
all later parts. The folder gets its name when it is complete, with a `manifest.json` that describes the run and its parts.
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
from koktok.files.checked import read_bounded
from koktok.files.paths import is_plain, place_of, probe, sha256_of, sync, typed, workplace, workplace_of
from koktok.files.write import Product, publish, refuse_another, settle

MANIFEST = "manifest.json"
_NOTES, _SHARDS = "progress.jsonl", "shards"
_MOST_MANIFEST = 1 << 28
"""Bytes of a manifest; a million shards have less."""

Make = Callable[["Checkpoint"], Mapping[str, Any]]
"""Writes the shards that are not in the notes into their folder, notes them, and returns further fields of the manifest."""


class Checkpoint:
    """Notes of finished parts in `folder`: first a line with `run`, all that the parts depend on, then a line for each part.

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
    """

    def __init__(self, notes: Path, folder: Path, run: Mapping[str, Any]) -> None:
        self.notes, self.folder, self.run = notes, folder, dict(run)
        self.before: dict[str, Any] | None = None
        self.parts: list[dict[str, Any]] = []
        self._torn = False
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            first, *rest = notes.read_bytes().split(b"\n")
            self._torn = rest[-1:] != [b""]  # the last line was being written
            self.before = dict(json.loads(first)["run"])
            self.parts = list(takewhile(_is_part, map(json.loads, rest[:-1])))

    def whole(self, part: Mapping[str, Any]) -> bool:
        """Whether every file of a part is as it was noted."""
        for name, noted in part["files"].items():
            file = self.folder / name
            if not is_plain(name) or not file.is_file() or file.stat().st_size != noted["bytes"]:
                return False
            if sha256_of(file) != noted["sha256"]:
                return False
        return True

    def keep(self, parts: Iterable[dict[str, Any]]) -> None:
        """Start the notes anew with these parts."""
        self.parts = list(parts)
        self.before, self._torn = self.run, False
        lines = [{"run": self.run}, *self.parts]
        draft = self.notes.with_name(f"{self.notes.name}.draft")
        draft.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        sync(draft)
        draft.replace(self.notes)

    def files(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Flush files of the folder to the disk, and return size and SHA-256 of each."""
        noted = {}
        for name in names:
            file = self.folder / name
            sync(file)
            noted[name] = {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
        return noted

    def add(self, part: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Note a finished part with its files; both are on the disk when this returns."""
        if self.before != self.run or self._torn:
            self.keep(self.parts if self.before == self.run else [])
        noted = {**part, "files": self.files(names)}
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


def _load(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder; ArtifactError, ValueError, KeyError or TypeError for what `resumable` did not write."""
    manifest: dict[str, Any] = json.loads(read_bounded(folder / MANIFEST, _MOST_MANIFEST, MANIFEST))
    for shard in manifest["shards"]:
        if not is_plain(shard["name"]) or not _is_part(shard):
            raise ValueError(f"{MANIFEST} has the shard {shard!r:.80}; expected a plain name, and its files")
    return manifest


def read_manifest(folder: str | Path, key: str, layout: int, *, wrong: str, hint: str) -> dict[str, Any]:
    """Read the manifest of a folder of shards, whose `key` is its layout; `wrong` and `hint` are for the ArtifactError."""
    try:
        manifest = _load(Path(folder))
        written = manifest[key]
    except (ArtifactError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"there is no {error} in {MANIFEST}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ArtifactError(f"`{folder}` {wrong}: {what}", hint=hint) from error
    if written != layout:
        raise ArtifactError(
            f"`{folder}` has layout {written}; this koktok reads {layout}", hint="pip install -U koktok"
        )
    return manifest


def resumable(
    out: str | Path,
    run: Mapping[str, Any],
    make: Make,
    *,
    same: Callable[[dict[str, Any]], bool] = lambda _: True,
    force: bool = False,
) -> dict[str, Any]:
    """Make a folder of shards, or continue a run that was stopped; returns its manifest.

    `run` is all that the shards depend on, in values of JSON. A complete folder of such a run is returned unchanged if `same` accepts
    its manifest. UsageError if something else is at that place, or, without `force`,
    shards of another run.
    """
    target = place_of(out)
    probe(target)
    with ExitStack() as until_done:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            work = until_done.enter_context(workplace(workplace_of(target, ".partial"), wait=1))
            settle(work, target, SHARDS)
            if not (work / _SHARDS).is_dir():  # the run was killed when its shards had gone to their place
                (work / _NOTES).unlink(missing_ok=True)
        there = _load(target) if SHARDS.listed(target) else None
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
            others = sorted(file.name for file in notes.folder.iterdir() if file.name not in {*shards, MANIFEST})
            if others:
                manifest["files"] = notes.files(others)
            listed = notes.folder / MANIFEST
            listed.write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", newline="\n")
            sync(listed)
            publish(work, notes.folder, target, SHARDS)
            notes.notes.unlink()
    return manifest


class _Shards(Product):
    """A folder of shards, whose list of checksums is its manifest."""

    def listed(self, folder: Path) -> dict[str, str] | None:
        """Return all files of a manifest by SHA-256."""
        if (folder / MANIFEST).is_symlink():
            return None
        try:
            manifest = _load(folder)
        except (ArtifactError, ValueError, KeyError, TypeError, RecursionError):
            return None
        parts = [*manifest["shards"], *([manifest] if _is_part(manifest) else [])]
        files = {name: file["sha256"] for part in parts for name, file in part["files"].items() if is_plain(name)}
        return files | {MANIFEST: sha256_of(folder / MANIFEST)}


SHARDS = _Shards(MANIFEST, "result")


def _leave_nothing_empty(notes: Checkpoint) -> None:
    """Remove the workplace if no shard is in it."""
    with suppress(OSError):  # there is something in it
        notes.folder.rmdir()
        if not notes.parts:
            notes.notes.unlink(missing_ok=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise errors of the system as InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space and run the same command again"
        ) from error


def _begun(work: Path, run: Mapping[str, Any], *, force: bool) -> Checkpoint:
    """Keep the finished shards of an earlier run of the same kind, up to the first that has changed."""
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
    finished = {name for shard in done for name in shard["files"]}
    for file in notes.folder.iterdir():
        if file.name not in finished and re.fullmatch(rf"shard-\d{{5,}}\..*|{re.escape(MANIFEST)}", file.name):
            file.unlink()  # of the shard at which the run was stopped
    return notes
