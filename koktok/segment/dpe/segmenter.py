"""A segmentation that was learnt from words, as a segmenter.

Only Hangul is learnt and cut: every run of syllables is a word to the decoder (빵집에서, is 빵집에서 and a
comma), and every other run is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from koktok.errors import AnalyserError
from koktok.segment.dpe.learnt import Dpe
from koktok.segment.dpe.tree import TaggedWord
from koktok.segment.policy import Morpheme, Segmenter

_RUN: Final = re.compile(r"[가-힣]+|[A-Za-z]+|[0-9]+|[^가-힣A-Za-z0-9]+")

PART = 1 << 14
"""Words that are cut at once."""


def _tag_of(run: str) -> str:
    """The tag of a run without Hangul: foreign letters, a number, or a symbol."""
    return "SL" if run[0].isalpha() else "SN" if run[0].isdigit() else "SW"


def runs_of(word: str, morphemes: Sequence[Morpheme]) -> Iterator[tuple[int, TaggedWord]]:
    """The runs of Hangul, where they begin, and the tags of the morphemes that touch them."""
    for match in _RUN.finditer(word):
        if "가" <= match.group()[0] <= "힣":
            a, b = match.span()
            yield a, TaggedWord(match.group(), tuple(m.tag for m in morphemes if m.start < b and m.end > a))


class DpeSegmenter:
    """Words cut as they most probably are, by what was learnt."""

    def __init__(self, learnt: Dpe, opened: Callable[[str], Segmenter]) -> None:
        name, _, signature = str(learnt.about.get("analyser", "")).partition(" ")
        self._learnt = learnt
        analyser = opened(name)  # which refuses a user dictionary that nothing here reads
        self._analyser = analyser if name else None
        if name and analyser.signature() != signature:
            raise AnalyserError(
                f"the segmentation was learned with {signature}; installed is {analyser.signature()}",
                hint="learn it anew, or install that version",
            )
        self._signature = f"dpe:{learnt.digest}" + (f"|{signature}" if signature else "")

    @classmethod
    def load(cls, folder: str | Path, opened: Callable[[str], Segmenter]) -> DpeSegmenter:
        """Of a folder that `koktok segment --learn` wrote; errors as `Dpe.load`."""
        return cls(Dpe.load(folder), opened)

    def signature(self) -> str:
        """The digest of what was learnt, and the analyser's signature where it was learnt with one."""
        return self._signature

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The pieces of each word; where an analyser was asked, each has the tags of the morphemes that it touches."""
        asked = list(words)
        for first in range(0, len(asked), PART):
            some = asked[first : first + PART]
            analyses = [()] * len(some) if self._analyser is None else list(self._analyser.analyse(some))
            cuts = self._learnt.cuts(
                run for word, morphemes in zip(some, analyses, strict=True) for _, run in runs_of(word, morphemes)
            )
            for word, morphemes in zip(some, analyses, strict=True):
                yield tuple(_pieces(word, morphemes, cuts))


def _pieces(word: str, morphemes: Sequence[Morpheme], cuts: Mapping[TaggedWord, tuple[int, ...]]) -> Iterator[Morpheme]:
    inner = {start: cuts[run] for start, run in runs_of(word, morphemes)}
    for match in _RUN.finditer(word):
        a, b = match.span()
        if a not in inner:
            yield Morpheme(a, b, _tag_of(match.group()), match.group())
            continue
        for start, end in pairwise((a, *(a + cut for cut in inner[a]), b)):
            tags = "+".join(m.tag for m in morphemes if m.start < end and m.end > start)
            yield Morpheme(start, end, tags or "UN", word[start:end])
