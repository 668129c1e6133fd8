"""A folder that is there whole or not at all: written under a temporary name beside its place, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from koktok.errors import InputError, UsageError

__all__ = ["MARK", "check_target", "write_folder"]

MARK = "koktok.toml"
"""The file by which koktok knows a folder as its own."""


def check_target(path: str | Path) -> Path:
    """The target of a save, or an error before any work is done for it.

    Raises
    ------
    UsageError
        When the path is a file, or a folder that holds something other than a koktok tokenizer.
    InputError
        When its parent cannot be written to.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"`{target}` is a file; a folder is wanted", hint=f"--out {target}.koktok")
    if target.is_dir() and not (target / MARK).is_file() and any(target.iterdir()):
        raise UsageError(f"the folder `{target}` is not empty and holds no koktok tokenizer", hint="--out NEW-FOLDER")
    parent = target.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK):
        raise InputError(f"the folder `{parent}` cannot be written to", hint="--out FOLDER-OF-YOURS")
    return target


def write_folder(path: str | Path, files: Mapping[str, str | bytes]) -> Path:
    r"""Write all files, or none.

    Parameters
    ----------
    path : str or Path
        The folder; an older koktok tokenizer there is replaced.
    files : mapping of str to str or bytes
        Contents by name; text is written as UTF-8 with `\n`.

    Raises
    ------
    InputError
        When the disk says no; nothing is left behind and what was there before is untouched.
    """
    target = check_target(path)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    try:
        fresh.chmod(0o755)
        for name, content in files.items():
            (fresh / name).write_bytes(content.encode() if isinstance(content, str) else content)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.absolute().parent))
            target.rename(old / "folder")
            fresh.rename(target)
            shutil.rmtree(old)
        else:
            fresh.rename(target)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another folder"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
