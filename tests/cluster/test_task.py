"""The tasks of a count without Spark: any partitions add up to the tables of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koktok.cluster import task
from koktok.cluster.task import NUMBERS, RUNS, SUMS, TEXT, WORDS, unpacked
from koktok.count.shards import Shards, parts
from koktok.text.blocks import Block

LINES = st.lists(st.text("가나다 .😀", max_size=12), max_size=30)


def batches_of(lines: list[tuple[str, str]], size: int) -> Iterator[Any]:
    """Rows of `read_text` in batches of `size`."""
    for i in range(0, len(lines), size):
        sources, texts = zip(*lines[i : i + size], strict=True)
        columns = {"source": list(sources), "kind": ["text"] * len(texts), TEXT: [text.encode() for text in texts]}
        yield pa.RecordBatch.from_pydict(columns)


@settings(max_examples=40)
@given(LINES, st.integers(1, 5), st.integers(1, 9), st.sampled_from([0.0, 0.4]), st.booleans())
def test_any_partitions_add_up_to_one_machine(
    texts: list[str], partitions: int, size: int, holdout: float, by_source: bool
) -> None:
    lines = [("ab"[i % 2], text) for i, text in enumerate(texts)]
    options = {"holdout": holdout, "field": None, "runs": True, "by_source": by_source}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "SHARD", 40)
        patch.setattr(task, "_OUT", 3)
        rows = [
            batch for i in range(partitions) for batch in task.count(batches_of(lines[i::partitions], size), **options)
        ]
    counted = pl.DataFrame(pa.Table.from_batches(rows)) if rows else pl.DataFrame(schema={"kind": pl.Int8})
    if rows:  # what Spark does with them
        assert set(counted["source"]) <= ({"a", "b", ""} if by_source else {""})
        counted = counted.group_by("kind", "word").agg(pl.sum(*NUMBERS)).sort("kind", "word")
    tables: dict[int, pl.DataFrame] = {}
    for batch in task.pack(counted.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()) if rows else ():
        for kind, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            tables[kind] = unpacked(value)
    with Shards(holdout=holdout, by="documents", runs=True) as count:
        count.count([Block.of(texts)] if texts else [], name="lines")
        for kind, shard in ((WORDS, count.words), (RUNS, count.runs)):
            expected = pl.concat(parts(shard)) if shard and shard[0].rows else pl.DataFrame()
            assert tables.get(kind, pl.DataFrame()).select(expected.columns).rows() == expected.rows()
    sums = dict(tables[SUMS].select("word", "n").iter_rows()) if SUMS in tables else {}
    for source in "ab":
        assert sums.get(f"lines {source}", 0) == sum(name == source for name, _ in lines)
