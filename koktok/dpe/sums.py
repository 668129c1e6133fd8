"""The decoder: characters in, the probability of the piece that begins behind them out; and the exact sums over segmentations.

Dynamic programming encoding (He, Haffari and Norouzi 2020) on the tree of `Prefixes`. With a(v) the log
probability of node v, however the characters up to it are cut, a(v) = log Σ_k exp(a(above k) + log p(piece k | above k)).
The weights are a table of tensors, because that is what is saved; PyTorch is loaded when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from koktok.dpe.prefixes import FREE, Prefixes

if TYPE_CHECKING:
    from torch import Tensor


NEVER = -1e30
"""Log probability of what is no piece; finite, because a sum over infinities has no gradient."""


def fresh_weights(symbols: int, pieces: int, width: int, seed: int) -> dict[str, Tensor]:
    """Weights to begin with, of a gated recurrent unit over symbols and a softmax over pieces."""
    import torch

    dice = torch.Generator().manual_seed(seed)
    within = width**-0.5
    shapes = {
        "symbol": (symbols, width),
        "gru.input": (3 * width, width),
        "gru.state": (3 * width, width),
        "gru.input_bias": (3 * width,),
        "gru.state_bias": (3 * width,),
        "piece": (pieces, width),
        "piece_bias": (pieces,),
    }
    return {name: (2 * torch.rand(shape, generator=dice) - 1) * within for name, shape in shapes.items()}


def arcs_of(weights: Mapping[str, Tensor], tree: Prefixes) -> Tensor:
    """Log probability of every piece that ends in every node, given the characters before it; shape (nodes, longest)."""
    import torch
    from torch.nn.functional import embedding

    symbol, above, piece = (torch.from_numpy(part) for part in (tree.symbol, tree.above, tree.piece))
    level = tree.level.tolist()
    gru = [weights[f"gru.{name}"] for name in ("input", "state", "input_bias", "state_bias")]
    states = [weights["piece"].new_zeros(level[1], weights["piece"].shape[1])]
    for t in range(1, len(level) - 2):  # no piece begins behind the end of the longest words
        here = slice(level[t], level[t + 1])
        before = states[-1][above[here, 0] - level[t - 1]]
        states.append(torch.gru_cell(embedding(symbol[here], weights["symbol"]), before, *gru))
    there = piece >= 0
    begun, row = torch.unique(above[there], return_inverse=True)
    logits = torch.addmm(weights["piece_bias"], torch.cat(states)[begun], weights["piece"].T)
    found = logits[row, piece[there]] - torch.logsumexp(logits, 1)[row]
    arcs = torch.where(piece == FREE, 0.0, NEVER).to(logits.dtype)
    return arcs.masked_scatter(there, found)


def marginal(arcs: Tensor, tree: Prefixes) -> Tensor:
    """a(v) of every node: the sum over all ways to cut what stands before it."""
    import torch

    return _forward(arcs, tree, lambda ways: torch.logsumexp(ways, 1))


def best(arcs: Tensor, tree: Prefixes) -> Tensor:
    """The same for the best way alone."""
    return _forward(arcs, tree, lambda ways: ways.amax(1))


def _forward(arcs: Tensor, tree: Prefixes, over: Callable[[Tensor], Tensor]) -> Tensor:
    import torch

    level, above = tree.level.tolist(), torch.from_numpy(tree.above)
    total = arcs.new_zeros(level[1])
    for t in range(1, len(level) - 1):
        here = slice(level[t], level[t + 1])
        total = torch.cat(
            [total, over(total[above[here]] + arcs[here])]
        )  # of NONE some other node comes, and `NEVER` on it
    return total
