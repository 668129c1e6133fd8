"""Raw words to pre-tokens: each distinct word normalized and cut once, which is exact by law 11.

This file adds: the short way. Nine words in ten are Hangul syllables, letters and the like, which no rule touches and
no pattern cuts; compiled code finds them, and only the others become strings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from koktok.count.counts import Counts
from koktok.count.engine import OwnEngine, total
from koktok.count.rows import Rows
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["prepare", "untouched"]

_SYLLABLES = "".join(map(chr, range(0xAC00, 0xD7A4)))
_ASCII = [
    chr(i) for i in (*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), *range(33, 65), *range(91, 97))
]


def prepare(counts: Counts, normalizer: Normalizer, pattern: Pattern) -> Counts:
    """Counts of the pre-tokens of counted words; documents are those of the words, added up.

    Examples
    --------
    >>> prepare(Counts.from_mapping({"3개": 2, " 집": 1}), Normalizer(), Pattern(digits="single")).as_dict()
    {' 집': 1, '3': 2, '개': 2}
    """
    from koktok.count.table import plain

    rows = counts.rows()
    table = untouched(normalizer, pattern)
    same = plain(rows.data, rows.offsets, table) if table.any() else np.zeros(len(rows), np.bool_)
    others = rows.where(~same)
    n: dict[str, int] = {}
    documents: dict[str, int] = {}
    for word, times, held_by in zip(others, others.n.tolist(), others.documents.tolist(), strict=True):
        for pretoken in pattern.pretokenize(normalizer(word)):
            n[pretoken] = n.get(pretoken, 0) + times
            documents[pretoken] = documents.get(pretoken, 0) + held_by
    changed = Rows.of(n)
    changed.documents[:] = [documents[word] for word in sorted(n)]
    found = Counts.from_rows(total([rows.where(same), changed], OwnEngine()))
    if counts.documents is None:
        found.documents = None
    return found


@lru_cache(maxsize=8)
def untouched(normalizer: Normalizer, pattern: Pattern) -> NDArray[np.bool_]:
    """Which ASCII characters, in any company of each other and of Hangul syllables, are neither changed nor cut.

    All of it is False where syllables themselves are not safe. Pairs tell, because a cut depends on nothing but the two
    characters beside it; what looks further (groups of digits, repeated signs) shows in a run of forty.
    """
    safe = np.zeros(128, np.bool_)
    every = "".join(char * 10 for char in _SYLLABLES)
    if normalizer(every) != every or pattern.pretokenize(every) != [every]:
        return safe
    kept = ["가"]
    for char in _ASCII:
        run = char * 40
        pairs = [a + b for other in [*kept, char] for a, b in ((char, other), (other, char))]
        whole = all(normalizer(text) == text and pattern.pretokenize(text) == [text] for text in (run, *pairs))
        if whole and pattern.pretokenize(" " + char) == [" " + char]:
            kept.append(char)
            safe[ord(char)] = True
    safe[ord(" ")] = True  # leading ones only: that is what a word is
    return safe
