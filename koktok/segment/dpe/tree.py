"""Every way to cut a set of words, on the tree of their beginnings, and the exact sums over these ways.

What a piece costs depends on the characters before it and on nothing else (not on how these were cut), so words that begin
alike share states and sums: a node for each distinct beginning, shorter ones first. With a(v) the log probability of node v,
however the characters up to it are cut, a(v) = log Σ_k exp(a(above k) + log p(piece k | above k)): one pass over the levels of
the tree for all words together (dynamic programming encoding: He, Haffari and Norouzi 2020). The weights are a table of
tensors, because that is what is saved; PyTorch is loaded when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


END: Final = "\n"
"""Follows every word, and may end a piece: the ending of a word is another piece than the same letters inside."""

UNKNOWN: Final = 0
"""Id of a character, and of the piece of one character, that the learning did not see."""

NONE, FREE = -1, -2
"""In place of the id of a piece: there is none; and a tag, which is read and costs nothing."""


class TaggedWord(NamedTuple):
    """What is cut."""

    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prefixes:
    """Nodes are beginnings of words, shorter ones first; node 0 is the empty one."""

    level: NDArray[np.int64]
    symbol: NDArray[np.int64]
    above: NDArray[np.int64]
    piece: NDArray[np.int64]
    word: NDArray[np.int64]


def prefixes_of(
    words: Sequence[TaggedWord], symbols: Mapping[str, int], pieces: Mapping[str, int], longest: int
) -> Prefixes:
    r"""The tree of some words.

    Examples
    --------
    >>> ids = {"가": 1, "나": 2, END: 3}
    >>> tree = prefixes_of([TaggedWord("가"), TaggedWord("가나")], ids, ids | {"가나": 4}, 2)
    >>> tree.level.tolist(), tree.word.tolist(), tree.piece.tolist()
    ([0, 1, 2, 4, 5], [2, 4], [[-1, -1], [1, -1], [3, -1], [2, 4], [3, -1]])
    """
    depth, symbol, ends = [0], [UNKNOWN], []
    above, piece = [[NONE] * longest], [[NONE] * longest]
    before: list[str] = []
    path = [0]
    for text, tags in words:
        spelled = [*tags, *text, END]
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, spelled, strict=False)))
        del path[shared + 1 :]
        for at in range(shared, len(spelled)):
            known = symbols.get(spelled[at], UNKNOWN)
            if at < len(tags):
                n, found = 1, [FREE]
            else:
                n = min(longest, at + 1 - len(tags))
                found = [pieces.get("".join(spelled[at - k : at + 1]), NONE) for k in range(n)]
                found[0] = max(found[0], UNKNOWN)
            rest = [NONE] * (longest - n)
            above.append([*path[: -n - 1 : -1], *rest])
            piece.append([*found, *rest])
            path.append(len(symbol))
            symbol.append(known)
            depth.append(at + 1)
        before = spelled
        ends.append(path[-1])
    arrays = (np.asarray(part, dtype=np.int64) for part in (depth, symbol, above, piece, ends))
    return _by_depth(*arrays)


def joined(parts: Sequence[Prefixes]) -> Prefixes:
    """The trees of several sets of words side by side, as one with several empty beginnings."""
    first = np.cumsum([0, *(len(part.symbol) for part in parts)])[:-1].tolist()
    return _by_depth(
        np.concatenate([np.repeat(np.arange(len(part.level) - 1), np.diff(part.level)) for part in parts]),
        np.concatenate([part.symbol for part in parts]),
        np.concatenate(
            [np.where(part.above < 0, NONE, part.above + at) for part, at in zip(parts, first, strict=True)]
        ),
        np.concatenate([part.piece for part in parts]),
        np.concatenate([part.word + at for part, at in zip(parts, first, strict=True)]),
    )


def _by_depth(
    depth: NDArray[np.int64],
    symbol: NDArray[np.int64],
    above: NDArray[np.int64],
    piece: NDArray[np.int64],
    word: NDArray[np.int64],
) -> Prefixes:
    """The nodes in the order of their depths."""
    order = np.argsort(depth, kind="stable")
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[NONE] = np.arange(len(order)), NONE
    level = np.concatenate([[0], np.cumsum(np.bincount(depth))])
    return Prefixes(level, symbol[order], place[above[order]], piece[order], place[word])


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
    for t in range(1, len(level) - 2):  # no piece begins after the end of the longest words
        nodes = slice(level[t], level[t + 1])
        before = states[-1][above[nodes, 0] - level[t - 1]]
        states.append(torch.gru_cell(embedding(symbol[nodes], weights["symbol"]), before, *gru))
    there = piece >= 0
    begun, row = torch.unique(above[there], return_inverse=True)
    logits = torch.addmm(weights["piece_bias"], torch.cat(states)[begun], weights["piece"].T)
    found = logits[row, piece[there]] - torch.logsumexp(logits, 1)[row]
    arcs = torch.where(piece == FREE, 0.0, NEVER).to(logits.dtype)
    return arcs.masked_scatter(there, found)


def marginal(arcs: Tensor, tree: Prefixes) -> Tensor:
    """a(v) of every node: the sum over all ways to cut the characters before it."""
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
        nodes = slice(level[t], level[t + 1])
        total = torch.cat(
            [total, over(total[above[nodes]] + arcs[nodes])]
        )  # of NONE some other node comes, and `NEVER` on it
    return total
