"""The curve tokens per eojeol against boundary F1: many settings of the dials and many sizes, trained from one count.

This file adds: the choice by looking. One row a vocabulary, measured on held-out words; which rows no other beats; and
the same rows as a table, as JSON, as a plot for the terminal and as a drawing. Nothing here recommends anything.

Two references keep the reader honest. Recall is free where many cuts are made, so the row of the *trivial* tokenizer
(every character a token) stands beside the others. And with c cuts between syllables where the analyser has g, no
tokenizer at all has more than F1 = 2 min(c, g) / (c + g): the *ceiling*. The gold is silver: an analyser's cuts, not
people's, so an F1 near 1 says that the vocabulary repeats the analyser, not that it is right.
"""

from __future__ import annotations

from koktok.frontier.curve import FRONTIER, FrontierRow, Reference, frontier, measure, on_front, reference
from koktok.frontier.show import FrontierDict, draw, flags, from_dict, plot, to_dict, to_markdown

__all__ = [
    "FRONTIER",
    "FrontierDict",
    "FrontierRow",
    "Reference",
    "draw",
    "flags",
    "from_dict",
    "frontier",
    "measure",
    "on_front",
    "plot",
    "reference",
    "to_dict",
    "to_markdown",
]
