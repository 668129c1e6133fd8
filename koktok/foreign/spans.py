"""Spans from the bytes that each id writes: right for every lossless tokenizer, and no Python per token.

Libraries give no offsets (tiktoken), wrong ones (Hugging Face on decomposed text) or slow ones. Where the bytes of a
line's tokens join back to the line, their running lengths are the spans. Lines where they do not (an unknown token, a
normalizer that rewrote something) go to the library's own offsets, or to `align`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from koktok.foreign.base import Ints, Rows, running

Spans = Sequence[tuple[int, int]]


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text; lone surrogates pass."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


class ByteTable:
    """What each id writes."""

    __slots__ = ("lengths", "written")

    def __init__(self, written: list[bytes]) -> None:
        self.written = written
        self.lengths: Ints = np.fromiter(map(len, written), dtype=np.int64, count=len(written))


def rows_by_bytes(
    lines: Sequence[str],
    ids: Sequence[Sequence[int]],
    table: ByteTable,
    fallback: Callable[[list[int]], Sequence[Spans]],
    *,
    spaced: bool = True,
) -> Rows:
    """Rows of `lines`, whose tokens write the bytes in `table`."""
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
    return Rows(flat, starts.astype(np.int64), ends.astype(np.int64), indptr, line_starts)


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


def remap(rows: Rows, starts: Sequence[Ints], ends: Sequence[Ints], lines: Sequence[str]) -> Rows:
    """Rows of rewritten lines as rows of the lines that they came from."""
    line_starts = running([len(line) for line in lines])
    flat_starts = np.concatenate([s + b for s, b in zip(starts, line_starts, strict=False)] or [np.zeros(0, np.int64)])
    flat_ends = np.concatenate([e + b for e, b in zip(ends, line_starts, strict=False)] or [np.zeros(0, np.int64)])
    if not len(flat_starts):
        nothing = np.zeros(len(rows.ids), dtype=np.int64)
        return Rows(rows.ids, nothing, nothing, rows.indptr, line_starts)
    top = len(flat_starts) - 1
    new_starts = flat_starts[np.minimum(rows.starts, top)]
    new_ends = np.where(rows.ends > rows.starts, flat_ends[np.clip(rows.ends - 1, 0, top)], new_starts)
    return Rows(rows.ids, new_starts, np.maximum(new_ends, new_starts), rows.indptr, line_starts)
