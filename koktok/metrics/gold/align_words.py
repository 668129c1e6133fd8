"""Assignment of morphemes to the words of a sentence, for files with a line and the flat list of its morphemes.

Words are filled from left to right at least cost of alignment, so that a contraction at the end of one
word does not pull the next one along; a few ways to go on are kept at every word, because the cheapest may end badly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from koktok.segment.align import letters, surface_cuts

SLACK: Final = 10
"""Letters by which the morphemes of one word may be longer or shorter than it: 것+이+ᆸ니다 has five more than 겁니다."""

KEPT: Final = 5
"""Alignments of the words so far that are followed."""


def align_words(words: Sequence[str], morphemes: Sequence[str]) -> list[int] | None:
    """How many morphemes each word takes, in order; None where no alignment comes near the words.

    Examples
    --------
    >>> align_words(["집에서", "갔다"], ["집", "에서", "가", "았", "다"])
    [2, 3]
    >>> align_words(["집에서", "갔다"], ["집"]) is None
    True
    """
    sizes = [0, *accumulate(len(letters(morpheme)) for morpheme in morphemes)]
    ways: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for word in words:
        best: dict[int, tuple[float, tuple[int, ...]]] = {}
        for start, (cost, counts) in sorted(ways.items()):
            for end, more in _ends(word, morphemes, sizes, start):
                if end not in best or cost + more < best[end][0]:
                    best[end] = cost + more, (*counts, end - start)
        ways = dict(sorted(best.items(), key=lambda item: (item[1][0], item[0]))[:KEPT])
    return list(ways[len(morphemes)][1]) if len(morphemes) in ways else None


def _ends(word: str, morphemes: Sequence[str], sizes: Sequence[int], start: int) -> list[tuple[int, float]]:
    """Where the morphemes of a word that begin here may end, and at what cost; where they simply join, nothing else."""
    joined = ""
    for end in range(start, len(morphemes)):
        joined += morphemes[end]
        if joined == word:
            return [(end + 1, 0.0)]
        if not word.startswith(joined):
            break
    length = len(letters(word))
    low, high = sizes[start] + length - SLACK, sizes[start] + length + SLACK
    return [
        (end, surface_cuts(word, morphemes[start:end]).cost * max(length, sizes[end] - sizes[start]))
        for end in range(max(start + 1, bisect_left(sizes, low)), bisect_right(sizes, high))
    ]
