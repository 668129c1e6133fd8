"""Files and folders that are there whole or not at all, in which nothing of others is deleted or replaced (law 12).

A folder of koktok's has a list of checksums that `sha256sum -c` reads; only files that are still as listed are ever replaced, and
without `force` only by the same content. A folder is made in the workplace beside it and flushed; then the old one is renamed
into the workplace, the new one to its name, and the old one is removed. If a writer is killed between the two renamings, readers
read the old one there, and the next writer renames it back. A folder in which others keep files stays where it is: koktok's files
are replaced one by one, and until all are there its list says so, and has the old and the new ones.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from koktok.errors import ArtifactError, UsageError
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
    writing,
)

Read = TypeVar("Read")
Ours = Callable[[Path], bool]

OLD = "old"
_WHOLE = "# Written by koktok, which replaces nothing here but these files, and them as they were. This list: "
_HALF = "# Being written by koktok; if it was interrupted, run that command again. This list: "
_MOVING = 5.0
"""Seconds that a reader waits for a writer that is replacing files."""
_MOST_LISTED = 1 << 24
"""Bytes of a list of checksums; a folder of a hundred thousand files has less."""


@dataclass(frozen=True)
class Product:
    """A kind of folder that koktok writes, and its list of checksums."""

    manifest: str
    what: str
    names: frozenset[str] = frozenset()
    guest: bool = False

    def rows(self, folder: Path) -> list[tuple[str, str]] | None:
        """Return what the list of a folder has, and the list itself, by SHA-256: None without one, nothing if it was changed."""
        head, _, lines = self._list(folder).partition(b"\n")
        if not head.startswith((_WHOLE.encode(), _HALF.encode())):
            return None
        if not head.endswith(f" {hashlib.sha256(lines).hexdigest()}".encode()):
            return []
        rows = [line.partition("  ") for line in lines.decode("utf-8", "replace").splitlines()]
        listed = [(name, sha) for sha, _, name in rows if is_plain(name) and sha]
        return [*listed, (self.manifest, sha256_of(folder / self.manifest))]

    def own(self, folder: Path) -> dict[str, str] | None:
        """Return the listed files that are as they were written; None without a list."""
        rows = self.rows(folder)
        return None if rows is None else {name: sha for name, sha in rows if sha256_of(folder / name) == sha}

    def is_half_written(self, folder: Path) -> bool:
        """Whether files of a folder are being replaced, or a writer was killed at that."""
        return self._list(folder).startswith(_HALF.encode())

    def _list(self, folder: Path) -> bytes:
        manifest = folder / self.manifest
        with suppress(OSError):  # it is being replaced
            if manifest.is_file() and not manifest.is_symlink() and manifest.stat().st_size <= _MOST_LISTED:
                return manifest.read_bytes()
        return b""


def own_names(folder: Path) -> frozenset[str] | None:
    """Return the names in a folder that koktok wrote beside files of others; None where the folder is koktok's, a corpus apart."""
    names: set[str] = set()
    for file in sorted(folder.glob("*.sha256")):
        rows = Product(file.name, "").rows(folder)
        if rows is not None and file.name != "fetched.sha256":
            if file.name != "report.sha256":  # the guest in a folder
                return None
            names |= {name for name, _ in rows}
    trained = all(
        any((folder / name).is_file() for name in some) for some in _TRAINED
    )  # a recipe may lie beside a text
    return None if trained else frozenset(names)


_TRAINED = (("koktok.toml",), ("tokenizer.json", "vocab.json"))


def _list_of(rows: Iterable[tuple[str, str]], head: str = _WHOLE) -> bytes:
    lines = "".join(f"{sha}  {name}\n" for name, sha in sorted(rows)).encode()
    return f"{head}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines


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
    with writing(target):
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
    if own and not product.is_half_written(target) and not same(target):
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
    with writing(target):
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
                publish(work, staged, target, product, force=force)
            finally:
                _discard(staged)
    return Path(path)


def _folder_at(path: str | os.PathLike[str]) -> Path:
    target = place_of(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"expected a folder, got the file `{target}`", hint=f"--out {target}.koktok")
    return target


def is_intact(folder: Path, product: Product) -> bool:
    """Whether every file that koktok wrote into a folder is as it was written."""
    rows = product.rows(folder)
    return bool(rows) and all(sha256_of(folder / name) == sha for name, sha in rows or ())


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


def publish(work: Path, staged: Path, target: Path, product: Product, *, force: bool) -> None:
    """List the files of a staged folder and put it in its place: by renaming folders, or files where others keep some."""
    own, names = product.own(target), names_in(staged) - {product.manifest}
    _refuse_others(target, product, names, own)
    own = own or {}
    old = {name: sha for name, sha in own.items() if name != product.manifest}
    new = {name: sha256_of(staged / name) for name in names}
    if odd := [name for name, sha in new.items() if not sha]:
        raise UsageError(f"`{odd[0]}` is not a file, and a {product.what} is made of files")
    if product.guest:
        new = old | new
    if not force and any(new.get(name) != sha for name, sha in old.items()):
        raise refuse_another(target, product.what)
    (staged / product.manifest).write_bytes(_list_of(new.items()))
    for name in names_in(staged):
        sync(staged / name)
        if name in own:
            shutil.copymode(target / name, staged / name)
    if target.is_dir():
        shutil.copymode(target, staged)
        inside = work.parent == target or Path.cwd().is_relative_to(target)
        if own and names_in(target) <= own.keys() and not inside and not product.guest:
            target.rename(work / OLD)
    if target.exists():
        _replace(staged, target, product, old, new)
        return
    try:
        staged.rename(target)
    finally:
        settle(work, target, product)


def settle(work: Path, target: Path, product: Product) -> None:
    """Finish or undo what a killed writer was at; for writers, which hold the lock of the workplace."""
    old = work / OLD
    if old.is_dir() and not old.is_symlink():
        if names_in(old) and product.rows(old) is None:  # its list is the last that goes
            raise _not_koktoks(old)
        if os.path.lexists(target):
            _remove(old, target, product)
        else:
            old.rename(target)
    _discard(work / NEW)


def _replace(staged: Path, target: Path, product: Product, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Replace the files of a folder one by one, between a list of the old and the new ones and the list of the new ones."""
    whole, half = staged / product.manifest, staged / f"{product.manifest}.half"
    half.write_bytes(_list_of({*old.items(), *new.items()}, _HALF))
    shutil.copymode(whole, half)
    sync(half)
    half.replace(target / product.manifest)
    for name in old.keys() - new.keys():
        (target / name).unlink()
    for name in names_in(staged) - {product.manifest}:
        (staged / name).replace(target / name)
    whole.replace(target / product.manifest)
    staged.rmdir()


def _remove(old: Path, target: Path, product: Product) -> None:
    """Remove what koktok wrote of a folder that was replaced, its list last; what came into it meanwhile goes to the new one."""
    own = product.own(old) or {}
    for name in sorted(names_in(old) - own.keys()):
        if os.path.lexists(target / name):
            raise _not_koktoks(old / name)
        (old / name).rename(target / name)
    for name in sorted(own, key=lambda name: name == product.manifest):
        (old / name).unlink()
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
    old = workplace_of(Path(os.path.realpath(folder))) / OLD
    return old if not folder.exists() and old.is_dir() else folder


def read_whole(folder: Path, product: Product, read: Callable[[Path], Read]) -> Read:
    """Read a folder that others may be writing to: the old one or the new one, never a mixture.

    What a writer that was killed while it moved files has left is an ArtifactError.
    """
    until = time.monotonic() + _MOVING
    while True:
        place, error = standing(folder), None
        before = _written_at(place, product)
        try:
            content = read(place)
        except ArtifactError as raised:
            error = raised
        half = product.is_half_written(place)
        if not half and standing(folder) == place and before == _written_at(place, product):
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


def _written_at(folder: Path, product: Product) -> tuple[int, int] | None:
    """Return what changes when a folder is written to."""
    with suppress(OSError):
        state = (folder / product.manifest).stat()
        return state.st_ino, state.st_mtime_ns
    return None
