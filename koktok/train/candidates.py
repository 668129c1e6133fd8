"""Candidates: every substring that could become a piece, found level by level, with the lattice that it spans.

This file adds: where pieces come from. A string of k characters can only be frequent where its first k - 1 characters
are (the apriori rule of Agrawal & Srikant 1994), so level k numbers the pairs (number of the prefix, next character)
at the places where level k - 1 was frequent. Pairs are compared in full, so nothing collides, and the lattice falls out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.errors import UsageError
from koktok.hangul import syllable_mask
from koktok.segment.segmented import SegmentedCounts
from koktok.train.lattice import Lattice
from koktok.train.superwords import SuperwordPolicy, crosses_space, spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CandidatePolicy", "Candidates", "mine"]

PLAIN = 5 / 3
"""Pieces without a syllable may be so much longer: a syllable is two or three letters, and English words and indentation
are long. With 30 % English and code, 20 letters beside 12 syllables take 1.8 % off English and 4 % off code; 32 take
nothing more."""

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
        Characters, the leading space counted; `PLAIN` times as many in a piece without a syllable.
    aligned : bool
        Only from cut to cut or inside one morpheme (the edges of a word and the gap behind its space are cuts here).
    coverage : float
        Share of the running characters that get a piece of their own; rarer characters become bytes.
    crosses : callable, optional
        True for strings that no piece may be: those that the tokenizer's pattern would cut.
    superwords : SuperwordPolicy, optional
        What a piece that crosses a space must be; without it there is none.
    min_words : int
        Places in distinct words that it must occur in.
    """

    min_count: int = 10
    max_length: int = 12
    aligned: bool = True
    coverage: float = 0.9995
    crosses: Callable[[str], bool] | None = None
    superwords: SuperwordPolicy | None = None
    min_words: int = 1

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 1 <= self.max_length <= 255 or not 0 <= self.coverage <= 1:
            raise UsageError(
                f"candidates want min_count ≥ 1, 1 ≤ max_length ≤ 255 and 0 ≤ coverage ≤ 1; "
                f"{self.min_count}, {self.max_length} and {self.coverage} came"
            )

    @property
    def max_plain(self) -> int:
        """Characters of a piece without a syllable, at most."""
        return min(int(self.max_length * PLAIN), 255)

    def takes(self, piece: str, n: float, runs: float, documents: float) -> bool:
        """True where a piece that crosses a space may be one."""
        rule = self.superwords
        return (
            rule is not None
            and n >= rule.min_count
            and runs >= rule.min_runs
            and documents >= rule.min_documents
            and rule.looks_right(piece)
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
    n : ndarray of float64
        Occurrences that follow the policy, of each piece.
    superword : ndarray of bool
        Whether each piece crosses a space.
    lattice : Lattice
        All arcs of all words.
    """

    pieces: tuple[str, ...]
    n_chars: int
    required: NDArray[np.bool_]
    n: NDArray[np.float64]
    superword: NDArray[np.bool_]
    lattice: Lattice

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Tokens of each piece: one, or the number of UTF-8 bytes of a character that is no piece."""
        tokens = np.ones(len(self.pieces))
        for i in np.flatnonzero(~self.required).tolist():
            tokens[i] = len(self.pieces[i].encode())
        return tokens


def mine(
    counts: SegmentedCounts,
    policy: CandidatePolicy,
    required: Collection[str] = (),
    documents: NDArray[np.uint64] | None = None,
) -> Candidates:
    """All candidates of counted words.

    Parameters
    ----------
    counts : SegmentedCounts
    policy : CandidatePolicy
    required : collection of str
        Characters that must be pieces, also where the text has none of them.
    documents : ndarray of uint64, optional
        Documents that hold each word (or run); without them there is no floor of documents.

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
    # Where nobody counted documents, every word is in enough of them.
    held = np.full(len(counts), np.inf) if documents is None else documents.astype(np.float64)
    inner = policy.superwords is not None and policy.superwords.inner
    alphabet, char = _numbered(codes, [ord(c) for c in required if len(c) == 1])
    occurrences = np.bincount(char, weights=weight[word], minlength=len(alphabet)).astype(np.float64)
    needed = _required(alphabet, occurrences, policy, required)

    node = np.concatenate([[0], np.cumsum(sizes + 1)])
    at_node = np.arange(len(codes)) + word  # node before each character
    cut, allowed = _cuts(counts, node, codes, at_node)
    sums = np.cumsum(cut)
    gaps = spaces(codes, np.concatenate([[True], word[1:] != word[:-1]]) if len(word) else word == 0)
    hangul = np.concatenate([[0], np.cumsum(syllable_mask(codes))])  # before each character
    word_end = np.repeat(node[1:] - 1, sizes)

    arcs: list[tuple[NDArray[np.int64], int, NDArray[np.int64]]] = [(at_node + 1, 1, char)]
    pieces = [chr(c) for c in alphabet.tolist()]
    numbers = [occurrences.tolist()]
    place = np.flatnonzero(needed[char])
    usable = np.zeros(len(codes), dtype=bool)
    usable[place] = True
    number = char[place]
    for k in range(2, policy.max_plain + 1):
        fits = at_node[place] + k <= word_end[place]
        place, number = place[fits], number[fits]
        if k > policy.max_length:
            plain = hangul[place + k] == hangul[place]
            place, number = place[plain], number[plain]
        fits = usable[place + k - 1]
        place, number = place[fits], number[fits]
        if not len(place):
            break
        number, example = _pairs(number * len(alphabet) + char[place + k - 1])
        of_place, start = weight[word[place]], at_node[place]
        frequent = np.bincount(number, weights=of_place, minlength=len(example)) >= policy.min_count
        whole = sums[start + k - 1] == sums[start]  # inside one morpheme
        edges = allowed[start] & allowed[start + k]
        across = gaps[place + k - 1] > gaps[place]
        fine = np.where(across, edges if inner else whole & edges, (whole | edges) if policy.aligned else True)
        of_place = of_place * fine
        n = np.bincount(number, weights=of_place, minlength=len(example))
        found: dict[str, int] = {}
        runs = np.bincount(number, weights=fine, minlength=len(example))
        # A bin of inf * 0 would be nan: only what is fine is summed.
        books = np.bincount(number[fine], weights=held[word[place[fine]]], minlength=len(example))
        enough = np.flatnonzero((n >= policy.min_count) & (runs >= policy.min_words))
        for i, p in zip(enough.tolist(), place[example[enough]].tolist(), strict=True):
            piece = text[p : p + k]
            if crosses_space(piece) and not policy.takes(piece, n[i], runs[i], books[i]):
                continue
            if policy.crosses is None or not policy.crosses(piece):
                found[piece] = i
        ids = np.full(len(example), -1, dtype=np.int64)
        for i, piece in enumerate(sorted(found), start=len(pieces)):
            ids[found[piece]] = i
        arc = ids[number]
        arcs.append((start[arc >= 0] + k, k, arc[arc >= 0]))
        pieces += sorted(found)
        numbers.append([float(n[found[piece]]) for piece in sorted(found)])
        keep = frequent[number]
        place, number = place[keep], number[keep]
    return Candidates(
        pieces=tuple(pieces),
        n_chars=len(alphabet),
        required=needed,
        n=np.concatenate([np.asarray(level, dtype=np.float64) for level in numbers]),
        superword=np.fromiter(map(crosses_space, pieces), dtype=bool, count=len(pieces)),
        lattice=_lattice(node, weight, arcs),
    )


@njit(nogil=True, cache=True)
def _pairs(keys):  # type: ignore[no-untyped-def]
    """Equal keys, equal numbers, in the order of first sight; and the place where each number was seen first."""
    size = 1
    while size < 2 * len(keys):
        size *= 2
    table = np.full(size, -1, np.int64)  # open addressing; holds numbers
    number = np.empty(len(keys), np.int64)
    first = np.empty(len(keys), np.int64)
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        at = (key * np.int64(0x9E3779B97F4A7C15 - (1 << 64))) >> np.int64(20) & (size - 1)  # Fibonacci hashing
        while table[at] >= 0 and keys[first[table[at]]] != key:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = n
            first[n] = i
            n += 1
        number[i] = table[at]
    return number, first[:n]


def _numbered(codes: NDArray[np.uint32], more: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The distinct code points, ascending, and the number of each character of the text."""
    alphabet = np.unique(np.concatenate([np.unique(codes), np.asarray(more, dtype=np.uint32)]))
    return alphabet, np.searchsorted(alphabet, codes).astype(np.int64)


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
    if policy.coverage > 0 and n.sum() > 0:
        falling = np.sort(n)[::-1]
        floor = falling[min(np.searchsorted(np.cumsum(falling), policy.coverage * n.sum()), len(falling) - 1)]
        needed |= n >= floor
    space = _index(alphabet, SPACE_MARK)
    if space >= 0:
        needed[space] = False
    return needed


def _cuts(
    counts: SegmentedCounts, node: NDArray[np.int64], codes: NDArray[np.uint32], at_node: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """By node: is it a cut, and may an aligned piece start or end there."""
    cut = np.zeros(int(node[-1]), dtype=bool)
    cut[np.repeat(node[:-1], np.diff(counts.start)) + counts.offset] = True
    allowed = cut.copy()
    allowed[node[:-1]] = True
    allowed[node[1:] - 1] = True
    space = at_node[codes == ord(" ")]
    allowed[space] = True
    allowed[space + 1] = True
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
