"""Borders: at how many spaces of a text the tokens before the space depend on what follows it (law 18).

A prompt `a` is continued by `b`. A language model has learnt the ids of the running text `a + b`; where these do not begin with those of
`a`, it is asked to continue tokens that it never saw there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from koktok.metrics.page import Text
from koktok.metrics.statistics import Table
from koktok.protocol.tokenizer import Tokenizer

LINES: Final = 3000
"""Lines that are tokenized twice: a share of .2 is known to within .015."""


def borders(tokenizer: Tokenizer, text: Text, *, seed: int = 0) -> Table:
    """For each line whether it has a space behind a word, and whether the one chosen by a hash of the line is no prefix border."""
    at = [_space(line, seed) for line in text.lines]
    spaces = np.array([place > 0 for place in at], dtype=np.int64)
    cut = np.flatnonzero(spaces)
    whole = tokenizer.encode_lines([text.lines[k] for k in cut])
    before = tokenizer.encode_lines([text.lines[k][: at[k]] for k in cut])
    moved = np.zeros_like(spaces)
    moved[cut] = [not np.array_equal(ids, all_ids[: len(ids)]) for ids, all_ids in zip(before, whole, strict=True)]
    return Table({"spaces": spaces, "moved": moved}, text.units.of)


def border_share(tokenizer: Tokenizer, lines: Sequence[str]) -> float:
    """The metric `borders` over lines without units; nan where none has a space."""
    sums = borders(tokenizer, Text.of({"": lines[:: len(lines) // LINES + 1]})).sums()
    return float(sums["moved"] / sums["spaces"]) if sums["spaces"] else float("nan")


def _space(line: str, seed: int) -> int:
    """The place of a space behind a word, the same for the same line and seed; 0 if there is none."""
    places = [match.start() for match in re.finditer(r"(?<=\S) ", line)]
    if not places:
        return 0
    drawn = hashlib.sha256(f"{seed}:{line}".encode("utf-8", "surrogatepass")).digest()
    return places[int.from_bytes(drawn[:8], "little") % len(places)]
