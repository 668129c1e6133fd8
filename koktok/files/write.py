"""Files and folders that are there whole or not at all, in which nothing of others is deleted or replaced (law 12).

A folder of koktok's has a manifest that `sha256sum -c` reads; only files that are still as koktok wrote them are ever
replaced, and without `force` only by the same content. A folder is staged in `new/` and flushed; renaming that to `ready/`
commits it. Its files are then moved one by one, the manifest last, by `_move`, which may be repeated: if a writer is killed
in between, the next writer of the same name finishes. A reader changes nothing: it waits for a writer, or raises an error
with the line to type.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from koktok.errors import ArtifactError, InputError, KoktokError, UsageError
from koktok.files.checked import checked, read_bounded
from koktok.files.paths import (
    LOCK,
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

NEW, READY = "new", "ready"
_DECISION = ".decision"
_HEAD = "# Written by koktok, which replaces nothing here but these files, and them as they were. This list: "
_MOVING = 5.0
"""Seconds that a reader waits for a writer that is moving files."""
_MOST_LISTED = 1 << 24
"""Bytes of a manifest; a folder of a hundred thousand files has less."""


@dataclass(frozen=True)
class Product:
    """A kind of folder that koktok writes."""

    manifest: str
    what: str
    names: frozenset[str] = frozenset()
    guest: bool = False


def refuse_another(target: Path, what: str) -> UsageError:
    """Return the error for a place that holds another result."""
    kind = "folder" if target.is_dir() else "file"
    return UsageError(
        f"output {kind} `{target}` already exists and holds another {what}",
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
                raise UsageError(f"`{target}` is no file", hint="--out NAME-OF-A-FILE")
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
    own = _own(target, product)
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
        raise UsageError(f"{strange[0]!r} is no plain name of a file for `{target}`", hint="README.md")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(workplace_of(target)) as work:
            settle(work, target)
            staged = work / NEW
            try:
                staged.mkdir()
                if callable(content):
                    content(staged)
                else:
                    for name, data in content.items():
                        (staged / name).write_bytes(data.encode() if isinstance(data, str) else data)
                own = _own(target, product)
                names = names_in(staged)
                _refuse_others(target, product, names, own)
                stays = {name: sha for name, sha in (own or {}).items() if product.guest and name not in names}
                stays.pop(product.manifest, None)
                new = _sign(staged, product, stays)
                old = {name: sha for name, sha in (own or {}).items() if name not in stays}
                if not force and any(new.get(n) != sha for n, sha in old.items() if n != product.manifest):
                    raise refuse_another(target, product.what)
                for name in new:
                    sync(staged / name)
                    if name in old:
                        shutil.copymode(target / name, staged / name)
                if target.is_dir():
                    shutil.copymode(target, staged)
                publish(staged, target, new, old, last=product.manifest)
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


def _sign(staged: Path, product: Product, stays: Mapping[str, str]) -> dict[str, str]:
    """Write the manifest of a staged folder, and return the staged files by SHA-256."""
    files = {file.name: sha256_of(file) for file in staged.iterdir()}
    if odd := [name for name, sha in files.items() if not sha]:
        raise UsageError(f"`{odd[0]}` is no file, and a {product.what} is made of files")
    lines = "".join(f"{sha}  {name}\n" for name, sha in sorted({**stays, **files}.items())).encode()
    (staged / product.manifest).write_bytes(f"{_HEAD}{hashlib.sha256(lines).hexdigest()}\n".encode() + lines)
    return {**files, product.manifest: sha256_of(staged / product.manifest)}


def _listed(folder: Path, product: Product) -> dict[str, str] | None:
    """Return what the manifest of a folder lists by SHA-256: None without one, nothing if it was changed."""
    manifest = folder / product.manifest
    small = manifest.is_file() and not manifest.is_symlink() and manifest.stat().st_size <= _MOST_LISTED
    head, _, lines = (manifest.read_bytes() if small else b"").partition(b"\n")
    if not head.startswith(_HEAD.encode()):
        return None
    if head != f"{_HEAD}{hashlib.sha256(lines).hexdigest()}".encode():
        return {}
    rows = [line.partition("  ") for line in lines.decode("utf-8", "replace").splitlines()]
    return {name: sha for sha, _, name in rows if is_plain(name) and sha} | {manifest.name: sha256_of(manifest)}


def is_intact(folder: Path, product: Product) -> bool:
    """Whether every file that koktok wrote into a folder is as it was written."""
    listed = _listed(folder, product)
    return bool(listed) and all(sha256_of(folder / name) == sha for name, sha in (listed or {}).items())


def _own(folder: Path, product: Product) -> dict[str, str] | None:
    """Return the files that are as koktok wrote them, by SHA-256; None if it has written none."""
    listed = _listed(folder, product)
    if listed is None:
        return None
    return {name: sha for name, sha in listed.items() if sha256_of(folder / name) == sha}


def _refuse_others(target: Path, product: Product, names: Collection[str], own: Mapping[str, str] | None) -> None:
    there = [file for file in target.iterdir() if not (file / LOCK).exists()] if target.is_dir() else []
    if own is None and not product.guest and there:
        raise UsageError(
            f"the folder `{target}` is not empty and holds no koktok {product.what}", hint="--out NEW-FOLDER"
        )
    for name in [product.manifest, *sorted({*product.names, *names} - {product.manifest})]:
        if os.path.lexists(target / name) and name not in (own or {}):
            raise UsageError(
                f"`{target / name}` was not written by koktok, or was changed since; it is left as it is",
                hint=f"mv {typed(target / name)} ELSEWHERE, or --out NEW-FOLDER",
            )


# --- Publishing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Decision:
    """What a writer has committed: the files of `ready/`, which of them comes last, and by SHA-256 those that they replace."""

    last: str
    new: list[str]
    old: dict[str, str]


def publish(staged: Path, target: Path, new: Collection[str], old: Mapping[str, str], *, last: str) -> None:
    """Put a staged folder in its place: by one renaming if nothing is there, else file by file, `last` behind all others.

    `old` are koktok's files there by SHA-256. After an OSError nothing has happened, or the next writer finishes.
    """
    if not target.exists():
        staged.rename(target)
        return
    ready = staged.parent / READY
    (staged / _DECISION).write_text(json.dumps(asdict(_Decision(last, [*new], dict(old)))), encoding="utf-8")
    sync(staged / _DECISION)
    staged.rename(ready)
    try:
        _move(ready, target)
    except OSError:
        with suppress(OSError):
            if names_in(ready) == {*new, _DECISION}:  # nothing has happened yet
                ready.rename(staged)
        raise


def _decision_of(ready: Path) -> _Decision | None:
    """Read the decision in a folder `ready/`; None if there is none that koktok can have written."""
    place = ready / _DECISION
    if ready.is_symlink() or place.is_symlink():
        return None
    try:
        decision = checked(_Decision, read_bounded(place, 2 * _MOST_LISTED, "a list of files"), f"`{place}`")
    except ArtifactError:
        return None
    return decision if all(map(is_plain, [decision.last, *decision.new, *decision.old])) else None


def _move(ready: Path, target: Path) -> None:
    """Finish a publication from wherever it stopped; a file that is unexpectedly in the way gets another name."""
    decision = _decision_of(ready)
    if decision is None:
        if names_in(ready):
            raise UsageError(
                f"`{ready}` holds files, and no record that koktok wrote them", hint=f"mv {typed(ready)} ELSEWHERE"
            )
        ready.rmdir()  # all but this was done
        return
    old = decision.old
    for name in old.keys() - set(decision.new):
        if sha256_of(target / name) == old[name]:
            (target / name).unlink()
    for name in sorted(names_in(ready) & set(decision.new), key=lambda name: name == decision.last):
        place, there = target / name, sha256_of(target / name)
        if os.path.lexists(place) and (not there or there not in (old.get(name), sha256_of(ready / name))):
            n = 1
            while os.path.lexists(free := place.with_name(f"{name}.{n}")):
                n += 1
            place.rename(free)
        (ready / name).replace(place)
    (ready / _DECISION).unlink()
    ready.rmdir()


def _discard(staged: Path) -> None:
    if staged.is_dir():
        shutil.rmtree(staged)


def settle(work: Path, target: Path) -> bool:
    """Finish what a killed writer had committed (then True), and remove what it had only staged.

    For writers, which hold the lock of the workplace.
    """
    committed = (work / READY).is_dir()
    if committed:
        target.mkdir(exist_ok=True)
        _move(work / READY, target)
    _discard(work / NEW)
    return committed


def sweep(folder: Path) -> None:
    """Settle what killed writers left in a folder that is koktok's alone."""
    for work in sorted(folder.glob(".*.koktok")):
        if (work / LOCK).exists():
            with suppress(OSError, KoktokError), workplace(work, wait=0):
                settle(work, folder / work.name[1:].removesuffix(".koktok"))


def read_whole(folder: Path, product: Product, read: Callable[[], Read]) -> Read:
    """Read a folder that others may be writing to: the old one or the new one, never a mixture.

    What a writer that was killed while it moved files has left is an ArtifactError.
    """
    target = Path(os.path.realpath(folder))
    until = time.monotonic() + _MOVING
    while True:
        before, error = _times(target, product), None
        try:
            content = read()
        except ArtifactError as raised:
            error = raised
        half = _is_half_moved(target)
        if not half and before == _times(target, product):
            break
        if time.monotonic() > until:
            if half:
                raise ArtifactError(
                    f"`{folder}` is half written: its writer was stopped", hint="run that command again"
                ) from error
            break
        time.sleep(POLL_INTERVAL)
    if error:
        raise error
    return content


def _is_half_moved(target: Path) -> bool:
    """Whether some files of a decision, and not all of them, are in their place."""
    for work in workplaces(target):
        if (decision := _decision_of(work / READY)) is not None:
            waiting = [os.path.lexists(work / READY / name) for name in decision.new]
            gone = [not os.path.lexists(target / name) for name in decision.old]
            if any(waiting) and (any(gone) or not all(waiting)):
                return True
    return False


def _times(target: Path, product: Product) -> list[tuple[int, int]]:
    """Return what changes when a folder is written to."""
    times = []
    for path in (target, target / product.manifest):
        with suppress(OSError):
            state = path.stat()
            times.append((state.st_ino, state.st_mtime_ns))
    return times
