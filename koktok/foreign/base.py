"""A tokenizer under measurement: lines in, ids and spans out, whatever the library behind it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Row", "Rows", "Subject"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its ids, and the code points of the line that each covers.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
    spans : ndarray of int64, shape (n, 2)
        Half-open. The bytes of a character share its span, so two neighbours overlap where a character is split.
    """

    ids: Ints
    spans: Ints

    def __len__(self) -> int:
        return len(self.ids)


class Rows(Sequence[Row]):
    """The tokens of many lines, as flat arrays.

    Parameters
    ----------
    ids, starts, ends : ndarray of int64, shape (tokens,)
        Starts and ends count code points from the first character of the first line, as if the lines were joined.
    indptr : ndarray of int64, shape (lines + 1,)
        The tokens of line k are `indptr[k]` to `indptr[k + 1]`.
    line_starts : ndarray of int64, shape (lines + 1,)
        Where each line starts among all code points.

    Examples
    --------
    >>> rows = Rows.of([[7, 8], [9]], [[(0, 1), (1, 3)], [(0, 2)]], ["하겠다", "간다"])
    >>> rows[1].ids.tolist(), rows[1].spans.tolist()
    ([9], [[0, 2]])
    >>> rows.starts.tolist()
    [0, 1, 3]
    """

    __slots__ = ("ends", "ids", "indptr", "line_starts", "starts")

    def __init__(self, ids: Ints, starts: Ints, ends: Ints, indptr: Ints, line_starts: Ints) -> None:
        self.ids, self.starts, self.ends = ids, starts, ends
        self.indptr, self.line_starts = indptr, line_starts

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], spans: Sequence[Sequence[tuple[int, int]]], lines: Sequence[str]) -> Rows:
        """Rows from a list of ids and a list of spans for each line."""
        line_starts = running([len(line) for line in lines])
        indptr = running([len(row) for row in ids])
        flat_ids = np.array([i for row in ids for i in row], dtype=np.int64)
        flat = np.array([span for row in spans for span in row], dtype=np.int64).reshape(-1, 2)
        shift = np.repeat(line_starts[:-1], np.diff(indptr))
        return cls(flat_ids, flat[:, 0] + shift, flat[:, 1] + shift, indptr, line_starts)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, k: int) -> Row:  # type: ignore[override]
        """The tokens of line `k`, with spans that count from its own first character."""
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        part = slice(self.indptr[k], self.indptr[k + 1])
        spans = np.stack([self.starts[part], self.ends[part]], axis=1) - self.line_starts[k]
        return Row(self.ids[part], spans)

    def __iter__(self) -> Iterator[Row]:
        return (self[k] for k in range(len(self)))


def running(lengths: Sequence[int] | Ints) -> Ints:
    """Where each of several runs starts, and where the last ends."""
    found = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths, dtype=np.int64), out=found[1:])
    return found


class Subject(ABC):
    """A tokenizer under measurement.

    Parameters
    ----------
    spec : str
        The words that open it again.
    name : str
        A short label for tables.
    size : int or None
        All ids, special ones included; None for an open vocabulary (analysers).
    digest : str
        16 hex digits over the vocabulary, or over the version of what stands in its place.
    libraries : dict
        Name to version.
    notes : tuple of str
        What a reader of the figures must know: what the adapter did to the input, what the library drops.
    unknown_ids, byte_ids, special_ids : collection of int
        Ids that stand for anything unknown; fallback bytes (`<0xE2>`; empty for byte-level BPE, whose alphabet are
        bytes); control tokens.
    """

    analyser = False
    """True where ids are made on the fly, so that only their equality means something."""

    def __init__(
        self,
        spec: str,
        name: str,
        *,
        size: int | None,
        digest: str,
        libraries: dict[str, str],
        notes: Sequence[str] = (),
        unknown_ids: Collection[int] = (),
        byte_ids: Collection[int] = (),
        special_ids: Collection[int] = (),
    ) -> None:
        self.spec: Final = spec
        self.name = name
        self.size: Final = size
        self.digest: Final = digest
        self.libraries: Final = libraries
        self.notes: tuple[str, ...] = tuple(notes)
        self.unknown_ids: Final = frozenset(unknown_ids)
        self.byte_ids: Final = frozenset(byte_ids)
        self.special_ids: Final = frozenset(special_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, size={self.size}, digest={self.digest})"

    @abstractmethod
    def encode(self, lines: Sequence[str]) -> Rows:
        """The tokens of each line, without tokens for its beginning and end."""

    def decode(self, ids: Sequence[int]) -> str | None:  # noqa: ARG002
        """The text of ids; None where this tokenizer has no decoder."""
        return None

    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""
        raise NotImplementedError

    def unigram(self) -> dict[str, float] | None:
        """Text of each piece to its log-probability, where the model is a Unigram; None where it is not."""
        return None

    def words(self, line: str) -> list[str]:
        """What a Unigram model reads one by one: by default words, each with the space before it."""
        return re.findall(r"\s*\S+|\s+$", line)

    def piece(self, i: int) -> str:
        """The id as its vocabulary spells it."""
        written = self.token_bytes(i)
        return "" if written is None else written.decode("utf-8", errors="replace")

    def surface(self, i: int) -> str:
        """The id for display: its text, with U+FFFD for a broken character."""
        written = self.token_bytes(i)
        return self.piece(i) if written is None else written.decode("utf-8", errors="replace")
