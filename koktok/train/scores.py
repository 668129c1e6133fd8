"""Scores that carry at run time what the analyser knew: the weights of a semi-Markov CRF, exported as Unigram scores.

This file adds: the scores. At run time a plain Unigram decoder takes the path with the highest sum of piece scores. The
scores are trained (Sarawagi & Cohen 2004) so that the probability of cheap paths under them is high: with C the cost of
a path, the loss of a word is log Σ exp(w·y) - log Σ exp(w·y - C(y)), its gradient the expected piece counts under the
free lattice minus those under the cost-weighted one. As C is additive over arcs, both are forward-backward passes.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.segment.segmented import SegmentedCounts
from koktok.train.candidates import CandidatePolicy, mine
from koktok.train.lattice import Dials, Lattice, NodeCosts, charge, decode, node_costs, offer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EPOCHS", "fit", "warm_up"]

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
    seed: int = 0,
) -> NDArray[np.float64]:
    """Train the scores of the pieces of a lattice.

    Parameters
    ----------
    lattice, costs, price
        The words with the chosen pieces only, and what segmentations cost.
    start : ndarray of float64
        Scores to begin with.
    damping : ndarray of float64
        How much each word counts here.
    epochs, rate, prior : int, float, float
        Passes over the words; step of Adagrad; strength of the pull of every score to where it began.
    seed : int
        Of the order of the words.

    Returns
    -------
    ndarray of float64
    """
    score = start.copy()
    n_chars = np.zeros(len(score))
    n_chars[lattice.piece] = lattice.length
    shift = -float((np.exp(start) * start).sum() / max((np.exp(start) * n_chars).sum(), 1e-9))
    square = np.full(len(score), 1.0)
    order = np.random.default_rng(seed).permutation(len(lattice.node) - 1)
    for epoch in range(epochs):
        _epoch(
            order if epoch % 2 == 0 else order[::-1].copy(),
            lattice.node,
            lattice.arc,
            lattice.length,
            lattice.piece,
            damping,
            costs.split,
            costs.swallow,
            price,
            score,
            start,
            square,
            rate,
            prior,
            n_chars * shift,
        )
    return score


def warm_up() -> float:
    """Compile every kernel of the trainer, or load it from Numba's cache; the seconds that took."""
    clock = time.perf_counter()
    counts = SegmentedCounts.from_marked({"가|나": 2, "가": 1})
    found = mine(counts, CandidatePolicy(min_count=1))
    costs, price = node_costs(counts, found.lattice, Dials.of(1, 1, 1)), found.tokens
    with ThreadPoolExecutor(1) as pool:
        charge(found.lattice, costs, price, pool)
        offer(found.lattice, costs, price, np.ones(len(price), dtype=bool), pool)
    decode(found.lattice, fit(found.lattice, costs, price, -price, damping=found.lattice.weight, epochs=1))
    return time.perf_counter() - clock


@njit(nogil=True, cache=True)
def _sums(base, end, arc, length, piece, factor, inside, outside, split, ahead, behind):  # type: ignore[no-untyped-def]
    """Forward and backward sums over the paths of a word.

    An arc u → v weighs `factor[piece] * inside[v - 1] * outside[u] * split[v]`, by node from the start of the word.
    """
    n = end - base
    ahead[0] = 1.0
    for k in range(n):
        behind[k] = 0.0
    for v in range(base + 1, end):
        total = 0.0
        for e in range(arc[v], arc[v + 1]):
            u = v - length[e] - base
            total += ahead[u] * factor[piece[e]] * outside[u]
        ahead[v - base] = total * inside[v - 1 - base] * split[v - base]
    behind[n - 1] = 1.0
    for v in range(end - 1, base, -1):
        here = behind[v - base] * inside[v - 1 - base] * split[v - base]
        for e in range(arc[v], arc[v + 1]):
            u = v - length[e] - base
            behind[u] += here * factor[piece[e]] * outside[u]


@njit(nogil=True, cache=True)
def _epoch(order, node, arc, length, piece, weight, split, swallow, price, score, start, square, rate, prior, lift):  # type: ignore[no-untyped-def]
    """One pass of Adagrad over the words.

    All weights are products, so that a pass takes one exponential per changed score and four per character; `lift` is
    a constant per character, which is in every path of a word equally often, and keeps the products near 1.
    """
    size = LONGEST + 1
    ahead, behind, ahead2, behind2 = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    inside, outside, cuts, ones = np.empty(size), np.empty(size), np.empty(size), np.ones(size)
    toll = np.exp(-price)
    free = np.exp(score + lift)
    costly = free * toll
    changed = np.empty(size * 256, np.int64)
    for w in order:
        base, end = node[w], node[w + 1]
        n = end - base
        if n < 3 or n > size:
            continue
        for k in range(n):
            crossed = swallow[base + k] - swallow[base]
            inside[k], outside[k], cuts[k] = np.exp(-crossed), np.exp(crossed), np.exp(-split[base + k])
        _sums(base, end, arc, length, piece, free, ones, ones, ones, ahead, behind)
        _sums(base, end, arc, length, piece, costly, inside, outside, cuts, ahead2, behind2)
        all_paths, good_paths = ahead[n - 1], ahead2[n - 1]
        if not (1e-250 < all_paths < 1e250 and 1e-250 < good_paths < 1e250):
            continue  # a word of many rare characters: nothing to learn, and no room left in the exponent
        n_changed = 0
        for v in range(base + 1, end):
            here = behind[v - base] / all_paths
            here2 = behind2[v - base] * inside[v - 1 - base] * cuts[v - base] / good_paths
            for e in range(arc[v], arc[v + 1]):
                u = v - length[e] - base
                p = piece[e]
                g = weight[w] * (ahead2[u] * costly[p] * outside[u] * here2 - ahead[u] * free[p] * here)
                if abs(g) < 1e-6:
                    continue
                g -= prior * (score[p] - start[p])
                square[p] += g * g
                score[p] += rate * g / np.sqrt(square[p])
                changed[n_changed] = p
                n_changed += 1
        for i in range(n_changed):
            p = changed[i]
            free[p] = np.exp(score[p] + lift[p])
            costly[p] = free[p] * toll[p]
