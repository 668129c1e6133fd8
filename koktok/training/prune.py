"""The choice of pieces among candidates: top-down pruning under the cost, then rounds of swaps.

Unigram's pruning (Kudo 2018) drops the pieces whose absence costs least likelihood; here
the loss is the cost of the lattice (tokens, split morphemes, swallowed boundaries). Pruning judges each piece while all
others are still there, so the pieces that it drops together may have been each other's substitutes; afterwards a few
dropped pieces come back where they would save most and the least useful go, as long as the cost falls.

Two rules may bind the choice: a ceiling (only so many pieces cross spaces) and floors (so many places belong to a group
of pieces, whatever the others would save there).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from koktok.training.lattice import Lattice, NodeCosts, addition_gain, merge_gain, removal_loss

DROP = 0.25
"""Share of the pieces dropped a round. With .1 the cost after `refine` is the same to four digits."""

SWAP = (0.10, 0.05, 0.05, 0.02, 0.02)
"""Share of the vocabulary that is offered a place in each round of `refine`. They take .07 %
(aligned) to .26 % (short) off the cost; nine rounds from .2 on take .01 % more."""


@dataclass(frozen=True)
class Round:
    """One round of selection."""

    step: str
    pieces: int
    objective: float


@dataclass(frozen=True)
class Choice:
    """The choice of one size: `prune` to it, then `refine`."""

    size: int
    lattice: Lattice
    costs: NodeCosts
    price: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    quota: tuple[NDArray[np.bool_], int] | None
    pool: ThreadPoolExecutor
    rounds: list[Round]
    floors: Sequence[tuple[NDArray[np.bool_], int]] = field(default=())

    def prune(self, alive: NDArray[np.bool_], drop: float = DROP, *, quiet: bool = False) -> NDArray[np.bool_]:
        """Drop the pieces with the least removal loss, a share in each round, until the size is reached."""
        smaller = self.lattice
        while (n := int(alive.sum())) > self.size:
            smaller = smaller.only(alive, self.pool)
            objective, _, loss = removal_loss(smaller, self.costs, self.price, self.pool)
            if not quiet:
                self.rounds.append(Round("prune", n, objective))
            fewer = int(n * (1 - drop))
            alive = self.keep(alive, loss, max(self.size, fewer), last=fewer <= self.size)
        return alive

    def refine(self, alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Swap pieces for dropped ones, a round for each share; the cheapest of all rounds."""
        best, cheapest = alive, np.inf
        for share in (*SWAP, 0.0):
            objective, swapped = self.swap(alive, share)
            if objective < cheapest:
                best, cheapest = alive, objective
            alive = swapped
        return best

    def swap(self, alive: NDArray[np.bool_], share: float) -> tuple[float, NDArray[np.bool_]]:
        """The cost of these pieces; and the same with a share of the places offered to dropped ones."""
        objective, _, gain = addition_gain(self.lattice, self.costs, self.price, alive, self.pool)
        self.rounds.append(Round("swap", int(alive.sum()), objective))
        more, useful = alive.copy(), ~alive & (gain > 0)
        more[_first(gain, useful, int(self.size * share))] = True
        # Otherwise groups with small gains would never swap within their own places.
        for group, least in self.floors:
            more[_first(gain, useful & group, int(least * share))] = True
        return objective, self.prune(more, share / 3, quiet=True)

    def refill(self, alive: NDArray[np.bool_], dead: NDArray[np.bool_], cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Fill the free places with the pieces that would save most in place of the tokens between a decoder's cuts.

        Where nothing saves anything, what costs least there. Dead ones come back only where no other piece could be used
        at all, or none of a group that has a floor.
        """
        gain = merge_gain(self.lattice, self.costs, self.price, cut)
        order = np.where(dead | (gain == 0.0), -np.inf, gain)  # 0: no two tokens in the text that it could replace
        order[alive] = np.inf
        among = alive | dead
        among[self.lattice.piece] = True
        return self.keep(among, order, self.size, last=True)

    def keep(self, alive: NDArray[np.bool_], loss: NDArray[np.float64], n: int, *, last: bool) -> NDArray[np.bool_]:
        """The fixed pieces and those with the largest loss, `n` in all, as far as quota and floors allow."""
        kept = self.fixed.copy()
        free = alive & ~self.fixed
        limited, most = (np.zeros_like(free), 0) if self.quota is None else self.quota
        if self.quota is not None:
            over = free & limited
            # Until the last round the quota shrinks with the pieces, so that both sorts are dropped side by side; and
            # enough of the others stay to fill the size without the limited ones.
            room = most if last else max(most, int(over.sum() * n / int(alive.sum())))
            free[over] = False
            free[_first(loss, over, room)] = True
        for group, least in self.floors:
            kept[_first(loss, free & group, least)] = True
        if self.quota is not None:
            others = self.size - most - int((kept & ~limited).sum())
            kept[_first(loss, free & ~limited & ~kept, others)] = True
        kept[_first(loss, free & ~kept, n - int(kept.sum()))] = True
        return kept


def _first(value: NDArray[np.float64], among: NDArray[np.bool_], n: int) -> NDArray[np.int64]:
    """The `n` highest by value; ties go to the earlier piece, that is the shorter one."""
    places = np.flatnonzero(among)
    order = np.argsort(-value[places], kind="stable")
    return places[order[: max(n, 0)]]
