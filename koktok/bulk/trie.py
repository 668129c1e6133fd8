"""The pieces of a vocabulary as a trie in a double array (Aoe 1989): a step is one load and one comparison.

A node is a place in `cells`; its cell holds the base of its children and its parent. The child of node n by symbol s is
``base(n) + s`` if n is the parent in the cell there. Symbols are the characters of the pieces, numbered, or bytes where the
vocabulary spells bytes; the node of a single symbol is the symbol's own number, so that a walk begins without a look-up.

Where pieces are spelled in conjoining jamo, syllables are decomposed while symbols are read, by the arithmetic of Unicode
(section 3.12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.bulk.units import code_point
from koktok.model.tokens import running
from koktok.model.vocab import BYTE_CHARS, MARK, SCORE_STEP, Vocab

NO_PIECE = 1
"""The value of a node where no piece ends; scores are at most 0."""

PARENT = 0xFFFFFFFF
"""The half of a cell that holds the parent."""

_FACTOR, _SHIFT = np.uint64(0x2545F4914F6CDD1D), np.uint64(32)  # unsigned: overflow is defined
_TRIES = 12


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """The arrays with which compiled code reads pieces."""

    symbols: NDArray[np.int32]
    cells: NDArray[np.int64]
    inside: int
    ids: NDArray[np.int32]
    values: NDArray[np.int64]
    depths: NDArray[np.int32]
    texts: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, vocab: Vocab) -> Trie:
        """The trie of a vocabulary."""
        sizes = np.fromiter(map(len, vocab.pieces), np.int64, len(vocab.pieces))
        offsets = running(sizes)
        chars = np.frombuffer("".join(vocab.pieces).encode("utf-32-le"), np.uint32)
        symbols = np.zeros(0x110000, np.int32)
        if vocab.bytewise:
            symbols[np.array([ord(char) for char in BYTE_CHARS])] = np.arange(1, 257)
            texts, symbols = symbols[chars], np.arange(1, 257, dtype=np.int32)
        else:
            # The commonest first: small numbers keep the children of a node close together.
            alphabet, times = np.unique(chars, return_counts=True)
            symbols[alphabet[np.argsort(-times, kind="stable")]] = np.arange(1, len(alphabet) + 1)
            texts = symbols[chars]
        mark = int(symbols[ord(MARK[0])]) if vocab.marked else 0
        n_symbols = int(symbols.max(initial=0))
        nodes, parents, steps, ends = _nodes(texts, offsets, n_symbols, mark, len(MARK))
        cells, places = _lay_out(parents[:nodes], steps[:nodes], n_symbols)
        ids, depths = np.full(len(cells), -1, np.int32), np.zeros(len(cells), np.int32)
        values = np.full(len(cells), NO_PIECE, np.int64)
        scores = np.rint(np.array(vocab.scores or np.zeros(len(sizes))) / SCORE_STEP).astype(np.int64)
        _label(parents[:nodes], places, ends, vocab.n_bytes, scores, n_symbols, ids, values, depths)
        return cls(symbols, cells, n_symbols + 1 if vocab.marked else 0, ids, values, depths, texts, offsets)

    @property
    def depth(self) -> int:
        """Symbols of the longest piece."""
        return int(self.depths.max(initial=1))


@njit(nogil=True, cache=True)
def step(cells, node, symbol):
    """The child of a node by a symbol, or 0."""
    at = (cells[node] >> 32) + symbol
    return at if cells[at] & PARENT == node else np.int64(0)


@njit(nogil=True, cache=True)
def _nodes(texts, offsets, n_symbols, mark, mark_size):
    """Number the nodes: 1 to `n_symbols` those of single symbols, then the inside, then the others as they come.

    Returns their number, the parent of each, the symbol that leads to it, and of every piece its node, and its node behind
    the inside (0: it is no continued piece).
    """
    most = n_symbols + 2 + len(texts) * (2 if mark else 1)
    parents, steps = np.zeros(most, np.int64), np.zeros(most, np.int64)
    ends = np.zeros((len(offsets) - 1, 2), np.int64)
    # A hash table of (parent, symbol): node; a typed dict of Numba's would take half a second to load.
    room = 4
    while room < 2 * most:
        room *= 2
    table = np.zeros(room, np.int64)
    used = n_symbols + 2
    for p in range(len(offsets) - 1):
        begin, end = offsets[p], offsets[p + 1]
        marked = mark > 0 and end - begin > mark_size
        for i in range(mark_size if marked else 0):
            marked = marked and texts[begin + i] == mark
        for again in range(2 if marked else 1):
            node = np.int64(n_symbols + 1 if again else texts[begin])
            for at in range(begin + (mark_size if again else 1), end):
                symbol = np.int64(texts[at])
                place = np.int64((np.uint64(node * (n_symbols + 1) + symbol) * _FACTOR) >> _SHIFT) & (room - 1)
                while table[place] != 0 and (parents[table[place]] != node or steps[table[place]] != symbol):
                    place = (place + 1) & (room - 1)
                if table[place] == 0:
                    parents[used], steps[used] = node, symbol
                    table[place] = used
                    used += 1
                node = table[place]
            ends[p, again] = node
    return used, parents, steps, ends


@njit(nogil=True, cache=True)
def _lay_out(parents, steps, n_symbols):
    """Give every node a place; those with most children choose first, and only children fill the gaps."""
    nodes = len(parents)
    counts = np.zeros(nodes + 1, np.int64)
    for node in range(n_symbols + 2, nodes):
        counts[parents[node]] += 1
    starts = np.zeros(nodes + 2, np.int64)
    for node in range(nodes):
        starts[node + 1] = starts[node] + counts[node]
    children, filled = np.empty(max(nodes, 1), np.int64), starts.copy()
    for node in range(n_symbols + 2, nodes):
        children[filled[parents[node]]] = node
        filled[parents[node]] += 1
    room = 2 * nodes + 4 * n_symbols + 16
    cells = np.zeros(room, np.int64)
    # Of a cell that is taken, one behind it that is nearer to a free one; a free cell names itself.
    behind = np.arange(room)
    behind[: n_symbols + 2] = n_symbols + 2
    places = np.arange(nodes)  # right for 0, the single symbols and the inside; the others follow
    low = scan = end = n_symbols + 2
    last_count = np.int64(0)
    order = np.argsort(-counts[:nodes], kind="mergesort")
    for parent in order:
        count = counts[parent]
        if count == 0:
            break
        mine = children[starts[parent] : starts[parent + 1]]
        least, largest = np.int64(n_symbols + 1), np.int64(0)
        for child in mine:
            least, largest = min(least, steps[child]), max(largest, steps[child])
        low = _free(behind, low)
        if count != last_count:
            last_count, scan = count, low
        base, at, tries = np.int64(-1), max(low, scan), 0
        while base < 0:
            at = _free(behind, at)
            if at + n_symbols + 2 >= len(cells):
                more = len(cells)
                cells = np.concatenate((cells, np.zeros(more, np.int64)))
                behind = np.concatenate((behind, np.arange(more, 2 * more)))
            base = at - least
            for child in mine:
                if behind[base + steps[child]] != base + steps[child]:
                    base = np.int64(-1)
                    at += 1
                    break
            tries += 1
        if tries > _TRIES:  # what was too full for this one is too full for the next, which has as many children
            scan = at
        for child in mine:
            places[child] = base + steps[child]
            behind[places[child]] = places[child] + 1
        end = max(end, int(base + largest + 1))
        counts[parent] = -1 - base
    for node in range(1, nodes):
        laid = -1 - counts[node] if counts[node] < 0 else 0
        cells[places[node]] = (laid << 32) | (places[parents[node]] if node > n_symbols + 1 else 0)
    return cells[: end + n_symbols + 2].copy(), places


@njit(nogil=True, cache=True)
def _free(behind, at):
    """The first free cell from a place on; the way there is half as long for the next one."""
    while behind[at] != at:
        behind[at] = behind[behind[at]]
        at = behind[at]
    return at


@njit(nogil=True, cache=True)
def _label(parents, places, ends, first_id, scores, n_symbols, ids, values, depths):
    for node in range(1, len(parents)):
        if node <= n_symbols:
            depths[node] = 1
        elif node > n_symbols + 1:
            depths[places[node]] = depths[places[parents[node]]] + 1
    for p in range(len(ends)):
        for node in ends[p]:
            if node > 0:
                ids[places[node]] = first_id + p
                values[places[node]] = scores[p]


@njit(nogil=True, cache=True)
def _number(symbols, char):
    known = np.int64(symbols[char])
    return known if known > 0 else -1 - char


@njit(nogil=True, cache=True)
def _as_bytes(symbols, char, out, n):
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
def read_symbols(data, begin, end, symbols, bytewise, letters, out):
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
def put_bytes(out, used, symbol):
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
