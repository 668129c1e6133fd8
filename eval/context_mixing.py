"""A context-mixing model of tokens, the second yardstick of `python -m eval.bits` beside Kneser-Ney: bits of each line, in one pass.

A token is a path in a binary tree of classes, and each branch of the path is predicted: thirteen contexts (tokens up to order 4,
two skips, characters, the eojeol so far and the one before) have an adaptive probability for it, and two logistic mixers, one by
depth and one by what is known, weigh these (Mahoney 2005, PAQ). The test text is asked with the weights and counts frozen.
Deterministic: sums run in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.model.vocab import whole_text
from koktok.protocol.tokenizer import Tokenizer

CONTEXTS: Final = 13
SLOTS: Final = 1 << 22
"""Hashed places of each context; a place holds the sixteen nodes of four branches."""

NEIGHBOURS, DIMENSIONS = 384, 24
"""Frequent tokens that the tree describes others by, and dimensions of that description."""

RATE: Final = 0.003
"""Of the mixers; .002 and .005 were no better on 5 MB."""

LIMITS: Final = np.array([1000] + [250] * (CONTEXTS - 1), dtype=np.int64)
"""Counts up to which a probability becomes steadier."""

Ids = NDArray[np.int64]

FORMULA: Final = 1
"""Raised where a figure changes: a kept row is one of this number."""


def context_mixing(
    train: Sequence[Ids], test: Sequence[Ids], characters: Sequence[str], *, slots: int = SLOTS
) -> list[float]:
    """Train on lines of ids, and return the bits of each test line with its end; `characters` are the text of each id."""
    end = len(characters)
    surfaces = [*characters, "\n"]
    seen, asked = _joined(train, end), _joined(test, end)
    code, depth = class_tree(seen, len(surfaces))
    starts = np.array([0, *accumulate(map(len, surfaces))], dtype=np.int64)
    flat = np.array([ord(char) for surface in surfaces for char in surface], dtype=np.int64)
    state = (
        np.full((CONTEXTS, slots, 16), np.uint32(1 << 31), np.uint32),
        np.zeros((CONTEXTS, slots), np.uint16),
        np.full((20, CONTEXTS, 10), 0.15),
        np.full((15, CONTEXTS, 10), 0.15),
    )
    _pass(seen, code, depth, flat, starts, *state, LIMITS, end, RATE, True, np.zeros(len(seen)))
    bits = np.zeros(len(asked))
    _pass(asked, code, depth, flat, starts, *state, LIMITS, end, RATE, False, bits)
    ends = np.cumsum([len(line) + 1 for line in test])
    return np.diff(np.append(0.0, np.append(0.0, np.cumsum(bits))[ends])).tolist()


def characters_of(tokenizer: Tokenizer, size: int) -> list[str]:
    """The text of every id; a byte that is no whole character is a sign of its own."""
    written = [tokenizer.token_bytes(i) or b"" for i in range(size)]
    whole = map(whole_text, written)
    return [
        "".join(chr(0xE000 + byte) for byte in raw) if text is None else text
        for raw, text in zip(written, whole, strict=True)
    ]


def _joined(lines: Sequence[Ids], end: int) -> Ids:
    return np.concatenate([np.append(line, end) for line in lines]).astype(np.int64)


def class_tree(ids: Ids, size: int) -> tuple[Ids, Ids]:
    """A binary code of every id and its length: halves of equal frequency, along the direction in which neighbours differ most."""
    frequency = np.bincount(ids, minlength=size).astype(np.float64) + 0.3
    frequent = np.argsort(-frequency, kind="stable")[:NEIGHBOURS]
    column = np.full(size, -1, np.int64)
    column[frequent] = np.arange(len(frequent))
    beside = np.zeros((size, 2 * NEIGHBOURS), np.float32)
    before, after = ids[:-1], ids[1:]
    for of, neighbour, shift in ((after, before, 0), (before, after, NEIGHBOURS)):
        known = column[neighbour] >= 0
        np.add.at(beside.reshape(-1), of[known] * 2 * NEIGHBOURS + shift + column[neighbour[known]], 1)
    share = np.zeros(NEIGHBOURS)
    share[: len(frequent)] = frequency[frequent] / frequency.sum()
    expected = frequency[:, None] * np.tile(share, 2)[None, :] + 1e-9
    vectors = np.log2(np.maximum(beside / expected, 1)) * np.minimum(1, np.sqrt(frequency) / 8)[:, None]
    _, directions = np.linalg.eigh((vectors.T * np.sqrt(frequency)) @ vectors)
    points = np.round(vectors @ directions[:, -DIMENSIONS:], 6)  # the last digits differ between machines
    code, depth = np.zeros(size, np.int64), np.zeros(size, np.int64)
    open_nodes = [(np.arange(size), 0, 0)]
    while open_nodes:
        members, path, level = open_nodes.pop()
        if len(members) == 1:
            code[members[0]], depth[members[0]] = path, level
            continue
        weight = frequency[members]
        centred = points[members] - np.average(points[members], axis=0, weights=weight)
        axis = int(np.argmax((centred**2 * weight[:, None]).sum(axis=0)))
        order = np.argsort(centred[:, axis], kind="stable")
        mass = np.cumsum(weight[order])
        half = int(np.searchsorted(mass, mass[-1] / 2)) if level < 40 else len(members) // 2
        half = min(max(half, 1), len(members) - 1)
        open_nodes += [
            (members[order[:half]], 2 * path, level + 1),
            (members[order[half:]], 2 * path + 1, level + 1),
        ]
    return code, depth


@njit(cache=True)  # type: ignore[untyped-decorator]
def _mixed(state: Any, value: Any) -> Any:
    state = (state ^ (value + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    return state ^ (state >> np.uint64(29))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _pass(ids, code, depth, chars, starts, table, check, by_depth, by_known, limits, end, rate, learns, bits):
    """Bits of every token in `bits`; with `learns`, counts and weights follow each branch."""
    level_of = np.array([0, 1, 2, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6])  # of small counts; see below
    hashes = np.zeros(CONTEXTS, np.uint64)
    place, count, level = np.zeros(CONTEXTS, np.int64), np.zeros(CONTEXTS, np.int64), np.zeros(CONTEXTS, np.int64)
    stretch, chance = np.zeros(CONTEXTS), np.zeros(CONTEXTS)
    tokens, recent = np.zeros(4, np.uint64), np.zeros(6, np.uint64)
    one = np.uint64(1)
    word, word_before, pair, pair_before = one, one, np.uint64(0), np.uint64(0)
    for i in range(len(ids)):
        # Contexts: none, tokens of order 1 to 4, two skips, 2, 4 and 6 characters, the eojeol, it and the one before, it and
        # that one's last two characters.
        hashes[0] = np.uint64(0)
        for k in range(4):
            hashes[k + 1] = _mixed(hashes[k] + np.uint64(7), tokens[k])
        hashes[5] = _mixed(np.uint64(5), tokens[1])
        hashes[6] = _mixed(_mixed(np.uint64(6), tokens[0]), tokens[2])
        state = np.uint64(7)
        for k in range(3):
            state = _mixed(_mixed(state, recent[2 * k]), recent[2 * k + 1])
            hashes[7 + k] = state
        hashes[10] = _mixed(np.uint64(10), word)
        hashes[11] = _mixed(_mixed(np.uint64(11), word), word_before)
        hashes[12] = _mixed(_mixed(np.uint64(12), word), pair_before)
        token = ids[i]
        path, length = code[token], depth[token]
        total, node, prefix = 0.0, 1, one
        for branch in range(length):
            if branch % 4 == 0:
                node = 1
                for k in range(CONTEXTS):
                    key = _mixed(hashes[k] + np.uint64(k * 1000003 + 1), prefix)
                    at = np.int64(key & np.uint64(check.shape[1] - 1))
                    sign = np.uint16((key >> np.uint64(40)) & np.uint64(0xFFFF))
                    if check[k, at] == sign:
                        place[k] = at
                    elif learns:
                        check[k, at] = sign
                        table[k, at, :] = np.uint32(1 << 31)
                        place[k] = at
                    else:
                        place[k] = -1
            bit = (path >> (length - 1 - branch)) & 1
            deep = min(branch, 19)
            first, second, known = 0.0, 0.0, 0
            for k in range(CONTEXTS):
                chance[k], count[k], stretch[k] = 0.5, 0, 0.0
                if place[k] >= 0:
                    cell = table[k, place[k], node]
                    chance[k], count[k] = (cell >> np.uint32(10)) / 4194304.0, np.int64(cell & np.uint32(1023))
                n = count[k]
                level[k] = level_of[n] if n < 20 else (7 if n < 60 else (8 if n < 255 else 9))
                if n:
                    p = min(max(chance[k], 1e-5), 1 - 1e-5)
                    stretch[k] = np.log(p / (1 - p))
                    known = max(known, k) if k <= 4 else known
                first += by_depth[deep, k, level[k]] * stretch[k]
            row = 3 * known + (count[9] > 0) + (count[11] > 0)
            for k in range(CONTEXTS):
                second += by_known[row, k, level[k]] * stretch[k]
            p1, p2 = 1 / (1 + np.exp(-first)), 1 / (1 + np.exp(-second))
            p = 1 / (1 + np.exp(-(first + second) / 2))
            p = min(max(p, 1 / 65536), 1 - 1 / 65536)
            total -= np.log2(p if bit else 1 - p)
            if learns:
                for k in range(CONTEXTS):
                    if count[k]:
                        by_depth[deep, k, level[k]] += (bit - p1) * rate * stretch[k]
                        by_known[row, k, level[k]] += (bit - p2) * rate * stretch[k]
                    p = chance[k] + (bit - chance[k]) / (count[k] + 1.6)
                    n = min(count[k] + 1, max(limits[k], count[k]))
                    stored = min(max(np.int64(p * 4194304.0), 16), 4194287)
                    table[k, place[k], node] = np.uint32((stored << 10) | n)
            node = 2 * node + bit
            prefix = prefix * np.uint64(2) + np.uint64(bit)
        bits[i] = total
        for k in range(3, 0, -1):
            tokens[k] = tokens[k - 1]
        tokens[0] = np.uint64(token + 1)
        for at in range(starts[token], starts[token + 1]):
            char = np.uint64(chars[at])
            for k in range(5, 0, -1):
                recent[k] = recent[k - 1]
            recent[0] = char
            if chars[at] == 32 or token == end:
                word_before, pair_before, word, pair = word, pair, one, np.uint64(0)
            else:
                word = _mixed(word, char)
                pair = (pair << np.uint64(32)) | char
        if token == end:
            word_before, pair_before = np.uint64(3), np.uint64(3)
