"""Which parts of a long run are finished, for the run that goes on after a kill.

This file adds: proof. A part is taken for finished only where every file of it has the size and the SHA-256 that were
noted, and the note was written when the disk had the files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from koktok.files.workplace import sha256_of, sync


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
        if not file.is_file() or file.stat().st_size != noted["bytes"] or sha256_of(file) != noted["sha256"]:
            return False
    return True


class Checkpoint:
    """Notes of finished parts: a line of JSON a part, appended, so that the millionth costs what the first one did.

    Parameters
    ----------
    notes : Path
        The file of the notes.
    folder : Path
        Where the files of the parts lie.
    run : mapping
        What the parts depend on; stands in the first line.

    Attributes
    ----------
    parts : list of dict
        What an earlier run noted.
    before : dict or None
        The `run` of those notes.

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
        with suppress(OSError, ValueError):
            first, *rest = notes.read_bytes().split(b"\n")
            self._torn = rest[-1:] != [b""]  # what has no end was being written
            self.before = json.loads(first)["run"]
            self.parts = [json.loads(line) for line in rest[:-1]]

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
