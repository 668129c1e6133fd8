"""Khaiii as a segmenter, where it is installed: it is built from its sources (github.com/kakao/khaiii) and on no index."""

from __future__ import annotations

import locale
from collections.abc import Iterable, Iterator
from typing import Any, Final

from koktok.errors import AnalyserError
from koktok.segment.align import laid
from koktok.segment.policy import Morpheme

LOCALE: Final = "en_US.UTF-8"
"""Where it is missing, khaiii ends the whole process at the first word."""

TAGS: Final = {"SWK": "SW", "ZN": "UN", "ZV": "UN", "ZZ": "UN"}
"""Its tags that are not Sejong's (lone jamo, and what it could not analyse) to those that are."""


class KhaiiiSegmenter:
    """Morphemes by khaiii, whose tags are Sejong's but for a few and whose forms are restored."""

    def __init__(self) -> None:
        try:
            from khaiii import KhaiiiApi
        except ImportError as error:
            hint = "build it as github.com/kakao/khaiii says, or --segmenter kiwi"
            raise AnalyserError("khaiii is not installed", hint=hint) from error
        if not _has_locale():
            hint = f"apt-get install locales; localedef -i en_US -f UTF-8 {LOCALE}"
            raise AnalyserError(f"khaiii requires the locale {LOCALE}, which is not installed", hint=hint)
        try:
            self._khaiii: Any = KhaiiiApi()
        except Exception as error:
            hint = "its library belongs in the folder lib, its resources into share/khaiii beside its Python files"
            raise AnalyserError(f"khaiii could not be loaded: {error}", hint=hint) from error

    def signature(self) -> str:
        """The version of the library."""
        return f"khaiii:{self._khaiii.version()}"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in order; none where they cannot be laid on the word."""
        for word in words:
            morphs = [m for part in self._khaiii.analyze(word) for m in part.morphs]
            yield laid(word, [(m.lex, TAGS.get(m.tag, m.tag)) for m in morphs])


def _has_locale() -> bool:
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, LOCALE)
    except locale.Error:
        return False
    else:
        return True
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
