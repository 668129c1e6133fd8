"""Runs of words in compiled code: cut from lines and counted, and known words found in them again.

This file adds: the second table of superwords without a string a run. What a run is says `koktok.train.superwords.runs_of`,
which a test holds this file to; here runs are bytes of the text, as words are in `koktok.count.table`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.count.rows import Rows
from koktok.count.table import _FNV, _NEWLINE, _PRIME, _SPACE, HELD, Table, _mixed, _noted, _row_of, _slot_of, flag_ends

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Known", "count_runs", "unbroken"]

_AT, _LINE, _DOCUMENT = 2, 3, 4  # of a table's state
_N, _DOCUMENTS = 0, 1  # of its cells


def count_runs(table: Table, data: bytes, flags: NDArray[np.uint8], longest: int) -> None:
    r"""Count the runs of lines: cut behind sentence ends, and after `longest` words where the line is not held out.

    Parameters
    ----------
    table : Table
    data : bytes
        UTF-8, every line ended by ``\n``.
    flags : ndarray of uint8, shape (lines,)
        As for `Table.count`.
    longest : int

    Examples
    --------
    >>> table = Table()
    >>> count_runs(table, "갈 수 있다. 그 사람은\n".encode(), np.array([2], np.uint8), 8)
    >>> table.rows().words()
    [' 그 사람은', '갈 수 있다.']
    """
    table.fill(_count_runs, np.frombuffer(data, np.uint8), flags, longest)


class Known:
    """Words with numbers, found by their bytes.

    Parameters
    ----------
    words : Rows
        Their order gives the numbers.

    Examples
    --------
    >>> known = Known(Rows.of({" 수": 1, " 있다.": 1, "갈": 1}))
    >>> runs = Rows.of({"갈 수 쿠쿠 있다.": 2})
    >>> [array.tolist() for array in known.found(runs)]
    [[0, 4], [2, 0, -1, 1], [0, 1, 3, 6]]
    >>> dict(zip((rows := known.stretches(runs)).words(), rows.n.tolist()))
    {' 있다.': 2, '갈 수': 2}
    """

    def __init__(self, words: Rows) -> None:
        self._table = Table(1 << max(4, (len(words) - 1).bit_length()))
        self._table.add(words)

    def found(self, runs: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Where each run's words begin in what follows; their numbers, -1 for an unknown one; code points before each."""
        starts = np.zeros(len(runs) + 1, np.int64)
        _words_in(runs.data, runs.offsets, starts)
        np.cumsum(starts, out=starts)
        numbers, before = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
        _found(runs.data, runs.offsets, *self._table.index, starts, numbers, before)
        return starts, numbers, before

    def stretches(self, runs: Rows) -> Rows:
        """The parts of runs between words that are not known, with the occurrences and documents of their runs."""
        table = Table(1 << 12)
        table.fill(_stretches, runs.data, runs.offsets, runs.n, runs.documents, *self._table.index)
        return table.rows()


@njit(nogil=True, cache=True)
def _ends(data, begin, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True where a word closes a sentence: one of . ? ! … 。 and then nothing but closing quotes and brackets."""
    while end > begin:
        last = data[end - 1]
        if last in (0x22, 0x27, 0x29, 0x5D):  # " ' ) ]
            end -= 1
            continue
        if last in (0x2E, 0x3F, 0x21):  # . ? !
            return True
        if end - begin < 3:
            return False
        code = (np.int64(data[end - 3]) << 16) | (np.int64(data[end - 2]) << 8) | np.int64(last)
        if code in (0xE2809D, 0xE28099, 0xE3808D, 0xE3808F):  # ” ’ 」 』
            end -= 3
            continue
        return code in (0xE280A6, 0xE38082)  # … 。
    return False


@njit(nogil=True, cache=True)
def _count_runs(  # type: ignore[no-untyped-def]
    data, flags, longest, slots, hashes, cells, offsets, arena, state
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
        held = (flags[line] & HELD) != 0
        words = 0
        while data[at] != _NEWLINE:
            while data[at] == _SPACE:
                digest = (digest ^ np.uint64(_SPACE)) * _PRIME
                at += 1
            first = at
            while data[at] != _NEWLINE and data[at] != _SPACE:
                digest = (digest ^ np.uint64(data[at])) * _PRIME
                at += 1
            words += 1
            if (words == longest and not held) or _ends(data, first, at):
                break
        row = _row_of(data, begin, at, _mixed(digest), slots, hashes, offsets, arena, state)
        if row < 0:
            state[_AT], state[_LINE], state[_DOCUMENT] = begin, line, document
            return 0 if row == -1 else -row
        _noted(cells, row, held, document)
    state[_DOCUMENT] = document
    return -1


@njit(nogil=True, cache=True)
def _word_end(data, at, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    while at < end and data[at] == _SPACE:
        at += 1
    while at < end and data[at] != _SPACE:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _number(data, begin, end, slots, offsets, arena):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The row of a word in a table that stays as it is; -1 where it is not there."""
    digest = _FNV
    for at in range(begin, end):
        digest = (digest ^ np.uint64(data[at])) * _PRIME
    slot = _slot_of(data, begin, end, _mixed(digest), slots, offsets, arena)
    return np.int64(slots[slot] & np.uint64(0xFFFFFFFF)) - 1


@njit(nogil=True, cache=True)
def _words_in(data, offsets, starts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for run in range(len(offsets) - 1):
        at = offsets[run]
        while at < offsets[run + 1]:
            at = _word_end(data, at, offsets[run + 1])
            starts[run + 1] += 1


@njit(nogil=True, cache=True)
def _found(  # type: ignore[no-untyped-def]
    data, offsets, slots, known_offsets, arena, starts, numbers, before
):  # pragma: no cover - compiled
    for run in range(len(offsets) - 1):
        at = offsets[run]
        code_points = 0
        for i in range(starts[run], starts[run + 1]):
            end = _word_end(data, at, offsets[run + 1])
            numbers[i] = _number(data, at, end, slots, known_offsets, arena)
            before[i] = code_points
            for byte in range(at, end):
                code_points += (data[byte] & 0xC0) != 0x80
            at = end


@njit(nogil=True, cache=True)
def _stretches(  # type: ignore[no-untyped-def]
    data, starts, n, documents, k_slots, k_offsets, k_arena, slots, hashes, cells, offsets, arena, state
):  # pragma: no cover - compiled
    at = state[_LINE]  # where a run goes on that found no room
    for run in range(state[_AT], len(n)):
        at, end = max(at, starts[run]), starts[run + 1]
        while at < end:
            begin = at
            digest = _FNV
            while at < end:
                word_end = _word_end(data, at, end)
                if _number(data, at, word_end, k_slots, k_offsets, k_arena) < 0:
                    break
                for byte in range(at, word_end):
                    digest = (digest ^ np.uint64(data[byte])) * _PRIME
                at = word_end
            if at > begin:
                row = _row_of(data, begin, at, _mixed(digest), slots, hashes, offsets, arena, state)
                if row < 0:
                    state[_AT], state[_LINE] = run, begin
                    return 0 if row == -1 else -row
                cells[row, _N] += np.int64(n[run])
                cells[row, _DOCUMENTS] += np.int64(documents[run])
            if at < end:
                at = _word_end(data, at, end)
    return -1


@njit(nogil=True, cache=True)
def unbroken(data, offsets):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True for runs without an ASCII sentence end before a space: nothing that superwords' pattern cuts."""
    found = np.ones(len(offsets) - 1, np.bool_)
    for run in range(len(found)):
        for at in range(offsets[run] + 1, offsets[run + 1]):
            if data[at] == _SPACE and data[at - 1] in (0x2E, 0x3F, 0x21):
                found[run] = False
                break
    return found
