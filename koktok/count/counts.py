"""`Counts`: what every later stage works on, so that nothing is done per word that can be done per distinct word (waist 1).

This file adds: the type. Its words are a tuple of strings for whoever wants to read them, and flat bytes for whoever has
millions; each is made from the other when it is first asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from koktok.count.rows import Rows, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Counts", "Dropped"]


@dataclass(frozen=True)
class Dropped:
    """What a minimum count left out.

    Parameters
    ----------
    words, n : int
        Distinct words and their occurrences.
    of : int
        Occurrences of all words before.

    Examples
    --------
    >>> str(Dropped(3, 5, 50))
    '3 words, 10.00 % of the running ones'
    """

    words: int = 0
    n: int = 0
    of: int = 0

    def __str__(self) -> str:
        words = "1 word" if self.words == 1 else f"{self.words:,} words"
        return f"{words}, {100 * self.n / max(1, self.of):.2f} % of the running ones"


class Counts:
    """Distinct words with how often they occur, in code-point order (waist 1).

    Counts merge commutatively: a count split over any number of shards equals the whole (law 8).

    Parameters
    ----------
    words : tuple of str
        Sorted by code point, distinct.
    n : ndarray of uint64, shape (len(words),)
        Occurrences of each.
    documents : ndarray of uint64, optional
        Documents that hold each.

    Examples
    --------
    >>> Counts.from_mapping({" 집": 2, "집": 1}) + Counts.from_mapping({" 집": 3})
    Counts(words=2, total=6)
    """

    def __init__(
        self, words: tuple[str, ...], n: NDArray[np.uint64], documents: NDArray[np.uint64] | None = None
    ) -> None:
        self.words = words
        self.n = n
        self.documents = documents

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, int]) -> Counts:
        """Counts of a plain mapping of word to number; zeros are left out."""
        words = tuple(sorted(word for word, n in mapping.items() if n > 0))
        return cls(words, np.fromiter((mapping[word] for word in words), dtype=np.uint64, count=len(words)))

    @classmethod
    def from_rows(cls, rows: Rows, *, held: bool = False) -> Counts:
        """The words of a table that occur: in the lines that are trained on, or in those that are held out."""
        n = rows.held if held else rows.n
        rows = rows.where(n > 0)
        counts = cls.__new__(cls)
        counts.n = rows.held if held else rows.n
        counts.documents = None if held else rows.documents
        counts.__dict__["flat"] = (rows.data, rows.offsets)
        return counts

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, sorted by code point."""
        return tuple(self.rows())

    @cached_property
    def flat(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The words as UTF-8, one behind the other, and where they begin."""
        return flat(self.words)

    def rows(self) -> Rows:
        """The counts as a table; documents are 0 where nobody counted them."""
        zeros = np.zeros_like(self.n)
        return Rows(*self.flat, self.n, zeros if self.documents is None else self.documents, zeros)

    def __repr__(self) -> str:
        return f"Counts(words={len(self)}, total={self.total})"

    def __len__(self) -> int:
        return len(self.n)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts) or not np.array_equal(self.n, other.n):
            return False
        (data, offsets), (others, starts) = self.flat, other.flat
        return np.array_equal(offsets, starts) and np.array_equal(data, others)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Counts) -> Counts:
        from koktok.count.engine import OwnEngine, total

        rows = total([self.rows(), other.rows()], OwnEngine(1))
        merged = Counts.from_rows(rows)
        if (self.documents is None and len(self)) or (other.documents is None and len(other)):
            merged.documents = None
        return merged

    @property
    def total(self) -> int:
        """Running words: the sum of all counts."""
        return int(self.n.sum())

    def items(self) -> Iterator[tuple[str, int]]:
        """Pairs of word and count, in code-point order."""
        words = self.words if "words" in self.__dict__ else self.rows()
        return zip(words, self.n.tolist(), strict=True)

    def as_dict(self) -> dict[str, int]:
        """The counts as a plain dict."""
        return dict(self.items())

    def at_least(self, minimum: int) -> Counts:
        """Only the words that occur `minimum` times or more."""
        return self.pruned(minimum)[0]

    def pruned(self, minimum: int) -> tuple[Counts, Dropped]:
        """Only the words that occur `minimum` times or more, and what that leaves out."""
        keep = self.n >= max(1, minimum)
        if bool(keep.all()):
            return self, Dropped(0, 0, self.total)
        kept = Counts.from_rows(self.rows().where(keep))
        if self.documents is None:
            kept.documents = None
        return kept, Dropped(len(self) - len(kept), self.total - kept.total, self.total)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of all words and counts: equal counts, equal digest."""
        sha = hashlib.sha256()
        pairs = self.items()
        while some := list(islice(pairs, 1 << 14)):
            sha.update("".join(f"{word}\t{n}\0" for word, n in some).encode())
        return sha.hexdigest()[:16]
