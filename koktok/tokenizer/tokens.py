"""`Tokens`, ids and spans of many lines as flat arrays, and spans from the bytes that each id writes.

Libraries give no offsets (tiktoken), wrong ones (Hugging Face on decomposed text) or slow ones. Where the bytes of a
line's tokens join back to the line, their running lengths are the spans. Lines where they do not (an unknown token, a
normalizer that rewrote something) go to the library's own offsets, or to `align`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Spans = Sequence[tuple[int, int]]


class Tokens:
    """The tokens of many lines, as flat arrays: ids, where each begins and ends in the joined lines, and where each line's begin.

    Examples
    --------
    >>> tokens = Tokens.of([[7, 8], [9]], [[(0, 1), (1, 3)], [(0, 2)]], ["하겠다", "간다"])
    >>> tokens[1].ids.tolist(), tokens[1].spans.tolist()
    ([9], [[0, 2]])
    >>> tokens.starts.tolist()
    [0, 1, 3]
    """

    __slots__ = ("ends", "ids", "indptr", "line_starts", "starts")

    def __init__(self, ids: Ints, starts: Ints, ends: Ints, indptr: Ints, line_starts: Ints) -> None:
        self.ids, self.starts, self.ends = ids, starts, ends
        self.indptr, self.line_starts = indptr, line_starts

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], spans: Sequence[Spans], lines: Sequence[str]) -> Tokens:
        """Tokens from a list of ids and a list of spans for each line."""
        line_starts = running([len(line) for line in lines])
        indptr = running([len(row) for row in ids])
        flat_ids = np.array([i for row in ids for i in row], dtype=np.int64)
        flat = np.array([span for row in spans for span in row], dtype=np.int64).reshape(-1, 2)
        shift = np.repeat(line_starts[:-1], np.diff(indptr))
        return cls(flat_ids, flat[:, 0] + shift, flat[:, 1] + shift, indptr, line_starts)

    def __len__(self) -> int:
        """Lines."""
        return len(self.indptr) - 1

    def __getitem__(self, k: int) -> Tokens:
        """The tokens of line `k`, with places that count from its own first character."""
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        part, at = slice(self.indptr[k], self.indptr[k + 1]), self.line_starts[k]
        ids, bounds = self.ids[part], np.array([0, self.line_starts[k + 1] - at])
        return Tokens(ids, self.starts[part] - at, self.ends[part] - at, np.array([0, len(ids)]), bounds)

    def __iter__(self) -> Iterator[Tokens]:
        return (self[k] for k in range(len(self)))

    @property
    def spans(self) -> Ints:
        """Half-open places of each token, shape (tokens, 2)."""
        return np.stack([self.starts, self.ends], axis=1)


def running(lengths: Sequence[int] | Ints) -> Ints:
    """Where each of several runs starts, and where the last ends."""
    found = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths, dtype=np.int64), out=found[1:])
    return found


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text; lone surrogates pass."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


class ByteTable:
    """What each id writes."""

    __slots__ = ("lengths", "written")

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
    """Tokens of `lines`, whose tokens write the bytes in `table`."""
    write = table.written.__getitem__
    targets = [line.encode("utf-8", "surrogatepass") for line in lines]
    shifts = np.zeros(len(lines), dtype=np.int64)
    failed = []
    for k, (target, row) in enumerate(zip(targets, ids, strict=True)):
        joined = b"".join(map(write, row))
        if joined == target:
            continue
        if spaced and joined[:1] == b" " and joined[1:] == target:  # the dummy space that some put before a text
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
            given = np.array(spans, dtype=np.int64).reshape(-1, 2) + line_starts[k]
            starts[part], ends[part] = given[:, 0], given[:, 1]
    return Tokens(flat, starts.astype(np.int64), ends.astype(np.int64), indptr, line_starts)


def align(line: str, pieces: Sequence[str | None]) -> list[tuple[int, int]]:
    """Spans of pieces that may have lost spaces, or been replaced by an unknown token (None).

    Each piece is looked for from where the last one ended; an unknown one takes the text up to the next that is found,
    or the rest of its eojeol.

    Examples
    --------
    >>> align("나는 뷁이 좋다", ["나", "는", None, "좋", "다"])
    [(0, 1), (1, 2), (3, 5), (6, 7), (7, 8)]
    """
    spans: list[tuple[int, int]] = []
    at = 0
    for k, piece in enumerate(pieces):
        while at < len(line) and line[at].isspace() and not (piece and piece[0].isspace() and piece != " "):
            at += 1
        if piece is None:
            end = at
            while end < len(line) and not line[end].isspace():
                end += 1
            following = next((p.strip() for p in pieces[k + 1 :] if p), None)
            if following:
                found = line.find(following, at + 1, end)
                end = found if found > 0 else end
        else:
            wanted = piece.strip() or piece
            if not piece.strip():
                spans.append((at, at))
                continue
            found = line.find(wanted, at, at + len(wanted) + 32)
            at = found if found >= 0 else at
            end = min(len(line), at + len(wanted))
        spans.append((at, end))
        at = end
    return spans
