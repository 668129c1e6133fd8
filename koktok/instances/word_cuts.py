"""Cuts of words: what the analyser says of a word, kept so that a word is asked about once on a machine.

This file adds: a table that compiled code looks into. The cache of analyses (`koktok.segment.cache`) keeps what Kiwi said, and
reading it costs some 25 microseconds a word; here stands what follows from that under one policy, 24 bytes a word, and a million
words are looked up in a quarter of a second. A word is known by 128 bits of its letters, so that of a billion words no two are
likely to share them (chance 10⁻²¹).
"""

from __future__ import annotations

import threading
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.bulk.texts import CODEC, Texts
from koktok.count import Counts
from koktok.files import write_file
from koktok.segment import Policy, Whitespace, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.segmented import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from koktok.segment import Segmenter


_ENDINGS = (Kind.JOSA, Kind.JOSA_CHAIN, Kind.EOMI, Kind.EOMI_CHAIN, Kind.COPULA)

LONGEST = 33
"""Units of UTF-16 of a word that the table holds: its 32 inner places, and an ending or not at each, are 64 bits."""

MOST = 1 << 22
"""Words in the table, 100 MB; of a larger text the others are looked up in the cache of analyses."""

_EMPTY = np.zeros((0, 3), np.uint64)
_FIRST, _SECOND = np.uint64(0x9FB21C651E98DF25), np.uint64(0xD2E7470EE14C6C93)
_HALF, _ODD = np.uint64(32), np.uint64(29)


class WordCuts:
    """Cuts of words, as the trainer sees them: a function of the word, the analyser and the policy, and of no text.

    Parameters
    ----------
    segmenter : Segmenter
        Best one with a cache: every distinct word of the text is asked for. The table lies beside its file.
    policy : Policy
        Which borders count.

    Examples
    --------
    >>> WordCuts(Whitespace(), Policy.parse("morphemes")).cuts(Texts.of(["집에"]))[0].tolist()
    [0, 0]
    """

    def __init__(self, segmenter: Segmenter, policy: Policy) -> None:
        self.segmenter, self.policy = segmenter, policy
        self._lock = threading.Lock()  # analysers and their cache are for one thread
        self._table = _EMPTY
        self._fresh: list[NDArray[np.uint64]] = []
        self._file: Path | None = None
        if isinstance(segmenter, CachedSegmenter):
            name = sha256(self.signature().encode()).hexdigest()[:16]
            self._file = segmenter.path.with_name(f"{name}.cuts.npy")
            self._table = self._read()

    @classmethod
    def of_kiwi(cls) -> WordCuts:
        """Cuts between all morphemes, as Kiwi has them."""
        from koktok.segment.kiwi import KiwiSegmenter

        return cls(CachedSegmenter(KiwiSegmenter(threads=1)), Policy.parse("morphemes"))

    @property
    def none(self) -> bool:
        """Whether it cuts no word at all."""
        return isinstance(self.segmenter, Whitespace)

    def signature(self) -> str:
        """What the cuts depend on."""
        kinds = ",".join(kind.label for kind in sorted(self.policy.kinds))
        return f"{self.segmenter.signature()}|{','.join([kinds, *self.policy.tags])}"

    def cuts(self, words: Texts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """The cuts of words.

        Parameters
        ----------
        words : Texts
            Normal, each with the spaces before it.

        Returns
        -------
        starts : ndarray of int64, shape (words + 1,)
            The cuts of word i are those from `starts[i]` to `starts[i + 1]`.
        offsets : ndarray of int64
            Code points from the beginning of the word.
        endings : ndarray of bool
            Whether a particle, ending or copula follows.
        """
        n = len(words.begins)
        if self.none:
            return np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
        bare = np.empty(n, np.int64)
        rows = np.zeros((n, 3), np.uint64)
        asked = np.empty(n, np.bool_)
        _keys(words.data, words.begins, words.ends, bare, rows, asked)
        with self._lock:
            missing = np.flatnonzero(asked & ~_look_up(self._table, rows))
            word, offset, ending = _unpacked(rows)
            if len(missing):
                more = self._asked(words, bare, rows, missing)
                word, offset, ending = (np.concatenate(pair) for pair in zip((word, offset, ending), more, strict=True))
                order = np.argsort(word, kind="stable")
                word, offset, ending = word[order], offset[order], ending[order]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(word, minlength=n))])
        return starts, offset + (bare - words.begins)[word], ending

    def _asked(
        self, words: Texts, bare: NDArray[np.int64], rows: NDArray[np.uint64], missing: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Cuts of words that the table does not have, as (word, offset, ending), and into the table with them."""
        texts = strings_of(words.data, bare[missing], words.ends[missing])
        found = segment_counts(Counts.from_mapping(dict.fromkeys(texts, 1)), self.segmenter, self.policy)
        row_of = {text: i for i, text in enumerate(found.words)}
        which = np.fromiter((row_of[text] for text in texts), np.int64, len(texts))
        sizes = np.diff(found.start)[which]
        at = np.repeat(found.start[which], sizes) + _within(sizes)
        word, offset, ending = (
            np.repeat(missing, sizes),
            found.offset[at].astype(np.int64),
            np.isin(found.kind[at], _ENDINGS),
        )
        if self._file is not None and len(self._table) + sum(map(len, self._fresh)) < MOST:
            lost = getattr(
                getattr(self.segmenter, "inner", None), "quarantined", ()
            )  # another run may have better luck
            known = np.array([text not in lost for text in texts]) & ((words.ends - bare)[missing] <= LONGEST)
            learnt = rows[missing]
            place = np.repeat(np.arange(len(missing)), sizes)
            bits = np.uint64(1) << (offset - 1).astype(np.uint64) % _HALF
            np.bitwise_or.at(learnt[:, 2], place, bits | np.where(ending, bits << _HALF, np.uint64(0)))
            if known.any():
                self._fresh.append(learnt[known])
        return word, offset, ending

    def save(self) -> None:
        """Keep what was learnt for the next time; where the disk says no, the next time asks again."""
        with self._lock:
            if self._file is None or not self._fresh:
                return
            known = self._read()  # another run may have written since
            both = np.concatenate([known, *self._fresh])[:MOST]
            both = both[np.lexsort((both[:, 1], both[:, 0]))]
            twice = (both[1:, :2] == both[:-1, :2]).all(axis=1)
            self._table, self._fresh = both[np.append(True, ~twice)], []
            if len(self._table) > len(known):
                write_file(self._file, self._write)

    def _write(self, path: Path) -> None:
        with path.open("wb") as out:
            np.save(out, self._table)

    def _read(self) -> NDArray[np.uint64]:
        try:
            found = np.load(self._file, mmap_mode="r", allow_pickle=False) if self._file else _EMPTY
        except (OSError, ValueError):
            return _EMPTY
        return found if found.ndim == 2 and found.shape[1] == 3 and found.dtype == np.uint64 else _EMPTY


def strings_of(data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
    """Parts of UTF-16 as strings: decoded together where a character is a unit, which is ten times as fast.

    Examples
    --------
    >>> texts = Texts.of(["가나", "다"])
    >>> strings_of(texts.data, texts.begins, texts.ends)
    ['가나', '다']
    """
    sizes = ends - begins
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    flat = data[np.repeat(begins, sizes) + _within(sizes)]
    text = str(flat.data, CODEC)
    if len(text) == len(flat):
        return [text[a:b] for a, b in pairwise(offsets.tolist())]
    return [str(data[b:e].data, CODEC) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]


def _within(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of every item among those of its list."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _unpacked(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """The cuts in bits, as (word, offset, ending)."""
    cut = np.flatnonzero(rows[:, 2])
    bits = rows[cut, 2]
    word, place = np.nonzero((bits[:, None] >> np.arange(32, dtype=np.uint64)) & np.uint64(1))
    ending = (bits[word] >> (place.astype(np.uint64) + _HALF)) & np.uint64(1) != 0
    return cut[word], place + 1, ending


@njit(nogil=True, cache=True)
def _keys(data, begins, ends, bare, rows, asked):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where each word begins behind its spaces, its 128 bits, and whether an analyser has something to say about it."""
    for i in range(len(begins)):
        at = begins[i]
        while at < ends[i] and data[at] == 32:
            at += 1
        bare[i], asked[i] = at, False
        first, second = np.uint64(ends[i] - at) * _SECOND, _FIRST
        for k in range(at, ends[i]):
            unit = np.uint64(data[k])
            asked[i] |= 0xAC00 <= data[k] <= 0xD7A3
            first = (first ^ unit) * _FIRST
            first ^= first >> _HALF
            second = (second + unit) * _SECOND
            second ^= second >> _ODD
        rows[i, 0], rows[i, 1] = first * _SECOND ^ (first >> _ODD), second


@njit(nogil=True, cache=True)
def _look_up(table, rows):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill in the cuts of words that the table has; which those are."""
    known = np.zeros(len(rows), np.bool_)
    n = len(table)
    for i in range(len(rows)):
        first, second = rows[i, 0], rows[i, 1]
        # Keys are spread evenly, so that a key's place is nearly its share of 2**64.
        at = int(np.float64(first) / 18446744073709551616.0 * n)
        low, high, step = min(at, n - 1), 0, 64
        if table[low, 0] >= first:
            high = low
            while low > 0 and table[low, 0] >= first:
                high = low
                low, step = max(low - step, 0), step * 2
        else:
            high = low
            while high < n - 1 and table[high, 0] < first:
                low = high
                high, step = min(high + step, n - 1), step * 2
        while low < high:  # the first row whose key is not less
            middle = (low + high) // 2
            if table[middle, 0] < first:
                low = middle + 1
            else:
                high = middle
        while low < n and table[low, 0] == first:
            if table[low, 1] == second:
                rows[i, 2], known[i] = table[low, 2], True
            low += 1
    return known
