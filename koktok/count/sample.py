"""The words to train on where there are too many: all frequent ones, and a sample that represents the rare ones.

A word with f occurrences is kept with the chance min(1, f / t), and a kept one represents
max(f, t) of them (sampling with chances proportional to size, Horvitz & Thompson 1952): whatever a trainer sums over words
is then right on average, and frequent words are exact. Nothing happens at a threshold: t grows from 1 with the text. Leaving
rare words out instead shifts every such sum, and with it what an option means: without the words that came once 20 MB of
text gave `balanced` F1 .598, and .722 with them. The drawing is systematic (Madow 1949), at even distances along
the code-point order, so that the words of every stem are thinned alike; an independent one needs a third more words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from koktok.count.counts import Counts

if TYPE_CHECKING:
    from numpy.typing import NDArray


WHOLE = 125_000
"""To here all distinct words are trained on (some 3 MB of text)."""


PHASE = 64
"""Words that are drawn at one phase. With one phase for all, of a text whose stems all have the same four forms the sample
might keep one form. Where a phase ends a word may be drawn twice, so that a sample may be some words short."""


def enough(words: int) -> int:
    """Return how many of so many distinct words are trained on by default: the geometric mean of them and `WHOLE`.

    Time and memory follow what is trained on (1.6 KB a word). Of 20 MB half of the words give the tokens of all of them
    within .3 %, and of 77 MB a third.
    """
    return words if words <= WHOLE else math.isqrt(words * WHOLE)


def sampled(counts: Counts, most: int) -> Counts:
    """At most `most` of the words, which represent all: `n` is the number of occurrences represented, `seen` that of the word itself."""
    weight = weights(counts.n, most)
    if bool((weight == counts.n).all()):
        return counts
    # Documents are thinned as occurrences are.
    documents = None if counts.documents is None else np.rint(counts.documents * (weight / counts.n)).astype(np.uint64)
    table = pl.DataFrame([counts.column, pl.Series("n", weight), pl.Series("seen", counts.n)])
    if documents is not None:
        table = table.with_columns(documents=documents)
    return Counts.from_frame(table.filter(weight > 0))


def weights(n: NDArray[np.uint64], most: int) -> NDArray[np.uint64]:
    """The number of occurrences that each word represents: 0 for a word that is left out; `n` where there are not too many words."""
    if len(n) <= most:
        return n
    times = n.astype(np.float64)
    least = _threshold(times, most)
    rare = np.flatnonzero(times < least)
    drawn = _drawn(times[rare] / least)
    # The occurrences that each represents, rounded along the order, so that their sum is right.
    represented = np.rint(np.cumsum(drawn) * (times[rare].sum() / drawn.sum()))
    represents = n.copy()
    represents[rare] = np.diff(represented, prepend=0.0).astype(np.uint64)
    return represents


def _threshold(n: NDArray[np.float64], most: int) -> float:
    """The t for which the chances min(1, n / t) add up to `most`."""
    falling = np.sort(n)[::-1]
    rest = np.cumsum(falling[::-1])[::-1]  # occurrences of each word and all rarer ones
    certain = np.arange(min(most, len(n)))  # so many words are kept for sure
    threshold = rest[certain] / (most - certain)
    return float(threshold[np.argmax(falling[certain] <= threshold)])


def _drawn(chances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how often each is drawn: their chances fill a line, which is drawn from at places with a distance of 1."""
    ends = np.cumsum(chances)
    n = round(float(ends[-1]))
    phases = np.repeat(np.random.default_rng(0).random(n // PHASE + 1), PHASE)[:n]
    places = np.searchsorted(ends, np.arange(n) + phases, side="right")
    return np.bincount(np.minimum(places, len(chances) - 1), minlength=len(chances))
