"""Text, as UTF-8 bytes, to units: cut at every safe place, hashed on the way.

This file adds: the one pass over every byte. It is compiled, holds no lock, and stops when its arrays are full, so that
a file of any size goes through memory of one size.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from koktok.bulk.marks import DIGIT, NOT_PLAIN, REPEATED

__all__ = ["code_point", "cut_units"]

# Unsigned, because overflow of a signed product is undefined in compiled code.
_FACTOR, _SHIFT, _START = np.uint64(0x2545F4914F6CDD1D), np.uint64(31), np.uint64(0x5BD1E995)
_ONE, _TWO, _THREE = np.uint64(1), np.uint64(2), np.uint64(3)
_GROUPED = 27  # as in `koktok.pretokenize`: digits further than this from the end of their number stand alone


@njit(nogil=True, cache=True)
def code_point(data, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The character at a place of valid UTF-8, and how many bytes it takes."""
    # An unsigned place is known not to count from the end, which saves a test for each byte.
    place = np.uint64(at)
    first = np.int64(data[place])
    if first < 0x80:
        return first, 1
    second = np.int64(data[place + _ONE]) & 0x3F
    if first < 0xE0:
        return ((first & 0x1F) << 6) | second, 2
    third = np.int64(data[place + _TWO]) & 0x3F
    if first < 0xF0:
        return ((first & 0x0F) << 12) | (second << 6) | third, 3
    high = ((first & 0x07) << 18) | (second << 12)
    return high | (third << 6) | (np.int64(data[place + _THREE]) & 0x3F), 4


@njit(nogil=True, cache=True)
def _digits_from(data, at, end, marks):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """How many digits stand here, and whether the character behind them is plain."""
    n = 0
    while at < end:
        char, size = code_point(data, at)
        mark = marks[char] & 15
        if mark != DIGIT:
            return n, mark != NOT_PLAIN
        n += 1
        at += size
    return n, True


@njit(nogil=True, cache=True)
def cut_units(  # type: ignore[no-untyped-def]
    data, begins, ends, state, marks, cuts, grouped, unit_begins, unit_ends, hashes, plain, closes
):  # pragma: no cover - compiled
    """Units of documents, from where `state` says, until the documents or the room end.

    Parameters
    ----------
    data : ndarray of uint8
        Valid UTF-8.
    begins, ends : ndarray of int64, shape (documents,)
    state : ndarray of int64, shape (4,)
        Document, place (-1: its beginning), digits of the number that go on from here, whether it is cut; updated.
    marks, cuts : ndarray
        See `koktok.bulk.marks`.
    grouped : bool
        Whether numbers are cut into threes.
    unit_begins, unit_ends, hashes, plain : ndarray, shape (room,)
        Filled: int64, int64, int64 (of 31 bits), bool.
    closes : ndarray of int64, shape (documents,)
        Filled: how many units of this call stood before the end of each document that ended in this call.

    Returns
    -------
    int
        Units found.
    """
    document, at, left, cutting = state[0], state[1], state[2], state[3] != 0
    room, n = len(unit_begins), 0
    while document < len(begins):
        end = ends[document]
        if at < 0:
            at, left = begins[document], 0
        while at < end:
            if n == room:
                state[0], state[1], state[2], state[3] = document, at, left, cutting
                return n
            begin = at
            char, size = code_point(data, at)
            mark = marks[char]
            clean = (mark & 15) != NOT_PLAIN
            digest = (np.uint64(char) ^ _START) * _FACTOR
            if grouped and (mark & 15) == DIGIT:
                if left == 0:
                    left, cutting = _digits_from(data, at, end, marks)
                    if left > _GROUPED:
                        cutting = False
                if left > _GROUPED:
                    clean = False
                left -= 1
            at += size
            while at < end:
                after, size = code_point(data, at)
                next_mark = marks[np.uint64(after)]
                if cuts[np.uint64(((mark & 15) << 4) | (next_mark & 15))]:
                    break
                if grouped and (next_mark & 15) == DIGIT:
                    if left == 0:
                        left, cutting = _digits_from(data, at, end, marks)
                        # What stands before may be read as one more digit; then the whole number is not ours to cut.
                        if left > _GROUPED or (mark & 15) == NOT_PLAIN:
                            cutting = False
                    elif cutting and left % 3 == 0:
                        break
                    if left > _GROUPED:
                        clean = False
                    left -= 1
                if (next_mark & 15) == NOT_PLAIN or (next_mark & REPEATED and after == char):
                    clean = False
                digest = (digest ^ (digest >> _SHIFT) ^ np.uint64(after)) * _FACTOR
                char, mark = after, next_mark
                at += size
            unit_begins[n], unit_ends[n], plain[n] = begin, at, clean
            hashes[n] = np.int64((digest ^ (digest >> _SHIFT)) >> np.uint64(33))
            n += 1
        closes[document] = n
        document += 1
        at = -1
    state[0], state[1] = document, at
    return n
