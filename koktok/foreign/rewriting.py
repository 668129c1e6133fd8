"""Input that a tokenizer expects, made from plain lines, with spans that still point into the plain line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from koktok.foreign.base import ForeignTokenizer, Ints, Rows
from koktok.foreign.spans import remap
from koktok.text.normalize import normalized

Rewrite = Callable[[str], tuple[str, Ints, Ints]]
"""A line to its rewritten form, and where each new character started and ended in the line."""


def marked_morphemes(cut: Callable[[str], list[tuple[int, int]]], mark: str) -> Rewrite:
    """Morphemes joined by spaces, each space of the line as `mark`, as MeCab + SentencePiece vocabularies read text.

    Examples
    --------
    >>> rewrite = marked_morphemes(lambda line: [(0, 1), (1, 2), (3, 5)], "▃")
    >>> text, starts, ends = rewrite("나는 간다")
    >>> text
    '나 는 ▃ 간다'
    >>> starts.tolist()
    [0, 1, 1, 2, 2, 3, 3, 4]
    """

    def rewrite(line: str) -> tuple[str, Ints, Ints]:
        text: list[str] = []
        starts: list[int] = []
        ends: list[int] = []

        def put(what: str, start: int, end: int) -> None:
            if text:
                text.append(" ")
                starts.append(start)
                ends.append(start)
            text.append(what)
            starts.extend(range(start, start + len(what)) if what != mark else [start])
            ends.extend(range(start + 1, start + len(what) + 1) if what != mark else [end])

        at = 0
        for start, end in cut(line):
            if start > at:
                put(mark, at, start)
            put(line[start:end], start, end)
            at = end
        return "".join(text), np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)

    return rewrite


class Adapted(ForeignTokenizer):
    """A tokenizer behind a rewriting of its input."""

    def __init__(
        self,
        inner: ForeignTokenizer,
        rewrite: Rewrite,
        *,
        note: str,
        undo: Callable[[str], str] | None = None,
        libraries: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            inner.spec,
            inner.name,
            size=inner.size,
            digest=inner.digest,
            libraries=inner.libraries | (libraries or {}),
            notes=(note, *inner.notes),
            unknown_ids=inner.unknown_ids,
            byte_ids=inner.byte_ids,
            special_ids=inner.special_ids,
        )
        self.inner, self._rewrite, self._undo = inner, rewrite, undo

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `ForeignTokenizer.encode`."""
        made = [self._rewrite(line) for line in lines]
        rows = self.inner.encode([text for text, _, _ in made])
        return remap(rows, [s for _, s, _ in made], [e for _, _, e in made], lines)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:
        """As `ForeignTokenizer.decode`."""
        text = self.inner.decode(ids, skip_special_tokens=skip_special_tokens)
        if text is None or self._undo is None:
            return text if text is None else normalized("NFC", text)
        return self._undo(text)

    def token_bytes(self, i: int) -> bytes | None:
        """As `ForeignTokenizer.token_bytes`: bytes of the rewritten text."""
        return self.inner.token_bytes(i)

    def piece(self, i: int) -> str:
        """As `ForeignTokenizer.piece`."""
        return self.inner.piece(i)
