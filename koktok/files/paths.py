"""Paths for writing: the user's paths, the cache, and the locked workplace beside a target.

A writer of `NAME` works in `.NAME.koktok/` beside it, under a lock that the system frees when the process ends. So the
workplace of a killed writer is known as koktok's (it holds the lock file) and as free, and the next writer takes it over.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from koktok.errors import InputError, KoktokError, UsageError, visible

LOCK = "koktok.lock"

LOCK_TIMEOUT = 60.0
"""Seconds that a writer waits for another one of the same name; most writes take milliseconds."""

POLL_INTERVAL = 0.01
"""Seconds between two looks; longer than the clock of a file system takes to show that something has changed."""

NEW = "new"
"""The folder in a workplace in which a result is made."""


def cache_dir() -> Path:
    """Return `$KOKTOK_CACHE`, or the user's cache folder for koktok."""
    if chosen := os.environ.get("KOKTOK_CACHE"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("koktok", appauthor=False))


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a regular file, and '' for anything else."""
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def sync(file: Path) -> None:
    """Flush a file to the disk."""
    with file.open("rb+") as content:
        os.fsync(content.fileno())


def typed(path: str | Path) -> str:
    """Quote a path for a shell."""
    return shlex.quote(str(path))


def is_plain(name: object) -> bool:
    """Whether a name is that of a file directly in a folder, on every system, and fits on one line."""
    return isinstance(name, str) and name not in ("", ".", "..") and name.isprintable() and not set(name) & {"/", "\\"}


def path_of(path: str | os.PathLike[str], what: str = "a folder") -> Path:
    """Return `path` as a Path that can be looked at, or raise UsageError: text is often passed where a path is expected."""
    try:
        if not isinstance(path, str | os.PathLike) or b"\0" in os.fsencode(path) or not str(path):
            raise UsageError(f"expected the path of {what}, got {path!r}")
        Path(path).exists()  # raises for a name that the system refuses, such as one of 300 characters
    except (UnicodeEncodeError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds a lone surrogate"
        raise UsageError(f"expected the path of {what}, got {str(path)[:80]!r}: {why}") from None
    return Path(path)


def place_of(path: str | os.PathLike[str]) -> Path:
    """Resolve the path that is written to; UsageError for a dangling link, InputError for an impossible path."""
    asked = path_of(path)
    try:
        with suppress(FileNotFoundError):
            asked.lstat()
        if asked.is_symlink() and not asked.exists():
            raise UsageError(
                f"`{asked}` is a link to `{asked.readlink()}`, which is not there", hint=f"rm {typed(asked)}"
            )
        return Path(os.path.realpath(asked))
    except OSError as error:
        raise InputError(f"`{asked}` cannot be written to: {error}", hint="--out NAME-OF-YOURS") from error


def names_in(folder: Path) -> set[str]:
    """Return the names of the entries of a folder."""
    return {entry.name for entry in folder.iterdir()}


def workplace_of(target: Path, suffix: str = ".koktok") -> Path:
    """Return the workplace of a target: inside it where it is a mount or its parent is read-only, else beside it."""
    if target.is_dir() and (os.path.ismount(target) or not os.access(target.parent, os.W_OK)):
        return target / f".koktok{suffix}"
    name = target.name
    if len(os.fsencode(name)) + len(suffix) + 1 > 255:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return target.with_name(f".{name}{suffix}")


@contextmanager
def workplace(place: Path, *, wait: float = LOCK_TIMEOUT) -> Iterator[Path]:
    """Lock a folder to work in; what is left in it stays for the next writer, and an empty one is removed.

    UsageError if others made that folder, InputError if another process holds it for longer than `wait` seconds.
    """
    from filelock import FileLock, Timeout

    lock, until = FileLock(place / LOCK), time.monotonic() + wait
    while not lock.is_locked:
        with suppress(FileExistsError):
            place.mkdir()
        # Somebody holds it, or its last owner has just removed the folder, while `acquire` looks for it and makes it.
        with suppress(Timeout, FileNotFoundError, FileExistsError):
            if not _is_workplace(place):
                raise UsageError(
                    f"`{place}` exists and was not made by koktok; koktok needs that name",
                    hint=f"mv {typed(place)} ELSEWHERE",
                )
            lock.acquire(timeout=0)
        if not lock.is_locked:
            if time.monotonic() >= until:
                raise InputError(f"`{place}` is in use by another process", hint="wait for it, or --out OTHER-NAME")
            time.sleep(POLL_INTERVAL)
    try:
        yield place
    except InputError as error:
        with suppress(OSError):
            if names_in(place) > {LOCK}:
                error.hint = f"{error.hint}; what was finished is kept in {visible(typed(place))}".removeprefix("; ")
        raise
    finally:
        if sys.platform == "win32":  # an open file cannot be removed
            lock.release()
        with suppress(OSError):
            if names_in(place) == {LOCK}:
                (place / LOCK).unlink()
                place.rmdir()
        lock.release()


def _is_workplace(place: Path) -> bool:
    """Whether koktok made a folder to work in: it is empty, or has a lock that is no link to a file of somebody else."""
    if place.is_symlink() or place.is_file():
        return False
    there = names_in(place)
    if LOCK not in there:
        return not there
    lock = (place / LOCK).lstat()
    return stat.S_ISREG(lock.st_mode) and lock.st_nlink == 1


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise errors of the system as InputError; libraries in Rust have their number at the end of their own errors."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, OSError) and (isinstance(error, KoktokError) or "(os error " not in str(error)):
            raise
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out ANOTHER-PLACE"
        ) from error


def probe(target: Path) -> None:
    """Raise InputError if nothing can be written at `target`, before any work is done for it."""
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
        with workplace(workplace_of(target)):
            pass
    except OSError as error:
        raise InputError(f"`{target}` cannot be written to: {error}", hint="--out PLACE-OF-YOURS") from error
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def sweep(folder: Path, pattern: str) -> None:
    """Remove what killed writers had begun in the workplaces of a folder."""
    for left in sorted(folder.glob(pattern)):
        if (left / LOCK).exists():
            with suppress(OSError, KoktokError), workplace(left, wait=0):
                shutil.rmtree(left / NEW)


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Lend an empty temporary folder, and remove those that killed processes left under that name."""
    base = Path(tempfile.gettempdir())
    sweep(base, f".{name}-*.koktok")
    with workplace(base / f".{name}-{secrets.token_hex(8)}.koktok") as work:
        try:
            (work / NEW).mkdir(mode=0o700)
            yield work / NEW
        finally:
            shutil.rmtree(work / NEW)
