"""Where things are made before they take their place: hidden folders that are marked as koktok's, and locked.

This file adds: the workplace. Whoever writes `NAME` works in `.NAME.koktok` beside it. The system frees the lock of a
process that ends, however it ends, so what a killed one left is known as koktok's by its lock file and as nobody's by the
lock, and the next writer of the same name takes it over. Two writers of one name come one after the other. A folder that
others made under that name is never touched.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from koktok.errors import InputError, UsageError

PATIENCE = 60.0
"""Seconds that a writer waits for another one of the same name; most writing takes milliseconds."""

TICK = 0.01
"""Seconds between two looks; longer than the clock of a file system takes to show that something has changed."""

NAME_BYTES = 255
"""What a name may have in every common file system."""

LOCK = "koktok.lock"


def cache_dir() -> Path:
    """The user's cache folder for koktok, or what `KOKTOK_CACHE` says; made when first written to."""
    chosen = os.environ.get("KOKTOK_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("koktok", appauthor=False))


def sha256_of(file: Path) -> str:
    """SHA-256 of a file; '' for anything else: nothing, a folder, a link, a device.

    Examples
    --------
    >>> sha256_of(Path("no such file"))
    ''
    """
    if file.is_symlink() or not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def sync(file: Path) -> None:
    """Wait until the disk has the file, so that what is noted of it later is never there without it."""
    with file.open("rb+") as content:
        os.fsync(content.fileno())


def typed(path: str | Path) -> str:
    """A path, or another word, as it is typed into a shell.

    Examples
    --------
    >>> typed(Path("한국어 폴더/a.txt"))
    "'한국어 폴더/a.txt'"
    """
    return shlex.quote(str(path))


def path_of(path: str | os.PathLike[str], what: str = "a folder") -> Path:
    """`path` as a path; `what` says of what, for the error.

    Raises
    ------
    UsageError
        When it is none.

    Examples
    --------
    >>> path_of(None)
    Traceback (most recent call last):
        ...
    koktok.errors.UsageError: None came where the path of a folder was wanted
    """
    try:
        named = isinstance(path, str | os.PathLike) and b"\0" not in os.fsencode(path) and str(path)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise UsageError(f"{path!r} came where the path of {what} was wanted")
    return Path(path)


def place_of(path: str | os.PathLike[str]) -> Path:
    """Where writing to a path ends: behind links, which stay as they are.

    Raises
    ------
    UsageError
        For a link that leads nowhere.
    InputError
        For a path that cannot be, for instance one whose name is too long.
    """
    given = path_of(path)
    try:
        with suppress(FileNotFoundError):
            given.lstat()
        if given.is_symlink() and not given.exists():
            raise UsageError(
                f"`{given}` is a link to `{given.readlink()}`, which is not there", hint=f"rm {typed(given)}"
            )
        return Path(os.path.realpath(given))
    except OSError as error:
        raise InputError(f"`{given}` cannot be written to: {error}", hint="--out NAME-OF-YOURS") from error


def beside(target: Path, suffix: str = ".koktok") -> Path:
    """The usual workplace of a target; the hidden name of a very long one is a digest.

    Examples
    --------
    >>> beside(Path("models/ko")).as_posix()
    'models/.ko.koktok'
    """
    name = target.name
    if len(os.fsencode(name)) + len(suffix) + 1 > NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return target.with_name(f".{name}{suffix}")


def inside(target: Path, suffix: str = ".koktok") -> Path:
    """The workplace within a folder, for one that nothing beside it can be renamed into."""
    return target / f".koktok{suffix}"


def workplace_of(target: Path, suffix: str = ".koktok") -> Path:
    """Where what will be `target` is made: beside it, or within it where it is a mount or its parent is not ours."""
    if target.is_dir():
        if os.path.ismount(target) or not os.access(target.parent, os.W_OK):
            return inside(target, suffix)
        # A mount may also show the disk that it is on. Asked with a name that nothing bears, Linux says of mounts that
        # they are another device; systems without such mounts say that there is no such file.
        nothing = f".koktok-{secrets.token_hex(8)}"
        try:
            (target / nothing).rename(target.parent / nothing)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return inside(target, suffix)
    return beside(target, suffix)


@contextmanager
def workplace(place: Path, *, wait: float = PATIENCE) -> Iterator[Path]:
    """A folder to work in, marked as koktok's and locked for as long as this process lives.

    What is left in it at the end stays there, marked, for the next one; an empty one goes.

    Raises
    ------
    UsageError
        When a folder of others stands there.
    InputError
        When another process holds it for longer than `wait` seconds.
    OSError
        When it cannot be made.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), ".x.koktok")
    >>> with workplace(place) as work:
    ...     [file.name for file in work.iterdir()]
    ['koktok.lock']
    >>> place.exists()
    False
    """
    handle = _taken(place, wait)
    try:
        yield place
    finally:
        if sys.platform == "win32":  # removes no file that is open
            os.close(handle)
        with suppress(OSError):
            if [file.name for file in place.iterdir()] == [LOCK]:
                (place / LOCK).unlink()
                place.rmdir()
        if sys.platform != "win32":
            os.close(handle)


def _taken(place: Path, wait: float) -> int:
    """The open and locked lock file of a workplace, which is made where it is not there."""
    until = time.monotonic() + wait
    while True:
        with suppress(FileExistsError):
            place.mkdir()
        try:
            there = {file.name for file in place.iterdir()}
            if place.is_symlink() or (there and LOCK not in there):
                raise NotADirectoryError
            handle = os.open(place / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except NotADirectoryError:
            raise UsageError(
                f"`{place}` is not koktok's, and koktok works under that name", hint=f"mv {typed(place)} ELSEWHERE"
            ) from None
        except FileNotFoundError:  # its last owner has just taken it away
            continue
        with suppress(FileNotFoundError):
            # The lock of a file that its owner has taken away is worth nothing.
            if _locked(handle) and os.path.samestat(os.fstat(handle), (place / LOCK).stat()):
                with suppress(OSError):  # who it is, is only told
                    os.ftruncate(handle, 0)
                    os.write(handle, f"koktok, process {os.getpid()}\n".encode())
                return handle
        os.close(handle)
        if time.monotonic() >= until:
            who = "koktok"
            with suppress(OSError):
                who = (place / LOCK).read_text(encoding="utf-8", errors="replace").strip() or who
            raise InputError(f"`{place}` is in use by another process ({who})", hint="wait for it, or --out OTHER-NAME")
        time.sleep(TICK)


def _locked(handle: int) -> bool:
    """True when the lock is ours now, or where there are no locks."""
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


def probe(target: Path) -> None:
    """An error where nothing can be written to, before any work is done: a workplace is made, and taken away.

    Raises
    ------
    InputError
        When the system refuses.
    """
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
