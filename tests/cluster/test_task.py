"""What tasks of a count do, without Spark: any cut into partitions, parts and ranges adds up to the tables of one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koktok.cluster import task
from koktok.cluster.tables import rows_of, unpacked
from koktok.cluster.task import RUNS, TEXT, TOLD, WORDS
from koktok.count.counting import Shards, parts, weighed
from koktok.count.counts import summed

pa = pytest.importorskip("pyarrow")

LINES = st.lists(st.text("가나다 .😀", max_size=12), max_size=30)


def batches_of(lines: list[tuple[str, str]], size: int) -> Iterator[Any]:
    """Rows of `read_text`, so many at a time."""
    for i in range(0, len(lines), size):
        sources, texts = zip(*lines[i : i + size], strict=True)
        columns = {"source": list(sources), "kind": ["text"] * len(texts), TEXT: [text.encode() for text in texts]}
        yield pa.RecordBatch.from_pydict(columns)


def many(
    partitions: Iterable[list[tuple[str, str]]], *, size: int, weights: dict[str, float], holdout: float
) -> dict[int, pl.DataFrame]:
    """A count as Spark's tasks do it: parts, ranges, pieces in the order of their places, sums."""
    given = {"holdout": holdout, "field": None, "runs": True, "apart": bool(weights)}
    made = [
        batch
        for lines in partitions
        for batch in task.counted_parts(batches_of(lines, size), **given)  # type: ignore[arg-type]
    ]
    if not made:
        return {}
    table = pa.Table.from_batches(made)
    ranges = task.ranges_of(pl.DataFrame(table.select(["kind", "words", "sample"])))
    cut = [b for one in table.select(["kind", "source", "packed"]).to_batches() for b in task.cut([one], ranges=ranges)]
    pieces = pa.Table.from_batches(cut).sort_by("place").to_batches(max_chunksize=3)
    sums = [(place, unpacked(value)) for place, value in rows_of(task.added_up(pieces, weights=weights))]
    return {
        kind: pl.concat([part for _, part in found])
        for kind, found in groupby(sums, key=lambda pair: ranges[pair[0]][0])
    }


@settings(max_examples=40)
@given(LINES, st.integers(1, 5), st.integers(1, 9), st.sampled_from([0.0, 0.4]), st.integers(1, 40))
def test_any_partitions_add_up_to_one_machine(
    texts: list[str], partitions: int, size: int, holdout: float, rows: int
) -> None:
    lines = [(source, text) for i, text in enumerate(texts) for source in ("ab"[i % 2],)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("koktok.count.counting.PART", rows)
        patch.setattr(task, "PART", rows)
        patch.setattr(task, "ROWS", 3)
        patch.setattr(task, "_STEP", 2)
        patch.setattr(task, "SHARD", 40)
        found = many([lines[i::partitions] for i in range(partitions)], size=size, weights={}, holdout=holdout)
    with Shards(holdout=holdout, by="documents", runs=True) as shards:
        one, wide = shards.count([texts] if texts else [], name="lines")
        for kind, expected in ((WORDS, one), (RUNS, wide)):
            table = summed(list(parts(expected))) if expected and expected[0].rows else None
            if table is None or table.is_empty():
                assert kind not in found
            else:
                assert found[kind].equals(table)


@settings(max_examples=40)
@given(LINES, st.integers(1, 4))
def test_weights_are_rounded_by_source_behind_the_sum(texts: list[str], partitions: int) -> None:
    lines = [("ab"[i % 2], text) for i, text in enumerate(texts)]
    weights = {"a": 0.5, "": 100.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("koktok.count.counting.PART", 3)
        patch.setattr(task, "PART", 3)
        found = many([lines[i::partitions] for i in range(partitions)], size=4, weights=weights, holdout=0.0)
    with Shards(by="documents") as shards:
        tables = []
        for source in "ab":
            own = [text for name, text in lines if name == source]
            made = list(parts(shards.count([own] if own else [], name=source)[0]))
            tables += [weighed(part, weights.get(source, 1.0)) for part in made]
    expected = summed(tables) if tables else pl.DataFrame()
    assert found.get(WORDS, pl.DataFrame()).rows() == expected.rows()
    told = dict(found[TOLD].select("word", "n").iter_rows()) if TOLD in found else {}
    for source in "ab":  # what is told is not weighed
        assert told.get(f"lines {source}", 0) == sum(name == source for name, _ in lines)
