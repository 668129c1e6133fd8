"""Paths for writing: the user's paths, the cache, and the locked workplace beside a target.

A writer of `NAME` works in `.NAME.koktok/` beside it, under a lock that the system frees when the process ends. So the
workplace of a killed writer is known as koktok's (it holds the lock file) and as free, and the next writer of that name takes
it over. A workplace may have come with a downloaded folder: one that holds a link, or a file of another user, is refused.
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

from koktok.errors import InputError, KoktokError, UsageError

LOCK = "koktok.lock"

LOCK_TIMEOUT = 60.0
"""Seconds that a writer waits for another one of the same name; most writes take milliseconds."""

POLL_INTERVAL = 0.01
"""Seconds between two looks; longer than the clock of a file system takes to show that something has changed."""


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


def workplaces(target: Path, suffix: str = ".koktok") -> tuple[Path, Path]:
    """Return the two workplaces that a target may have: beside it, and inside it."""
    name = target.name
    if len(os.fsencode(name)) + len(suffix) + 1 > 255:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return target.with_name(f".{name}{suffix}"), target / f".koktok{suffix}"


def workplace_of(target: Path, suffix: str = ".koktok") -> Path:
    """Return the workplace of a target: inside it where it is a mount or its parent is read-only, else beside it."""
    beside, inside = workplaces(target, suffix)
    return inside if target.is_dir() and (os.path.ismount(target) or not os.access(target.parent, os.W_OK)) else beside


@contextmanager
def workplace(place: Path, *, wait: float = LOCK_TIMEOUT) -> Iterator[Path]:
    """Lock a folder to work in; what is left in it stays for the next writer, and an empty one is removed.

    UsageError if others made that folder, InputError if another process holds it for longer than `wait` seconds.
    """
    handle = _lock(place, wait)
    try:
        if strange := _strange(place):
            raise UsageError(
                f"`{strange}` is a link, or another user's, and koktok works in that folder", hint=_away(place)
            )
        with suppress(OSError):  # only for the message of a process that waits
            os.ftruncate(handle, 0)
            os.write(handle, f"koktok, process {os.getpid()}\n".encode())
        yield place
    finally:
        if sys.platform == "win32":  # an open file cannot be removed
            os.close(handle)
        with suppress(OSError):
            if names_in(place) == {LOCK}:
                (place / LOCK).unlink()
                place.rmdir()
        if sys.platform != "win32":
            os.close(handle)


def _away(place: Path) -> str:
    return f"mv {typed(place)} ELSEWHERE"


def _lock(place: Path, wait: float) -> int:
    """Create the lock file of a workplace if it is missing, open and lock it."""
    until = time.monotonic() + wait
    while True:
        with suppress(FileExistsError):
            place.mkdir()
        try:
            if place.is_symlink() or ((there := names_in(place)) and LOCK not in there):
                raise NotADirectoryError
            if there and not _is_single((place / LOCK).lstat()):
                raise NotADirectoryError
            handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # its last owner has just removed it
            continue
        except OSError as error:
            if not isinstance(error, NotADirectoryError) and error.errno != errno.ELOOP:
                raise
            raise UsageError(
                f"`{place}` is not koktok's, and koktok works under that name", hint=_away(place)
            ) from None
        with suppress(FileNotFoundError):
            # The lock of a file that its owner has removed protects nothing.
            if _locked(handle) and os.path.samestat(os.fstat(handle), (place / LOCK).lstat()):
                return handle
        os.close(handle)
        if time.monotonic() >= until:
            owner = "koktok"
            with suppress(OSError):
                owner = (place / LOCK).read_text(encoding="utf-8", errors="replace").strip() or owner
            raise InputError(
                f"`{place}` is in use by another process ({owner})", hint="wait for it, or --out OTHER-NAME"
            )
        time.sleep(POLL_INTERVAL)


def _locked(handle: int) -> bool:
    """Lock an open file without waiting; True also on a file system without locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True


def _strange(place: Path) -> Path | None:
    """Find something in a workplace that this user's koktok cannot have left there, without following links."""
    mine = getattr(os, "geteuid", int)()
    for folder, folders, files in os.walk(place):
        for name in (".", *folders, *files):
            state = Path(folder, name).lstat()
            if state.st_uid != mine or not (stat.S_ISDIR(state.st_mode) or _is_single(state)):
                return Path(folder, name)
    return None


def _is_single(state: os.stat_result) -> bool:
    """Whether it is a regular file without another name, through which some other file would be written."""
    return stat.S_ISREG(state.st_mode) and state.st_nlink == 1


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


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Lend an empty temporary folder, and remove those that killed processes left under that name."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f".{name}-*.koktok"):
        if (left / LOCK).exists():
            with suppress(OSError, KoktokError), workplace(left, wait=0):
                shutil.rmtree(left / "new")
    with workplace(base / f".{name}-{secrets.token_hex(8)}.koktok") as work:
        try:
            (work / "new").mkdir(mode=0o700)
            yield work / "new"
        finally:
            shutil.rmtree(work / "new")
