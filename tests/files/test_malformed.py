"""Every malformed file ends in one error of koktok's that names it, in little time and memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import MINI, ROOT
from test_readers import run

from koktok.errors import KoktokError
from koktok.segment import Whitespace
from koktok.segment.lexicon_file import analyses, write_lexicon

Trained = Callable[..., Path]
NEWS = MINI / "news.txt"
NESTED = "[" * 200_000
JSONS = ["", "garbage", "{}", "[]", '"abc"', "3", NESTED, '{"format": "x"}', "\udcff"]
QUICK = ("--segmenter", "whitespace", "--model", "word", "--vocab-size", 1200, "--no-compare", "-q")


@pytest.fixture(scope="module")
def made(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A count, a lexicon, instances and token files that are right."""
    base = tmp_path_factory.mktemp("made")
    for words in (
        ("count", NEWS, "-q", "-o", base / "c.parquet"),
        ("instances", trained(), NEWS, "--segmenter", "whitespace", "-q", "-o", base / "instances"),
        ("encode", trained(), NEWS, "--format", "npy", "-q", "-o", base / "ids"),
    ):
        done = run(*words)
        assert done.exit_code == 0, (done.output, done.exception)
    write_lexicon(base / "l.parquet", analyses(["나는", "집에"], Whitespace()), Whitespace().signature(), {})
    return base


def refused(name: str, *words: object) -> None:
    """A verb ends in an error of ours that names the file."""
    done = run(*words)
    assert isinstance(done.exception, KoktokError), (done.output[-500:], done.exception)
    assert name in done.exception.message, done.exception.message


# --- Parquet ----------------------------------------------------------------------------------------------------------


def counts(**columns: list[Any]) -> pl.DataFrame:
    given = {"word": [" 간다", "나는"], "n": [2, 1], "held": [0, 0]} | columns
    return pl.DataFrame(given)


@pytest.mark.parametrize("metadata", [text for text in JSONS if text != "\udcff"])
@pytest.mark.parametrize("kind", ["c", "l"])
def test_metadata_of_parquet(kind: str, metadata: str, made: Path, tmp_path: Path) -> None:
    file, key = tmp_path / "bad.parquet", {"c": "koktok.counts", "l": "koktok.lexicon"}[kind]
    pl.read_parquet(made / f"{kind}.parquet").write_parquet(file, metadata={key: metadata})
    words = ("train", file, *QUICK) if kind == "c" else ("train", NEWS, *QUICK, "--lexicon", file)
    refused("bad.parquet", *words, "-o", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.parquet"]


COLUMNS = {
    "strings": {"n": ["2", "1"]},
    "lists": {"n": [[2], [1]]},
    "signed": {"n": [-2, 1]},
    "too many": {"n": pl.Series([1 << 62, 1 << 62], dtype=pl.UInt64)},
    "twice": {"word": [" 간다", " 간다"]},
    "no order": {"word": ["나는", " 간다"]},
    "no text": {"word": [None, "나는"]},
    "numbers": {"word": [1, 2]},
}


@pytest.mark.parametrize("what", COLUMNS)
def test_columns_of_a_count(what: str, made: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.parquet"
    metadata = {"koktok.counts": pl.read_parquet_metadata(made / "c.parquet")["koktok.counts"]}
    table = counts(**COLUMNS[what])  # type: ignore[arg-type]
    if what != "signed":
        table = table.with_columns(pl.col("held").cast(pl.UInt64))
        table = table if what in ("strings", "lists") else table.with_columns(pl.col("n").cast(pl.UInt64))
    table.write_parquet(file, metadata=metadata)
    refused("bad.parquet", "train", file, *QUICK, "-o", tmp_path / "out")
    pl.DataFrame({"other": [1]}).write_parquet(file, metadata=metadata)
    refused("bad.parquet", "train", file, *QUICK, "-o", tmp_path / "out")


def test_columns_of_a_lexicon(made: Path, tmp_path: Path) -> None:
    metadata = {"koktok.lexicon": pl.read_parquet_metadata(made / "l.parquet")["koktok.lexicon"]}
    for table in (pl.DataFrame({"other": [1]}), pl.DataFrame({"word": ["나는"], "row": [1]})):
        table.write_parquet(tmp_path / "bad.parquet", metadata=metadata)
        refused("bad.parquet", "train", NEWS, *QUICK, "--lexicon", tmp_path / "bad.parquet", "-o", tmp_path / "out")


# --- Manifests --------------------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no shards": lambda m: m.pop("shards"),
    "shards 5": lambda m: m.update(shards=5),
    "shard 5": lambda m: m.update(shards=[5]),
    "a shard elsewhere": lambda m: m["shards"][0].update(name="../../../x"),
    "a shard of epoch 9": lambda m: m["shards"][0].update(epoch=9),
    "no plan": lambda m: m.pop("plan"),
    "plan 3": lambda m: m.update(plan=3),
    "length 0": lambda m: m["plan"].update(length=0),
    "many ids": lambda m: m.update(vocab_size=1 << 40),
    "ids above": lambda m: m.update(specials=[1 << 40]),
    "many epochs": lambda m: m.update(epochs=1 << 40),
    "excluded": lambda m: m.update(excluded=[[0]]),
    "roles": lambda m: m.update(roles=["a"]),
}


@pytest.mark.parametrize("change", [*CHANGES, *JSONS[:-1]])
def test_manifest_of_instances(change: str, made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made / "instances", tmp_path / "bad")
    text = change
    if change in CHANGES:
        manifest = json.loads((folder / "manifest.json").read_text())
        CHANGES[change](manifest)
        text = json.dumps(manifest)
    (folder / "manifest.json").write_text(text)
    refused("bad", "instances", folder)


@pytest.mark.parametrize("data", [b"", b"garbage", b"ARROW1\0\0" + b"\xff" * 64, None])
def test_shard_of_instances(data: bytes | None, made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made / "instances", tmp_path / "bad")
    (shard,) = folder.glob("*.arrow")
    shard.write_bytes(shard.read_bytes()[:1000] if data is None else data)
    refused(shard.name, "instances", folder)


@pytest.mark.parametrize("rows", [b"\xff\xfe\n", b"word\n", b"  \n", b"x  ../../y\n"])
def test_manifest_of_a_tokenizer(rows: bytes, trained: Trained, tmp_path: Path) -> None:
    """With the right checksum of its own; what it says of no file is worth nothing."""
    from hashlib import sha256

    folder = shutil.copytree(trained(), tmp_path / "tok")
    head, _, listed = (folder / "koktok.sha256").read_bytes().partition(b"\n")
    listed += rows
    (folder / "koktok.sha256").write_bytes(
        b" ".join([head.rpartition(b" ")[0], sha256(listed).hexdigest().encode()]) + b"\n" + listed
    )
    done = run("export", folder, "--to", "hf", "-o", tmp_path / "out")
    assert done.exit_code == 0
    done = run("export", tmp_path / "out", "--to", "hf", "--style", "bert", "-o", folder, "--force")
    assert done.exit_code == 0, done.exception


# --- Sizes ------------------------------------------------------------------------------------------------------------


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def big_gold(base: Path) -> tuple[object, ...]:
    word = "가" * 500_000
    parts = "+".join(["가/NNG"] * 100_000)
    (base / "bad.tsv").write_text(f"{word}\t{parts}\n", encoding="utf-8")
    return ("report", "syllables", "--gold", base / "bad.tsv", "-q", "-o", base / "out")


def long_line(base: Path) -> tuple[object, ...]:
    (base / "bad.txt").write_text("가" * 5_000_000, encoding="utf-8")
    return ("doctor", "koktok:ko-16k", "--blocklist", base / "bad.txt")


def pipe(base: Path) -> tuple[object, ...]:
    os.mkfifo(base / "bad.json")
    return ("import", base / "bad.json", "-o", base / "out")


def pipe_in_a_folder(base: Path) -> tuple[object, ...]:
    (base / "bad").mkdir()
    (base / "bad" / "koktok.toml").write_text("[signature]\n")
    os.mkfifo(base / "bad" / "tokenizer.json")
    return ("encode", base / "bad", NEWS)


def zeros(base: Path) -> tuple[object, ...]:
    (base / "bad").symlink_to("/dev/zero")
    return ("import", base / "bad", "-o", base / "out")


def sparse(base: Path) -> tuple[object, ...]:
    with (base / "bad.model").open("wb") as file:
        file.truncate(1 << 40)
    return ("import", base / "bad.model", "-o", base / "out")


@pytest.mark.parametrize("make", [big_gold, long_line, pipe, pipe_in_a_folder, zeros, sparse])
def test_bounds_are_looked_at_first(make: Callable[[Path], tuple[object, ...]], tmp_path: Path) -> None:
    words = [*map(str, make(tmp_path))]
    done = subprocess.run(
        [sys.executable, "-m", "koktok", *words],
        cwd=ROOT, preexec_fn=bounded, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr[-1000:]
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    assert "bad" in done.stderr
    assert not (tmp_path / "out").exists()
