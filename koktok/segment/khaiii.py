"""Khaiii as a segmenter, where it is installed: it is built from its sources (github.com/kakao/khaiii) and on no index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from koktok.errors import AnalyserError, UsageError
from koktok.segment.align import laid
from koktok.segment.policy import Morpheme


class KhaiiiSegmenter:
    """Morphemes by khaiii, whose tags are Sejong's and whose forms are restored.

    Raises
    ------
    AnalyserError
        When khaiii is not installed.
    UsageError
        When a user dictionary is given: khaiii compiles its own.
    """

    def __init__(self, *, user_dictionary: str | None = None) -> None:
        if user_dictionary is not None:
            raise UsageError("a user dictionary works with Kiwi only", hint="--segmenter kiwi")
        try:
            from khaiii import KhaiiiApi
        except ImportError as error:
            hint = "build it as github.com/kakao/khaiii says, or --segmenter kiwi"
            raise AnalyserError("khaiii is not installed", hint=hint) from error
        self._khaiii: Any = KhaiiiApi()

    def signature(self) -> str:
        """The version that the library tells."""
        return f"khaiii:{self._khaiii.version()}"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in order; none where they cannot be laid on the word."""
        for word in words:
            yield laid(word, [(m.lex, m.tag) for part in self._khaiii.analyze(word) for m in part.morphs])
