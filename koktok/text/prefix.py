"""The space before the first word of a text, which decoding takes away again.

With it the first word is spelled like any other. It stands before the text only, and not behind a special token in its midst.
Hugging Face puts no space before a text that begins with one (`Metaspace`), so such a text, and such a part behind a special
token, gets `SPACE_MARK` first: then nothing is lost. (Where the first character of a text is one that normalization drops,
there is no space before what follows, likewise.) Folders of format 1, and byte-level vocabularies, for which `Metaspace`
cannot be, have the space before every part that special tokens leave.
"""

from __future__ import annotations

from typing import Final, Literal

Prefix = Literal["", "first", "each"]

SPACE_MARK: Final = "\u2000"
"""EN QUAD, which NFC writes as EN SPACE: no normal text has it, so it can stand for something else."""

GUARD: Final = "\u2001"
"""EM QUAD, likewise free; tokenizer.json puts it at the beginning of a part for a moment, to find a space there."""


def with_prefix(normal: str, prefix: Prefix, *, first: bool = True) -> str:
    """A part of a normal text as the model reads it."""
    if not prefix or not normal:
        return normal
    if prefix == "each":
        return f" {normal}"
    marked = SPACE_MARK + normal if normal[0] == " " else normal
    return f" {marked}" if first else marked


def without_prefix(text: str, prefix: Prefix, *, first: bool = True) -> str:
    """A decoded text, or a later part of one, without what `with_prefix` put there."""
    if prefix and first:
        text = text.removeprefix(" ")
    return text.replace(SPACE_MARK, "") if prefix == "first" else text
