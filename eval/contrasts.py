"""Scores of rows that were run with several seeds on the same texts, their differences, and intervals over both.

A draw takes seeds with replacement, and texts once for all its seeds, since every seed has the same ones. An interval is the wider
of two: that of the draws' standard error, and that of the seeds alone; both with Student's quantile of the seeds. That of one seed is over
the texts alone, with the normal quantile, and says nothing of other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from koktok.metrics import Difference, holm

Floats = npt.NDArray[np.float64]
Counts = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
"""What is right, what was found, both of shape (seeds, texts), and what is marked in each text."""

RESAMPLES: Final = 10_000


@dataclass(frozen=True)
class Draws:
    """How often each seed and each text is drawn, of shape (resamples, seeds) and (resamples, texts)."""

    seeds: Floats
    texts: Floats

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, seeds: int, texts: int) -> Draws:
        """The same draws for the same numbers."""
        rng = np.random.default_rng(0)
        return cls(*(rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(np.float64) for n in (seeds, texts)))

    def sums(self, counts: npt.NDArray[Any]) -> Floats:
        """Sums of counts in each resample, of shape (seeds, texts), or of (texts,) where seeds do not differ."""
        drawn = self.texts @ counts.T.astype(np.float64)
        return np.asarray((self.seeds * drawn).sum(axis=1) if counts.ndim > 1 else drawn * self.seeds.sum(axis=1))


@dataclass(frozen=True)
class Scored:
    """2 · right / (found + marked) by seed and by resample: F1; of one found and marked a text accuracy; of bits and bytes a ratio."""

    seeds: Floats
    drawn: Floats

    @classmethod
    def of(cls, counts: Counts, draws: Draws) -> Scored:
        """Score counts."""
        right, found, marked = counts
        by_seed = 2 * right.sum(axis=1) / (found.sum(axis=1) + marked.sum())
        return cls(by_seed, 2 * draws.sums(right) / (draws.sums(found) + draws.sums(marked)))

    @classmethod
    def mean(cls, scores: Sequence[Scored], weights: Sequence[float]) -> Scored:
        """A weighted sum of scores."""
        both = ([weight * getattr(one, side) for one, weight in zip(scores, weights, strict=True)] for side in ("seeds", "drawn"))  # fmt: skip
        return cls(*(np.sum(parts, axis=0) for parts in both))

    def minus(self, other: Scored | None = None) -> Difference:
        """The mean over seeds, or that of the differences from another's."""
        seeds, drawn = (
            (self.seeds, self.drawn) if other is None else (self.seeds - other.seeds, self.drawn - other.drawn)
        )
        n = len(seeds)
        by_seed = float(seeds.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
        freedom = n - 1 if n > 1 else RESAMPLES  # the quantile of so many is the normal one
        return Difference.tested(float(seeds.mean()), max(float(drawn.std(ddof=1)), by_seed), freedom, n)


def scored(rows: Mapping[str, Mapping[str, Counts]]) -> dict[str, dict[str, Scored]]:
    """Scores by row and task; all rows have the seeds and texts of the first."""
    first = next(iter(rows.values()))
    draws = {task: Draws.of(*right.shape) for task, (right, _, _) in first.items()}
    return {name: {task: Scored.of(counts, draws[task]) for task, counts in row.items()} for name, row in rows.items()}


def contrasts(
    scores: Mapping[str, Mapping[str, Scored]],
    pairs: Sequence[tuple[str, str]],
    primary: Sequence[tuple[str, str, str]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Differences by `first − second` and task; those of `primary` (first, second, task) have a p adjusted by Holm, too."""
    known = [pair for pair in pairs if {*pair} <= scores.keys()]
    found = {
        pair: {task: plain(one.minus(scores[pair[1]][task])) for task, one in scores[pair[0]].items()} for pair in known
    }
    tested = [found[first, second][task] for first, second, task in primary if task in found.get((first, second), ())]
    for one, p in zip(tested, holm([one["p"] for one in tested]), strict=True):
        one["holm"] = float(f"{p:.5g}")
    return {f"{first} − {second}": tasks for (first, second), tasks in found.items()}


def plain(one: Difference) -> dict[str, float]:
    """For JSON."""
    return {name: float(f"{getattr(one, name):.5g}") for name in ("value", "low", "high", "p")}


def with_interval(one: Mapping[str, float], what: str = "", *, points: float = 100, digits: int = 1) -> str:
    """A difference as a page shows it.

    Examples
    --------
    >>> with_interval({"value": 0.0951, "low": 0.087, "high": 0.104}, "points more")
    '9.5 points more [8.7, 10.4]'
    >>> with_interval({"value": -0.0002, "low": -0.006, "high": 0.006})
    '0.0 [−0.6, 0.6]'
    """
    value, low, high = (f"{points * one[name]:z.{digits}f}".replace("-", "−") for name in ("value", "low", "high"))
    return f"{value} {what + ' ' if what else ''}[{low}, {high}]"
