"""What a task of a count does: documents in, the rows of its tables out.

A machine among many. It runs in Spark's Python workers; the counting is that of one machine
(`koktok.count.counting.tables_of`), with as much text in memory at a time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from koktok.cluster.tables import ROWS, packed, placed, rows_of, unpacked
from koktok.count.counting import PART, SHARD, Shard, borders, documents_in, flat, parts, tables_of, weighed
from koktok.count.counts import summed
from koktok.errors import InputError
from koktok.text.documents import LIMBS, held_documents, limbs_of, signed
from koktok.text.records import ReadReport, given_records

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


TEXT, TOLD, WORDS, RUNS = "text", 0, 1, 2
"""The column of documents, and the kinds of rows of a count: what sources tell, words, runs of words."""

LINES, BAD = "lines", "bad"
"""What a source tells, beside the words of its digest by their number."""

NUMBERS = ("n", "documents", "held")
Kind = Literal["text", "jsonl", "column"]

PARTS = "kind tinyint, source string, words bigint, sample array<string>, packed binary"
"""Parts of tables, as tasks hand them on."""

PIECES = "place int, source string, packed binary"
"""Parts cut at the borders of ranges."""

Table = tuple[int, str | None, pl.DataFrame]
"""A kind, a source ('' where they are added up, None where nothing is weighed), and its table, by code point."""

_OUT = 1 << 16
"""Rows that are handed to Spark at once."""

_STEP = 1 << 12
"""Words of a part for one of its sample: the driver looks at all samples, of a terabyte some three million."""


def _counted(
    batches: Iterable[pa.RecordBatch], holdout: float, field: str | None, *, runs: bool, apart: bool
) -> Iterator[Table]:
    """The tables of a task's documents: of some 16 MB each, and of what sources tell."""
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
        schema = {"word": pl.String, "n": pl.UInt64}
        yield TOLD, None, pl.DataFrame({"word": list(told), "n": list(told.values())}, schema=schema)


def _tables(
    waiting: dict[str, list[tuple[bytes, NDArray[np.bool_], NDArray[np.bool_]]]], *, runs: bool
) -> Iterator[Table]:
    """What waits, counted."""
    for source, texts in waiting.items():
        data, held, ends = zip(*texts, strict=True)
        texts.clear()
        tables = tables_of(b"".join(data), np.concatenate(held), np.concatenate(ends), runs=runs)
        del data
        for kind, table in zip((WORDS, RUNS), tables, strict=False):
            yield kind, source, table
    waiting.clear()


# ── rows that Spark adds up ───────────────────────────────────────────────────────────────────────────────────────────


def counted_rows(
    batches: Iterable[pa.RecordBatch], *, holdout: float, field: str | None, runs: bool, apart: bool
) -> Iterator[pa.RecordBatch]:
    """Documents to rows: kind, source, word, n, documents, held."""
    import pyarrow as pa

    schema = pa.schema(
        [("kind", pa.int8()), ("source", pa.string()), ("word", pa.string())] + [(name, pa.int64()) for name in NUMBERS]
    )
    for kind, source, table in _counted(batches, holdout, field, runs=runs, apart=apart):
        numbers = [(pl.col(name) if name in table.columns else pl.lit(0)).cast(pl.Int64) for name in NUMBERS]
        numbers = [number.alias(name) for number, name in zip(numbers, NUMBERS, strict=True)]
        shaped = table.select(
            pl.lit(kind, pl.Int8).alias("kind"), pl.lit(source, pl.String).alias("source"), "word", *numbers
        )
        for part in shaped.iter_slices(_OUT):
            yield from part.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()


# ── tables that koktok adds up ────────────────────────────────────────────────────────────────────────────────────────


def counted_parts(
    batches: Iterable[pa.RecordBatch], *, holdout: float, field: str | None, runs: bool, apart: bool
) -> Iterator[pa.RecordBatch]:
    """Documents to tables, added up as far as memory allows, each with a sample of its words: rows of `PARTS`.

    Parameters as `counted_rows`.
    """
    held: dict[tuple[int, str | None], list[Shard]] = {}
    for kind, source, table in _counted(batches, holdout, field, runs=runs, apart=apart):
        held.setdefault((kind, source), []).append(Shard.of(table))
        if sum(shard.rows for shards in held.values() for shard in shards) >= PART:
            yield from _handed(held)
    yield from _handed(held)


def _handed(held: dict[tuple[int, str | None], list[Shard]]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = pa.schema(
        [
            ("kind", pa.int8()),
            ("source", pa.string()),
            ("words", pa.int64()),
            ("sample", pa.list_(pa.string())),
            ("packed", pa.binary()),
        ]
    )
    for (kind, source), shards in held.items():
        for part in parts(shards):
            for piece in part.iter_slices(ROWS):
                sample = piece["word"].gather_every(_STEP).to_list()
                row = {"kind": kind, "source": source, "words": len(piece), "sample": sample, "packed": packed(piece)}
                yield pa.RecordBatch.from_pylist([row], schema)
    held.clear()


def ranges_of(index: pl.DataFrame) -> list[tuple[int, str]]:
    """Where to cut all words so that a range has some two million rows: kinds, and the first word that may lie in each.

    Examples
    --------
    >>> ranges_of(pl.DataFrame({"kind": [1], "words": [5_000_000], "sample": [["가", "나", "다"]]}))
    [(1, ''), (1, '나'), (1, '다')]
    """
    return [
        (kind, low)
        for (kind,), rows in sorted(index.group_by("kind"))
        for low in ("", *borders(rows["sample"].explode(), int(rows["words"].sum())))
    ]


def cut(batches: Iterable[pa.RecordBatch], *, ranges: Sequence[tuple[int, str]]) -> Iterator[pa.RecordBatch]:
    """Parts (kind, source, packed) cut at the borders of ranges, to `PIECES`; places are the numbers of ranges."""
    import pyarrow as pa

    schema = pa.schema([("place", pa.int32()), ("source", pa.string()), ("packed", pa.binary())])
    for kind, source, value in rows_of(batches):
        first = ranges.index((kind, ""))
        lows = [low for k, low in ranges if k == kind]
        table = unpacked(value)
        at = [*table["word"].search_sorted(pl.Series(lows), side="left").to_list(), len(table)]
        for i, (begin, end) in enumerate(pairwise(at)):
            if begin < end:
                piece = {"place": first + i, "source": source, "packed": packed(table[begin:end])}
                yield pa.RecordBatch.from_pylist([piece], schema)


def added_up(batches: Iterable[pa.RecordBatch], *, weights: Mapping[str | None, float]) -> Iterator[pa.RecordBatch]:
    """Pieces, range by range, to the tables of their sums."""
    return placed(_sums(rows_of(batches), weights))


def _sums(
    rows: Iterable[tuple[int, str | None, bytes]], weights: Mapping[str | None, float]
) -> Iterator[tuple[int, pl.DataFrame]]:
    for place, pieces in groupby(rows, key=itemgetter(0)):
        by_source: dict[str | None, list[pl.DataFrame]] = {}
        for _, source, value in pieces:
            by_source.setdefault(source, []).append(unpacked(value))
        sums = [weighed(summed(tables), weights.get(source, 1.0)) for source, tables in by_source.items()]
        for part in (sums[0] if len(sums) == 1 else summed(sums)).iter_slices(ROWS):
            yield place, part


# ── documents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def documents_of(
    batches: Iterable[pa.RecordBatch], field: str | None, reports: dict[str, ReadReport]
) -> Iterator[tuple[str, Any]]:
    """Sources with some of their documents, a `koktok.text.records.Batch`; what is bad is counted in `reports`."""
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
