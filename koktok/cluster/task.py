"""What a task of a count does: documents in, the rows of its tables out.

This file adds: a machine among many. It runs in Spark's Python workers; the counting is that of one machine
(`koktok.count.counting.tables_of`), with as much text in memory at a time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from koktok.count.counting import SHARD, documents_in, flat, tables_of
from koktok.errors import InputError
from koktok.text.documents import LIMBS, held_documents, limbs_of, signed
from koktok.text.records import ReadReport, given_records

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["BAD", "LINES", "NUMBERS", "RUNS", "TEXT", "TOLD", "WORDS", "Kind", "counted", "documents_of"]

TEXT, TOLD, WORDS, RUNS = "text", 0, 1, 2
"""The column of documents, and the kinds of rows of a count: what sources tell, words, runs of words."""

LINES, BAD = "lines", "bad"
"""What a source tells, beside the words of its digest by their number."""

NUMBERS = ("n", "documents", "held")
Kind = Literal["text", "jsonl", "column"]

_OUT = 1 << 16
"""Rows that are handed to Spark at once."""


def counted(
    batches: Iterable[pa.RecordBatch], *, holdout: float, field: str | None, runs: bool, apart: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a count: kind, source, word, n, documents, held.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Rows of `koktok.cluster.spark.read_text`.
    holdout, field, runs
        As `koktok.cluster.spark.count_to_files`.
    apart : bool
        Keep the words of sources apart, which weights want.
    """
    reports: dict[str, ReadReport] = {}
    limbs: dict[str, NDArray[np.uint64]] = {}
    waiting: dict[str, list[tuple[bytes, NDArray[np.bool_], NDArray[np.bool_]]]] = {}
    size = 0
    for source, documents in documents_of(batches, field, reports):
        data, ends = flat(documents)
        digests = signed(documents_in(data, ends))
        limbs[source] = limbs.get(source, np.zeros(LIMBS, np.uint64)) + limbs_of(digests)
        held = np.repeat(held_documents(digests, holdout), np.diff(np.flatnonzero(ends), prepend=-1))
        reports[source].lines += len(ends)
        waiting.setdefault(source if apart else "", []).append((data, held, ends))
        size += len(data)
        if size >= SHARD:
            yield from _tables(waiting, runs=runs)
            size = 0
    yield from _tables(waiting, runs=runs)
    told = {
        f"{what} {source}": n
        for source, report in reports.items()
        for what, n in (
            (LINES, report.lines),
            (BAD, report.bad_lines),
            *enumerate(limbs.get(source, np.zeros(LIMBS, np.uint64)).tolist()),
        )
    }
    if told:
        yield from _rows(pl.DataFrame({"word": list(told), "n": list(told.values())}), TOLD, "")


def _tables(
    waiting: dict[str, list[tuple[bytes, NDArray[np.bool_], NDArray[np.bool_]]]], *, runs: bool
) -> Iterator[pa.RecordBatch]:
    """What waits, counted."""
    for source, texts in waiting.items():
        data, held, ends = zip(*texts, strict=True)
        texts.clear()
        tables = tables_of(b"".join(data), np.concatenate(held), np.concatenate(ends), runs=runs)
        del data
        for kind, table in zip((WORDS, RUNS), tables, strict=False):
            yield from _rows(table, kind, source)
    waiting.clear()


def _rows(table: pl.DataFrame, kind: int, source: str) -> Iterator[pa.RecordBatch]:
    """A table in the columns of a count."""
    import pyarrow as pa

    numbers = [(pl.col(name) if name in table.columns else pl.lit(0)).cast(pl.Int64).alias(name) for name in NUMBERS]
    shaped = table.select(pl.lit(kind, pl.Int8).alias("kind"), pl.lit(source).alias("source"), "word", *numbers)
    schema = pa.schema(
        [("kind", pa.int8()), ("source", pa.string()), ("word", pa.string())] + [(name, pa.int64()) for name in NUMBERS]
    )
    for part in shaped.iter_slices(_OUT):
        yield from part.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()


def documents_of(
    batches: Iterable[pa.RecordBatch], field: str | None, reports: dict[str, ReadReport]
) -> Iterator[tuple[str, Any]]:
    """Sources with some of their documents, a `koktok.text.records.Batch`; what is bad is counted in `reports`.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Rows of `read_text`.
    field : str, optional
    reports : dict
        By source; filled in.
    """
    for batch in batches:
        texts = batch.column(TEXT).to_pylist()
        begin = 0
        for (source, kind), rows in _runs_of(batch.column("source"), batch.column("kind")):
            end = begin + rows
            report = reports.setdefault(source, ReadReport())
            try:
                found = given_records(texts[begin:end], kind, field, report, source)
            except InputError:
                _tell_which(texts[begin:end], kind, field, source)
                raise
            begin = end
            if found:
                yield source, found


def _runs_of(sources: pa.Array, kinds: pa.Array) -> Iterator[tuple[tuple[str, Kind], int]]:
    """Sources and kinds of consecutive rows, and how many these are; of most batches there is one."""
    if len(sources) and len(sources.unique()) == len(kinds.unique()) == 1:
        yield (sources[0].as_py(), kinds[0].as_py()), len(sources)
        return
    for key, rows in groupby(zip(sources.to_pylist(), kinds.to_pylist(), strict=True)):
        yield key, sum(1 for _ in rows)


def _tell_which(texts: Sequence[bytes | None], kind: Kind, field: str | None, source: str) -> None:
    """Raise the error of the first bad record, with its text: many machines number no lines."""
    for text in texts:
        try:
            given_records([text], kind, field, ReadReport(), source)
        except InputError as error:
            shown = (text or b"")[:120].decode("utf-8", "replace")
            why = str(error).partition("\nhint: ")[0].replace(", line 1", "")
            raise InputError(f"{why}; the record: {shown}", hint=f"grep -nF {shlex.quote(shown[:60])} FILES") from None
