"""The space before the first word of a text, which decoding takes away again.

With it the first word is spelled like any other. It is put before the text only, and not after a special token inside the text.
Where a normal text begins with a space itself, the two are apart: the one before it is a token of its own. Hugging Face puts no
space before a text that begins with one (`Metaspace`), so each such part gets `CUT_MARK` first, and a pre-tokenizer cuts there
and removes it. Where normalization drops the first character of a text, Hugging Face puts no space before what follows either;
nothing is lost by it, because decoding takes a space away only where the text begins with one, and such a text has the mark.
Byte-level vocabularies, for which `Metaspace` cannot be, and those without bytes have the space before every part that special
tokens leave.
"""

from __future__ import annotations

from typing import Final, Literal

Prefix = Literal["", "first", "each"]

CUT_MARK: Final = "\u2000"
"""EN QUAD, which NFC writes as EN SPACE: no normal text has it, so it can stand for a cut. Every pattern cuts on both its sides."""

GUARD: Final = "\u2001"
"""EM QUAD, likewise free; tokenizer.json puts it at the beginning of a part for a moment, to find a space there."""

START: Final = "\ufffc"
"""A character that normalization leaves alone; tokenizer.json puts it before the raw part, and so has a place for `CUT_MARK`
at the beginning of a text also where normalization drops what stands there."""


def with_prefix(normal: str, prefix: Prefix, *, first: bool = True, kept: bool = True) -> str:
    """A part of a normal text as the model reads it; `CUT_MARK` in it is a cut and no character.

    `first` says that the part begins the text, `kept` that normalization kept its first character.
    """
    if not prefix or not normal or not (first or prefix == "each"):
        return normal
    if prefix == "first" and normal[0] == " ":
        return f" {CUT_MARK}{normal}"
    return f" {normal}" if kept or prefix == "each" else normal


def without_prefix(text: str, prefix: Prefix) -> str:
    """A decoded text without what `with_prefix` put there."""
    return text.removeprefix(" ") if prefix else text
