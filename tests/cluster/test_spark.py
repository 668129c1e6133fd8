"""Counts, analyses and ids on Spark are those of one machine, bit for bit, for any partitions, order and failures of tasks.

One session of two cores for all tests here. One of them runs by default; the others are `-m slow`, because every
new plan costs Spark seconds.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import MINI, read_lines, sample_above
from typer.testing import CliRunner

from koktok import load
from koktok.cli import app
from koktok.cluster.segment import analyse, segment_to_file, words_to_analyse
from koktok.cluster.spark import JAVA, count_to_files, count_words, encode, read_text, session
from koktok.count import shards
from koktok.count.count_files import CountFile, runs_file
from koktok.errors import AnalyserError, InputError, UsageError
from koktok.pipeline.train import train
from koktok.recipe import Recipe
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.lexicon_file import Lexicon, analyses, write_lexicon
from koktok.segment.policy import Morpheme
from koktok.segment.workers import Workers
from koktok.text.sources import Source

runner = CliRunner()
NEWS = [str(MINI / "news.txt"), str(MINI / "verse.txt")]
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore::ResourceWarning"
)


def java() -> None:
    """Skip where Spark cannot run, with the line that is missing."""
    pytest.importorskip("pyspark", reason="pip install 'koktok[spark]'")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip(JAVA)


def spark_of(folder: Path) -> Any:
    """A session on two cores."""
    java()
    return session(
        "local[2, 4]",  # a task may fail four times
        **{
            "spark.log.level": "OFF",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.driver.memory": "1g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(folder),
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = spark_of(tmp_path_factory.mktemp("spark"))
        yield found
        found.stop()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 2000}, holdout=0.0)
    made = train([Source.of(*sorted(MINI.glob("*.txt")), name="mini")], recipe).tokenizer
    return made.save(tmp_path_factory.mktemp("for-spark") / "tokenizer")


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return read_lines(Source.of(*NEWS))


def koktok(*words: object) -> None:
    done = runner.invoke(app, list(map(str, words)))
    assert not done.exit_code, (done.output, done.exception)


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [3, 1, 16])
def test_the_files_are_those_of_one_machine(spark: Any, tmp_path: Path, partitions: int) -> None:
    one, many = tmp_path / "one.parquet", tmp_path / "many.parquet"
    koktok("count", *NEWS, "--holdout-by", "documents", "--holdout", 0.2, "--runs", "--min-count", 2, "-o", one, "-q")
    text = read_text(spark, NEWS)
    shuffled = text.orderBy("text") if partitions == 1 else text.repartition(partitions)
    count_to_files(shuffled, many, holdout=0.2, runs=True, min_count=2)
    assert CountFile.open(one).about.dropped.words
    assert one.read_bytes() == many.read_bytes()
    assert runs_file(one).read_bytes() == runs_file(many).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("superwords", [0.0, 0.3])
def test_the_sample_and_the_vocabulary_are_those_of_one_machine(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, superwords: float
) -> None:
    out = tmp_path / "many.parquet"
    count_to_files(read_text(spark, NEWS).repartition(3), out, holdout=0.0, runs=True)
    sample_above(monkeypatch, 300)
    recipe = Recipe().changed(segmenter="whitespace", vocab_size=1200, holdout=0.0, superwords=superwords)
    one = train([Source.of(path) for path in NEWS], recipe)
    monkeypatch.setattr(shards, "PART", 500)
    many = train([Source.of(out)], recipe)
    assert many.segmented.words == one.segmented.words
    assert many.segmented.n.tolist() == one.segmented.n.tolist()
    assert many.tokenizer.vocab.digest() == one.tokenizer.vocab.digest()


@pytest.mark.slow
def test_lines_records_and_columns_follow_the_rules_of_one_machine(spark: Any, tmp_path: Path) -> None:
    """A byte order mark, both line ends, an empty line, bad bytes, a line of 1 MB without a space, a last line without end."""
    folder = tmp_path / "우리 글"
    folder.mkdir()
    huge = "가나다" * 120_000
    lines = b"\xef\xbb\xbf\xec\xa7\x91\r\n\n \xff\x85 b\n" + huge.encode() + b"\n\xe2\x80\xa8a b  \nend"
    (folder / "a.txt").write_bytes(lines)
    (folder / "b.txt.gz").write_bytes(gzip.compress(lines[3:]))
    (folder / "c.txt").touch()
    records = [{"text": "하나\n둘 셋\r\n"}, {"text": "하나 \u2028 둘"}, {"text": ""}, {"text": None}, {"text": "끝"}]
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    pl.DataFrame(records).write_parquet(folder / "e.parquet")
    one, many = tmp_path / "one.parquet", tmp_path / "many.parquet"
    koktok("count", folder, "--holdout-by", "documents", "--holdout", 0.5, "--runs", "-o", one, "-q")
    told = count_to_files(read_text(spark, [str(folder)]).repartition(5), many, holdout=0.5, runs=True)
    assert (told.lines, told.bad_lines) == (
        2 * 5 + 2 * 6,
        4,
    )  # a record that ends with a line break has an empty line behind it
    assert CountFile.open(one).about.sources == CountFile.open(many).about.sources
    assert one.read_bytes() == many.read_bytes()
    assert runs_file(one).read_bytes() == runs_file(many).read_bytes()


@pytest.mark.slow
def test_own_tables_sources_and_weights(spark: Any, tmp_path: Path) -> None:
    rows = [("a", "집에 간다"), ("b", "집에 온다\n너는"), ("a", "집에"), ("c", None), (None, "집에")]
    table = spark.createDataFrame(rows, "where string, body string")
    out, weights = tmp_path / "a.parquet", {"a": 0.75, "b": 3}
    found = count_words(table, "body", source="where", weights=weights).orderBy("word").collect()
    assert [tuple(row) for row in found] == [
        (" 간다", 1, 0),
        (" 온다", 3, 0),
        ("너는", 3, 0),
        ("집에", 6, 0),
    ]  # 1.5 → 2
    told = count_to_files(table.dropna("any", subset="body"), out, "body", source="where", weights=weights, holdout=0)
    assert (told.lines, told.lines_by_source) == (5, {"": 1, "a": 2, "b": 2})  # lines have no weight
    assert pl.read_parquet(out).rows() == [tuple(row) for row in found]
    with pytest.raises(UsageError, match='no column "text"'):
        count_words(table)
    with pytest.raises(UsageError, match="of 0 to 1"):
        count_words(table, "body", holdout=1.5)


@pytest.mark.slow
def test_no_documents_are_no_words(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "none.parquet"
    told = count_to_files(spark.createDataFrame([], "text string").repartition(3), out, runs=True)
    assert told.lines == 0
    assert [len(pl.read_parquet(file)) for file in (out, runs_file(out))] == [0, 0]


@pytest.mark.slow
def test_a_damaged_file_in_the_middle_leaves_nothing_behind(spark: Any, tmp_path: Path) -> None:
    for name in "ac":
        (tmp_path / f"{name}.txt").write_text("집에 간다\n" * 20, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "하나"}\n{"text": \n', encoding="utf-8")
    out = tmp_path / "out" / "counts.parquet"
    with pytest.raises(InputError, match=r'`b\*` is not JSON: .*; the record: {"text":\nhint: grep -nF'):
        count_to_files(read_text(spark, [str(tmp_path / f"{name}*") for name in "abc"]), out)
    (tmp_path / "b.jsonl").rename(tmp_path / "b.txt.gz")
    with pytest.raises(InputError, match="not a gzip file"):
        count_to_files(read_text(spark, [str(tmp_path)]), out)
    assert not list((tmp_path / "out").glob("*"))


def once(folder: Path, kill: bool = False) -> Callable[[Any], Any]:
    """A map over batches that fails behind the first batch of every partition, the first time that it runs there."""

    def fail(batches: Any) -> Any:
        import os

        from pyspark import TaskContext

        mark = folder / str(TaskContext.get().partitionId())
        first = not mark.exists()
        mark.touch()
        for batch in batches:
            yield batch
            if first and kill:
                os.kill(os.getpid(), 9)
            if first:
                raise RuntimeError("injected")

    return fail


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_a_task_that_fails_once_in_every_partition_changes_nothing(spark: Any, tmp_path: Path, kill: bool) -> None:
    one, many = tmp_path / "one.parquet", tmp_path / "many.parquet"
    koktok("count", *NEWS, "--holdout-by", "documents", "-o", one, "-q")
    text = read_text(spark, NEWS).repartition(3)
    count_to_files(text.mapInArrow(once(tmp_path, kill), text.schema), many)
    assert len(list(tmp_path.glob("[012]"))) == 3
    assert one.read_bytes() == many.read_bytes()


@pytest.mark.slow
def test_the_verb(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "counts.parquet"
    koktok("count", *NEWS, "--engine", "spark", "-o", out, "-q")
    assert {source.name for source in CountFile.open(out).about.sources} == {"news", "verse"}
    for words in (["--engine", "spark", "--holdout-by", "blocks"], ["--engine", "spark", "--threads", "2"]):
        with pytest.raises(UsageError):
            runner.invoke(app, ["count", *NEWS, "-o", str(out), *words], catch_exceptions=False, standalone_mode=False)
    with pytest.raises(UsageError, match=r"does not read `\.csv` files on Spark"):
        read_text(spark, ["s3a://bucket/a.csv"])
    with pytest.raises(InputError, match="cannot be read"):
        read_text(spark, [str(tmp_path / "none.txt")])
    (tmp_path / "c4.json.gz").write_bytes(gzip.compress('{"text": "집에 간다"}\n'.encode()))
    assert [row.kind for row in read_text(spark, [str(tmp_path / "c4.json.gz")]).collect()] == ["jsonl"]
    for name, content, words in (
        ("a.json", "[{}]", "is a JSON array"),
        ("a.txt", '{"text": "가"}', "begins with a record"),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=words):
            read_text(spark, [str(tmp_path / name)])


# ── analysing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Moody:
    """An analyser of plain rules that dies at one word and stalls at another."""

    def signature(self) -> str:
        return "moody:1"

    def analyse(self, words: Any) -> Any:
        for word in words:
            if word == "죽음":
                os.kill(os.getpid(), 9)
            while word == "멈춤":
                time.sleep(1)
            yield (Morpheme(0, 1, "NNG", word[0]), Morpheme(1, len(word), "JX", word[1:])) if len(word) > 1 else ()


@pytest.mark.slow
def test_a_word_that_kills_or_stalls_the_analyser_costs_that_word(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def moody(_name: str, *, processes: int, timeout: float, **_: Any) -> Workers:
        made.append(Workers(Moody(), "test_spark:Moody", {}, processes=processes, timeout=timeout))
        return made[-1]

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr("koktok.cluster.segment.in_subprocess", moody)
    import pyarrow as pa

    batches = [pa.record_batch([words], ["word"]) for words in (["가다", "죽음", "멈춤", "집에"], ["가다"])]
    rows = [row for found in analyse(batches, "moody", None, "moody:1", 0.5) for row in found.to_pylist()]
    assert len(made) == 1  # one analyser a worker
    made[0].close()
    assert [row["row"] for row in rows] == ["0 1 NNG \n1 2 JX ", "", "", "0 1 NNG \n1 2 JX ", "0 1 NNG \n1 2 JX "]
    assert [bool(row["failure"]) for row in rows] == [False, True, True, False, False]
    with pytest.raises(AnalyserError, match=r"a worker has the analyser moody:1, and the driver moody:2"):
        next(analyse(batches, "moody", None, "moody:2", 0.5))


@pytest.mark.slow
def test_the_lexicon_is_that_of_one_machine(spark: Any, tmp_path: Path, kiwi: KiwiSegmenter) -> None:
    """Kiwi itself; in one task, and in three with a lexicon that knows some words and has failed on others."""
    counted = tmp_path / "counts.parquet"
    koktok("count", MINI / "verse.txt", "--holdout", 0, "--runs", "-o", counted, "-q")
    text = [Source.of(counted)]
    recipe = Recipe().changed(train={"vocab_size": 700}, holdout=0.0)
    words = words_to_analyse(text, recipe)
    one = write_lexicon(tmp_path / "one", analyses(words, kiwi), kiwi.signature(), {})
    assert segment_to_file(spark, text, tmp_path / "1", recipe, partitions=1).file.read_bytes() == one.file.read_bytes()
    failed = dict.fromkeys(words[:9], "no answer in 60 s")
    row = pl.when(pl.col("word").is_in(list(failed))).then(pl.lit("")).otherwise("row")
    part = pl.read_parquet(one.file).with_columns(row=row).gather_every(2)
    some = write_lexicon(tmp_path / "some", [part], one.signature, failed)
    whole = segment_to_file(spark, text, some.file, recipe, partitions=3, lexicon=some.file, force=True)  # in its place
    assert whole.file.read_bytes() == one.file.read_bytes()
    assert not whole.quarantined

    class Nobody:
        signature = kiwi.signature

        def serialized(self, words: list[str]) -> Iterator[str]:
            assert not words
            return iter(())

    assert list(CachedSegmenter(Nobody(), kept=False, lexicon=whole).serialized(words)) == list(kiwi.serialized(words))
    made = train([Source.of(MINI / "verse.txt")], recipe, cache=tmp_path / "cache", lexicon=whole.file)
    assert (made.asked, made.known) == (0, len(words))
    with pytest.raises(InputError, match="is not a lexicon"):
        Lexicon.open(counted)
    other = write_lexicon(tmp_path / "other", [], "kiwi:0", {})
    for use in (
        lambda: CachedSegmenter(kiwi, lexicon=other),
        lambda: segment_to_file(spark, text, one.file, lexicon=other.file),
    ):
        with pytest.raises(AnalyserError, match="was made by kiwi:0; installed is kiwi:"):
            use()


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_the_ids_are_those_of_one_machine(
    spark: Any, folder: Path, lines: list[str], tmp_path: Path, partitions: int
) -> None:
    tokenizer = load(folder)
    expected = dict(enumerate(ids.tolist() for ids in tokenizer.encode_ids(lines)))
    text = spark.createDataFrame(list(enumerate(lines)), "id int, text string").repartition(partitions)
    marks = tmp_path / "marks"
    marks.mkdir()
    failing = text.mapInArrow(once(marks, kill=partitions == 3), text.schema)
    encode(failing, folder).write.parquet(str(tmp_path / "ids"))
    rows = pl.read_parquet(tmp_path / "ids" / "*.parquet")
    assert len(rows) == len(lines)
    assert {row["id"]: row["ids"] for row in rows.iter_rows(named=True)} == expected


@pytest.mark.slow
def test_a_column_of_ids(spark: Any, folder: Path) -> None:
    table = spark.createDataFrame([("a", "집에 간다"), ("b", None), ("c", "")], "key string, text string")
    rows = {row["key"]: row["ids"] for row in encode(table, folder).collect()}
    assert rows == {"a": list(load(folder).encode("집에 간다").ids), "b": None, "c": []}
    with pytest.raises(UsageError, match='a column "key"'):
        encode(table, folder, ids="key")
    with pytest.raises(UsageError, match='no column "body"'):
        encode(table, folder, "body")
