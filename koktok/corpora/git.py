"""Files of one commit of a git repository, by git itself, from its host or from a mirror.

Git runs in a home of its own, without the user's settings, hooks or submodules, and nothing is checked out, so no filter runs. It
computes the id of every object that comes: the files are those of the recipe, or there is an error.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from koktok.corpora.recipe import GitSource
from koktok.errors import CorpusError

MIRROR = "KOKTOK_MIRROR"
"""The environment variable of the mirror."""

_SETTINGS = """[core]
hooksPath = /dev/null
[gc]
auto = 0
[protocol]
allow = never
[protocol "{scheme}"]
allow = always
[safe]
directory = *
[uploadpack]
allowFilter = true
allowAnySHA1InWant = true
"""
"""Git's settings, which a mirror on this disk is served by, too."""


class Commit:
    """The files of one commit, with their ids by path; links and submodules are none."""

    def __init__(self, source: GitSource, folder: Path, mirror: str | None) -> None:
        if shutil.which("git") is None:
            raise CorpusError(f"the repository {source.repository} needs `git`", hint="apt-get install git")
        self._source, self._contents, self._where = source, folder / "contents", folder / "repository"
        place = urlsplit(source.repository).path.strip("/")
        mirror = mirror or os.environ.get(MIRROR)
        if mirror and "://" not in mirror:
            address = _in_mirror(Path(mirror).expanduser(), place.removesuffix(".git")).as_uri()
        else:
            address = f"{mirror.rstrip('/')}/{place}" if mirror else source.repository
        settings = folder / "settings"
        settings.write_text(_SETTINGS.format(scheme=urlsplit(address).scheme), encoding="utf-8")
        others = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))}
        self._env = others | {
            "HOME": str(folder), "GIT_CONFIG_GLOBAL": str(settings), "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
        }  # fmt: skip
        what = f"the mirror `{mirror}`" if mirror else source.repository
        hint = "koktok corpus fetch NAME, without --mirror or with another one"
        failed = f"{what} did not give the commit {source.commit} of {place}"
        self._hint = hint if mirror else "koktok corpus fetch NAME --mirror DIR_OR_URL"
        self._git(failed, "init", "--quiet", "--bare", "--template=", str(self._where))
        self._git(failed, "remote", "add", "origin", address)
        self._git(failed, "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin", source.commit)
        head = self._git(failed, "rev-parse", "FETCH_HEAD^{commit}").decode().strip()
        if head != source.commit:
            raise CorpusError(f"{failed}: got {head}", hint=self._hint)
        damaged = f"the tree of {source.repository} is damaged"
        rows = self._git(damaged, "ls-tree", "-r", "-z", "--full-tree", source.commit).split(b"\0")
        split = [row.partition(b"\t") for row in rows if row.startswith(b"100")]
        self.files = {os.fsdecode(path): head.split()[2].decode("ascii") for head, _, path in split}
        self._found: dict[str, tuple[int, int]] = {}

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch the contents of files, in one request."""
        failed = f"{self._source.repository}: the files cannot be fetched"
        ids = "".join(f"{self.files[path]}\n" for path in paths).encode()
        self._git(failed, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no",
                  "--filter=blob:none", "--stdin", "origin", given=ids)  # fmt: skip
        with self._contents.open("wb") as out:
            self._git(failed, "cat-file", "--batch", given=ids, out=out.fileno())
        with self._contents.open("rb") as contents:
            while head := contents.readline().split():
                if head[1:2] != [b"blob"]:
                    raise CorpusError(f"{failed}: there is no {head[0].decode()}", hint="try again")
                self._found[head[0].decode()] = contents.tell(), int(head[2])
                contents.seek(int(head[2]) + 1, os.SEEK_CUR)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file that was brought."""
        at, size = self._found[self.files[path]]
        if size > self._source.max_mb * 1_000_000:
            raise CorpusError(
                f"{self._source.repository} has a file of {size:,} bytes, more than the recipe allows",
                hint="max_mb = …  # in its [[source]], where that is right",
            )
        with self._contents.open("rb") as contents:
            contents.seek(at)
            return contents.read(size)

    def _git(self, failed: str, *words: str, given: bytes = b"", out: int = subprocess.PIPE) -> bytes:
        command = ["git", "--git-dir", str(self._where), *words]
        done = subprocess.run(command, input=given, stdout=out, stderr=subprocess.PIPE, env=self._env, check=False)
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["git printed no error"])[-1]
            raise CorpusError(f"{failed}: {last}", hint=self._hint)
        return done.stdout or b""


def _in_mirror(mirror: Path, place: str) -> Path:
    """Return the folder of a repository in a mirror on this disk."""
    if not mirror.is_dir():
        raise CorpusError(f"the mirror `{mirror}` is not a folder", hint=f"ls {shlex.quote(str(mirror.parent))}")
    for folder in (mirror / place, mirror / f"{place}.git"):
        if (folder / ".git" / "objects").is_dir() or (folder / "objects").is_dir():
            return folder.resolve()
    raise CorpusError(
        f"the mirror `{mirror}` has no {place}",
        hint=f"git clone --mirror https://HOST/{place} {shlex.quote(str(mirror / place))}.git",
    )
