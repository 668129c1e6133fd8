"""Sums per line first, everything else after: values, intervals and paired tests from one table.

A table has a row per line and a column per count; a metric is a function of column sums, so shards add up (law 9), a domain is
a selection of rows, and the same function of resampled sums has the standard error of an interval, which is Student's t, because
units are few (percentiles of nine documents cover 89 %, and not 95). What is resampled is a *unit*: a document
of a gold corpus or a domain of a text; with fewer than five of them a block of 50 lines, and the interval then speaks of more
of the same texts only. Two tokenizers on the same lines are resampled together, which makes their interval a paired one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from koktok.errors import UsageError
from koktok.metrics.registry import Floats
from koktok.model.tokens import Ints

LEAST_SOURCES: Final = 5  # fewer documents or domains are too few to resample
BLOCK: Final = 50
GROUPS: Final = 20  # of the jackknife
CHUNK: Final = 1 << 22  # resampled blocks in memory at once


@dataclass(frozen=True)
class Units:
    """What is resampled together: the unit of each line, from 0 without gaps, and what units are called.

    >>> Units.by(np.repeat([3, 1], [60, 70]), "domains", "lines")
    4 blocks of 50 lines
    >>> Units.by(np.repeat(np.arange(8), 90), "documents", "sentences")
    8 documents
    """

    of: Ints
    name: str

    @classmethod
    def by(cls, sources: npt.ArrayLike, plural: str, lines: str, *, blocks: Ints | None = None) -> Units:
        """Sources as units where there are five or more, else blocks of 50 lines that cross no source."""
        order = _ranked(np.asarray(sources, dtype=np.int64))
        if len(order) and order.max() + 1 >= LEAST_SOURCES:
            return cls(order, plural)
        return cls(cls.blocks(order) if blocks is None else _ranked(blocks), f"blocks of {BLOCK} {lines}")

    @staticmethod
    def blocks(sources: Ints) -> Ints:
        """The block of 50 lines of each line; none crosses a source."""
        within = np.zeros(len(sources), dtype=np.int64)
        for source in np.unique(sources):
            of_source = sources == source
            within[of_source] = np.arange(of_source.sum()) // BLOCK
        return _ranked(sources * (len(sources) + 1) + within)

    def __len__(self) -> int:
        return int(self.of.max()) + 1 if len(self.of) else 0

    def __repr__(self) -> str:
        return f"{len(self):,} {self.name if len(self) != 1 else self.name.replace('s', '', 1)}"

    @property
    def groups(self) -> Ints:
        """The jackknife group of each line: neighbouring units, at most twenty groups."""
        return self.of * GROUPS // max(len(self), GROUPS)


def _ranked(values: Ints) -> Ints:
    """Values numbered in the order of their first occurrence."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


@dataclass(frozen=True, slots=True)
class Value:
    """A figure (nan where undefined), its 95 % interval, the rows behind it, and how many units were resampled."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    units: int = 0


@dataclass(frozen=True)
class Table:
    """Counts per row, the unit of each row, and its corpus (`strata`) where each is resampled by itself."""

    columns: dict[str, npt.NDArray[Any]]
    units: Ints
    strata: Ints | None = None

    @classmethod
    def row(cls, counts: Mapping[str, float]) -> Table:
        """A table of one row, which has no interval."""
        return cls({k: np.array([v], dtype=np.float64) for k, v in counts.items()}, np.zeros(1, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.units)

    def sums(self) -> dict[str, Floats]:
        """Column sums."""
        return {name: np.asarray(column.sum(), dtype=np.float64) for name, column in self.columns.items()}

    def by_unit(self) -> dict[str, Floats]:
        """Column sums of each unit."""
        _, compact = np.unique(self.units, return_inverse=True)
        size = int(compact.max()) + 1 if len(compact) else 0
        return {name: np.bincount(compact, column, size).astype(np.float64) for name, column in self.columns.items()}

    def where(self, rows: npt.NDArray[np.bool_], units: Ints) -> Table:
        """Some rows, with units of their own."""
        return Table({name: column[rows] for name, column in self.columns.items()}, units[rows])

    def draws(self, resamples: int, seed: int) -> list[Draws]:
        """Column sums of so many resamples, a corpus at a time; empty where a corpus has fewer than two units."""
        sums = self.by_unit()
        first = np.unique(self.units, return_index=True)[1]
        strata = np.zeros(len(first), dtype=np.int64) if self.strata is None else self.strata[first]
        if resamples < 2 or not len(first) or np.unique(strata, return_counts=True)[1].min() < 2:
            return []
        return resample(sums, resamples, seed, strata)

    def measure(self, formulas: Mapping[str, Callable[[Any], Any]], resamples: int, seed: int) -> dict[str, Value]:
        """Values and intervals."""
        sums = self.sums()
        values = {name: float(value(sums)) for name, value in formulas.items()}
        drawn = self.draws(resamples, seed) if values else []
        units = len(np.unique(self.units)) if drawn else 0
        return {
            name: Value(values[name], *around(values[name], *standard_error(drawn, value)), len(self), units)
            for name, value in formulas.items()
        }


@dataclass
class Statistics:
    """All tables of one tokenizer, and the counts of its ids, apart for each jackknife group: shape (groups, ids)."""

    tables: dict[str, Table]
    histogram: Ints | None = None


@dataclass(frozen=True)
class Draws:
    """Column sums of the whole in resamples of one corpus, the others as they are, and how many units it has."""

    sums: dict[str, Floats]
    units: int


def resample(sums: Mapping[str, Floats], resamples: int, seed: int, strata: Ints) -> list[Draws]:
    """So many draws of the units of each corpus with replacement; the same draws for the same numbers of units."""
    rng = np.random.default_rng(seed)
    matrix = np.stack([np.asarray(column, dtype=np.float64) for column in sums.values()], axis=1)
    whole = matrix.sum(axis=0)
    draws = []
    for corpus in np.unique(strata):
        units = matrix[strata == corpus]
        total = whole - units.sum(axis=0) + _drawn(units, resamples, rng)
        draws.append(Draws({name: total[:, k] for k, name in enumerate(sums)}, len(units)))
    return draws


def _drawn(matrix: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of the rows of a matrix, drawn as often as it has rows."""
    units, parts = len(matrix), []
    step = max(1, CHUNK // max(units, 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, units, size=(size, units), dtype=np.int32)
        drawn += (np.arange(size, dtype=np.int32) * units)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        parts.append(weights.astype(np.float64) @ matrix)
    return np.concatenate(parts)


def standard_error(drawn: Sequence[Draws], value: Callable[[Any], Any]) -> tuple[float | None, float]:
    """The standard error of a value, and its degrees of freedom (Welch 1947, Satterthwaite 1946).

    Resampling n units shrinks the variance by (n - 1) / n, which is given back: with nine documents it matters.
    """
    parts = []
    for one in drawn:
        draws = np.asarray(value(one.sums), np.float64)
        fine = draws[np.isfinite(draws)]
        if len(fine) < 2:
            return None, 0
        parts.append((float(fine.var(ddof=1)) * one.units / (one.units - 1), one.units - 1))
    return combined(parts)


def combined(parts: Sequence[tuple[float, float]]) -> tuple[float | None, float]:
    """The standard error of a sum of independent parts, each with its variance and degrees of freedom, and those of the sum."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return (0.0, float(min(n for _, n in parts))) if parts else (None, 0)
    return math.sqrt(total), total**2 / sum(variance**2 / n for variance, n in parts)


def jackknife(groups: Sequence[Any], value: Callable[[Any], float], whole: Any) -> tuple[float | None, int]:
    """The standard error from leaving out one group after the other, and how many groups hold anything.

    Groups may differ in size (Busing, Meijer and van der Leeden 1999); the size is the sum of what a group adds.
    """
    used = [group for group in groups if np.any(group)]
    n = len(used)
    if n < 2:
        return None, n
    estimate = value(whole)
    left = np.array([value(whole - group) for group in used])
    times = np.array([float(np.sum(whole)) / float(np.sum(group)) for group in used])
    pseudo = times * estimate - (times - 1) * left
    middle = n * estimate - float(np.sum((1 - 1 / times) * left))
    return float(np.sqrt(np.mean((pseudo - middle) ** 2 / (times - 1)))), n


def around(middle: float, error: float | None, freedom: float) -> tuple[float | None, float | None]:
    """The 95 % interval of a standard error with so many degrees of freedom."""
    if error is None or not math.isfinite(error) or freedom < 1:
        return None, None
    reach = student_quantile(int(freedom)) * error
    return middle - reach, middle + reach


@cache
def student_quantile(freedom: int) -> float:
    """The quantile .975 of Student's t; by bisection, because importing scipy costs more than scoring.

    >>> round(student_quantile(1), 3), round(student_quantile(8), 3), round(student_quantile(100), 3)
    (12.706, 2.306, 1.984)
    """
    low, high = 0.0, 16.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > 0.05 else (low, middle)
    return high


def student_p(t: float, freedom: int) -> float:
    """Two-sided p of Student's t (Abramowitz and Stegun 26.7.3, 26.7.4).

    >>> round(student_p(2.365, 7), 3), student_p(0.0, 9)
    (0.05, 1.0)
    """
    if freedom > 1000:
        return math.erfc(abs(t) / math.sqrt(2))
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return max(0.0, 1.0 - (2 / math.pi * (angle + inside) if odd else inside))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values of one table, adjusted for their number (Holm 1979); None stays None and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, k) for k, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (p, k) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        adjusted[k] = least
    return adjusted


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second on the same lines, with its 95 % paired interval.

    `p` is two-sided, of Student's t with the degrees of freedom of `standard_error`, so that eight documents do not prove more
    than they can. `n` are the units. `adjusted` is Holm's in a table.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    adjusted: float | None = None

    @classmethod
    def tested(cls, value: float, error: float | None, freedom: float, n: int) -> Difference:
        """With the interval and the p-value of a standard error."""
        if error is None or not math.isfinite(error) or freedom < 1:
            return cls(value, n=n)
        p = student_p(value / error, int(freedom)) if error else float(value == 0)
        return cls(value, *around(value, error, freedom), p, n)


def paired(
    first: Table, second: Table, value: Callable[[Any], Any], *, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Compare two tables of the same lines; a UsageError for others."""
    if len(first) != len(second) or not np.array_equal(first.units, second.units):
        raise UsageError(f"tables of {len(first)} and {len(second)} lines are not of the same text")
    sides = {"a.": first, "b.": second}
    columns = {side + k: v for side, table in sides.items() for k, v in table.columns.items()}
    estimate = float(value(first.sums())) - float(value(second.sums()))
    drawn = Table(columns, first.units, first.strata).draws(resamples, seed)

    def difference(sums: Mapping[str, Floats]) -> Any:
        one, two = ({k[2:]: v for k, v in sums.items() if k[:2] == side} for side in sides)
        return value(one) - value(two)

    return Difference.tested(estimate, *standard_error(drawn, difference), len(np.unique(first.units)))
