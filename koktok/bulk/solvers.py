"""The models in compiled code, many pretokens a call: the same ids as `koktok.tokenizer.models`, ties and unknown characters too.

For each algorithm the arrays that it reads. A solver is a pure function of the characters of a pretoken,
so what is solved may be kept, dropped, and solved on any thread.

* `solve_unigram`, the best sum of scores, in one pass over each pretoken. Of the best sums only those within reach of the
  longest piece are looked at again; they lie in a ring, in the processor's nearest cache whatever the length of the
  pretoken. Scores are whole multiples of `SCORE_STEP`, so sums of integers are those of floats, ties and all.
* BPE has a file of its own, `chains`.
* `solve_wordpiece`, `solve_longest`, `solve_word`, the longest piece from the left, or none: one walk down the trie a piece,
  which remembers the last piece that it passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from koktok.bulk.chains import chain_of, joins_of, solve_bpe, solve_bpe_by_joins
from koktok.bulk.trie import PARENT, Trie, put_bytes, read_symbols, step
from koktok.vocab import KINDS, SCORE_STEP, named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from koktok.vocab import Vocab


_WORST = -(1 << 62)


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Pretokens to ids, in bulk.

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
        kernel, *constants = named(KINDS[vocab.kind].solver)(vocab, trie, letters=letters)
        growth = 9 if letters else 3  # a syllable is three letters, and each of them, where it is no piece, three bytes
        return cls(kernel, (trie.symbols, vocab.bytewise, letters, *constants), growth)

    def __call__(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of pretokens, and where those of each begin and end."""
        sizes = ends - begins
        ids = np.empty(int(sizes.sum()) * self.growth, np.int32)
        offsets = np.zeros(len(begins) + 1, np.int64)
        longest = int(sizes.max(initial=0)) * self.growth
        used = self.kernel(data, begins, ends, *self.constants, longest, ids, offsets)
        return ids[:used], offsets


# Of each algorithm (KINDS names them) the kernel, and what it reads behind symbols, bytewise and letters.


def unigram(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """The best sum of scores."""
    steps = np.column_stack((trie.cells, trie.values)).reshape(-1)
    return solve_unigram, steps, trie.ids, trie.depth, round(vocab.unknown_score / SCORE_STEP)


def bpe(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:
    """Joins by rank: by chains where the pieces allow it."""
    joins = joins_of(trie, vocab.n_bytes)
    chain = chain_of(trie, vocab.n_bytes, joins, bytewise=vocab.bytewise, letters=letters)
    return (solve_bpe, *chain) if chain else (solve_bpe_by_joins, trie.ids, joins)


def wordpiece(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """The longest piece from the left, continued ones behind the first."""
    return solve_wordpiece, trie.cells, trie.ids, trie.inside, vocab.unknown_id, vocab.longest_word


def word(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """Whole pretokens."""
    return solve_word, trie.cells, trie.ids, vocab.unknown_id


def longest(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """The longest piece from the left."""
    return solve_longest, trie.cells, trie.ids


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
