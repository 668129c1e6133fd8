"""The cuts between the morphemes of words; the analyser reads each distinct word once."""

from __future__ import annotations

import threading
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from koktok.bulk.texts import CODEC, Texts
from koktok.count import Counts
from koktok.hangul import has_syllable
from koktok.model.tokens import running
from koktok.segment import Policy, Segmenter, Whitespace, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.segmented import BoundaryKind

_ENDINGS = (BoundaryKind.JOSA, BoundaryKind.JOSA_CHAIN, BoundaryKind.EOMI, BoundaryKind.EOMI_CHAIN, BoundaryKind.COPULA)

MOST = 1 << 21
"""Words in memory, some 400 MB; the cache of analyses has all of them."""


class WordCuts:
    """The cuts of words, a function of the word, the analyser and the policy, kept in a dict.

    Examples
    --------
    >>> WordCuts(Whitespace(), Policy.parse("morphemes")).cuts(Texts.of(["집에"]))[0].tolist()
    [0, 0]
    """

    def __init__(self, segmenter: Segmenter, policy: Policy) -> None:
        self.segmenter, self.policy = segmenter, policy
        self._lock = threading.Lock()  # analysers and their cache serve one thread
        self._known: dict[str, tuple[tuple[int, bool], ...]] = {}

    @classmethod
    def of_kiwi(cls) -> WordCuts:
        """Return the cuts between all morphemes that Kiwi finds."""
        from koktok.segment.kiwi import KiwiSegmenter

        return cls(CachedSegmenter(KiwiSegmenter(threads=1)), Policy.parse("morphemes"))

    @property
    def none(self) -> bool:
        """Whether no word has cuts."""
        return isinstance(self.segmenter, Whitespace)

    def signature(self) -> str:
        """Return the names of the analyser and the policy."""
        kinds = ",".join(kind.label for kind in sorted(self.policy.kinds))
        return f"{self.segmenter.signature()}|{','.join([kinds, *self.policy.tags])}"

    def cuts(self, words: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the cuts of words: where those of each word begin, their offsets, and whether each begins an ending."""
        n = len(words.begins)
        if self.none:
            return np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        spaced = strings_of(words.data, words.begins, words.ends)
        bare = [word.lstrip(" ") for word in spaced]
        with self._lock:
            if len(self._known) > MOST:
                self._known.clear()
            self._learn([word for word in dict.fromkeys(bare) if word not in self._known and has_syllable(word)])
            rows = [self._known.get(word, ()) for word in bare]
        starts = running([len(cuts) for cuts in rows])
        before = [len(word) - len(alone) for word, alone in zip(spaced, bare, strict=True)]
        offsets = [spaces + offset for spaces, cuts in zip(before, rows, strict=True) for offset, _ in cuts]
        return starts, np.array(offsets, np.int64), np.array([ending for _, ending in chain(*rows)], np.bool_)

    def _learn(self, words: list[str]) -> None:
        if not words:
            return
        segmented = segment_counts(Counts.from_mapping(dict.fromkeys(words, 1)), self.segmenter, self.policy)
        cuts = [*zip(segmented.offset.tolist(), np.isin(segmented.kind, _ENDINGS).tolist(), strict=True)]
        for word, (start, end) in zip(segmented.words, pairwise(segmented.start.tolist()), strict=True):
            self._known[word] = tuple(cuts[start:end])


def strings_of(data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
    """Decode parts of UTF-16; all at once where every character is one unit, which is ten times as fast.

    Examples
    --------
    >>> texts = Texts.of(["가나", "다"])
    >>> strings_of(texts.data, texts.begins, texts.ends)
    ['가나', '다']
    """
    sizes = ends - begins
    offsets = running(sizes)
    flat = data[np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])]
    text = str(flat.data, CODEC)
    if len(text) == len(flat):
        return [text[a:b] for a, b in pairwise(offsets.tolist())]
    return [str(data[b:e].data, CODEC) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
