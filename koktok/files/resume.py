"""Folders of shards with a `manifest.json`, and long runs that resume.

Shards of a run that resumes are written into a workplace beside the target (`.NAME.partial`), and noted with size and SHA-256 when
they are finished. A shard that has changed since is written again, with all later ones.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from koktok.errors import ArtifactError, UsageError
from koktok.files.checked import read_bounded
from koktok.files.paths import is_plain, place_of, probe, sha256_of, sync, typed, workplace, workplace_of, writing
from koktok.files.write import Product, check_folder, is_intact, publish, settle

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

    def add(self, part: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Note a finished part with its files; both are on the disk when this returns."""
        if self.before != self.run or self._torn:
            self.keep(self.parts if self.before == self.run else [])
        files = {}
        for name in names:
            file = self.folder / name
            sync(file)
            files[name] = {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
        noted = {**part, "files": files}
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
    """Read the manifest of a folder of shards, whose `key` is its layout; `wrong` and `hint` are for the ArtifactError."""
    try:
        manifest: dict[str, Any] = json.loads(read_bounded(Path(folder) / MANIFEST, _MOST_MANIFEST, MANIFEST))
        if odd := [shard["name"] for shard in manifest["shards"] if not is_plain(shard["name"])]:
            raise ValueError(f"{MANIFEST} has the shard {odd[0]!r:.80}; expected a plain name")
        layout_there = manifest[key]
    except (ArtifactError, ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"there is no {error} in {MANIFEST}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise ArtifactError(f"`{folder}` {wrong}: {what}", hint=hint) from error
    if layout_there != layout:
        raise ArtifactError(
            f"`{folder}` has layout {layout_there}; this koktok reads {layout}", hint="pip install -U koktok"
        )
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a folder."""
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def written(
    out: str | Path,
    product: Product,
    run: Mapping[str, Any],
    *,
    same: Callable[[dict[str, Any]], bool] = lambda _: True,
    force: bool = False,
) -> dict[str, Any] | None:
    """Return the manifest of a whole folder of this run that `same` accepts; None where the folder is to be written.

    `run` is all that the shards depend on, in values of JSON. UsageError as `check_folder`, also for shards of another run without
    `force`.
    """
    target = place_of(out)
    if is_intact(target, product):
        manifest: dict[str, Any] = json.loads((target / MANIFEST).read_bytes())
        if run.items() <= manifest.items() and same(manifest):
            return manifest
    check_folder(target, product, same=lambda _: force)
    return None


def resumable(
    out: str | Path,
    product: Product,
    run: Mapping[str, Any],
    make: Make,
    *,
    same: Callable[[dict[str, Any]], bool] = lambda _: True,
    force: bool = False,
) -> dict[str, Any]:
    """Make a folder of shards, or continue a run that was stopped; returns its manifest. Parameters and errors as `written`."""
    target = place_of(out)
    probe(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target, ".partial"), wait=1) as work, writing(target):
            settle(work, target, product)
            _clear(work)
            try:
                if (there := written(target, product, run, same=same, force=force)) is not None:
                    return there
                notes = _begun(work, product, run, force=force)
                told = make(notes)
                shards = [{key: value for key, value in shard.items() if key != "files"} for shard in notes.parts]
                manifest = {**run, **told, "shards": shards}
                write_manifest(notes.folder, manifest)
                publish(work, notes.folder, target, product, force=force)
            finally:
                _clear(work)
    return manifest


def _clear(work: Path) -> None:
    """Remove a folder without shards, and notes of shards that have gone to their place."""
    with suppress(OSError):  # there is something in it, or it is not there
        (work / _SHARDS).rmdir()
    if not (work / _SHARDS).is_dir():
        (work / _NOTES).unlink(missing_ok=True)


def _begun(work: Path, product: Product, run: Mapping[str, Any], *, force: bool) -> Checkpoint:
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
        ours = file.name in (MANIFEST, product.manifest) or re.fullmatch(r"shard-\d{5,}\..*", file.name)
        if ours and file.name not in finished:
            file.unlink()  # of the shard at which the run was stopped
    return notes
