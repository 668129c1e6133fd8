"""One file that is there whole or not at all: written under a temporary name beside its place, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from koktok.errors import InputError, UsageError

__all__ = ["write_file"]


def write_file(path: str | Path, content: bytes | Callable[[Path], None]) -> Path:
    """Write a file, or nothing; an older file there is replaced.

    Parameters
    ----------
    path : str or Path
    content : bytes, or a function that writes to the path that it is given
        For libraries that want a path of their own.

    Raises
    ------
    UsageError
        When a folder is at that place.
    InputError
        When the disk says no; nothing is left behind and what was there before is untouched.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"`{target}` is a folder; the name of a file is wanted", hint=f"--out {target}/NAME")
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
    except OSError as error:
        raise InputError(f"`{target}` cannot be written: {error}", hint="--out FILE-OF-YOURS") from error
    os.close(handle)
    fresh = Path(name)
    try:
        if isinstance(content, bytes):
            fresh.write_bytes(content)
        else:
            content(fresh)
        fresh.chmod(0o644)
        fresh.rename(target)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another file"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return target
