"""Targets: what share of the boundaries a vocabulary keeps, and the search for the ν that meets a share.

A cost means another thing at every size and in every text; a share of the boundaries, or a number of tokens, means the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from koktok.hangul import syllable_mask
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.training.lattice import TRUST
from koktok.training.unigram_point import GRAMMAR

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TargetSearch:
    """Search for the factor at which a value that rises with it meets a target: bisection by secants.

    Examples
    --------
    >>> search, factor = TargetSearch(0.8, near=0.01), 1.0
    >>> while factor:
    ...     tried, factor = factor, search.after(factor, factor / (1 + factor))
    >>> round(tried, 1)
    3.9
    """

    LEAST, MOST = 1 / 64, 64.0

    def __init__(self, want: float, *, near: float, slope: float = 0.4, least: float = LEAST) -> None:
        self.want, self.near, self._slope, self.least = want, near, slope, least
        self.trials: list[tuple[float, float]] = []

    @property
    def slope(self) -> float:
        """What one step of the factor adds, by the last two trials."""
        if len(self.trials) > 1:
            (a, first), (b, second) = self.trials[-2:]
            if a != b and (second - first) / (b - a) > 0.01:
                return (second - first) / (b - a)
        return self._slope

    def after(self, factor: float, value: float) -> float | None:
        """The next trial after this one, or None where it is near enough, or nothing lies between."""
        here = math.log(factor)
        self.trials.append((here, value))
        if abs(value - self.want) <= self.near:
            return None
        below = max((trial for trial in self.trials if trial[1] < self.want), default=None)
        above = min((trial for trial in self.trials if trial[1] >= self.want), default=None)
        if below and above:
            (a, low), (b, high) = below, above
            if abs(b - a) < 1e-3:
                return None
            share = min(max((self.want - low) / (high - low), 0.15), 0.85)
            return math.exp(a + (b - a) * share)
        step = (self.want - value) / self.slope
        step = math.copysign(min(max(abs(step), 0.05), 1.5), step)
        there = min(max(here + step, math.log(self.least)), math.log(self.MOST))
        return None if there == here else math.exp(there)


class Boundaries:
    """The analyser's cuts in the running text, and how many of them a tokenizer meets.

    Examples
    --------
    >>> found = Boundaries(SegmentedCounts.from_marked({" 집|에서": 1}), np.array([0, 5]))
    >>> cut = np.array([False, False, True, True, True])  # 집에서 in three tokens
    >>> found.kept(cut), round(found.f1(cut), 3)
    (1.0, 0.667)
    """

    def __init__(self, counts: SegmentedCounts, node: NDArray[np.int64]) -> None:
        n = counts.n.astype(np.float64)
        self._place = np.repeat(node[:-1], np.diff(counts.start)) + counts.offset
        self._n = np.repeat(n, np.diff(counts.start))
        self._trust = self._n * np.asarray([TRUST.get(kind.label, TRUST["rest"]) for kind in Kind])[counts.kind]
        self._grammar = self._trust * np.asarray([kind.label in GRAMMAR for kind in Kind])[counts.kind]
        syllable = np.zeros(int(node[-1]), dtype=bool)  # is the character behind this node one?
        inner = np.ones(len(syllable), dtype=bool)
        inner[node[1:] - 1] = False
        codes = np.frombuffer("".join(counts.words).encode("utf-32-le"), dtype=np.uint32)
        syllable[inner] = syllable_mask(codes)
        self._between = np.zeros(len(syllable), dtype=bool)
        self._between[1:] = syllable[1:] & syllable[:-1]
        self._weight = np.repeat(n, np.diff(node)) * self._between

    def kept(self, cut: NDArray[np.bool_]) -> float:
        """The share of the boundaries, weighed by `TRUST`, at which there is a cut; 1 where there is none."""
        return self._share(self._trust, cut)

    def grammar(self, cut: NDArray[np.bool_]) -> float:
        """The share of those before particles, endings and the copula; of all of them where a text has none of these."""
        return self._share(self._grammar if self._grammar.any() else self._trust, cut)

    def _share(self, weight: NDArray[np.float64], cut: NDArray[np.bool_]) -> float:
        return float((weight * cut[self._place]).sum() / weight.sum()) if weight.any() else 1.0

    def f1(self, cut: NDArray[np.bool_]) -> float:
        """F1 of the cuts between two syllables; 0 where there is nothing to divide by."""
        gold = self._n * self._between[self._place]
        made = float((self._weight * cut).sum())
        hits = float((gold * cut[self._place]).sum())
        return 2 * hits / (made + float(gold.sum())) if hits else 0.0
