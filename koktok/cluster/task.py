"""The tasks of a count on Spark: documents in, rows of the table of words out.

They run in Spark's Python workers and count as one machine does (`koktok.count.shards.tables_of`), with as much text in memory
at a time.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from koktok.count.shards import SHARD, tables_of
from koktok.errors import InputError
from koktok.text.blocks import Block
from koktok.text.documents import LIMBS, document_hashes, hash_sum, held_by_document
from koktok.text.records import ReadReport, block_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from koktok.count.shards import Text


TEXT, SUMS, WORDS, RUNS = "text", 0, 1, 2
"""The column of documents, and the kinds of rows of a count: sums of a source, words, runs of words."""

LINES, BAD = "lines", "bad"
"""The sums of a source, beside the limbs of its signature, which are named by their numbers."""

NUMBERS = ("n", "documents", "held")
SourceKind = Literal["text", "jsonl", "column"]

_OUT = 1 << 16
"""Rows that are handed to Spark at once."""


def count(
    batches: Iterable[pa.RecordBatch], *, holdout: float, field: str | None, runs: bool, by_source: bool
) -> Iterator[pa.RecordBatch]:
    """Count documents: rows of kind, source ('' unless `by_source`), word, n, documents, held."""
    import pyarrow as pa

    schema = pa.schema(
        [("kind", pa.int8()), ("source", pa.string()), ("word", pa.string())] + [(name, pa.int64()) for name in NUMBERS]
    )
    for kind, source, table in _tables(batches, holdout, field, runs=runs, by_source=by_source):
        numbers = [
            (pl.col(name) if name in table.columns else pl.lit(0)).cast(pl.Int64).alias(name) for name in NUMBERS
        ]
        rows = table.select(pl.lit(kind, pl.Int8).alias("kind"), pl.lit(source).alias("source"), "word", *numbers)
        for part in rows.iter_slices(_OUT):
            yield from part.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()


def _tables(
    batches: Iterable[pa.RecordBatch], holdout: float, field: str | None, *, runs: bool, by_source: bool
) -> Iterator[tuple[int, str, pl.DataFrame]]:
    """Count documents in parts of some 16 MB, and finally sum up the lines and signatures of their sources."""
    reports: dict[str, ReadReport] = {}
    limbs: dict[str, NDArray[np.uint64]] = {}
    waiting: dict[str, Text] = {}
    size = 0

    def counted() -> Iterator[tuple[int, str, pl.DataFrame]]:
        for source, text in waiting.items():
            for kind, table in zip((WORDS, RUNS), tables_of(text, runs=runs), strict=False):
                yield kind, source, table
        waiting.clear()

    for source, block in documents_of(batches, field, reports):
        digests = document_hashes(block.raw_documents())
        limbs[source] = limbs.get(source, np.zeros(LIMBS, np.uint64)) + hash_sum(digests)
        held = held_by_document(block, digests, holdout)
        reports[source].lines += block.n_lines
        waiting.setdefault(source if by_source else "", []).append((block, held))
        size += len(block.data)
        if size >= SHARD:
            yield from counted()
            size = 0
    yield from counted()
    sums: dict[str, int] = {}
    for source, report in reports.items():
        sums |= {f"{LINES} {source}": report.lines, f"{BAD} {source}": report.bad_lines}
        sums |= {f"{i} {source}": limb for i, limb in enumerate(limbs.get(source, np.zeros(LIMBS, np.uint64)).tolist())}
    if sums:
        yield (
            SUMS,
            "",
            pl.DataFrame({"word": list(sums), "n": list(sums.values())}, {"word": pl.String, "n": pl.UInt64}),
        )


def documents_of(
    batches: Iterable[pa.RecordBatch], field: str | None, reports: dict[str, ReadReport]
) -> Iterator[tuple[str, Block]]:
    """Parse rows of `read_text` into documents by source; undecodable ones are counted in `reports`."""
    for batch in batches:
        texts = batch.column(TEXT).to_pylist()
        begin = 0
        for (source, kind), rows in _runs_of(batch.column("source"), batch.column("kind")):
            end = begin + rows
            report = reports.setdefault(source, ReadReport())
            try:
                block = block_of(texts[begin:end], kind, field, report, source)
            except InputError:
                _raise_with_record(texts[begin:end], kind, field, source)
                raise
            begin = end
            if block.data:
                yield source, block


def _runs_of(sources: pa.Array, kinds: pa.Array) -> Iterator[tuple[tuple[str, SourceKind], int]]:
    """Group consecutive rows of one source and kind; most batches are one such group."""
    if len(sources) and len(sources.unique()) == len(kinds.unique()) == 1:
        yield (sources[0].as_py(), kinds[0].as_py()), len(sources)
        return
    for key, rows in groupby(zip(sources.to_pylist(), kinds.to_pylist(), strict=True)):
        yield key, sum(1 for _ in rows)


def _raise_with_record(texts: Sequence[bytes | None], kind: SourceKind, field: str | None, source: str) -> None:
    """Raise the error of the first bad record with its text, because lines have no numbers on Spark."""
    for text in texts:
        try:
            block_of([text], kind, field, ReadReport(), source)
        except InputError as error:
            shown = (text or b"")[:120].decode("utf-8", "replace")
            why = str(error).partition("\nhint: ")[0].replace(", line 1", "")
            raise InputError(f"{why}; the record: {shown}", hint=f"grep -nF {shlex.quote(shown[:60])} FILES") from None


# ── on the way to the driver ──────────────────────────────────────────────────────────────────────────────────────────


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack sorted rows of a count into rows of kind and table: Spark brings whole tables to the driver, and single rows slowly."""
    import pyarrow as pa

    for batch in batches:
        rows = pl.DataFrame(pa.Table.from_batches([batch]))
        for (kind,), table in rows.group_by("kind", maintain_order=True):
            columns = table.select("word", pl.col(NUMBERS).cast(pl.UInt64))
            yield pa.record_batch([pa.array([kind], pa.int8()), pa.array([packed(columns)])], ["kind", "packed"])


def packed(table: pl.DataFrame) -> bytes:
    """Return a table as one value."""
    out = io.BytesIO()
    table.write_ipc_stream(out, compression="lz4")
    return out.getvalue()


def unpacked(value: bytes) -> pl.DataFrame:
    """Return the table that `packed` packed."""
    return pl.read_ipc_stream(io.BytesIO(value))
