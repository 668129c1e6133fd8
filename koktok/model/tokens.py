"""`Tokens`, ids and spans of many texts as flat arrays, and spans from the bytes of each id.

Libraries give no offsets (tiktoken), wrong ones (Hugging Face on decomposed text) or slow ones. Where the bytes of a
line's tokens join to the line, their running lengths are the spans. Other lines (with an unknown token, or changed by a
normalizer) get the library's own offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Spans = Sequence[tuple[int, int]]

_NONE: Final[Ints] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The tokens of many texts in flat arrays: `ids`, where those of each text begin (`indptr`), and optionally their spans.

    Spans are half-open places in the joined texts; `line_starts` has the place where each text begins.

    Examples
    --------
    >>> tokens = Tokens.of([[7, 8], [9]], [[(0, 1), (1, 3)], [(0, 2)]], ["하겠다", "간다"])
    >>> tokens.indptr.tolist(), tokens[1].tolist(), tokens.spans.tolist(), tokens.line(1).spans.tolist()
    ([0, 2, 3], [9], [[0, 1], [1, 3], [3, 5]], [[0, 2]])
    """

    ids: npt.NDArray[Any]
    indptr: Ints
    starts: Ints = field(default_factory=lambda: _NONE)
    ends: Ints = field(default_factory=lambda: _NONE)
    line_starts: Ints = field(default_factory=lambda: _NONE)

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], spans: Sequence[Spans], lines: Sequence[str]) -> Tokens:
        """Tokens from a list of ids and a list of spans for each line."""
        line_starts = running([len(line) for line in lines])
        indptr = running([len(row) for row in ids])
        flat_ids = np.array([i for row in ids for i in row], dtype=np.int64)
        flat = np.array([span for row in spans for span in row], dtype=np.int64).reshape(-1, 2)
        shift = np.repeat(line_starts[:-1], np.diff(indptr))
        return cls(flat_ids, indptr, flat[:, 0] + shift, flat[:, 1] + shift, line_starts)

    @classmethod
    def joined(cls, parts: Sequence[Tokens], dtype: Any) -> Tokens:
        """The ids of many parts as one, in their order."""
        if len(parts) == 1:
            return parts[0]
        starts = running([len(part.ids) for part in parts])
        indptr = [np.zeros(1, np.int64), *(part.indptr[1:] + at for part, at in zip(parts, starts, strict=False))]
        return cls(np.concatenate([np.empty(0, dtype), *(part.ids for part in parts)]), np.concatenate(indptr))

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.indptr) - 1

    def __getitem__(self, k: int) -> npt.NDArray[Any]:
        """The ids of text `k`, a view; a negative `k` counts from the end."""
        if not -len(self) <= k < len(self):
            raise IndexError(f"document {k} of {len(self)}")
        k %= len(self)
        return self.ids[self.indptr[k] : self.indptr[k + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[k] for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("ids", "indptr", "starts", "ends")
        )

    __hash__ = None  # type: ignore[assignment]

    def line(self, k: int) -> Tokens:
        """The tokens of text `k` with their spans, which count from its own first character."""
        ids, k = self[k], k % len(self)
        part, at = slice(self.indptr[k], self.indptr[k + 1]), self.line_starts[k]
        bounds = np.array([0, self.line_starts[k + 1] - at])
        return Tokens(ids, np.array([0, len(ids)]), self.starts[part] - at, self.ends[part] - at, bounds)

    def lines(self) -> Iterator[Tokens]:
        """The tokens of each text with their spans."""
        return (self.line(k) for k in range(len(self)))

    @property
    def spans(self) -> Ints:
        """Half-open places of each token, shape (tokens, 2)."""
        return np.stack([self.starts, self.ends], axis=1)


def running(lengths: Sequence[int] | npt.NDArray[Any]) -> Ints:
    """The place where each of several runs starts, and where the last ends."""
    places = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths, dtype=np.int64), out=places[1:])
    return places


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text; lone surrogates pass."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


SPACES: Final = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)
"""All white space, as code points."""


class ByteTable:
    """The bytes of each id."""

    def __init__(self, written: list[bytes]) -> None:
        self.written = written
        self.lengths: Ints = np.fromiter(map(len, written), dtype=np.int64, count=len(written))


def tokens_by_bytes(
    lines: Sequence[str],
    ids: Sequence[Sequence[int]],
    table: ByteTable,
    fallback: Callable[[list[int]], Sequence[Spans]],
    *,
    spaced: bool = True,
) -> Tokens:
    """Tokens of `lines` with spans; `fallback` gives those of the lines whose bytes do not join to the line."""
    write = table.written.__getitem__
    targets = [line.encode("utf-8", "surrogatepass") for line in lines]
    shifts = np.zeros(len(lines), dtype=np.int64)
    failed = []
    for k, (target, row) in enumerate(zip(targets, ids, strict=True)):
        joined = b"".join(map(write, row))
        if joined == target:
            continue
        if spaced and joined[:1] == b" " and joined[1:] == target:  # the prefix space that some add to a text
            shifts[k] = 1
        elif spaced or joined != target.replace(b" ", b""):
            failed.append(k)
    indptr = running([len(row) for row in ids])
    flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(indptr[-1]))
    lengths = table.lengths[flat]
    raw = np.frombuffer(b"".join(targets), dtype=np.uint8)
    char_of = np.cumsum((raw & 0xC0) != 0x80) - 1  # of each byte
    line_bytes = running([len(target) for target in targets])
    line_starts = running([len(line) for line in lines])
    if spaced:
        places = line_bytes
    else:
        kept = np.flatnonzero(raw != 32)
        char_of = char_of[kept]
        places = np.searchsorted(kept, line_bytes)
    written = np.cumsum(lengths)
    before = np.concatenate([[0], written])[indptr[:-1]]
    at = np.repeat(places[:-1] - before - shifts, np.diff(indptr))
    low, high = at + written - lengths, at + written
    floor = np.repeat(places[:-1], np.diff(indptr))
    np.maximum(low, floor, out=low)
    np.maximum(high, floor, out=high)
    if len(char_of):
        top = len(char_of) - 1  # lines that failed may run over the end; they are overwritten below
        starts = char_of[np.minimum(low, top)] + (low > top)
        ends = np.where(high > low, char_of[np.clip(high - 1, 0, top)] + 1, starts)
    else:
        starts = ends = np.zeros(len(flat), dtype=np.int64)
    if failed:
        for k, spans in zip(failed, fallback(failed), strict=True):
            part = slice(indptr[k], indptr[k + 1])
            pairs = np.array(spans, dtype=np.int64).reshape(-1, 2) + line_starts[k]
            starts[part], ends[part] = pairs[:, 0], pairs[:, 1]
    return Tokens(flat, indptr, starts.astype(np.int64), ends.astype(np.int64), line_starts)
