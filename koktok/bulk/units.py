"""Text, as UTF-16, to units: which characters are plain, which cuts are safe, and the one pass that cuts there.

The shortcut that makes bulk encoding exact. A character is *plain* when the normalizer leaves it alone
whatever stands beside it. A cut between two plain characters is *safe*: normalization reaches across neither of them,
and the pattern looks no further (the bigram rule), so what lies between two safe cuts, a *unit*, has the same ids
alone as in its text. A unit of plain characters is one pretoken and normal already; any other goes through the
normalizer and the pattern themselves, once for each distinct unit. Both are asked beforehand, for two small tables.

The pass over every character is compiled, holds no lock, and stops when its arrays are full, so that a file of any size
goes through memory of one size. UTF-16, because that is how Python stores a string with Hangul (16 bits a character): it
becomes such an array by a copy, and a syllable is read by one load.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.model.vocab import Vocab
from koktok.text.normalize import Normalizer
from koktok.text.patterns import PublishedPattern
from koktok.text.pretokenize import CLASSES, REST, Pattern

NOT_PLAIN = 15
"""The mark of a character that normalization may touch."""

REPEATED = 16
"""A bit: a run of this character may be shortened, so that two in a row are not plain."""

_NAMES = (*CLASSES, REST)
_DIGIT = _NAMES.index("digit")

# Inert under NFC of every Unicode version (no mark, nothing that a mark composes with backwards), or unassigned in blocks
# of symbols. A test holds every one of them against the normalizer. What is missing here is only slower.
_INERT = (
    (0x00, 0x7F),
    (0xA0, 0x17F),
    (0x391, 0x3CE),
    (0x410, 0x44F),
    (0x200C, 0x200D),
    (0x2010, 0x205E),
    (0x20A0, 0x20BF),
    (0x2100, 0x2BFF),
    (0x3000, 0x3029),
    (0x3030, 0x303F),
    (0x3041, 0x3096),
    (0x309B, 0x30FF),
    (0x3131, 0x318E),
    (0x3200, 0x4DB5),
    (0x4E00, 0x9FD5),
    (0xAC00, 0xD7A3),
    (0xFE0F, 0xFE0F),
    (0xFF01, 0xFF9D),
    (0xFFA0, 0xFFEE),
    (0xFFFD, 0xFFFD),
    (0x1F000, 0x1FAFF),
)
# The normalizer is asked of these as a whole first; of every one of them it would take time.
_LARGE = ((0x3400, 0x4DB5), (0x4E00, 0x9FD5), (0xAC00, 0xD7A3))


@lru_cache(maxsize=8)  # a megabyte each, and a twentieth of a second
def marks_of(normalizer: Normalizer) -> NDArray[np.uint8]:
    """For every code point its class (its place among the classes of the pattern), or `NOT_PLAIN`."""
    marks = np.full(0x110000, NOT_PLAIN, np.uint8)
    inert = "".join(chr(c) for first, last in _INERT for c in range(first, last + 1))
    for i, name in enumerate(_NAMES):
        among = f"[^{''.join(CLASSES.values())}]" if name == REST else f"[{CLASSES[name]}]"
        members = "".join(re.findall(f"{among}+", inert))
        marks[np.frombuffer(members.encode("utf-32-le"), np.uint32)] = i
    untouched: set[int] = set()
    for first, last in _LARGE:
        block = "".join(map(chr, range(first, last + 1)))
        if normalizer(block) == block:
            untouched.update(range(first, last + 1))
    n = normalizer.folds.repeats
    for char in inert:
        if ord(char) in untouched:
            continue
        if normalizer(char) != char:
            marks[ord(char)] = NOT_PLAIN
        elif n and normalizer(char * (n + 1)) != char * (n + 1):
            marks[ord(char)] |= REPEATED
    marks.flags.writeable = False
    return marks


@lru_cache(maxsize=16)
def cuts_of(pattern: Pattern) -> NDArray[np.bool_]:
    """Whether a cut falls between two marks: entry 16 · before + after; never beside `NOT_PLAIN`."""
    one_of = {
        name: next(filter(re.compile(f"[{ranges}]").match, map(chr, range(0x110000))))
        for name, ranges in CLASSES.items()
    }
    one_of[REST] = "("
    cuts = np.zeros(256, np.bool_)
    if isinstance(pattern, PublishedPattern):
        space = _NAMES.index("space")
        cuts[[16 * i + space for i, name in enumerate(_NAMES) if name not in ("newline", "space", "blank")]] = True
        return cuts
    for i, before in enumerate(_NAMES):
        for j, after in enumerate(_NAMES):
            cuts[16 * i + j] = bool(pattern.cuts(one_of[before] + one_of[after]))
    cuts.flags.writeable = False
    return cuts


def joints_of(vocab: Vocab) -> NDArray[np.bool_]:
    """Whether some piece holds two neighbours with these marks, as `cuts_of`: where none does, text may be cut between them.

    That is what the pieces say; the pattern must cut the parts as it cuts the whole, but for the cut itself.
    """
    joints = np.zeros((16, 16), np.bool_)
    classes = [re.compile(f"[{ranges}]") for ranges in CLASSES.values()]

    @cache
    def of(char: str) -> int | slice:
        if char == "\ufffd":  # perhaps a part of a character, which may be of any class
            return slice(None)
        return next((i for i, ranges in enumerate(classes) if ranges.match(char)), _NAMES.index(REST))

    for raw in vocab.token_bytes[: vocab.first_special]:
        for before, after in pairwise(raw.decode("utf-8", "replace")):
            joints[of(before), of(after)] = True
    return joints.ravel()


@njit(nogil=True, cache=True)
def code_point(data, at):
    """The character at a place of valid UTF-16, and how many units it takes."""
    # An unsigned place is known not to count from the end, which saves a test for each unit.
    place = np.uint64(at)
    first = np.int64(data[place])
    if first & 0xFC00 != 0xD800:
        return first, 1
    return 0x10000 + ((first & 0x3FF) << 10) + (np.int64(data[place + np.uint64(1)]) & 0x3FF), 2


def pretokens_of(
    cut: Callable[..., int], data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64], *rules: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pretokens of units: where each begins and ends, and how many are before each unit and after the last."""
    out = np.empty((2, int((ends - begins).sum())), np.int64)
    upto = np.zeros(len(begins) + 1, np.int64)
    n = cut(data, begins, ends, *rules, out[0], out[1], upto)
    return out[0, :n], out[1, :n], upto


@njit(nogil=True, cache=True)
def cut_threes(data, begins, ends, marks, out_begins, out_ends, upto):
    """Units with their digits in groups of three."""
    n = 0
    for unit in range(len(begins)):
        at, end, digits = begins[unit], ends[unit], 0
        out_begins[n] = at
        while at < end:
            char, size = code_point(data, at)
            if (marks[np.uint64(char)] & 15) == _DIGIT:
                if digits == 3:
                    out_ends[n] = at
                    n += 1
                    out_begins[n] = at
                    digits = 0
                digits += 1
            else:
                digits = 0
            at += size
        out_ends[n] = end
        n += 1
        upto[unit + 1] = n
    return n


@njit(nogil=True, cache=True)
def cut_units(data, begins, ends, state, marks, cuts, unit_begins, unit_ends, plain, closes):
    """Units of documents, from the place in `state` on, until the documents or the room end."""
    document, at = state[0], state[1]
    room, n = len(unit_begins), 0
    while document < len(begins):
        end = ends[document]
        if at < 0:
            at = begins[document]
        while at < end:
            if n == room:
                state[0], state[1] = document, at
                return n
            begin = at
            char, size = code_point(data, at)
            mark = marks[char]
            clean = (mark & 15) != NOT_PLAIN
            at += size
            while at < end:
                after, size = code_point(data, at)
                next_mark = marks[np.uint64(after)]
                if cuts[np.uint64(((mark & 15) << 4) | (next_mark & 15))]:
                    break
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
