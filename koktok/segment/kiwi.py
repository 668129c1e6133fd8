"""Kiwi as a segmenter. The only file that imports kiwipiepy.

Kiwi reads NFC text only (the NFD of 학교 is one unknown noun to it), so normalization
comes before; and it is asked about words, not sentences: on 345,096 distinct eojeols of reviews and petitions that
agreed with analysis in context for 95.9 % of running words.
"""

from __future__ import annotations

import codecs
import hashlib
import shlex
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from koktok.errors import AnalyserError, InputError, visible
from koktok.files import MOST_TEXT, read_bounded
from koktok.segment.policy import Morpheme
from koktok.segment.serialized import serialize

MAX_FORM = 100
"""Characters in a form of the user dictionary: longer words are not analysed at all (`koktok.segment.MAX_ANALYSED`)."""

MAX_SCORE = 1000.0
"""Of a form, either way: Kiwi's own scores are logarithms of probabilities, tens at most."""


class KiwiSegmenter:
    """Morphemes by Kiwi."""

    def __init__(self, *, user_dictionary: str | None = None, threads: int | None = None) -> None:
        import kiwipiepy
        import kiwipiepy_model

        digest = ""
        if user_dictionary is not None:
            try:
                content = read_bounded(Path(user_dictionary), MOST_TEXT, "a user dictionary")
            except OSError as error:
                raise InputError(f"the user dictionary `{user_dictionary}` cannot be read: {error}") from error
            _check(content, user_dictionary)
            digest = hashlib.sha256(content).hexdigest()[:16]
        self._dictionary = user_dictionary
        self._threads = threads
        self._kiwi: Any = None
        self._signature = "|".join(
            [
                f"kiwi:{kiwipiepy.__version__}",
                f"model:{kiwipiepy_model.__version__}",
                "type:cong",
                "multi:no",
                f"user:{digest or 'none'}",
            ]
        )

    def signature(self) -> str:
        """Versions of Kiwi and its model, and the digest of the user dictionary."""
        return self._signature

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, lazily, in order, on all threads."""
        for tokens in self._tokens(words):
            yield tuple(Morpheme(t.start, t.end, t.tag, t.form) for t in tokens)

    def serialized(self, words: Iterable[str]) -> Iterator[str]:
        """The rows of each word, as `analyse` gives its morphemes."""
        kept = list(words)
        for word, tokens in zip(kept, self._tokens(kept), strict=True):
            yield serialize(word, [(t.start, t.end, t.tag, t.form) for t in tokens])

    def sentences(self, line: str) -> list[str]:
        """The sentences of a line by Kiwi's splitter; stripped, none of them empty."""
        return [text for found in self._load().split_into_sents(line) if (text := found.text.strip())]

    def _tokens(self, words: Iterable[str]) -> Iterator[Any]:
        """Kiwi's own tokens of each word."""
        kiwi = self._load()
        # z_coda=False: a lone final consonant (어딨ㅇ) stays with its word, it is no morpheme.
        if self._threads == 1:
            return (kiwi.tokenize(word, z_coda=False) for word in words)
        return iter(kiwi.tokenize(iter(words), z_coda=False))

    def _load(self) -> Any:
        """Kiwi takes seconds to load, so it loads at the first question; a fully cached training never asks one."""
        if self._kiwi is None:
            from kiwipiepy import Kiwi

            # 0: no thread beside the caller's, and no hand-over of every word to it, which takes a tenth of the time.
            workers = 0 if self._threads == 1 else self._threads or -1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # 0 meant all cores before 0.21
                    # load_multi_dict=False: multi-word entries (대한 민국) matter for sentences, not for single words.
                    self._kiwi = Kiwi(num_workers=workers, load_multi_dict=False, model_type="cong")
                if self._dictionary is not None:
                    self._kiwi.load_user_dictionary(self._dictionary)
            except Exception as error:
                raise AnalyserError(f"Kiwi could not be loaded: {error}") from error
        return self._kiwi


def _check(content: bytes, name: str) -> None:
    """Refuse what Kiwi takes without a word: it reads a score that is none as 0, and a mark as part of the first form."""
    path = shlex.quote(name)
    if content.startswith(codecs.BOM_UTF8):
        raise InputError(
            f"the user dictionary `{name}` begins with a byte order mark", hint=f"tail -c +4 {path} > {path}.utf8.tsv"
        )
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        hint = f"iconv -f cp949 -t utf-8 {path} > {path}.utf8.tsv"
        raise InputError(f"the user dictionary `{name}` is not UTF-8: {error}", hint=hint) from None
    for number, line in enumerate(lines, 1):
        fields = line.removesuffix("\r").split("\t")
        score = fields[2].split("#")[0].strip() if len(fields) > 2 else ""
        if line.startswith("#"):
            continue
        if visible(line.removesuffix("\r")) != line.removesuffix("\r"):
            why = "holds a control character"
        elif len(fields[0].split()) > 1:
            why = f"has the form `{fields[0][:40]}` with a space; words are analysed one by one, so it would never be found"
        elif len(fields[0]) > MAX_FORM:
            why = f"has a form of {len(fields[0]):,} characters; {MAX_FORM} at most are analysed"
        elif score and not _is_score(score):
            why = f"has the score `{score[:40]}`; expected a number from {-MAX_SCORE:g} to {MAX_SCORE:g}"
        else:
            continue
        raise InputError(f"the user dictionary `{name}`, line {number}, {why}", hint=f"sed -n {number}p {path}")


def _is_score(text: str) -> bool:
    try:
        return abs(float(text)) <= MAX_SCORE  # False for nan
    except ValueError:
        return False
