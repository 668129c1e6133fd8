"""Counting and encoding on Spark: each task works by the code of one machine, and Spark adds up and writes.

A count is a relation, so one plan makes it: documents to rows (kind, source, word, n, documents, held) by `mapInArrow`,
group by, sum. The numbers of lines and the signatures of the sources are sums as well and travel as rows of the same table, so
a task that runs twice changes nothing, and neither does the order of the documents.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from koktok import errors
from koktok.cluster.task import BAD, LINES, NUMBERS, RUNS, SUMS, TEXT, WORDS, SourceKind
from koktok.errors import ArtifactError, InputError, MissingExtraError, UsageError
from koktok.text.kinds import FileKind, kind_of, suffix_of
from koktok.text.names import distinct
from koktok.text.records import ReadReport

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from koktok.tokenizer import TrainedTokenizer


JAVA = "apt-get install openjdk-17-jre-headless"
"""The line that installs Java 17 on Debian; Java 21 serves as well."""

_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Set to 16 MB unless it is configured: Spark's own bound is 10,000 rows, which of books are gigabytes."""

_SHARE_OF_BAD = 0.3
"""A source with a larger share of undecodable lines is not text."""

_SUFFIXES: dict[SourceKind, tuple[str, ...]] = {
    "text": ("txt", "md"),
    "jsonl": ("jsonl", "ndjson"),
    "column": ("parquet",),
}
_COMPRESSED = ("", ".gz", ".bz2", ".zst")


# ── sessions and errors ───────────────────────────────────────────────────────────────────────────────────────────────


def session(master: str | None = None, *, name: str = "koktok", **options: str) -> SparkSession:
    """Return the running Spark session, or start the one that `spark-submit` or `master` describes."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark") from None
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    if "SPARK_REMOTE" not in os.environ and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise InputError("Spark requires Java 17 or 21, and no Java was found", hint=JAVA)
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    for key, value in options.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # the workers run this Python, not the first one on the PATH
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # koktok uses Arrow only, so the warning about pandas does not apply.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with plain_errors():
        spark = builder.getOrCreate()
    with suppress(PySparkException):  # a remote session has no context
        conf = spark.sparkContext.getConf()
        if not conf.contains("spark.log.level"):
            spark.sparkContext.setLogLevel("ERROR")
        if not conf.contains(_BATCH):
            spark.conf.set(_BATCH, str(16 << 20))
    return spark


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise koktok's errors of a task as themselves, and Spark's own as an InputError of one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        names = "|".join(name for name in errors.__all__ if name.endswith("Error"))
        if match := re.search(rf"koktok\.errors\.({names}): (.*?)(?:\nhint: (.*))?(?:\n\n|\n\s+at |\Z)", text, re.S):
            kind, message, hint = match.groups(default="")
            raise getattr(errors, kind)(message.strip(), hint=hint.strip()) from error
        python = re.findall(r"^\s*([\w.]*(?:Error|Exception): .*)$", text.partition("Traceback")[2], re.M)
        java = re.findall(r"^Caused by: (?:[\w$]+\.)*(.*)$", text, re.M)
        raise InputError(f"Spark: {(python or java[-1:] or text.strip().splitlines())[0][:500]}") from error


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_text(spark: SparkSession, paths: Sequence[str], *, field: str | None = None) -> DataFrame:
    """Read files of text, JSON lines and Parquet as one table of documents with their source."""
    from pyspark.sql import functions as f

    names = distinct([path.rstrip("/").rsplit("/", 1)[-1].split(".")[0] for path in paths])
    tables = [
        table.select(f.lit(name).alias("source"), f.lit(kind).alias("kind"), TEXT)
        for name, path in zip(names, paths, strict=True)
        for kind, table in _tables(spark, path, field)
    ]
    return reduce(lambda whole, table: whole.unionAll(table), tables)


def _tables(spark: SparkSession, path: str, field: str | None) -> Iterator[tuple[SourceKind, DataFrame]]:
    """Read the files at one path, a table for each kind."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    uri, n_tables = uri_of(path), 0
    named = _kind(spark, path, uri, field)
    for kind in named or _SUFFIXES:
        reader = spark.read if named else _reader(spark, kind)
        try:
            if kind == "column":
                table = reader.parquet(uri)
                if (wanted := field or TEXT).split(".")[0] not in table.columns and wanted not in table.columns:
                    raise InputError(f'`{path}` has no column "{wanted}"; it has: {", ".join(table.columns)}')
                column = f.col(f"`{wanted}`" if wanted in table.columns else wanted)
            else:
                table = reader.option("lineSep", "\n").text(uri)
                if not named and not table.inputFiles():
                    continue
                column = f.col("value")
        except AnalysisException as error:
            if not named and kind == "column" and "PATH_NOT_FOUND" not in str(error):  # a folder without Parquet
                continue
            raise _unread(path, error) from error
        n_tables += 1
        yield kind, table.select(column.cast("binary").alias(TEXT))
    if not n_tables:
        raise InputError(f"no file at `{path}` that koktok reads on Spark: .txt .md .jsonl .ndjson .parquet")


def _kind(spark: SparkSession, path: str, uri: str, field: str | None) -> list[SourceKind]:
    """Return what a file is, by the rule of all of koktok; nothing for a folder or a pattern, whose files are taken by their endings."""
    from pyspark.errors import AnalysisException

    place = Path(path)
    suffix = ".xz" if place.suffix == ".xz" else suffix_of(place)
    if suffix in (".csv", ".tsv", ".xz"):
        raise UsageError(
            f"koktok does not read `{suffix}` files on Spark: `{path}`", hint="spark.read.csv(...).write.parquet(...)"
        )
    if not re.fullmatch(r"\.[a-z]+", suffix) or "*" in path:
        return []
    if suffix == ".parquet":
        return ["column"]
    try:
        lines = spark.read.option("lineSep", "\n").text(uri)
    except AnalysisException as error:
        raise _unread(path, error) from error
    with plain_errors():
        first = lines.head(1)
    head = f"{first[0].value}\n".encode("utf-8", "replace") if first else b""
    kinds: dict[FileKind, SourceKind] = {"parquet": "column", "jsonl": "jsonl"}
    return [kinds.get(kind_of(place, head, field), "text")]


def _unread(path: str, error: Exception) -> InputError:
    return InputError(f"`{path}` cannot be read: {str(error).splitlines()[0]}", hint=f"ls {path}")


def _reader(spark: SparkSession, kind: SourceKind) -> DataFrameReader:
    """Return a reader of all files of a kind below a folder."""
    suffixes = [end + ("" if kind == "column" else packed) for end in _SUFFIXES[kind] for packed in _COMPRESSED]
    reader = spark.read.option("recursiveFileLookup", "true")
    return reader.option("pathGlobFilter", f"*.{{{','.join(dict.fromkeys(suffixes))}}}")


def uri_of(path: str | Path) -> str:
    """Return a path as Spark expects it: a local one with its scheme, a URI unchanged."""
    return str(path) if re.match(r"[a-z][a-z0-9+.-]+:", str(path)) else f"file://{Path(path).absolute()}"


def _documents(df: DataFrame, column: str, source: str | None) -> DataFrame:
    """Return any table of documents in the columns of `read_text`."""
    from pyspark.sql import functions as f

    if set(df.columns) == {"source", "kind", TEXT}:
        return df
    if column not in df.columns:
        raise UsageError(f'the table has no column "{column}"', hint=f"column={next(iter(df.columns), TEXT)!r}")
    if source is not None and source not in df.columns:
        raise UsageError(f'the table has no column "{source}" of sources', hint="source=None")
    name = f.lit("text") if source is None else f.col(source).cast("string")
    return df.select(
        f.coalesce(name, f.lit("")).alias("source"),
        f.lit("column").alias("kind"),
        f.col(column).cast("binary").alias(TEXT),
    )


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def count_words(
    df: DataFrame,
    column: str = TEXT,
    *,
    source: str | None = None,
    weights: Mapping[str, float] | None = None,
    holdout: float = 0.0,
    field: str | None = None,
) -> DataFrame:
    """Count the words of documents: a table with the columns `word`, `n` and `held`."""
    counted = _counted(_documents(df, column, source), weights, holdout=holdout, field=field, runs=False)
    return counted.filter(f"kind = {WORDS}").select("word", "n", "held")


def count_to_files(
    df: DataFrame,
    out: str | Path,
    column: str = TEXT,
    *,
    source: str | None = None,
    weights: Mapping[str, float] | None = None,
    holdout: float = 0.05,
    field: str | None = None,
    runs: bool = False,
    min_count: int = 1,
    force: bool = False,
) -> ReadReport:
    """Count documents into the files that `koktok count --holdout-by documents` writes, byte for byte.

    The files are written where the driver runs. Sorted tables reach it one at a time, so it needs little memory.
    """
    from koktok.count.count_files import About, Counted, runs_file, write_counts
    from koktok.files import check_file
    from koktok.text.kinds import is_count

    files = {WORDS: Path(out), **({RUNS: runs_file(Path(out))} if runs else {})}
    for file in files.values():
        check_file(file, is_count)
    table = _counted(_documents(df, column, source), weights, holdout=holdout, field=field, runs=runs)
    with plain_errors(), closing(_sorted_tables(table)) as tables:
        by_kind = groupby(tables, key=itemgetter(0))
        first = next(by_kind, None)
        report = _report(part for _, part in first[1]) if first else SparkReport()
        lines = report.lines_by_source
        covered = tuple(Counted(name, digest, lines[name], holdout) for name, digest in sorted(report.digests.items()))

        def write(kind: int, parts: Iterable[pl.DataFrame]) -> None:
            about = About("runs" if kind == RUNS else "words", covered)
            write_counts(files.pop(kind), parts, about, min_count=min_count, force=force)

        for kind, parts in by_kind:
            write(kind, (part for _, part in parts))
        for kind in tuple(files):  # no text, no rows
            write(kind, ())
    return report


@dataclass
class SparkReport(ReadReport):
    """The numbers of lines read, by source."""

    lines_by_source: dict[str, int] = field(default_factory=dict)


def _on_workers(df: DataFrame, work: str, schema: str, **options: Any) -> DataFrame:
    """Apply a function of `koktok.cluster.task`, by name, so that polars is first imported with the threads of a task: one."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from koktok.cluster import task

        return cast("Iterator[pa.RecordBatch]", getattr(task, work)(batches, **options))

    return df.mapInArrow(mapped, schema)


def _counted(
    texts: DataFrame, weights: Mapping[str, float] | None, *, holdout: float, field: str | None, runs: bool
) -> DataFrame:
    """Plan the count: the rows of all tasks, summed by word, and by source first where sources have weights."""
    from pyspark.sql import functions as f

    if not 0 <= holdout <= 1:
        raise UsageError(f"expected a share of 0 to 1, got {holdout}", hint="holdout=0.05")
    schema = "kind tinyint, source string, word string, n bigint, documents bigint, held bigint"
    options = {"holdout": holdout, "field": field, "runs": runs, "by_source": bool(weights)}
    sums = [f.sum(name).alias(name) for name in NUMBERS]
    table = _on_workers(texts, "count", schema, **options).groupBy("kind", "source", "word").agg(*sums)
    if not weights:
        return table
    weight = f.create_map(*[f.lit(part) for pair in weights.items() for part in pair])
    times = f.when(f.col("kind") == SUMS, 1.0).otherwise(f.coalesce(weight[f.col("source")], f.lit(1.0)))
    n = f.when(times == 1.0, f.col("n")).otherwise(f.rint(f.col("n") * times).cast("bigint"))
    table = table.withColumn("n", n)
    table = table.withColumn("documents", f.when(f.col("n") > 0, f.col("documents")).otherwise(0))
    return table.groupBy("kind", "word").agg(*sums)


def _sorted_tables(table: DataFrame) -> Generator[tuple[int, pl.DataFrame], None, None]:
    """Bring a count to the driver in the order of kinds and words, a table at a time, while other tasks are running."""
    from pyspark import StorageLevel

    from koktok.cluster.task import unpacked

    ordered = table.select("kind", "word", *NUMBERS).orderBy("kind", "word")
    kept = _on_workers(ordered, "pack", "kind tinyint, packed binary").persist(StorageLevel.DISK_ONLY)
    try:
        kept.count()
        for row in kept.toLocalIterator(prefetchPartitions=True):
            yield row["kind"], unpacked(row["packed"])
    finally:
        kept.unpersist()


def _report(parts: Iterable[pl.DataFrame]) -> SparkReport:
    """Read the numbers of lines and the signatures of the sources from the rows that hold them."""
    from koktok.text.documents import LIMBS, hash_sum_digest

    numbers: dict[str, dict[str, int]] = {}
    for part in parts:
        for key, n in part.select("word", "n").iter_rows():
            what, _, source = key.partition(" ")
            numbers.setdefault(source, {})[what] = n
    report = SparkReport()
    for source, sums in sorted(numbers.items()):
        lines, bad = sums.get(LINES, 0), sums.get(BAD, 0)
        if bad > _SHARE_OF_BAD * (bad + lines):
            raise InputError(f"the source `{source}` is not text: {bad:,} of its {bad + lines:,} lines are not UTF-8")
        report.lines += lines
        report.lines_by_source[source] = lines
        report.bad_lines += bad
        report.bad_places += [f"{source} ({bad:,})"] * (bad > 0)
        report.digests[source] = hash_sum_digest(sums.get(str(i), 0) for i in range(LIMBS))
    return report


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(
    df: DataFrame,
    tokenizer: TrainedTokenizer | str | Path,
    column: str = TEXT,
    *,
    ids: str = "ids",
    special_tokens: bool = False,
    eos: bool | str = False,
) -> DataFrame:
    """Add a column of ids, null where the text is null; `.write.parquet(...)` writes it wherever Spark can.

    `special_tokens` adds those of the template; `eos` the token after each document, as in `koktok encode --eos`, or the one it names.
    """
    from pyspark.sql import functions as f

    from koktok.tokenizer import TrainedTokenizer

    if column not in df.columns or ids in df.columns:
        what = f'has no column "{column}"' if column not in df.columns else f'already has a column "{ids}"'
        raise UsageError(f"the table {what}; it has: {', '.join(df.columns)}")
    opened = tokenizer if isinstance(tokenizer, TrainedTokenizer) else TrainedTokenizer.load(tokenizer)
    content, digest, after = pickle.dumps(opened), opened.digest(), opened.edge("eos", token=eos)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        tokenizer = _received(content, digest)
        for batch in batches:
            texts = batch.column(column)
            tokens = tokenizer.encode_ids(
                texts.fill_null("").to_pylist(),
                threads=1,
                dtype=np.int32,
                add_special_tokens=special_tokens,
                after=after,
            )
            lists = pa.ListArray.from_arrays(tokens.indptr.astype(np.int32), tokens.ids, mask=texts.is_null())
            yield pa.record_batch([*batch.columns, lists], [*batch.schema.names, ids])

    schema = df.withColumn(ids, f.lit(None).cast("array<int>")).schema
    return df.mapInArrow(work, schema)


@lru_cache(maxsize=2)
def _received(content: bytes, digest: str) -> TrainedTokenizer:
    """Return the tokenizer that the driver sent; a worker keeps it, with the words it has encoded, from task to task."""
    tokenizer = cast("TrainedTokenizer", pickle.loads(content))
    if tokenizer.digest() != digest:
        raise ArtifactError(
            f"the driver sent the tokenizer {digest}, and a worker has {tokenizer.digest()}",
            hint="install the same koktok on driver and workers",
        )
    return tokenizer
