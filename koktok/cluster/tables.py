"""Tables as single values: Spark moves, keeps and orders them, and never looks at their rows.

The packed table, an Arrow stream in a binary column. A row of words costs the JVM a string, a hash and a place in
three sorts; a table of 200,000 rows costs it a copy. `python -m eval.cluster` tells Java's share.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame


ROWS = 1 << 18
"""Rows of a table at most: some 10 MB."""

PLACED = "place int, packed binary"
"""Tables and the order in which they want to lie."""


def packed(table: pl.DataFrame) -> bytes:
    """A table as one value.

    Examples
    --------
    >>> import polars as pl
    >>> unpacked(packed(pl.DataFrame({"word": ["집"], "n": [2]}))).rows()
    [('집', 2)]
    """
    import polars as pl

    out = io.BytesIO()
    # Strings with offsets: of views, a slice would carry the strings of the whole.
    table.write_ipc_stream(out, compression="lz4", compat_level=pl.CompatLevel.oldest())
    return out.getvalue()


def unpacked(value: bytes) -> pl.DataFrame:
    """The table that such a value holds."""
    import polars as pl

    return pl.read_ipc_stream(io.BytesIO(value))


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows of batches, a tuple each."""
    return (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))


def placed(tables: Iterable[tuple[int, pl.DataFrame]]) -> Iterator[pa.RecordBatch]:
    """Rows of `PLACED`, one at a time."""
    import pyarrow as pa

    for place, table in tables:
        yield pa.record_batch(
            [pa.array([place], pa.int32()), pa.array([packed(table)], pa.binary())], ["place", "packed"]
        )


def gathered(tables: DataFrame) -> Generator[tuple[int, pl.DataFrame], None, None]:
    """Tables made by all tasks at once, then handed to the driver one after the other, in the order of the partitions."""
    from pyspark import StorageLevel

    kept = tables.persist(StorageLevel.DISK_ONLY)
    try:
        kept.count()
        for row in kept.toLocalIterator(prefetchPartitions=True):
            yield row["place"], unpacked(row["packed"])
    finally:
        kept.unpersist()
