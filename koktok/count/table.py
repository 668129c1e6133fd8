"""A hash table of words in flat arrays, filled by compiled code that runs on as many threads as there are tables.

This file adds: the inner loop. Words are found in UTF-8 bytes as they lie in the file, so no string is made for a
running word; a row holds how often it occurs, in how many documents, and how often in held-out lines. Every core fills
a table of its own, and rows are summed afterwards (law 8), so nothing is locked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from koktok.count.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DOCUMENT_ENDS", "HELD", "Table", "flag_ends", "gather", "in_order", "plain"]

HELD, DOCUMENT_ENDS = 1, 2
"""Bits of a line's flag."""

_ROWS, _USED, _AT, _LINE, _DOCUMENT = range(5)
_N, _DOCUMENTS, _HELD, _LAST = range(4)
_FNV, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SPACE, _NEWLINE = 32, 10


class Table:
    r"""Words and their numbers, in the order of their first coming.

    Parameters
    ----------
    room : int
        Rows to begin with; the table grows.

    Examples
    --------
    >>> table = Table()
    >>> table.count("나는 집에\n집에\n".encode(), np.array([2, 2], np.uint8))
    >>> rows = table.rows(); rows.words(), rows.n.tolist(), rows.documents.tolist()
    ([' 집에', '나는', '집에'], [1, 1, 1], [1, 1, 1])
    """

    def __init__(self, room: int = 1 << 12) -> None:
        self._state = np.zeros(5, np.int64)
        self._state[_DOCUMENT] = 1  # no row has seen document 1 yet
        self._cells = np.zeros((room, 4), np.int64)
        self._hashes = np.zeros(room, np.uint64)
        self._offsets = np.zeros(room + 1, np.int64)
        self._arena = np.empty(room * 16, np.uint8)
        self._slots = np.zeros(2 * room, np.uint64)

    def count(self, data: bytes, flags: NDArray[np.uint8], *, whole: bool = False) -> None:
        r"""Count the words of lines.

        Parameters
        ----------
        data : bytes
            UTF-8, every line ended by ``\n``.
        flags : ndarray of uint8, shape (lines,)
            `HELD` where the line is held out, `DOCUMENT_ENDS` where it is the last of its document.
        whole : bool
            A line is one word (a run of eojeols).
        """
        self.fill(_count, np.frombuffer(data, np.uint8), flags, whole)

    def add(self, rows: Rows) -> None:
        """Add rows that were counted elsewhere."""
        self.fill(_add, rows.data, rows.offsets, rows.n, rows.documents, rows.held)

    @property
    def index(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
        """Slots, offsets and bytes, for compiled code that looks words up."""
        return self._slots, self._offsets, self._arena

    def fill(self, work: Any, *what: Any) -> None:
        """Call compiled code until it is done, with more room each time that it asks for some."""
        state = self._state
        state[_AT] = state[_LINE] = 0
        while True:
            wanted = work(*what, self._slots, self._hashes, self._cells, self._offsets, self._arena, state)
            if wanted < 0:
                return
            if wanted > 0:
                self._arena = _grown(self._arena, max(2 * len(self._arena), len(self._arena) + wanted))
            else:
                room = 2 * len(self._hashes)
                self._hashes, self._cells = _grown(self._hashes, room), _grown(self._cells, room)
                self._offsets = _grown(self._offsets, room + 1)
                self._slots = np.zeros(2 * room, np.uint64)
                _rehash(self._slots, self._hashes, state[_ROWS])

    def rows(self) -> Rows:
        """What was counted, in code-point order."""
        n, used = int(self._state[_ROWS]), int(self._state[_USED])
        order = in_order(self._arena[:used], self._offsets[: n + 1])
        data, offsets = gather(self._arena, self._offsets, order)
        cells = self._cells[:n][order].view(np.uint64)
        return Rows(data, offsets, *(np.ascontiguousarray(cells[:, i]) for i in (_N, _DOCUMENTS, _HELD)))


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(nogil=True, cache=True)
def _slot_of(  # type: ignore[no-untyped-def]
    data, begin, end, digest, slots, offsets, arena
):  # pragma: no cover - compiled
    """The slot of a word, or the empty one where it would stand."""
    mask = len(slots) - 1
    tag = digest >> np.uint64(32)
    at = np.int64((digest ^ (digest >> np.uint64(29))) & np.uint64(mask))
    size = end - begin
    while slots[at] != 0:
        if slots[at] >> np.uint64(32) == tag:
            row = np.int64(slots[at] & np.uint64(0xFFFFFFFF)) - 1
            start = offsets[row]
            if offsets[row + 1] - start == size:
                same = True
                for i in range(size):
                    if arena[start + i] != data[begin + i]:
                        same = False
                        break
                if same:
                    break
        at = (at + 1) & mask
    return at


@njit(nogil=True, cache=True)
def _row_of(  # type: ignore[no-untyped-def]
    data, begin, end, digest, slots, hashes, offsets, arena, state
):  # pragma: no cover - compiled
    """The row of a word; -1 where the rows are full, minus the bytes wanted (at least 2) where the arena is."""
    at = _slot_of(data, begin, end, digest, slots, offsets, arena)
    if slots[at] != 0:
        return np.int64(slots[at] & np.uint64(0xFFFFFFFF)) - 1
    tag, size = digest >> np.uint64(32), end - begin
    row = state[_ROWS]
    if row >= len(hashes):
        return -1
    used = state[_USED]
    if used + size > len(arena):
        return -max(np.int64(2), used + size - len(arena))
    for i in range(size):
        arena[used + i] = data[begin + i]
    state[_ROWS] = row + 1
    state[_USED] = used + size
    offsets[row + 1] = used + size
    hashes[row] = digest
    slots[at] = (tag << np.uint64(32)) | np.uint64(row + 1)
    return row


@njit(nogil=True, cache=True)
def _mixed(digest):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """FNV's low bits are good and its high bits late; the table wants both."""
    digest ^= digest >> np.uint64(33)
    digest *= np.uint64(0xFF51AFD7ED558CCD)
    return digest ^ (digest >> np.uint64(33))


@njit(nogil=True, cache=True)
def flag_ends(flag):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """1 where a line ends its document."""
    return np.int64((flag & DOCUMENT_ENDS) != 0)


@njit(nogil=True, cache=True)
def _noted(cells, row, held, document):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """One occurrence more."""
    if held:
        cells[row, _HELD] += 1
        return
    cells[row, _N] += 1
    if cells[row, _LAST] != document:
        cells[row, _LAST] = document
        cells[row, _DOCUMENTS] += 1


@njit(nogil=True, cache=True)
def _count(  # type: ignore[no-untyped-def]
    data, flags, whole, slots, hashes, cells, offsets, arena, state
):  # pragma: no cover - compiled
    at, line, document = state[_AT], state[_LINE], state[_DOCUMENT]
    while at < len(data):
        if data[at] == _NEWLINE:
            document += flag_ends(flags[line])
            line += 1
            at += 1
            continue
        begin = at
        digest = _FNV
        if not whole:
            while at < len(data) and data[at] == _SPACE:
                digest = (digest ^ np.uint64(_SPACE)) * _PRIME
                at += 1
        while at < len(data) and data[at] != _NEWLINE and (whole or data[at] != _SPACE):
            digest = (digest ^ np.uint64(data[at])) * _PRIME
            at += 1
        row = _row_of(data, begin, at, _mixed(digest), slots, hashes, offsets, arena, state)
        if row < 0:
            state[_AT], state[_LINE], state[_DOCUMENT] = begin, line, document
            return 0 if row == -1 else -row
        _noted(cells, row, (flags[line] & HELD) != 0, document)
    state[_DOCUMENT] = document
    return -1


@njit(nogil=True, cache=True)
def _add(  # type: ignore[no-untyped-def]
    data, starts, n, documents, held, slots, hashes, cells, offsets, arena, state
):  # pragma: no cover - compiled
    for i in range(state[_AT], len(n)):
        digest = _FNV
        for at in range(starts[i], starts[i + 1]):
            digest = (digest ^ np.uint64(data[at])) * _PRIME
        row = _row_of(data, starts[i], starts[i + 1], _mixed(digest), slots, hashes, offsets, arena, state)
        if row < 0:
            state[_AT] = i
            return 0 if row == -1 else -row
        cells[row, _N] += np.int64(n[i])
        cells[row, _DOCUMENTS] += np.int64(documents[i])
        cells[row, _HELD] += np.int64(held[i])
    return -1


@njit(nogil=True, cache=True)
def _rehash(slots, hashes, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    mask = len(slots) - 1
    for row in range(n):
        digest = hashes[row]
        at = np.int64((digest ^ (digest >> np.uint64(29))) & np.uint64(mask))
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = ((digest >> np.uint64(32)) << np.uint64(32)) | np.uint64(row + 1)


def in_order(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of words by their bytes, which is the order of their code points.

    Parameters
    ----------
    data : ndarray of uint8
        The words, one behind the other.
    offsets : ndarray of int64, shape (words + 1,)
        Where they begin.
    """
    keys = _keys(data, offsets)
    order: NDArray[np.int64] = np.argsort(keys, kind="stable")  # eight bytes decide most; the rest is settled below
    _settle(data, offsets, keys, order, np.empty_like(order))
    return order


@njit(nogil=True, cache=True)
def _keys(data, offsets):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    keys = np.zeros(len(offsets) - 1, np.uint64)
    for i in range(len(keys)):
        key = np.uint64(0)
        for at in range(offsets[i], min(offsets[i] + 8, offsets[i + 1])):
            key |= np.uint64(data[at]) << np.uint64(8 * (7 - (at - offsets[i])))
        keys[i] = key
    return keys


@njit(nogil=True, cache=True)
def _after(data, offsets, a, b):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True where word a comes behind word b; their first eight bytes are the same."""
    at, other = offsets[a], offsets[b]
    size, length = offsets[a + 1] - at, offsets[b + 1] - other
    for i in range(min(8, size, length), min(size, length)):
        if data[at + i] != data[other + i]:
            return data[at + i] > data[other + i]
    return size > length


@njit(nogil=True, cache=True)
def _settle(data, offsets, keys, order, spare):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Merge sort of every run of equal keys, in place."""
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and keys[order[end]] == keys[order[begin]]:
            end += 1
        width = 1
        while width < end - begin:
            for low in range(begin, end, 2 * width):
                middle, high = min(low + width, end), min(low + 2 * width, end)
                i, j = low, middle
                for k in range(low, high):
                    if j >= high or (i < middle and not _after(data, offsets, order[i], order[j])):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            for k in range(begin, end):
                order[k] = spare[k]
            width *= 2
        begin = end


def gather(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The words with these numbers, one behind the other, and where they begin."""
    fresh = np.zeros(len(order) + 1, np.int64)
    np.cumsum((offsets[1:] - offsets[:-1])[order], out=fresh[1:])
    copied = np.empty(int(fresh[-1]), np.uint8)
    _gather(data, offsets, order, copied, fresh)
    return copied, fresh


@njit(nogil=True, cache=True)
def _gather(data, offsets, order, copied, fresh):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for i in range(len(order)):
        start = offsets[order[i]]
        for at in range(fresh[i + 1] - fresh[i]):
            copied[fresh[i] + at] = data[start + at]


@njit(nogil=True, cache=True)
def plain(data, offsets, ascii_ones):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True for words of nothing but Hangul syllables and the ASCII characters that are marked."""
    found = np.ones(len(offsets) - 1, np.bool_)
    for i in range(len(found)):
        at = offsets[i]
        while at < offsets[i + 1]:
            first = data[at]
            if first < 128:
                if not ascii_ones[first]:
                    found[i] = False
                    break
                at += 1
                continue
            if first < 0xEA or first > 0xED:
                found[i] = False
                break
            code = (np.int64(first & 15) << 12) | (np.int64(data[at + 1] & 63) << 6) | np.int64(data[at + 2] & 63)
            if code < 0xAC00 or code > 0xD7A3:
                found[i] = False
                break
            at += 3
    return found
