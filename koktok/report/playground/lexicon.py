"""The lexicon of the page: frequent words with their morphemes, analysed when the page is written.

Kiwi is too large for a page, but most running words are few: the morphemes of some twenty thousand
are a short list, because words of one length share their row with others, and sorted words share their beginnings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, Final

from koktok.hangul import SYLLABLE
from koktok.model.vocab import MARK, Vocab, unspell
from koktok.segment import Morpheme, Policy, Segmenter
from koktok.segment.policy import cuts_of_words
from koktok.segment.segmented import BoundaryKind
from koktok.segment.serialized import deserialize, serialized_rows, spans_of

WORDS: Final = 40_000
"""Words with morphemes on a page by default, 220 kB: .7 of the running words of two syllables or more in text of the same sort, .6 in other."""

LONGEST: Final = 30
"""Syllables; longer runs are text without spaces, not words, and the length of a shared beginning is one character of 36."""

UNSURE: Final = frozenset({BoundaryKind.SUFFIX, BoundaryKind.BOUND, BoundaryKind.MODIFIER, BoundaryKind.ROOT})
"""Borders that analysers draw and most people do not: a cut there is neither right nor wrong."""

_RUN = re.compile(f"[{SYLLABLE}]{{2,{LONGEST}}}+(?![{SYLLABLE}])")
_ALL = Policy.parse("morphemes")


def runs_of(lines: Iterable[str]) -> Counter[str]:
    """Runs of two syllables or more with their counts: what is left of words without numbers, letters and signs."""
    return Counter(run for line in lines for run in _RUN.findall(line))


def words_of(vocab: Vocab) -> list[str]:
    """Runs of syllables in pieces that begin a word: what a vocabulary holds whole was frequent where it was trained."""
    spelled = vocab.kind in ("bpe-bytes", "wordpiece-bytes")
    pieces = map(unspell, vocab.pieces) if spelled else vocab.pieces
    if vocab.kind == "wordpiece":
        return [*runs_of(piece for piece in pieces if not piece.startswith(MARK))]
    return [*runs_of(piece for piece in pieces if piece.startswith(" "))]


def lexicon(counts: Counter[str], segmenter: Segmenter, most: int = WORDS) -> dict[str, Any]:
    """The `most` frequent words and their morphemes."""
    words = sorted(sorted(counts, key=lambda word: (-counts[word], word))[:most])
    shapes: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = {}
    of = []
    rows = [*serialized_rows(segmenter, words)]
    for word, row, cuts in zip(words, rows, cuts_of_words(words, spans_of(rows), _ALL), strict=True):
        sure = tuple(cut.offset for cut in cuts if cut.kind not in UNSURE)
        unsure = {cut.offset for cut in cuts} | _beside_fused(deserialize(word, row))
        shape = (row, sure, tuple(sorted(unsure.difference(sure))))
        of.append(shapes.setdefault(shape, len(shapes)))
    listed = [(row, [*sure], [*unsure]) for row, sure, unsure in shapes]
    return {"words": " ".join(_shortened(words)), "of": of, "shapes": listed}


def _beside_fused(morphemes: Iterable[Morpheme]) -> set[int]:
    """Edges of syllables that hold a border (해|요 of 하+어요): a cut there is judged nowhere in koktok."""
    times = Counter(at for m in morphemes for at in range(m.start, m.end))
    return {edge for at, n in times.items() if n > 1 for edge in (at, at + 1)}


def _shortened(words: Iterable[str]) -> Iterator[str]:
    """Sorted words without what each shares with the one before."""
    before = ""
    for word in words:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, word, strict=False)))
        yield "0123456789abcdefghijklmnopqrstuvwxyz"[same] + word[same:]
        before = word
