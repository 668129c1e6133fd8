"""Soynlp as a segmenter without a dictionary: what belongs together is learnt from the words of the training (extra `soynlp`)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Final

from koktok.errors import MissingExtraError, UsageError
from koktok.hangul import is_syllable
from koktok.segment.policy import Morpheme

LEFT, RIGHT = "NNG", "JX"
"""Tags of the two parts of an eojeol: soynlp knows a left and a right one, most often a noun and its particles."""

LONGEST: Final = 10
LEAST: Final = 5
"""Syllables of a left part and times that it must come: soynlp's own defaults."""


class SoynlpSegmenter:
    """A word as a left and a right part, where the cohesion of the left one is highest.

    Cohesion of a left part of n syllables: (its count / the count of its first syllable) to the power 1 / (n − 1), counted
    over the beginnings of running words (Kim, Cho and Kang 2014, as in soynlp's `WordExtractor`).
    """

    def __init__(self, counts: Mapping[str, int] | None) -> None:
        if counts is None:
            raise UsageError(
                "soynlp learns from the words of a training, and there are none here", hint="--segmenter kiwi"
            )
        try:
            from soynlp.tokenizer import LTokenizer
            from soynlp.word import WordExtractor
        except ImportError as error:
            raise MissingExtraError("soynlp", "soynlp") from error
        extractor = WordExtractor(max_left_length=LONGEST, min_frequency=LEAST, verbose_points=-1)
        beginnings: Counter[str] = Counter()
        for spaced, n in counts.items():  # what WordExtractor.train does a running word, done a distinct one
            word = spaced.strip()
            if len(word) > 1 and all(map(is_syllable, word)):
                for end in range(1, min(LONGEST + 1, len(word)) + 1):
                    beginnings[word[:end]] += n
        extractor.L = {part: n for part, n in sorted(beginnings.items()) if n >= LEAST}
        scores = {part: found[0] for part, found in extractor.all_cohesion_scores().items()}
        digest = hashlib.sha256(repr(sorted(scores.items())).encode()).hexdigest()[:16]
        self._signature = f"soynlp:{version('soynlp')}|learnt:{digest}"
        self._tokenizer = LTokenizer(scores=scores)

    def signature(self) -> str:
        """Version of the library, and a digest of what it learnt."""
        return self._signature

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """One or two parts of each word, in order."""
        for word in words:
            ((left, right),) = self._tokenizer.tokenize(word, flatten=False) or [(word, "")]
            parts = [Morpheme(0, len(left), LEFT, left)]
            if right:
                parts.append(Morpheme(len(left), len(word), RIGHT, right))
            yield tuple(parts)
