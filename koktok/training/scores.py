"""Scores that bring the analyser's cuts to run time: the weights of a semi-Markov CRF, exported as Unigram scores.

At run time a plain Unigram decoder takes the path with the highest sum of piece scores. The
scores are trained (Sarawagi & Cohen 2004) so that the probability of cheap paths under them is high: with C the cost of
a path, the loss of a word is log Σ exp(w·y) - log Σ exp(w·y - C(y)), its gradient the expected piece counts under the
free lattice minus those under the cost-weighted one. As C is additive over arcs, both are forward-backward passes.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.segment.segmented import SegmentedCounts
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.lattice import (
    SHARDS,
    CostWeights,
    Lattice,
    NodeCosts,
    NodePrices,
    addition_gain,
    decode,
    removal_loss,
)

EPOCHS = 5
"""Passes over the words. With 5 the decoder's cost is .09 % over the best that the pieces allow; 10 give .07 %."""

RATE = 0.3
"""Step of Adagrad; .1 leaves .16 %, 1 gives .05 %: F +.0004, which is noise."""

PRIOR = 1e-3
"""Pull to the scores of plain counting, so that pieces on which nothing depends stay put. Other values were not tried."""

LONGEST = 64
"""Longer words are left out: addresses and code, whose products of probabilities leave the exponents of a float64."""


def fit(
    lattice: Lattice,
    costs: NodeCosts,
    price: NDArray[np.float64],
    start: NDArray[np.float64],
    *,
    damping: NDArray[np.float64],
    epochs: int = EPOCHS,
    rate: float = RATE,
    prior: float = PRIOR,
    resume: NDArray[np.float64] | None = None,
    pool: ThreadPoolExecutor,
) -> NDArray[np.float64]:
    """Train the scores of the pieces of a lattice, from `start` or `resume`."""
    n_chars = np.zeros(len(start))
    n_chars[lattice.piece] = lattice.length
    shift = -float((np.exp(start) * start).sum() / max((np.exp(start) * n_chars).sum(), 1e-9))
    # The passes go through words in a random order, and through memory in that of the arrays: so both are made the same.
    order = np.random.default_rng(0).permutation(len(lattice.node) - 1)
    there = np.zeros(len(start), dtype=bool)
    there[lattice.piece] = True
    place = np.cumsum(there, dtype=np.int32) - 1  # of each piece among those of the lattice
    words = *_ordered(lattice, costs, order, place, pool), damping[order], np.exp(-price[there])
    trained = (start if resume is None else resume)[there]  # a copy
    rest = start[there], np.ones(len(trained)), rate, prior, n_chars[there] * shift
    for epoch in range(epochs):
        _epoch(epoch % 2 == 1, *words, trained, *rest)
    score = start.copy()
    score[there] = trained
    return score


def warm_up() -> float:
    """Compile every kernel of the trainer, or load it from Numba's cache; the seconds that took."""
    clock = time.perf_counter()
    counts = SegmentedCounts.from_marked({"가|나": 2, "가": 1})
    found = mine(counts, CandidatePolicy(min_count=1))
    costs, price = NodePrices(counts, found.lattice.node).costs(CostWeights.of(1, 1, 1)), found.tokens
    with ThreadPoolExecutor(1) as pool:
        removal_loss(found.lattice, costs, price, pool)
        addition_gain(found.lattice, costs, price, np.ones(len(price), dtype=bool), pool)
        score = fit(found.lattice, costs, price, -price, damping=found.lattice.weight, epochs=1, pool=pool)
        decode(found.lattice, score, pool)
    return time.perf_counter() - clock


def _ordered(
    lattice: Lattice, costs: NodeCosts, order: NDArray[np.int64], place: NDArray[np.int32], pool: ThreadPoolExecutor
) -> tuple[NDArray[Any], ...]:
    """Copies of the words that are short enough in another order, with the exponentials of the costs of their nodes."""
    sizes = np.stack([np.diff(lattice.node), np.diff(lattice.arc[lattice.node])])[:, order]
    sizes[:, (sizes[0] < 3) | (sizes[0] > LONGEST + 1)] = 0
    nodes, arcs = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)
    arc, length, piece = np.zeros(nodes[-1] + 1, np.int64), np.empty(arcs[-1], np.uint8), np.empty(arcs[-1], np.int32)
    copies = arc, length, piece, *np.empty((3, nodes[-1]))
    words = lattice.node, lattice.arc, lattice.length, lattice.piece, costs.split, costs.swallow
    edges = np.linspace(0, len(order), SHARDS + 1, dtype=np.int64)
    list(pool.map(lambda lo, hi: _copy(lo, hi, order, place, nodes, arcs, *words, *copies), edges[:-1], edges[1:]))
    return nodes, *copies


@njit(nogil=True, cache=True)
def _copy(
    lo, hi, order, place, nodes, arcs, node, arc, length, piece, split, swallow,
    new_arc, lengths, pieces, inside, outside, cuts,
):  # fmt: skip
    for i in range(lo, hi):
        base, k, at = node[order[i]], nodes[i], arcs[i]
        for v in range(base, base + nodes[i + 1] - k):
            for e in range(arc[v], arc[v + 1]):
                lengths[at], pieces[at] = length[e], place[piece[e]]
                at += 1
            crossed, cut = swallow[v] - swallow[base], split[v]
            inside[k], outside[k] = (1.0, 1.0) if crossed == 0 else (np.exp(-crossed), np.exp(crossed))
            cuts[k] = 1.0 if cut == 0 else np.exp(-cut)
            k += 1
            new_arc[k] = at


@njit(nogil=True, cache=True)
def _epoch(
    backwards, node, arc, length, piece, inside, outside, cuts, weight, discount, score, start, square, rate, prior,
    scaling,
):  # fmt: skip
    """One pass of Adagrad over the words: sums over the paths of each, free and cost-augmented, and a step along their difference.

    An arc u → v weighs `free[piece]` in the one, and `augmented[piece] * inside[v - 1] * outside[u] * cuts[v]` in the other.
    All weights are products, so that a pass takes one exponential per changed score;
    `scaling` is a constant per character, which is in every path of a word equally often, and keeps the products near 1.
    """
    size = LONGEST + 1
    ahead, behind, ahead2, behind2 = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    free = np.exp(score + scaling)
    augmented = free * discount
    changed = np.empty(size * 256, np.int64)
    words = len(node) - 1
    for i in range(words):
        w = words - 1 - i if backwards else i
        base = node[w]
        n = node[w + 1] - base
        if n == 0:
            continue
        ahead[0] = ahead2[0] = 1.0
        for v in range(1, n):
            total, total2 = 0.0, 0.0
            for e in range(arc[base + v], arc[base + v + 1]):
                u, p = v - length[e], piece[e]
                total += ahead[u] * free[p]
                total2 += ahead2[u] * augmented[p] * outside[base + u]
            ahead[v], ahead2[v] = total, total2 * inside[base + v - 1] * cuts[base + v]
        all_paths, good_paths = ahead[n - 1], ahead2[n - 1]
        if not (1e-250 < all_paths < 1e250 and 1e-250 < good_paths < 1e250):
            continue  # a word of many rare characters: nothing to learn, and no room left in the exponent
        behind[: n - 1] = 0.0
        behind2[: n - 1] = 0.0
        behind[n - 1] = behind2[n - 1] = 1.0
        for v in range(n - 1, 0, -1):
            tail, tail2 = behind[v], behind2[v] * inside[base + v - 1] * cuts[base + v]
            for e in range(arc[base + v], arc[base + v + 1]):
                u, p = v - length[e], piece[e]
                behind[u] += tail * free[p]
                behind2[u] += tail2 * augmented[p] * outside[base + u]
        n_changed = 0
        for v in range(1, n):
            tail = behind[v] / all_paths
            tail2 = behind2[v] * inside[base + v - 1] * cuts[base + v] / good_paths
            for e in range(arc[base + v], arc[base + v + 1]):
                u, p = v - length[e], piece[e]
                g = weight[w] * (ahead2[u] * augmented[p] * outside[base + u] * tail2 - ahead[u] * free[p] * tail)
                if abs(g) < 1e-6:
                    continue
                g -= prior * (score[p] - start[p])
                square[p] += g * g
                score[p] += rate * g / np.sqrt(square[p])
                changed[n_changed] = p
                n_changed += 1
        for c in range(n_changed):
            p = changed[c]
            free[p] = np.exp(score[p] + scaling[p])
            augmented[p] = free[p] * discount[p]
