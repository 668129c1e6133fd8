"""Checks of what comes from elsewhere: the size of a file, and the layout of JSON."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TypeVar

from koktok.errors import ArtifactError

Layout = TypeVar("Layout")


def read_bounded(path: Path, most: int, what: str, hint: str = "") -> bytes:
    """Read a regular file of at most so many bytes; ArtifactError for anything else."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise ArtifactError(f"`{path}` is a device, a pipe or a folder; expected {what}", hint=hint)
        if state.st_size > most:
            raise ArtifactError(
                f"`{path}` has {state.st_size:,} bytes; expected {what}, of at most {most:,}", hint=hint
            )
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"`{path}` cannot be read: {error}", hint=hint) from error


def checked(layout: type[Layout], data: str | bytes, what: str, hint: str = "") -> Layout:
    """Parse JSON into a dataclass; unknown keys are ignored, and the first mismatch is an ArtifactError."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(layout).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its JSON"
        expected = first["msg"].replace("Input should be", "expected")
        got = "" if first["type"] in ("missing", "json_invalid") else f", got {first['input']!r:.60}"
        raise ArtifactError(f"{what} is damaged: {place}: {expected}{got}", hint=hint) from error
