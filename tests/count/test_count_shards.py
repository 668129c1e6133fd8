"""Counting text of any size: shards, threads, spilling, parts, files and kills change no row (law 8)."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import get_args

import polars as pl
import pytest
from conftest import MINI
from hypothesis import example, given
from hypothesis import strategies as st
from reference.lines import split_lines
from strategies import korean_text
from typer.testing import CliRunner

from koktok.cli import app
from koktok.count import count_words, shards, words_of
from koktok.count.count_files import About, Counted, CountFile, write_counts
from koktok.count.counting import counting, read
from koktok.count.prepared import prepare
from koktok.count.shards import Shard, Shards, parts
from koktok.errors import InputError, UsageError
from koktok.text.blocks import Block
from koktok.text.normalize import Folds, Normalizer
from koktok.text.patterns import Published, PublishedPattern
from koktok.text.pretokenize import Digits, Pattern, Split
from koktok.text.sources import Source

Document = list[str]
SCHEMA = {"word": pl.String, "n": pl.UInt64, "held": pl.UInt64}
documents_of_text = st.lists(
    st.lists(korean_text().map(lambda text: text.replace("\n", " ")), min_size=1, max_size=4), max_size=12
)
runner = CliRunner()


def rows_of(documents: list[Document], **how: object) -> pl.DataFrame:
    return summed_rows([Block.of(["\n".join(document)]) for document in documents], **how)


def summed_rows(blocks: list[Block], **how: object) -> pl.DataFrame:
    with Shards(**how) as count:  # type: ignore[arg-type]
        count.count(blocks, name="x")
        return joined(count.words)


def joined(tables: list[Shard]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=SCHEMA), *(part.select(*SCHEMA) for part in parts(tables))])


def column(table: pl.DataFrame, name: str) -> dict[str, int]:
    return {word: n for word, n in table.select("word", name).rows() if n}


@given(documents_of_text)
@example([["\r"]])
@example([["가\r", "나\r\r"]])
def test_words_are_those_of_the_plain_count(documents: list[Document]) -> None:
    rows = rows_of(documents)
    lines = [line.removesuffix("\r") for document in documents for line in document]  # of "\r\n", the end of a line
    n = Counter(word for line in lines for word in words_of(line))
    assert rows["word"].to_list() == sorted(n)
    assert column(rows, "n") == n


def test_shards_threads_and_spilling_change_no_row(mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [[line] for line in mini]
    whole = rows_of(documents, threads=1, holdout=0.2)
    monkeypatch.setattr(shards, "SHARD", 3_000)
    monkeypatch.setattr(shards, "PART", 1_000)
    monkeypatch.setattr(shards, "_STEP", 16)
    assert rows_of(documents, threads=3, holdout=0.2).equals(whole)
    monkeypatch.setattr(shards, "KEPT", 50_000)
    with Shards(holdout=0.2) as count:
        count.count((Block.of([line]) for line in mini), name="x")
        assert count.spilled > 3
        assert len(list(parts(count.words))) > 5
        assert joined(count.words).equals(whole)


def test_held_out_lines_are_those_of_split_lines(mini: list[str]) -> None:
    with Shards(holdout=0.2) as count:
        count.count((Block.of(mini[i : i + 7]) for i in range(0, len(mini), 7)), name="key")
        rows = joined(count.words)
        assert count.samples
        assert all(20 <= len(line) <= 70 for line in count.samples)
    sides = list(split_lines(mini, share=0.2, key="key"))
    assert column(rows, "n") == count_words(line for out, line in sides if not out).as_dict()
    assert column(rows, "held") == count_words(line for out, line in sides if out).as_dict()


def test_runs_are_counted_with_their_documents() -> None:
    with Shards(runs=True) as count:
        count.count([Block.of(["가 나. 다\n가 나.", "가 나."])], name="x")
    assert count.runs[0].frame.select("word", "n", "documents", "held").collect().rows() == [
        (" 다", 1, 1, 0),
        ("가 나.", 3, 2, 0),
    ]


def some_tables(n: int, seed: int = 0) -> list[pl.DataFrame]:
    chance = random.Random(seed)
    mappings = (
        {"".join(chance.choices("가나다 a\0", k=chance.randint(1, 6))): chance.randint(1, 9) for _ in range(200)}
        for _ in range(n)
    )
    return [pl.DataFrame([(w, n, 0) for w, n in sorted(m.items())], SCHEMA, orient="row") for m in mappings]


def test_parts_are_the_plain_sum_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = some_tables(7)
    monkeypatch.setattr(shards, "PART", 200)
    monkeypatch.setattr(shards, "_STEP", 8)
    wanted: Counter[str] = Counter()
    for table in tables:
        wanted.update(column(table, "n"))
    for some in (tables, tables[::-1]):
        found = joined([Shard.of(table) for table in some])
        assert found["word"].to_list() == sorted(wanted)
        assert column(found, "n") == wanted


def test_count_files_are_the_same_bytes_from_any_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = About("words", (Counted("x", "00", 3),))
    tables = [Shard.of(table) for table in some_tables(3)]
    write_counts(tmp_path / "whole", parts(tables), said)
    monkeypatch.setattr(shards, "PART", 100)
    monkeypatch.setattr(shards, "_STEP", 8)
    tables = [Shard.of(table) for table in some_tables(3)]
    assert len(list(parts(tables))) > 3
    write_counts(tmp_path / "parts", parts(tables), said)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()


def test_a_count_file_gives_back_what_it_got(tmp_path: Path) -> None:
    (table,) = some_tables(1)
    table = table.with_columns(held=pl.when(pl.int_range(pl.len()) == 3).then(5).otherwise(0).cast(pl.UInt64))
    said = About("words", (Counted("x", "00", 3, 0.1),))
    dropped = write_counts(tmp_path / "a.parquet", [table], said, min_count=4)
    again = CountFile.open(tmp_path / "a.parquet")
    kept = table.filter((pl.col("n") >= 4) | (pl.col("held") > 0))
    assert again.frame.collect().equals(
        kept.with_columns(n=pl.when(pl.col("n") >= 4).then("n").otherwise(0).cast(pl.UInt64))
    )
    assert dropped.n == table.filter(pl.col("n") < 4)["n"].sum()
    assert (again.about.sources, again.about.min_count, again.about.dropped) == (said.sources, 4, dropped)


def test_count_files_of_another_format_are_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"word": ["집"], "n": [3], "held": [4]})
    for form in (1, 9):
        told = json.dumps({"format": form, "kind": "words", "sources": []})
        table.write_parquet(tmp_path / "a.parquet", metadata={"koktok.counts": told})
        with pytest.raises(InputError, match=f"has format {form}; this koktok reads 2"):
            read([Source.of(tmp_path / "a.parquet")], holdout=0.0)


def test_training_from_counts_is_training_from_text(tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    text = [str(MINI), "--holdout", "0.1"]
    assert runner.invoke(app, ["count", *text, "-o", str(out), "--runs", "-q"]).exit_code == 0
    assert not (tmp_path / "c.parquet.parts").exists()
    for superwords in ("0", "0.3"):
        options = [
            "--vocab-size",
            "2300",
            "--no-compare",
            "--superwords",
            superwords,
            "--segmenter",
            "whitespace",
            "-q",
        ]
        runner.invoke(app, ["train", str(out), *options, "--out", str(tmp_path / "counts")])
        runner.invoke(app, ["train", *text, *options, "--out", str(tmp_path / "text")])
        names = sorted(file.name for file in (tmp_path / "text").iterdir())
        assert "tokenizer.json" in names
        for name in names:
            assert (tmp_path / "counts" / name).read_bytes() == (tmp_path / "text" / name).read_bytes()


def test_merged_counts_are_the_counts_of_both(tmp_path: Path) -> None:
    files = sorted(MINI.glob("*.txt"))
    for name, some in (("a", files[:2]), ("b", files[2:]), ("ab", files)):
        given = [str(file) for file in some]
        assert runner.invoke(app, ["count", *given, "-o", str(tmp_path / f"{name}.parquet"), "-q"]).exit_code == 0
    merge = ["count", "merge", *(str(tmp_path / f"{name}.parquet") for name in "ba"), "-q", "-o"]
    assert runner.invoke(app, [*merge, str(tmp_path / "merged.parquet")]).exit_code == 0
    assert (tmp_path / "merged.parquet").read_bytes() == (tmp_path / "ab.parquet").read_bytes()
    twice = [
        "count",
        "merge",
        str(tmp_path / "a.parquet"),
        str(tmp_path / "ab.parquet"),
        "-o",
        str(tmp_path / "x.parquet"),
    ]
    assert isinstance(runner.invoke(app, twice).exception, InputError)


def counted_runs(source: Source) -> None:
    with counting([source], holdout=0.0, runs=True):
        pass


def test_count_files_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    runner.invoke(app, ["count", str(MINI / "news.txt"), "-o", str(out), "-q"])
    with pytest.raises(InputError, match=r"no `.*a\.runs\.parquet`\nhint: koktok count .*--runs"):
        counted_runs(Source.of(out))
    with pytest.raises(InputError, match="two sources are named"):
        read([Source.of(out), Source("b", (out,))], holdout=0.0)
    with pytest.raises(InputError, match="mixes count files"):
        read([Source("b", (out, MINI / "news.txt"))], holdout=0.0)
    assert isinstance(runner.invoke(app, ["count", str(MINI), "-o", "a.txt"]).exception, UsageError)
    weighed = read([Source("b", (out,), weight=3.0)], holdout=0.0)
    assert weighed.train.total == 3 * read([Source.of(out)], holdout=0.0).train.total
    assert weighed.holdout == 0.05


FOLDS = [Folds(), Folds(repeats=2), Folds(quotes=True, fullwidth=True, compatibility=True)]


PATTERNS = [
    *(Pattern(split=split, digits=digits) for split in get_args(Split) for digits in get_args(Digits)),
    *(PublishedPattern(name=name).within_words for name in get_args(Published)),
]


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_the_short_way_prepares_as_the_long_one(mini: list[str], folds: Folds, pattern: Pattern) -> None:
    normalizer = Normalizer(folds)
    words = count_words(
        [*mini, "ㅋㅋㅋ!!! 하하하...... don't (a-b) 3,000원 e\u0301 “가”", "ab!?12 가A 1,2", "  가  aB BaR가Ab"]
    )
    long: Counter[str] = Counter()
    for word, n in words.items():
        for pretoken in pattern.pretokenize(normalizer(word)):
            long[pretoken] += n
    assert prepare(words, normalizer, pattern).as_dict() == dict(long)
