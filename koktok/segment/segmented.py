"""`SegmentedCounts`: distinct words with counts and cuts, the only input of a trainer.

A cut is an offset between two pieces of one word, with the kind of boundary and the confidence of the analyser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from koktok.count import Counts
from koktok.errors import InputError


class BoundaryKind(IntEnum):
    """The kind of a boundary, by the morphemes on its two sides; boundary policies use the names in lower case.

    Examples
    --------
    >>> BoundaryKind.JOSA.label, BoundaryKind["COPULA"].value
    ('josa', 3)
    """

    JOSA = 0  # 학교|에서: noun and particle (조사)
    JOSA_CHAIN = 1  # 에서|는: particle and particle
    EOMI = 2  # 먹|었: stem and ending (어미)
    COPULA = 3  # 학생|이, 이|다: noun and copula (지정사), copula and ending
    EOMI_CHAIN = 4  # 었|다: ending and ending
    DERIVATION = 5  # 공부|하, 학생|들: before a derivational suffix (접미사)
    PREFIX = 6  # 맨|손: behind a prefix (접두사)
    COMPOUND = 7  # 국어|사전: two content words (합성어)
    AUXILIARY = 8  # 먹어|보다: a verb behind an ending, without a space
    NUMERAL = 9  # 3|개: a number and its unit
    PUNCTUATION = 10  # 다|. : a symbol on either side
    OTHER = 11  # anything else, for instance 한국어|tokenizer
    # Borders that analysers draw and most people do not (the shares stand beside `TRUST` in training/lattice.py):
    SUFFIX = 12  # 가능|성, 구체|화: before a suffix that only makes another noun
    BOUND = 13  # 외교|사, 남|희: two nouns, one of them a single syllable
    MODIFIER = 14  # 못|하, 전|세계, 멋|있: an adverb, determiner or noun, written together with the word behind it
    ROOT = 15  # 그러|하, 이러|하: a pointing root (지시 어근) and its suffix, one word to a dictionary

    @property
    def label(self) -> str:
        """The name in lower case, as recipes spell it."""
        return self.name.lower()


class Cut(NamedTuple):
    """One boundary inside a word."""

    offset: int
    kind: BoundaryKind = BoundaryKind.OTHER
    confidence: float = 1.0


@dataclass(frozen=True, eq=False)
class SegmentedCounts:
    """Distinct words with counts and cuts, in flat arrays.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서|는": 3, " 집": 1})
    >>> [cut.offset for cut in counts.cuts(1)], counts.pieces(1), counts.total
    ([3, 5], [' 학교', '에서', '는'], 4)
    """

    words: tuple[str, ...]
    n: NDArray[np.uint64]
    start: NDArray[np.int64]
    offset: NDArray[np.int32]
    kind: NDArray[np.uint8]
    confidence: NDArray[np.float32]
    seen: NDArray[np.uint64] | None = None
    frequency: NDArray[np.float64] | None = None

    @classmethod
    def from_items(cls, items: Iterable[tuple[str, Sequence[Cut], int]]) -> SegmentedCounts:
        """Counts of (word, cuts, n) triples in any order; each word once."""
        rows = sorted(items, key=lambda row: row[0])
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        flat: list[Cut] = []
        previous = None
        for i, (word, cuts, _) in enumerate(rows):
            if word == previous:
                raise InputError(f"expected every word once, got {word!r} twice")
            previous = word
            ordered = sorted(cuts)
            if any(not 0 < cut.offset < len(word) for cut in ordered):
                raise InputError(f"cuts {[cut.offset for cut in ordered]} do not lie inside the word {word!r}")
            flat += ordered
            start[i + 1] = len(flat)
        return cls(
            words=tuple(row[0] for row in rows),
            n=np.fromiter((row[2] for row in rows), dtype=np.uint64, count=len(rows)),
            start=start,
            offset=np.fromiter((cut.offset for cut in flat), dtype=np.int32, count=len(flat)),
            kind=np.fromiter((cut.kind for cut in flat), dtype=np.uint8, count=len(flat)),
            confidence=np.fromiter((cut.confidence for cut in flat), dtype=np.float32, count=len(flat)),
        )

    @classmethod
    def uncut(cls, counts: Counts) -> SegmentedCounts:
        """Counted words without any cut."""
        none = np.zeros(0, dtype=np.int32)
        start = np.zeros(len(counts) + 1, dtype=np.int64)
        return cls(tuple(counts.words), counts.n, start, none, none.astype(np.uint8), none.astype(np.float32))

    @classmethod
    def from_marked(cls, marked: dict[str, int]) -> SegmentedCounts:
        """Counts of words written with `|` at their cuts: what tests and examples use."""
        items = []
        for text, n in marked.items():
            parts = text.split("|")
            ends = np.cumsum([len(part) for part in parts])[:-1].tolist()
            items.append(("".join(parts), [Cut(end) for end in ends], n))
        return cls.from_items(items)

    def __repr__(self) -> str:
        return f"SegmentedCounts(words={len(self.words)}, cuts={len(self.offset)}, total={self.total})"

    def __len__(self) -> int:
        return len(self.words)

    @property
    def total(self) -> int:
        """Running words: the sum of all counts."""
        return int(self.n.sum())

    @property
    def own(self) -> NDArray[np.uint64]:
        """Occurrences of each word itself; `n`, unless words were sampled."""
        return self.n if self.seen is None else self.seen

    @property
    def represents(self) -> NDArray[np.float64]:
        """The number of words that each word represents: one, unless words were sampled."""
        return self.n / self.own

    def cuts(self, i: int) -> list[Cut]:
        """The cuts of word `i`, ascending."""
        span = slice(int(self.start[i]), int(self.start[i + 1]))
        return [
            Cut(offset, BoundaryKind(kind), confidence)
            for offset, kind, confidence in zip(
                self.offset[span].tolist(), self.kind[span].tolist(), self.confidence[span].tolist(), strict=True
            )
        ]

    def pieces(self, i: int) -> list[str]:
        """Word `i`, cut; the pieces join back to it (law 2)."""
        word = self.words[i]
        edges = [0, *self.offset[int(self.start[i]) : int(self.start[i + 1])].tolist(), len(word)]
        return [word[a:b] for a, b in pairwise(edges)]

    def where(self, keep: NDArray[np.bool_]) -> SegmentedCounts:
        """Only the words that are marked."""
        if bool(keep.all()):
            return self
        at = np.repeat(keep, np.diff(self.start))
        return SegmentedCounts(
            tuple(compress(self.words, keep)),
            self.n[keep],
            np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(self.start)[keep])]),
            self.offset[at],
            self.kind[at],
            self.confidence[at],
            None if self.seen is None else self.seen[keep],
            None if self.frequency is None else self.frequency[at],
        )

    def items(self) -> Iterator[tuple[str, list[Cut], int]]:
        """Triples of word, cuts and count."""
        for i, (word, n) in enumerate(zip(self.words, self.n.tolist(), strict=True)):
            yield word, self.cuts(i), n

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of words, counts and cuts."""
        sha = hashlib.sha256("\0".join(self.words).encode())
        arrays: list[NDArray[Any]] = [self.n, self.start, self.offset, self.kind, self.confidence]
        for array in arrays if self.seen is None else [*arrays, self.seen]:
            sha.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        return sha.hexdigest()[:16]
