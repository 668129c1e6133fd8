"""Scores that carry at run time what the analyser knew: the weights of a semi-Markov CRF, exported as Unigram scores.

This file adds: the scores. At run time a plain Unigram decoder takes the path with the highest sum of piece scores. The
scores are trained (Sarawagi & Cohen 2004) so that the probability of cheap paths under them is high: with C the cost of
a path, the loss of a word is log Σ exp(w·y) - log Σ exp(w·y - C(y)), its gradient the expected piece counts under the
free lattice minus those under the cost-weighted one. As C is additive over arcs, both are forward-backward passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.train.lattice import Lattice, NodeCosts

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit"]

EPOCHS = 5
RATE = 0.3
PRIOR = 1e-3


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
        )
    return score


@njit(nogil=True, cache=True)
def _add(a, b):  # type: ignore[no-untyped-def]
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@njit(nogil=True, cache=True)
def _expect(base, end, arc, length, piece, split, swallow, price, score, sharp, ahead, behind):  # type: ignore[no-untyped-def]
    """Forward and backward log sums of a word; arcs weigh exp(score - sharp * cost)."""
    n = end - base
    ahead[0] = 0.0
    for v in range(base + 1, end):
        top = -np.inf
        for e in range(arc[v], arc[v + 1]):
            u = v - length[e]
            p = piece[e]
            s = ahead[u - base] + score[p] - sharp * (price[p] + swallow[v - 1] - swallow[u] + split[v])
            top = max(top, s)
        total = 0.0
        for e in range(arc[v], arc[v + 1]):
            u = v - length[e]
            p = piece[e]
            s = ahead[u - base] + score[p] - sharp * (price[p] + swallow[v - 1] - swallow[u] + split[v])
            total += np.exp(s - top)
        ahead[v - base] = top + np.log(total)
    for k in range(n):
        behind[k] = -np.inf
    behind[n - 1] = 0.0
    for v in range(end - 1, base, -1):
        for e in range(arc[v], arc[v + 1]):
            u = v - length[e]
            p = piece[e]
            s = behind[v - base] + score[p] - sharp * (price[p] + swallow[v - 1] - swallow[u] + split[v])
            behind[u - base] = _add(behind[u - base], s)


@njit(nogil=True, cache=True)
def _epoch(order, node, arc, length, piece, weight, split, swallow, price, score, start, square, rate, prior):  # type: ignore[no-untyped-def]
    size = 1
    for w in order:
        size = max(size, node[w + 1] - node[w])
    ahead, behind = np.empty(size), np.empty(size)
    ahead2, behind2 = np.empty(size), np.empty(size)
    for w in order:
        base, end = node[w], node[w + 1]
        n = end - base
        if n < 3:
            continue
        _expect(base, end, arc, length, piece, split, swallow, price, score, 0.0, ahead, behind)
        _expect(base, end, arc, length, piece, split, swallow, price, score, 1.0, ahead2, behind2)
        free, wanted = ahead[n - 1], ahead2[n - 1]
        for v in range(base + 1, end):
            for e in range(arc[v], arc[v + 1]):
                u = v - length[e]
                p = piece[e]
                cost = price[p] + swallow[v - 1] - swallow[u] + split[v]
                g = weight[w] * (
                    np.exp(ahead2[u - base] + score[p] - cost + behind2[v - base] - wanted)
                    - np.exp(ahead[u - base] + score[p] + behind[v - base] - free)
                )
                if abs(g) < 1e-6:
                    continue
                g -= prior * (score[p] - start[p])
                square[p] += g * g
                score[p] += rate * g / np.sqrt(square[p])
