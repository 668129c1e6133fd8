"""MeCab-ko as a segmenter (extra `mecab`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from koktok.errors import MissingExtraError
from koktok.segment.policy import Morpheme


class MecabSegmenter:
    """Morphemes by python-mecab-ko.

    A fused eojeol part such as 예쁜데 is one span with the tags `VA+EC`; it stays whole, because its border is inside a syllable.
    """

    def __init__(self) -> None:
        try:
            from mecab import MeCab
        except ImportError as error:
            raise MissingExtraError("python-mecab-ko", "mecab") from error
        self._mecab = MeCab()

    def signature(self) -> str:
        """Version of the library and of its dictionary package."""
        return f"mecab-ko:{version('python-mecab-ko')}|dic:{version('python-mecab-ko-dic')}"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in order."""
        for word in words:
            yield tuple(Morpheme(m.span.start, m.span.end, m.feature.pos, m.surface) for m in self._mecab.parse(word))
