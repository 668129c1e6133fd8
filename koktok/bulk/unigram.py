"""Unigram in compiled code: the best sum of scores, in one pass over each pretoken.

Of the best sums only those within reach of the longest piece are looked at again; they lie in a ring, in the nearest cache of the
processor whatever the length of the pretoken. Scores are whole multiples of `SCORE_STEP`, so sums of integers are those of
floats, ties and all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from koktok.bulk.trie import PARENT, Trie, put_bytes, read_symbols
from koktok.model.vocab import SCORE_STEP, Vocab

_WORST = -(1 << 62)


def unigram(vocab: Vocab, trie: Trie, *, letters: bool) -> tuple[Any, ...]:  # noqa: ARG001
    """Return the kernel of a vocabulary, and the arrays that it reads."""
    steps = np.column_stack((trie.cells, trie.values)).reshape(-1)
    return solve_unigram, steps, trie.ids, trie.depth, round(vocab.unknown_score / SCORE_STEP)


@njit(nogil=True, cache=True)
def solve_unigram(
    data, begins, ends, symbols, bytewise, letters, walk, piece_ids, depth, unknown, longest, ids, offsets
):  # fmt: skip
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids.

    `walk` holds the cell of a node followed by its value, so that a step waits for one load from memory, not two.
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
            total = best[at]
            best[at] = _WORST
            symbol = text[start]
            if symbol < 0:
                at = np.uint64((start + 1) & mask)
                if total + unknown > best[at]:
                    best[at] = total + unknown
                    last[start + 1], back[start + 1] = 0, start
                continue
            node, end = np.int64(symbol), np.int64(start)
            cell = walk[np.uint64(2 * node)]
            while True:
                end += 1
                value = walk[np.uint64(2 * node + 1)]
                at = np.uint64(end & mask)
                if value <= 0 and total + value > best[at]:
                    best[at] = total + value
                    last[np.uint64(end)], back[np.uint64(end)] = node, start
                if end == size or text[np.uint64(end)] < 0:
                    break
                child = (cell >> 32) + text[np.uint64(end)]
                cell = walk[np.uint64(2 * child)]
                if cell & PARENT != node:
                    break
                node = child
        best[size & mask] = _WORST
        # Back over the pieces: `text` is no longer needed after `end`, so the path is kept there.
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
