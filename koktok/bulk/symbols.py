"""Characters of a pretoken to the symbols of a trie, and characters that are no symbol to their byte pieces.

This file adds: jamo on the way. Where pieces are spelled in conjoining jamo, syllables are taken apart here, by the
arithmetic of Unicode (section 3.12), so that no other file knows of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from koktok.bulk.units import code_point

__all__ = ["put_bytes", "read_symbols"]


@njit(nogil=True, cache=True)
def _number(symbols, char):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    known = np.int64(symbols[char])
    return known if known > 0 else -1 - char


@njit(nogil=True, cache=True)
def _as_bytes(symbols, char, out, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The symbols of a character's UTF-8; returns where the next one goes."""
    if char < 0x80:
        out[n] = symbols[char]
        return n + 1
    if char < 0x800:
        out[n] = symbols[0xC0 | (char >> 6)]
    else:
        if char < 0x10000:
            out[n] = symbols[0xE0 | (char >> 12)]
        else:
            out[n] = symbols[0xF0 | (char >> 18)]
            n += 1
            out[n] = symbols[0x80 | ((char >> 12) & 0x3F)]
        n += 1
        out[n] = symbols[0x80 | ((char >> 6) & 0x3F)]
    out[n + 1] = symbols[0x80 | (char & 0x3F)]
    return n + 2


@njit(nogil=True, cache=True)
def read_symbols(  # type: ignore[no-untyped-def]
    data, begin, end, symbols, bytewise, letters, out
):  # pragma: no cover - compiled
    """Fill `out` with the symbols of a pretoken, -1 - c for a code point c that is none; returns how many."""
    n, at = 0, begin
    while at < end:
        char, size = code_point(data, at)
        if letters and 0xAC00 <= char < 0xD7A4:
            i = char - 0xAC00
            final = i % 28
            three = (0x1100 + i // 588, 0x1161 + i % 588 // 28, 0x11A7 + final)
            for k in range(3 if final else 2):
                if bytewise:
                    n = _as_bytes(symbols, three[k], out, n)
                else:
                    out[n] = _number(symbols, three[k])
                    n += 1
        elif bytewise:
            n = _as_bytes(symbols, char, out, n)
        else:
            out[n] = _number(symbols, char)
            n += 1
        at += size
    return n


@njit(nogil=True, cache=True)
def put_bytes(out, used, symbol):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The byte pieces of a character that is no symbol; returns where the next id goes."""
    char = -1 - np.int64(symbol)
    if char < 0x80:
        out[used] = char
        return used + 1
    if char < 0x800:
        out[used] = 0xC0 | (char >> 6)
        out[used + 1] = 0x80 | (char & 0x3F)
        return used + 2
    if char < 0x10000:
        out[used] = 0xE0 | (char >> 12)
        out[used + 1] = 0x80 | ((char >> 6) & 0x3F)
        out[used + 2] = 0x80 | (char & 0x3F)
        return used + 3
    out[used] = 0xF0 | (char >> 18)
    out[used + 1] = 0x80 | ((char >> 12) & 0x3F)
    out[used + 2] = 0x80 | ((char >> 6) & 0x3F)
    out[used + 3] = 0x80 | (char & 0x3F)
    return used + 4
