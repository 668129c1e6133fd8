"""`Encoding`, what encoding a text gives, and `Reading`, a text as a model reads it, with the way back to the raw text.

This file adds: offsets. Spans inside a pretoken become half-open code points of the text that the caller passed (law 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern

__all__ = ["Encoding", "Reading"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """What `encode` returns: three lists of one length.

    Parameters
    ----------
    ids : list of int
    pieces : list of str
        The string of each id.
    offsets : list of (int, int)
        Code points of the text that was passed, half-open; the byte tokens of one character share its span.
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as the model reads it: its pretokens with their places, and where each character stood in the text."""

    pretokens: list[tuple[int, str]]
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str, normalizer: Normalizer, pattern: Pattern) -> Reading:
        """The reading of one text."""
        aligned = normalizer.align(text)
        pretokens, at = [], 0
        for pretoken in pattern.pretokenize(aligned.normal):
            pretokens.append((at, pretoken))
            at += len(pretoken)
        return cls(pretokens, aligned.starts, aligned.ends)

    def offsets(self, at: int, spans: Iterable[tuple[int, int]], base: int = 0) -> list[tuple[int, int]]:
        """Spans of the pretoken at `at` as offsets into the text."""
        return [(base + self.starts[at + a], base + self.ends[at + b - 1]) for a, b in spans]
