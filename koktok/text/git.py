"""Files of one commit of a git repository, from its host or from any mirror of it.

This file adds: proof by ids. A commit's id is the SHA-1 of what stands in it: the id of its folder, and so on down to each
file (git's own data format, `git help gitformat-*`). Every object on that way is hashed here, so whoever serves the
repository can give the files that the recipe means, or an error.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from koktok.errors import CorpusError
from koktok.process import environment

if TYPE_CHECKING:
    from koktok.text.corpus_recipe import GitSource


MIRROR = "KOKTOK_MIRROR"
"""The variable that names a mirror where no argument does."""

_FILE = (b"100644", b"100755", b"100664")
_FOLDER = b"40000"


class Commit:
    """The files of a commit, read through one `git cat-file`, and hashed as they come.

    Parameters
    ----------
    batch : subprocess.Popen
        ``git cat-file --batch``.
    commit : str
        40 hexadecimal digits.
    where : str
        What an error calls the repository.
    largest : int
        Bytes that one object may have.
    """

    def __init__(self, batch: subprocess.Popen[bytes], commit: str, where: str, largest: int) -> None:
        self._batch, self._where, self._largest = batch, where, largest
        head = self._object(commit, "commit").split(b"\n", 1)[0]
        self.files = dict(self._walk(head.removeprefix(b"tree ").decode("ascii"), ""))
        """Ids by path; links and submodules are not among them."""

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        return self._object(self.files[path], "blob")

    def _walk(self, tree: str, folder: str) -> Iterator[tuple[str, str]]:
        rest = self._object(tree, "tree")
        while rest:
            head, rest = rest.split(b"\0", 1)
            mode, name = head.split(b" ", 1)
            wanted, rest = rest[:20].hex(), rest[20:]
            path = folder + os.fsdecode(name)
            if mode == _FOLDER:
                yield from self._walk(wanted, f"{path}/")
            elif mode in _FILE:
                yield path, wanted

    def _object(self, wanted: str, kind: str) -> bytes:
        assert self._batch.stdin is not None
        assert self._batch.stdout is not None
        self._batch.stdin.write(f"{wanted}\n".encode())
        self._batch.stdin.flush()
        head = self._batch.stdout.readline().split()
        if len(head) != 3 or head[1] != kind.encode():
            raise CorpusError(f"{self._where} has no {kind} {wanted}", hint="git fsck, or another mirror")
        if int(head[2]) > self._largest:
            raise CorpusError(
                f"{self._where} has a {kind} of {int(head[2]):,} bytes, more than the recipe allows",
                hint="max_mb = …  # in its [[source]], where that is right",
            )
        content = self._batch.stdout.read(int(head[2]))
        self._batch.stdout.read(1)
        if hashlib.sha1(b"%s %d\0" % (head[1], len(content)) + content, usedforsecurity=False).hexdigest() != wanted:
            raise CorpusError(
                f"{self._where} gives another content under the id {wanted}", hint="git fsck, or another mirror"
            )
        return content


@contextmanager
def open_commit(source: GitSource, temporary: Path, mirror: str | None) -> Iterator[Commit]:
    """Open the commit of a source.

    Parameters
    ----------
    temporary : Path
        An empty folder; takes a shallow copy of the commit without its files, where the repository is not on this disk.
    mirror : str or None
        In place of the host: a folder that holds OWNER/NAME or OWNER/NAME.git, or an https address with these paths
        behind it. `MIRROR` where it is None.

    Raises
    ------
    CorpusError
        No git, no network, no such commit there, or objects that are not what their ids say.
    """
    if shutil.which("git") is None:
        raise CorpusError(f"the repository {source.repository} needs `git`", hint="apt-get install git")
    mirror = mirror or os.environ.get(MIRROR)
    place = urlsplit(source.repository).path.strip("/")
    if mirror and "://" not in mirror:
        where = _found(Path(mirror).expanduser(), place.removesuffix(".git"))
        _must_have(where, source.commit)
    else:
        address = f"{mirror.rstrip('/')}/{place}" if mirror else source.repository
        where = _shallow(address, source.commit, temporary / "repository")
    with subprocess.Popen(
        [*_git(where), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as batch:  # fmt: skip
        try:
            yield Commit(
                batch, source.commit, f"the repository `{mirror or source.repository}`", source.max_mb * 1_000_000
            )
        finally:
            batch.kill()


def bring(source: GitSource, temporary: Path, ids: list[str]) -> None:
    """Fetch files by id into the shallow copy, in one request; nothing where the repository is on this disk."""
    if (where := temporary / "repository").is_dir():
        # What git itself does for one missing object at a time.
        done = _run(
            [*_git(where), "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no",
             "--filter=blob:none", "--stdin", "origin"],
            "\n".join(ids) + "\n",
        )  # fmt: skip
        if done.returncode:
            raise CorpusError(f"{source.repository} did not give its files: {_last(done)}", hint="try again")


def _git(where: Path) -> list[str]:
    # No hook, no helper and no prompt of the repository or of the machine runs.
    off = ["core.hooksPath=/dev/null", "protocol.ext.allow=never", "safe.directory=*"]
    return ["git", *(word for setting in off for word in ("-c", setting)), "--git-dir", str(where)]


def _environment() -> dict[str, str]:
    return environment() | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _run(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=given, env=_environment(), capture_output=True, text=True, errors="replace", check=False
    )


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or ["git said nothing"])[-1]


def _found(mirror: Path, place: str) -> Path:
    """The repository's folder in a mirror on this disk."""
    if not mirror.is_dir():
        raise CorpusError(f"the mirror `{mirror}` is no folder", hint=f"ls {shlex.quote(str(mirror.parent))}")
    for folder in (mirror / place, mirror / f"{place}.git"):
        for where in (folder / ".git", folder):
            if (where / "objects").is_dir():
                return where
    raise CorpusError(
        f"the mirror `{mirror}` has no {place}",
        hint=f"git clone --mirror https://HOST/{place} {shlex.quote(str(mirror / place))}.git",
    )


def _must_have(where: Path, commit: str) -> None:
    if _run([*_git(where), "cat-file", "-e", f"{commit}^{{commit}}"]).returncode:
        stands = _run([*_git(where), "rev-parse", "--verify", "--quiet", "HEAD"]).stdout.strip() or "no commit"
        raise CorpusError(
            f"the mirror `{where}` has not the recipe's commit {commit}; it stands at {stands}",
            hint=f"git --git-dir {shlex.quote(str(where))} fetch origin {commit}",
        )


def _shallow(address: str, commit: str, where: Path) -> Path:
    """A copy of one commit with its folders and no file yet."""
    done = _run(["git", "init", "--quiet", "--bare", "--template=", str(where)])
    for key, value in {"url": address, "promisor": "true", "partialclonefilter": "blob:none"}.items():
        done = done if done.returncode else _run([*_git(where), "config", f"remote.origin.{key}", value])
    if not done.returncode:
        done = _run(
            [*_git(where), "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin", commit]
        )
    if done.returncode:
        raise CorpusError(
            f"{address} did not give the commit {commit}: {_last(done)}",
            hint="koktok corpus fetch NAME --mirror DIR_OR_URL",
        )
    return where
