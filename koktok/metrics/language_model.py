"""How well the tokens can be predicted: an n-gram model in bits per character, and how sure a Unigram model is.

Bits per character compare across vocabularies, perplexity per token does not. Interpolated Kneser-Ney with one discount
an order, by sorted arrays of integers: seconds for a million tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from koktok.metrics.page import Text
from koktok.metrics.registry import Floats
from koktok.metrics.statistics import Table
from koktok.model.tokens import Ints, Tokens, running
from koktok.tokenizer.protocol import Tokenizer

Line = Sequence[int] | Ints

ORDER: Final = 5
"""Tokens in an n-gram where the order is fixed."""

CONTEXT: Final = 8
"""Characters that the context is worth where the order is chosen by them."""

HELD: Final = 5
"""Every fifth block is held out."""

UNKNOWN_BITS: Final = 16
"""Additional bits of each character inside an unknown token, which has to be transmitted by other means."""


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


def ngram_table(tokenizer: Tokenizer, text: Text) -> Table | None:
    """Bits of the held-out lines, for a fixed order and for one that is worth `CONTEXT` characters; None for few lines."""
    if len(text) < HELD:
        return None
    rows = tokenizer.encode_lines(text.lines)
    ids = lines_of(rows)
    held = text.blocks % HELD == HELD - 1
    if held.all() or not held.any():
        held = np.arange(len(text)) % HELD == HELD - 1
    train = [row for row, out in zip(ids, held, strict=True) if not out]
    which = np.flatnonzero(held)
    size = tokenizer.size or int(rows.ids.max(initial=0)) + 1
    test = [ids[k] for k in which]
    chars = np.array([len(text.lines[k]) for k in which], dtype=np.int64)
    lost = unknown_bits(tokenizer, rows)[which]
    per_token = float(chars.sum()) / max(1, sum(map(len, test)))
    equal = min(7, max(2, 1 + round(CONTEXT / per_token)))
    columns: dict[str, Any] = {"chars": chars}
    for name, order in (("fixed", ORDER), ("equal", equal)):
        bits = kneser_ney(train, test, order=order, size=size)
        columns[f"bits_{name}"] = np.array([float(b.sum()) for b in bits]) + lost
    return Table(columns, text.units.of[which])


def segmentation_entropy(tokenizer: Tokenizer, text: Text) -> Table | None:
    """Bits of the posterior over segmentations of each line; None if the model is no Unigram with known scores."""
    scores = tokenizer.unigram()
    if scores is None:
        return None
    longest, unknown = max(map(len, scores), default=1), 3 * min(scores.values(), default=0.0) - 10
    solved: dict[str, float] = {}
    entropies = []
    for line in text.lines:
        words = tokenizer.unigram_words(line)
        for word in words:
            if word not in solved:
                solved[word] = lattice_entropy(word, scores, longest, unknown)
        entropies.append(sum(solved[word] for word in words))
    chars = np.array([len(line) for line in text.lines], dtype=np.int64)
    return Table({"entropy": np.array(entropies), "chars": chars}, text.units.of)


def lattice_entropy(word: str, scores: Mapping[str, float], longest: int, unknown: float) -> float:
    """Bits of the distribution over all segmentations of a word, each as likely as exp(sum of its scores).

    Examples
    --------
    >>> lattice_entropy("가나", {"가": -1.0, "나": -1.0, "가나": -2.0}, 2, -9.0)
    1.0
    """
    log_z = [0.0] + [-math.inf] * len(word)  # of all ways to each place
    mean = [0.0] * (len(word) + 1)  # of their scores
    for end in range(1, len(word) + 1):
        ways = []
        for start in range(max(0, end - longest), end):
            score = scores.get(word[start:end], unknown if end == start + 1 else None)
            if score is not None:
                ways.append((log_z[start] + score, mean[start] + score))
        top = max(z for z, _ in ways)
        weights = [math.exp(z - top) for z, _ in ways]
        log_z[end] = top + math.log(sum(weights))
        mean[end] = sum(w * m for w, (_, m) in zip(weights, ways, strict=True)) / sum(weights)
    return round((log_z[-1] - mean[-1]) / math.log(2), 10)
