"""How well tokens can be predicted: an n-gram model.

Bits per character compare across vocabularies, perplexity per token does not. Interpolated Kneser-Ney with one discount
an order, by sorted arrays of integers: seconds for a million tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from koktok.metrics.registry import Floats
from koktok.model.tokens import Ints, Tokens, running
from koktok.protocol.tokenizer import Tokenizer

Line = Sequence[int] | Ints

UNKNOWN_BITS: Final = 16
"""Additional bits of each character inside an unknown token, which has to be transmitted by other means."""

FORMULA: Final = 1
"""Raised where a figure changes: a kept row is one of this number."""


def kneser_ney(train: Sequence[Line], test: Sequence[Line], *, order: int, size: int) -> list[Floats]:
    """Bits of each token of each test line, its end included.

    Examples
    --------
    >>> bits = kneser_ney([[0, 1]] * 9, [[0, 1], [1, 1]], order=2, size=2)
    >>> bool(bits[0].sum() < bits[1].sum()), [len(line) for line in bits]
    (True, [3, 3])
    """
    end, begin, width = size, size + 1, size + 2

    def stream(lines: Sequence[Line]) -> tuple[Ints, Ints]:
        parts, places, at = [], [], 0
        for line in lines:
            parts.append(np.concatenate([np.full(order - 1, begin), np.asarray(line, dtype=np.int64), [end]]))
            places.append(np.arange(at + order - 1, at + len(parts[-1])))
            at += len(parts[-1])
        if not parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate(parts).astype(np.int64), np.concatenate(places)

    (seen, at), (asked, asked_at) = stream(train), stream(test)
    word, question = seen[at], asked[asked_at]
    # Contexts of growing length, numbered by (number of the shorter one, token before it).
    contexts, questions = [np.zeros(len(at), dtype=np.int64)], [np.zeros(len(asked_at), dtype=np.int64)]
    for k in range(1, order):
        keys = contexts[-1] * width + seen[at - k]
        known, number = np.unique(keys, return_inverse=True)
        contexts.append(number)
        questions.append(_find(known, np.where(questions[-1] < 0, -1, questions[-1] * width + asked[asked_at - k])))
    p = np.full(len(question), 1 / (size + 1))
    tables = []
    keys = contexts[-1] * width + word
    grams, first, counts = np.unique(keys, return_index=True, return_counts=True)
    for k in range(order - 1, -1, -1):
        tables.append((k, grams, counts))
        if k:  # the number of different tokens before each shorter n-gram, in place of its count
            grams, again, counts = np.unique(
                contexts[k - 1][first] * width + word[first], return_index=True, return_counts=True
            )
            first = first[again]
    for k, grams, counts in reversed(tables):
        if not len(grams):
            continue
        ones, twos = int((counts == 1).sum()), int((counts == 2).sum())
        discount = ones / (ones + 2 * twos) if ones else 0.5
        context = grams // width
        total = np.bincount(context, weights=counts)
        kinds = np.bincount(context)
        known = questions[k] >= 0
        c = np.where(known, questions[k], 0)
        at_gram = _find(grams, np.where(known, c * width + question, -1))
        count = np.where(at_gram >= 0, counts[np.maximum(at_gram, 0)], 0)
        mixed = (np.maximum(count - discount, 0) + discount * kinds[c] * p) / total[c]
        p = np.where(known, mixed, p)
    bits = -np.log2(p)
    ends = running([len(line) + 1 for line in test])
    return [bits[a:b] for a, b in pairwise(ends)]


def _find(known: Ints, keys: Ints) -> Ints:
    """The index of each key among the sorted known ones; −1 for others."""
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, at, -1)


def lines_of(rows: Tokens) -> list[Ints]:
    """The ids of each line."""
    return list(rows)


def unknown_bits(tokenizer: Tokenizer, rows: Tokens) -> Floats:
    """What the characters inside unknown tokens cost besides, for each line."""
    bad = np.isin(rows.ids, list(tokenizer.unknown_ids))
    sums = np.concatenate([[0], np.cumsum((rows.ends - rows.starts) * bad)])
    bits: Floats = UNKNOWN_BITS * np.diff(sums[rows.indptr]).astype(np.float64)
    return bits
