"""Counting text of any size: shards, threads, spilling, engines, files and kills change no row (law 8)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, ROOT
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text
from typer.testing import CliRunner

from koktok.build import prepare
from koktok.cli import app
from koktok.count import Counts, count_words, words_of
from koktok.count import engine as engines
from koktok.count import shards as shards_module
from koktok.count.engine import DuckEngine, OwnEngine, engine_for, total
from koktok.count.files import About, Counted, about, read_counts, write_counts
from koktok.count.reading import read
from koktok.count.rows import Rows, flat
from koktok.count.shards import Shards
from koktok.count.table import Table
from koktok.errors import InputError, UsageError
from koktok.text.normalize import Folds, Normalizer
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source, split_lines

Document = list[str]
documents_of_text = st.lists(
    st.lists(korean_text().map(lambda text: text.replace("\n", " ")), min_size=1, max_size=4), max_size=12
)
runner = CliRunner()


def same(a: Rows, b: Rows) -> bool:
    columns = ((a.data, b.data), (a.offsets, b.offsets), (a.n, b.n), (a.documents, b.documents), (a.held, b.held))
    return all(np.array_equal(x, y) for x, y in columns)


def plain(documents: list[Document]) -> tuple[Counter[str], Counter[str]]:
    """The same count in four lines."""
    n: Counter[str] = Counter()
    held_by: Counter[str] = Counter()
    for document in documents:
        words = [word for line in document for word in words_of(line)]
        n.update(words)
        held_by.update(set(words))
    return n, held_by


def rows_of(documents: list[Document], **how: object) -> Rows:
    with Shards(**how) as shards:  # type: ignore[arg-type]
        batches = [["\n".join(document)] for document in documents]
        return total(shards.count(batches, name="x")[0])


@given(documents_of_text)
def test_words_and_documents_are_those_of_the_plain_count(documents: list[Document]) -> None:
    rows = rows_of(documents)
    n, held_by = plain(documents)
    assert rows.words() == sorted(n)
    assert dict(zip(rows.words(), rows.n.tolist(), strict=True)) == n
    assert dict(zip(rows.words(), rows.documents.tolist(), strict=True)) == held_by


@given(st.lists(st.binary(max_size=24).map(lambda b: b.decode("latin-1")), unique=True, max_size=40))
def test_rows_are_in_code_point_order(words: list[str]) -> None:
    """Also where words share their first eight bytes and more."""
    words = [*{prefix + word for word in words for prefix in ("", " 가나다라마", "가" * 9)}]
    table = Table(2)
    table.add(Rows(*flat(words), *(np.ones(len(words), np.uint64) for _ in range(3))))
    assert table.rows().words() == sorted(words)


def test_shards_threads_and_spilling_change_no_row(mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [[line] for line in mini]
    whole = rows_of(documents, threads=1, holdout=0.2)
    monkeypatch.setattr(shards_module, "SHARD", 3_000)
    monkeypatch.setattr(engines, "PART", 20_000)
    assert same(rows_of(documents, threads=3, holdout=0.2), whole)
    monkeypatch.setattr(shards_module, "KEPT", 50_000)
    with Shards(holdout=0.2) as shards:
        found, _ = shards.count([mini], name="x")
        assert len(found) == 1
        found, _ = shards.count(([line] for line in mini), name="x")
        assert shards.told.spilled > 100_000
        assert same(total(found), whole)


def test_held_out_lines_are_those_of_split_lines(mini: list[str]) -> None:
    with Shards(holdout=0.2) as shards:
        rows = total(shards.count((mini[i : i + 7] for i in range(0, len(mini), 7)), name="key")[0])
        assert shards.samples
        assert all(20 <= len(line) <= 70 for line in shards.samples)
    sides = list(split_lines(mini, share=0.2, key="key"))
    assert Counts.from_rows(rows) == count_words(line for out, line in sides if not out)
    assert Counts.from_rows(rows, held=True) == count_words(line for out, line in sides if out)


def test_runs_are_counted_with_their_documents() -> None:
    with Shards(runs=2) as shards:
        (rows,) = shards.count([["가 나 다\n가 나", "가 나"]], name="x")[1]
    assert dict(zip(rows.words(), rows.n.tolist(), strict=True)) == {"가 나": 3, " 다": 1}
    assert dict(zip(rows.words(), rows.documents.tolist(), strict=True)) == {"가 나": 2, " 다": 1}


def some_shards(n: int, seed: int = 0) -> list[Rows]:
    chance = random.Random(seed)
    return [
        Rows.of(
            {"".join(chance.choices("가나다 a\0", k=chance.randint(1, 6))): chance.randint(1, 9) for _ in range(200)}
        )
        for _ in range(n)
    ]


def test_every_engine_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb", reason="the extra `duckdb` is not installed")
    shards = some_shards(7)
    monkeypatch.setattr(engines, "PART", 4_000)
    assert len(list(OwnEngine(2).parts(shards))) > 3
    own = total(shards, OwnEngine(2))
    assert same(own, total(shards, DuckEngine()))
    assert same(own, total(shards[::-1], OwnEngine(1)))
    assert int(own.n.sum()) == sum(int(shard.n.sum()) for shard in shards)
    with pytest.raises(UsageError, match=r"`spark` is not known\nhint: --engine koktok \| duckdb"):
        engine_for("spark")


def test_count_files_are_the_same_bytes_from_every_engine(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="the extra `duckdb` is not installed")
    said = About("words", (Counted("x", "00", 3),))
    for name in ("koktok", "duckdb"):
        write_counts(tmp_path / name, engine_for(name).parts(some_shards(3)), said)
    assert (tmp_path / "koktok").read_bytes() == (tmp_path / "duckdb").read_bytes()


def test_a_count_file_gives_back_what_it_got(tmp_path: Path) -> None:
    (rows,) = some_shards(1)
    rows.held[3] = 5
    said = About("words", (Counted("x", "00", 3, 0.1),))
    dropped = write_counts(tmp_path / "a.parquet", [rows], said, min_count=4)
    (again,) = read_counts([tmp_path / "a.parquet"])
    kept = (rows.n >= 4) | (rows.held > 0)
    assert again.words() == rows.where(kept).words()
    assert dropped.n == int(rows.n[rows.n < 4].sum())
    found = about(tmp_path / "a.parquet")
    assert found is not None
    assert (found.sources, found.min_count, found.dropped) == (said.sources, 4, dropped)


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


def test_count_files_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    runner.invoke(app, ["count", str(MINI / "news.txt"), "-o", str(out), "-q"])
    with pytest.raises(InputError, match=r"no `.*a\.runs\.parquet`\nhint: koktok count .*--runs"):
        read([Source.of(out)], holdout=0.0, runs=True)
    with pytest.raises(InputError, match="two sources are named"):
        read([Source.of(out), Source("b", (out,))], holdout=0.0)
    with pytest.raises(InputError, match="mixes count files"):
        read([Source("b", (out, MINI / "news.txt"))], holdout=0.0)
    assert isinstance(runner.invoke(app, ["count", str(MINI), "-o", "a.txt"]).exception, UsageError)
    weighed = read([Source("b", (out,), weight=3.0)], holdout=0.0)
    assert weighed.train.total == 3 * read([Source.of(out)], holdout=0.0).train.total
    assert weighed.holdout == 0.05


def test_a_killed_count_goes_on_from_its_shards(tmp_path: Path) -> None:
    text = tmp_path / "big.txt"
    lines = (MINI / "news.txt").read_text(encoding="utf-8")
    text.write_text("".join(f"{i} {lines}" for i in range(150)), encoding="utf-8")
    code = (
        "import sys, time; from koktok.count import shards; from koktok.cli import main\n"
        "shards.SHARD = 200_000; made = shards.Shards._written\n"
        "def slow(*what):\n    time.sleep(0.05); return made(*what)\n"
        "shards.Shards._written = staticmethod(slow if sys.argv.pop(1) == 'slow' else made)\n"
        "main()"
    )
    words = ["count", str(text), "-o", str(tmp_path / "c.parquet"), "--threads", "1"]
    parts = tmp_path / "c.parquet.parts"
    process = subprocess.Popen([sys.executable, "-c", code, "slow", *words], cwd=ROOT, stderr=subprocess.PIPE)
    give_up = time.monotonic() + 60
    while len(list(parts.glob("*.words"))) < 3 and time.monotonic() < give_up:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = len(list(parts.glob("*.words")))
    assert left >= 3
    assert not (tmp_path / "c.parquet").exists()
    again = subprocess.run(
        [sys.executable, "-c", code, "fast", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"{left} of " in again.stderr
    once = subprocess.run(
        [sys.executable, "-m", "koktok", *words[:3], str(tmp_path / "d.parquet")],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert once.returncode == 0
    assert (tmp_path / "c.parquet").read_bytes() == (tmp_path / "d.parquet").read_bytes()


FOLDS = [Folds(), Folds(repeats=2), Folds(quotes=True, fullwidth=True, compatibility=True)]


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("split", ["eojeol", "scripts"])
@pytest.mark.parametrize("digits", ["single", "groups", "free"])
def test_the_short_way_prepares_as_the_long_one(mini: list[str], folds: Folds, split: str, digits: str) -> None:
    normalizer, pattern = Normalizer(folds), Pattern(split=split, digits=digits)  # type: ignore[arg-type]
    words = count_words([*mini, "ㅋㅋㅋ!!! 하하하...... don't (a-b) 3,000원 e\u0301 “가”", "ab!?12 가A 1,2"])
    long: Counter[str] = Counter()
    for word, n in words.items():
        for pretoken in pattern.pretokenize(normalizer(word)):
            long[pretoken] += n
    assert prepare(words, normalizer, pattern).as_dict() == dict(long)


WORST = {
    "one line without spaces": lambda n: "가나다라" * n,
    "hanja, all distinct": lambda n: " ".join(chr(0x4E00 + i % 20_000) + str(i) for i in range(n)),
    "ㅋ": lambda n: "ㅋ" * (4 * n),
    "joiners": lambda n: "\U0001f468\u200d" * (2 * n),
    "spaces": lambda n: " " * (4 * n),
}


@pytest.mark.parametrize("make", WORST.values(), ids=WORST)
def test_time_is_linear_in_the_worst_cases(make: object) -> None:
    """Eight times the text takes less than 40 times the time, which a square would not."""

    def seconds(n: int) -> float:
        data = (make(n) + "\n").encode()  # type: ignore[operator]
        best = 9.0
        for _ in range(3):
            begun = time.process_time()
            table = Table()
            table.count(data, np.array([2], np.uint8))
            table.rows()
            best = min(best, time.process_time() - begun)
        return best

    seconds(10)
    assert seconds(400_000) < 40 * max(seconds(50_000), 0.002)
