"""Words to cuts between their morphemes; reading order: policy, serialized, cache, kiwi and the other analysers, workers, then this file.

A segmenter is one method: `analyse(words)` gives the morphemes of each word. Which of their borders become cuts is the
boundary policy's business, applied afterwards, so that a cached analysis serves every policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok import hangul
from koktok.count import Counts
from koktok.errors import UsageError
from koktok.progress import Done
from koktok.segment.policy import Morpheme, Policy, Segmenter, codas_of, cuts_of
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.segment.serialized import deserialize, serialized_rows
from koktok.segment.suffixes import LEARNT, SuffixBackoff, frequent_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "SEGMENTERS",
    "Morpheme",
    "Policy",
    "Segmenter",
    "Whitespace",
    "segment_counts",
    "segmenter_for",
    "text_to_analyse",
]


MAX_ANALYSED = 100
"""Longer words are not analysed: no Korean eojeol has 100 characters (the longest in 77 MB of text that are words have
under 30), while repeated or unspaced text of that length has stalled and crashed analysers."""

_SUFFIX, _ROOT = " XSN ", " XR "
"""Tags of morphemes whose surface decides the kind of a boundary (가능|성, 이러|하): only a row without them says all."""


class Whitespace:
    """The segmenter that cuts nowhere: words stay whole, and training is what it is without an analyser."""

    def signature(self) -> str:
        """Always the same."""
        return "whitespace"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """No morphemes for any word."""
        return (() for _ in words)


_ANALYSERS = {
    "kiwi": "koktok.segment.kiwi:KiwiSegmenter",
    "mecab": "koktok.segment.mecab:MecabSegmenter",
    **dict.fromkeys(("okt", "komoran", "kkma", "hannanum"), "koktok.segment.konlpy:KonlpySegmenter"),
    "khaiii": "koktok.segment.khaiii:KhaiiiSegmenter",
    "soynlp": "koktok.segment.soynlp:SoynlpSegmenter",
    "whitespace": "koktok.segment:Whitespace",
}

SEGMENTERS = tuple(_ANALYSERS)

LEARNT_FOLDER = "dpe:"
"""Before the folder of a segmentation that was learnt, in place of a name."""


def segmenter_for(
    name: str,
    *,
    user_dictionary: str | None = None,
    threads: int | None = None,
    counts: Mapping[str, int] | None = None,
) -> Segmenter:
    """A segmenter by name."""
    if name.startswith(LEARNT_FOLDER):
        from koktok.training.dpe.segmenter import DpeSegmenter

        return DpeSegmenter.load(
            name.removeprefix(LEARNT_FOLDER),
            lambda beside: segmenter_for(beside, user_dictionary=user_dictionary, threads=threads),
        )
    if name not in _ANALYSERS:
        known = " | ".join([*SEGMENTERS, f"{LEARNT_FOLDER}FOLDER"])
        raise UsageError(f"the segmenter `{name}` is not known", hint=f"--segmenter {known}")
    if user_dictionary is not None and name != "kiwi":
        raise UsageError("a user dictionary works with Kiwi only", hint="--segmenter kiwi")
    module, _, attribute = _ANALYSERS[name].partition(":")
    options: dict[str, dict[str, Any]] = {
        "koktok.segment.kiwi": {"user_dictionary": user_dictionary, "threads": threads},
        "koktok.segment.konlpy": {"name": name},
        "koktok.segment.soynlp": {"counts": counts},
    }
    segmenter: Segmenter = getattr(import_module(module), attribute)(**options.get(module, {}))
    return segmenter


def text_to_analyse(word: str) -> str:
    """The word without its leading spaces, or '' where an analyser has nothing to say about it."""
    stripped = word.lstrip(" ")
    return stripped if len(stripped) <= MAX_ANALYSED and hangul.has_syllable(stripped) else ""


def segment_counts(
    counts: Counts,
    segmenter: Segmenter,
    policy: Policy,
    *,
    as_jamo: bool = False,
    mass: float = 1.0,
    on_progress: Done | None = None,
) -> SegmentedCounts:
    """Cut every distinct word once.

    Examples
    --------
    >>> words = Counts.from_mapping({" 집에": 2, "집에": 1})
    >>> segment_counts(words, Whitespace(), Policy.parse("morphemes"))
    SegmentedCounts(words=2, cuts=0, total=3)
    """
    texts = [text_to_analyse(word) for word in counts.words]
    head = _head(texts, counts, mass) if mass < 1 else []
    asked = sorted(head or {text for text in texts if text})
    if on_progress:
        on_progress(0, len(asked))
    if as_jamo:
        if mass < 1:
            raise UsageError("in jamo every word is analysed", hint="--segment-mass 1")
        return _segmented_in_jamo(counts, asked, segmenter, policy, on_progress)
    # Most words share their row with others of their length, so that cuts are looked for once in dozens of words.
    shapes: dict[tuple[int | str, str], int] = {}
    kinds: list[tuple[Cut, ...]] = [()]
    shape_of: dict[str, int] = {"": 0}
    for text, row in _with_progress(asked, serialized_rows(segmenter, asked), on_progress):
        key = (text if _SUFFIX in row or _ROOT in row else len(text), row)
        shape = shapes.get(key)
        if shape is None:
            found = cuts_of(text, deserialize(text, row), policy)
            shapes[key] = shape = len(kinds) if found else 0
            if found:
                kinds.append(found)
        shape_of[text] = shape
    if mass < 1:
        known = SuffixBackoff((text, kinds[shape_of[text]]) for text in head[:LEARNT])
        same = {found: i for i, found in enumerate(kinds)}
        for text in texts:
            if text not in shape_of:
                found = known.cuts(text)
                shape_of[text] = same.setdefault(found, len(kinds))
                if shape_of[text] == len(kinds):
                    kinds.append(found)
    of_word = np.fromiter((shape_of[text] for text in texts), np.int64, len(texts))
    spaces = np.fromiter(
        (len(word) - len(text) for word, text in zip(counts.words, texts, strict=True)), np.int32, len(texts)
    )
    return _assembled(counts, kinds, of_word, spaces)


def _head(texts: Sequence[str], counts: Counts, mass: float) -> list[str]:
    """The words to analyse, most frequent first; with spaces before them or without they are the same."""
    n: dict[str, int] = {}
    for text, times in zip(texts, counts.n.tolist(), strict=True):
        if text:
            n[text] = n.get(text, 0) + times
    return frequent_words(n, mass)


def _with_progress(asked: Sequence[str], rows: Iterable[str], on_progress: Done | None) -> Iterator[tuple[str, str]]:
    """Words and rows, with progress on the way."""
    for done, pair in enumerate(zip(asked, rows, strict=True), start=1):
        yield pair
        if on_progress and (done % 4096 == 0 or done == len(asked)):
            on_progress(done, len(asked))


def _assembled(
    counts: Counts, kinds: Sequence[Sequence[Cut]], shape: NDArray[np.int64], spaces: NDArray[np.int32]
) -> SegmentedCounts:
    """Every word with the cuts of its shape, moved behind its spaces; flat, as millions of words want it."""
    sizes = np.fromiter(map(len, kinds), np.int64, len(kinds))
    begins = np.cumsum(sizes) - sizes
    cuts = [cut for found in kinds for cut in found]
    n_cuts = sizes[shape]
    start = np.zeros(len(shape) + 1, np.int64)
    np.cumsum(n_cuts, out=start[1:])
    at = np.repeat(begins[shape] - start[:-1], n_cuts) + np.arange(start[-1])
    offset = np.fromiter((cut.offset for cut in cuts), np.int32, len(cuts))
    kind = np.fromiter((cut.kind for cut in cuts), np.uint8, len(cuts))
    confidence = np.fromiter((cut.confidence for cut in cuts), np.float32, len(cuts))
    moved = offset[at] + np.repeat(spaces, n_cuts)
    return SegmentedCounts(counts.words, counts.n, start, moved, kind[at], confidence[at], counts.seen)


def _segmented_in_jamo(
    counts: Counts, asked: list[str], segmenter: Segmenter, policy: Policy, on_progress: Done | None
) -> SegmentedCounts:
    """Cuts in conjoining jamo, where two words of one row need not be cut alike."""
    cuts: dict[str, list[Cut]] = {}
    for text, row in _with_progress(asked, serialized_rows(segmenter, asked), on_progress):
        morphemes = deserialize(text, row)
        found = _in_jamo(text, list(cuts_of(text, morphemes, policy)), codas_of(text, morphemes, policy))
        if found:
            cuts[text] = found
    spelled = [hangul.split(word) for word in counts.words]
    whole = SegmentedCounts.from_items(
        (letters, _shifted(word, cuts), n) for letters, (word, n) in zip(spelled, counts.items(), strict=True)
    )
    if counts.seen is None:
        return whole
    return replace(whole, seen=counts.seen[sorted(range(len(spelled)), key=spelled.__getitem__)])


def _in_jamo(text: str, cuts: list[Cut], codas: Iterable[Cut]) -> list[Cut]:
    """Cuts of a word as cuts of its jamo: between syllables, and before the finals that are morphemes of their own."""
    places: dict[int, Cut] = {}
    for cut in cuts:
        (at,) = hangul.split_cuts(text, [cut.offset])
        places[at] = cut._replace(offset=at)
    for cut in codas:
        (at,) = hangul.split_cuts(text, [(cut.offset, "coda")])
        places[at] = cut._replace(offset=at)
    return [places[at] for at in sorted(places)]


def _shifted(word: str, cuts: dict[str, list[Cut]]) -> Sequence[Cut]:
    """The cuts of a bare word, moved behind the spaces of this one."""
    text = word.lstrip(" ")
    found = cuts.get(text, [])
    spaces = len(word) - len(text)
    return [cut._replace(offset=cut.offset + spaces) for cut in found] if spaces else found
