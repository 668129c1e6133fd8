"""How sure a Unigram model is of its segmentations."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from koktok.metrics.page import Text
from koktok.metrics.statistics import Table
from koktok.tokenizer.protocol import Tokenizer


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
