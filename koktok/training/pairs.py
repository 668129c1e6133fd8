"""Pair counts that follow the merges, for BPE and WordPiece, and the queue of frequent pairs.

Each pair of neighbouring symbols keeps its count and the places where it occurred, and a merge corrects the counts of its
neighbours only, so its cost grows with the number of places that it changes, not with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BATCH = 1 << 14  # pairs that enter the heap at a time; any number gives the same merges

UNKNOWN, INSIDE = -1, -2
"""Symbols of a character that is none, and of a place inside a token."""

# The compiled functions share three plain tuples of arrays (named ones would put this module's name into Numba's cache):
# text    symbol (at the first place of each token; UNKNOWN or INSIDE), place to the right that may be joined
#         (or -1), place to the left, count of the row
# pairs   left and right symbol, count, newest place, number of places (stale ones too), hash table of pairs
# places  where a pair occurred, and its place before that (or -1)


@njit(cache=True)
def slot(pairs, left, right):  # type: ignore[no-untyped-def] # pragma: no cover
    """The slot of a pair in the hash table of pairs, or the free slot for it."""
    lefts, rights, _, _, _, table = pairs
    mask = len(table) - 1
    h = (((np.int64(left) << 32) | np.int64(right)) * np.int64(-7046029254386353131) >> 24) & mask
    while True:
        pair = table[h]
        if pair < 0 or (lefts[pair] == left and rights[pair] == right):
            return h
        h = (h + 1) & mask


@njit(cache=True)
def _note(text, pairs, places, used, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """Count the pair that starts at `place`."""
    symbol, behind, _, weight = text
    lefts, rights, count, newest, length, table = pairs
    left, right = symbol[place], symbol[behind[place]]
    if left < 0 or right < 0:
        return
    h = slot(pairs, left, right)
    pair = table[h]
    if pair < 0:
        pair = used[0]
        used[0] += 1
        table[h], lefts[pair], rights[pair], count[pair], newest[pair], length[pair] = pair, left, right, 0, -1, 0
    count[pair] += weight[place]
    places[0][used[1]], places[1][used[1]] = place, newest[pair]
    newest[pair] = used[1]
    length[pair] += 1
    used[1] += 1


@njit(cache=True)
def _note_all(text, pairs, places, used):  # type: ignore[no-untyped-def] # pragma: no cover
    for place in np.nonzero(text[1] >= 0)[0]:
        _note(text, pairs, places, used, place)


@njit(cache=True)
def _forget(text, pairs, place):  # type: ignore[no-untyped-def] # pragma: no cover
    left, right = text[0][place], text[0][text[1][place]]
    if left >= 0 and right >= 0:
        pairs[2][pairs[5][slot(pairs, left, right)]] -= text[3][place]


@njit(cache=True)
def _merge(text, pairs, places, used, pair, joined):  # type: ignore[no-untyped-def] # pragma: no cover
    """Merge `pair` wherever it occurs, from left to right (ㅋㅋㅋ becomes ㅋㅋ ㅋ); how often, weighted."""
    symbol, behind, before, weight = text
    lefts, rights, count, newest, length, _ = pairs
    found = np.empty(length[pair], np.int32)
    k = newest[pair]
    for n in range(len(found)):
        found[n], k = places[0][k], places[1][k]
    found.sort()
    times = 0
    for place in found:
        second = behind[place]
        if symbol[place] != lefts[pair] or second < 0 or symbol[second] != rights[pair]:
            continue  # stale, or the middle of ㅋㅋㅋ
        first, third = before[place], behind[second]
        if first >= 0:
            _forget(text, pairs, first)
        if third >= 0:
            _forget(text, pairs, second)
            before[third] = place
        symbol[place], symbol[second] = joined, -2
        behind[place] = third
        times += weight[place]
        if first >= 0:
            _note(text, pairs, places, used, first)
        if third >= 0:
            _note(text, pairs, places, used, place)
    count[pair] = 0
    return times


@njit(cache=True)
def _standing(text, pairs, places, pair):  # type: ignore[no-untyped-def] # pragma: no cover
    """The places where a pair occurs now; ㅋㅋㅋ holds ㅋㅋ twice."""
    symbol, behind, _, _ = text
    lefts, rights, _, newest, length, _ = pairs
    found = np.empty(length[pair], np.int32)
    n, k = 0, newest[pair]
    while k >= 0:
        place, k = places[0][k], places[1][k]
        second = behind[place]
        if symbol[place] == lefts[pair] and second >= 0 and symbol[second] == rights[pair]:
            found[n] = place
            n += 1
    return found[:n]


@njit(cache=True)
def _rehash(pairs, n):  # type: ignore[no-untyped-def] # pragma: no cover
    for pair in range(n):
        pairs[5][slot(pairs, pairs[0][pair], pairs[1][pair])] = pair


class PairCounter:
    """Words as rows of symbols, whose pairs are counted and merged.

    Examples
    --------
    >>> counter = PairCounter(["ㅋㅋㅋ", "가ㅋ"], [2, 5], ["ㅋ", "가"])
    >>> pair = counter.find(0, 0)
    >>> int(counter.count[pair]), counter.merge(pair, 2), int(counter.count[counter.find(2, 0)])
    (4, 2, 2)
    """

    def __init__(self, rows: Sequence[str], n: Sequence[int], alphabet: Sequence[str], *, heads: bool = False) -> None:
        codes = np.frombuffer("".join(rows).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        letters = np.array([ord(char) for char in alphabet], dtype=np.uint32)
        size = len(codes)
        symbol = np.full(size, -1, dtype=np.int32)
        if len(letters):
            index = np.minimum(np.searchsorted(letters, codes), len(letters) - 1)
            symbol = np.where(letters[index] == codes, index, -1).astype(np.int32)
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        ends = np.cumsum(lengths)
        after = np.arange(1, size + 1, dtype=np.int32)
        before = np.arange(-1, size - 1, dtype=np.int32)
        after[ends - 1] = -1
        before[ends - lengths] = -1
        if heads:  # a first letter is another symbol than the same letter inside
            first = ends - lengths
            symbol[first] = np.where(symbol[first] >= 0, symbol[first] + len(letters), -1)
        weight = np.repeat(np.asarray(n, dtype=np.int64), lengths)
        self.symbol, self.weight, self.rows = symbol, weight, len(rows)
        self.text = (symbol, after, before, weight)
        # Every merge takes one token away and makes at most two new pairs, so three places a character are enough.
        self._places = (np.empty(3 * size, np.int32), np.empty(3 * size, np.int32))
        self._used = np.zeros(2, dtype=np.int64)
        self.left = self.right = self._newest = self._length = np.empty(0, dtype=np.int32)
        self._n = np.empty(0, dtype=np.int64)
        self._grow(size + 1)
        _note_all(self.text, self.pairs, self._places, self._used)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs so far; they are numbered in the order of their first sight."""
        return int(self._used[0])

    @property
    def count(self) -> NDArray[np.int64]:
        """Occurrences of each pair now (ㅋㅋㅋ holds ㅋㅋ twice); writable: 0 excludes a pair."""
        return self._n[: self.n_pairs]

    @property
    def tokens(self) -> int:
        """Running tokens."""
        return int(self.weight[self.symbol != -2].sum())

    def standing(self, pair: int) -> NDArray[np.int32]:
        """The places (of the rows, concatenated) where a pair occurs now."""
        found: NDArray[np.int32] = _standing(self.text, self.pairs, self._places, pair)
        return found

    def find(self, left: int, right: int) -> int:
        """The number of a pair, or -1."""
        return int(self.pairs[5][slot(self.pairs, left, right)])

    def merge(self, pair: int, symbol: int) -> int:
        """Merge every `pair` to `symbol`, and return how often, weighted by the counts of words."""
        most = self.n_pairs + 2 * int(self._length[pair])
        if most > len(self.left):
            self._grow(2 * most)
        return int(_merge(self.text, self.pairs, self._places, self._used, pair, symbol))

    def _grow(self, capacity: int) -> None:
        more = capacity - len(self.left)
        columns = (self.left, self.right, self._newest, self._length)
        self.left, self.right, self._newest, self._length = (np.append(c, np.empty(more, np.int32)) for c in columns)
        self._n = np.append(self._n, np.empty(more, np.int64))
        table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
        self.pairs = (self.left, self.right, self._n, self._newest, self._length, table)
        _rehash(self.pairs, self.n_pairs)


class Queue:
    """Pairs by falling counts, ties by their key.

    The heap holds only pairs with counts of at least a threshold, which falls when they have run out: most pairs are never
    candidates. Counts of known pairs only fall (all pairs of a symbol are born with it), so an entry is corrected when it
    comes up.
    """

    def __init__(
        self, counter: PairCounter, key: Callable[[int], Any], fits: Callable[[int], bool], lowest: int
    ) -> None:
        self._counter, self._key, self._fits, self._lowest = counter, key, fits, lowest
        self._heap: list[tuple[int, Any, int]] = []
        self._threshold = 1 << 62

    def push(self, pairs: Iterable[int]) -> None:
        """Add pairs; those under the threshold are added when it falls."""
        count = self._counter.count
        for pair in pairs:
            n = int(count[pair])
            if n >= self._threshold and self._fits(pair):
                heappush(self._heap, (-n, self._key(pair), pair))

    def pop(self) -> int | None:
        """The best pair, or None when no count reaches the lowest."""
        count, heap = self._counter.count, self._heap
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
        count = self._counter.count
        open_ = count[(count >= self._lowest) & (count < self._threshold)]
        ceiling = self._threshold
        self._threshold = self._lowest
        if len(open_) > _BATCH:
            self._threshold = int(np.partition(open_, len(open_) - _BATCH)[len(open_) - _BATCH])
        self.push(np.nonzero((count >= self._threshold) & (count < ceiling))[0].tolist())
