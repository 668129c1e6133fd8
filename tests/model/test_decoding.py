"""`Stream`: whatever comes in, what goes out joins to `decode`, is never taken back, and does not wait without need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from conftest import MODELS

from koktok import Recipe, load
from koktok.errors import InputError
from koktok.model.decoding import Stream
from koktok.model.vocab import Vocab
from koktok.tokenizer import TrainedTokenizer

Trained = Callable[..., Path]


def pushed(stream: Stream, ids: Iterable[int]) -> list[str]:
    return [*map(stream.push, ids), stream.finish()]


def test_a_syllable_waits_for_its_final() -> None:
    """가 may become 갔, and 갔 nothing more; a lead waits for its vowel, the typed ㅎ for nothing."""
    letters = ["\u1100", "\u1161", "\u11bb", "\u1103", "ㅎ", "ㅏ", "다"]
    tokenizer = TrainedTokenizer(Recipe(jamo=True), Vocab.plain("jamo", [*letters, " "]))
    ids = {letter: tokenizer.vocab.ids[letter] for letter in [*letters, " "]}
    stream = tokenizer.stream()
    given = ["\u1100", "\u1161", "\u11bb", "\u1103", "\u1161", " ", "ㅎ", "ㅏ", "다", "\u1103"]
    assert [stream.push(ids[letter]) for letter in given] == ["", "", "갔", "", "", "다 ", "ㅎ", "ㅏ", "", "다"]
    assert (stream.waiting, stream.finish(), stream.waiting) == (True, "\u1103", False)


def test_every_syllable_of_jamo_in_every_cut() -> None:
    """All 11,172: the two or three jamo of a syllable one by one, and nothing of the next one is lost."""
    jamo = [*map(chr, range(0x1100, 0x1113)), *map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))]
    tokenizer = TrainedTokenizer(Recipe(jamo=True), Vocab.plain("jamo", jamo))
    text = "".join(map(chr, range(0xAC00, 0xD7A4)))
    parts = pushed(tokenizer.stream(), tokenizer.encode(text).ids)
    assert "".join(parts) == text
    assert max(map(len, parts)) == 1


def test_a_wrong_id_leaves_the_stream_as_it_was(trained: Trained) -> None:
    tokenizer = load(trained(**MODELS["jamo model"]))
    ids = tokenizer.encode("가나다 漢字").ids
    stream = tokenizer.stream()
    parts = []
    for i in ids:
        for wrong in (-1, tokenizer.vocab.size, "1", None, [1]):
            with pytest.raises(InputError, match=r"outside the vocabulary|expected an integer as id"):
                stream.push(wrong)  # type: ignore[arg-type]
        parts.append(stream.push(i))
    assert "".join([*parts, stream.finish()]) == tokenizer.decode(ids)
