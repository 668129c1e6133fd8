"""`Model`: one pretoken in, ids and spans out; each is a plain algorithm over a `Vocab`. `koktok.tokenizer.kinds` chooses.

A span is (start, end) in code points of the pretoken, half-open. Spans rather than ends, because the tokens of a
byte-level vocabulary may overlap: the byte tokens of one character share its span, and a token that holds the last
byte of one character and the first of the next spans both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from koktok.vocab import KINDS, Vocab

Encoded = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Ids and, in parallel, spans."""


class Model:
    """A pure function of one pretoken; callers cache it by pretoken."""

    drawn_by: ClassVar[Literal["alpha", "dropout"] | None] = None
    """The keyword of `sample`; None where a pretoken has one segmentation only."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    @property
    def lossless(self) -> bool:
        """True where decode(encode(x)) == x for every x."""
        return not KINDS[self.vocab.kind].unknown

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans of the best segmentation."""
        raise NotImplementedError
