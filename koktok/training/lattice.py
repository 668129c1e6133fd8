"""`Lattice`: every way to cut every distinct word into candidate pieces, in flat arrays, and what each way costs.

The one cost (`docs/architecture.md`). A segmentation pays `lam` per token, `mu` per cut
inside a morpheme (Hangul on both sides) and `nu` per morpheme boundary that a piece swallows, by kind of boundary. All
three are additive over arcs, so shortest paths find the cheapest segmentation of a word in time linear in its arcs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.errors import UsageError
from koktok.hangul import syllable_mask
from koktok.segment.segmented import BoundaryKind, SegmentedCounts

SHARDS = 8
"""Words are worked on in this many runs, whatever the number of threads, and the partial sums are added in order:
floating-point sums are then the same on one core and on many (law 5)."""


TRUST = {
    "josa": 1.0,
    "josa_chain": 1.0,
    "eomi": 1.0,
    "eomi_chain": 1.0,
    "copula": 1.0,
    "derivation": 0.8,
    "auxiliary": 0.8,
    "compound": 0.5,
    "punctuation": 1.0,
    "other": 1.0,
    "rest": 0.0,
}
"""What a boundary of each kind is worth. People share Kiwi's cut in .95 to 1.00 of the cases for the first five, .95 for
derivation, .87 for auxiliaries, .79 for compounds, .35 for numerals, .27 for others; and, of those that `rest` gives up, in
.16 for bound syllables, .15 for modifiers, .08 after prefixes, .06 for suffixes of nouns and never for pointing roots
(Kaist treebank, a quarter of the train part). With F about .7 a cut gains where that share is over F/2. Punctuation is a token
of its own to all annotators, though no score between syllables sees it. A boundary of no known kind is taken at its word:
it is what cuts look like that no Korean analyser made."""

USUAL = 200.0
"""Occurrences in a million at which `rarity` changes nothing; only a unit for `nu`."""


@dataclass(frozen=True)
class CostWeights:
    """The weights of the cost of a segmentation.

    Examples
    --------
    >>> CostWeights.of(1, 0.5, {"josa": 1.2, "rest": 0.4}).nu[:2]
    (1.2, 0.4)
    >>> CostWeights.of(1, 0.5, 0.4).nu[7]
    0.2
    """

    lam: float
    mu: float
    nu: tuple[float, ...]
    rarity: float = 0.0

    @classmethod
    def of(cls, lam: float, mu: float, nu: float | Mapping[str, float], rarity: float = 0.0) -> CostWeights:
        """One weight for all boundaries, times `TRUST`; or one by label of `BoundaryKind` (`rest` for the others)."""
        table = nu_by_kind(nu)
        labels = [kind.label for kind in BoundaryKind]
        unknown = sorted(table.keys() - {*labels, "rest"})
        if unknown:
            raise UsageError(
                f"expected a kind of boundary in `nu`, got `{unknown[0]}`", hint=f"{', '.join(labels)}, rest"
            )
        missing = [label for label in labels if label not in table and "rest" not in table]
        if missing:
            raise UsageError(f"expected a weight for `{missing[0]}` in `nu`, got none", hint="name it, or give `rest`")
        return cls(lam, mu, tuple(table.get(label, table.get("rest", 0.0)) for label in labels), rarity)


def nu_by_kind(nu: float | Mapping[str, float]) -> dict[str, float]:
    """The cost of a swallowed boundary by kind: one number is for all kinds, times `TRUST`."""
    return dict(nu) if isinstance(nu, Mapping) else {kind: round(nu * trust, 9) for kind, trust in TRUST.items()}


@dataclass(frozen=True, eq=False)
class Lattice:
    """Arcs of all words. Node k of a word is the gap before its character k; arcs are kept by the node they end in."""

    node: NDArray[np.int64]
    arc: NDArray[np.int64]
    length: NDArray[np.uint8]
    piece: NDArray[np.int32]
    weight: NDArray[np.float64]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays for compiled code."""
        return self.node, self.arc, self.length, self.piece, self.weight

    def only(self, alive: NDArray[np.bool_], pool: ThreadPoolExecutor) -> Lattice:
        """The lattice without the arcs of dead pieces."""
        if alive.all():
            return self
        spans = [(int(self.node[lo]), int(self.node[hi])) for lo, hi in self.shards]
        sizes = list(pool.map(lambda span: _count(*span, self.arc, self.piece, alive), spans))
        ends = np.cumsum([0, *sizes])
        arc, length, piece = np.empty_like(self.arc), np.empty(ends[-1], np.uint8), np.empty(ends[-1], np.int32)
        arc[0] = 0

        def keep(span: tuple[int, int], at: int, end: int) -> None:
            _keep(*span, at, end, self.arc, self.length, self.piece, alive, arc, length, piece)

        list(pool.map(keep, spans, ends[:-1], ends[1:]))
        return Lattice(self.node, arc, length, piece, self.weight)

    @cached_property
    def shards(self) -> list[tuple[int, int]]:
        """Runs of words with about equally many arcs."""
        ends = self.arc[self.node]
        marks = np.searchsorted(ends, np.linspace(0, ends[-1], SHARDS + 1)[1:-1])
        edges = [0, *marks.tolist(), len(self.node) - 1]
        return list(pairwise(edges))


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """The cost of a lattice; an arc i → j costs `price + swallow[j - 1] - swallow[i] + split[j]`."""

    split: NDArray[np.float64]
    swallow: NDArray[np.float64]


class NodePrices:
    """Boundaries and morpheme insides of all words, to be priced by any weights.

    A boundary that the analyser is unsure of (confidence under 1) weighs less, and a cut there costs the rest of `mu`.
    A boundary of a kind with `nu` 0 is no boundary: a cut there splits a word like any other (맨|손 is one word to human
    annotators: of Kiwi's cuts after prefixes they share 7 %).
    `frequency` is, for each cut, how often in a million its eojeol occurs; by default each word is one.
    A cut beside a space, a digit or a Latin letter is free: no human boundary score looks there.
    """

    def __init__(
        self, counts: SegmentedCounts, node: NDArray[np.int64], frequency: NDArray[np.float64] | None = None
    ) -> None:
        self.kind, self.confidence = counts.kind, counts.confidence
        self.boundary = np.repeat(node[:-1], np.diff(counts.start)) + counts.offset
        self.inside = between_syllables(counts.words, node)
        if frequency is None:
            frequency = np.repeat(counts.n * (1e6 / max(counts.total, 1)), np.diff(counts.start))
        self.rare = cache(lambda rarity: (USUAL / np.maximum(frequency, 1e-9)) ** rarity)

    def costs(self, weights: CostWeights) -> NodeCosts:
        """The cost of every node under these weights."""
        split, swallow = np.empty(len(self.inside)), np.empty(len(self.inside))
        boundaries = self.boundary, self.kind, self.confidence, self.rare(weights.rarity)
        _price(*boundaries, np.asarray(weights.nu), weights.mu, self.inside, split, swallow)
        return NodeCosts(split, swallow)


@njit(nogil=True, cache=True)
def _price(boundary, kind, confidence, rare, nu, mu, inside, split, swallow):
    total, i = 0.0, 0
    for v in range(len(inside)):
        sure = price = 0.0
        while i < len(boundary) and boundary[i] == v:
            weight = nu[kind[i]]
            sure, price = confidence[i] * (weight > 0), weight * confidence[i] * rare[i]
            i += 1
        total += price
        split[v], swallow[v] = mu * (1 - sure) * inside[v], total


def between_syllables(words: Sequence[str], node: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of each node, whether it is a gap between two Hangul syllables of one word."""
    before = np.ones(int(node[-1]), dtype=bool)  # is there a character after this node, and is it a syllable?
    before[node[1:] - 1] = False
    before[before] = syllable_mask(np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32))
    before[1:] &= before[:-1].copy()
    before[0] = False
    return before


def removal_loss(
    lattice: Lattice, costs: NodeCosts, price: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The cost of the cheapest segmentations, the uses of each piece, and the loss if it were removed.

    The absence is exact to first order: for one use of a piece, the cheapest path of the whole word that avoids it.
    """
    return _summed(_removal_loss, lattice, costs, price, pool)


def addition_gain(
    lattice: Lattice, costs: NodeCosts, price: NDArray[np.float64], alive: NDArray[np.bool_], pool: ThreadPoolExecutor
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The cost of the cheapest segmentations, the uses of each piece, and the gain if a dead one alone were added."""
    return _summed(_addition_gain, lattice, costs, np.where(alive, price, -price), pool)


def _summed(
    kernel: object, lattice: Lattice, costs: NodeCosts, price: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    def part(span: tuple[int, int]) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        first, second = np.zeros(len(price)), np.zeros(len(price))
        total = kernel(  # type: ignore[operator]
            *span, *lattice.arrays, costs.split, costs.swallow, price, first, second
        )
        return total, first, second

    parts = list(pool.map(part, lattice.shards))
    total, first, second = parts[0]
    for more in parts[1:]:
        total += more[0]
        first += more[1]
        second += more[2]
    return total, first, second


@njit(nogil=True, cache=True)
def _count(first, last, arc, piece, alive):
    n = 0
    for e in range(arc[first], arc[last]):
        n += alive[piece[e]]
    return n


@njit(nogil=True, cache=True)
def _keep(first, last, at, end, arc, length, piece, alive, arcs, lengths, pieces):
    """Write the arcs of living pieces into the places from `at` to `end`, and where those of each node end."""
    for v in range(first, last):
        for e in range(arc[v], arc[v + 1]):
            # Written in any case, and overwritten where the piece is dead: no branch to guess. Behind the last living arc
            # the places are another thread's.
            if at < end:
                lengths[at], pieces[at] = length[e], piece[e]
            at += alive[piece[e]]
        arcs[v + 1] = at


@njit(nogil=True, cache=True)
def _forward(base, end, arc, length, piece, split, swallow, price, ahead, best):
    """Cheapest cost from the first node, and the arc of the best path into a node.

    A piece with a price of at most 0 is dead and its arcs are passed over.
    """
    ahead[0] = 0.0
    for v in range(base + 1, end):
        least, into, swallowed, cut = np.inf, 0, swallow[v - 1], split[v]
        for e in range(arc[v], arc[v + 1]):
            p = price[piece[e]]
            if p <= 0:
                continue
            u = v - length[e]
            cost = ahead[u - base] + p + swallowed - swallow[u] + cut
            if cost < least:
                least, into = cost, e
        ahead[v - base], best[v - base] = least, into


@njit(nogil=True, cache=True)
def _backward(base, end, arc, length, piece, split, swallow, price, behind):
    """Cheapest cost to the last node."""
    for k in range(end - base):
        behind[k] = np.inf
    behind[end - 1 - base] = 0.0
    for v in range(end - 1, base, -1):
        rest, swallowed, cut = behind[v - base], swallow[v - 1], split[v]
        for e in range(arc[v], arc[v + 1]):
            p = price[piece[e]]
            if p <= 0:
                continue
            u = v - length[e]
            behind[u - base] = min(behind[u - base], rest + p + swallowed - swallow[u] + cut)


def decode(
    lattice: Lattice, score: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Decode as Unigram with these scores: the nodes where it cuts (last ones too), and uses of each piece.

    Of equal paths it takes the one whose last piece starts earliest, as `koktok.model.models` does.
    """
    return _followed(_decode, lattice, (), score, pool)


def cheapest(
    lattice: Lattice, costs: NodeCosts, price: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """The cheapest segmentations: the nodes where they cut, and uses of pieces."""
    return _followed(_cheapest, lattice, (costs.split, costs.swallow), price, pool)


def _followed(
    kernel: object, lattice: Lattice, costs: tuple[Any, ...], price: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    cut, weight = np.zeros(int(lattice.node[-1]), dtype=bool), lattice.weight.astype(np.int64)

    def part(span: tuple[int, int]) -> NDArray[np.int64]:
        uses = np.zeros(len(price), dtype=np.int64)
        kernel(*span, *lattice.arrays[:4], weight, *costs, price, cut, uses)  # type: ignore[operator]
        return uses

    return cut, np.sum(list(pool.map(part, lattice.shards)), axis=0)


def merge_gain(
    lattice: Lattice, costs: NodeCosts, price: NDArray[np.float64], cut: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The gain of each piece where it replaces the tokens that a decoder spells it with."""
    gain = np.zeros(len(price))
    _merge_gain(*lattice.arrays, costs.split, costs.swallow, price, cut, gain)
    return gain


@njit(nogil=True, cache=True)
def _merge_gain(node, arc, length, piece, weight, split, swallow, price, cut, gain):
    paid = np.empty(longest_word(0, len(node) - 1, node))  # by the tokens up to each cut
    for w in range(len(node) - 1):
        base, end = node[w], node[w + 1]
        paid[0] = 0.0
        last = base
        for v in range(base + 1, end):
            if not cut[v]:
                continue
            for e in range(arc[v], arc[v + 1]):
                if length[e] == v - last:
                    token = price[piece[e]] + swallow[v - 1] - swallow[last] + split[v]
                    paid[v - base] = paid[last - base] + token
            for e in range(arc[v], arc[v + 1]):
                u = v - length[e]
                if u < last and (u == base or cut[u]):
                    whole = price[piece[e]] + swallow[v - 1] - swallow[u] + split[v]
                    gain[piece[e]] += weight[w] * (paid[v - base] - paid[u - base] - whole)
            last = v


@njit(nogil=True, cache=True)
def _decode(lo, hi, node, arc, length, piece, weight, score, cut, uses):
    size = longest_word(lo, hi, node)
    ahead, best = np.empty(size), np.empty(size, np.int64)
    for w in range(lo, hi):
        base, end = node[w], node[w + 1]
        ahead[0] = 0.0
        for v in range(base + 1, end):
            ahead[v - base] = -np.inf
            for e in range(arc[v], arc[v + 1]):
                s = ahead[v - length[e] - base] + score[piece[e]]
                if s >= ahead[v - base]:  # arcs come short ones first, so that the longest of equals stays
                    ahead[v - base] = s
                    best[v - base] = e
        _follow(base, end, best, length, piece, weight[w], cut, uses)


@njit(nogil=True, cache=True)
def _cheapest(lo, hi, node, arc, length, piece, weight, split, swallow, price, cut, uses):
    size = longest_word(lo, hi, node)
    ahead, best = np.empty(size), np.empty(size, np.int64)
    for w in range(lo, hi):
        base, end = node[w], node[w + 1]
        if end - base < 2:
            continue
        _forward(base, end, arc, length, piece, split, swallow, price, ahead, best)
        _follow(base, end, best, length, piece, weight[w], cut, uses)


@njit(nogil=True, cache=True)
def _follow(base, end, best, length, piece, n, cut, uses):
    """Walk the best path of a word back from its end: mark its cuts, and count its pieces `n` times."""
    v = end - 1
    while v > base:
        e = best[v - base]
        cut[v] = True
        uses[piece[e]] += n
        v -= length[e]


@njit(nogil=True, cache=True)
def longest_word(lo, hi, node):
    """The number of nodes of the longest of some words."""
    longest = 1
    for w in range(lo, hi):
        longest = max(longest, node[w + 1] - node[w])
    return longest


@njit(nogil=True, cache=True)
def _removal_loss(lo, hi, node, arc, length, piece, weight, split, swallow, price, uses, loss):
    size = longest_word(lo, hi, node)
    ahead, behind, second = np.empty(size), np.empty(size), np.empty(size)
    best, used, rank = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    total = 0.0
    for w in range(lo, hi):
        base, end = node[w], node[w + 1]
        if end - base < 2:
            continue
        _forward(base, end, arc, length, piece, split, swallow, price, ahead, best)
        cheapest = ahead[end - 1 - base]
        total += weight[w] * cheapest
        # `used`: the arcs of the best path from its end; `rank[k]`: how many of them start at node k or later.
        v, n = end - 1, 0
        while v > base:
            e = best[v - base]
            u = v - length[e]
            for k in range(u + 1, v + 1):
                rank[k - base] = n
            used[n], second[n] = e, np.inf
            n += 1
            v = u
        rank[0] = n
        # Every path covers each character with one arc, so the paths that avoid an arc of the best one are those that cover
        # its first character with another one. The pass is that of `_backward`, which meets every arc when the cost behind
        # its end is known; a pass of their own took an eighth more time.
        behind[: end - base] = np.inf
        behind[end - 1 - base] = 0.0
        for v in range(end - 1, base, -1):
            swallowed, cut, rest, last = swallow[v - 1], split[v], behind[v - base], rank[v - base]
            for e in range(arc[v], arc[v + 1]):
                p = price[piece[e]]
                if p <= 0:
                    continue
                u = v - length[e]
                behind[u - base] = min(behind[u - base], rest + p + swallowed - swallow[u] + cut)
                first = rank[u - base]
                if first == last:
                    continue
                through = ahead[u - base] + p + swallowed - swallow[u] + cut + rest
                for i in range(last, first):
                    if through < second[i] and used[i] != e:
                        second[i] = through
        for i in range(n - 1, -1, -1):
            e = used[i]
            uses[piece[e]] += weight[w]
            loss[piece[e]] += weight[w] * (second[i] - cheapest)  # infinite for a character that stands alone
    return total


@njit(nogil=True, cache=True)
def _addition_gain(lo, hi, node, arc, length, piece, weight, split, swallow, price, uses, gain):
    """As `_removal_loss`, for the pieces whose price is negative: they are dead, and would cost that much if alive."""
    size = longest_word(lo, hi, node)
    ahead, behind = np.empty(size), np.empty(size)
    best = np.empty(size, np.int64)
    total = 0.0
    for w in range(lo, hi):
        base, end = node[w], node[w + 1]
        if end - base < 2:
            continue
        _forward(base, end, arc, length, piece, split, swallow, price, ahead, best)
        _backward(base, end, arc, length, piece, split, swallow, price, behind)
        cheapest = ahead[end - 1 - base]
        total += weight[w] * cheapest
        for v in range(base + 1, end):
            swallowed, cut, rest = swallow[v - 1], split[v], behind[v - base]
            for e in range(arc[v], arc[v + 1]):
                p = price[piece[e]]
                if p > 0:
                    continue
                u = v - length[e]
                through = ahead[u - base] - p + swallowed - swallow[u] + cut + rest
                if through < cheapest:
                    uses[piece[e]] += weight[w]
                    gain[piece[e]] += weight[w] * (cheapest - through)
    return total
