"""Boundaries where a text has no gold: those of the analyser, which is right about most words and no judge of itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from koktok.metrics.gold.sentences import GoldCorpus, Word
from koktok.segment import DEFAULT, MAX_ANALYSED, segmenter_for
from koktok.text.normalize import Normalizer

LINES: Final = 1000
"""Lines that are analysed at most, evenly spaced, so that the report of a large text does not wait for the analyser."""


def silver_gold(lines: Sequence[str]) -> GoldCorpus:
    """The boundaries of Kiwi in lines of a text, each word analysed alone as in training.

    >>> found = silver_gold(["학교에서 책을 읽었다."])
    >>> found.label, [cut.at for cut in found.sentences[0].cuts], found.sentences[0].text
    ('silver', [2, 6, 9, 10], '학교에서 책을 읽었다.')
    """
    normalize, kiwi = Normalizer(), segmenter_for(DEFAULT)
    chosen = [normalize(line) for line in lines[:: -(-len(lines) // LINES) or 1]]
    words = sorted({word for line in chosen for word in line.split() if len(word) <= MAX_ANALYSED})
    analyses = dict(zip(words, kiwi.analyse(words), strict=True))

    def annotated(word: str, *, spaced: bool) -> Word:
        morphemes = analyses.get(word) or ()
        tags = [one.tag.partition("-")[0] for one in morphemes]  # Kiwi marks irregular stems: VV-I
        return (word, [one.form for one in morphemes] or [word], tags or ["UN"], spaced)

    sentences = [
        [annotated(word, spaced=k > 0) for k, word in enumerate(line.split())] for line in chosen if line.split()
    ]
    signature = f"{kiwi.signature()}|{len(chosen)}|" + "\n".join(chosen)
    return GoldCorpus.of("kiwi", sentences, human=False, digest=hashlib.sha256(signature.encode()).hexdigest())
