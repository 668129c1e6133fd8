"""Token files that Spark writes: every document once, whatever fails, whoever is killed, and how often it is run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import MINI
from hypothesis import given
from hypothesis import strategies as st
from test_spark import NEWS, once, spark  # noqa: F401 - a fixture

from koktok import Tokenizer
from koktok.bulk.shards import TokenFiles, write_token_files
from koktok.cluster.spark import read_text
from koktok.errors import InputError, KoktokError, UsageError
from koktok.pipeline import train
from koktok.recipe import Recipe
from koktok.text.sources import Source, read_lines

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark", reason="pip install 'koktok[spark]'")
from koktok.cluster import source  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore::ResourceWarning"
)
Rows = Counter[tuple[int, ...]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 2000}, holdout=0.0)
    made = train([Source.of(*sorted(MINI.glob("*.txt")), name="mini")], recipe).tokenizer
    return made.save(tmp_path_factory.mktemp("for-spark") / "tokenizer")


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return list(read_lines(Source.of(*NEWS)))


def rows_of(target: Path) -> Rows:
    """The ids of all documents, whose order is nobody's."""
    files = TokenFiles.open(target)
    listed = {name for shard in files.manifest["shards"] for name in shard["files"]}
    assert {file.name for file in target.iterdir()} == listed | {"manifest.json"}  # nothing strays
    assert not [entry for entry in target.parent.iterdir() if entry.name.startswith(".")]
    assert files.manifest["tokens"] == sum(len(shard.ids) for shard in files)
    return Counter(tuple(ids.tolist()) for shard in files for ids in shard)


def expected(folder: Path, texts: Sequence[str]) -> Rows:
    return Counter(tuple(ids.tolist()) for ids in Tokenizer.load(folder).encode_ids(texts))


# ── the writer alone, as Spark calls it ───────────────────────────────────────────────────────────────────────────────


class Job:
    """A job of Spark's, by hand: partitions of texts, whose tasks are run in any order and number."""

    def __init__(self, folder: Path, target: Path, *, overwrite: bool = True, **options: str) -> None:
        given = {"path": str(target), "tokenizer": str(folder), "shardBytes": "2000", **options}
        self.writer = source.Writer.begun(given, ["text"], overwrite=overwrite)
        self.attempts = 0

    def task(self, partition: int, texts: Sequence[str | None], patch: pytest.MonkeyPatch) -> source.Message:
        self.attempts += 1
        attempt = self.attempts

        class Context:
            def partitionId(self) -> int:  # noqa: N802
                return partition

            def taskAttemptId(self) -> int:  # noqa: N802
                return attempt

        patch.setattr(source.TaskContext, "get", Context)
        batches = [
            pa.record_batch([pa.array(texts[i : i + 7], pa.string())], ["text"]) for i in range(0, len(texts), 7)
        ]
        return self.writer.write(iter(batches))

    def run(self, partitions: Sequence[Sequence[str | None]], patch: pytest.MonkeyPatch) -> None:
        self.writer.commit([self.task(i, texts, patch) for i, texts in enumerate(partitions)])


def parted(lines: Sequence[str], n: int) -> list[list[str]]:
    return [list(lines[i::n]) for i in range(n)]


@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_all_documents_for_any_partitions(
    folder: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    target = tmp_path / "ids"
    Job(folder, target).run([*parted(lines, partitions), []], monkeypatch)
    assert rows_of(target) == expected(folder, lines)
    assert len(TokenFiles.open(target)) >= partitions


@given(
    st.lists(st.text("가a\0 ", max_size=5), max_size=20), st.integers(1, 40), st.lists(st.integers(0, 20), max_size=4)
)
def test_a_shard_does_not_depend_on_batches_or_their_kind(texts: list[str], limit: int, cuts: list[int]) -> None:
    """Blocks of lines and lists of strings, cut anywhere, give the same shards: those of document after document."""

    def shards(batches: Sequence[Any]) -> list[tuple[str, str, str]]:
        made, text = [], source._ShardText()
        for batch in batches:
            left, names = batch, ()
            while len(left):
                left, names = text.take(left, names, limit)
                if text.size >= limit:
                    made.append(text)
                    text = source._ShardText()
        made += [text] if text.size else []
        return [(shard.digest.hexdigest(), shard.names[0], shard.names[-1]) for shard in made]

    one_by_one: list[list[str]] = [[]]
    for text in texts:
        one_by_one[-1].append(text)
        if sum(len(text.encode()) + 1 for text in one_by_one[-1]) >= limit:
            one_by_one.append([])
    expected = [
        (
            sha256("".join(f"{text}\0" for text in own).encode()).hexdigest(),
            *(sha256(own[i].encode()).hexdigest()[:16] for i in (0, -1)),
        )
        for own in one_by_one
        if own
    ]
    ends = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    lists = [texts[a:b] for a, b in pairwise(ends)]
    assert shards(lists) == expected
    if not any("\0" in text for text in texts):
        assert shards(["".join(f"{text}\n" for text in own).encode() for own in lists]) == expected


def test_a_document_of_a_megabyte_without_a_space(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, texts = tmp_path / "ids", ["집에 간다", "가나다" * 120_000, "너"]
    Job(folder, target).run([texts], monkeypatch)
    assert rows_of(target) == expected(folder, texts)


def test_a_second_run_keeps_what_is_there_and_drops_what_is_not_wanted(
    folder: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, three = tmp_path / "ids", parted(lines, 3)
    Job(folder, target).run(three, monkeypatch)
    before = {file.name: file.stat().st_ino for file in target.glob("shard-*")}
    monkeypatch.setattr(source.Writer, "_made", lambda *_: pytest.fail("a shard was made again"))
    Job(folder, target).run(three, monkeypatch)
    Job(folder, target, overwrite=False).run(three[::-1], monkeypatch)
    assert before == {file.name: file.stat().st_ino for file in target.glob("shard-*")}
    monkeypatch.undo()
    Job(folder, target).run([three[0], [*three[1], "하나 더"]], monkeypatch)
    assert rows_of(target) == expected(folder, [*three[0], *three[1], "하나 더"])
    kept = {file.name for file in target.glob("shard-*") if before.get(file.name) == file.stat().st_ino}
    assert len(kept) > len(three[0]) // 20
    Job(folder, target, overwrite=False).run([three[2]], monkeypatch)
    assert rows_of(target) == expected(folder, [*lines, "하나 더"])
    harmed = max(target.glob("shard-*.npy"))
    harmed.write_bytes(harmed.read_bytes()[:-1] + b"?")
    with pytest.raises(UsageError, match="what differs: after, format"):
        Job(folder, target, overwrite=False, after=next(iter(Tokenizer.load(folder).vocab.specials)), to="bin")


def test_the_same_text_in_two_partitions_is_there_twice(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "ids"
    for _ in range(2):
        Job(folder, target).run([["집에 간다", None, "너"], ["집에 간다", "너"]], monkeypatch)
        assert rows_of(target) == expected(folder, ["집에 간다", "너"] * 2)
        assert TokenFiles.open(target).manifest["bad_lines"] == 1


def test_attempts_that_failed_ran_twice_or_came_late_leave_nothing(
    folder: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, three = tmp_path / "ids", parted(lines, 3)
    job = Job(folder, target)

    def dying(texts: list[str]) -> Iterator[Any]:
        yield pa.record_batch([pa.array(texts)], ["text"])
        raise RuntimeError("injected")

    messages = []
    for i, texts in enumerate(three):
        twice = [job.task(i, texts, monkeypatch), job.task(i, texts, monkeypatch)]
        with pytest.raises(RuntimeError, match="injected"):
            job.writer.write(dying(texts))
        messages.append(twice[i % 2])
    (job.writer.work / "half.npy").write_bytes(b"of a killed worker")
    job.writer.commit(messages)
    assert rows_of(target) == expected(folder, lines)
    with pytest.raises(InputError):
        job.task(0, [*three[0], "zu spät"], monkeypatch)
    assert rows_of(target) == expected(folder, lines)


def test_a_killed_driver_and_a_failed_job_go_on_where_they_were(
    folder: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, three = tmp_path / "ids", parted(lines, 3)
    killed = Job(folder, target)
    first = killed.task(0, three[0], monkeypatch)
    failed = Job(folder, target)
    second = failed.task(1, three[1], monkeypatch)
    (failed.writer.work / "half.npy").write_bytes(b"of a killed worker")
    failed.writer.abort([first, None])
    assert not target.exists()
    with pytest.raises(InputError, match="another job"):
        killed.writer.commit([first])  # it was not dead at all, but its turn is over
    made: list[str] = []
    inner = source.Writer._made
    monkeypatch.setattr(source.Writer, "_made", lambda self, *given: made.append(given[1]) or inner(self, *given))
    Job(folder, target).run(three, monkeypatch)
    assert not {shard["text_sha256"] for message in (first, second) for shard in message.shards} & set(made)
    assert rows_of(target) == expected(folder, lines)

    later = Job(folder, target)
    message = later.task(0, ["하나 더"], monkeypatch)
    monkeypatch.setattr("koktok.files.write._move", lambda *_: os._exit)
    later.writer.commit([message])  # it is decided on, and not done yet
    monkeypatch.undo()
    again = Job(folder, target)  # and is done now
    assert TokenFiles.open(target).manifest["shards"][0]["documents"] == 1
    again.run([["하나 더"]], monkeypatch)
    assert rows_of(target) == expected(folder, ["하나 더"])


def test_what_is_wrong_is_said_before_any_task_runs(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "ids"
    for options, message in (
        ({"tokeniser": "x"}, "`tokeniser` is not known"),
        ({"to": "csv"}, "`csv` is no format"),
        ({"shardBytes": "0"}, "shardBytes = 0"),
        ({"column": "body"}, 'no column "body"; it has: text'),
        ({"before": "<nothing>"}, "<nothing>"),
        ({"tokenizer": str(tmp_path / "none")}, "none"),
    ):
        with pytest.raises(KoktokError, match=message):
            Job(folder, target, **options)
    target.mkdir()
    (target / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(KoktokError, match="holds no token files"):
        Job(folder, target)
    assert [file.name for file in tmp_path.iterdir()] == ["ids"]


# ── Spark itself ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(("to", "partitions"), [("npy", 1), ("arrow", 3), ("megatron", 16)])
def test_spark_writes_what_one_machine_writes(
    spark: Any,  # noqa: F811
    folder: Path,
    tmp_path: Path,
    to: str,
    partitions: int,
) -> None:
    source.register(spark)
    one, many = tmp_path / "one", tmp_path / "many"
    tokenizer = Tokenizer.load(folder)
    end = next(iter(tokenizer.vocab.specials))
    write_token_files(tokenizer, [Source.of(file) for file in NEWS], one, format="bin", after=[end])
    text = read_text(spark, NEWS).repartition(partitions)
    options = {"tokenizer": str(folder), "to": to, "after": end}
    text.write.format("koktok").options(**options).mode("overwrite").save(str(many))
    assert rows_of(many) == rows_of(one)
    told = TokenFiles.open(many).manifest
    assert {key: told[key] for key in ("tokenizer", "dtype", "after", "bad_lines")} == {
        key: TokenFiles.open(one).manifest[key] for key in ("tokenizer", "dtype", "after", "bad_lines")
    }


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_tasks_that_fail_once_in_every_partition_change_nothing(
    spark: Any,  # noqa: F811
    folder: Path,
    lines: list[str],
    tmp_path: Path,
    kill: bool,
) -> None:
    source.register(spark)
    text = spark.createDataFrame([(i, line) for i, line in enumerate(lines)], "id int, text string").repartition(2)
    marks = tmp_path / "marks"
    marks.mkdir()
    failing = text.mapInArrow(once(marks, kill), text.schema)
    target = tmp_path / "out" / "ids"
    options = {"tokenizer": str(folder), "shardBytes": "3000", "id": "id"}
    failing.write.format("koktok").options(**options).mode("overwrite").save(str(target))
    assert len(list(marks.iterdir())) == 2
    assert rows_of(target) == expected(folder, lines)
    ends = [(shard["first"], shard["last"]) for shard in TokenFiles.open(target).manifest["shards"]]
    assert {key for pair in ends for key in pair} <= set(map(str, range(len(lines))))


@pytest.mark.slow
def test_a_column_of_ids(spark: Any, folder: Path) -> None:  # noqa: F811
    table = spark.createDataFrame([("a", "집에 간다"), ("b", None), ("c", "")], "key string, text string")
    found = {row["key"]: row["ids"] for row in source.encode(table, folder).collect()}
    assert found == {"a": list(Tokenizer.load(folder).encode("집에 간다").ids), "b": None, "c": []}
    with pytest.raises(UsageError, match='a column "key" already'):
        source.encode(table, folder, ids="key")


@pytest.mark.slow
def test_files_that_have_not_changed_begin_no_task(
    spark: Any,  # noqa: F811
    folder: Path,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, target = tmp_path / "글 1.txt", tmp_path / "out" / "ids"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = (spark, [str(tmp_path / "글*.txt")], target, folder)
    source.encode_files(*given)
    assert rows_of(target) == expected(folder, lines)
    with monkeypatch.context() as patch:
        patch.setattr(source, "read_text", lambda *_, **__: pytest.fail("the text was read again"))
        before = (target / "manifest.json").read_bytes()
        assert len(source.encode_files(*given)) == len(TokenFiles.open(target))
        assert (target / "manifest.json").read_bytes() == before
    os.utime(text, (1, 1))  # touched: read again, and nothing is made
    with monkeypatch.context() as patch:
        patch.setattr(source.Writer, "_made", lambda *_: pytest.fail("a shard was made again"))
        inodes = {file.name: file.stat().st_ino for file in target.glob("shard-*")}
        source.encode_files(*given)
        assert inodes == {file.name: file.stat().st_ino for file in target.glob("shard-*")}
    (tmp_path / "글2.txt").write_text("하나 더\n", encoding="utf-8")
    source.encode_files(*given)
    assert rows_of(target) == expected(folder, [*lines, "하나 더"])
    harmed = next(target.glob("shard-00000.npy"))
    spoilt = harmed.read_bytes()[:-1] + b"?"
    harmed.write_bytes(spoilt)
    source.encode_files(*given)  # the disk is looked at, not the manifest alone
    assert harmed.read_bytes() == spoilt  # other hands changed it, so it stays (law 12), and is listed no more
    harmed.unlink()
    assert rows_of(target) == expected(folder, [*lines, "하나 더"])


@pytest.mark.slow
def test_a_corrupt_file_in_the_middle_leaves_no_folder(spark: Any, folder: Path, tmp_path: Path) -> None:  # noqa: F811
    for name in "ac":
        (tmp_path / f"{name}.txt").write_text("집에 간다\n" * 20, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(b"\x1f\x8b no gzip")
    target = tmp_path / "out" / "ids"
    with pytest.raises(InputError, match="gzip"):
        source.encode_files(spark, [str(tmp_path)], target, folder)
    assert not target.exists()
    (tmp_path / "b.txt.gz").unlink()
    source.encode_files(spark, [str(tmp_path)], target, folder)
    assert rows_of(target) == expected(folder, ["집에 간다"] * 40)
