"""Counting on Spark: split, group by, sum, with koktok's own rules for lines and words in every task.

Each task counts its documents in parts of some 16 MB, as one machine does (`koktok.count.counting`),
and the tables are added up, because a count is a relation: word, group by, sum. How many lines there were, how many of them
were bad and what signs a source are sums as well, so they travel as rows of the same table, and a task that is run again or
twice changes nothing. No order is needed anywhere: documents are held out and signed one by one.

For a table of the session's own Spark adds up, row by row; for a file koktok does, table by table (`koktok.cluster.tables`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok import errors
from koktok.cluster.tables import PLACED, gathered
from koktok.cluster.task import BAD, LINES, NUMBERS, RUNS, TEXT, TOLD, WORDS, Kind
from koktok.errors import InputError, MissingExtraError, UsageError
from koktok.text.records import ReadReport

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


JAVA = "apt-get install openjdk-17-jre-headless"
"""How Debian gets what Spark runs on; Java 21 does as well."""

_COUNTED = "kind tinyint, source string, word string, n bigint, documents bigint, held bigint"
_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Set to 16 MB where nobody has set it: a batch is 10,000 rows, which of books are gigabytes."""

_SHARE_OF_BAD = 0.3
"""More bad lines than that, and what was read is no text; of a file `koktok.text.records` says so by its bytes."""

_PACKED: dict[Kind, tuple[str, ...]] = {
    "text": ("txt", "md"),
    "jsonl": ("jsonl", "ndjson"),
    "column": ("parquet",),
}
_COMPRESSED = ("", ".gz", ".bz2", ".zst")


# ── sessions and errors ───────────────────────────────────────────────────────────────────────────────────────────────


def session(master: str | None = None, *, name: str = "koktok", **options: str) -> SparkSession:
    """The Spark session of this process: the one that runs, or the one that `spark-submit` or `master` asks for."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark") from None
    if (running := SparkSession.getActiveSession()) is not None:
        return running
    if "SPARK_REMOTE" not in os.environ and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise InputError("Spark wants Java 17 or 21, and there is none here", hint=JAVA)
    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    for key, value in options.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # the workers are this Python's, not the one that the shell finds
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It is Arrow that is used, and not pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    with told_plainly():
        spark = builder.getOrCreate()
    with suppress(PySparkException):  # a remote session has no context
        conf = spark.sparkContext.getConf()
        if not conf.contains("spark.log.level"):
            spark.sparkContext.setLogLevel("ERROR")
        if not conf.contains(_BATCH):
            spark.conf.set(_BATCH, str(16 << 20))
    return spark


@contextmanager
def told_plainly() -> Iterator[None]:
    """Errors of koktok that a task raised come out of Spark's as what they are, others of Spark as an InputError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        known = "|".join(name for name in errors.__all__ if name.endswith("Error"))
        if found := re.findall(rf"koktok\.errors\.({known}): (.*?)(?:\nhint: (.*))?(?:\n\n|\n\s+at |\Z)", text, re.S):
            kind, message, hint = found[0]
            raise getattr(errors, kind)(message.strip(), hint=hint.strip()) from error
        python = re.findall(r"^\s*([\w.]*(?:Error|Exception): .*)$", text.partition("Traceback")[2], re.M)
        java = re.findall(r"^Caused by: (?:[\w$]+\.)*(.*)$", text, re.M)
        raise InputError(f"Spark: {(python or java[-1:] or text.strip().splitlines())[0][:500]}") from error


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_text(spark: SparkSession, paths: Sequence[str], *, field: str | None = None) -> DataFrame:
    """Files of text, of JSON lines and of Parquet as one table for `count_to_files` and its like."""
    from pyspark.sql import functions as f

    tables: list[DataFrame] = []
    seen: dict[str, int] = {}
    for path in paths:
        stem = path.rstrip("/").rsplit("/", 1)[-1].split(".")[0]
        seen[stem] = seen.get(stem, 0) + 1
        name = stem if seen[stem] == 1 else f"{stem}#{seen[stem]}"
        for kind, table in _tables(spark, path, field):
            tables.append(table.select(f.lit(name).alias("source"), f.lit(kind).alias("kind"), TEXT))
    whole, *others = tables
    for table in others:
        whole = whole.unionAll(table)
    return whole


def _tables(spark: SparkSession, path: str, field: str | None) -> Iterator[tuple[Kind, DataFrame]]:
    """What lies at a path, by kind."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    uri, kinds, given = _kinds(path)
    found = 0
    for kind in kinds:
        reader = _reader(spark, kind, given=given)
        try:
            if kind == "column":
                table = reader.parquet(uri)
                if (wanted := field or TEXT).split(".")[0] not in table.columns and wanted not in table.columns:
                    raise InputError(f'`{path}` has no column "{wanted}"; it has: {", ".join(table.columns)}')
                column = f.col(f"`{wanted}`" if wanted in table.columns else wanted)
            else:
                table = reader.option("lineSep", "\n").text(uri)
                if not given and not table.inputFiles():
                    continue
                column = f.col("value")
        except AnalysisException as error:
            if not given and kind == "column" and "PATH_NOT_FOUND" not in str(error):  # no Parquet below the folder
                continue
            raise InputError(f"`{path}` cannot be read: {str(error).splitlines()[0]}", hint=f"ls {path}") from error
        found += 1
        yield kind, table.select(column.cast("binary").alias(TEXT))
    if not found:
        raise InputError(f"there is no file at `{path}` that koktok reads on Spark (.txt .md .jsonl .ndjson .parquet)")


def _kinds(path: str) -> tuple[str, list[Kind], bool]:
    """A path as Spark wants it, what may lie there, and whether the path itself says so."""
    suffix = re.search(r"\.([a-z]+)(?:\.gz|\.bz2|\.zst)?$", path.lower())
    kinds = [kind for kind, endings in _PACKED.items() if suffix and suffix[1] in endings]
    if suffix and suffix[1] in ("csv", "tsv", "json", "html", "xz"):
        raise UsageError(
            f"`{path}` is nothing that koktok reads on Spark", hint="spark.read.csv(...).write.parquet(...)"
        )
    return uri_of(path), kinds or list(_PACKED), bool(kinds)


def _reader(spark: SparkSession, kind: Kind, *, given: bool) -> DataFrameReader:
    """A reader of the files of a kind."""
    if given:
        return spark.read
    endings = [end + ("" if kind == "column" else packed) for end in _PACKED[kind] for packed in _COMPRESSED]
    reader = spark.read.option("recursiveFileLookup", "true")
    return reader.option("pathGlobFilter", f"*.{{{','.join(dict.fromkeys(endings))}}}")


def fingerprint(spark: SparkSession, paths: Sequence[str], field: str | None = None) -> str:
    """SHA-256 over path, size and time of all files that `read_text` would read, which are not opened; parameters as there."""
    from pyspark.errors import AnalysisException

    found: list[tuple[str, int, str]] = []
    for path in paths:
        uri, kinds, given = _kinds(path)
        for kind in kinds:
            try:
                files = _reader(spark, kind, given=given).format("binaryFile").load(uri)
                found += [(row[0], row[2], str(row[1])) for row in files.drop("content").collect()]
            except AnalysisException as error:
                raise InputError(f"`{path}` cannot be read: {str(error).splitlines()[0]}", hint=f"ls {path}") from error
    return hashlib.sha256(json.dumps([sorted(found), field]).encode()).hexdigest()


def uri_of(path: str | Path) -> str:
    """A path as Spark wants it: a local one with its scheme, its characters as they are; a URI as it is.

    Examples
    --------
    >>> uri_of("s3a://bucket/crawl/"), uri_of("/글/a b*.txt")
    ('s3a://bucket/crawl/', 'file:///글/a b*.txt')
    """
    return str(path) if re.match(r"[a-z][a-z0-9+.-]+:", str(path)) else f"file://{Path(path).absolute()}"


def as_text(df: DataFrame, column: str, source: str | None) -> DataFrame:
    """Any table of documents as `read_text` gives them."""
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
    """The words of documents with how often they occur: columns `word`, `n` and `held`."""
    counted = _summed(as_text(df, column, source), weights, holdout=holdout, field=field, runs=False)
    return counted.filter(f"kind = {WORDS}").select("word", "n", "held")


def count_runs(
    df: DataFrame,
    column: str = TEXT,
    *,
    source: str | None = None,
    weights: Mapping[str, float] | None = None,
    holdout: float = 0.0,
    field: str | None = None,
) -> DataFrame:
    """Runs of words, for superwords: columns `word`, `n`, `documents` and `held`; parameters as `count_words`."""
    counted = _summed(as_text(df, column, source), weights, holdout=holdout, field=field, runs=True)
    return counted.filter(f"kind = {RUNS}").select("word", *NUMBERS)


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
    force: bool = True,
) -> ReadReport:
    """Count documents into the files that `koktok count --holdout-by documents` writes, byte for byte.

    The text is read once. Sorted tables come to the driver a batch at a time, so it wants little memory, and the file is
    written where the driver runs.
    """
    from koktok.count.count_files import About, Counted, is_count_file, runs_file, write_counts
    from koktok.files import check_file

    files = {WORDS: Path(out), **({RUNS: runs_file(Path(out))} if runs else {})}
    for file in files.values():
        check_file(file, is_count_file)
    texts = as_text(df, column, source)
    with told_plainly(), _added_up(texts, weights, holdout=holdout, field=field, runs=runs) as parts:
        tables = groupby(parts, key=itemgetter(0))
        first = next(tables, None)
        report = _told(part for _, part in first[1]) if first else SparkReport()
        lines = report.lines_by_source
        covered = tuple(Counted(name, digest, lines[name], holdout) for name, digest in sorted(report.digests.items()))
        left = dict(files)
        for kind, found in tables:
            said = About("runs" if kind == RUNS else "words", covered)
            write_counts(left.pop(kind), (part for _, part in found), said, min_count=min_count, force=force)
        for kind, file in left.items():  # no text, no words
            write_counts(
                file, (), About("runs" if kind == RUNS else "words", covered), min_count=min_count, force=force
            )
    return report


@dataclass
class SparkReport(ReadReport):
    """What was read, source by source."""

    lines_by_source: dict[str, int] = field(default_factory=dict)


def _on_workers(df: DataFrame, work: str, schema: str, **given: Any) -> DataFrame:
    """`df.mapInArrow` with a function of `koktok.cluster.task`, by name.

    A task has one core, and polars is told so before it is loaded; so nothing that Spark sends may load it.
    """

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from koktok.cluster import task

        found: Iterator[pa.RecordBatch] = getattr(task, work)(batches, **given)
        return found

    return df.mapInArrow(mapped, schema)


def _summed(
    texts: DataFrame, weights: Mapping[str, float] | None, *, holdout: float, field: str | None, runs: bool
) -> DataFrame:
    """The plan in Spark's own terms: rows of all kinds, added up."""
    from pyspark.sql import functions as f

    given = {"holdout": _share(holdout), "field": field, "runs": runs, "apart": bool(weights)}
    sums = [f.sum(name).alias(name) for name in NUMBERS]
    table = _on_workers(texts, "counted_rows", _COUNTED, **given).groupBy("kind", "source", "word").agg(*sums)
    if not weights:
        return table.drop("source")
    weight = f.create_map(*[f.lit(part) for pair in weights.items() for part in pair])
    times = f.when(f.col("kind") == TOLD, 1.0).otherwise(f.coalesce(weight[f.col("source")], f.lit(1.0)))
    n = f.when(times == 1.0, f.col("n")).otherwise(f.rint(f.col("n") * times).cast("bigint"))
    table = table.withColumn("n", n)
    table = table.withColumn("documents", f.when(f.col("n") > 0, f.col("documents")).otherwise(0))
    return table.groupBy("kind", "word").agg(*sums)


@contextmanager
def _added_up(
    texts: DataFrame, weights: Mapping[str, float] | None, *, holdout: float, field: str | None, runs: bool
) -> Iterator[Iterator[tuple[int, pl.DataFrame]]]:
    """The same as tables that koktok adds up: kinds, each with its table by code point, in parts.

    Tasks count, and keep their tables; the driver looks at samples of the words and cuts them into ranges; tasks add up range
    by range.
    """
    import polars as pl
    from pyspark import StorageLevel

    from koktok.cluster.task import PARTS, PIECES, ranges_of

    given = {"holdout": _share(holdout), "field": field, "runs": runs, "apart": bool(weights)}
    counted = _on_workers(texts, "counted_parts", PARTS, **given).persist(StorageLevel.DISK_ONLY)
    try:
        ranges = ranges_of(pl.DataFrame(counted.select("kind", "words", "sample").toArrow()))
        pieces = _on_workers(counted.select("kind", "source", "packed"), "cut", PIECES, ranges=ranges)
        sums = _on_workers(pieces.orderBy("place"), "added_up", PLACED, weights=dict(weights or {}))
        with closing(gathered(sums)) as tables:
            yield ((ranges[place][0], table) for place, table in tables)
    finally:
        counted.unpersist()


def _share(holdout: float) -> float:
    if not 0 <= holdout <= 1:
        raise UsageError(f"a share of {holdout} came; 0 to 1 was wanted", hint="holdout=0.05")
    return holdout


def _told(parts: Iterable[pl.DataFrame]) -> SparkReport:
    """What the rows that sources tell add up to."""
    from koktok.text.documents import LIMBS, digest_of

    found: dict[str, dict[str, int]] = {}
    for part in parts:
        for key, n in part.select("word", "n").iter_rows():
            what, _, source = key.partition(" ")
            found.setdefault(source, {})[what] = n
    report = SparkReport()
    for source, told in sorted(found.items()):
        lines, bad = told.get(LINES, 0), told.get(BAD, 0)
        if bad > _SHARE_OF_BAD * (bad + lines):
            raise InputError(f"the source `{source}` is no text: {bad:,} of its {bad + lines:,} lines are not UTF-8")
        report.lines += lines
        report.lines_by_source[source] = lines
        report.bad_lines += bad
        report.bad_places += [f"{source} ({bad:,})"] * (bad > 0)
        report.digests[source] = digest_of(told.get(str(i), 0) for i in range(LIMBS))
    return report
