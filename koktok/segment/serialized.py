"""Analyses as short strings: what the cache keeps, what worker processes send, and what equal cuts are recognised by.

The row of a word, a morpheme a line as `start end tag form`, the form only where it is not the surface. Most
words share their row with thousands of others, so its cuts are found once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from koktok.segment.policy import Morpheme, Segmenter


def serialize(word: str, morphemes: Iterable[tuple[int, int, str, str]]) -> str:
    r"""Serialize the morphemes of one word as a row; no morphemes give the empty row.

    Examples
    --------
    >>> serialize("갔다", [Morpheme(0, 1, "VV", "가"), Morpheme(1, 2, "EF", "다")])
    '0 1 VV 가\n1 2 EF '
    """
    return "\n".join([f"{a} {b} {tag} {'' if form == word[a:b] else form}" for a, b, tag, form in morphemes])


def deserialize(word: str, row: str) -> tuple[Morpheme, ...]:
    r"""Deserialize a row to its morphemes."""
    morphemes = []
    for line in row.split("\n") if row else ():
        start, end, tag, form = line.split(" ", 3)
        a, b = int(start), int(end)
        morphemes.append(Morpheme(a, b, tag, form or word[a:b]))
    return tuple(morphemes)


def serialized_rows(segmenter: Segmenter, words: Iterable[str]) -> Generator[str]:
    """Rows of any segmenter, in the order of the words; from one that has rows already they come as they are."""
    ready = getattr(segmenter, "serialized", None)
    if ready is not None:
        yield from ready(words)
        return
    asked = list(words)
    for word, morphemes in zip(asked, segmenter.analyse(asked), strict=True):
        yield serialize(word, morphemes)
