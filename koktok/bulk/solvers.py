"""The models in compiled code, many pretokens a call: the same ids as `koktok.tokenizer.model`, ties and unknown characters too.

This file adds: for each algorithm the arrays that it reads. A solver is a pure function of the characters of a pretoken,
so what is solved may be kept, dropped, and solved on any thread.

* `solve_unigram`, the best sum of scores, in one pass over each pretoken. Of the best sums only those within reach of the
  longest piece are looked at again; they lie in a ring, in the processor's nearest cache whatever the length of the
  pretoken. Scores are whole multiples of `SCORE_STEP`, so sums of integers are those of floats, ties and all.
* `solve_bpe`, of all neighbours that join those with the lowest rank first, from the left. Parts are pieces at every
  moment, so the joined piece is looked up by the ids of its parts; all splits of all pieces are entered. A short pretoken
  looks over all its pairs before every join, which beats a heap; a long one keeps a heap, so that time stays n log n.
* `solve_wordpiece`, `solve_longest`, `solve_word`, the longest piece from the left, or none: one walk down the trie a piece,
  which remembers the last piece that it passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from koktok.bulk.trie import PARENT, Trie, put_bytes, read_symbols, step
from koktok.vocab import SCORE_STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from koktok.vocab import Vocab

__all__ = ["Solver"]

_WORST = -(1 << 62)
_SHORT = 40  # symbols
_NONE = 1 << 62
_FACTOR, _SHIFT = np.uint64(0x2545F4914F6CDD1D), np.uint64(32)


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Pretokens to ids, in bulk.

    Parameters
    ----------
    kernel : callable
        Compiled.
    constants : tuple
        What the kernel reads of the vocabulary.
    growth : int
        Most ids that a unit of UTF-16 can become.

    Examples
    --------
    >>> from koktok.bulk.texts import CODEC
    >>> from koktok.vocab import Vocab
    >>> solver = Solver.of(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> data = np.frombuffer("가나가é".encode(CODEC), np.uint16)
    >>> ids, offsets = solver(data, np.array([0, 2]), np.array([2, 4]))
    >>> ids.tolist(), offsets.tolist()
    ([257, 256, 195, 169], [0, 1, 4])
    """

    kernel: Callable[..., int]
    constants: tuple[Any, ...]
    growth: int

    @classmethod
    def of(cls, vocab: Vocab, *, letters: bool = False) -> Solver:
        """The solver of a vocabulary; `letters` where syllables are taken apart to jamo first."""
        trie = Trie.of(vocab)
        read = (trie.symbols, vocab.bytewise, letters)
        walk = (trie.cells, trie.ids)
        growth = 9 if letters else 3  # a syllable is three letters, and each of them, where it is no piece, three bytes
        match vocab.kind:
            case "unigram":
                steps = np.column_stack((trie.cells, trie.values)).reshape(-1)
                return cls(
                    solve_unigram, (*read, steps, trie.ids, trie.depth, round(vocab.unknown_score / SCORE_STEP)), growth
                )
            case "bpe" | "bpe-bytes":
                return cls(solve_bpe, (*read, trie.ids, *_pairs_of(trie, vocab.n_bytes)), growth)
            case "wordpiece" | "wordpiece-bytes":
                return cls(solve_wordpiece, (*read, *walk, trie.inside, vocab.unknown_id, vocab.longest_word), growth)
            case "word":
                return cls(solve_word, (*read, *walk, vocab.unknown_id), growth)
            case _:
                return cls(solve_longest, (*read, *walk), growth)

    def __call__(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of pretokens, and where those of each begin and end.

        Parameters
        ----------
        data : ndarray of uint16
            Valid UTF-16.
        begins, ends : ndarray of int64, shape (pretokens,)

        Returns
        -------
        ids : ndarray of int32
        offsets : ndarray of int64, shape (pretokens + 1,)
        """
        sizes = ends - begins
        ids = np.empty(int(sizes.sum()) * self.growth, np.int32)
        offsets = np.zeros(len(begins) + 1, np.int64)
        longest = int(sizes.max(initial=0)) * self.growth
        used = self.kernel(data, begins, ends, *self.constants, longest, ids, offsets)
        return ids[:used], offsets


@njit(nogil=True, cache=True)
def solve_unigram(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters, walk, piece_ids, depth, unknown, longest, ids, offsets
):  # fmt: skip  # pragma: no cover - compiled
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids.

    `walk` holds the cell of a node and behind it its value, so that a step waits for one load from memory, not two.
    """
    text = np.empty(longest, np.int32)
    last, back = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int32)
    ring = 1
    while ring < depth + 1:
        ring *= 2
    mask = ring - 1
    best = np.full(ring, _WORST)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        best[0] = 0
        for start in range(size):
            at = np.uint64(start & mask)
            here = best[at]
            best[at] = _WORST
            symbol = text[start]
            if symbol < 0:
                at = np.uint64((start + 1) & mask)
                if here + unknown > best[at]:
                    best[at] = here + unknown
                    last[start + 1], back[start + 1] = 0, start
                continue
            node, end = np.int64(symbol), np.int64(start)
            cell = walk[np.uint64(2 * node)]
            while True:
                end += 1
                value = walk[np.uint64(2 * node + 1)]
                at = np.uint64(end & mask)
                if value <= 0 and here + value > best[at]:
                    best[at] = here + value
                    last[np.uint64(end)], back[np.uint64(end)] = node, start
                if end == size or text[np.uint64(end)] < 0:
                    break
                child = (cell >> 32) + text[np.uint64(end)]
                cell = walk[np.uint64(2 * child)]
                if cell & PARENT != node:
                    break
                node = child
        best[size & mask] = _WORST
        # Back over the pieces: `text` is no longer wanted behind `end`, so the path is kept there.
        end, free = size, size
        while end > 0:
            node = last[end]
            end = back[end]
            free -= 1
            text[free] = text[end] if node == 0 else piece_ids[node]
        for i in range(free, size):
            if text[i] < 0:
                used = put_bytes(ids, used, text[i])
            else:
                ids[used] = text[i]
                used += 1
        offsets[job + 1] = used
    return used


def _pairs_of(trie: Trie, first_id: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """All splits of the pieces of a trie into two pieces: left and right id in one word (0 is free), and what they join to.

    Examples
    --------
    >>> from koktok.vocab import Vocab
    >>> keys, joined = _pairs_of(Trie.of(Vocab.bpe("가나", ["가나"])), 256)
    >>> sorted(joined[keys > 0].tolist())
    [258]
    """
    room = 1 << 10
    while True:
        keys, joined = np.zeros(room, np.int64), np.zeros(room, np.int32)
        if _enter(trie.texts, trie.offsets, trie.cells, trie.ids, first_id, keys, joined):
            return keys, joined
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


@njit(nogil=True, cache=True)
def _match(  # type: ignore[no-untyped-def]
    text, start, size, node, end, cells, piece_ids
):  # pragma: no cover - compiled
    """The longest piece of a walk that stands at `node` behind symbol `end`: its id (-1: none) and its end."""
    found, reach = np.int64(-1), start
    if end > start and piece_ids[node] >= 0:
        found, reach = np.int64(piece_ids[node]), end
    while end < size and text[end] > 0:
        node = step(cells, node, text[end])
        if node == 0:
            break
        end += 1
        if piece_ids[node] >= 0:
            found, reach = np.int64(piece_ids[node]), end
    return found, reach


@njit(nogil=True, cache=True)
def solve_longest(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, longest, ids, offsets,
):  # fmt: skip  # pragma: no cover - compiled
    """Syllables, jamo, n-grams and morphemes; a character that is not listed becomes its bytes."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        start = 0
        while start < size:
            if text[start] < 0:
                used = put_bytes(ids, used, text[start])
                start += 1
                continue
            found, start = _match(text, start, size, np.int64(text[start]), start + 1, cells, piece_ids)
            ids[used] = found
            used += 1
        offsets[job + 1] = used
    return used


@njit(nogil=True, cache=True)
def solve_word(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, unknown, longest, ids, offsets,
):  # fmt: skip  # pragma: no cover - compiled
    """The whole pretoken, or the unknown token."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        size = read_symbols(data, begins[job], ends[job], symbols, bytewise, letters, text)
        if size:
            node, end = np.int64(max(text[0], 0)), 1
            while node and end < size and text[end] > 0:
                node = step(cells, node, text[end])
                end += 1
            whole = node > 0 and end == size and piece_ids[node] >= 0
            ids[used] = piece_ids[node] if whole else unknown
            used += 1
        offsets[job + 1] = used
    return used


@njit(nogil=True, cache=True)
def solve_wordpiece(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, inside, unknown, limit, longest, ids, offsets,
):  # fmt: skip  # pragma: no cover - compiled
    """The longest piece again and again, behind the first only continued ones; all unknown where a part is."""
    text = np.empty(longest, np.int32)
    used = 0
    for job in range(len(begins)):
        begin, end = begins[job], ends[job]
        while not bytewise and begin < end and data[begin] == 32:
            begin += 1
        size = read_symbols(data, begin, end, symbols, bytewise, letters, text)
        first, start = used, 0
        while start < size:
            if size > limit or text[start] <= 0:
                start = size
                found = np.int64(-1)
            elif start == 0:
                found, start = _match(text, 0, size, np.int64(text[0]), 1, cells, piece_ids)
            else:
                found, start = _match(text, start, size, inside, start, cells, piece_ids)
            if found < 0:
                used = first
                ids[used] = unknown
                used += 1
                break
            ids[used] = found
            used += 1
        offsets[job + 1] = used
    return used
