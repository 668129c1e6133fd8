"""Lines to words: what a word is, and counts of lines that are there already.

This file adds: the word. A word (eojeol 어절) is a run of spaces and the run of other characters behind it, so the
words of a line join back to the line, and normalizing or pre-tokenizing the distinct words once is exact (law 11).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from koktok.count.counts import Counts
from koktok.errors import InputError

__all__ = ["WordCounter", "count_words", "words_of"]

_WORD = re.compile(r" *[^ ]+| +")


def words_of(line: str) -> list[str]:
    """A line cut into words: leading spaces and what follows them; spaces at the end stand alone.

    Examples
    --------
    >>> words_of("나는  집에 ")
    ['나는', '  집에', ' ']
    """
    if "  " not in line and not line.startswith(" ") and not line.endswith(" "):
        first, *rest = line.split(" ")
        return [first, *[" " + word for word in rest]] if first else []
    return _WORD.findall(line)


class WordCounter:
    """A count in progress: add lines, then take the counts.

    Examples
    --------
    >>> counter = WordCounter()
    >>> counter.add("나는 집에"); counter.add("집에 나는")
    >>> counter.counts().as_dict()
    {' 나는': 1, ' 집에': 1, '나는': 1, '집에': 1}
    """

    def __init__(self) -> None:
        self._first: Counter[str] = Counter()
        self._inner: Counter[str] = Counter()  # without their leading space, which saves a string per running word
        self._spaced: Counter[str] = Counter()

    def add(self, line: str) -> None:
        """Count the words of one line."""
        if "  " in line or line.startswith(" ") or line.endswith(" "):
            self._spaced.update(_WORD.findall(line))
        elif line:
            words = line.split(" ")
            self._first[words[0]] += 1
            del words[0]
            self._inner.update(words)

    def counts(self, weight: float = 1.0) -> Counts:
        """What was counted so far, times `weight`, rounded to integers, halves to even; words that round to 0 go."""
        total = self._first + self._spaced
        total.update({" " + word: n for word, n in self._inner.items()})
        if weight != 1.0:
            return Counts.from_mapping({word: round(n * weight) for word, n in total.items()})
        return Counts.from_mapping(total)


def count_words(lines: Iterable[str]) -> Counts:
    """Count the words of lines.

    Raises
    ------
    InputError
        When a bare string comes in place of lines.

    Examples
    --------
    >>> count_words(["나는 집에", "집에 나는"])
    Counts(words=4, total=4)
    """
    if isinstance(lines, str):
        raise InputError("one `str` came where lines were wanted", hint="count_words([text])")
    counter = WordCounter()
    for line in lines:
        counter.add(line)
    return counter.counts()
