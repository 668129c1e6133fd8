"""Every way to cut a set of words, on the tree of their beginnings.

The lattice that the decoder works on. What a piece costs depends on the characters before it and on nothing else
(not on how these were cut), so that words which begin alike share states and sums: a node for each distinct beginning, in the
order of their lengths, and the sum over all segmentations is one pass over the levels of the tree for all words together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


END: Final = "\n"
"""Stands behind every word, and may end a piece: the ending of a word is another piece than the same letters inside."""

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
