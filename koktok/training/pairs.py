"""Pair counts that follow the merges, for BPE and WordPiece, and the queues of pairs.

Each pair of neighbouring symbols keeps its count, its gain and the places where it occurred, and a merge corrects those of its
neighbours only, so its cost grows with the number of places that it changes, not with the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

_AT_ONCE = 1 << 16
"""Places that are counted before the tables of pairs may grow: as small as they can be, they stay in the processor's cache."""

UNKNOWN, INSIDE = -1, -2
"""Symbols of a character that is none, and of a place inside a token."""

# The compiled functions share three plain tuples of arrays (named ones would put this module's name into Numba's cache):
# text    symbol (at the first place of each token; UNKNOWN or INSIDE), place to the right that may be joined
#         (or -1), place to the left, count of the row, and what a join over the gap before the place gains
# pairs   left and right symbol, count, newest place, number of places (stale ones too), hash table of pairs, gain, and the
#         last merge that changed it
# places  where a pair occurred, and its place before that (or -1)
# used    numbers of pairs, of places, of pairs that this merge changed, and of merges


@njit(cache=True)
def slot(pairs, left, right):
    """The slot of a pair in the hash table of pairs, or the free slot for it."""
    lefts, rights, table = pairs[0], pairs[1], pairs[5]
    mask = len(table) - 1
    h = (((np.int64(left) << 32) | np.int64(right)) * np.int64(-7046029254386353131) >> 24) & mask
    while True:
        pair = table[h]
        if pair < 0 or (lefts[pair] == left and rights[pair] == right):
            return h
        h = (h + 1) & mask


@njit(cache=True)
def _change(pairs, changed, used, pair):
    """List a pair among those that this merge changes."""
    if pairs[7][pair] != used[3]:
        pairs[7][pair] = used[3]
        changed[used[2]] = pair
        used[2] += 1


@njit(cache=True)
def _note(text, pairs, places, changed, used, place):
    """Count the pair that starts at `place`."""
    symbol, behind, _, weight, value = text
    lefts, rights, count, newest, length, table, gain, stamp = pairs
    left, right = symbol[place], symbol[behind[place]]
    if left < 0 or right < 0:
        return
    h = slot(pairs, left, right)
    pair = table[h]
    if pair < 0:
        pair = used[0]
        used[0] += 1
        table[h], lefts[pair], rights[pair], count[pair], newest[pair], length[pair] = pair, left, right, 0, -1, 0
        gain[pair], stamp[pair] = 0, -1
    count[pair] += weight[place]
    gain[pair] += weight[place] * value[behind[place]]
    _change(pairs, changed, used, pair)
    places[0][used[1]], places[1][used[1]] = place, newest[pair]
    newest[pair] = used[1]
    length[pair] += 1
    used[1] += 1


@njit(cache=True)
def _note_all(text, pairs, places, changed, used, start, stop):
    for place in range(start, stop):
        if text[1][place] >= 0:
            _note(text, pairs, places, changed, used, place)


@njit(cache=True)
def _forget(text, pairs, changed, used, place):
    left, right = text[0][place], text[0][text[1][place]]
    if left >= 0 and right >= 0:
        pair = pairs[5][slot(pairs, left, right)]
        pairs[2][pair] -= text[3][place]
        pairs[6][pair] -= text[3][place] * text[4][text[1][place]]
        _change(pairs, changed, used, pair)


@njit(cache=True)
def merge(text, pairs, places, changed, used, pair, joined):
    """Merge `pair` wherever it occurs, from left to right (ㅋㅋㅋ becomes ㅋㅋ ㅋ); how often, weighted."""
    symbol, behind, before, weight = text[0], text[1], text[2], text[3]
    lefts, rights, newest, length = pairs[0], pairs[1], pairs[3], pairs[4]
    used[2] = 0
    used[3] += 1
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
            _forget(text, pairs, changed, used, first)
        if third >= 0:
            _forget(text, pairs, changed, used, second)
            before[third] = place
        symbol[place], symbol[second] = joined, -2
        behind[place] = third
        times += weight[place]
        if first >= 0:
            _note(text, pairs, places, changed, used, first)
        if third >= 0:
            _note(text, pairs, places, changed, used, place)
    pairs[2][pair] = pairs[6][pair] = 0
    return times


@njit(cache=True)
def _gains(text, pairs):
    """Sum the gain of every pair anew."""
    symbol, behind, _, weight, value = text
    for place in range(len(symbol)):
        second = behind[place]
        if symbol[place] >= 0 and second >= 0 and symbol[second] >= 0:
            pair = pairs[5][slot(pairs, symbol[place], symbol[second])]
            pairs[6][pair] += weight[place] * value[second]


@njit(cache=True)
def _rehash(pairs, n):
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

    def __init__(
        self,
        rows: Sequence[str],
        n: Sequence[int] | NDArray[np.uint64],
        alphabet: Sequence[str],
        *,
        heads: bool = False,
        value: NDArray[np.int32] | None = None,
    ) -> None:
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
        self.text = (symbol, after, before, weight, np.ones(size, np.int32) if value is None else value)
        # Every merge takes one token away and makes at most two new pairs, so three places a character are enough.
        self.places = (np.empty(3 * size, np.int32), np.empty(3 * size, np.int32))
        self.used = np.zeros(4, dtype=np.int64)
        self.left = self.right = self._newest = self.length = self.changed = np.empty(0, dtype=np.int32)
        self._n = self._gain = self._stamp = np.empty(0, dtype=np.int64)
        for start in range(0, size, _AT_ONCE):
            stop = min(start + _AT_ONCE, size)
            self._make_room(stop - start)
            _note_all(self.text, self.pairs, self.places, self.changed, self.used, start, stop)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs so far; they are numbered in the order of their first sight."""
        return int(self.used[0])

    @property
    def count(self) -> NDArray[np.int64]:
        """Occurrences of each pair now (ㅋㅋㅋ holds ㅋㅋ twice); writable: 0 excludes a pair."""
        return self._n[: self.n_pairs]

    @property
    def tokens(self) -> int:
        """Running tokens."""
        return int(self.weight[self.symbol != -2].sum())

    def price(self, value: NDArray[np.int32]) -> None:
        """Let a join gain other values from now on."""
        self.text = (*self.text[:4], value)
        self._gain[: self.n_pairs] = 0
        _gains(self.text, self.pairs)

    def find(self, left: int, right: int) -> int:
        """The number of a pair, or -1."""
        return int(self.pairs[5][slot(self.pairs, left, right)])

    def merge(self, pair: int, symbol: int) -> int:
        """Merge every `pair` to `symbol`, and return how often, weighted by the counts of words."""
        self.make_room(pair)
        return int(merge(self.text, self.pairs, self.places, self.changed, self.used, pair, symbol))

    def make_room(self, pair: int) -> None:
        """Make room for the pairs that a merge may bring."""
        self._make_room(2 * int(self.length[pair]))

    def _make_room(self, more: int) -> None:
        if self.n_pairs + more <= len(self.left):
            return
        capacity = 2 * (self.n_pairs + more)
        more = capacity - len(self.left)
        columns = (self.left, self.right, self._newest, self.length, self.changed)
        self.left, self.right, self._newest, self.length, self.changed = (
            np.append(column, np.empty(more, np.int32)) for column in columns
        )
        self._n, self._gain, self._stamp = (
            np.append(column, np.empty(more, np.int64)) for column in (self._n, self._gain, self._stamp)
        )
        table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
        self.pairs = (self.left, self.right, self._n, self._newest, self.length, table, self._gain, self._stamp)
        _rehash(self.pairs, self.n_pairs)


# ── the pair with the highest gain ────────────────────────────────────────────────────────────────────────────────────
#
# A gain may rise, when a place where the join would lose goes away, so every pair that a merge changes enters the heap anew, and an
# entry counts only if its gain is the pair's gain now, and the pair still occurs often enough: it may lose places that gain nothing.
# heap    gain, number of the two symbols as one, and pair of each entry; number of entries


@njit(cache=True)
def _push(heap, gain, key, pair):
    gains, keys, numbers, size = heap
    i = size[0]
    size[0] += 1
    while i > 0:
        above = (i - 1) >> 1
        if gains[above] > gain or (gains[above] == gain and keys[above] <= key):
            break
        gains[i], keys[i], numbers[i] = gains[above], keys[above], numbers[above]
        i = above
    gains[i], keys[i], numbers[i] = gain, key, pair


@njit(cache=True)
def _pop(heap):
    gains, keys, numbers, size = heap
    first = gains[0], numbers[0]
    size[0] -= 1
    gain, key, pair, i = gains[size[0]], keys[size[0]], numbers[size[0]], 0
    while True:
        below = 2 * i + 1
        if below >= size[0]:
            break
        if below + 1 < size[0] and (
            gains[below + 1] > gains[below] or (gains[below + 1] == gains[below] and keys[below + 1] < keys[below])
        ):
            below += 1
        if gains[below] < gain or (gains[below] == gain and keys[below] >= key):
            break
        gains[i], keys[i], numbers[i] = gains[below], keys[below], numbers[below]
        i = below
    gains[i], keys[i], numbers[i] = gain, key, pair
    return first


@njit(cache=True)
def _enter(pairs, which, heap, refused, lengths, longest, lowest):
    """Enter the pairs that gain something and occur often enough."""
    lefts, rights, count, gain = pairs[0], pairs[1], pairs[2], pairs[6]
    for pair in which:
        if gain[pair] > 0 and count[pair] >= lowest and not refused[pair]:
            left, right = lefts[pair], rights[pair]
            if lengths[left] + lengths[right] <= longest:
                _push(heap, gain[pair], (np.int64(left) << 32) | np.int64(right), pair)


@njit(cache=True)
def _best(pairs, heap, refused, lowest):
    """The pair with the highest gain, or -1."""
    while heap[3][0] > 0:
        gain, pair = _pop(heap)
        if gain == pairs[6][pair] and pairs[2][pair] >= lowest and not refused[pair]:
            return pair
    return -1


@njit(cache=True)
def _merge_and_enter(text, pairs, places, changed, used, pair, joined, heap, refused, lengths, longest, lowest):
    merge(text, pairs, places, changed, used, pair, joined)
    _enter(pairs, changed[: used[2]], heap, refused, lengths, longest, lowest)
    return _best(pairs, heap, refused, lowest)


class GainQueue:
    """Pairs by falling gain, of equal ones the one of the oldest symbols, as in Hugging Face's trainer.

    Examples
    --------
    >>> counter = PairCounter(["ㅋㅋ", "가ㅋ"], [2, 5], ["ㅋ", "가"])
    >>> queue = GainQueue(counter, lengths=np.ones(3, np.int32), longest=8, lowest=2)
    >>> int(counter.left[queue.best]), queue.merge(queue.best, 2), queue.merge(queue.best, 2)
    (1, 0, None)
    """

    def __init__(self, counter: PairCounter, *, lengths: NDArray[np.int32], longest: int, lowest: int) -> None:
        self._counter, self._limits = counter, (lengths, longest, lowest)
        self._refused = np.zeros(len(counter.left), np.bool_)
        self._heap = (*(np.empty(0, kind) for kind in (np.int64, np.int64, np.int32)), np.zeros(1, np.int64))
        self._make_room(counter.n_pairs)
        every = np.arange(counter.n_pairs, dtype=np.int32)
        _enter(counter.pairs, every, self._heap, self._refused, *self._limits)
        self.best = self._next()

    def _next(self) -> int | None:
        pair = int(_best(self._counter.pairs, self._heap, self._refused, self._limits[2]))
        return None if pair < 0 else pair

    def refuse(self) -> int | None:
        """Leave the best pair out for ever; the next one."""
        self._refused[self.best] = True
        self.best = self._next()
        return self.best

    def merge(self, pair: int, symbol: int) -> int | None:
        """Merge a pair; the next best one."""
        counter = self._counter
        counter.make_room(pair)
        self._make_room(4 * int(counter.length[pair]))
        if len(self._refused) < len(counter.left):
            self._refused = np.append(self._refused, np.zeros(len(counter.left) - len(self._refused), np.bool_))
        arrays = counter.text, counter.pairs, counter.places, counter.changed, counter.used
        best = int(_merge_and_enter(*arrays, pair, symbol, self._heap, self._refused, *self._limits))
        self.best = None if best < 0 else best
        return self.best

    def _make_room(self, more: int) -> None:
        gains, keys, pairs, size = self._heap
        if (most := int(size[0]) + more) > len(gains):
            room = 2 * most - len(gains)
            columns = (np.append(column, np.empty(room, column.dtype)) for column in (gains, keys, pairs))
            self._heap = (*columns, size)
