"""A folder that is there whole or not at all, in which nothing of others is deleted or replaced.

This file adds: the manifest and the journal.

* A folder of koktok's carries a manifest, for instance koktok.sha256: what koktok wrote there, as `sha256sum -c` reads it.
  (Not in koktok.toml, which is a function of text and recipe alone; the files of a folder are not.) Only files that are
  still as koktok wrote them are replaced or taken away. Everything else stays where it is, and a file of others under a
  name that koktok needs is an error before anything is touched.
* A new folder gets its name in one step. One that holds nothing of others changes places with the new one in one step,
  where the system can do that. Else (other files beside ours, a mount, the folder in which the shell stands) a folder keeps
  its identity and gets its files one by one, the manifest last: moving what others have, even for a moment, could lose it to a
  kill, or to the process that is writing there. `read_settled` sees one step in either case.
* Before the first of these steps a journal says what is old and what is new. A process that is killed before it leaves the
  old folder; one that is killed behind it leaves the journal, which the next writer or reader carries out.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from koktok.errors import ArtifactError, InputError, KoktokError, UsageError
from koktok.files.workplace import (
    LOCK,
    PATIENCE,
    TICK,
    beside,
    inside,
    place_of,
    probe,
    sha256_of,
    sync,
    typed,
    workplace,
    workplace_of,
)

Read = TypeVar("Read")

_STAGED = "new"
_JOURNAL = "journal.json"
_DRAFT = "journal.draft"
_HEAD = "# Written by koktok, which replaces nothing here but these files, and them as they were. This list: "


@dataclass(frozen=True)
class Product:
    """A kind of folder that koktok writes.

    Parameters
    ----------
    manifest : str
        The file that lists what koktok wrote, with its digests.
    what : str
        What it is called in messages.
    names : frozenset of str
        No file of others may bear one of these names in such a folder, because it would be read as a part of it.
    guest : bool
        Whether it may be written into a folder that holds other things. What it wrote there before and does not write now
        stays.
    earlier : callable
        The names that a koktok without manifests has written into a folder, or none where it has not.
    """

    manifest: str
    what: str
    names: frozenset[str] = frozenset()
    guest: bool = False
    earlier: Callable[[Path], Collection[str]] = lambda _: ()


def check_folder(path: str | os.PathLike[str], product: Product, names: Collection[str] = ()) -> Path:
    """The place of a folder that is to be written, or an error before any work is done for it.

    Parameters
    ----------
    path : str or Path
    names : collection of str
        Files that will be written, besides those of `product.names`.

    Raises
    ------
    UsageError
        When the path is a file, or a folder with a file of others under one of these names, or with anything of others
        and nothing of koktok's, where the product is no guest.
    InputError
        When nothing can be written there.
    """
    target = _folder_at(path)
    probe(target)
    _refuse_others(target, product, names, _own(target, product))
    return target


def write_folder(
    path: str | os.PathLike[str], content: Mapping[str, str | bytes] | Callable[[Path], None], product: Product
) -> Path:
    r"""Write all files of a folder, or none.

    Parameters
    ----------
    path : str or Path
        The folder; what koktok wrote there before is replaced or taken away, all else stays. A link is followed.
    content : mapping of str to str or bytes, or a function that writes into the empty folder that it is given
        Contents by name; text is written as UTF-8 with `\n`.

    Raises
    ------
    UsageError
        As `check_folder`, and when a name is not one of a file right in the folder.
    InputError
        When the disk says no; nothing is left behind and what was there before is untouched.
    """
    target = _folder_at(path)
    if not callable(content) and (strange := [name for name in content if not _is_plain(name)]):
        raise UsageError(f"{strange[0]!r} is no plain name of a file for `{target}`", hint="README.md")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target)) as work:
            settle(work, target)
            staged = work / _STAGED
            try:
                staged.mkdir()
                if target.is_dir():
                    shutil.copymode(target, staged)
                if callable(content):
                    content(staged)
                else:
                    for name, data in content.items():
                        (staged / name).write_bytes(data.encode() if isinstance(data, str) else data)
                own = _own(target, product)
                names = {file.name for file in staged.iterdir()}
                _refuse_others(target, product, names, own)
                stays = {name: sha for name, sha in (own or {}).items() if product.guest and name not in names}
                stays.pop(product.manifest, None)
                new = _signed(staged, product, stays)
                old = {name: sha for name, sha in (own or {}).items() if name not in stays}
                for name in new:
                    sync(staged / name)
                    if name in old:
                        shutil.copymode(target / name, staged / name)
                publish(staged, target, new, old, last=product.manifest)
            finally:
                _discard(work)
    except OSError as error:
        raise InputError(
            f"`{target}` cannot be written: {error}", hint="free some space, or --out another folder"
        ) from error
    return Path(path)


def _folder_at(path: str | os.PathLike[str]) -> Path:
    target = place_of(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"`{target}` is a file; a folder is wanted", hint=f"--out {target}.koktok")
    return target


def _is_plain(name: object) -> bool:
    """Whether a name is that of a file right in the folder, in every system, and has a line to itself."""
    return isinstance(name, str) and name not in ("", ".", "..") and name.isprintable() and not set(name) & {"/", "\\"}


# ── the manifest ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _signed(staged: Path, product: Product, stays: Mapping[str, str]) -> dict[str, str]:
    """The files of a new folder by SHA-256, with the manifest that lists them and those that stay."""
    files = {file.name: sha256_of(file) for file in staged.iterdir()}
    if odd := [name for name, sha in files.items() if not sha]:
        raise UsageError(f"`{odd[0]}` is no file, and a {product.what} is made of files")
    lines = "".join(f"{sha}  {name}\n" for name, sha in sorted({**stays, **files}.items())).encode()
    manifest = staged / product.manifest
    manifest.write_bytes(f"{_HEAD}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines)
    return {**files, manifest.name: sha256_of(manifest)}


def _own(folder: Path, product: Product) -> dict[str, str] | None:
    """The files of a product that stand there as koktok wrote them, by SHA-256; None where it has written none."""
    manifest = folder / product.manifest
    data = manifest.read_bytes() if sha256_of(manifest) else b""
    head, _, lines = data.partition(b"\n")
    if not head.startswith(_HEAD.encode()):
        names = product.earlier(folder) if folder.is_dir() else ()
        return {name: sha for name in names if _is_plain(name) and (sha := sha256_of(folder / name))} or None
    if head != f"{_HEAD}{hashlib.sha256(lines).hexdigest()}".encode():
        return {}  # it was changed, and what it claims is worth nothing
    listed = dict(line.split("  ", 1)[::-1] for line in lines.decode().splitlines())
    own = {name: sha for name, sha in listed.items() if _is_plain(name) and sha and sha == sha256_of(folder / name)}
    return {**own, manifest.name: sha256_of(manifest)}


def _refuse_others(target: Path, product: Product, names: Collection[str], own: Mapping[str, str] | None) -> None:
    if own is None and not product.guest and _entries(target):
        raise UsageError(
            f"the folder `{target}` is not empty and holds no koktok {product.what}", hint="--out NEW-FOLDER"
        )
    for name in [product.manifest, *sorted({*product.names, *names} - {product.manifest})]:
        if os.path.lexists(target / name) and name not in (own or {}):
            raise UsageError(
                f"`{target / name}` was not written by koktok, or was changed since; it is left as it is",
                hint=f"mv {typed(target / name)} ELSEWHERE, or --out NEW-FOLDER",
            )


def _entries(folder: Path) -> set[str]:
    """What a folder holds, workplaces within it apart."""
    found = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    return {name for name in found if not (name.startswith(".koktok.") and (folder / name / LOCK).exists())}


# ── the journal ───────────────────────────────────────────────────────────────────────────────────────────────────────


def publish(staged: Path, target: Path, new: Mapping[str, str], old: Mapping[str, str], *, last: str) -> None:
    """Let a folder that was made in a workplace take its place.

    Parameters
    ----------
    staged : Path
        Right in the workplace; gone when this returns.
    new, old : mapping of str to str
        Files by SHA-256: what is staged, and what of koktok's stands at the target.
    last : str
        The file that is put in its place behind all others, where they go one by one.

    Raises
    ------
    OSError
        When the system refuses; nothing has happened then, or the journal stays for the next one.
    """
    work = staged.parent
    journal = {"staged": staged.name, "last": last, "new": dict(new), "old": dict(old)}
    (work / _DRAFT).write_text(json.dumps(journal), encoding="utf-8")
    sync(work / _DRAFT)
    (work / _DRAFT).replace(work / _JOURNAL)
    try:
        alone = target.is_dir() and _entries(target) <= old.keys()
        if alone and work.parent == target.parent and not _stands_in(target):
            _exchange(staged, target)
        _carry_out(work, target)
    except OSError:
        with suppress(OSError):
            if {file.name: sha256_of(file) for file in staged.iterdir()} == new:
                (work / _JOURNAL).unlink()
        raise


def settle(work: Path, target: Path) -> bool:
    """Finish what a killed process had begun to put in its place, and take away what it had only made; True for the first.

    Raises
    ------
    OSError
        When the system refuses.
    """
    begun = (work / _JOURNAL).exists()
    if begun:
        _carry_out(work, target)
    _discard(work)
    return begun


def sweep(folder: Path) -> None:
    """Settle what killed processes left in a folder that is koktok's alone; what is in use stays."""
    for work in sorted(folder.glob(".*.koktok")):
        if (work / LOCK).exists():
            with suppress(OSError, KoktokError), workplace(work, wait=0):
                settle(work, folder / work.name[1:].removesuffix(".koktok"))


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """An empty folder for what nobody keeps, in the system's place for such; what killed processes left of that name goes.

    Examples
    --------
    >>> with scratch("koktok-doctest") as folder:
    ...     _ = (folder / "a").write_bytes(b"1")
    >>> folder.parent.exists()
    False
    """
    base = Path(tempfile.gettempdir())
    for left in base.glob(f".{name}-*.koktok"):
        if (left / LOCK).exists():
            with suppress(OSError, KoktokError), workplace(left, wait=0):
                _discard(left)
    with workplace(base / f".{name}-{secrets.token_hex(8)}.koktok") as work:
        try:
            (work / _STAGED).mkdir(mode=0o700)
            yield work / _STAGED
        finally:
            _discard(work)


def read_settled(folder: Path, product: Product, read: Callable[[], Read]) -> Read:
    """What `read` makes of a folder that others may be writing to: of the old one or of the new one, never of both.

    A journal that a killed process left is carried out first. An ArtifactError of `read` counts only when nothing has
    changed meanwhile.
    """
    target = Path(os.path.realpath(folder))
    until = time.monotonic() + PATIENCE
    while True:
        before = _seen(target, product)
        stuck = False
        for work in (beside(target), inside(target)):
            if (work / _JOURNAL).exists():
                try:
                    with workplace(work):
                        settle(work, target)
                except (OSError, KoktokError):  # a folder that we may only read
                    stuck = True
        try:
            return read()
        except ArtifactError:
            time.sleep(TICK)
            busy = not stuck and any((work / _JOURNAL).exists() for work in (beside(target), inside(target)))
            if (not busy and _seen(target, product) == before) or time.monotonic() > until:
                raise


def _seen(target: Path, product: Product) -> list[tuple[int, int]]:
    """By what it is known that a folder has been written to."""
    found = []
    for path in (target, target / product.manifest):
        with suppress(OSError):
            state = path.stat()
            found.append((state.st_ino, state.st_mtime_ns))
    return found


def _carry_out(work: Path, target: Path) -> None:
    """Do what the journal says, from wherever it stopped; what unexpectedly stands in the way keeps to another name."""
    journal = json.loads((work / _JOURNAL).read_text(encoding="utf-8"))
    new, old = journal["new"], journal["old"]
    staged = work / journal["staged"]
    if staged.is_dir() and not target.exists():
        staged.rename(target)
    waiting = sorted(staged.iterdir(), key=lambda entry: entry.name == journal["last"]) if staged.is_dir() else []
    for entry in waiting:
        place, sha = target / entry.name, sha256_of(entry)
        if sha and sha == new.get(entry.name):
            if os.path.lexists(place) and sha256_of(place) not in (sha, old.get(entry.name)):
                place.rename(_free(place))
            entry.replace(place)
        elif sha and sha == old.get(entry.name):
            entry.unlink()
        else:  # others put it there while the folders changed places
            entry.rename(_free(place))
    for name in old.keys() - new.keys():
        if sha256_of(target / name) == old[name]:
            (target / name).unlink()
    if staged.is_dir():
        staged.rmdir()
    (work / _JOURNAL).unlink()


def _free(place: Path) -> Path:
    """The name itself where nothing bears it, else one like it."""
    found, n = place, 1
    while os.path.lexists(found):
        found, n = place.with_name(f"{place.name}.{n}"), n + 1
    return found


def _discard(work: Path) -> None:
    """Take away what was made and never decided on."""
    if not (work / _JOURNAL).exists():
        (work / _DRAFT).unlink(missing_ok=True)
        if (work / _STAGED).is_dir():
            shutil.rmtree(work / _STAGED)


def _stands_in(folder: Path) -> bool:
    """Whether this process, and so perhaps its shell, stands in a folder; were it moved away, they would stand nowhere."""
    try:
        here = Path.cwd()
    except OSError:
        return False
    return folder in (here, *here.parents)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; False where this system, or this file system, cannot."""
    import ctypes

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":  # RENAME_SWAP
            return bool(libc.renamex_np(os.fsencode(one), os.fsencode(other), 2) == 0)
        # On Linux: AT_FDCWD before each path, RENAME_EXCHANGE.
        return bool(libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0)
    except (AttributeError, OSError, TypeError):
        return False
