"""Files and folders that are there whole or not at all, in which nothing of others is deleted or replaced (law 12).

A folder of koktok's has a list of checksums that `sha256sum -c` reads; only files that are still as listed are ever replaced, and
without `force` only by the same content. A folder is made in the workplace beside it and flushed; then the old one is renamed
into the workplace, the new one to its name, and the old one is removed. If a writer is killed between the two renamings, readers
read the old one there, and the next writer renames it back. A folder in which others keep files stays where it is: koktok's files
are moved into it one by one, the list last, and the next writer finishes that.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files.paths import (
    LOCK,
    NEW,
    POLL_INTERVAL,
    is_plain,
    names_in,
    place_of,
    probe,
    sha256_of,
    sync,
    typed,
    workplace,
    workplace_of,
    workplaces,
)

Read = TypeVar("Read")
Ours = Callable[[Path], bool]

OLD, READY = "old", "ready"
_HEAD = "# Written by koktok, which replaces nothing here but these files, and them as they were. This list: "
_MOVING = 5.0
"""Seconds that a reader waits for a writer that is moving files."""
_MOST_LISTED = 1 << 24
"""Bytes of a list of checksums; a folder of a hundred thousand files has less."""


@dataclass(frozen=True)
class Product:
    """A kind of folder that koktok writes, and its list of checksums."""

    manifest: str
    what: str
    names: frozenset[str] = frozenset()
    guest: bool = False

    def sign(self, folder: Path, more: Mapping[str, str]) -> None:
        """Write the list of a folder's files, and of `more` by SHA-256."""
        files = {file.name: sha256_of(file) for file in folder.iterdir()}
        if odd := [name for name, sha in files.items() if not sha]:
            raise UsageError(f"`{odd[0]}` is not a file, and a {self.what} is made of files")
        lines = "".join(f"{sha}  {name}\n" for name, sha in sorted({**more, **files}.items())).encode()
        (folder / self.manifest).write_bytes(f"{_HEAD}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines)

    def listed(self, folder: Path) -> dict[str, str] | None:
        """Return what the list of a folder has by SHA-256, itself among it: None without one, nothing if it was changed."""
        manifest = folder / self.manifest
        small = manifest.is_file() and not manifest.is_symlink() and manifest.stat().st_size <= _MOST_LISTED
        head, _, lines = (manifest.read_bytes() if small else b"").partition(b"\n")
        if not head.startswith(_HEAD.encode()):
            return None
        if head != f"{_HEAD}{hashlib.sha256(lines).hexdigest()}".encode():
            return {}
        rows = [line.partition("  ") for line in lines.decode("utf-8", "replace").splitlines()]
        return {name: sha for sha, _, name in rows if is_plain(name) and sha} | {manifest.name: sha256_of(manifest)}

    def own(self, folder: Path) -> dict[str, str] | None:
        """Return the listed files that are as they were written; None without a list."""
        listed = self.listed(folder)
        return listed and {name: sha for name, sha in listed.items() if sha256_of(folder / name) == sha}


def refuse_another(target: Path, what: str) -> UsageError:
    """Return the error for a place that holds another result."""
    kind = "folder" if target.is_dir() else "file"
    return UsageError(
        f"output {kind} `{target}` already exists and contains a different {what}",
        hint="choose another --out, or --force (in Python, force=True)",
    )


# --- Files ------------------------------------------------------------------------------------------------------------


def check_file(path: str | os.PathLike[str], ours: Ours | None = None) -> Path:
    """Return the place of a file to be written; errors as `write_file`, before any work is done for it."""
    target = place_of(path)
    _refuse_file(target, ours)
    if target.is_file() or not target.exists():
        probe(target)
    return target


def write_file(
    path: str | os.PathLike[str],
    content: bytes | Callable[[Path], None],
    *,
    ours: Ours | None = None,
    force: bool = True,
    what: str = "result",
) -> Path:
    """Write a file whole or not at all; a link is followed, and a device or a pipe takes bytes.

    A file there that is not `ours`, or, without `force`, has other content, is a UsageError.
    """
    target = place_of(path)
    _refuse_file(target, ours)
    try:
        if target.exists() and not target.is_file():
            if not isinstance(content, bytes):
                raise UsageError(f"`{target}` is not a file", hint="--out NAME-OF-A-FILE")
            with target.open("wb") as device:
                device.write(content)
            return Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target)) as work:
            fresh = work / "new.file"
            try:
                fresh.unlink(missing_ok=True)  # what a killed writer left
                if isinstance(content, bytes):
                    fresh.write_bytes(content)
                else:
                    content(fresh)
                sync(fresh)
                _refuse_file(target, ours)
                if target.exists():
                    if not force and target.stat().st_size and sha256_of(target) != sha256_of(fresh):
                        raise refuse_another(target, what)
                    shutil.copymode(target, fresh)
                fresh.replace(target)
            finally:
                fresh.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another file"
        ) from error
    return Path(path)


def _refuse_file(target: Path, ours: Ours | None) -> None:
    if target.is_dir():
        raise UsageError(f"expected the name of a file, got the folder `{target}`", hint=f"--out {target}/NAME")
    if ours is not None and target.is_file() and target.stat().st_size and not ours(target):
        raise UsageError(
            f"the file `{target}` was not written by koktok; it is left as it is",
            hint=f"mv {typed(target)} ELSEWHERE, or --out ANOTHER-NAME",
        )


# --- Folders ----------------------------------------------------------------------------------------------------------


def check_folder(
    path: str | os.PathLike[str],
    product: Product,
    names: Collection[str] = (),
    *,
    same: Callable[[Path], bool] = lambda _: True,
) -> Path:
    """Return the place of a folder to be written with files of these names; errors as `write_folder`, before any work.

    A folder that koktok wrote is refused if `same` says that the result would differ.
    """
    target = _folder_at(path)
    probe(target)
    own = product.own(target)
    _refuse_others(target, product, names, own)
    if own and not same(target):
        raise refuse_another(target, product.what)
    return target


def write_folder(
    path: str | os.PathLike[str],
    content: Mapping[str, str | bytes] | Callable[[Path], None],
    product: Product,
    *,
    force: bool = True,
) -> Path:
    """Write all files of a folder, or none; what koktok wrote there before is removed, and everything else stays.

    `content` is text or bytes by name, or a function that fills an empty folder. UsageError if files of others are in the way
    or a name is not plain, and, without `force`, if koktok wrote other files there.
    """
    target = _folder_at(path)
    if not callable(content) and (strange := [name for name in content if not is_plain(name)]):
        raise UsageError(f"{strange[0]!r} is not a plain name of a file for `{target}`", hint="README.md")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target)) as work:
            settle(work, target, product)
            staged = work / NEW
            try:
                staged.mkdir()
                if callable(content):
                    content(staged)
                else:
                    for name, data in content.items():
                        (staged / name).write_bytes(data.encode() if isinstance(data, str) else data)
                own, names = product.own(target), names_in(staged)
                _refuse_others(target, product, names, own)
                stays = {name: sha for name, sha in (own or {}).items() if product.guest and name not in names}
                stays.pop(product.manifest, None)
                product.sign(staged, stays)
                old = (own or {}).keys() - stays.keys() - {product.manifest}
                if not force and any(sha256_of(staged / name) != (own or {})[name] for name in old):
                    raise refuse_another(target, product.what)
                publish(work, staged, target, product)
            finally:
                _discard(staged)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another folder"
        ) from error
    return Path(path)


def _folder_at(path: str | os.PathLike[str]) -> Path:
    target = place_of(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"expected a folder, got the file `{target}`", hint=f"--out {target}.koktok")
    return target


def is_intact(folder: Path, product: Product) -> bool:
    """Whether every file that koktok wrote into a folder is as it was written."""
    listed = product.listed(folder)
    return bool(listed) and listed == product.own(folder)


def _refuse_others(target: Path, product: Product, names: Collection[str], own: Mapping[str, str] | None) -> None:
    there = [file for file in target.iterdir() if not (file / LOCK).exists()] if target.is_dir() else []
    if own is None and not product.guest and there:
        raise UsageError(
            f"the folder `{target}` is not empty and holds no koktok {product.what}", hint="--out NEW-FOLDER"
        )
    for name in [product.manifest, *sorted({*product.names, *names} - {product.manifest})]:
        if os.path.lexists(target / name) and name not in (own or {}):
            raise _not_koktoks(target / name)


# --- Publishing -------------------------------------------------------------------------------------------------------


def publish(work: Path, staged: Path, target: Path, product: Product) -> None:
    """Put a staged folder, with its list, in its place: by renaming folders, or files where others keep some."""
    own = product.own(target) or {}
    for name in names_in(staged):
        sync(staged / name)
        if name in own:
            shutil.copymode(target / name, staged / name)
    if target.is_dir():
        shutil.copymode(target, staged)
        inside = work.parent == target or Path.cwd().is_relative_to(target)
        if own and names_in(target) <= own.keys() and not inside and not product.guest:
            target.rename(work / OLD)
    if not target.exists():
        try:
            staged.rename(target)
        finally:
            settle(work, target, product)
        return
    staged.rename(work / READY)
    try:
        settle(work, target, product)
    except OSError:
        with suppress(OSError):
            if names_in(work / READY) >= (product.listed(work / READY) or {}).keys():  # nothing has happened yet
                (work / READY).rename(staged)
        raise


def settle(work: Path, target: Path, product: Product) -> None:
    """Finish or undo what a killed writer was at; for writers, which hold the lock of the workplace."""
    old, ready = work / OLD, work / READY
    if old.is_dir() and not old.is_symlink():
        if os.path.lexists(target):
            _remove(old, target, product)
        else:
            old.rename(target)
    if ready.is_dir() and not ready.is_symlink():
        _move(ready, target, product)
    _discard(work / NEW)


def _move(ready: Path, target: Path, product: Product) -> None:
    """Move files into a folder of others, from wherever that stopped; the list comes last, so the old one stands until then."""
    target.mkdir(exist_ok=True)
    own, new, waiting = product.own(target) or {}, product.listed(ready) or {}, names_in(ready)
    if waiting and product.manifest not in waiting & new.keys():
        raise UsageError(
            f"`{ready}` holds files, and no record that koktok wrote them", hint=f"mv {typed(ready)} ELSEWHERE"
        )
    for name in waiting:
        if os.path.lexists(target / name) and name not in own:
            raise _not_koktoks(target / name)
    for name in own.keys() - new.keys() if waiting else ():
        (target / name).unlink()
    for name in sorted(waiting & new.keys(), key=lambda name: name == product.manifest):
        (ready / name).replace(target / name)
    ready.rmdir()


def _remove(old: Path, target: Path, product: Product) -> None:
    """Remove what koktok wrote of a folder that was replaced, its list last; what came into it meanwhile goes to the new one."""
    for name in sorted(product.own(old) or {}, key=lambda name: name == product.manifest):
        (old / name).unlink()
    for left in old.iterdir():
        if os.path.lexists(target / left.name):
            raise _not_koktoks(left)
        left.rename(target / left.name)
    old.rmdir()


def _not_koktoks(place: Path) -> UsageError:
    return UsageError(
        f"`{place}` was not written by koktok, or was changed since; it is left as it is",
        hint=f"mv {typed(place)} ELSEWHERE, or --out NEW-FOLDER",
    )


def _discard(staged: Path) -> None:
    if staged.is_dir():
        shutil.rmtree(staged)


def standing(folder: Path) -> Path:
    """Return a folder, or the old one in its workplace while a writer, perhaps a killed one, is between two renamings."""
    old = workplaces(Path(os.path.realpath(folder)))[0] / OLD
    return old if not folder.exists() and old.is_dir() else folder


def read_whole(folder: Path, product: Product, read: Callable[[Path], Read]) -> Read:
    """Read a folder that others may be writing to: the old one or the new one, never a mixture.

    What a writer that was killed while it moved files has left is an ArtifactError.
    """
    until = time.monotonic() + _MOVING
    while True:
        place, error = standing(folder), None
        before = _times(place, product)
        try:
            content = read(place)
        except ArtifactError as raised:
            error = raised
        half = _is_half_moved(folder, product)
        if not half and standing(folder) == place and before == _times(place, product):
            break
        if time.monotonic() > until:
            if half:
                raise ArtifactError(
                    f"`{folder}` is incomplete: writing it was interrupted", hint="run that command again"
                ) from error
            break
        time.sleep(POLL_INTERVAL)
    if error:
        raise error
    return content


def _is_half_moved(folder: Path, product: Product) -> bool:
    """Whether files are being moved into a folder, and those that they replace are no more as they were."""
    target = Path(os.path.realpath(folder))
    moving = any((work / READY / product.manifest).is_file() for work in workplaces(target))
    return moving and not is_intact(target, product)


def _times(target: Path, product: Product) -> list[tuple[int, int]]:
    """Return what changes when a folder is written to."""
    times = []
    for path in (target, target / product.manifest):
        with suppress(OSError):
            state = path.stat()
            times.append((state.st_ino, state.st_mtime_ns))
    return times
