"""`MergeState`: rows of tokens, merged as at run time, by the rank of the merged string.

tiktoken, SentencePiece and llama.cpp merge any two neighbours whose merged string is a piece, so a candidate is a merged string
(its hash), counted over all pairs that make it. After each new piece all possible merges are made at once, the lowest rank first
and then the leftmost, so the state is always the segmentation by a tokenizer with the pieces so far. A pair across a morpheme
boundary, which does not count for the candidate, is merged, too, because the tokenizer knows no boundaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.model.tokens import running

UNKNOWN = -1
_BASE = np.uint64(0x9E3779B97F4A7C15 | 1)
_BATCH = 1 << 14  # pairs that enter the heap at a time; any number gives the same merges
_OPEN = 0.5  # share of the hash table that is used at most


@njit(cache=True)
def _hashes(data, start, hashes, powers):
    for i in range(len(start) - 1):
        h, p = np.uint64(0), np.uint64(1)
        for k in range(start[i], start[i + 1]):
            h = h * _BASE + np.uint64(data[k]) + np.uint64(1)
            p = p * _BASE
        hashes[i], powers[i] = h, p


def hash_of(strings: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A polynomial hash of each string, and its power for concatenation: h(xy) = h(x) p(y) + h(y).

    Examples
    --------
    >>> h, p = (column.tolist() for column in hash_of([b"a", b"b", b"ab"]))
    >>> (h[0] * p[1] + h[1]) % 2**64 == h[2]
    True
    """
    start = running([len(string) for string in strings])
    hashes, powers = np.zeros(len(strings), np.uint64), np.ones(len(strings), np.uint64)
    _hashes(np.frombuffer(b"".join(strings) + b"\0", np.uint8), start, hashes, powers)
    return hashes, powers


class TokenRows(NamedTuple):
    """Tokens of many strings, flat."""

    symbol: NDArray[np.int32]
    char: NDArray[np.uint64]
    start: NDArray[np.int64]
    weight: NDArray[np.int64]
    held: NDArray[np.int64]
    size: NDArray[np.int32]
    border: NDArray[np.int8]
    trust: NDArray[np.float64]


# The compiled functions share these tuples of arrays:
# text   symbol (-1 unknown, -2 inside a token), place to the right (-1 at the end of a row), to the left, value of a merge of
#        the two tokens whose border stands before this one, hash of an unknown character, value of a merge of its bytes
# names  of symbols: hash, power, rank (or -1: never made by merging)
# pairs  of candidates: hash, count, symbol that it is (or -1), left and right symbol of a pair that makes it, newest place,
#        number of places; and the hash table
# places where a candidate stood, the place before, the candidate
# used   candidates, places


@njit(cache=True)
def _slot(pairs, key):
    hashes, table = pairs[0], pairs[7]
    mask = len(table) - 1
    h = np.int64((key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask
    while table[h] >= 0 and hashes[table[h]] != key:
        h = (h + 1) & mask
    return h


@njit(cache=True)
def _candidate(pairs, used, key, left, right):
    h = _slot(pairs, key)
    c = pairs[7][h]
    if c < 0:
        c = used[0]
        used[0] += 1
        pairs[7][h] = c
        pairs[0][c], pairs[1][c], pairs[2][c], pairs[3][c], pairs[4][c] = key, 0, -1, left, right
        pairs[5][c], pairs[6][c] = -1, 0
    return c


@njit(cache=True)
def _put(pairs, places, used, c, place):
    at = used[1]
    places[0][at], places[1][at], places[2][at] = place, pairs[5][c], c
    pairs[5][c] = at
    pairs[6][c] += 1
    used[1] += 1


@njit(cache=True)
def _key(text, names, place):
    """The hash of the pair that starts at `place`, and whether there is one."""
    symbol, right_of = text[0], text[1]
    if place < 0 or right_of[place] < 0 or symbol[place] < 0 or symbol[right_of[place]] < 0:
        return np.uint64(0), False
    left, right = symbol[place], symbol[right_of[place]]
    return names[0][left] * names[1][right] + names[0][right], True


@njit(cache=True)
def _note(text, names, pairs, places, used, place):
    """Add the pair that starts at `place` to its candidate."""
    key, there = _key(text, names, place)
    if there:
        second = text[1][place]
        c = _candidate(pairs, used, key, text[0][place], text[0][second])
        pairs[1][c] += text[3][second]
        _put(pairs, places, used, c, place)


@njit(cache=True)
def _forget(text, names, pairs, place):
    key, there = _key(text, names, place)
    if there:
        c = pairs[7][_slot(pairs, key)]
        if c >= 0:
            pairs[1][c] -= text[3][text[1][place]]


@njit(cache=True)
def _note_all(text, names, pairs, places, used):
    for place in range(len(text[0])):
        if text[0][place] == -1 and text[4][place] != 0:
            c = _candidate(pairs, used, text[4][place], -1, -1)
            pairs[1][c] += text[5][place]
            _put(pairs, places, used, c, place)
        _note(text, names, pairs, places, used, place)


@njit(cache=True)
def _mergeable(text, names, pairs, listed, n_old, place):
    """The symbol that the pair at `place` is merged to, or -1; of three old symbols the base has to list the merge."""
    key, there = _key(text, names, place)
    c = pairs[7][_slot(pairs, key)] if there else -1
    s = pairs[2][c] if c >= 0 else -1
    if s < 0 or names[2][s] < 0:
        return -1
    left, right = text[0][place], text[0][text[1][place]]
    if left < n_old and right < n_old and s < n_old:
        merge = (np.int64(left) << 32) | np.int64(right)
        k = np.searchsorted(listed, merge)
        if k == len(listed) or listed[k] != merge:
            return -1
    return s


@njit(cache=True)
def _merge(text, names, pairs, places, used, place, joined):
    symbol, right_of, before = text[0], text[1], text[2]
    second = right_of[place]
    first, third = before[place], right_of[second]
    _forget(text, names, pairs, first)
    _forget(text, names, pairs, second)
    _forget(text, names, pairs, place)
    symbol[place], symbol[second] = joined, -2
    right_of[place] = third
    if third >= 0:
        before[third] = place
    _note(text, names, pairs, places, used, first)
    _note(text, names, pairs, places, used, place)


@njit(cache=True)
def _follow(text, names, pairs, places, used, listed, n_old, place):
    """Merge the token at `place` with its neighbours while a piece allows it: the lowest rank first, then the leftmost."""
    while True:
        first = text[2][place]
        left = _mergeable(text, names, pairs, listed, n_old, first)
        right = _mergeable(text, names, pairs, listed, n_old, place)
        if left < 0 and right < 0:
            return
        if right < 0 or (left >= 0 and names[2][left] <= names[2][right]):
            place, right = first, left
        _merge(text, names, pairs, places, used, place, right)


@njit(cache=True)
def _standing(pairs, places, c):
    places_of_c = np.empty(pairs[6][c], np.int32)
    k = pairs[5][c]
    for n in range(len(places_of_c)):
        places_of_c[n], k = places[0][k], places[1][k]
    places_of_c.sort()
    return places_of_c


@njit(cache=True)
def _join(text, names, pairs, places, used, listed, n_old, c, joined, where, first):
    """Make `joined` of a candidate at its places from the `first` on; return the place where the table was full, or -1."""
    key = pairs[0][c]
    pairs[2][c] = joined
    last = -1
    for k in range(first, len(where)):
        place = where[k]
        if used[0] + 4096 > len(pairs[0]):
            return k
        if place == last:
            continue
        last = place
        current, known = _key(text, names, place)
        if known and current == key:
            _merge(text, names, pairs, places, used, place, joined)
        elif text[0][place] == -1 and text[4][place] == key:
            text[0][place] = joined
            _note(text, names, pairs, places, used, text[2][place])
            _note(text, names, pairs, places, used, place)
        else:
            continue  # it is merged there already
        _follow(text, names, pairs, places, used, listed, n_old, place)
    return -1


@njit(cache=True)
def _rehash(pairs, n):
    for c in range(n):
        pairs[7][_slot(pairs, pairs[0][c])] = c


class MergeState:
    """Rows of tokens with their candidates for merges."""

    SCALE = 16

    def __init__(
        self,
        rows: TokenRows,
        hashes: NDArray[np.uint64],
        powers: NDArray[np.uint64],
        ranks: NDArray[np.int64],
        listed: NDArray[np.int64],
        *,
        pieces: NDArray[np.int64],
        more: int,
        penalty: float,
    ) -> None:
        size, lengths = len(rows.symbol), np.diff(rows.start)
        right_of = np.arange(1, size + 1, dtype=np.int32)
        before = np.arange(-1, size - 1, dtype=np.int32)
        right_of[rows.start[1:] - 1] = -1
        before[rows.start[:-1]] = -1
        self._rows = rows
        self.weight, self.held = np.repeat(rows.weight, lengths), np.repeat(rows.held, lengths)
        value = self.weight * (self.SCALE - np.rint(self.SCALE * penalty * rows.trust).astype(np.int64))
        whole = self.weight * self.SCALE * (rows.size - 1)
        self.symbol = rows.symbol.copy()
        self._text = (self.symbol, right_of, before, value, rows.char, whole)
        self.n_old = self.n = len(hashes)
        self._names = tuple(
            np.append(column, np.zeros(more, column.dtype)) for column in (hashes, powers, ranks.astype(np.int64))
        )
        self._next_rank = max(int(ranks.max()), 0) + 1 + self.n_old
        self._listed = listed
        unknown = int((rows.symbol < 0).sum())
        # Every merge removes one token and makes at most two new pairs.
        self._places = tuple(np.empty(3 * size + 2 * unknown + 1, np.int32) for _ in range(3))
        self._used = np.zeros(2, np.int64)
        self._asked = 0
        columns = (np.uint64, np.int64, np.int32, np.int32, np.int32, np.int32, np.int32, np.int32)
        self._pairs: tuple[Any, ...] = tuple(np.empty(0, kind) for kind in columns)
        self._grow(len(pieces) + size + unknown + 8192)
        for piece in pieces.tolist():  # a piece of the base is a candidate already
            self._pairs[2][_candidate(self._pairs, self._used, hashes[piece], -1, -1)] = piece
        _note_all(self._text, self._names, self._pairs, self._places, self._used)

    def _grow(self, capacity: int) -> None:
        columns = [np.append(c, np.empty(capacity - len(c), c.dtype)) for c in self._pairs[:-1]]
        self._pairs = (*columns, np.full(1 << int(capacity / _OPEN).bit_length(), -1, dtype=np.int32))
        _rehash(self._pairs, int(self._used[0]))
        self.left, self.right = columns[3], columns[4]

    @property
    def count(self) -> NDArray[np.int64]:
        """The count of each candidate."""
        count: NDArray[np.int64] = self._pairs[1][: int(self._used[0])]
        return count

    def is_piece(self, c: int) -> bool:
        """Whether a candidate is a piece, of the base or a new one."""
        return int(self._pairs[2][c]) >= 0

    def code(self, c: int) -> int:
        """The hash of a candidate's string."""
        return int(self._pairs[0][c])

    def risen(self) -> list[int]:
        """Candidates with new places since the last call."""
        first, self._asked = self._asked, int(self._used[1])
        risen: list[int] = np.unique(self._places[2][first : self._asked]).tolist()
        return risen

    def join(self, c: int, power: int) -> int:
        """Turn a candidate into a piece after all others, merge it at all its places, and return its symbol."""
        symbol = self.n
        self.n += 1
        for column, value in zip(self._names, (self.code(c), power, self._next_rank), strict=True):
            column[symbol] = value
        self._next_rank += 1
        where, first = _standing(self._pairs, self._places, c), 0
        while first >= 0:
            first = _join(
                self._text, self._names, self._pairs, self._places, self._used, self._listed, self.n_old, c, symbol, where, first
            )  # fmt: skip
            if first >= 0:
                self._grow(2 * len(self._pairs[0]))
        self._pairs[1][c] = 0
        return symbol

    def tokens(self, weight: NDArray[np.int64]) -> int:
        """Number of running tokens with these weights; an unknown character counts as its bytes."""
        size = np.where(self.symbol == -1, self._rows.size, 1)
        return int((weight * size)[self.symbol != -2].sum())

    def swallowed(self, weight: NDArray[np.int64], kind: int) -> int:
        """Number of boundaries of at least this kind (1 character, 2 morpheme) inside tokens, with these weights."""
        return int(weight[(self.symbol == -2) & (self._rows.border >= kind)].sum())

    def uses(self) -> NDArray[np.int64]:
        """The frequency of every new symbol."""
        new = self.symbol >= self.n_old
        uses = np.bincount(self.symbol[new] - self.n_old, self.weight[new], self.n - self.n_old)
        return uses.astype(np.int64)


class Queue:
    """Pairs by falling counts, ties by their key.

    The heap holds only pairs with counts of at least a threshold, which falls when they have run out: most pairs are never
    candidates. Counts of known pairs only fall (all pairs of a symbol are born with it), so an entry is corrected when it
    comes up.
    """

    def __init__(self, state: MergeState, key: Callable[[int], Any], fits: Callable[[int], bool], lowest: int) -> None:
        self._state, self._key, self._fits, self._lowest = state, key, fits, lowest
        self._heap: list[tuple[int, Any, int]] = []
        self._threshold = 1 << 62

    def push(self, pairs: Iterable[int]) -> None:
        """Add pairs; those under the threshold are added when it falls."""
        count = self._state.count
        for pair in pairs:
            n = int(count[pair])
            if n >= self._threshold and self._fits(pair):
                heappush(self._heap, (-n, self._key(pair), pair))

    def pop(self) -> int | None:
        """The best pair, or None when no count reaches the lowest."""
        count, heap = self._state.count, self._heap
        while True:
            while heap:
                negative, key, pair = heap[0]
                n = int(count[pair])
                if n == -negative:
                    heappop(heap)
                    return pair
                if n >= self._threshold:
                    heapreplace(heap, (-n, key, pair))
                else:
                    heappop(heap)
            if self._threshold <= self._lowest:
                return None
            self._lower()

    def _lower(self) -> None:
        count = self._state.count
        open_ = count[(count >= self._lowest) & (count < self._threshold)]
        ceiling = self._threshold
        self._threshold = self._lowest
        if len(open_) > _BATCH:
            self._threshold = int(np.partition(open_, len(open_) - _BATCH)[len(open_) - _BATCH])
        self.push(np.nonzero((count >= self._threshold) & (count < ceiling))[0].tolist())
