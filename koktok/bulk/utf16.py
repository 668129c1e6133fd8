"""Tokens as UTF-16: what most of them spell is copied in two words, and Python reads the whole as it lies.

This file adds: records of one size. A token of at most seven units, with their number in the eighth, is found without a
look-up of its place and written without a loop; what it writes too much, the next one writes over. Longer tokens, first
tokens and byte pieces take a slower road through the same pass. Korean text is one unit a character, as in a Python
string, so that a string is made by a copy and no decoding.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CODEC", "Records"]

_INLINE = 7
_LONG, _RAW = 8, 9  # in the place of a number: the units lie elsewhere; the token is bytes that make no character alone
_SLACK = 8
CODEC = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
"""Units as the machine keeps numbers of 16 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    r"""What the tokens of a vocabulary spell.

    Parameters
    ----------
    records : ndarray of uint16, shape (8 · tokens,)
        Units and how many, or `_LONG` or `_RAW`.
    sizes : ndarray of int64, shape (tokens,)
        Most units that a token can become.
    longs, long_ends : ndarray of uint16 and of int64, shape (tokens + 1,)
        Units of all tokens, one after the other.
    firsts, first_ends : ndarray
        The same for tokens that begin a document.
    texts, ends : ndarray of uint8 and of int64, shape (tokens + 1,)
        Bytes of all tokens.
    marked : bool
        Whether a token that begins a document spells something else there.
    torn : bool
        Whether bytes that make no character are left to Python; else each becomes one U+FFFD.

    Examples
    --------
    >>> records = Records.of([b"\xea", b"\xb0", b"\x80", "나".encode()], None, {0, 1, 2}, torn=False)
    >>> records.texts_of(np.array([3, 0, 1, 2, 3, 0]), np.array([0, 5, 6]), limit=4)
    ['나가나', '\ufffd']
    """

    records: NDArray[np.uint16]
    sizes: NDArray[np.int64]
    longs: NDArray[np.uint16]
    long_ends: NDArray[np.int64]
    firsts: NDArray[np.uint16]
    first_ends: NDArray[np.int64]
    texts: NDArray[np.uint8]
    ends: NDArray[np.int64]
    marked: bool
    torn: bool

    @classmethod
    def of(cls, spelled: list[bytes], firsts: list[bytes] | None, raw: set[int], *, torn: bool) -> Records:
        """Records of tokens by id; those of `raw` are bytes, the others UTF-8 (`firsts`: where they begin a document)."""
        units = [b"" if i in raw else text.decode().encode(CODEC) for i, text in enumerate(spelled)]
        begin = [text.decode().encode(CODEC) for text in firsts] if firsts else units
        records = np.zeros((len(spelled), _INLINE + 1), np.uint16)
        ends = np.cumsum([0, *map(len, spelled)])
        long_ends, first_ends = (np.cumsum([0, *map(len, some)]) // 2 for some in (units, begin))
        counts = np.diff(long_ends)
        longs, first_units = (np.frombuffer(b"".join(some), np.uint16) for some in (units, begin))
        records[:, _INLINE] = np.minimum(counts, _LONG)
        for k in range(_INLINE):
            some = np.flatnonzero((counts > k) & (counts <= _INLINE))
            records[some, k] = longs[long_ends[some] + k]
        # What needs to be counted is no plain copy either: halves of surrogate pairs, and the null between documents.
        odd = np.flatnonzero(((longs >= 0xD800) & (longs < 0xE000)) | (longs == 0))
        records[np.searchsorted(long_ends, odd, side="right") - 1, _INLINE] = _LONG
        here = np.array(sorted(raw), np.int64)
        records[here, _INLINE] = _RAW
        sizes = np.maximum(counts, np.diff(first_ends))
        sizes[here] = np.diff(ends)[here]
        texts = np.frombuffer(b"".join(spelled), np.uint8)
        return cls(
            records.reshape(-1), sizes, longs, long_ends, first_units, first_ends, texts, ends, firsts is not None, torn
        )

    def texts_of(self, ids: NDArray[Any], offsets: NDArray[np.int64], limit: int) -> list[str] | None:
        """Texts of documents without the tokens from `limit` on, or None where Python has to read bytes itself."""
        n = len(offsets) - 1
        if n == 0:
            return []
        state = np.zeros(2, np.int64)
        size = int(_measure(ids, offsets, limit, self.sizes, self.records, state))
        out = np.empty(size + n + _SLACK, np.uint16)
        words = np.ndarray((len(out) - 3,), np.int64, out, strides=(2,))
        used = _write(
            ids, offsets, limit, self.records, self.records.view(np.int64), self.longs, self.long_ends, self.firsts,
            self.first_ends, self.texts, self.ends, self.marked, self.torn, np.empty(state[0], np.uint8), out, words,
            state,
        )  # fmt: skip
        if used < 0:
            return None
        # Without surrogates the units are the string.
        text = str(out[:used].data, CODEC) if state[1] else _string_of(2, out.ctypes.data, used)
        found: list[str] = text.split("\0")
        return found


_string_of: Any = ctypes.pythonapi["PyUnicode_FromKindAndData"]  # its own function object: others may set types too
_string_of.restype = ctypes.py_object
_string_of.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t]


@njit(nogil=True, cache=True)
def _measure(  # type: ignore[no-untyped-def]
    ids, offsets, limit, sizes, records, state
):  # pragma: no cover - compiled
    """Most units that the tokens become; in `state`, bytes of those that are bytes."""
    total, raw = np.int64(0), np.int64(0)
    for at in range(offsets[0], offsets[-1]):
        i = np.uint64(ids[at])
        if i < np.uint64(limit):
            total += sizes[i]
            if records[i * np.uint64(8) + np.uint64(7)] == _RAW:
                raw += sizes[i]
    state[0] = raw
    return total


@njit(nogil=True, cache=True)
def _settle(run, size, torn, out, used, state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Units of a run of bytes; returns where the next unit goes, or -1 where they are left to Python."""
    begin, at, pairs = used, np.int64(0), np.int64(0)
    while at < size:
        first = np.int64(run[at])
        low, high = 0x80, 0xBF
        if first < 0x80:
            more, char = 0, first
        elif 0xC2 <= first <= 0xDF:
            more, char = 1, first & 0x1F
        elif 0xE0 <= first <= 0xEF:
            more, char = 2, first & 0x0F
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more, char = 3, first & 0x07
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            more, char = -1, first
        sound = more >= 0 and at + more < size
        if sound:
            for k in range(1, more + 1):
                byte = np.int64(run[at + k])
                if not low <= byte <= high:
                    sound = False
                    break
                low, high = 0x80, 0xBF
                char = (char << 6) | (byte & 0x3F)
        if not sound:
            if torn:
                return np.int64(-1)
            for k in range(size):
                out[begin + k] = 0xFFFD
            return begin + size
        if char == 0:  # stands for the end of a document here
            return np.int64(-1)
        if char >= 0x10000:
            out[used] = 0xD7C0 + (char >> 10)
            out[used + 1] = 0xDC00 + (char & 0x3FF)
            used += 2
            pairs += 1
        else:
            out[used] = char
            used += 1
        at += more + 1
    state[1] += pairs
    return used


@njit(nogil=True, cache=True)
def _copied(units, begin, end, out, used, state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The units of a token written out; -1 where one is null, which stands for the end of a document."""
    for k in range(begin, end):
        unit = units[k]
        if unit == 0:
            return np.int64(-1)
        state[1] += (unit & 0xF800) == 0xD800
        out[used] = unit
        used += 1
    return used


@njit(nogil=True, cache=True)
def _write(  # type: ignore[no-untyped-def]
    ids, offsets, limit, records, record_words, longs, long_ends, firsts, first_ends, texts, ends, marked, torn, run,
    out, words, state,
):  # fmt: skip  # pragma: no cover - compiled
    """Units of all documents, a null between them; in `state`, how often there are surrogates. -1: see `_settle`."""
    used, running = np.int64(0), np.int64(0)
    bound, eight = np.uint64(limit), np.uint64(8)
    for document in range(len(offsets) - 1):
        if document > 0:
            out[used] = 0
            used += 1
        first = marked
        plain = not first
        for at in range(offsets[document], offsets[document + 1]):
            i = np.uint64(ids[at])
            if i >= bound:
                continue
            size = np.int64(records[i * eight + np.uint64(7)])
            if plain and size <= _INLINE:
                words[np.uint64(used)] = record_words[i * np.uint64(2)]
                words[np.uint64(used) + np.uint64(4)] = record_words[i * np.uint64(2) + np.uint64(1)]
                used += size
                continue
            if size == _RAW:
                for k in range(ends[i], ends[i + np.uint64(1)]):
                    run[running] = texts[k]
                    running += 1
                first = plain = False
                continue
            if running > 0:
                used = _settle(run, running, torn, out, used, state)
                running = np.int64(0)
                if used < 0:
                    return used
            if first:
                used = _copied(firsts, first_ends[i], first_ends[i + np.uint64(1)], out, used, state)
            else:
                used = _copied(longs, long_ends[i], long_ends[i + np.uint64(1)], out, used, state)
            if used < 0:
                return used
            first = False
            plain = True
        if running > 0:
            used = _settle(run, running, torn, out, used, state)
            running = np.int64(0)
            if used < 0:
                return used
    return used
