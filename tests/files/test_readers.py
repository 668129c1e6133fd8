"""Opening a folder changes nothing on the disk, whatever lies in it and around it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import MINI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import koktok
from koktok import load
from koktok.cli import app
from koktok.errors import ArtifactError, KoktokError, UsageError
from koktok.files import Product, is_intact, write_file, write_folder
from koktok.files import write as write_module

Trained = Callable[..., Path]
NEWS = MINI / "news.txt"
THING = Product("thing.sha256", "thing")


def snapshot(base: Path) -> dict[str, tuple[object, ...]]:
    """All that lies below a folder, with content, kind, mode and times."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(base.rglob("*")):
        about = path.lstat()
        content: object = "folder"
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(base))] = (content, about.st_mode, about.st_mtime_ns, about.st_ino, about.st_nlink)
    return found


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


# --- What was seen (a journal that came with a folder was carried out) ------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What a user has elsewhere."""
    (tmp_path / "home" / "d").mkdir(parents=True)
    (tmp_path / "home" / "d" / "secret").write_text("s")
    (tmp_path / "home" / "keep").write_text("k")
    return tmp_path / "home"


def plant(work: Path, home: Path, *, hostile: bool = False) -> None:
    """A workplace that somebody else prepared: the folder of a killed writer, whose list names files of the user's."""
    sha = hashlib.sha256(b"k").hexdigest()
    work.mkdir(parents=True)
    (work / "koktok.lock").touch()
    own = [(str(home / "keep"), sha), ("../../home/keep", sha)] if hostile else []
    (work / "old").mkdir()
    (work / "old" / "a").write_text("1")
    rows = [("a", hashlib.sha256(b"1").hexdigest()), *own]
    (work / "old" / "koktok.sha256").write_bytes(write_module._list_of(rows))


@pytest.mark.parametrize("place", ["dl/.koktok.koktok", ".dl.koktok"])
def test_a_folder_from_elsewhere_moves_nothing(place: str, home: Path, trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained(), tmp_path / "dl")
    plant(tmp_path / place, home)
    before = snapshot(tmp_path)
    assert run("encode", tmp_path / "dl", NEWS).exit_code == 0
    assert koktok.load(tmp_path / "dl").encode("나는 집에").ids == load(trained()).encode("나는 집에").ids
    assert snapshot(tmp_path) == before


def test_a_folder_that_is_not_there_is_not_made(home: Path, tmp_path: Path) -> None:
    plant(tmp_path / "dl" / ".tok.koktok", home)
    before = snapshot(tmp_path)
    assert isinstance(run("encode", tmp_path / "dl" / "tok", NEWS).exception, ArtifactError)
    assert snapshot(tmp_path) == before


def test_writing_beside_what_others_prepared_moves_nothing_of_the_users(
    home: Path, trained: Trained, tmp_path: Path
) -> None:
    before = snapshot(home)
    for suffix, words in {
        "partial": ("encode", trained(), NEWS, "--format", "npy", "-q"),
        "koktok": ("import", trained() / "tokenizer.json", "-q"),
    }.items():
        (tmp_path / suffix).mkdir()
        plant(tmp_path / suffix / f".out.{suffix}", home, hostile=True)
        run(*words, "--out", tmp_path / suffix / "out")
        assert snapshot(home) == before


@pytest.mark.parametrize("kind", ["lock", "hard", "new.file", "new", "old", "below"])
def test_a_writer_follows_no_link_in_a_workplace(kind: str, home: Path, tmp_path: Path) -> None:
    """Not to write through it, nor to move or delete what it leads to."""
    for out in ("folder", "file"):
        work = tmp_path / f".{out}.koktok"
        work.mkdir()
        if kind == "lock":
            (work / "koktok.lock").symlink_to(home / "keep")
        elif kind == "hard":
            os.link(home / "keep", work / "koktok.lock")
        else:
            (work / "koktok.lock").touch()
            if kind == "below":
                (work / "new").mkdir()
                (work / "new" / "a").symlink_to(home / "keep")
            else:
                (work / kind).symlink_to(home / ("keep" if kind == "new.file" else "d"))
        before = snapshot(home)
        write = write_file if out == "file" else partial(write_folder, product=THING)
        with pytest.raises(UsageError, match="not made by") if kind in ("lock", "hard") else suppress(KoktokError):
            write(tmp_path / out, {"a": "1"} if out == "folder" else b"1")  # type: ignore[operator]
        assert snapshot(home) == before


# --- The law ----------------------------------------------------------------------------------------------------------

PLACES = ["", "tok", ".tok.koktok", "tok/.koktok.koktok", ".tok.koktok/old", ".tok.koktok/new", "tok/.koktok.koktok/old",
          "tok/new", ".tok.partial", ".tok.partial/shards"]  # fmt: skip
NAMES = ["koktok.lock", "koktok.sha256", "manifest.json", "progress.jsonl",
         "new.file", "a", "tokenizer.json", "README.md", "old", "new", "..a", "shard-00000.npy", "koktok.toml"]  # fmt: skip
names = st.sampled_from([*NAMES, "..", "../keep", "/etc/passwd", "{base}/keep", "a/b", "\0", "\n"])
digests = st.sampled_from([hashlib.sha256(b"k").hexdigest(), "0" * 64, ""])
lists = st.builds(
    write_module._list_of,
    st.lists(st.tuples(names, digests), max_size=3),
    st.sampled_from([write_module._WHOLE, write_module._HALF]),
)
contents = (
    st.just(b"1")
    | lists
    | st.binary(max_size=20)
    | st.sampled_from([b"", b"{}", b"[]", b"\xff\xfe", b"[" * 100_000, b"1e999"])
)
files = st.tuples(st.sampled_from(PLACES), st.sampled_from(NAMES), contents)
links = st.tuples(
    st.sampled_from(PLACES), st.sampled_from(NAMES), st.sampled_from(["keep", "d", "tok", "gone", "/etc"])
)
works = st.tuples(st.sampled_from([".tok.koktok", "tok/.koktok.koktok"]), st.just(""), st.booleans())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(planted=st.lists(files | links | works, max_size=6))
def test_opening_changes_nothing(
    planted: list[Any], trained: Trained, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("around")
    shutil.copytree(trained(), base / "tok")
    (base / "keep").write_text("k")
    (base / "d").mkdir()
    for place, name, what in planted:
        if isinstance(what, bool):
            with suppress(OSError):
                plant(base / place, base / "d", hostile=what)
            continue
        folder, file = base / place, base / place / name
        with suppress(OSError):
            folder.mkdir(parents=True)
        if folder.is_symlink() or not folder.is_dir() or file.is_dir() or file.is_symlink():
            continue
        file.unlink(missing_ok=True)
        if isinstance(what, str):
            file.symlink_to(base / what)
        else:
            file.write_bytes(what.replace(b"{base}", str(base).encode()))
    before = snapshot(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_module, "_MOVING", 0)  # no writer is awaited
        for opened in (load, koktok.load):
            with suppress(KoktokError):
                opened(base / "tok").encode("나는 집에")
        with suppress(KoktokError):
            koktok.load(base / "tok" / "tokenizer.json")
    assert snapshot(base) == before
    shutil.rmtree(base)


# --- Every verb that reads --------------------------------------------------------------------------------------------

READING = {
    "encode": ("encode", "{tok}", NEWS),
    "encode to files": ("encode", "{tok}", NEWS, "--format", "npy", "-o", "{out}"),
    "decode": ("decode", "{tok}", "{ids}"),
    "verify": ("verify", "{tok}", NEWS),
    "report": ("report", "ours={tok}", "hf:{tok}", "--text", NEWS, "--resamples", 0, "-q", "-o", "{out}"),
    "diff": ("diff", "{tok}", "hf:{tok}", "--text", NEWS),
    "doctor": ("doctor", "{tok}", "--text", NEWS),
    "playground": ("playground", "{tok}", "--words", 0, "-q", "-o", "{out}"),
    "export": ("export", "{tok}", "--to", "spm", "-o", "{out}"),
    "extend": ("extend", "{tok}", NEWS, "--add", 2, "-q", "-o", "{out}"),
    "import": ("import", "{tok}/tokenizer.json", "-o", "{out}"),
    "import a folder": ("import", "{tok}", "-o", "{out}"),
    "train --recipe": ("train", NEWS, "--recipe", "{tok}", "--model", "ngram", "--vocab-size", 2000, "--no-compare", "--dry-run"),
    "instances": ("instances", "{instances}"),
}  # fmt: skip


@pytest.fixture(scope="module")
def instances(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("instances") / "made"
    done = run("instances", trained(), NEWS, "--segmenter", "whitespace", "-q", "--out", out)
    assert done.exit_code == 0, done.output
    return out


def test_a_verb_writes_nothing_where_it_reads(trained: Trained, instances: Path, home: Path, tmp_path: Path) -> None:
    source, elsewhere = tmp_path / "source", tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(trained(), source / "tok")
    shutil.copytree(instances, source / "instances")
    (source / "ids").write_text("259 260\n")
    for name in ("tok", "instances"):
        plant(source / f".{name}.koktok", home)
        plant(source / name / ".koktok.koktok", home)
        plant(source / f".{name}.partial", home)
    places = {"tok": source / "tok", "instances": source / "instances", "ids": source / "ids"}
    before = snapshot(source), snapshot(home)
    for i, (verb, words) in enumerate(READING.items()):
        done = run(*[str(word).format(**places, out=elsewhere / f"out-{i}") for word in words])
        assert done.exit_code == 0, (verb, done.output, done.exception)
        assert (snapshot(source), snapshot(home)) == before, verb


# --- The cache --------------------------------------------------------------------------------------------------------


def test_a_ready_vocabulary_that_was_changed_in_the_cache_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    wanted = load("koktok:ko-16k").encode("나는 집에").ids
    (manifest,) = tmp_path.rglob("koktok.sha256")
    folder = manifest.parent
    for name in ("tokenizer.json", "koktok.toml", "koktok.sha256"):
        (folder / name).write_bytes((folder / name).read_bytes().replace(b"e", b"f"))
        assert load("koktok:ko-16k").encode("나는 집에").ids == wanted
    (folder / "tokenizer.json").unlink()
    assert load("koktok:ko-16k").encode("나는 집에").ids == wanted
    assert is_intact(folder, koktok.runtimes.folder.TOKENIZER)  # type: ignore[attr-defined]
