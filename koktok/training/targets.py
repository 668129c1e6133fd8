"""Targets: what share of the boundaries a vocabulary keeps, and the search for the ν that meets a share.

A cost means another thing at every size and in every text; a share of the boundaries, or a number of tokens, means the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from koktok.recipe import Group
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.training.lattice import TRUST, between_syllables
from koktok.training.unigram_point import GROUPS

NEAR = 0.003
"""A trial is near enough at this distance from its target, a third of what is promised."""

FAR = 0.01
"""What is promised: a result that is further from its target is reported as the best possible."""

TRIALS = 8
"""Trials at most; two to four are usual."""


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
        """The next trial after this one, or None if it is near enough, or there is nothing between."""
        at = math.log(factor)
        self.trials.append((at, value))
        if abs(value - self.want) <= self.near:
            return None
        below = max((trial for trial in self.trials if trial[1] < self.want), default=None)
        above = min((trial for trial in self.trials if trial[1] >= self.want), default=None)
        if below and above:
            (a, low), (b, high) = below, above
            if abs(b - a) < 5e-3:
                return None
            share = min(max((self.want - low) / (high - low), 0.15), 0.85)
            return math.exp(a + (b - a) * share)
        step = (self.want - value) / self.slope
        step = math.copysign(min(max(abs(step), 0.05), 1.5), step)
        following = min(max(at + step, math.log(self.least)), math.log(self.MOST))
        return None if following == at else math.exp(following)


class Targets:
    """The shares, or the number of tokens, that a point asks for, and a search for each.

    A group of kinds (`GROUPS`) has a factor of its own, which moves little but its own share, so the searches go side by side.
    Kinds of no group have the geometric mean.

    Examples
    --------
    >>> targets = Targets({"josa": 0.9, "eomi": 0.5}, near=0.01)
    >>> times = targets.after(targets.begin(), {"josa": 0.895, "eomi": 0.3})
    >>> times["josa"], round(times["eomi"], 2), round(targets.factors(times)["compound"], 2)
    (1.0, 1.65, 1.28)
    """

    def __init__(
        self, wants: Mapping[str, float], *, near: float, at_least: bool = False, before: Targets | None = None
    ) -> None:
        self.wants, self.at_least = dict(wants), at_least
        least = 1.0 if at_least else TargetSearch.LEAST
        slopes = {name: before.search[name].slope for name in wants} if before else dict.fromkeys(wants, 0.4)
        self.search: dict[str, TargetSearch] = {
            name: TargetSearch(want, near=near, slope=slopes[name], least=least) for name, want in wants.items()
        }

    def begin(self) -> dict[str, float]:
        """The factors to begin with."""
        return dict.fromkeys(self.wants, 1.0)

    def factors(self, times: Mapping[str, float]) -> dict[str, float]:
        """The factor of each kind of boundary."""
        mean = math.prod(times.values()) ** (1 / len(times)) if times else 1.0
        of_kind = {kind: times[name] for name, kinds in GROUPS.items() if name in times for kind in kinds}
        return {label: of_kind.get(label, mean) for label in (*(kind.label for kind in BoundaryKind), "rest")}

    def missed(self, values: Mapping[str, float]) -> float:
        """By how much the target that is missed most is missed; a lower bound is not missed by more than enough."""
        gaps = (values[name] - want for name, want in self.wants.items())
        return max((max(-gap, 0.0) if self.at_least else abs(gap) for gap in gaps), default=0.0)

    def rank(self, values: Mapping[str, float], tokens: float) -> tuple[float, float]:
        """The least is the best: of the trials that are near enough the one with the fewest tokens, else the nearest."""
        return max(self.missed(values) - NEAR, 0.0), tokens

    def worst(self, values: Mapping[str, float]) -> str:
        """The name of the target that is furthest from its value, from below if there are such."""
        return min(self.wants, key=lambda name: values[name] - self.wants[name])

    def after(self, times: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float] | None:
        """The next trial after this one, or None if all are near enough, or there is nothing between."""
        found = {name: search.after(times[name], values[name]) for name, search in self.search.items()}
        if all(factor is None for factor in found.values()):
            return None
        return {name: factor or times[name] for name, factor in found.items()}


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
        trust = np.asarray([TRUST.get(kind.label, TRUST["rest"]) for kind in BoundaryKind])
        self._trust = (
            self._n * np.where([kind.label == "punctuation" for kind in BoundaryKind], 0.0, trust)[counts.kind]
        )
        self._group: dict[Group, NDArray[np.float64]] = {
            name: self._trust * np.asarray([kind.label in kinds for kind in BoundaryKind])[counts.kind]
            for name, kinds in GROUPS.items()
            if name != "all"
        }
        self._between = between_syllables(counts.words, node)
        self._weight = np.repeat(n, np.diff(node)) * self._between

    def kept(self, cut: NDArray[np.bool_], group: Group = "all") -> float:
        """The share of the boundaries, weighed by `TRUST`, at which there is a cut, punctuation apart; 1 where there is none.

        Of a group of `GROUPS`; of all where a text has none of the group.
        """
        weight = self._group.get(group, self._trust)
        return self._share(weight if weight.any() else self._trust, cut)

    def _share(self, weight: NDArray[np.float64], cut: NDArray[np.bool_]) -> float:
        return float((weight * cut[self._place]).sum() / weight.sum()) if weight.any() else 1.0

    def figures(self, cut: NDArray[np.bool_]) -> dict[str, float]:
        """The shares of all groups that are kept, and F1."""
        return {**{name: self.kept(cut, name) for name in GROUPS}, "f1": self.f1(cut)}

    def f1(self, cut: NDArray[np.bool_]) -> float:
        """F1 of the cuts between two syllables; 0 where there is nothing to divide by."""
        gold = self._n * self._between[self._place]
        made = float((self._weight * cut).sum())
        hits = float((gold * cut[self._place]).sum())
        return 2 * hits / (made + float(gold.sum())) if hits else 0.0
