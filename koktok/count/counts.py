"""`Counts`: distinct words with counts, the input of every later stage.

A word (eojeol 어절) is a run of spaces and the run of other characters after it, so the words of a line join back to the
line, and normalizing or pre-tokenizing each distinct word once is exact.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from koktok.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


WORD = " *[^ ]+| +"
"""A word as a regular expression; spaces at the end of a line are a word."""

BY_WORD = ("word", "n")
"""The order of tables of distinct words. The second key changes nothing, but polars sorts rows of two columns three times as fast."""

_WORD = re.compile(WORD)


def words_of(line: str) -> list[str]:
    """Split a line into words: leading spaces and the characters after them; spaces at the end are a word.

    Examples
    --------
    >>> words_of("나는  집에 ")
    ['나는', '  집에', ' ']
    """
    if "  " not in line and not line.startswith(" ") and not line.endswith(" "):
        first, *rest = line.split(" ")
        return [first, *[" " + word for word in rest]] if first else []
    return _WORD.findall(line)


@dataclass(frozen=True)
class Dropped:
    """The words left out by a minimum count.

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
    """Distinct words with counts, in code-point order.

    Counts merge commutatively: a count split over any number of shards equals the whole. The words are available as a tuple
    of strings and as a polars column; each is built from the other on first use.

    Examples
    --------
    >>> Counts.from_mapping({" 집": 2, "집": 1}) + Counts.from_mapping({" 집": 3})
    Counts(words=2, total=6)
    """

    def __init__(
        self,
        words: tuple[str, ...],
        n: NDArray[np.uint64],
        documents: NDArray[np.uint64] | None = None,
        seen: NDArray[np.uint64] | None = None,
    ) -> None:
        self.words = words
        self.n = n
        self.documents = documents
        self.seen = seen

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, int]) -> Counts:
        """Counts of a mapping of word to number; zeros are left out."""
        words = tuple(sorted(word for word, n in mapping.items() if n > 0))
        return cls(words, np.fromiter((mapping[word] for word in words), dtype=np.uint64, count=len(words)))

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Counts:
        """The rows of a table with the columns `word`, `n` and perhaps `documents` and `seen`, distinct and in code-point order."""
        counts = cls.__new__(cls)
        counts.n = frame["n"].to_numpy()
        counts.documents = frame["documents"].to_numpy() if "documents" in frame.columns else None
        counts.seen = frame["seen"].to_numpy() if "seen" in frame.columns else None
        counts.__dict__["column"] = frame["word"]
        return counts

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, sorted by code point."""
        return tuple(self.column)

    @cached_property
    def column(self) -> pl.Series:
        """The words as a column of a table."""
        import polars as pl

        return pl.Series("word", self.words, pl.String)

    @property
    def frame(self) -> pl.DataFrame:
        """The counts as a table with the columns `word`, `n` and, where there are such numbers, `documents` and `seen`."""
        import polars as pl

        columns = {"n": self.n, "documents": self.documents, "seen": self.seen}
        there = [pl.Series(name, values, pl.UInt64) for name, values in columns.items() if values is not None]
        return pl.DataFrame([self.column, *there])

    def __repr__(self) -> str:
        return f"Counts(words={len(self)}, total={self.total})"

    def __len__(self) -> int:
        return len(self.n)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts) or not np.array_equal(self.n, other.n):
            return False
        if "words" in self.__dict__ and "words" in other.__dict__:
            return self.words == other.words
        return self.column.equals(other.column)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Counts) -> Counts:
        counted = all(counts.documents is not None for counts in (self, other) if len(counts))
        columns = ["word", "n", "documents"] if counted else ["word", "n"]
        frames = [counts.frame for counts in (self, other) if len(counts)]
        return Counts.from_frame(summed([frame.select(columns) for frame in frames])) if frames else self

    @property
    def total(self) -> int:
        """Running words: the sum of all counts."""
        return int(self.n.sum())

    def items(self) -> Iterator[tuple[str, int]]:
        """Pairs of word and count, in code-point order."""
        words = self.words if "words" in self.__dict__ else self.column
        return zip(words, self.n.tolist(), strict=True)

    def as_dict(self) -> dict[str, int]:
        """The counts as a plain dict."""
        return dict(self.items())

    def at_least(self, minimum: int) -> Counts:
        """Only the words that occur `minimum` times or more."""
        return self.pruned(minimum)[0]

    def pruned(self, minimum: int) -> tuple[Counts, Dropped]:
        """Only the words that occur `minimum` times or more, and a summary of the others."""
        keep = self.n >= max(1, minimum)
        if bool(keep.all()):
            return self, Dropped(0, 0, self.total)
        kept = Counts.from_frame(self.frame.filter(keep))
        return kept, Dropped(len(self) - len(kept), self.total - kept.total, self.total)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of all words and counts: equal counts, equal digest."""
        sha = hashlib.sha256()
        pairs = self.items()
        while some := list(islice(pairs, 1 << 14)):
            sha.update("".join(f"{word}\t{n}\0" for word, n in some).encode())
        return sha.hexdigest()[:16]


def count_words(lines: Iterable[str]) -> Counts:
    """Count the words of lines that are in memory."""
    if isinstance(lines, str):
        raise InputError("expected lines, got one `str`", hint="count_words([text])")
    counter: Counter[str] = Counter()
    for line in lines:
        counter.update(words_of(line))
    return Counts.from_mapping(counter)


def copied(table: pl.DataFrame) -> pl.DataFrame:
    """A table with words in memory of its own; rows that polars selects from a table keep the memory of all words of it."""
    return table.with_columns(table["word"] + "")


def summed(frames: Sequence[pl.DataFrame | pl.LazyFrame]) -> pl.DataFrame:
    """Sum tables of counts, in any number and order."""
    import polars as pl

    return pl.concat([frame.lazy() for frame in frames]).group_by("word").sum().sort(BY_WORD).collect()
