"""Text as numbers of words, and new words out of old ones: the compiled half of eval/heaps.py.

A text is an array of word numbers and the places where its lines begin; words are UTF-8 behind one another, found again by
64 bits of hash (two of 12 million words share one with a chance of 1 in 250,000; then they would be one word here).
Drawing a line copies its numbers; a new form is written once, however large the text becomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ENDINGS", "Text"]

ENDINGS = 500
"""Endings are the most frequent suffixes by distinct words."""

_FNV, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SPACE, _NEWLINE = 32, 10
_GA, _HIH = 0xAC00, 0xD7A3
_KIYEOK, _I = 0x3131, 0x3163
_FINALS = np.array([0, 1, 4, 8, 16, 17, 21])
"""What a syllable ends in where it is changed: nothing, ㄱ, ㄴ, ㄹ, ㅁ, ㅂ, ㅇ, so that the fresh syllable is a usual one."""
_WRITTEN = 100_000  # lines that are spelled at once


class Text:
    r"""Lines that grow.

    Parameters
    ----------
    data : bytes
        UTF-8, every line ended by ``\n``.
    seed : int
        Everything that is drawn follows from it.

    Examples
    --------
    >>> import io
    >>> text = Text("나는 집에\n집에  간다\n".encode(), 0)
    >>> text.lines, text.running, text.distinct, text.distinct_up_to(1)
    (2, 4, 4, 2)
    >>> text.write(file := io.BytesIO()); file.getvalue().decode()
    '나는 집에\n집에  간다\n'
    """

    def __init__(self, data: bytes, seed: int) -> None:
        self.lines = data.count(b"\n")
        room = data.count(b" ") + 2 * self.lines + 1
        self._ids = np.empty(room, np.int32)
        self._starts = np.zeros(self.lines + 1, np.int64)
        self._arena = np.empty(len(data), np.uint8)
        self._begins = np.zeros(room + 1, np.int64)
        self._hashes = np.empty(room, np.uint64)
        self._slots = np.zeros(_power(2 * room), np.int32)
        self._seed = np.array([seed], np.uint64)
        raw = np.frombuffer(data, np.uint8)
        self.running, self.distinct = _read(
            raw, self._ids, self._starts, self._arena, self._begins, self._hashes, self._slots
        )
        self._begins = self._begins[: self.distinct + 1].copy()
        self._hashes = self._hashes[: self.distinct].copy()
        self._arena = self._arena[: self._begins[-1]].copy()
        self._endings = _endings(self._arena, self._begins)

    @property
    def nbytes(self) -> int:
        """Bytes of the text as it will be written."""
        return int(_spelled(self._ids[: self.running], self._begins)) + self.lines

    def running_up_to(self, line: int) -> int:
        """Words in the first lines."""
        return int(self._starts[line])

    def distinct_up_to(self, line: int) -> int:
        """Distinct words in the first lines, as long as nothing was drawn: numbers are in the order of first coming."""
        return int(self._ids[: self._starts[line]].max(initial=-1)) + 1

    def times(self) -> NDArray[np.int64]:
        """How often each word stands there."""
        found: NDArray[np.int64] = _times(self._ids[: self.running], self.distinct)
        return found

    def draw(self, n: int, chances: NDArray[np.float32], once: NDArray[np.int32]) -> None:
        """Append `n` lines drawn with replacement from all lines, some of their words replaced by new forms.

        Parameters
        ----------
        n : int
        chances : ndarray of float32, shape (distinct,)
            That a word in a drawn line becomes a new form.
        once : ndarray of int32
            Words whose endings and beginnings new forms take.
        """
        drawn = _numbers(n, self.lines, self._seed)
        running = self.running + int((self._starts[drawn + 1] - self._starts[drawn]).sum())
        self._ids = _grown(self._ids, running)
        self._starts = _grown(self._starts, self.lines + n + 1)
        ids, begins = self._ids, self._begins
        expected = float(self.times() @ chances) * n / self.lines
        places = np.empty(int(1.1 * expected) + 1000, np.int64)
        found = _draw(ids, self._starts, self.lines, drawn, chances, places, self._seed)
        places = places[:found]
        words = ids[places]
        fresh = int((begins[words + 1] - begins[words]).sum()) + 24 * found  # an ending and two more syllables at most
        self._begins = _grown(begins, self.distinct + found + 1)
        self._hashes = _grown(self._hashes, self.distinct + found)
        self._arena = _grown(self._arena, int(begins[self.distinct]) + fresh)
        if len(self._slots) < 2 * (self.distinct + found):
            self._slots = np.zeros(_power(2 * (self.distinct + found)), np.int32)
            _rehash(self._slots, self._hashes, self.distinct)
        vocabulary = (self._arena, self._begins, self._hashes, self._slots)
        self.distinct = _renew(ids, places, once, self._endings, *vocabulary, self.distinct, self._seed)
        self.running = running
        self.lines += n

    def write(self, file: BinaryIO) -> None:
        """All lines as UTF-8."""
        for first in range(0, self.lines, _WRITTEN):
            last = min(self.lines, first + _WRITTEN)
            ids = self._ids[self._starts[first] : self._starts[last]]
            out = np.empty(int(_spelled(ids, self._begins)) + last - first, np.uint8)
            _spell(self._ids, self._starts, first, last, self._arena, self._begins, out)
            file.write(out.data)


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _grown(array: NDArray[Any], room: int) -> NDArray[Any]:
    if len(array) >= room:
        return array
    larger = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger


# Compiled code from here. Chance is splitmix64 (Steele, Lea and Flood 2014), so that no library's version changes a text.


@njit(cache=True)
def _chance(seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0  # 2^53


@njit(cache=True)
def _one_of(n, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return np.int64(_chance(seed) * n)


@njit(cache=True)
def _numbers(n, below, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    found = np.empty(n, np.int64)
    for i in range(n):
        found[i] = _one_of(below, seed)
    return found


@njit(cache=True)
def _digest(data, begin, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    digest = _FNV
    for at in range(begin, end):
        digest = (digest ^ np.uint64(data[at])) * _PRIME
    digest ^= digest >> np.uint64(33)
    digest *= np.uint64(0xFF51AFD7ED558CCD)
    return digest ^ (digest >> np.uint64(33))


@njit(cache=True)
def _slot(digest, slots, hashes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where a word is, or would be."""
    mask = np.uint64(len(slots) - 1)
    at = digest & mask
    while slots[at] != 0 and hashes[slots[at] - 1] != digest:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True)
def _rehash(slots, hashes, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for word in range(n):
        slots[_slot(hashes[word], slots, hashes)] = word + 1


@njit(cache=True)
def _read(data, ids, starts, arena, begins, hashes, slots):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Words as `koktok.count` finds them: a run of spaces and the run of other characters behind it."""
    at = running = line = n = used = 0
    while at < len(data):
        if data[at] == _NEWLINE:
            line += 1
            starts[line] = running
            at += 1
            continue
        begin = at
        while at < len(data) and data[at] == _SPACE:
            at += 1
        while at < len(data) and data[at] != _NEWLINE and data[at] != _SPACE:
            at += 1
        digest = _digest(data, begin, at)
        slot = _slot(digest, slots, hashes)
        if slots[slot] == 0:
            arena[used : used + at - begin] = data[begin:at]
            used += at - begin
            hashes[n] = digest
            n += 1
            begins[n] = used
            slots[slot] = n
        ids[running] = slots[slot] - 1
        running += 1
    return running, n


@njit(cache=True)
def _times(ids, distinct):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    found = np.zeros(distinct, np.int64)
    for word in ids:
        found[word] += 1
    return found


@njit(cache=True)
def _spelled(ids, begins):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size = 0
    for word in ids:
        size += begins[word + 1] - begins[word]
    return size


@njit(cache=True)
def _spell(ids, starts, first, last, arena, begins, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    to = 0
    for line in range(first, last):
        for i in range(starts[line], starts[line + 1]):
            for at in range(begins[ids[i]], begins[ids[i] + 1]):
                out[to] = arena[at]
                to += 1
        out[to] = _NEWLINE
        to += 1


@njit(cache=True)
def _draw(ids, starts, lines, drawn, chances, places, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Copy lines, and note the places where new forms shall stand."""
    to = starts[lines]
    found = 0
    for i in range(len(drawn)):
        for at in range(starts[drawn[i]], starts[drawn[i] + 1]):
            word = ids[at]
            ids[to] = word
            if chances[word] > 0 and _chance(seed) < chances[word] and found < len(places):
                places[found] = to
                found += 1
            to += 1
        starts[lines + i + 1] = to
    return found


@njit(cache=True)
def _code(data, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The code point of three bytes; 0 where other than three begin here."""
    if data[at] & 0xF0 != 0xE0:
        return np.int64(0)
    return (np.int64(data[at] & 15) << 12) | (np.int64(data[at + 1] & 63) << 6) | np.int64(data[at + 2] & 63)


@njit(cache=True)
def _suffix(data, begin, end, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A number for the last n syllables of a longer body; -1 where it is not longer, or they are no syllables."""
    if end - begin <= 3 * n:
        return np.int64(-1)
    key = np.int64(0)
    for i in range(n):
        code = _code(data, end - 3 * (n - i))
        if code < _GA or code > _HIH:
            return np.int64(-1)
        key = (key << 14) | (code - _GA + 1)
    return key


@njit(cache=True)
def _hangul(data, begin, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True for two or more syllables and nothing else."""
    if end - begin < 6 or (end - begin) % 3:
        return False
    for at in range(begin, end, 3):
        code = _code(data, at)
        if code < _GA or code > _HIH:
            return False
    return True


@njit(cache=True)
def _body(arena, begins, word):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where the spaces of a word end."""
    at = begins[word]
    while at < begins[word + 1] and arena[at] == _SPACE:
        at += 1
    return at


@njit(cache=True)
def _suffixes(arena, begins):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    found = np.empty(3 * (len(begins) - 1), np.int64)
    n = 0
    for word in range(len(begins) - 1):
        body, end = _body(arena, begins, word), begins[word + 1]
        if _hangul(arena, body, end):
            for size in (1, 2, 3):
                key = _suffix(arena, body, end, size)
                if key >= 0:
                    found[n] = key
                    n += 1
    return found[:n]


def _endings(arena: NDArray[np.uint8], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    keys, n = np.unique(_suffixes(arena, begins), return_counts=True)
    return np.sort(keys[np.argsort(-n, kind="stable")[:ENDINGS]])


@njit(cache=True)
def _ending(data, begin, end, endings):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bytes of the longest ending."""
    for n in (3, 2, 1):
        key = _suffix(data, begin, end, n)
        if key >= 0:
            at = np.searchsorted(endings, key)
            if at < len(endings) and endings[at] == key:
                return 3 * n
    return 0


@njit(cache=True)
def _next(data, at, end, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where the next n characters end."""
    while n > 0 and at < end:
        at += 1
        while at < end and data[at] & 0xC0 == 0x80:
            at += 1
        n -= 1
    return at


@njit(cache=True)
def _change(made, at, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Another character of the same kind in the place of this one: as many bytes."""
    for first, size in ((97, 26), (65, 26), (48, 10)):
        if first <= made[at] < first + size:
            made[at] = first + _one_of(size, seed)
            return
    code = _code(made, at) if made[at] >= 0xE0 else np.int64(0)
    if _GA <= code <= _HIH:
        code = _GA + (code - _GA) // 28 * 28 + _FINALS[_one_of(len(_FINALS), seed)]
    elif _KIYEOK <= code <= _I:
        code = _KIYEOK + _one_of(_I - _KIYEOK + 1, seed)
    else:
        return
    made[at], made[at + 1], made[at + 2] = 0xE0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)


@njit(cache=True)
def _renew(  # type: ignore[no-untyped-def]
    ids, places, once, endings, arena, begins, hashes, slots, n, seed
):  # pragma: no cover - compiled
    """New forms at these places; the number of words there are then."""
    longest = 64
    for place in places:
        longest = max(longest, begins[ids[place] + 1] - begins[ids[place]])
    made, stem = np.empty(longest + 64, np.uint8), np.empty(longest + 64, np.uint8)
    for place in places:
        begin, end = begins[ids[place]], begins[ids[place] + 1]
        body = _body(arena, begins, ids[place])
        lead = body - begin
        if body == end:
            continue
        made[: end - begin] = arena[begin:end]
        words = _hangul(arena, body, end)
        if words:
            size = end - body - _ending(arena, body, end, endings)
            stem[:size] = arena[body : body + size]
        else:
            size = end - body
            characters = 0
            for at in range(body, end):
                characters += arena[at] & 0xC0 != 0x80
        for attempt in range(12 if words else 20):
            if words:
                other = once[_one_of(len(once), seed)]
                first, last = _body(arena, begins, other), begins[other + 1]
                if attempt > 3:
                    # The last three characters of the stem, behind the first two of another word.
                    at = size
                    for _ in range(3):
                        at = max(0, at - 1)
                        while at > 0 and stem[at] & 0xC0 == 0x80:
                            at -= 1
                    head = _next(arena, first, last, 2) - first
                    tail = stem[at:size].copy()
                    stem[:head] = arena[first : first + head]
                    stem[head : head + len(tail)] = tail
                    size = head + len(tail)
                ending = _ending(arena, first, last, endings)
                made[lead : lead + size] = stem[:size]
                made[lead + size : lead + size + ending] = arena[last - ending : last]
                whole = lead + size + ending
            else:
                _change(made, _next(made, lead, lead + size, _one_of(characters, seed)), seed)
                whole = lead + size
            digest = _digest(made, 0, whole)
            slot = _slot(digest, slots, hashes)
            if slots[slot] == 0:
                arena[begins[n] : begins[n] + whole] = made[:whole]
                begins[n + 1] = begins[n] + whole
                hashes[n] = digest
                ids[place] = n
                n += 1
                slots[slot] = n
                break
    return n
