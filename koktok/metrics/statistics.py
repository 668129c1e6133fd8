"""Sums per line first, everything else after: values, intervals and paired tests from one table.

A table has a row a line and a column a count. The value of a metric is a function of column sums, so shards add up to
the whole (law 9), a domain is a selection of rows, and a bootstrap interval is the same function of the sums over
resampled blocks of lines. Two tokenizers measured on the same lines are resampled together, which makes the interval
of their difference a paired one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from koktok.errors import UsageError
from koktok.foreign.base import Ints
from koktok.metrics.registry import Floats

__all__ = ["Difference", "Statistics", "Table", "Value", "interval", "jackknife", "paired"]

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
         2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)  # fmt: skip
"""Quantiles of Student's t for 1 to 19 degrees of freedom; a table, because importing scipy costs more than scoring."""

CHUNK = 1 << 22
"""Resampled blocks that are in memory at once."""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure with its 95 % interval.

    Parameters
    ----------
    value : float
        nan where it is not defined.
    low, high : float or None
        None where the metric has no interval.
    n : int
        How many lines, types or ids stand behind it.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON; nan becomes None, and the last digits, which depend on the order of sums, are rounded off."""

        def plain(x: float | None) -> float | None:
            return None if x is None or not math.isfinite(x) else float(f"{x:.10g}")

        return {"value": plain(self.value), "low": plain(self.low), "high": plain(self.high), "n": self.n}


@dataclass(frozen=True)
class Table:
    """Counts per row.

    Parameters
    ----------
    columns : dict of str to ndarray, shape (rows,)
    units : ndarray of int64, shape (rows,)
        The block that each row is resampled with.
    domains : ndarray of int64, optional
    """

    columns: dict[str, npt.NDArray[Any]]
    units: Ints
    domains: Ints | None = None

    def __len__(self) -> int:
        return len(self.units)

    def sums(self, rows: npt.NDArray[np.bool_] | None = None) -> dict[str, Floats]:
        """Column sums, over all rows or some."""
        return {
            name: np.asarray((column if rows is None else column[rows]).sum(), dtype=np.float64)
            for name, column in self.columns.items()
        }

    def by_unit(self, rows: npt.NDArray[np.bool_] | None = None) -> dict[str, Floats]:
        """Column sums of each block."""
        units = self.units if rows is None else self.units[rows]
        _, compact = np.unique(units, return_inverse=True)
        size = int(compact.max()) + 1 if len(compact) else 0
        return {
            name: np.bincount(compact, column if rows is None else column[rows], size).astype(np.float64)
            for name, column in self.columns.items()
        }

    @staticmethod
    def join(tables: Sequence[Table]) -> Table:
        """Shards, one below the other; blocks of different shards stay apart."""
        names = {name: None for table in tables for name in table.columns}
        columns = {
            name: np.concatenate([t.columns.get(name, np.zeros(len(t), dtype=np.int64)) for t in tables])
            for name in names
        }
        units, shift = [], 0
        for table in tables:
            units.append(table.units + shift)
            shift += int(table.units.max()) + 1 if len(table) else 0
        domains = None
        if all(table.domains is not None for table in tables):
            domains = np.concatenate([table.domains for table in tables if table.domains is not None])
        return Table(columns, np.concatenate(units), domains)


@dataclass
class Statistics:
    """All tables of one tokenizer, and the counts of its ids.

    Parameters
    ----------
    tables : dict of str to Table
    histogram : ndarray of int64, shape (groups, ids), or None
        Counts of every id, apart for each group of blocks.
    """

    tables: dict[str, Table]
    histogram: Ints | None = None

    @staticmethod
    def join(parts: Sequence[Statistics]) -> Statistics:
        """Statistics of shards as those of the whole."""
        names = dict.fromkeys(name for part in parts for name in part.tables)
        tables = {name: Table.join([p.tables[name] for p in parts if name in p.tables]) for name in names}
        found = [p.histogram for p in parts if p.histogram is not None]
        histogram = None
        if found:
            width = max(h.shape[1] for h in found)
            histogram = np.zeros((found[0].shape[0], width), dtype=np.int64)
            for h in found:
                histogram[:, : h.shape[1]] += h
        return Statistics(tables, histogram)


def resample(sums: Mapping[str, Floats], resamples: int, seed: int) -> dict[str, Floats]:
    """Column sums of so many draws of all blocks with replacement; the same draws for the same number of blocks."""
    units = len(next(iter(sums.values()), ()))
    rng = np.random.default_rng(seed)
    matrix = np.stack([np.asarray(column, dtype=np.float64) for column in sums.values()], axis=1)
    parts = []
    step = max(1, CHUNK // max(units, 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, units, size=(size, units), dtype=np.int32)
        drawn += (np.arange(size, dtype=np.int32) * units)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        parts.append(weights.astype(np.float64) @ matrix)
    total = np.concatenate(parts)
    return {name: total[:, k] for k, name in enumerate(sums)}


def interval(draws: Floats) -> tuple[float, float] | tuple[None, None]:
    """The middle 95 % of the draws that are defined."""
    fine = draws[np.isfinite(draws)]
    if len(fine) < 2:
        return None, None
    low, high = np.percentile(fine, [2.5, 97.5])
    return float(low), float(high)


def jackknife(
    groups: Sequence[Any], value: Callable[[Any], float], whole: Any
) -> tuple[float, float] | tuple[None, None]:
    """A 95 % interval from leaving out one group after the other, for what no table of columns can hold.

    Parameters
    ----------
    groups : sequence
        What each group adds to `whole`.
    value : callable
    whole : array
        The sum of all groups.
    """
    used = [group for group in groups if np.any(group)]
    if len(used) < 2:
        return None, None
    left = np.array([value(whole - group) for group in used])
    n = len(used)
    error = float(np.sqrt((n - 1) / n * np.sum((left - left.mean()) ** 2)))
    middle, reach = value(whole), T_975[min(n - 2, len(T_975) - 1)] * error
    return middle - reach, middle + reach


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two tokenizers on the same lines.

    Parameters
    ----------
    value, low, high : float
        First minus second, with its 95 % paired bootstrap interval.
    p : float
        Two-sided: how often a resample has a difference on the other side of 0, doubled.
    n : int
        Blocks.
    """

    value: float
    low: float | None
    high: float | None
    p: float
    n: int


def paired(
    first: Table, second: Table, value: Callable[[Any], Any], *, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Compare two tables of the same lines.

    Raises
    ------
    UsageError
        When the tables are of different lines.

    Examples
    --------
    >>> units = np.arange(50)
    >>> one = Table({"tokens": np.full(50, 3), "eojeols": np.full(50, 2)}, units)
    >>> two = Table({"tokens": np.full(50, 4), "eojeols": np.full(50, 2)}, units)
    >>> paired(one, two, lambda s: s["tokens"] / s["eojeols"], resamples=200).value
    -0.5
    """
    if len(first) != len(second) or not np.array_equal(first.units, second.units):
        raise UsageError(f"tables of {len(first)} and {len(second)} lines are not of the same text")
    a, b = first.by_unit(), second.by_unit()
    joined = {f"a.{k}": v for k, v in a.items()} | {f"b.{k}": v for k, v in b.items()}
    drawn = resample(joined, resamples, seed)
    draws = np.asarray(value({k[2:]: v for k, v in drawn.items() if k[0] == "a"})) - np.asarray(
        value({k[2:]: v for k, v in drawn.items() if k[0] == "b"})
    )
    here = float(value(first.sums())) - float(value(second.sums()))
    low, high = interval(draws)
    fine = draws[np.isfinite(draws)]
    above, below = int((fine >= 0).sum()), int((fine <= 0).sum())
    p = min(1.0, 2 * (min(above, below) + 1) / (len(fine) + 1))
    return Difference(here, low, high, p, len(next(iter(a.values()), ())))
