"""Candidates: every substring that could become a piece, found level by level, with the lattice that it spans.

This file adds: where pieces come from. A string of k characters can only be frequent where its first k - 1 characters
are (the apriori rule of Agrawal & Srikant 1994), so level k numbers the pairs (number of the prefix, next character)
at the places where level k - 1 was frequent. No hashes, no collisions, and the lattice falls out on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from koktok.errors import UsageError
from koktok.segmented import SegmentedCounts
from koktok.train.lattice import Lattice

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CandidatePolicy", "Candidates", "mine"]

SPACE_MARK = "\u2581"
"""SentencePiece's mark for a space: with spaces as they are, a piece with it could be read as a space elsewhere."""


@dataclass(frozen=True)
class CandidatePolicy:
    """Which substrings may become pieces.

    Parameters
    ----------
    min_count : int
        Times that a candidate must occur at places where the other rules hold.
    max_length : int
        Characters, the leading space counted.
    aligned : bool
        Only from cut to cut or inside one morpheme (the edges of a word and the gap behind its space are cuts here).
    coverage : float
        Share of the running characters that get a piece of their own; rarer characters become bytes.
    crosses : callable, optional
        True for strings that no piece may be: those that the tokenizer's pattern would cut.
    """

    min_count: int = 10
    max_length: int = 12
    aligned: bool = True
    coverage: float = 0.9995
    crosses: Callable[[str], bool] | None = None

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 1 <= self.max_length <= 255 or not 0 < self.coverage <= 1:
            raise UsageError(
                f"candidates want min_count ≥ 1, 1 ≤ max_length ≤ 255 and 0 < coverage ≤ 1; "
                f"{self.min_count}, {self.max_length} and {self.coverage} came"
            )


@dataclass(frozen=True, eq=False)
class Candidates:
    """What was found.

    Parameters
    ----------
    pieces : tuple of str
        All single characters by code point, then the longer ones by length and code point.
    n_chars : int
        How many of them are single characters.
    required : ndarray of bool, shape (n_chars,)
        Characters that must be pieces; the others are written as bytes and are in no longer piece.
    lattice : Lattice
        All arcs of all words.
    """

    pieces: tuple[str, ...]
    n_chars: int
    required: NDArray[np.bool_]
    lattice: Lattice

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Tokens of each piece: one, or the number of UTF-8 bytes of a character that is no piece."""
        tokens = np.ones(len(self.pieces))
        for i in np.flatnonzero(~self.required).tolist():
            tokens[i] = len(self.pieces[i].encode())
        return tokens


def mine(counts: SegmentedCounts, policy: CandidatePolicy, required: Collection[str] = ()) -> Candidates:
    """All candidates of counted words.

    Parameters
    ----------
    counts : SegmentedCounts
    policy : CandidatePolicy
    required : collection of str
        Characters that must be pieces, also where the text has none of them.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 10, " 학교|에서": 10})
    >>> mine(counts, CandidatePolicy(min_count=10)).pieces[5:]
    (' 학', '에서', '학교', ' 학교', '학교에', ' 학교에', '학교에서', ' 학교에서')
    """
    text = "".join(counts.words)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = np.fromiter(map(len, counts.words), dtype=np.int64, count=len(counts))
    word = np.repeat(np.arange(len(counts)), sizes)
    weight = counts.n.astype(np.float64)
    alphabet, char = _numbered(codes, [ord(c) for c in required if len(c) == 1])
    needed = _required(alphabet, np.bincount(char, weights=weight[word], minlength=len(alphabet)), policy, required)

    node = np.concatenate([[0], np.cumsum(sizes + 1)])
    at_node = np.arange(len(codes)) + word  # node before each character
    cut, allowed = _cuts(counts, node, codes, at_node)
    sums = np.cumsum(cut)
    word_end = np.repeat(node[1:] - 1, sizes)

    arcs: list[tuple[NDArray[np.int64], int, NDArray[np.int64]]] = [(at_node + 1, 1, char.astype(np.int64))]
    pieces = [chr(c) for c in alphabet.tolist()]
    place = np.flatnonzero(needed[char] & (char != _index(alphabet, SPACE_MARK)))
    usable = np.zeros(len(codes), dtype=bool)
    usable[place] = True
    number = char[place].astype(np.int64)
    for k in range(2, policy.max_length + 1):
        fits = at_node[place] + k <= word_end[place]
        place, number = place[fits], number[fits]
        fits = usable[place + k - 1]
        place, number = place[fits], number[fits]
        if not len(place):
            break
        keys, index, inverse = np.unique(
            number * len(alphabet) + char[place + k - 1], return_index=True, return_inverse=True
        )
        frequent = np.bincount(inverse, weights=weight[word[place]], minlength=len(keys)) >= policy.min_count
        start = at_node[place]
        fine = np.ones(len(place), dtype=bool)
        if policy.aligned:
            fine = (sums[start + k - 1] == sums[start]) | (allowed[start] & allowed[start + k])
        chosen = frequent & (
            np.bincount(inverse, weights=weight[word[place]] * fine, minlength=len(keys)) >= policy.min_count
        )
        strings = ["".join(map(chr, codes[p : p + k].tolist())) for p in place[index[chosen]].tolist()]
        if policy.crosses is not None:
            legal = np.fromiter((not policy.crosses(s) for s in strings), dtype=bool, count=len(strings))
            chosen[np.flatnonzero(chosen)[~legal]] = False
            strings = [s for s, good in zip(strings, legal.tolist(), strict=True) if good]
        ids = np.cumsum(chosen) - 1 + len(pieces)
        hit = chosen[inverse]
        arcs.append((start[hit] + k, k, ids[inverse[hit]]))
        pieces += strings
        keep = frequent[inverse]
        place, number = place[keep], (np.cumsum(frequent) - 1)[inverse[keep]]
    return Candidates(tuple(pieces), len(alphabet), needed, _lattice(node, weight, arcs))


def _numbered(codes: NDArray[np.uint32], more: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The distinct code points, ascending, and the number of each character of the text."""
    alphabet = np.unique(np.concatenate([np.unique(codes), np.asarray(more, dtype=np.uint32)]))
    return alphabet, np.searchsorted(alphabet, codes)


def _index(alphabet: NDArray[np.uint32], char: str) -> int:
    found = np.flatnonzero(alphabet == ord(char))
    return int(found[0]) if len(found) else -1


def _required(
    alphabet: NDArray[np.uint32], n: NDArray[np.float64], policy: CandidatePolicy, required: Collection[str]
) -> NDArray[np.bool_]:
    """The most frequent characters up to the coverage (equally frequent ones together), and the required ones."""
    strange = sorted(c for c in required if len(c) != 1 or c == SPACE_MARK)
    if strange:
        raise UsageError(f"required characters are single characters and not {SPACE_MARK!r}; {strange[0]!r} came")
    needed = np.isin(alphabet, np.asarray([ord(c) for c in required], dtype=np.uint32))
    if len(n) and n.sum() > 0:
        falling = np.sort(n)[::-1]
        floor = falling[np.searchsorted(np.cumsum(falling), policy.coverage * n.sum())]
        needed |= n >= floor
    space = _index(alphabet, SPACE_MARK)
    if space >= 0:
        needed[space] = False
    return needed


def _cuts(
    counts: SegmentedCounts, node: NDArray[np.int64], codes: NDArray[np.uint32], at_node: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """By node: is it a cut, and may an aligned piece start or end there?"""
    cut = np.zeros(int(node[-1]), dtype=bool)
    cut[np.repeat(node[:-1], np.diff(counts.start)) + counts.offset] = True
    allowed = cut.copy()
    allowed[node[:-1]] = True
    allowed[node[1:] - 1] = True
    allowed[at_node[codes == ord(" ")] + 1] = True
    return cut, allowed


def _lattice(
    node: NDArray[np.int64],
    weight: NDArray[np.float64],
    arcs: list[tuple[NDArray[np.int64], int, NDArray[np.int64]]],
) -> Lattice:
    """Arcs sorted by the node they end in, short ones first."""
    ends = np.concatenate([end for end, _, _ in arcs])
    order = np.argsort(ends, kind="stable")
    length = np.concatenate([np.full(len(end), k, dtype=np.uint8) for end, k, _ in arcs])
    piece = np.concatenate([ids.astype(np.int32) for _, _, ids in arcs])
    first = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=int(node[-1])))]).astype(np.int64)
    return Lattice(node, first, length[order], piece[order], weight)
