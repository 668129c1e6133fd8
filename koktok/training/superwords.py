"""Superwords: pieces that cross spaces (수 있, 는 것 같, 에 대한), learnt from runs of eojeols.

The input is that of words, with runs in place of words: a run is a stretch of text up to a sentence end, with the cuts of its
words. The trainer needs nothing new: spaces are nodes like any other, a piece may swallow them at no cost, and the same cost
decides whether an id is better spent inside words or across them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from koktok.count import Counts, words_of
from koktok.errors import InputError
from koktok.hangul import SYLLABLE
from koktok.segment.segmented import SegmentedCounts

_PLAIN = re.compile(f" ?[{SYLLABLE}]+(?: [{SYLLABLE}]+)+")


@dataclass(frozen=True)
class SuperwordPolicy:
    """Which strings may cross a space, besides swallowing no cut inside an eojeol and ending where a word or a cut does."""

    share: float = 0.4
    min_count: int = 10
    min_runs: int = 6
    min_documents: int = 8
    inner: bool = False
    lexical: float = 0.75
    """A piece that begins inside a word is one where its words have this beginning in so many of their places: 에 대한, and not 을 만났."""
    pattern: str = _PLAIN.pattern

    def looks_right(self, piece: str) -> bool:
        """True where the pattern holds.

        Examples
        --------
        >>> policy = SuperwordPolicy()
        >>> [policy.looks_right(piece) for piece in ("는 것", " 수 있", "는 ", "다. 그")]
        [True, True, False, False]
        """
        return re.fullmatch(self.pattern, piece) is not None


def crosses_space(piece: str) -> bool:
    """True if a piece holds a space after its first word."""
    return " " in piece.lstrip(" ")


def segment_runs(runs: Counts, words: SegmentedCounts) -> SegmentedCounts:
    """Counted runs with the cuts of their words."""
    from koktok.count.prepared import words_in

    starts, ids, before = words_in(runs, words.words)
    if (ids < 0).any():
        first = int(np.flatnonzero(ids < 0)[0])
        run = int(np.searchsorted(starts, first, side="right")) - 1
        word = words_of(runs.words[run])[first - int(starts[run])]
        raise InputError(f"the run {runs.words[run]!r} has the word {word!r}, which was not segmented")
    n_cuts = words.start[ids + 1] - words.start[ids]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_cuts)])
    at = np.repeat(words.start[ids] - ends[:-1], n_cuts) + np.arange(ends[-1])
    offset = (words.offset[at] + np.repeat(before, n_cuts)).astype(np.int32)
    frequency = np.repeat(words.own[ids] * (1e6 / max(words.total, 1)), n_cuts)
    return SegmentedCounts(
        runs.words, runs.n, ends[starts], offset, words.kind[at], words.confidence[at], runs.seen, frequency
    )


def eojeol_counts(counts: SegmentedCounts) -> NDArray[np.float64]:
    """For every cut, how often in a million eojeols its own eojeol occurs."""
    if counts.frequency is not None:
        return counts.frequency
    if not any(map(crosses_space, counts.words)):
        return np.repeat(counts.own * (1e6 / max(counts.total, 1)), np.diff(counts.start))
    n: dict[str, int] = {}
    where = [words_of(word) for word in counts.words]
    for words, times in zip(where, counts.n.tolist(), strict=True):
        for word in words:
            n[word] = n.get(word, 0) + times
    million = 1e6 / max(sum(n.values()), 1)
    found = np.zeros(len(counts.offset))
    starts, offsets = counts.start.tolist(), counts.offset.tolist()
    for i, words in enumerate(where):
        j, at = starts[i], 0
        for word in words:
            at += len(word)
            while j < starts[i + 1] and offsets[j] < at:
                found[j] = n[word] * million
                j += 1
    return found


def spaces(codes: NDArray[np.uint32], first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Running number of gaps: places where a space follows a character of the same word or run that is none.

    A string of k characters at place p crosses a space where the number at p + k - 1 is over the number at p.
    """
    space = codes == ord(" ")
    gap = space.copy()
    gap[1:] &= ~space[:-1]
    gap[first] = False
    return np.cumsum(gap)
