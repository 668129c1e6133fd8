"""`Block`: some documents as UTF-8, the one form of text between a file and its counts or ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Block:
    r"""Lines of UTF-8, each ended by a newline, and of each whether it ends a document (None: every line does).

    Examples
    --------
    >>> block = Block.of(["a\nb", "c"], first=7)
    >>> block.data, block.closes.tolist(), block.first
    (b'a\nb\nc\n', [False, True, True], 7)
    >>> block.lines(), block.documents()
    (['a', 'b', 'c'], ['a\nb', 'c'])
    """

    data: bytes
    closes: NDArray[np.bool_] | None = None
    first: int = 1
    """Number of the first line in its file."""

    @classmethod
    def of(cls, documents: Sequence[str], first: int = 1) -> Block:
        """Make a block of documents."""
        text = "".join([f"{document}\n" for document in documents])
        block = cls(text.encode(), None, first)
        if block.n_lines == len(documents):
            return block
        closes = np.zeros(block.n_lines, np.bool_)
        closes[np.cumsum([1 + document.count("\n") for document in documents]) - 1] = True
        return cls(block.data, closes, first)

    @cached_property
    def n_lines(self) -> int:
        """Number of lines."""
        return int(
            np.count_nonzero(np.frombuffer(self.data, np.uint8) == ord("\n"))
        )  # `bytes.count` takes three times as long

    @property
    def ends(self) -> NDArray[np.bool_]:
        """Of each line, whether it ends a document."""
        return np.ones(self.n_lines, np.bool_) if self.closes is None else self.closes

    def __len__(self) -> int:
        """Number of documents."""
        return self.n_lines if self.closes is None else int(self.closes.sum())

    @property
    def unix(self) -> bytes:
        """The lines with Unix ends, for who reads lines; a document keeps the ends that it has."""
        return self.data.replace(b"\r\n", b"\n")

    def lines(self) -> list[str]:
        """Return the lines without their ends."""
        return self.unix.decode()[:-1].split("\n") if self.data else []

    def documents(self) -> list[str]:
        """Return the documents, which may have several lines."""
        if self.closes is not None:
            return [raw.decode() for raw in self.raw_documents()]
        return self.data.decode()[:-1].split("\n") if self.data else []

    def raw_documents(self) -> list[bytes]:
        """Return the documents as bytes."""
        lines = self.data.split(b"\n")[:-1]
        return lines if self.closes is None else [b"\n".join(lines[a:b]) for a, b in pairwise(self._cuts())]

    def _cuts(self) -> list[int]:
        """Return the lines between which documents are cut."""
        return [0, *(np.flatnonzero(self.ends) + 1).tolist()]

    def split(self, size: int) -> Iterator[Block]:
        """Cut a block between documents, so that parts are of about `size` bytes, or one longer document."""
        if len(self.data) <= 2 * size:
            yield self
            return
        breaks = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord("\n")) + 1
        stops = breaks[self.ends]  # where each document ends
        ends, begin, line = self.ends, 0, 0
        while begin < len(self.data):
            end = int(stops[np.searchsorted(stops, min(begin + size, len(self.data)))])
            lines = int(np.searchsorted(breaks, end, side="right"))
            closes = None if self.closes is None else ends[line:lines]
            yield Block(self.data[begin:end], closes, self.first + line)
            begin, line = end, lines
