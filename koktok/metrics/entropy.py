"""How sure a Unigram model is of its segmentations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import numpy as np

from koktok.metrics.page import Text
from koktok.metrics.statistics import Table
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.sentencepiece.adapter import SentencePiece
from koktok.runtimes.sentencepiece.message import UNIGRAM
from koktok.tokenizer import TrainedTokenizer


def segmentation_entropy(tokenizer: Tokenizer, text: Text) -> Table | None:
    """Bits of the posterior over segmentations of each line; None if the model is no Unigram with known scores."""
    known = unigram_of(tokenizer)
    if known is None:
        return None
    scores, words_of = known
    longest, unknown = max(map(len, scores), default=1), 3 * min(scores.values(), default=0.0) - 10
    solved: dict[str, float] = {}
    entropies = []
    for line in text.lines:
        words = words_of(line)
        for word in words:
            if word not in solved:
                solved[word] = lattice_entropy(word, scores, longest, unknown)
        entropies.append(sum(solved[word] for word in words))
    chars = np.array([len(line) for line in text.lines], dtype=np.int64)
    return Table({"entropy": np.array(entropies), "chars": chars}, text.units.of)


def unigram_of(tokenizer: Tokenizer) -> tuple[dict[str, float], Callable[[str], list[str]]] | None:
    """The log-probability of each piece, and the parts of a line that the model reads one by one; None if it is no Unigram."""
    if isinstance(tokenizer, TrainedTokenizer):
        vocab = tokenizer.vocab
        if vocab.kind != "unigram" or tokenizer.recipe.jamo:  # pieces of jamo are no text of the line
            return None
        scores = dict(zip(vocab.pieces, vocab.scores, strict=True))
        return scores, lambda line: list(tokenizer.pattern.pretokenize(tokenizer.normalize(line)))
    if not isinstance(tokenizer, SentencePiece) or tokenizer.proto.trainer_spec.model_type != UNIGRAM:
        return None
    pairs = zip(tokenizer.byte_table.written, tokenizer.proto.pieces, strict=True)
    scores = {text.decode("utf-8", "ignore"): row.score for text, row in pairs if text}
    return (scores, re.compile(r"\s*\S+|\s+$").findall) if scores else None


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
