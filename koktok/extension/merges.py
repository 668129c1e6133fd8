"""`MergeState`: rows of tokens that are merged as run time merges them, by the rank of the joined string.

Pairs that are one candidate. tiktoken, SentencePiece and llama.cpp join any two neighbours whose joined
string is a piece, so candidates are counted by their joined string (a hash of it), whatever pairs make it. And once a piece
is there, whatever it makes joinable is joined at once, the lowest rank first and then the leftmost, as run time does: a
state is at every moment exactly what a tokenizer with the pieces so far makes of the text. A joint that a morpheme border
forbids to count still joins there when the piece exists, because at run time no border is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


UNKNOWN = -1
_BASE = np.uint64(0x9E3779B97F4A7C15 | 1)
_OPEN = 0.5  # share of the hash table that is used at most


@njit(cache=True)
def _hashes(data, start, hashes, powers):  # type: ignore[no-untyped-def] # pragma: no cover
    for i in range(len(start) - 1):
        h, p = np.uint64(0), np.uint64(1)
        for k in range(start[i], start[i + 1]):
            h = h * _BASE + np.uint64(data[k]) + np.uint64(1)
            p = p * _BASE
        hashes[i], powers[i] = h, p


def hash_of(strings: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A polynomial hash of each string, and the power that joins it to what stands before: h(xy) = h(x) p(y) + h(y).

    Examples
    --------
    >>> h, p = (column.tolist() for column in hash_of([b"a", b"b", b"ab"]))
    >>> (h[0] * p[1] + h[1]) % 2**64 == h[2]
    True
    """
    start = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=start[1:])
    hashes, powers = np.zeros(len(strings), np.uint64), np.ones(len(strings), np.uint64)
    _hashes(np.frombuffer(b"".join(strings) + b"\0", np.uint8), start, hashes, powers)
    return hashes, powers


class TokenRows(NamedTuple):
    """Tokens of many strings, flat."""

    symbol: NDArray[np.int32]
    char: NDArray[np.uint64]
    start: NDArray[np.int64]
    weight: NDArray[np.int64]
    held: NDArray[np.int64]
    size: NDArray[np.int32]
    border: NDArray[np.int8]
    trust: NDArray[np.float64]


# The compiled functions share these tuples of arrays:
# text   symbol, place to the right (-1 at the end of a row), to the left, value of a join of the two tokens whose border
#        stands before this one, value held out, border, hash of an unknown character, size
# names  of symbols: hash, power, rank (or -1: never made by joining), use, use held out
# pairs  of candidates: hash, count, symbol that it is (or -1), left and right symbol of a pair that makes it, newest place,
#        number of places, mark; and the hash table
# places where a candidate stood, and the place before
# used   candidates, places, marks, running tokens, held-out tokens, borders of morphemes swallowed, and held out, borders of
#        characters swallowed, and held out


@njit(cache=True)
def _slot(pairs, key):  # type: ignore[no-untyped-def] # pragma: no cover
    hashes, table = pairs[0], pairs[8]
    mask = len(table) - 1
    h = np.int64((key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(20)) & mask
    while table[h] >= 0 and hashes[table[h]] != key:
        h = (h + 1) & mask
    return h


@njit(cache=True)
def _candidate(pairs, used, key, left, right):  # type: ignore[no-untyped-def] # pragma: no cover
    h = _slot(pairs, key)
    c = pairs[8][h]
    if c < 0:
        c = used[0]
        used[0] += 1
        pairs[8][h] = c
        pairs[0][c], pairs[1][c], pairs[2][c], pairs[3][c], pairs[4][c] = key, 0, -1, left, right
        pairs[5][c], pairs[6][c], pairs[7][c] = -1, 0, 0
    return c


@njit(cache=True)
def _put(pairs, places, used, marked, c, place):  # type: ignore[no-untyped-def] # pragma: no cover
    places[0][used[1]], places[1][used[1]] = place, pairs[5][c]
    pairs[5][c] = used[1]
    pairs[6][c] += 1
    used[1] += 1
    if pairs[7][c] == 0 and pairs[2][c] < 0:
        pairs[7][c] = 1
        marked[used[2]] = c
        used[2] += 1


@njit(cache=True)
def _note(text, names, pairs, places, used, marked, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """The pair that starts at `place` stands there from now on."""
    symbol, behind = text[0], text[1]
    second = behind[place]
    if second < 0:
        return
    left, right = symbol[place], symbol[second]
    if left < 0 or right < 0:
        return
    c = _candidate(pairs, used, names[0][left] * names[1][right] + names[0][right], left, right)
    pairs[1][c] += text[3][second]
    _put(pairs, places, used, marked, c, place)


@njit(cache=True)
def _forget(text, names, pairs, place):  # type: ignore[no-untyped-def] # pragma: no cover
    symbol, behind = text[0], text[1]
    second = behind[place]
    if second < 0:
        return
    left, right = symbol[place], symbol[second]
    if left >= 0 and right >= 0:
        c = pairs[8][_slot(pairs, names[0][left] * names[1][right] + names[0][right])]
        if c >= 0:
            pairs[1][c] -= text[3][second]


@njit(cache=True)
def _begin(text, names, pairs, places, used, marked, first):  # type: ignore[no-untyped-def] # pragma: no cover
    """Note all pairs and unknown characters from a place on; stop where the candidates may not fit."""
    room = int(len(pairs[0]) - 2)
    for place in range(first, len(text[0])):
        if used[0] > room:
            return place
        if text[0][place] == -1 and text[6][place] != 0:
            c = _candidate(pairs, used, text[6][place], -1, -1)
            pairs[1][c] += text[10][place] * (text[7][place] - 1)
            _put(pairs, places, used, marked, c, place)
        _note(text, names, pairs, places, used, marked, place)
    return -1


@njit(cache=True)
def _listed(lists, left, right):  # type: ignore[no-untyped-def] # pragma: no cover
    key = (np.int64(left) << 32) | np.int64(right)
    k = np.searchsorted(lists, key)
    return k < len(lists) and lists[k] == key


@njit(cache=True)
def _joinable(text, names, pairs, lists, n_old, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """The symbol that the pair at `place` is joined to, or -1."""
    if place < 0:
        return -1
    second = text[1][place]
    if second < 0:
        return -1
    left, right = text[0][place], text[0][second]
    if left < 0 or right < 0:
        return -1
    c = pairs[8][_slot(pairs, names[0][left] * names[1][right] + names[0][right])]
    if c < 0:
        return -1
    s = pairs[2][c]
    if s < 0 or names[2][s] < 0:
        return -1
    if left < n_old and right < n_old and s < n_old and not _listed(lists, left, right):
        return -1
    return s


@njit(cache=True)
def _merge(text, names, pairs, places, used, marked, place, joined):  # type: ignore[no-untyped-def] # pragma: no cover
    symbol, behind, before = text[0], text[1], text[2]
    second = behind[place]
    first, third = before[place], behind[second]
    if first >= 0:
        _forget(text, names, pairs, first)
    if third >= 0:
        _forget(text, names, pairs, second)
    _forget(text, names, pairs, place)
    weight, held = text[8][place], text[9][place]
    use, use_held = names[3], names[4]
    use[symbol[place]] -= weight
    use[symbol[second]] -= weight
    use[joined] += weight
    use_held[symbol[place]] -= held
    use_held[symbol[second]] -= held
    use_held[joined] += held
    used[3] -= weight
    used[4] -= held
    if text[5][second] == 2:
        used[5] += weight
        used[6] += held
    if text[5][second] >= 1:
        used[7] += weight
        used[8] += held
    symbol[place], symbol[second] = joined, -2
    behind[place] = third
    if third >= 0:
        before[third] = place
    if first >= 0:
        _note(text, names, pairs, places, used, marked, first)
    if third >= 0:
        _note(text, names, pairs, places, used, marked, place)


@njit(cache=True)
def _follow(text, names, pairs, places, used, marked, lists, n_old, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """Whatever the token at `place` is now joined with: the lowest rank first, then the leftmost."""
    while True:
        first = text[2][place]
        left = _joinable(text, names, pairs, lists, n_old, first)
        right = _joinable(text, names, pairs, lists, n_old, place)
        if left < 0 and right < 0:
            return
        if right < 0 or (left >= 0 and names[2][left] <= names[2][right]):
            place = first
            _merge(text, names, pairs, places, used, marked, place, left)
        else:
            _merge(text, names, pairs, places, used, marked, place, right)


@njit(cache=True)
def _standing(pairs, places, c):  # type: ignore[no-untyped-def] # pragma: no cover
    found = np.empty(pairs[6][c], np.int32)
    k = pairs[5][c]
    for n in range(len(found)):
        found[n], k = places[0][k], places[1][k]
    found.sort()
    return found


@njit(cache=True)
def _join(text, names, pairs, places, used, marked, lists, n_old, c, joined, found, first):  # type: ignore[no-untyped-def] # pragma: no cover
    """Make `joined` of a candidate wherever it stands, from the `first` of its places on; where it stopped for room."""
    key = pairs[0][c]
    pairs[2][c] = joined
    symbol, behind, before = text[0], text[1], text[2]
    last = -1
    for k in range(first, len(found)):
        place = found[k]
        if used[0] + 4096 > len(pairs[0]):
            return k
        if place == last:
            continue
        last = place
        if symbol[place] == -1 and text[6][place] == key:
            symbol[place] = joined
            used[3] -= text[8][place] * (text[7][place] - 1)
            used[4] -= text[9][place] * (text[7][place] - 1)
            names[3][joined] += text[8][place]
            names[4][joined] += text[9][place]
            if before[place] >= 0:
                _note(text, names, pairs, places, used, marked, before[place])
            _note(text, names, pairs, places, used, marked, place)
            _follow(text, names, pairs, places, used, marked, lists, n_old, place)
            continue
        second = behind[place]
        if symbol[place] < 0 or second < 0 or symbol[second] < 0:
            continue
        left, right = symbol[place], symbol[second]
        if names[0][left] * names[1][right] + names[0][right] != key:
            continue
        _merge(text, names, pairs, places, used, marked, place, joined)
        _follow(text, names, pairs, places, used, marked, lists, n_old, place)
    return -1


@njit(cache=True)
def _rehash(pairs, n):  # type: ignore[no-untyped-def] # pragma: no cover
    for c in range(n):
        pairs[8][_slot(pairs, pairs[0][c])] = c


class MergeState:
    """Rows of tokens with their candidates for merges."""

    SCALE = 16

    def __init__(
        self,
        rows: TokenRows,
        hashes: NDArray[np.uint64],
        powers: NDArray[np.uint64],
        ranks: NDArray[np.int64],
        lists: NDArray[np.int64],
        *,
        pieces: NDArray[np.int64],
        more: int,
        penalty: float,
    ) -> None:
        size = len(rows.symbol)
        lengths = np.diff(rows.start)
        behind = np.arange(1, size + 1, dtype=np.int32)
        before = np.arange(-1, size - 1, dtype=np.int32)
        behind[rows.start[1:] - 1] = -1
        before[rows.start[:-1]] = -1
        weight, held = np.repeat(rows.weight, lengths), np.repeat(rows.held, lengths)
        share = np.rint(self.SCALE * penalty * rows.trust).astype(np.int64)
        value = weight * (self.SCALE - share)
        self._text: tuple[Any, ...] = (
            rows.symbol.copy(),
            behind,
            before,
            value,
            np.zeros(0, np.int64),
            rows.border,
            rows.char,
            rows.size,
            weight,
            held,
            weight * self.SCALE,
        )
        n_old = len(hashes)
        use = np.zeros((2, n_old + more), np.int64)
        known = rows.symbol >= 0
        np.add.at(use[0], rows.symbol[known], weight[known])
        np.add.at(use[1], rows.symbol[known], held[known])
        self._names = (
            np.append(hashes, np.zeros(more, np.uint64)),
            np.append(powers, np.zeros(more, np.uint64)),
            np.append(ranks, np.zeros(more, np.int64)),
            use[0],
            use[1],
        )
        self.n_old, self.n = n_old, n_old
        self._lists = lists
        capacity = 3 * size + 2 * int((~known).sum()) + 1
        self._places = (np.empty(capacity, np.int32), np.empty(capacity, np.int32))
        self._used = np.zeros(9, np.int64)
        self._used[3], self._used[4] = (weight * rows.size).sum(), (held * rows.size).sum()
        self._pairs: tuple[Any, ...] = tuple(
            np.empty(0, kind)
            for kind in (np.uint64, np.int64, np.int32, np.int32, np.int32, np.int32, np.int32, np.int8, np.int32)
        )
        self._grow(len(pieces) + size // 4 + 8192)
        self._marked = np.empty(len(self._pairs[0]), np.int32)
        for piece in pieces.tolist():
            self._own(piece)
        self._used[2] = 0
        first = 0
        while first >= 0:
            first = _begin(self._text, self._names, self._pairs, self._places, self._used, self._marked_now(), first)
            if first >= 0:
                self._grow(2 * len(self._pairs[0]))

    def _own(self, piece: int) -> None:
        """A piece of the base is a candidate that is one already."""
        c = int(_candidate(self._pairs, self._used, self._names[0][piece], -1, -1))
        self._pairs[2][c] = piece

    def _marked_now(self) -> NDArray[np.int32]:
        if len(self._marked) < len(self._pairs[0]):
            self._marked = np.append(self._marked, np.empty(len(self._pairs[0]) - len(self._marked), np.int32))
        return self._marked

    def _grow(self, capacity: int) -> None:
        columns = [np.append(c, np.empty(capacity - len(c), c.dtype)) for c in self._pairs[:8]]
        table = np.full(1 << int(capacity / _OPEN).bit_length(), -1, dtype=np.int32)
        self._pairs = (*columns, table)
        _rehash(self._pairs, int(self._used[0]))

    @property
    def count(self) -> NDArray[np.int64]:
        """The count of each candidate."""
        count: NDArray[np.int64] = self._pairs[1][: int(self._used[0])]
        return count

    @property
    def left(self) -> NDArray[np.int32]:
        """The left symbol of a pair that makes each candidate; -1 for a character."""
        left: NDArray[np.int32] = self._pairs[3]
        return left

    @property
    def right(self) -> NDArray[np.int32]:
        """The right one."""
        right: NDArray[np.int32] = self._pairs[4]
        return right

    def is_piece(self, c: int) -> bool:
        """Whether a candidate is a piece, of the base or a new one."""
        return int(self._pairs[2][c]) >= 0

    def code(self, c: int) -> int:
        """The hash of a candidate's string."""
        return int(self._pairs[0][c])

    def risen(self) -> list[int]:
        """Candidates that are new, or stand in new places, since this was asked last."""
        n = int(self._used[2])
        found: list[int] = self._marked[:n].tolist()
        self._pairs[7][self._marked[:n]] = 0
        self._used[2] = 0
        return found

    def join(self, c: int, power: int) -> int:
        """Make a piece of a candidate, of the lowest rank so far, wherever it stands; returns its symbol."""
        symbol = self.n
        self.n += 1
        names = self._names
        names[0][symbol], names[1][symbol] = self._pairs[0][c], power
        names[2][symbol] = (
            max(int(names[2][: self.n_old].max()), 0) + 1 + symbol if symbol == self.n_old else names[2][symbol - 1] + 1
        )
        found = _standing(self._pairs, self._places, c)
        first = 0
        while first >= 0:
            first = _join(
                self._text,
                names,
                self._pairs,
                self._places,
                self._used,
                self._marked_now(),
                self._lists,
                self.n_old,
                c,
                symbol,
                found,
                first,
            )
            if first >= 0:
                self._grow(2 * len(self._pairs[0]))
        self._pairs[1][c] = 0
        return symbol

    @property
    def totals(self) -> dict[str, int]:
        """Running tokens and held-out ones, and borders swallowed since the beginning."""
        names = ("tokens", "held_tokens", "cuts", "held_cuts", "borders", "held_borders")
        return dict(zip(names, self._used[3:].tolist(), strict=True))

    def uses(self) -> NDArray[np.int64]:
        """How often every new symbol stands now."""
        found: NDArray[np.int64] = self._names[3][self.n_old : self.n].copy()
        return found
