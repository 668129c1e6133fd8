"""Git sources: the files of one commit from a folder, a mirror or a server, and no others."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest
from conftest import CORPUS

from koktok.corpora.fetch import fetch, texts
from koktok.errors import CorpusError

SOURCE = """
[[source]]
kind = "git"
repository = "https://example.org/owner/name"
commit = "{commit}"
include = ["docs/**/*.md"]
exclude = ["docs/old/*"]
format = "md"
{more}
"""
FILES = {
    "docs/a.md": "# 제목\n글 하나\n",
    "docs/x/나.md": "글 둘\n",
    "docs/old/c.md": "옛 글\n",
    "docs/big.txt": "아님\n",
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes").mkdir()
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KOKTOK_CORPORA", str(tmp_path / "recipes"))
    monkeypatch.delenv("KOKTOK_MIRROR", raising=False)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = {f"GIT_{role}_{key}": "x@y.z" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", *words], cwd=folder, env=os.environ | who, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A mirror's folder with one repository: two commits, a link and a submodule's entry among the files."""
    folder = tmp_path / "mirror" / "owner" / "name"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "docs" / "link.md").symlink_to("/etc/hostname")
    git(folder, "add", ".")
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},docs/sub.md")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "docs" / "a.md").write_text("다른 글\n", encoding="utf-8")
    git(folder, "commit", "-q", "-a", "-m", "second")
    return folder


def recipe(tmp_path: Path, commit: str, more: str = "", head: str = CORPUS) -> str:
    text = head + SOURCE.format(commit=commit, more=more)
    (tmp_path / "recipes" / "test.toml").write_text(text, encoding="utf-8")
    return "test"


def first_commit(repository: Path) -> str:
    return git(repository, "rev-parse", "HEAD~1")


@pytest.mark.parametrize("kind", ["folder", "bare", "address"])
def test_the_files_of_the_commit_come_from_a_mirror(tmp_path: Path, repository: Path, kind: str) -> None:
    commit, mirror = first_commit(repository), tmp_path / ("bare" if kind == "bare" else "mirror")
    if kind == "bare":
        git(tmp_path, "clone", "-q", "--mirror", str(repository), str(mirror / "owner" / "name.git"))
    name = recipe(tmp_path, commit)
    found = fetch(name, mirror=mirror.as_uri() if kind == "address" else str(mirror))
    assert (found / "name.txt").read_text(encoding="utf-8") == "제목\n글 하나\n글 둘\n"


def test_the_mirror_may_stand_in_the_environment(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKTOK_MIRROR", str(tmp_path / "mirror"))
    recipe(tmp_path, first_commit(repository))
    assert [file.name for file in texts("test")] == ["name.txt"]


def test_a_mirror_at_another_commit_says_so(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(CorpusError, match=r"(?s)did not give the commit 0{40} of owner/name.*without --mirror"):
        fetch(recipe(tmp_path, "0" * 40), mirror=str(tmp_path / "mirror"))
    with pytest.raises(CorpusError, match=r"(?s)has no owner/name.*git clone --mirror"):
        fetch("test", mirror=str(tmp_path))
    with pytest.raises(CorpusError, match="is not a folder"):
        fetch("test", mirror=str(tmp_path / "nothing"))
    assert not list((tmp_path / "cache" / "corpora").glob("test-*"))


def test_a_mirror_cannot_give_other_content(tmp_path: Path, repository: Path) -> None:
    """An object file whose name says another id: git computes the ids of what it fetches."""
    commit = first_commit(repository)
    wanted = git(repository, "rev-parse", f"{commit}:docs/x/나.md")
    place = repository / ".git" / "objects" / wanted[:2] / wanted[2:]
    place.chmod(0o644)
    content = "위조\n".encode()
    place.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content))
    with pytest.raises(CorpusError, match=r"the files cannot be fetched: .*did not send all necessary objects"):
        fetch(recipe(tmp_path, commit), mirror=str(tmp_path / "mirror"))


def test_a_repository_larger_than_the_recipe_allows_is_refused(tmp_path: Path, repository: Path) -> None:
    (repository / "docs" / "a.md").write_text("가" * 700_000, encoding="utf-8")
    git(repository, "commit", "-q", "-a", "-m", "large")
    commit = git(repository, "rev-parse", "HEAD")
    with pytest.raises(CorpusError, match="more than the recipe allows"):
        fetch(recipe(tmp_path, commit, "max_mb = 1"), mirror=str(tmp_path / "mirror"))


def test_text_digests_are_held(tmp_path: Path, repository: Path) -> None:
    commit = first_commit(repository)
    with pytest.raises(CorpusError, match=r"(?s)another checksum than its recipe.*got      (\w{64})") as error:
        fetch(recipe(tmp_path, commit, f'text_sha256 = "{"0" * 64}"'), mirror=str(tmp_path / "mirror"))
    came = str(error.value).split("got ")[1].split()[0]
    assert fetch(recipe(tmp_path, commit, f'text_sha256 = "{came}"'), mirror=str(tmp_path / "mirror")).is_dir()


def test_files_stay_as_they_are(tmp_path: Path, repository: Path) -> None:
    commit = first_commit(repository)
    name = recipe(tmp_path, commit)
    file = tmp_path / "recipes" / "test.toml"
    file.write_text(file.read_text(encoding="utf-8").replace('"md"', '"file"'), encoding="utf-8")
    found = fetch(name, mirror=str(tmp_path / "mirror"))
    assert (found / "나.md").read_text(encoding="utf-8") == FILES["docs/x/나.md"]
    with pytest.raises(CorpusError, match="holds files, and no text"):
        texts(name)


# ── hostile mirrors and repositories ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def evil(tmp_path: Path, repository: Path) -> Path:
    """A bare copy of the repository in a mirror of its own, whose config runs a command wherever git reads it."""
    bare = tmp_path / "evil" / "owner" / "name.git"
    git(tmp_path, "clone", "-q", "--mirror", str(repository), str(bare))
    ran = tmp_path / "ran"
    for key, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "ev",
        "remote.ev.url": str(repository),
        "remote.ev.promisor": "true",
        "remote.ev.uploadpack": f"touch {ran}; git-upload-pack",
        "core.sshCommand": f"touch {ran}; false",
        "core.fsmonitor": f"touch {ran}",
        "core.pager": f"touch {ran}",
        "core.hooksPath": str(tmp_path / "hooks"),
        "uploadpack.packObjectsHook": f"touch {ran}; false",
        "core.alternateRefsCommand": f"touch {ran}",
    }.items():
        git(bare, "config", key, value)
    (tmp_path / "hooks").mkdir()
    for hook in ("reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (tmp_path / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (tmp_path / "hooks" / hook).chmod(0o755)
    return bare


@pytest.mark.parametrize("url", ["", "ssh://h/x", "ext::sh -c 'touch ran'"])
def test_the_config_of_a_mirror_is_not_read(tmp_path: Path, repository: Path, evil: Path, url: str) -> None:
    if url:
        git(evil, "config", "remote.ev.url", url)
    mirror = str(tmp_path / "evil")
    with pytest.raises(CorpusError, match=r"did not give the commit 1{40}"):
        fetch(recipe(tmp_path, "1" * 40), mirror=mirror)
    assert (fetch(recipe(tmp_path, first_commit(repository)), mirror=mirror) / "name.txt").exists()
    assert not (tmp_path / "ran").exists()


def test_the_config_of_the_user_is_not_read(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that it replaces, a command that it names: what comes depends on the recipe alone."""
    first = first_commit(repository)
    (tmp_path / ".gitconfig").write_text(f'[url "file:///nowhere"]\n\tinsteadOf = "{(tmp_path / "mirror").as_uri()}"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    name = recipe(tmp_path, first)
    assert (fetch(name, mirror=str(tmp_path / "mirror")) / "name.txt").exists()


def test_a_file_that_a_mirror_lacks_is_fetched_from_nowhere(tmp_path: Path, repository: Path, evil: Path) -> None:
    commit = first_commit(repository)
    wanted = git(repository, "rev-parse", f"{commit}:docs/x/나.md")
    for pack in (evil / "objects" / "pack").glob("*.pack"):
        loose = pack.rename(tmp_path / "pack")
        subprocess.run(["git", "unpack-objects", "-q"], cwd=evil, stdin=loose.open("rb"), check=True)
    (evil / "objects" / wanted[:2] / wanted[2:]).unlink(missing_ok=True)
    (tmp_path / "ran").unlink(missing_ok=True)
    with pytest.raises(CorpusError, match=r"cannot be fetched|did not give"):
        fetch(recipe(tmp_path, commit), mirror=str(tmp_path / "evil"))
    assert not (tmp_path / "ran").exists()


def test_the_mirror_may_have_any_name_and_be_shallow(tmp_path: Path, repository: Path) -> None:
    place = tmp_path / '"# 거울\n: ' / "owner" / "name.git"
    git(tmp_path, "clone", "-q", "--bare", "--depth=1", f"file://{repository}", str(place))
    commit = git(repository, "rev-parse", "HEAD")
    assert (fetch(recipe(tmp_path, commit), mirror=str(place.parent.parent)) / "name.txt").exists()


def stored(repository: Path, kind: str, content: bytes) -> str:
    """Write an object, whatever stands in it; its id."""
    return subprocess.run(
        ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"],
        cwd=repository, input=content, check=True, capture_output=True,
    ).stdout.decode().strip()  # fmt: skip


def entry(mode: str, name: bytes, object_id: str) -> bytes:
    return mode.encode() + b" " + name + b"\0" + bytes.fromhex(object_id)


def committed(repository: Path, tree: str) -> str:
    return stored(repository, "commit", f"tree {tree}\nauthor x <x> 0 +0000\ncommitter x <x> 0 +0000\n\nx\n".encode())


@pytest.mark.parametrize("kind", ["garbage", "short"])
def test_a_hostile_tree_ends_in_one_error(tmp_path: Path, repository: Path, kind: str) -> None:
    blob = stored(repository, "blob", b"x\n")
    tree = {"garbage": b"100644a.txt", "short": entry("100644", b"a.md", blob)[:-5]}[kind]
    commit = committed(repository, stored(repository, "tree", tree))
    with pytest.raises(CorpusError, match=r"did not give the commit|is damaged"):
        fetch(recipe(tmp_path, commit), mirror=str(tmp_path / "mirror"))


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"a\x1b[2J", b"fetched.json", b"fetched.sha256"])
def test_names_that_cannot_be_kept_are_refused(tmp_path: Path, repository: Path, name: bytes) -> None:
    blob = stored(repository, "blob", b"x\n")
    commit = committed(repository, stored(repository, "tree", entry("100644", name, blob)))
    recipe(tmp_path, commit)
    file = tmp_path / "recipes" / "test.toml"
    text = file.read_text(encoding="utf-8").replace('"md"', '"file"').replace("docs/**/*.md", "**")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match="whose name cannot be kept"):
        fetch("test", mirror=str(tmp_path / "mirror"))


# ── held out ──────────────────────────────────────────────────────────────────────────────────────────────────────────


HELD: dict[str, list[int]] = {"document": [1, 7, 11, 15], "line": [0, 5, 8]}
"""Those of the first twenty documents whose first lines are held out, whatever folder the recipe lies in."""


@pytest.mark.parametrize("unit", ["document", "line"])
def test_a_part_is_held_out_whole_and_no_line_of_it_is_left(tmp_path: Path, unit: str) -> None:
    folder = tmp_path / "recipes" / "texts"
    folder.mkdir()
    for i in range(60):
        (folder / f"{i}.txt").write_text(f"글 {i}\n줄 {i}\n모두의 줄\n", encoding="utf-8")
    source = f'\n[[source]]\nkind = "local"\npath = "texts/*.txt"\nname = "own"\nunit = "{unit}"\n'
    (tmp_path / "recipes" / "test.toml").write_text(CORPUS + "held_out = 0.3\n" + source, encoding="utf-8")
    train, held = ([line for file in texts(name) for line in file.read_text("utf-8").splitlines()]
                   for name in ("test", "test/held-out"))  # fmt: skip
    assert not set(train) & set(held)
    assert set(train) | set(held) == {f"{w} {i}" for i in range(60) for w in ("글", "줄")} | {"모두의 줄"}
    numbers = [{line.split()[1] for line in part if line != "모두의 줄"} for part in (train, held)]
    assert bool(numbers[0] & numbers[1]) == (unit == "line")
    assert [i for i in range(20) if f"글 {i}" in held] == HELD[unit]
    assert 0.15 < len(set(held)) / len(set(train) | set(held)) < 0.5


def test_open_sources_of_another_recipe(tmp_path: Path) -> None:
    folder = tmp_path / "recipes"
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(f"{name} 글\n", encoding="utf-8")
    sources = (
        '\n[[source]]\nkind = "local"\npath = "a.txt"\n\n[[source]]\nkind = "local"\npath = "b.txt"\nuse = "measure"\n'
    )
    (folder / "test.toml").write_text(CORPUS + sources, encoding="utf-8")
    (folder / "open.toml").write_text(CORPUS.replace('"test"', '"open"', 1) + 'sources_of = "test"\n', encoding="utf-8")
    assert [file.name for file in texts("test")] == ["a.txt", "b.txt"]
    assert [file.name for file in texts("open")] == ["a.txt"]
    with pytest.raises(CorpusError, match="holds nothing out"):
        texts("open/held-out")


def test_without_git_the_error_names_it(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = recipe(tmp_path, first_commit(repository))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(CorpusError, match="needs `git`"):
        fetch(name, mirror=str(tmp_path / "mirror"))
