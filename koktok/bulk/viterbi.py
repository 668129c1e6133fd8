"""`koktok.models.unigram` in compiled code: the best segmentation of every pretoken, in one pass over each.

This file adds: a ring. Of the best sums only those within reach of the longest piece are looked at again, so they stay
in the processor's nearest cache whatever the length of the pretoken; what is kept of every place is the node of the
last piece. Scores are whole multiples of `SCORE_STEP`, so sums of integers are those of floats, ties and all.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from koktok.bulk.symbols import put_bytes, read_symbols

__all__ = ["solve_unigram"]

_WORST = -(1 << 62)
_PARENT = 0xFFFFFFFF


@njit(nogil=True, cache=True)
def solve_unigram(  # type: ignore[no-untyped-def]
    data, begins, ends, symbols, bytewise, letters,
    cells, piece_ids, values, depths, depth, unknown, longest, ids, offsets,
):  # fmt: skip  # pragma: no cover - compiled
    """Fill `ids` and `offsets` for all pretokens; returns the number of ids."""
    text = np.empty(longest, np.int32)
    last = np.empty(longest + 1, np.int32)
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
            here = best[start & mask]
            best[start & mask] = _WORST
            symbol = text[start]
            if symbol < 0:
                end = start + 1
                if here + unknown > best[end & mask]:
                    best[end & mask] = here + unknown
                    last[end] = 0
                continue
            node, end = np.int64(symbol), start
            cell = cells[node]
            while True:
                end += 1
                value = values[node]
                if value <= 0 and here + value > best[end & mask]:
                    best[end & mask] = here + value
                    last[end] = node
                if end == size or text[end] < 0:
                    break
                child = (cell >> 32) + text[end]
                cell = cells[child]
                if cell & _PARENT != node:
                    break
                node = child
        best[size & mask] = _WORST
        # Back over the pieces: `text` is no longer wanted behind `end`, so the path is kept there.
        end, free = size, size
        while end > 0:
            node = last[end]
            free -= 1
            if node == 0:
                end -= 1
                text[free] = text[end]
            else:
                end -= depths[node]
                text[free] = piece_ids[node]
        for i in range(free, size):
            if text[i] < 0:
                used = put_bytes(ids, used, text[i])
            else:
                ids[used] = text[i]
                used += 1
        offsets[job + 1] = used
    return used
