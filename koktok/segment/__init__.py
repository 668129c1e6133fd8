"""Words to cuts between their morphemes; reading order: boundaries, cache, kiwi (and mecab), then `segment_counts` here.

A segmenter is one method: `analyse(words)` gives the morphemes of each word. Which of their borders become cuts is the
boundary policy's business, applied afterwards, so that a cached analysis serves every policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from koktok import jamo
from koktok.count import Counts
from koktok.errors import UsageError
from koktok.segment.boundaries import Morpheme, Policy, codas_of, cuts_of
from koktok.segmented import Cut, SegmentedCounts

__all__ = ["SEGMENTERS", "Morpheme", "Policy", "Segmenter", "Whitespace", "bare", "segment_counts", "segmenter_for"]

Progress = Callable[[int, int], None]

MAX_ANALYSED = 100
"""Longer words are not analysed: no Korean eojeol has 100 characters (the longest in 77 MB of text that are words have
under 30), while repeated or unspaced text of that length has stalled and crashed analysers."""

_HANGUL = re.compile("[가-힣]")


@runtime_checkable
class Segmenter(Protocol):
    """What every morphological analyser looks like from here."""

    def signature(self) -> str:
        """Name, version and options: everything that changes an analysis."""
        ...

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in the order of the words; spans are code points of the word."""
        ...


class Whitespace:
    """The segmenter that cuts nowhere: words stay whole, and training is what it is without an analyser."""

    def signature(self) -> str:
        """Always the same."""
        return "whitespace"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """No morphemes for any word."""
        return (() for _ in words)


SEGMENTERS = ("kiwi", "mecab", "whitespace")


def segmenter_for(name: str, *, user_dictionary: str | None = None, threads: int | None = None) -> Segmenter:
    """A segmenter by name.

    Parameters
    ----------
    name : "kiwi", "mecab" or "whitespace"
    user_dictionary : str, optional
        Path of a dictionary in the analyser's own format (Kiwi: form TAB tag TAB score).
    threads : int, optional
        Threads of the analyser; the result does not depend on it.

    Raises
    ------
    UsageError
        For any other name.
    """
    match name:
        case "kiwi":
            from koktok.segment.kiwi import KiwiSegmenter

            return KiwiSegmenter(user_dictionary=user_dictionary, threads=threads)
        case "mecab":
            from koktok.segment.mecab import MecabSegmenter

            return MecabSegmenter(user_dictionary=user_dictionary)
        case "whitespace":
            return Whitespace()
    raise UsageError(f"the segmenter `{name}` is not known", hint=f"--segmenter {' | '.join(SEGMENTERS)}")


def bare(word: str) -> str:
    """The word without its leading spaces, or '' where an analyser has nothing to say about it."""
    stripped = word.lstrip(" ")
    return stripped if len(stripped) <= MAX_ANALYSED and _HANGUL.search(stripped) else ""


def segment_counts(
    counts: Counts,
    segmenter: Segmenter,
    policy: Policy,
    *,
    as_jamo: bool = False,
    on_progress: Progress | None = None,
) -> SegmentedCounts:
    """Cut every distinct word once.

    Parameters
    ----------
    counts : Counts
        Normalized, pre-tokenized words.
    segmenter : Segmenter
        Asked once per distinct word without its leading spaces.
    policy : Policy
        Which borders become cuts.
    as_jamo : bool
        Give the words in conjoining jamo, with cuts inside syllables too (갔 = 가 + ㅆ).
    on_progress : callable, optional
        Called with (words done, words in all).

    Examples
    --------
    >>> words = Counts.from_mapping({" 집에": 2, "집에": 1})
    >>> segment_counts(words, Whitespace(), Policy.parse("morphemes"))
    SegmentedCounts(words=2, cuts=0, total=3)
    """
    asked = sorted({text for word in counts.words if (text := bare(word))})
    if on_progress:
        on_progress(0, len(asked))
    cuts: dict[str, list[Cut]] = {}
    for done, (text, morphemes) in enumerate(zip(asked, segmenter.analyse(asked), strict=True), start=1):
        found = list(cuts_of(text, morphemes, policy))
        if as_jamo:
            found = _in_jamo(text, found, codas_of(text, morphemes, policy))
        if found:
            cuts[text] = found
        if on_progress and (done % 4096 == 0 or done == len(asked)):
            on_progress(done, len(asked))
    spell = jamo.split if as_jamo else str
    return SegmentedCounts.from_items((spell(word), _shifted(word, cuts), n) for word, n in counts.items())


def _in_jamo(text: str, cuts: list[Cut], codas: Iterable[Cut]) -> list[Cut]:
    """Cuts of a word as cuts of its jamo: between syllables, and before the finals that are morphemes of their own."""
    places: dict[int, Cut] = {}
    for cut in cuts:
        (at,) = jamo.split_cuts(text, [cut.offset])
        places[at] = cut._replace(offset=at)
    for cut in codas:
        (at,) = jamo.split_cuts(text, [(cut.offset, "coda")])
        places[at] = cut._replace(offset=at)
    return [places[at] for at in sorted(places)]


def _shifted(word: str, cuts: dict[str, list[Cut]]) -> Sequence[Cut]:
    """The cuts of a bare word, moved behind the spaces of this one."""
    text = word.lstrip(" ")
    found = cuts.get(text, [])
    spaces = len(word) - len(text)
    return [cut._replace(offset=cut.offset + spaces) for cut in found] if spaces else found
