"""A hash table from the bytes of a unit to its ids, in flat arrays; bounded.

This file adds: memory. Words repeat, so a unit is solved once and found again; the table grows by doubling up to its
bound, and then begins anew, which costs one solution more for each unit that comes back, and no id. Long units are
seldom met twice and never enter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LONGEST", "TABLE_BYTES", "Table", "expand", "heads_of"]

LONGEST = 64
"""Bytes: longer units are solved each time they come."""

TABLE_BYTES = 1 << 28
"""What the table of one thread may take: 256 MiB hold some four million distinct words."""

_AHEAD = 128
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(8)])
_PAIR = 16  # bytes: most units are no longer, and are compared as two words whatever their size, without a branch
_LOW = np.array([(1 << 8 * n) - 1 if n < 8 else -1 for n in range(_PAIR + 1)])
_HIGH = np.array([0] * 8 + [(1 << 8 * n) - 1 if n < 8 else -1 for n in range(_PAIR - 7)])
_RECORD = 0xFFFFFFFF
_PROBES = 64  # a chain this long is no accident at half load: such a unit does not enter, and time stays linear
_FIRST_SLOTS = 1 << 15
_GROWTH = 4  # by two, a table that fills up is written over twice as often
# A record is a head, one word of 64 bits, and behind it the bytes of the unit, filled up to whole words. The head holds
# the unit's size; how many ids it has, where these are at most two; and the two, 27 bits each. Where they are more, the
# 54 bits hold how many and where they are kept.
_SIZE, _COUNT_AT, _IDS_AT, _ID_BITS, _MORE = 127, 7, 9, 27, 3
_ID = (1 << _ID_BITS) - 1
_MANY_AT, _MANY = _IDS_AT + 36, (1 << 18) - 1
_PLACE = (1 << 36) - 1


class Table:
    """Units and their ids, for one thread.

    Parameters
    ----------
    bound : int
        Bytes that it may take; never less than what one block of text needs.
    """

    def __init__(self, bound: int = TABLE_BYTES) -> None:
        self.bound = bound
        self._begin()

    def _begin(self) -> None:
        self._slots = np.zeros(_FIRST_SLOTS, np.int64)
        self.records = np.empty(_FIRST_SLOTS * 2, np.int64)
        self.ids = np.empty(_FIRST_SLOTS * 2, np.int32)
        self._state = np.array([0, 1, 0])  # units, words of records used (0 is no record), ids used

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def nbytes(self) -> int:
        """What it takes now."""
        return self._slots.nbytes + self.records.nbytes + self.ids.nbytes

    def look_up(
        self, data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64], hashes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each unit's record is, and which units want to be solved.

        Returns
        -------
        where : ndarray of int64, shape (units,)
            A record; or -1 - j, where unit j of the second array has no record of its own.
        jobs : ndarray of int64
            Units to solve, in order: new ones, which `keep` waits for, and those that do not enter the table.
        """
        n = len(begins)
        sizes = ends - begins
        short = sizes[sizes <= LONGEST]
        self._make_room(len(short), int(short.sum()))
        where, jobs = np.empty(n, np.int64), np.empty(n, np.int64)
        # Eight bytes from every place on: units are compared and kept by words (see `_PADDING` in `koktok.bulk.texts`).
        words_at = np.ndarray((max(len(data) - 7, 0),), np.int64, data, strides=(1,))
        found, _ = _look_up(words_at, begins, ends, hashes, self._slots, self.records, self._state, where, jobs)
        return where, jobs[:found]

    def keep(
        self,
        where: NDArray[np.int64],
        jobs: NDArray[np.int64],
        ids: NDArray[np.int32],
        firsts: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Store the ids of the jobs that have a record: `counts` of them, from `firsts` on."""
        wanted = int(self._state[2]) + len(ids)
        if wanted > len(self.ids):
            self.ids = _grown(self.ids, max(2 * len(self.ids), wanted))
        _keep(where, jobs, ids, firsts, counts, self.records, self.ids, self._state)

    def _make_room(self, units: int, size: int) -> None:
        words = 3 * units + size // 8 + 1
        for factor in (_GROWTH, 2):
            slots, room = self._wanted(units, words, factor)
            if slots * 8 + room * 8 + self.ids.nbytes <= self.bound:
                break
        else:
            self._begin()
            slots, room = self._wanted(units, words, 2)
        if room > len(self.records):
            self.records = _grown(self.records, room)
        if slots > len(self._slots):
            old, self._slots = self._slots, np.zeros(slots, np.int64)
            _rehash(old, self._slots)

    def _wanted(self, units: int, words: int, factor: int) -> tuple[int, int]:
        """Slots and words of records that so many more units want, where both grow by a factor."""
        slots, room = len(self._slots), len(self.records)
        while slots < 2 * (len(self) + units):
            slots *= factor
        if room < int(self._state[1]) + words:
            room = max(factor * room, int(self._state[1]) + words)
        return slots, room


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


@njit(nogil=True, cache=True)
def _look_up(  # type: ignore[no-untyped-def]
    words_at, begins, ends, hashes, slots, records, state, where, jobs
):  # pragma: no cover - compiled
    mask, n_jobs = len(slots) - 1, 0
    peeked, heads = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    for first in range(0, len(begins), _AHEAD):
        # Loads that do not wait for each other: the memory answers many at once, and the search below finds them near.
        last = min(first + _AHEAD, len(begins))
        for k in range(first, last):
            peeked[k - first] = slots[hashes[k] & mask]
        for k in range(first, last):
            heads[k - first] = records[peeked[k - first] & _RECORD]
        for k in range(first, last):
            size = ends[k] - begins[k]
            found = np.int64(0)
            if size <= _PAIR:
                tag = hashes[k]
                at = tag & mask
                low = words_at[begins[k]] & _LOW[size]
                high = words_at[begins[k] + 8] & _HIGH[size]
                for _ in range(_PROBES):
                    slot = slots[at]
                    if slot == 0:
                        found = state[1]
                        slots[at] = (tag << 32) | found
                        records[found] = size
                        records[found + 1] = low
                        records[found + 2] = high
                        state[0] += 1
                        state[1] = found + 3
                        jobs[n_jobs] = k
                        n_jobs += 1
                        break
                    if slot >> 32 == tag:
                        record = slot & _RECORD
                        other = (records[record] & _SIZE) ^ size
                        if other | (records[record + 1] ^ low) | (records[record + 2] ^ high) == 0:
                            found = record
                            break
                    at = (at + 1) & mask
            elif size <= LONGEST:
                # A slot holds the hash, whose lower bits say where it stands, and the record.
                tag = hashes[k]
                at = tag & mask
                whole, rest = size >> 3, _MASKS[size & 7]
                for _ in range(_PROBES):
                    slot = slots[at]
                    if slot == 0:
                        found = state[1]
                        slots[at] = (tag << 32) | found
                        records[found] = size
                        place = begins[k]
                        for i in range(found + 1, found + 1 + whole):
                            records[i] = words_at[place]
                            place += 8
                        found_end = found + 1 + whole
                        if rest:
                            records[found_end] = words_at[place] & rest
                            found_end += 1
                        state[0] += 1
                        state[1] = found_end
                        jobs[n_jobs] = k
                        n_jobs += 1
                        break
                    if slot >> 32 == tag:
                        record = slot & _RECORD
                        if records[record] & _SIZE == size:
                            place, i = begins[k], record + 1
                            other = np.int64(0)
                            for _ in range(whole):
                                other |= words_at[place] ^ records[i]
                                place += 8
                                i += 1
                            if rest:
                                other |= (words_at[place] & rest) ^ records[i]
                            if other == 0:
                                found = record
                                break
                    at = (at + 1) & mask
            if found == 0:
                found = np.int64(-1 - n_jobs)
                jobs[n_jobs] = k
                n_jobs += 1
            where[k] = found
    return n_jobs, heads[0]


@njit(nogil=True, cache=True)
def _rehash(old, slots):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    mask = len(slots) - 1
    for slot in old:
        if slot != 0:
            at = (slot >> 32) & mask
            while slots[at] != 0:
                at = (at + 1) & mask
            slots[at] = slot


@njit(nogil=True, cache=True)
def _keep(  # type: ignore[no-untyped-def]
    where, jobs, ids, firsts, counts, records, kept, state
):  # pragma: no cover - compiled
    used = state[2]
    for j in range(len(jobs)):
        record = where[jobs[j]]
        if record > 0:
            first, count = firsts[j], counts[j]
            head = np.int64(0)
            if count < _MORE:
                for i in range(count):
                    head |= np.int64(ids[first + i]) << (_IDS_AT + _ID_BITS * i)
                head |= count << _COUNT_AT
            else:
                for i in range(count):
                    kept[used + i] = ids[first + i]
                head = (count << _MANY_AT) | (used << _IDS_AT) | (_MORE << _COUNT_AT)
                used += count
            records[record] |= head
    state[2] = used


@njit(nogil=True, cache=True)
def heads_of(where, records, counts, heads):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill in the head of every unit's record, -1 where it has none; returns how many ids the units have together."""
    total = np.int64(0)
    for k in range(len(where)):
        place = where[k]
        if place > 0:
            head = records[place]
            count = (head >> _COUNT_AT) & _MORE
            total += count if count < _MORE else head >> _MANY_AT
        else:
            head = np.int64(-1)
            total += counts[-1 - place]
        heads[k] = head
    return total


@njit(nogil=True, cache=True)
def expand(  # type: ignore[no-untyped-def]
    where, heads, kept, ids, firsts, counts, out, used, closes, document, last, offsets
):  # pragma: no cover - compiled
    """Write the ids of units, and where the documents from `document` to `last` end among them.

    `out` wants room for two ids more than there are: two are always written, and one too many is written over.
    """
    for k in range(len(heads)):
        while document < last and closes[document] == k:
            document += 1
            offsets[document] = used
        head = heads[k]
        count = (head >> _COUNT_AT) & _MORE
        if count < _MORE:
            out[used] = (head >> _IDS_AT) & _ID
            out[used + 1] = head >> (_IDS_AT + _ID_BITS)
        elif head >= 0:
            count, at = head >> _MANY_AT, (head >> _IDS_AT) & _PLACE
            for i in range(count):
                out[used + i] = kept[at + i]
        else:
            job = -1 - where[k]
            count, at = counts[job], firsts[job]
            for i in range(count):
                out[used + i] = ids[at + i]
        used += count
    while document < last:
        document += 1
        offsets[document] = used
