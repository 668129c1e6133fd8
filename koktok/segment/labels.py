"""Labels of boundaries for those who train chunkers: before every character or byte, what begins there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from koktok.segment.policy import FUNCTIONAL
from koktok.segment.segmented import BoundaryKind, Cut


def line_cuts(words: Iterable[tuple[str, Iterable[Cut]]]) -> dict[int, BoundaryKind]:
    """Place the cuts of the words of a line, with their kinds; the words join to the line."""
    found: dict[int, BoundaryKind] = {}
    at = 0
    for word, cuts in words:
        if at:
            found[at] = BoundaryKind.OTHER
        found |= {at + cut.offset: cut.kind for cut in cuts}
        at += len(word)
    return found


def labelled(text: str, cuts: Mapping[int, BoundaryKind], *, of_bytes: bool) -> str:
    """Write a line as JSON: text, cuts, and a label before each unit.

    `eojeol` begins an eojeol, `particle` a particle, an ending or the copula, `morpheme` another morpheme; `inside` continues
    the unit before it, and `none` is white space.

    Examples
    --------
    >>> labelled("집에 간", {1: BoundaryKind.JOSA, 2: BoundaryKind.OTHER}, of_bytes=False)
    '{"text": "집에 간", "cuts": [1, 2], "labels": ["eojeol", "particle", "none", "eojeol"]}'
    """
    labels: list[str] = []
    for i, char in enumerate(text):
        if char.isspace():
            label = "none"
        elif not i or text[i - 1].isspace():
            label = "eojeol"
        elif i in cuts:
            label = "particle" if cuts[i] in FUNCTIONAL else "morpheme"
        else:
            label = "inside"
        rest = len(char.encode()) - 1 if of_bytes else 0
        labels += [label, *["none" if label == "none" else "inside"] * rest]
    return json.dumps({"text": text, "cuts": sorted(cuts), "labels": labels}, ensure_ascii=False)
