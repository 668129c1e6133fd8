"""One file that is there whole or not at all: made in a workplace, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from koktok.errors import InputError, UsageError
from koktok.files.workplace import place_of, probe, sync, typed, workplace, workplace_of

_FRESH = "new.file"

Ours = Callable[[Path], bool]


def check_file(path: str | os.PathLike[str], ours: Ours | None = None) -> Path:
    """The place of a file that is to be written; errors as `write_file`, before any work is done for it."""
    target = place_of(path)
    _may_be_replaced(target, ours)
    if target.is_file() or not target.exists():
        probe(target)
    return target


def write_file(
    path: str | os.PathLike[str], content: bytes | Callable[[Path], None], *, ours: Ours | None = None
) -> Path:
    """Write a file, or nothing.

    Parameters
    ----------
    path : str or Path
        A link is followed. A device or a pipe takes bytes as they come.
    content : bytes, or a function that writes to the path that it is given
        For libraries that want a path of their own.
    ours : callable, optional
        Says of a file that stands there whether koktok wrote it; any other is not replaced. Without it every file is,
        for places that are koktok's alone.

    Raises
    ------
    UsageError
        When a folder is at that place, or a file that koktok did not write.
    InputError
        When the disk says no; nothing is left behind and what was there before is untouched.
    """
    target = place_of(path)
    _may_be_replaced(target, ours)
    try:
        if target.exists() and not target.is_file():
            if not isinstance(content, bytes):
                raise UsageError(f"`{target}` is no file", hint="--out NAME-OF-A-FILE")
            with target.open("wb") as device:
                device.write(content)
            return Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target)) as work:
            fresh = work / _FRESH
            try:
                if isinstance(content, bytes):
                    fresh.write_bytes(content)
                else:
                    content(fresh)
                sync(fresh)
                _may_be_replaced(target, ours)
                if target.exists():
                    shutil.copymode(target, fresh)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another file"
        ) from error
    return Path(path)


def _may_be_replaced(target: Path, ours: Ours | None) -> None:
    if target.is_dir():
        raise UsageError(f"`{target}` is a folder; the name of a file is wanted", hint=f"--out {target}/NAME")
    if ours is not None and target.is_file() and target.stat().st_size and not ours(target):
        raise UsageError(
            f"the file `{target}` was not written by koktok; it is left as it is",
            hint=f"mv {typed(target)} ELSEWHERE, or --out ANOTHER-NAME",
        )
