"""Morphological analysers as tokenizers, to compare vocabularies with in reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import Final

from koktok.errors import AnalyserError, MissingExtraError
from koktok.model.note import Note
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.references.trivial import Cut, OpenVocabulary
from koktok.segment import ANALYSERS as SEGMENTERS
from koktok.segment import Policy, segmenter_for
from koktok.segment.policy import Spans, cuts_of_words


def _open_mecab() -> LibraryTokenizer:
    """Morphemes of MeCab-ko; a fused syllable (했) is one."""
    try:
        from mecab import MeCab
    except ImportError as error:
        raise MissingExtraError("python-mecab-ko", "mecab") from error
    mecab = MeCab()

    def cut(line: str) -> list[tuple[int, int]]:
        # The library's own spans are wrong after a leading space, so the surfaces are searched in the line.
        spans, at = [], 0
        for morpheme in mecab.parse(line) if line.strip() else []:
            start = line.find(morpheme.surface, at)
            at = start + len(morpheme.surface)
            spans.append((start, at))
        return spans

    return _analyser(
        "mecab-ko",
        lambda lines: [cut(line) for line in lines],
        {name: version(name) for name in ("python-mecab-ko", "python-mecab-ko-dic")},
        Note(
            "analyser at run time; surface morphemes, a fused syllable stays whole, spaces are no tokens",
            "실행할 때 형태소 분석기를 씀; 표면형 형태소, 융합된 음절은 나누지 않음, 공백은 토큰이 되지 않음",
        ),
    )


def _open_kiwi() -> LibraryTokenizer:
    """Morphemes of Kiwi in whole sentences; a fused syllable has two tokens with the same span."""
    from kiwipiepy import Kiwi

    try:
        kiwi = Kiwi(load_multi_dict=False, model_type="cong")
    except Exception as error:
        raise AnalyserError(f"Kiwi could not be loaded: {error}") from error

    def cut(lines: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        return [[(t.start, t.end, t.form) for t in row] for row in kiwi.tokenize(iter(lines))]

    return _analyser(
        "kiwi",
        cut,
        {name: version(name) for name in ("kiwipiepy", "kiwipiepy_model")},
        Note(
            "analyser at run time; morphemes are restored forms, spaces are no tokens",
            "실행할 때 형태소 분석기를 씀; 형태소는 원형으로 복원됨, 공백은 토큰이 되지 않음",
        ),
    )


def _analyser(
    name: str, cut: Cut, libraries: dict[str, str], note: Note, signature: str | None = None
) -> LibraryTokenizer:
    digest = hashlib.sha256((signature or repr(libraries)).encode()).hexdigest()[:16]
    return OpenVocabulary(name, name, cut, digest=digest, libraries=libraries, notes=[note])


def open_segmenter(name: str) -> LibraryTokenizer:
    """A segmenter of the training, by its name, as a tokenizer: its cuts of each eojeol, analysed alone."""
    segmenter, policy = segmenter_for(name), Policy.parse("morphemes")

    def cut(lines: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        places = [[(match.start(), match.group()) for match in re.finditer(r"\S+", line)] for line in lines]
        words = [*dict.fromkeys(word for line in places for _, word in line)]
        rows = cuts_of_words(words, Spans.of(segmenter.analyse(words)), policy)
        ends = {word: [0, *(c.offset for c in cuts), len(word)] for word, cuts in zip(words, rows, strict=True)}
        return [
            [(start + a, start + b, word[a:b]) for start, word in line for a, b in pairwise(ends[word])]
            for line in places
        ]

    return _analyser(
        name,
        cut,
        {name: segmenter.signature()},
        Note(
            "analyser at run time, an eojeol at a time; restored forms are aligned to the text, spaces are no tokens",
            "실행할 때 형태소 분석기를 어절마다 씀; 복원된 형태를 본문에 맞춤, 공백은 토큰이 되지 않음",
        ),
        segmenter.signature(),
    )


ANALYSERS: Final[dict[str, Callable[[], LibraryTokenizer]]] = {
    "kiwi": _open_kiwi,
    "mecab-ko": _open_mecab,
    **{
        name: partial(open_segmenter, name)
        for name, row in SEGMENTERS.items()
        if row.analyses and not row.learns and name not in ("kiwi", "mecab")
    },
}
"""Openers of the analysers: Kiwi and MeCab-ko read whole lines, the others that need no counts an eojeol at a time."""
