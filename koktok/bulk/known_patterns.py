r"""Units cut as a published pattern cuts them (see `koktok.text.patterns`), in compiled code.

One scanner for the family of GPT-2's pattern, whose members differ in seven ways (`RULES`), and one for SuperBPE's, which cuts numbers
alone. The engine of regular expressions classifies
letters, numbers and white space. A unit with an unusual character is left to the engine (`NOT_PLAIN`): marks are letters in
some of the patterns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.bulk.units import NOT_PLAIN, code_point, pretokens_of

_AS_TYPED, _FIRST, _BEHIND = range(3)

_NONE, _ONE, _ALL = range(3)

RULES: Final[dict[str, tuple[bool, int, int, bool, bool, int, bool]]] = {
    "gpt2": (False, 0, _NONE, False, False, _AS_TYPED, False),
    "llama3": (True, 3, _ALL, False, False, _FIRST, False),
    "cl100k": (True, 3, _ALL, False, False, _FIRST, False),
    "qwen2": (True, 1, _ALL, False, False, _FIRST, False),
    "o200k": (True, 3, _ALL, True, True, _BEHIND, False),
    "exaone-moe": (True, 1, _ONE, False, False, _FIRST, True),
}
"""By name: whether letters take any character before them, and not only a space; digits a pretoken has (0: all, and a space
before them); how many line ends follow punctuation, and if any, whether they close white space; whether slashes follow them; whether a
capital behind small letters begins anew; whether contractions ('s, 'll) are pretokens in small letters alone, or in capitals too, or
go with the letters before them; whether letters go on behind a single space."""

_REST, _LETTER, _UPPER, _LOWER, _NUMBER, _SPACE, _NEWLINE, _BLANK, _SLASH, _APOSTROPHE, _DIGIT = range(11)
_NUMBERS = (1 << _NUMBER) | (1 << _DIGIT)
_ASKED = {
    _LETTER: r"[\p{Lm}\p{Lo}]",
    _UPPER: r"[\p{Lu}\p{Lt}]",
    _LOWER: r"\p{Ll}",
    _NUMBER: r"[\p{Nl}\p{No}]",
    _DIGIT: r"\p{Nd}",
    _BLANK: r"\s",
    NOT_PLAIN: r"\p{M}",
}


@lru_cache(maxsize=1)
def _asked() -> NDArray[np.uint8]:
    """The class of every code point of the first two planes."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Split

    classes = np.full(0x110000, _REST, np.uint8)
    classes[0x20000:] = NOT_PLAIN
    codes = np.array([*range(0xD800), *range(0xE000, 0x20000)])
    text = "".join(map(chr, codes.tolist()))
    # The engine takes its time to go over so long a text: once for the runs, and then over the first character of each.
    runs = Split(Regex("|".join(f"{pattern}+" for pattern in _ASKED.values())), "isolated").pre_tokenize_str(text)
    begins = [begin for _, (begin, _) in runs]
    kinds = np.full(len(runs), _REST, np.uint8)
    heads = "".join(text[begin] for begin in begins)
    for name, pattern in _ASKED.items():
        for _, (begin, end) in Split(Regex(f"{pattern}+"), "removed", invert=True).pre_tokenize_str(heads):
            kinds[begin:end] = name
    classes[codes] = np.repeat(kinds, np.diff([*begins, len(text)]))
    classes[[0x20, 0x0A, 0x0D, 0x2F, 0x27]] = _SPACE, _NEWLINE, _NEWLINE, _SLASH, _APOSTROPHE
    classes.flags.writeable = False
    return classes


def classes_of(marks: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The classes of characters in these patterns, and the marks, `NOT_PLAIN` for what is left to the engine."""
    classes = _asked()
    return classes, np.where(classes == NOT_PLAIN, NOT_PLAIN, marks).astype(np.uint8)


def cut_published(
    data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64], classes: NDArray[np.uint8], name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pretokens of units, as `pretokens_of`."""
    if name == "superbpe":
        return pretokens_of(_cut_numbers, data, begins, ends, classes)
    return pretokens_of(_cut, data, begins, ends, classes, RULES[name])


@njit(nogil=True, cache=True)
def _class_at(data, at, end, classes):
    """The class of a character and where the next one is; a class of its own at the end."""
    if at >= end:
        return np.int64(NOT_PLAIN), at
    char, size = code_point(data, at)
    return np.int64(classes[np.uint64(char)]), at + size


@njit(nogil=True, cache=True)
def _run(data, at, end, classes, members):
    """Where a run of characters ends whose classes are bits of `members`."""
    while at < end:
        kind, after = _class_at(data, at, end, classes)
        if not (members >> kind) & 1:
            break
        at = after
    return at


@njit(nogil=True, cache=True)
def _letters(data, at, end, classes, cased):
    """Where the letters end that one pretoken takes: with `cased`, U*L+ or else U+L*, where letters without case are both."""
    if not cased:
        return _run(data, at, end, classes, (1 << _LETTER) | (1 << _UPPER) | (1 << _LOWER))
    upper = _run(data, at, end, classes, (1 << _LETTER) | (1 << _UPPER))
    lower = _run(data, upper, end, classes, (1 << _LETTER) | (1 << _LOWER))
    if lower > upper:
        return lower
    both = np.int64(-1)  # behind the last letter that may be a small one
    while at < upper:
        kind, at = _class_at(data, at, end, classes)
        if kind == _LETTER:
            both = at
    return both if both >= 0 else upper


@njit(nogil=True, cache=True)
def _contracted(data, at, end, folded):
    """Where the contraction ends that begins here: 's, 't, 'm, 'd, 're, 've, 'll; this place where none does."""
    if at >= end or data[at] != 0x27:
        return at
    first = np.int64(data[at + 1]) if at + 1 < end else np.int64(0)
    second = np.int64(data[at + 2]) if at + 2 < end else np.int64(0)
    if folded:
        first, second = first | (0x20 * (0x41 <= first <= 0x5A)), second | (0x20 * (0x41 <= second <= 0x5A))
        if first == 0x17F:  # ſ, which is an s
            first = np.int64(0x73)
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:
        return at + 2
    if (second == 0x65 and (first == 0x72 or first == 0x76)) or first == second == 0x6C:
        return at + 3
    return at


@njit(nogil=True, cache=True)
def _next(data, at, end, classes, rules):
    """Where the pretoken ends that begins at a place."""
    any_before, digits, line_ends, slashes, cased, contractions, across = rules
    letters = (1 << _LETTER) | (1 << _UPPER) | (1 << _LOWER)
    rest = (1 << _REST) | (1 << _SLASH) | (1 << _APOSTROPHE)
    white = (1 << _SPACE) | (1 << _NEWLINE) | (1 << _BLANK)
    kind, after = _class_at(data, at, end, classes)
    if kind == _APOSTROPHE and contractions != _BEHIND:
        stop = _contracted(data, at, end, contractions == _FIRST)
        if stop > at:
            return stop
    follower, _ = _class_at(data, after, end, classes)
    begin = np.int64(-1)
    if (letters >> kind) & 1:
        begin = at
    elif (letters >> follower) & 1 and (
        kind == _SPACE or (any_before and kind != _NEWLINE and not (_NUMBERS >> kind) & 1)
    ):
        begin = after
    if begin >= 0:
        stop = _letters(data, begin, end, classes, cased)
        while across and stop < end and data[stop] == 0x20:
            further = _letters(data, stop + 1, end, classes, cased)
            if further == stop + 1:
                break
            stop = further
        return _contracted(data, stop, end, True) if contractions == _BEHIND else stop
    if (_NUMBERS >> kind) & 1 or (kind == _SPACE and (_NUMBERS >> follower) & 1 and digits == 0):
        if digits == 0:
            return _run(data, after, end, classes, _NUMBERS)
        for _ in range(digits):
            kind, after = _class_at(data, at, end, classes)
            if not (_NUMBERS >> kind) & 1:
                break
            at = after
        return at
    if (rest >> kind) & 1 or (kind == _SPACE and (rest >> follower) & 1):
        at = _run(data, after, end, classes, rest)
        if line_ends == _ONE:
            return at + 1 if at < end and (data[at] == 0x0A or data[at] == 0x0D) else at
        if line_ends:
            at = _run(data, at, end, classes, (1 << _NEWLINE) | (slashes << _SLASH))
        return at
    # White space: up to its last line end; else all but the last one, which goes with what follows, if anything does.
    first, stop, closed, last = at, at, np.int64(-1), at
    while stop < end and (white >> kind) & 1:
        last = stop
        stop = after
        if kind == _NEWLINE:
            closed = stop
        kind, after = _class_at(data, stop, end, classes)
    if line_ends and closed >= 0:
        return closed
    return stop if stop == end or last == first else last


@njit(nogil=True, cache=True)
def _cut(data, begins, ends, classes, rules, out_begins, out_ends, upto):
    n = 0
    for unit in range(len(begins)):
        at, end = begins[unit], ends[unit]
        while at < end:
            out_begins[n] = at
            at = _next(data, at, end, classes, rules)
            out_ends[n] = at
            n += 1
        upto[unit + 1] = n
    return n


@njit(nogil=True, cache=True)
def _cut_numbers(data, begins, ends, classes, out_begins, out_ends, upto):
    """SuperBPE's: runs of numbers by themselves, whose digits are cut where a multiple of three of them is left."""
    n = 0
    for unit in range(len(begins)):
        at, end = begins[unit], ends[unit]
        while at < end:
            out_begins[n] = at
            kind, after = _class_at(data, at, end, classes)
            if (_NUMBERS >> kind) & 1:
                left = np.int64(0)  # digits from this place on
                first = True
                while (_NUMBERS >> kind) & 1:
                    if kind != _DIGIT:
                        left = np.int64(0)
                    elif left > 0:
                        left -= 1
                    if kind == _DIGIT and left == 0:
                        left = _digits(data, at, end, classes)
                    if not first and kind == _DIGIT and left % 3 == 0:
                        break
                    first = False
                    at = after
                    kind, after = _class_at(data, at, end, classes)
            else:
                at = _run(data, at, end, classes, ((1 << NOT_PLAIN) - 1) & ~_NUMBERS)
            out_ends[n] = at
            n += 1
        upto[unit + 1] = n
    return n


@njit(nogil=True, cache=True)
def _digits(data, at, end, classes):
    """How many digits follow one another from a place on."""
    n = 0
    kind, at = _class_at(data, at, end, classes)
    while kind == _DIGIT:
        n += 1
        kind, at = _class_at(data, at, end, classes)
    return n
