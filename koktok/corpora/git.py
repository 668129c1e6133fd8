"""Files of one commit of a git repository, from its host or from a mirror.

The server is not trusted. `git fetch` copies objects alone into an empty repository and computes the id of each, so the files are
those of the recipe, or there is an error. A mirror on this disk is served by a second empty repository with the mirror's objects as
its alternate: git never reads a config, a hook, a reference or a promisor of the mirror.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from koktok.errors import CorpusError
from koktok.files.process import environment

if TYPE_CHECKING:
    from koktok.corpora.recipe import GitSource


MIRROR = "KOKTOK_MIRROR"
"""The environment variable of the mirror."""

_MOST_PATHS = 1_000_000
_LONGEST_PATH = 4096
_FACTOR, _LEAST_MB = 4, 250
"""A host may send so many times the `max_mb` of the recipe, and always so much: the trees of a large repository, and what a host
without filters adds."""

_POLL = 0.2
_MOST_BYTES = 200_000_000
"""Bytes of all paths together. The largest repositories have some hundred thousand paths of under 300 bytes."""


class Commit:
    """The files of one commit, with their ids by path."""

    def __init__(self, source: GitSource, where: Path, settings: list[str], env: dict[str, str]) -> None:
        self._git = ["git", *settings, "--git-dir", str(where)]
        self._env, self._source, self._where = env, source, where
        self.files = dict(self._paths())
        self._batch = subprocess.Popen(
            [*self._git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=env,
        )  # fmt: skip

    def close(self) -> None:
        """End the process that reads objects."""
        with self._batch as batch:
            batch.kill()

    def bring(self, paths: list[str]) -> None:
        """Fetch files in one request."""
        ids = "".join(f"{self.files[path]}\n" for path in paths)
        # The command that git itself runs for each missing object.
        done = _fetch(
            [*self._git, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no",
             "--filter=blob:none", "--stdin", "origin"], self._env, self._source, self._where, ids,
        )  # fmt: skip
        if done.returncode:
            raise CorpusError(
                f"{self._source.repository}: the files cannot be fetched: {_last(done)}", hint="try again"
            )

    def read(self, path: str) -> bytes:
        """Return the bytes of a fetched file."""
        assert self._batch.stdin is not None
        assert self._batch.stdout is not None
        self._batch.stdin.write(f"{self.files[path]}\n".encode())
        self._batch.stdin.flush()
        head = self._batch.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise CorpusError(
                f"{self._source.repository} has no file {self.files[path]}", hint="git fsck, or another mirror"
            )
        if int(head[2]) > self._source.max_mb * 1_000_000:
            raise CorpusError(
                f"{self._source.repository} has a file of {int(head[2]):,} bytes, more than the recipe allows",
                hint="max_mb = …  # in its [[source]], where that is right",
            )
        content = self._batch.stdout.read(int(head[2]))
        self._batch.stdout.read(1)
        return content

    def _paths(self) -> Iterator[tuple[str, str]]:
        """Yield paths with their ids, without links and submodules; folders count, because a tree may have many and no file."""
        command = [*self._git, "ls-tree", "-r", "-t", "-z", "--full-tree", self._source.commit]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._env) as listing:
            assert listing.stdout is not None
            rest, number, size = b"", 0, 0
            try:
                while chunk := os.read(listing.stdout.fileno(), 1 << 16):
                    *rows, rest = (rest + chunk).split(b"\0")
                    number, size = number + len(rows), size + len(chunk)
                    if (
                        number > _MOST_PATHS
                        or size > _MOST_BYTES
                        or any(len(row) > _LONGEST_PATH for row in (*rows, rest))
                    ):
                        raise CorpusError(
                            f"the tree of {self._source.repository} is too large: more than {_MOST_PATHS:,} paths, or a path of"
                            f" more than {_LONGEST_PATH:,} bytes",
                            hint="another repository",
                        )
                    for row in rows:
                        head, _, path = row.partition(b"\t")
                        if head.startswith(b"100"):
                            yield os.fsdecode(path), head[-40:].decode("ascii")
            except BaseException:
                listing.kill()
                raise
        if listing.returncode:
            raise CorpusError(f"the tree of {self._source.repository} is damaged", hint="git fsck, or another mirror")


@contextmanager
def open_commit(source: GitSource, temporary: Path, mirror: str | None) -> Iterator[Commit]:
    """Open the commit of a source."""
    if shutil.which("git") is None:
        raise CorpusError(f"the repository {source.repository} needs `git`", hint="apt-get install git")
    mirror = mirror or os.environ.get(MIRROR)
    place = urlsplit(source.repository).path.strip("/")
    env = environment() | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
    if mirror and "://" not in mirror:
        objects = _objects(Path(mirror).expanduser(), place.removesuffix(".git"))
        env = {name: value for name, value in env.items() if not name.startswith("GIT_")}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_NO_LAZY_FETCH": "1"}
        address, scheme = str(_serving(objects, temporary / "mirror", env)), "file"
        hint = "koktok corpus fetch NAME, without --mirror or with another one"
    else:
        address = f"{mirror.rstrip('/')}/{place}" if mirror else source.repository
        scheme, hint = urlsplit(address).scheme, "koktok corpus fetch NAME --mirror DIR_OR_URL"
    settings = ["core.hooksPath=/dev/null", "gc.auto=0", "protocol.allow=never", f"protocol.{scheme}.allow=always"]
    where = temporary / "repository"
    origin = {"url": address, "promisor": "true", "partialclonefilter": "blob:none"}
    done = _init(where, {f"remote.origin.{key}": value for key, value in origin.items()}, env)
    words = [word for setting in settings for word in ("-c", setting)]
    fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin", source.commit]
    if not done.returncode:
        done = _fetch(["git", *words, "--git-dir", str(where), *fetch], env, source, where)
    if done.returncode:
        what = f"the mirror `{mirror}`" if mirror else source.repository
        raise CorpusError(f"{what} did not give the commit {source.commit} of {place}: {_last(done)}", hint=hint)
    with closing(Commit(source, where, words, env)) as commit:
        yield commit


def _objects(mirror: Path, place: str) -> Path:
    """Return the folder of a repository's objects in a mirror on this disk."""
    if not mirror.is_dir():
        raise CorpusError(f"the mirror `{mirror}` is no folder", hint=f"ls {shlex.quote(str(mirror.parent))}")
    for folder in (mirror / place, mirror / f"{place}.git"):
        for where in (folder / ".git", folder):
            if not (objects := where / "objects").is_dir():
                continue
            if any((objects / "info" / name).exists() for name in ("alternates", "http-alternates")):
                raise CorpusError(
                    f"the mirror's `{where}` takes objects from another repository, which is not followed",
                    hint=f"git -C {shlex.quote(str(where))} repack -a -d && rm {shlex.quote(str(objects))}/info/*alternates",
                )
            return objects.resolve()
    raise CorpusError(
        f"the mirror `{mirror}` has no {place}",
        hint=f"git clone --mirror https://HOST/{place} {shlex.quote(str(mirror / place))}.git",
    )


def _serving(objects: Path, where: Path, env: dict[str, str]) -> Path:
    """Make an empty repository that serves the objects of another one."""
    done = _init(where, {"uploadpack.allowFilter": "true", "uploadpack.allowAnySHA1InWant": "true"}, env)
    if done.returncode:
        raise CorpusError(f"`{where}` cannot be made: {_last(done)}", hint="df -h")
    (where / "theirs").symlink_to(objects)  # a fixed name, because theirs may have any characters
    (where / "objects" / "info").mkdir(exist_ok=True)
    (where / "objects" / "info" / "alternates").write_text("../theirs\n")
    return where


def _init(where: Path, values: dict[str, str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = _run(["git", "init", "--quiet", "--bare", "--template=", str(where)], env)
    for key, value in (*values.items(), ("core.commitGraph", "false")):
        done = done if done.returncode else _run(["git", "--git-dir", str(where), "config", key, value], env)
    return done


def _run(command: list[str], env: dict[str, str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=given, env=env, capture_output=True, text=True, errors="replace", check=False)


def _fetch(
    command: list[str], env: dict[str, str], source: GitSource, where: Path, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a fetch, and end it where the host sends far more than the recipe allows: git itself has no such bound."""
    most = max(_LEAST_MB, _FACTOR * source.max_mb) * 1_000_000
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        running = True
        try:
            while running:
                try:
                    _, errors = process.communicate(given, timeout=_POLL)
                    running = False
                except subprocess.TimeoutExpired:
                    given = None
                if (size := _size(where)) > most:
                    raise CorpusError(
                        f"{source.repository}: expected at most {most:,} bytes, got {size:,} and more",
                        hint=f"max_mb = {-(-size // _FACTOR // 1_000_000)}  # in its [[source]], if that is right",
                    )
        finally:
            if running:  # with the processes that git began
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stderr=errors)


def _size(folder: Path) -> int:
    """Return the bytes of the files below a folder, some of which may be moved meanwhile."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - a hundred thousand of them
    return size


def _last(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or ["git printed no error"])[-1]
