"""`Rows`: counted words in flat arrays, the one shape in which counts are summed, spilled, merged and saved.

This file adds: the relation. A count is the table (word, n, documents, held), and every stage of counting is the same
query over it (`PLAN`), whoever runs it. Words are UTF-8 bytes behind one another, because a Python string takes four
times the room of the word that it holds, and because bytes sort as code points do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PLAN", "Rows", "flat"]

PLAN = (
    "SELECT word, sum(n) AS n, sum(documents) AS documents, sum(held) AS held FROM shards GROUP BY word ORDER BY word"
)
"""What counting is, whatever the engine: shards in any number and order, one row a word, words by code point."""

_MAGIC = 0x316B6F6B
_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Rows:
    """Counted words, distinct and by code point.

    Parameters
    ----------
    data : ndarray of uint8
        The words in UTF-8, one behind the other.
    offsets : ndarray of int64, shape (words + 1,)
        Where each begins.
    n : ndarray of uint64
        Occurrences in the lines that are trained on.
    documents : ndarray of uint64
        Documents among them that hold the word.
    held : ndarray of uint64
        Occurrences in the lines that are held out.

    Examples
    --------
    >>> rows = Rows.of({"집": 2, " 집": 1})
    >>> rows.words(), rows.n.tolist()
    ([' 집', '집'], [1, 2])
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n: NDArray[np.uint64]
    documents: NDArray[np.uint64]
    held: NDArray[np.uint64]

    @classmethod
    def of(cls, mapping: Mapping[str, int]) -> Rows:
        """Rows of a plain mapping; documents and held-out occurrences are 0."""
        words = sorted(mapping)
        data, offsets = flat(words)
        n = np.fromiter((mapping[word] for word in words), np.uint64, len(words))
        return cls(data, offsets, n, np.zeros_like(n), np.zeros_like(n))

    def __len__(self) -> int:
        return len(self.n)

    @property
    def nbytes(self) -> int:
        """Bytes in memory or on disk."""
        return self.data.nbytes + 32 * len(self.n)

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), _CHUNK):
            yield from self.words(begin, begin + _CHUNK)

    def words(self, begin: int = 0, end: int | None = None) -> list[str]:
        """The words of a slice as strings."""
        places = self.offsets[begin : len(self.offsets) if end is None else end + 1].tolist()
        if not places:
            return []
        first = places[0]
        data = self.data[first : places[-1]].tobytes()
        return [data[a - first : b - first].decode() for a, b in pairwise(places)]

    def word(self, i: int) -> bytes:
        """One word, as it lies there."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def part(self, begin: int, end: int) -> Rows:
        """A slice, which copies nothing."""
        span = slice(begin, end)
        offsets = self.offsets[begin : end + 1]
        return Rows(self.data, offsets, self.n[span], self.documents[span], self.held[span])

    def where(self, keep: NDArray[np.bool_]) -> Rows:
        """Only the rows that are marked."""
        if bool(keep.all()):
            return self
        from koktok.count.table import gather

        order = np.flatnonzero(keep)
        data, offsets = gather(self.data, self.offsets, order)
        return Rows(data, offsets, self.n[order], self.documents[order], self.held[order])

    def times(self, weight: float) -> Rows:
        """Occurrences times `weight`, rounded to integers, halves to even; documents and held-out lines stay."""
        if weight == 1.0:
            return self
        n = np.rint(self.n.astype(np.float64) * weight).astype(np.uint64)
        rows = Rows(self.data, self.offsets, n, np.where(n > 0, self.documents, np.uint64(0)), self.held)
        return rows.where((n > 0) | (self.held > 0))

    def write(self, file: BinaryIO) -> None:
        """All arrays one behind the other, so that `mapped` can read them in place."""
        offsets = self.offsets - self.offsets[0] if len(self.offsets) else np.zeros(1, np.int64)
        data = self.data[self.offsets[0] : self.offsets[-1]]
        file.write(np.array([_MAGIC, len(self), len(data)], np.int64).tobytes())
        for array in (offsets, self.n, self.documents, self.held, data):
            file.write(np.ascontiguousarray(array).data)

    @classmethod
    def mapped(cls, path: str) -> Rows:
        """Rows of a file that `write` wrote, read as they are needed.

        Raises
        ------
        ValueError
            When it is no such file, or was cut off.
        """
        raw = np.memmap(path, np.uint8, "r")
        magic, n, size = raw[:24].view(np.int64).tolist()
        if magic != _MAGIC or len(raw) != 24 + 8 * (n + 1) + 24 * n + size:
            raise ValueError(f"`{path}` holds no whole run of counted words")
        at = 24 + 8 * (n + 1)
        columns = [raw[at + 8 * n * i : at + 8 * n * (i + 1)].view(np.uint64) for i in range(3)]
        return cls(raw[at + 24 * n :], raw[24:at].view(np.int64), *columns)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Parts that follow one another in code-point order; a list of them is emptied on the way."""
        if len(parts) == 1:
            return parts[0]
        begins = np.zeros(1 + len(parts), np.int64)
        np.cumsum([part.offsets[-1] - part.offsets[0] for part in parts], out=begins[1:])
        columns: list[list[NDArray[Any]]] = [
            [part.data[part.offsets[0] : part.offsets[-1]] for part in parts],
            [
                *(part.offsets[:-1] - part.offsets[0] + begin for part, begin in zip(parts, begins, strict=False)),
                begins[-1:],
            ],
            *([getattr(part, name) for part in parts] for name in ("n", "documents", "held")),
        ]
        if isinstance(parts, list):
            parts.clear()  # who gives a list gives the parts away: the whole and its parts need not be there at once
        whole = []
        for column in columns:
            whole.append(np.concatenate(column))
            column.clear()
        return cls(*whole)


def flat(words: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Strings as bytes one behind the other, and where they begin.

    Examples
    --------
    >>> data, offsets = flat(["a", "가"])
    >>> data.tolist(), offsets.tolist()
    ([97, 234, 176, 128], [0, 1, 4])
    """
    encoded = [word.encode() for word in words]
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(words)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets
