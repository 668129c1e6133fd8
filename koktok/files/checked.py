"""Checks of what comes from elsewhere: the size of a file, and the layout of JSON."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from koktok.errors import ArtifactError

Layout = TypeVar("Layout")


MOST: Final = 1 << 28
"""Bytes of a file of a tokenizer; the largest known ones have less than a fifth of it."""

MOST_TEXT: Final = 1 << 30
"""Bytes of a file of text that is read whole: gold, spans, a dictionary."""

LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
"""The first bytes of what Git has in place of a large file."""

FETCH_LFS: Final = "git lfs pull"


def open_regular(path: Path, what: str = "a file of a tokenizer", hint: str = "") -> IO[bytes]:
    """Open a regular file that is no pointer of Git LFS; ArtifactError for anything else, which a pipe would not raise."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ArtifactError(f"`{path}` is a device, a pipe or a folder; expected {what}", hint=hint)
        file = path.open("rb")
    except OSError as error:
        raise ArtifactError(f"`{path}` cannot be read: {error.strerror or error}", hint=hint) from error
    if file.read(len(LFS_POINTER)) == LFS_POINTER:
        file.close()
        raise ArtifactError(f"`{path}` is a Git LFS pointer, not the file", hint=FETCH_LFS)
    file.seek(0)
    return file


def read_bounded(path: Path, most: int = MOST, what: str = "a file of a tokenizer", hint: str = "") -> bytes:
    """Read a regular file of at most so many bytes; ArtifactError for anything else."""
    with open_regular(path, what, hint) as file:
        try:
            data = file.read(most + 1)  # the size that a system gives may be wrong: /proc
        except OSError as error:
            raise ArtifactError(f"`{path}` cannot be read: {error.strerror or error}", hint=hint) from error
    if len(data) > most:
        raise ArtifactError(
            f"`{path}` has {path.stat().st_size:,} bytes; expected {what}, of at most {most:,}", hint=hint
        )
    return data


def read_utf8(path: Path, what: str = "a file of a tokenizer", hint: str = "fetch it again") -> str:
    """Read a regular file of bounded size as UTF-8; ArtifactError for anything else."""
    try:
        return read_bounded(path, what=what, hint=hint).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"`{path}` is not UTF-8: {error}", hint=hint) from error


def checked(layout: type[Layout], data: str | bytes | dict[str, Any], what: str, hint: str = "") -> Layout:
    """Bring JSON or a table into a layout of types; the first mismatch is an ArtifactError."""
    from pydantic import TypeAdapter, ValidationError

    try:
        types = TypeAdapter(layout)
        if isinstance(data, dict):
            return types.validate_python(data, strict=True)
        return types.validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its JSON"
        expected = first["msg"].replace("Input should be", "expected")
        got = "" if first["type"] in ("missing", "json_invalid") else f", got {first['input']!r:.60}"
        raise ArtifactError(f"{what} is damaged: {place}: {expected}{got}", hint=hint) from error
