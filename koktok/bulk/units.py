"""Text, as UTF-16, to units: cut at every safe place.

This file adds: the one pass over every character. It is compiled, holds no lock, and stops when its arrays are full, so
that a file of any size goes through memory of one size. UTF-16, because a Python string with Hangul lies so in memory
(16 bits a character): it becomes such an array by a copy, and a syllable is read by one load.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from koktok.bulk.marks import DIGIT, NOT_PLAIN

__all__ = ["code_point", "cut_units"]

_GROUPED = 27  # as in `koktok.text.pretokenize`: digits further than this from the end of their number stand alone


@njit(nogil=True, cache=True)
def code_point(data, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The character at a place of valid UTF-16, and how many units it takes."""
    # An unsigned place is known not to count from the end, which saves a test for each unit.
    place = np.uint64(at)
    first = np.int64(data[place])
    if first & 0xFC00 != 0xD800:
        return first, 1
    return 0x10000 + ((first & 0x3FF) << 10) + (np.int64(data[place + np.uint64(1)]) & 0x3FF), 2


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
    data, begins, ends, state, marks, cuts, grouped, unit_begins, unit_ends, plain, closes
):  # pragma: no cover - compiled
    """Units of documents, from where `state` says, until the documents or the room end.

    Parameters
    ----------
    data : ndarray of uint16
        Valid UTF-16.
    begins, ends : ndarray of int64, shape (documents,)
    state : ndarray of int64, shape (4,)
        Document, place (-1: its beginning), digits of the number that go on from here, whether it is cut; updated.
    marks, cuts : ndarray
        See `koktok.bulk.marks`.
    grouped : bool
        Whether numbers are cut into threes.
    unit_begins, unit_ends, plain : ndarray, shape (room,)
        Filled: int64, int64, bool.
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
                if next_mark >= NOT_PLAIN and ((next_mark & 15) == NOT_PLAIN or after == char):  # or `REPEATED`
                    clean = False
                char, mark = after, next_mark
                at += size
            unit_begins[n], unit_ends[n], plain[n] = begin, at, clean
            n += 1
        closes[document] = n
        document += 1
        at = -1
    state[0], state[1] = document, at
    return n
