"""A hash table from the characters of a unit to its ids, in flat arrays; bounded.

Words repeat, so a unit is solved once and then looked up; the table grows up to its bound, and is then
cleared, which costs one more solution for each unit that comes again, and changes no id. Long units seldom repeat and
never enter.

An entry is four words of 64 bits, half a line of the cache, so that a unit is found by one access to memory: the unit's
first eight characters (of a longer one: where all are kept), its hash and size, and its *head*: at most three ids, 20 bits
each, after their number; or their number and their place. The head of a unit without a solution yet is -1 - j, where j
is its job.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

LONGEST = 32
"""Units of UTF-16: longer ones are solved each time they come."""

TABLE_BYTES = 1 << 28
"""What the table of one thread may take: 256 MiB hold some four million distinct words."""

_FIRST = 1 << 16
_AHEAD = 128
_PAIR = 8  # units: most are no longer, and are compared as two words whatever their size, without a branch
_PROBES = 64  # a chain this long is no accident: such a unit does not enter, and time stays linear
_MASKS = np.array([(1 << 16 * n) - 1 if n < 4 else -1 for n in range(5)])
_LOW = np.array([_MASKS[min(n, 4)] for n in range(_PAIR + 1)])
_HIGH = np.array([_MASKS[max(n - 4, 0)] for n in range(_PAIR + 1)])
_SIZE = 63
_HASHED = np.uint64(~_SIZE & 0xFFFFFFFFFFFFFFFF)
# Unsigned, because overflow of a signed product is undefined in compiled code, and such a place is known not to count from
# the end.
_ONE, _TAG, _HEAD, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SHIFT = np.uint64(32)
_COUNT, _COUNT_BITS, _ID_BITS, _MORE = 7, 3, 20, 4
_ID = (1 << _ID_BITS) - 1
_PLACE_BITS = 36
_PLACE = (1 << _PLACE_BITS) - 1


class WordTable:
    """Units and their ids, for one thread."""

    def __init__(self, bound: int = TABLE_BYTES) -> None:
        self.bound = bound
        self._begin()

    def _begin(self) -> None:
        self._entries = _entries(_FIRST)
        self._longs = np.empty(_FIRST // 8, np.int64)
        self.ids = np.empty(_FIRST // 4, np.int32)
        self._state = np.array([0, 0, 0, 0])  # entries; words of longer units, ids used; jobs of the block

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the table now."""
        return self._entries.nbytes + self._longs.nbytes + self.ids.nbytes

    def look_up(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the heads of units, and the units to solve, with their places."""
        n = len(begins)
        if len(self) and not self._has_room(n):
            self._begin()
        heads, jobs, places = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        hashes = np.empty(n, np.uint64)
        # Four units from every place on: they are compared and kept by words (see `_PADDING` in `koktok.bulk.texts`).
        words_at = np.ndarray((max(len(data) - 3, 0),), np.int64, data, strides=(2,))
        hash_units(words_at, begins, ends, hashes)
        self._state[3] = done = 0
        while done < n:
            self._make_room(places[: self._state[3]])
            done, _ = _look_up(
                words_at, begins, hashes, done, self._entries, self._longs, self._state, heads, jobs, places
            )
        n_jobs = self._state[3]
        return heads, jobs[:n_jobs], places[:n_jobs]

    def keep(
        self, places: NDArray[np.int64], ids: NDArray[np.int32], firsts: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> None:
        """Store the ids of the jobs that have an entry: `counts` of them, from `firsts` on."""
        wanted = int(self._state[2]) + len(ids)
        if wanted > len(self.ids):
            self.ids = _grown(self.ids, max(2 * len(self.ids), wanted))
        _keep(places, ids, firsts, counts, self._entries, self.ids, self._state)

    def _sizes(self, n: int) -> tuple[int, int]:
        """Entries, and words of longer units, for so many more units."""
        size, longs = len(self._entries) // 4, len(self._longs)
        while 8 * (len(self) + n) > 5 * size - 8 * _AHEAD:
            size *= 2 if size >= 1 << 19 else 4
        while self._state[1] + (n + _AHEAD) * (LONGEST // 4) > longs:
            longs *= 2
        return size, longs

    def _has_room(self, n: int) -> bool:
        """Whether so many more units stay within the bound.

        Checked before a block and not inside it: a head points into `ids` until it is written out.
        """
        size, longs = self._sizes(n)
        return size * 32 + longs * 8 + self.ids.nbytes <= self.bound

    def _make_room(self, places: NDArray[np.int64]) -> None:
        """Make room for some more units; those without ids yet keep their `places`."""
        size, longs = self._sizes(0)
        if longs > len(self._longs):
            self._longs = _grown(self._longs, longs)
        if size * 4 > len(self._entries):
            old, self._entries = self._entries, _entries(size)
            _rehash(old, self._entries, places)


def _entries(n: int) -> NDArray[np.int64]:
    """So many empty entries, none of them across two lines of the cache."""
    room = np.zeros(4 * n + 8, np.int64)
    first = -room.ctypes.data % 64 // 8
    return room[first : first + 4 * n]


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


@njit(nogil=True, cache=True)
def hash_units(words_at, begins, ends, hashes):
    """Fill in the hash of every unit, its lowest bits the size; 0, which no other has, where it is too long."""
    for k in range(len(begins)):
        begin, size = np.uint64(begins[k]), ends[k] - begins[k]
        digest = np.uint64(0)
        if size <= _PAIR:
            low, high = words_at[begin] & _LOW[size], words_at[begin + _FOUR] & _HIGH[size]
            digest = (np.uint64(low) * _FACTORS[0]) ^ np.uint64(high)
        elif size <= LONGEST:
            while size > 4:
                digest = (digest ^ (digest >> _SHIFT) ^ np.uint64(words_at[begin])) * _FACTORS[0]
                begin += _FOUR
                size -= 4
            digest = digest ^ np.uint64(words_at[begin] & _MASKS[size])
            size = ends[k] - begins[k]
        else:
            hashes[k] = np.uint64(0)
            continue
        digest = (digest ^ (digest >> _SHIFT)) * _FACTORS[1]
        digest ^= digest >> _SHIFT
        hashes[k] = ((digest * _FACTORS[0]) & _HASHED) | np.uint64(size)


@njit(nogil=True, cache=True)
def _look_up(words_at, begins, hashes, first, entries, longs, state, heads, jobs, places):
    """Continue from unit `first` until all are looked up or the table is full; returns where it stopped."""
    n, n_jobs = len(begins), state[3]
    mask = np.uint64(len(entries) - 1)
    full = len(entries) // 4 * 5 // 8 - _AHEAD
    peeked, seen = np.empty(_AHEAD, np.int64), np.int64(0)
    while first < n and state[0] <= full and state[1] + _AHEAD * (LONGEST // 4) <= len(longs):
        # Loads that do not wait for each other: the memory answers many at once, and the search below finds them near.
        last = min(first + _AHEAD, n)
        for k in range(first, last):
            peeked[k - first] = entries[((hashes[k] >> _SHIFT) * _FOUR) & mask]
        seen ^= peeked[0]
        for k in range(first, last):
            tag = np.int64(hashes[k])
            size = tag & _SIZE
            at = ((hashes[k] >> _SHIFT) * _FOUR) & mask
            begin = np.uint64(begins[k])
            hit, place = False, np.int64(-1)
            if tag != 0 and size <= _PAIR:
                low, high = words_at[begin] & _LOW[size], words_at[begin + _FOUR] & _HIGH[size]
                for _ in range(_PROBES):
                    other = entries[at + _TAG]
                    if other == tag and entries[at] == low and entries[at + _ONE] == high:
                        hit = True
                        break
                    if other == 0:
                        place = np.int64(at)
                        entries[at], entries[at + _ONE] = low, high
                        break
                    at = (at + _FOUR) & mask
            elif tag != 0:
                whole, rest = (size - 1) >> 2, _MASKS[((size - 1) & 3) + 1]
                for _ in range(_PROBES):
                    other = entries[at + _TAG]
                    if other == tag:
                        i, from_ = np.uint64(entries[at]), begin
                        differs = np.int64(0)
                        for _ in range(whole):
                            differs |= words_at[from_] ^ longs[i]
                            from_ += _FOUR
                            i += _ONE
                        if differs | ((words_at[from_] & rest) ^ longs[i]) == 0:
                            hit = True
                            break
                    if other == 0:
                        place = np.int64(at)
                        i, from_ = np.uint64(state[1]), begin
                        entries[at] = state[1]
                        for _ in range(whole):
                            longs[i] = words_at[from_]
                            from_ += _FOUR
                            i += _ONE
                        longs[i] = words_at[from_] & rest
                        state[1] += whole + 1
                        break
                    at = (at + _FOUR) & mask
            if hit:
                heads[k] = entries[at + _HEAD]
                continue
            heads[k] = -1 - n_jobs
            if place >= 0:
                entries[at + _TAG], entries[at + _HEAD] = tag, -1 - n_jobs
                state[0] += 1
            jobs[n_jobs], places[n_jobs] = k, place
            n_jobs += 1
        first = last
    state[3] = n_jobs
    return first, seen


@njit(nogil=True, cache=True)
def _rehash(old, entries, places):
    mask = np.uint64(len(entries) - 1)
    for i in range(0, len(old), 4):
        tag = old[i + 2]
        if tag != 0:
            at = ((np.uint64(tag) >> _SHIFT) * _FOUR) & mask
            while entries[at + _TAG] != 0:
                at = (at + _FOUR) & mask
            for k in range(4):
                entries[at + np.uint64(k)] = old[i + k]
            if old[i + 3] < 0:
                places[-1 - old[i + 3]] = np.int64(at)


@njit(nogil=True, cache=True)
def _keep(places, ids, firsts, counts, entries, kept, state):
    used = state[2]
    for j in range(len(places)):
        if places[j] < 0:
            continue
        first, count = firsts[j], counts[j]
        head, large = np.int64(count), count >= _MORE
        for i in range(min(count, _MORE - 1)):
            large |= ids[first + i] > _ID
            head |= np.int64(ids[first + i]) << (_COUNT_BITS + _ID_BITS * i)
        if large:
            for i in range(count):
                kept[used + i] = ids[first + i]
            head = (count << (_COUNT_BITS + _PLACE_BITS)) | (used << _COUNT_BITS) | _MORE
            used += count
        entries[places[j] + 3] = head
    state[2] = used


@njit(nogil=True, cache=True)
def count_ids(heads, counts):
    """How many ids units have together."""
    total = np.int64(0)
    for head in heads:
        if head < 0:
            total += counts[-1 - head]
        else:
            count = head & _COUNT
            total += count if count < _MORE else head >> (_COUNT_BITS + _PLACE_BITS)
    return total


@njit(nogil=True, cache=True)
def expand(heads, kept, ids, firsts, counts, out, used, closes, document, last, offsets):
    """Write the ids of units, and where the documents from `document` to `last` end among them.

    `out` has room for three ids more than there are: three are always written, and what is too many is written over.
    """
    for k in range(len(heads)):
        while document < last and closes[document] == k:
            document += 1
            offsets[document] = used
        head = heads[k]
        count = head & _COUNT
        if head < 0:
            count, at = counts[-1 - head], firsts[-1 - head]
            for i in range(count):
                out[used + i] = ids[at + i]
        elif count < _MORE:
            for i in range(_MORE - 1):
                out[used + i] = (head >> (_COUNT_BITS + _ID_BITS * i)) & _ID
        else:
            count, at = head >> (_COUNT_BITS + _PLACE_BITS), (head >> _COUNT_BITS) & _PLACE
            for i in range(count):
                out[used + i] = kept[at + i]
        used += count
    while document < last:
        document += 1
        offsets[document] = used
