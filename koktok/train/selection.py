"""Which candidates become pieces: top-down pruning under the cost, then second thoughts.

This file adds: the choice. Unigram's pruning (Kudo 2018) drops the pieces whose absence costs least likelihood; here
the loss is the cost of the lattice (tokens, split morphemes, swallowed boundaries). Pruning judges each piece while all
others are still there, so the pieces that it drops together may have been each other's substitutes; afterwards a few
dropped pieces come back where they would save most and the least useful go, as long as the cost falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from koktok.train.lattice import Lattice, NodeCosts, charge, offer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Round", "select"]

DROP = 0.25
"""Share of the pieces dropped a round."""

SWAP = (0.10, 0.05, 0.05, 0.02, 0.02)
"""Share of the vocabulary that is offered a place in each round of second thoughts."""


@dataclass(frozen=True)
class Round:
    """One round of selection.

    Parameters
    ----------
    step : str
        "prune" or "swap".
    pieces : int
        Pieces alive before it.
    objective : float
        Cost of the text with them.
    """

    step: str
    pieces: int
    objective: float


def select(
    lattice: Lattice,
    costs: NodeCosts,
    price: NDArray[np.float64],
    fixed: NDArray[np.bool_],
    sizes: Sequence[int],
    pool: ThreadPoolExecutor,
    on_round: Callable[[Round], None] = lambda _: None,
    *,
    drop: float = DROP,
    swap: Sequence[float] = SWAP,
) -> dict[int, NDArray[np.bool_]]:
    """Choose pieces for several sizes, from the largest to the smallest, each starting from the one before.

    Parameters
    ----------
    lattice, costs, price
        The words, and what segmentations cost.
    fixed : ndarray of bool
        Pieces that stay, and count towards a size.
    sizes : sequence of int
        How many pieces to choose, fixed ones counted.
    pool : ThreadPoolExecutor
        Its size changes nothing but the time.
    on_round : callable
        Called after every round.
    drop : float
        Share of the pieces dropped a round.
    swap : sequence of float
        Share offered a place, a number for each round of second thoughts.

    Returns
    -------
    dict of int to ndarray of bool
        The chosen pieces of each size.
    """
    alive = np.ones(len(price), dtype=bool)
    chosen = {}
    for size in sorted(set(sizes), reverse=True):
        alive = _prune(lattice, costs, price, fixed, alive, size, pool, on_round, drop)
        chosen[size] = _second_thoughts(lattice, costs, price, fixed, alive, size, pool, on_round, swap)
        alive = chosen[size]
    return chosen


def _prune(
    lattice: Lattice,
    costs: NodeCosts,
    price: NDArray[np.float64],
    fixed: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    size: int,
    pool: ThreadPoolExecutor,
    on_round: Callable[[Round], None],
    drop: float,
) -> NDArray[np.bool_]:
    smaller = lattice.only(alive)
    while (n := int(alive.sum())) > size:
        objective, _, regret = charge(smaller, costs, price, pool)
        on_round(Round("prune", n, objective))
        alive = _keep(alive, fixed, regret, max(size, int(n * (1 - drop))))
        smaller = smaller.only(alive)
    return alive


def _second_thoughts(
    lattice: Lattice,
    costs: NodeCosts,
    price: NDArray[np.float64],
    fixed: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    size: int,
    pool: ThreadPoolExecutor,
    on_round: Callable[[Round], None],
    swap: Sequence[float],
) -> NDArray[np.bool_]:
    best, cheapest = alive, np.inf
    for share in [*swap, 0.0]:
        objective, _, gain = offer(lattice, costs, price, alive, pool)
        on_round(Round("swap", int(alive.sum()), objective))
        if objective < cheapest:
            best, cheapest = alive, objective
        more = alive.copy()
        more[_first(gain, ~alive & (gain > 0), int(size * share))] = True
        alive = _prune(lattice, costs, price, fixed, more, size, pool, lambda _: None, drop=share / 3)
    return best


def _keep(
    alive: NDArray[np.bool_], fixed: NDArray[np.bool_], regret: NDArray[np.float64], n: int
) -> NDArray[np.bool_]:
    """The fixed pieces and those that it costs most to lose, `n` in all."""
    kept = fixed.copy()
    kept[_first(regret, alive & ~fixed, n - int(fixed.sum()))] = True
    return kept


def _first(value: NDArray[np.float64], among: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """The `n` highest by value; ties go to the earlier piece, that is the shorter one."""
    places = np.flatnonzero(among)
    order = np.argsort(-value[places], kind="stable")
    return places[order[: max(n, 0)]]
