"""Sums per line first, everything else after: values, intervals and paired tests from one table.

A table has a row a line and a column a count. The value of a metric is a function of column sums, so shards add up to
the whole (law 9), a domain is a selection of rows, and a bootstrap interval is the same function of the sums over
resampled units. A unit is a document of a gold corpus or a domain of a text, because a claim is about texts that nobody
has seen, and the lines of one text resemble each other; where there are fewer than five of them, it is a block of 50
neighbouring lines, and the interval speaks of more of the same texts only. Two tokenizers measured on the same lines are
resampled together, which makes the interval of their difference a paired one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from koktok.errors import UsageError
from koktok.foreign.base import Ints
from koktok.metrics.registry import Floats

LEAST_SOURCES: Final = 5
"""Documents or domains from which on they are the units. With fewer, resampling them says nothing."""

BLOCK: Final = 50
"""Neighbouring lines that are one unit where there are too few sources."""

GROUPS: Final = 20
"""Groups of neighbouring units, each left out once by the jackknife."""

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
         2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)  # fmt: skip
"""Quantiles of Student's t for 1 to 19 degrees of freedom; a table, because importing scipy costs more than scoring."""

CHUNK = 1 << 22
"""Resampled blocks that are in memory at once."""


@dataclass(frozen=True)
class Units:
    """What is resampled together.

    Parameters
    ----------
    of : ndarray of int64, shape (lines,)
        The unit of each line, from 0 on without gaps, in the order in which they come.
    name : str
        What they are: `documents`, `domains`, or `blocks of 50 lines`.

    Examples
    --------
    >>> Units.by(np.repeat([3, 1], [60, 70]), "domains", "lines")
    4 blocks of 50 lines
    >>> Units.by(np.repeat(np.arange(8), 90), "documents", "sentences")
    8 documents
    >>> Units.by(np.zeros(9), "documents", "sentences")
    1 block of 50 sentences
    """

    of: Ints
    name: str

    @classmethod
    def by(cls, sources: npt.ArrayLike, plural: str, lines: str, *, blocks: Ints | None = None) -> Units:
        """Sources as units where there are five or more of them, else blocks of 50 lines that cross no source."""
        order = _ranked(np.asarray(sources, dtype=np.int64))
        if len(order) and order.max() + 1 >= LEAST_SOURCES:
            return cls(order, plural)
        return cls(cls.blocks(order) if blocks is None else _ranked(blocks), f"blocks of {BLOCK} {lines}")

    @staticmethod
    def blocks(sources: Ints) -> Ints:
        """The block of 50 lines of each line; none crosses a source."""
        within = np.zeros(len(sources), dtype=np.int64)
        for source in np.unique(sources):
            here = sources == source
            within[here] = np.arange(here.sum()) // BLOCK
        return _ranked(sources * (len(sources) + 1) + within)

    def __len__(self) -> int:
        return int(self.of.max()) + 1 if len(self.of) else 0

    def __repr__(self) -> str:
        return f"{len(self):,} {self.name if len(self) != 1 else self.name.replace('s', '', 1)}"

    @property
    def groups(self) -> Ints:
        """The group of each line for the jackknife: neighbouring units, at most twenty groups."""
        return self.of * GROUPS // max(len(self), GROUPS)


def _ranked(values: Ints) -> Ints:
    """Values as numbers from 0 on, in the order of their first occurrence."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


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
    units : int
        How many documents, domains or blocks were resampled; 0 where nothing was.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    units: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON; nan becomes None, and the last digits, which depend on the order of sums, are rounded off."""

        def plain(x: float | None) -> float | None:
            return None if x is None or not math.isfinite(x) else float(f"{x:.10g}")

        bounds = {"value": plain(self.value), "low": plain(self.low), "high": plain(self.high)}
        return bounds | {"n": self.n, "units": self.units}


@dataclass(frozen=True)
class Table:
    """Counts per row.

    Parameters
    ----------
    columns : dict of str to ndarray, shape (rows,)
    units : ndarray of int64, shape (rows,)
        The unit that each row is resampled with.
    strata : ndarray of int64, optional
        The corpus that each row is of, where several are in one table; each is resampled by itself.
    """

    columns: dict[str, npt.NDArray[Any]]
    units: Ints
    strata: Ints | None = None

    def __len__(self) -> int:
        return len(self.units)

    def sums(self) -> dict[str, Floats]:
        """Column sums."""
        return {name: np.asarray(column.sum(), dtype=np.float64) for name, column in self.columns.items()}

    def by_unit(self) -> dict[str, Floats]:
        """Column sums of each unit, in the order of their numbers."""
        _, compact = np.unique(self.units, return_inverse=True)
        size = int(compact.max()) + 1 if len(compact) else 0
        return {name: np.bincount(compact, column, size).astype(np.float64) for name, column in self.columns.items()}

    def where(self, rows: npt.NDArray[np.bool_], units: Ints) -> Table:
        """Some rows, with units of their own."""
        return Table({name: column[rows] for name, column in self.columns.items()}, units[rows])

    def draws(self, resamples: int, seed: int) -> dict[str, Floats] | None:
        """Column sums of so many resamples of the units; None where there is nothing to resample."""
        sums = self.by_unit()
        if resamples < 2 or len(next(iter(sums.values()), ())) < 2:
            return None
        strata = None
        if self.strata is not None:
            _, first = np.unique(self.units, return_index=True)
            strata = self.strata[first]
        return resample(sums, resamples, seed, strata)


@dataclass
class Statistics:
    """All tables of one tokenizer, and the counts of its ids.

    Parameters
    ----------
    tables : dict of str to Table
    histogram : ndarray of int64, shape (groups, ids), or None
        Counts of every id, apart for each group of units.
    """

    tables: dict[str, Table]
    histogram: Ints | None = None


def resample(
    sums: Mapping[str, Floats], resamples: int, seed: int, strata: npt.NDArray[np.int64] | None = None
) -> dict[str, Floats]:
    """Column sums of so many draws of all units with replacement; the same draws for the same number of units."""
    units = len(next(iter(sums.values()), ()))
    rng = np.random.default_rng(seed)
    matrix = np.stack([np.asarray(column, dtype=np.float64) for column in sums.values()], axis=1)
    corpora = [np.arange(units)] if strata is None else [np.flatnonzero(strata == k) for k in np.unique(strata)]
    total = sum((_drawn(matrix[here], resamples, rng) for here in corpora), np.zeros((resamples, matrix.shape[1])))
    return {name: total[:, k] for k, name in enumerate(sums)}


def _drawn(matrix: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of the rows of a matrix, drawn as often as it has rows."""
    units = len(matrix)
    parts = []
    step = max(1, CHUNK // max(units, 1))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.integers(0, units, size=(size, units), dtype=np.int32)
        drawn += (np.arange(size, dtype=np.int32) * units)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        parts.append(weights.astype(np.float64) @ matrix)
    return np.concatenate(parts)


def interval(draws: Floats) -> tuple[float | None, float | None]:
    """The middle 95 % of the draws that are defined."""
    fine = draws[np.isfinite(draws)]
    if len(fine) < 2:
        return None, None
    low, high = np.percentile(fine, [2.5, 97.5])
    return float(low), float(high)


def jackknife(groups: Sequence[Any], value: Callable[[Any], float], whole: Any) -> tuple[float, int] | tuple[None, int]:
    """The standard error from leaving out one group after the other, for what no table of columns can hold.

    Groups may differ in size (Busing, Meijer and van der Leeden 1999); the size is the sum of what a group adds.

    Parameters
    ----------
    groups : sequence of ndarray
        What each group adds to `whole`.
    whole : ndarray
        The sum of all groups.

    Returns
    -------
    float or None
        None where fewer than two groups hold anything.
    int
        Those groups.
    """
    used = [group for group in groups if np.any(group)]
    n = len(used)
    if n < 2:
        return None, n
    here = value(whole)
    left = np.array([value(whole - group) for group in used])
    times = np.array([float(np.sum(whole)) / float(np.sum(group)) for group in used])
    pseudo = times * here - (times - 1) * left
    middle = n * here - float(np.sum((1 - 1 / times) * left))
    return float(np.sqrt(np.mean((pseudo - middle) ** 2 / (times - 1)))), n


def around(middle: float, error: float | None, n: int) -> tuple[float | None, float | None]:
    """The 95 % interval of a standard error from n groups."""
    if error is None or not math.isfinite(error):
        return None, None
    reach = T_975[min(n - 2, len(T_975) - 1)] * error
    return middle - reach, middle + reach


def student_p(t: float, freedom: int) -> float:
    """How often Student's t is as far from 0 or farther, on either side (Abramowitz and Stegun 26.7.3, 26.7.4).

    Examples
    --------
    >>> round(student_p(2.365, 7), 3), round(student_p(0.67, 7), 3), student_p(0.0, 9)
    (0.05, 0.524, 1.0)
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
    """The p-values of one table, adjusted for their number (Holm 1979); None stays None and does not count.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, k) for k, p in enumerate(values) if p is not None)
    found: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, (p, k) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        found[k] = least
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two tokenizers on the same lines.

    Parameters
    ----------
    value, low, high : float
        First minus second, with its 95 % paired bootstrap interval.
    p : float, optional
        Two-sided, Student's t of the difference over the standard error of its resamples, with one degree of freedom less
        than there are units, so that eight documents do not prove more than they can. None where nothing was resampled.
    n : int
        Units.
    adjusted : float, optional
        The p-value adjusted for the number of tests in a table, where it stands in one (`holm`).
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    adjusted: float | None = None

    @classmethod
    def tested(cls, value: float, low: float | None, high: float | None, error: float | None, n: int) -> Difference:
        """With the p-value of a standard error from n units."""
        if error is None or n < 2 or not math.isfinite(error):
            return cls(value, low, high, None, n)
        p = student_p(value / error, n - 1) if error else float(value == 0)
        return cls(value, low, high, p, n)


def paired(
    first: Table, second: Table, value: Callable[[Any], Any], *, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Compare two tables of the same lines.

    Raises
    ------
    UsageError
        When the tables are of different lines or units.

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
    columns = {f"a.{k}": v for k, v in first.columns.items()} | {f"b.{k}": v for k, v in second.columns.items()}
    joined = Table(columns, first.units, first.strata)
    here = float(value(first.sums())) - float(value(second.sums()))
    n = len(np.unique(first.units))
    drawn = joined.draws(resamples, seed)
    if drawn is None:
        return Difference(here, n=n)
    draws = np.asarray(value({k[2:]: v for k, v in drawn.items() if k[0] == "a"})) - np.asarray(
        value({k[2:]: v for k, v in drawn.items() if k[0] == "b"})
    )
    fine = draws[np.isfinite(draws)]
    error = float(fine.std(ddof=1)) if len(fine) > 1 else None
    return Difference.tested(here, *interval(draws), error, n)
