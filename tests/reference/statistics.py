"""Law 9: statistics of parts, put together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from koktok.metrics import Statistics, Table


def joined_tables(tables: Sequence[Table]) -> Table:
    """Shards, one below the other; units of different shards stay apart."""
    names = {name: None for table in tables for name in table.columns}
    columns = {
        name: np.concatenate([t.columns.get(name, np.zeros(len(t), dtype=np.int64)) for t in tables]) for name in names
    }
    units, shift = [], 0
    for table in tables:
        units.append(table.units + shift)
        shift += int(table.units.max()) + 1 if len(table) else 0
    strata = None
    if all(table.strata is not None for table in tables):
        strata = np.concatenate([table.strata for table in tables if table.strata is not None])
    return Table(columns, np.concatenate(units), strata)


def joined(parts: Sequence[Statistics]) -> Statistics:
    """Statistics of shards as those of the whole."""
    names = dict.fromkeys(name for part in parts for name in part.tables)
    tables = {name: joined_tables([p.tables[name] for p in parts if name in p.tables]) for name in names}
    found = [p.histogram for p in parts if p.histogram is not None]
    histogram = None
    if found:
        width = max(h.shape[1] for h in found)
        histogram = np.zeros((found[0].shape[0], width), dtype=np.int64)
        for h in found:
            histogram[:, : h.shape[1]] += h
    return Statistics(tables, histogram)
