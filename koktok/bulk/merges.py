"""`koktok.tokenizer.bpe_model` in compiled code: of all neighbours that join, those with the lowest rank first, from the left.

This file adds: pairs of ids in place of joined strings. Parts are pieces at every moment, so the joined piece is looked
up by the ids of its parts; all splits of all pieces are entered. A short pretoken looks over all its pairs before every
join, which beats a heap; a long one keeps a heap, so that time stays n log n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.bulk.symbols import put_bytes, read_symbols
from koktok.bulk.trie import Trie, step

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pairs", "solve_bpe"]

_SHORT = 40  # symbols
_NONE = 1 << 62
_FACTOR, _SHIFT = np.uint64(0x2545F4914F6CDD1D), np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Left and right id in one word (0 is free), and the id of what they join to.

    Examples
    --------
    >>> from koktok.vocab import Vocab
    >>> pairs = Pairs.of(Trie.of(Vocab.bpe("가나", ["가나"])), 256)
    >>> sorted(pairs.joined[pairs.keys > 0].tolist())
    [258]
    """

    keys: NDArray[np.int64]
    joined: NDArray[np.int32]

    @classmethod
    def of(cls, trie: Trie, first_id: int) -> Pairs:
        """All splits of the pieces of a trie into two pieces."""
        walk = (trie.texts, trie.offsets, trie.cells, trie.ids, first_id)
        room = 1 << 10
        while True:
            keys, joined = np.zeros(room, np.int64), np.zeros(room, np.int32)
            if _enter(*walk, keys, joined):
                return cls(keys, joined)
            room *= 2


@njit(nogil=True, cache=True)
def _enter(  # type: ignore[no-untyped-def]
    texts, offsets, cells, piece_ids, first_id, keys, joined
):  # pragma: no cover - compiled
    """Enter all splits; False where the table would be more than half full."""
    mask, entered = len(keys) - 1, 0
    for p in range(len(offsets) - 1):
        begin, end = offsets[p], offsets[p + 1]
        left = np.int64(texts[begin])
        for cut in range(begin + 1, end):
            if cut > begin + 1:
                left = step(cells, left, texts[cut - 1])
            if piece_ids[left] < 0:
                continue
            right = np.int64(texts[cut])
            for at in range(cut + 1, end):
                right = step(cells, right, texts[at])
                if right == 0:
                    break
            if right == 0 or piece_ids[right] < 0:
                continue
            entered += 1
            if 2 * entered > len(keys):
                return False
            key = _key(piece_ids[left], piece_ids[right])
            at = _place(key, mask)
            while keys[at] != 0:
                at = (at + 1) & mask
            keys[at] = key
            joined[at] = first_id + p
    return True


@njit(nogil=True, cache=True)
def _key(left, right):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    return ((np.int64(left) + 1) << 31) | np.int64(right)


@njit(nogil=True, cache=True)
def _place(key, mask):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where the search for a key begins; unsigned, because overflow of a signed product is undefined."""
    return np.int64((np.uint64(key) * _FACTOR) >> _SHIFT) & mask


@njit(nogil=True, cache=True)
def _join(left, right, keys, joined):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The id of the joined piece, or a number larger than every id."""
    if left < 0 or right < 0:
        return np.int64(_NONE)
    mask = len(keys) - 1
    key = _key(left, right)
    at = _place(key, mask)
    while keys[at] != 0:
        if keys[at] == key:
            return np.int64(joined[at])
        at = (at + 1) & mask
    return np.int64(_NONE)


@njit(nogil=True, cache=True)
def _by_scan(parts, size, ranks, keys, joined):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Join in place; returns how many parts are left."""
    for i in range(size - 1):
        ranks[i] = _join(parts[i], parts[i + 1], keys, joined)
    while size > 1:
        low, at = np.int64(_NONE), -1
        for i in range(size - 1):
            if ranks[i] < low:
                low, at = ranks[i], i
        if at < 0:
            break
        parts[at] = low
        size -= 1
        for i in range(at + 1, size):
            parts[i] = parts[i + 1]
        for i in range(at + 1, size - 1):
            ranks[i] = ranks[i + 1]
        if at > 0:
            ranks[at - 1] = _join(parts[at - 1], parts[at], keys, joined)
        if at + 1 < size:
            ranks[at] = _join(parts[at], parts[at + 1], keys, joined)
    return size


@njit(nogil=True, cache=True)
def _push(heap, n, entry):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    at = n
    while at > 0:
        up = (at - 1) >> 1
        if heap[up] <= entry:
            break
        heap[at] = heap[up]
        at = up
    heap[at] = entry
    return n + 1


@njit(nogil=True, cache=True)
def _pop(heap, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    top, n = heap[0], n - 1
    entry, at = heap[n], 0
    while 2 * at + 1 < n:
        down = 2 * at + 1
        if down + 1 < n and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= entry:
            break
        heap[at] = heap[down]
        at = down
    heap[at] = entry
    return top, n


@njit(nogil=True, cache=True)
def _by_heap(parts, size, heap, keys, joined):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """As `_by_scan`. An entry is rank · size + place: it sorts by rank, then from the left."""
    left, right = np.empty(size, np.int32), np.empty(size, np.int32)
    gone = np.zeros(size, np.bool_)
    n = 0
    for i in range(size):
        left[i], right[i] = i - 1, i + 1
    for i in range(size - 1):
        rank = _join(parts[i], parts[i + 1], keys, joined)
        if rank != _NONE:
            n = _push(heap, n, rank * size + i)
    while n > 0:
        top, n = _pop(heap, n)
        rank, i = top // size, top % size
        j = right[i]
        if gone[i] or j >= size or _join(parts[i], parts[j], keys, joined) != rank:
            continue
        parts[i] = rank
        gone[j] = True
        k = right[j]
        right[i] = k
        if k < size:
            left[k] = i
            after = _join(parts[i], parts[k], keys, joined)
            if after != _NONE:
                n = _push(heap, n, after * size + i)
        h = left[i]
        if h >= 0:
            before = _join(parts[h], parts[i], keys, joined)
            if before != _NONE:
                n = _push(heap, n, before * size + h)
    kept = 0
    for i in range(size):
        if not gone[i]:
            parts[kept] = parts[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def solve_bpe(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters, piece_ids, keys, joined, longest, ids, offsets
):  # pragma: no cover - compiled
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids."""
    text = np.empty(longest, np.int32)
    ranks = np.empty(_SHORT, np.int64)
    # There is less than an entry a part at first, and a join takes one away and adds at most two.
    heap = np.empty(2 * longest if longest > _SHORT else 0, np.int64)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        for i in range(size):
            if text[i] > 0:
                text[i] = piece_ids[text[i]]
        size = _by_scan(text, size, ranks, keys, joined) if size <= _SHORT else _by_heap(text, size, heap, keys, joined)
        for i in range(size):
            if text[i] < 0:
                used = put_bytes(ids, used, text[i])
            else:
                ids[used] = text[i]
                used += 1
        offsets[job + 1] = used
    return used
