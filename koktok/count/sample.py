"""The words to train on where there are too many: all frequent ones, and a sample that represents the rare ones.

A word with f occurrences has the priority f / u, where u in (0, 1) is a hash of the word. The words of the highest priorities
are kept; with t, the highest priority that is left out, a word is kept with the chance min(1, f / t), and a kept one represents
max(f, t) occurrences (priority sampling: Duffield, Lund & Thorup 2007, after Horvitz & Thompson 1952). Whatever a trainer sums
over words is then right on average, and frequent words are exact. The sample is a function of the words and their counts: of
tables that come one after the other it is drawn in one pass, in memory of its own size, and their order, threads and machines
change nothing (laws 5 and 8).

Leaving rare words out instead shifts every such sum, and with it what an option means: without the words that came once 20 MB of
text gave `balanced` F1 .598, and .722 with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from koktok.count.counts import Counts, copied

WHOLE = 220_000
"""To here all distinct words are trained on (some 6 MB of text)."""

PER_ID = 4
"""The same for each id, where it is more: from 55,000 ids on. The last piece of a vocabulary of twice the size is half as frequent (Zipf), so
that its count in a sample is as sure with twice the words. At 128,000 ids and 60 MB boundary F1 is .728 so, .713 with a sample for 32,000 ids,
and .731 with all words."""

GROWS = 16_000_000
"""To here the sample grows with the distinct words (some gigabytes of text); 1.9 million are trained on then, in 3.1 GiB."""

_SLACK = 1.25
"""Rows that are held before the lowest priorities go, for each one that is wanted."""

_CHUNK = 1 << 18  # words that are hashed at once


def enough(words: int, vocab_size: int = 0) -> int:
    """Return how many of so many distinct words are trained on by default: the geometric mean of them and `WHOLE`, or `PER_ID`.

    Time and memory follow what is trained on (1.6 KB a word). Of 60 MB two words in five give the tokens of all of them within
    .2 %, a third within .4 %, and the same F1.
    """
    whole = max(WHOLE, PER_ID * vocab_size)
    return words if words <= whole else math.isqrt(min(words, GROWS) * whole)


class Sample:
    """A sample of at most so many words, drawn from tables that come one after the other; each word is in one of them.

    With `whole`, no sample is drawn of so many words or fewer.

    Examples
    --------
    >>> sample = Sample(2)
    >>> for table in ({" 집": 90, " 집에": 1}, {" 학교": 70, " 학교에": 1}):
    ...     sample.add(Counts.from_mapping(table).frame)
    >>> sample.words, sample.total, sample.counts().words
    (4, 162, (' 집', ' 학교'))
    """

    def __init__(self, most: int, whole: int = 0) -> None:
        self.words = self.total = 0
        self._most, self._whole = most, max(most, whole)
        self._least = 0.0
        self._kept: list[pl.DataFrame] = []

    def add(self, table: pl.DataFrame) -> None:
        """Draw from a table with the columns `word`, `n` and perhaps `documents`; words with the number 0 are left out."""
        table = table.filter(pl.col.n > 0)
        self.words += len(table)
        self.total += int(table["n"].sum())
        if self._least:
            table = copied(table.filter(_priorities(table) >= self._least))
        self._kept.append(table)
        if self.words > self._whole and sum(map(len, self._kept)) > _SLACK * self._most + 1:
            whole = pl.concat(self._kept)
            priorities = _priorities(whole)
            self._least = _highest(priorities, self._most + 1)  # with the highest that is left out
            self._kept = [copied(whole.filter(priorities >= self._least))]

    def counts(self, most: int | None = None) -> Counts:
        """The sample, or one of fewer words: `n` is the number of occurrences represented, `seen` that of the word itself."""
        nothing = pl.DataFrame(schema={"word": pl.String, "n": pl.UInt64})
        table = pl.concat(self._kept or [nothing]).sort("word")
        most = self._most if most is None else min(most, self._most)
        if self.words <= (most if most < self._most else self._whole):
            return Counts.from_frame(table)
        priorities = _priorities(table)
        least = _highest(priorities, most + 1)
        table = copied(table.filter(priorities > least))
        n = table["n"].to_numpy()
        rare = n < least
        represents = n.copy()
        if drawn := int(rare.sum()):
            # Each represents t occurrences; so much more or less that they add up to the total, and rounded along the order.
            each = (self.total - int(n[~rare].sum())) / drawn
            represents[rare] = np.diff(np.rint(np.arange(drawn + 1) * each)).astype(np.uint64)
        if "documents" in table.columns:  # thinned as occurrences are
            documents = np.rint(table["documents"].to_numpy() * (represents / n)).astype(np.uint64)
            table = table.with_columns(documents=pl.Series(documents))
        return Counts.from_frame(table.with_columns(n=pl.Series(represents), seen=pl.Series(n)))


def drawn_from(tables: Iterable[pl.DataFrame], most: int, whole: int = 0) -> Sample:
    """Draw a sample from tables."""
    sample = Sample(most, whole)
    for table in tables:
        sample.add(table)
    return sample


def sampled(counts: Counts, most: int) -> Counts:
    """At most `most` of some words, which represent all of them; the same counts where there are not more."""
    return counts if len(counts) <= most else drawn_from([counts.frame], most).counts()


def _highest(priorities: NDArray[np.float64], number: int) -> float:
    """The priority with this number, from the highest on."""
    return float(np.partition(priorities, len(priorities) - number)[len(priorities) - number])


def _priorities(table: pl.DataFrame) -> NDArray[np.float64]:
    """The priority of each word."""
    hashes = [_hashes_of(some) for some in table["word"].to_frame().iter_slices(_CHUNK)]
    u = (np.concatenate([np.zeros(0, np.uint64), *hashes]) >> np.uint64(11)) * 2.0**-53 + 2.0**-54
    priorities: NDArray[np.float64] = table["n"].to_numpy() / u
    return priorities


def _hashes_of(words: pl.DataFrame) -> NDArray[np.uint64]:
    data = np.frombuffer(words["word"].str.join().item().encode(), np.uint8)
    hashes: NDArray[np.uint64] = _hashes(data, words["word"].str.len_bytes().cast(pl.Int64).to_numpy())
    return hashes


@njit(nogil=True, cache=True)
def _hashes(data, sizes):
    """FNV-1a of each word's bytes, mixed as MurmurHash3 ends: of no library's version, and the same on every machine."""
    found = np.empty(len(sizes), np.uint64)
    at = 0
    for i in range(len(sizes)):
        key = np.uint64(0xCBF29CE484222325)
        for _ in range(sizes[i]):
            key = (key ^ np.uint64(data[at])) * np.uint64(0x100000001B3)
            at += 1
        key = (key ^ (key >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
        key = (key ^ (key >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
        found[i] = key ^ (key >> np.uint64(33))
    return found
