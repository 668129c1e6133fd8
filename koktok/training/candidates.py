"""Candidates: every substring that could become a piece, found level by level, with the lattice that it spans.

A string of k characters can only be frequent where its first k - 1 characters
are (the apriori rule of Agrawal & Srikant 1994), so level k numbers the pairs (number of the prefix, next character)
at the places where level k - 1 was frequent. Pairs are compared in full, so nothing collides, and the lattice falls out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.hangul import syllable_mask
from koktok.model.vocab import SPACE_MARK
from koktok.recipe import Price
from koktok.segment.segmented import SegmentedCounts
from koktok.training.lattice import Lattice
from koktok.training.price import common_cuts, prices_in_bits
from koktok.training.superwords import SuperwordPolicy, crosses_space, spaces

PLAIN = 5 / 3
"""Pieces without a syllable may be so much longer: a syllable is two or three letters, and English words and indentation
are long. With 30 % English and code, 20 letters beside 12 syllables take 1.8 % off English and 4 % off code; 32 take
nothing more."""


@dataclass(frozen=True)
class CandidatePolicy:
    """Which substrings may become pieces."""

    min_count: int = 10
    max_length: int = 12
    aligned: bool = True
    coverage: float = 0.9995
    crosses: Callable[[str], bool] | None = None
    superwords: SuperwordPolicy | None = None
    price: Price = "tokens"
    min_words: int = 1
    closed: bool = True

    @property
    def max_plain(self) -> int:
        """Characters of a piece without a syllable, at most."""
        return min(int(self.max_length * PLAIN), 255)

    def allows(self, piece: str, n: float, runs: float, documents: float, of_words: Mapping[str, float]) -> bool:
        """True where a piece that crosses a space may be one; `of_words` are the occurrences of shorter ones that begin with a word."""
        rule = self.superwords
        return (
            rule is not None
            and n >= rule.min_count
            and runs >= rule.min_runs
            and documents >= rule.min_documents
            and rule.looks_right(piece)
            and (piece[0] == " " or n >= rule.lexical * of_words.get(piece[piece.index(" ") :], np.inf))
        )


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of some words, and their lattice."""

    pieces: tuple[str, ...]
    n_chars: int
    required: NDArray[np.bool_]
    strings: NDArray[np.bool_]
    """Longer pieces that are required, also those that the text lacks."""
    n: NDArray[np.float64]
    superword: NDArray[np.bool_]
    price: NDArray[np.float64]
    lattice: Lattice

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Tokens of each piece: one, or the number of UTF-8 bytes of a character that is no piece."""
        tokens = np.ones(len(self.pieces))
        for i in np.flatnonzero(~self.required).tolist():
            tokens[i] = len(self.pieces[i].encode())
        return tokens

    @property
    def n_required(self) -> int:
        """Required characters and longer pieces."""
        return int(self.required.sum() + self.strings.sum())


class _Text(NamedTuple):
    """All words in one text: arrays by character, by node (a gap between two characters) and by word."""

    char: NDArray[np.int64]
    at_node: NDArray[np.int64]
    word_end: NDArray[np.int64]
    hangul: NDArray[np.int64]
    usable: NDArray[np.bool_]
    word: NDArray[np.int64]
    weight: NDArray[np.float64]
    represents: NDArray[np.float64]
    documents: NDArray[np.float64]
    sums: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    gaps: NDArray[np.int64]
    continues: NDArray[np.bool_]
    n_letters: int
    inner: bool
    aligned: bool


class _Level(NamedTuple):
    """The strings of one length: by place, then by number."""

    place: NDArray[np.int64]
    number: NDArray[np.int64]
    example: NDArray[np.int64]
    every: NDArray[np.float64]
    n: NDArray[np.float64]
    words: NDArray[np.float64]
    documents: NDArray[np.float64]
    cut_off: NDArray[np.bool_]


def mine(
    counts: SegmentedCounts,
    policy: CandidatePolicy,
    required: Collection[str] = (),
    documents: NDArray[np.uint64] | None = None,
    strings: Collection[str] = (),
) -> Candidates:
    """All candidates of counted words; `strings` are candidates however rare they are.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 10, " 학교|에서": 10})
    >>> mine(counts, CandidatePolicy(min_count=10)).pieces[5:]
    (' 학', '에서', '학교', ' 학교', '학교에', ' 학교에', '학교에서', ' 학교에서')
    """
    strings = frozenset(strings)
    text = "".join(counts.words)
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = np.fromiter(map(len, counts.words), dtype=np.int64, count=len(counts))
    word = np.repeat(np.arange(len(counts)), sizes)
    weight, represents = counts.n.astype(np.float64), counts.represents
    # Where documents were not counted, every word is in enough of them.
    in_documents = np.full(len(counts), np.inf) if documents is None else documents.astype(np.float64)
    alphabet, char = _numbered(codes, [ord(c) for c in required])
    occurrences = np.bincount(char, weights=weight[word], minlength=len(alphabet)).astype(np.float64)
    needed = _required(alphabet, occurrences, policy, required)

    node = np.concatenate([[0], np.cumsum(sizes + 1)])
    at_node = np.arange(len(codes)) + word  # node before each character
    cut, allowed = _cuts(counts, node, codes, at_node)
    sums = np.cumsum(cut, dtype=np.int64)
    gaps = spaces(codes, np.concatenate([[True], word[1:] != word[:-1]]) if len(word) else word == 0)
    hangul = np.concatenate([[0], np.cumsum(syllable_mask(codes))])  # before each character
    word_end = np.repeat(node[1:] - 1, sizes)

    continues = _continued(codes, word, ~allowed[at_node] & policy.closed)

    arcs: list[tuple[NDArray[np.int64], int, NDArray[np.int64]]] = [(at_node + 1, 1, char)]
    pieces = [chr(c) for c in alphabet.tolist()]
    numbers = [occurrences.tolist()]
    usable = needed[char]
    place = np.flatnonzero(usable)
    words = _Text(
        char=char,
        at_node=at_node,
        word_end=word_end,
        hangul=hangul,
        usable=usable,
        word=word,
        weight=weight,
        represents=represents,
        documents=in_documents,
        sums=sums,
        allowed=allowed,
        gaps=gaps,
        continues=continues,
        n_letters=len(alphabet),
        inner=policy.superwords is not None and policy.superwords.inner,
        aligned=policy.aligned,
    )

    heads = np.isin(alphabet, [ord(string[0]) for string in strings])
    beginnings = {string[:size] for string in strings for size in range(2, len(string) + 1)}

    def next_level(k: int, place: NDArray[np.int64], number: NDArray[np.int64]) -> tuple[_Level, Any]:
        level = _level(k, k > policy.max_length, place, number, words)
        kept = level.every >= policy.min_count
        for i in np.flatnonzero(~kept & heads[char[level.example]]).tolist() if beginnings else ():
            kept[i] = text[level.example[i] : level.example[i] + k] in beginnings
        return level, _frequent(level.place, level.number, kept)

    of_words: dict[str, float] = {}
    # Compiled code is on its way through the next level while the strings of this one are made and looked at.
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next_level, 2, place, char[place])
        for k in range(2, policy.max_plain + 1):
            level, left = coming.result()
            if not len(level.place):
                break
            if k < policy.max_plain:
                coming = pool.submit(next_level, k + 1, *left)
            found: dict[str, int] = {}
            n = level.n
            enough = (n >= policy.min_count) & (level.words >= policy.min_words) & ~level.cut_off
            asked = enough | heads[char[level.example]] if beginnings else enough
            for i, p in zip(np.flatnonzero(asked).tolist(), level.example[asked].tolist(), strict=True):
                piece = text[p : p + k]
                wanted = piece in strings
                if not (enough[i] or wanted):
                    continue
                across = crosses_space(piece)
                if (
                    across
                    and not wanted
                    and not policy.allows(piece, n[i], level.words[i], level.documents[i], of_words)
                ):
                    continue
                if piece[0] == " ":
                    of_words[piece] = n[i]
                if wanted or policy.crosses is None or not policy.crosses(piece):
                    found[piece] = i
            ids = np.full(len(level.example), -1, dtype=np.int32)
            for i, piece in enumerate(sorted(found), start=len(pieces)):
                ids[found[piece]] = i
            arc: NDArray[Any] = ids[level.number]
            arcs.append((at_node[level.place[arc >= 0]] + k, k, arc[arc >= 0]))
            pieces += sorted(found)
            numbers.append([float(n[found[piece]]) for piece in sorted(found)])
    counted = np.concatenate([np.asarray(of_level, dtype=np.float64) for of_level in numbers])
    lattice = _lattice(node, weight, arcs)
    price = np.ones(len(pieces))
    if policy.price == "bits":
        borders = cut.copy()
        borders[at_node[np.diff(gaps, prepend=0) > 0]] = True
        running = float(weight.sum() + weight[word[np.diff(gaps, prepend=0) > 0]].sum())
        price = prices_in_bits(pieces, counted, common_cuts(lattice, borders, len(pieces)), running)
    known = {*pieces}
    lacking = sorted(string for string in strings if string not in known)
    pieces += lacking
    return Candidates(
        pieces=tuple(pieces),
        n_chars=len(alphabet),
        required=needed,
        strings=np.fromiter((piece in strings for piece in pieces), dtype=bool, count=len(pieces)),
        n=np.append(counted, np.zeros(len(lacking))),
        superword=np.fromiter(map(crosses_space, pieces), dtype=bool, count=len(pieces)),
        price=np.append(price, np.ones(len(lacking))),
        lattice=lattice,
    )


@njit(nogil=True, cache=True)
def _level(k, plain, place, number, text):
    """The strings of `k` characters at places where those of k - 1 were frequent: their numbers, and their sums by number.

    By number: the place where it was seen first, `every` occurrence, and of those that follow the policy the occurrences,
    words and documents; and whether it is cut off: the same letter continues it at every place. Equal strings have equal
    numbers, in the order of first sight.
    """
    char, continues = text.char, text.continues
    # Open addressing; holds numbers and grows with them, for places are many more than distinct strings.
    table = np.full(1 << 16, -1, np.int32)
    keys = np.empty(len(place), np.int64)
    places, numbers = np.empty(len(place), np.int64), np.empty(len(place), np.int64)
    example, sum_of = np.empty(len(place), np.int64), np.zeros((len(place), 4))
    cut_off = np.ones((len(place), 2), np.bool_)  # before, behind
    n, distinct = 0, 0
    for i in range(len(place)):
        p = place[i]
        start, last, w = text.at_node[p], p + k - 1, text.word[p]
        if start + k > text.word_end[p] or not text.usable[last]:
            continue
        if plain and text.hangul[last + 1] != text.hangul[p]:
            continue
        key = number[i] * text.n_letters + char[last]
        if 2 * distinct >= len(table):
            table = np.full(2 * len(table), -1, np.int32)
            for j in range(distinct):
                table[_slot(keys[j], keys, table)] = j
        at = _slot(key, keys, table)
        if table[at] < 0:
            table[at] = distinct
            keys[distinct], example[distinct] = key, p
            distinct += 1
        same = table[at]
        places[n], numbers[n] = p, same
        n += 1
        whole = text.sums[last + w] == text.sums[start]  # inside one morpheme
        edges = text.allowed[start] and text.allowed[start + k]
        across = text.gaps[last] > text.gaps[p]
        fine = edges and (text.inner or whole) if across else whole or edges or not text.aligned
        sum_of[same, 0] += text.weight[w]
        first = example[same]
        cut_off[same, 0] = cut_off[same, 0] and continues[p] and char[p - 1] == char[first - 1]
        cut_off[same, 1] = cut_off[same, 1] and continues[last + 1] and char[last + 1] == char[first + k]
        if fine:
            sum_of[same, 1] += text.weight[w]
            sum_of[same, 2] += text.represents[w]
            sum_of[same, 3] += text.documents[w]
    by, off = sum_of[:distinct], cut_off[:distinct, 0] | cut_off[:distinct, 1]
    return _Level(places[:n], numbers[:n], example[:distinct], by[:, 0], by[:, 1], by[:, 2], by[:, 3], off)


@njit(nogil=True, cache=True)
def _slot(key, keys, table):
    """Where a table has the number of a key, or its first free place for it."""
    last = len(table) - 1
    at = (key * np.int64(0x9E3779B97F4A7C15 - (1 << 64))) >> np.int64(20) & last  # Fibonacci hashing
    while table[at] >= 0 and keys[table[at]] != key:
        at = (at + 1) & last
    return at


@njit(nogil=True, cache=True)
def _frequent(place, number, frequent):
    """The places of frequent strings, and the numbers there."""
    places, numbers = np.empty(len(place) + 1, np.int64), np.empty(len(place) + 1, np.int64)
    n = 0
    for i in range(len(place)):
        places[n], numbers[n] = place[i], number[i]
        n += frequent[number[i]]
    return places[:n], numbers[:n]


def _numbered(codes: NDArray[np.uint32], more: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The distinct code points, ascending, and the number of each character of the text."""
    there = np.zeros(sys.maxunicode + 1, dtype=bool)
    there[codes] = True
    there[more] = True
    numbers = np.cumsum(there) - 1
    return np.flatnonzero(there).astype(np.uint32), numbers[codes]


def _required(
    alphabet: NDArray[np.uint32], n: NDArray[np.float64], policy: CandidatePolicy, required: Collection[str]
) -> NDArray[np.bool_]:
    """The most frequent characters up to the coverage (equally frequent ones together), and the required ones."""
    needed = np.isin(alphabet, np.asarray([ord(c) for c in required], dtype=np.uint32))
    if policy.coverage > 0 and n.sum() > 0:
        falling = np.sort(n)[::-1]
        floor = falling[min(np.searchsorted(np.cumsum(falling), policy.coverage * n.sum()), len(falling) - 1)]
        needed |= n >= floor
    needed[alphabet == ord(SPACE_MARK)] = False
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


def _continued(codes: NDArray[np.uint32], word: NDArray[np.int64], inner: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """By character, and one more: whether it continues the one before, both Latin letters inside one morpheme.

    Not asked of syllables: a part of one name is the start of others, and without such candidates a text of 2.5 MB has 1 %
    more tokens at 16,000 ids.
    """
    latin = ((codes | 32) >= ord("a")) & ((codes | 32) <= ord("z")) | (codes >= 0xC0) & (codes <= 0x24F)
    on = latin[1:] & latin[:-1] & (word[1:] == word[:-1]) & inner[1:]
    return np.concatenate([[False], on, [False]])[: len(codes) + 1]


def _lattice(
    node: NDArray[np.int64], weight: NDArray[np.float64], arcs: list[tuple[NDArray[np.int64], int, NDArray[np.int64]]]
) -> Lattice:
    """Arcs sorted by the node they end in, short ones first."""
    n = np.zeros(int(node[-1]) + 1, np.int64)
    for end, _, _ in arcs:
        n[1:] += np.bincount(end, minlength=int(node[-1]))
    first = np.cumsum(n)
    length, piece, at = np.empty(first[-1], np.uint8), np.empty(first[-1], np.int32), first[:-1].copy()
    for end, k, ids in arcs:
        _fill(end, k, ids, at, length, piece)
    return Lattice(node, first, length, piece, weight)


@njit(nogil=True, cache=True)
def _fill(end, k, ids, at, length, piece):
    for i in range(len(end)):
        e = at[end[i]]
        length[e], piece[e] = k, ids[i]
        at[end[i]] = e + 1
