"""`Stream`: whatever comes in, what goes out joins to `decode`, is never taken back, and does not wait without need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import tokenizers
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


class TestHuggingFace:
    """`tokenizers.decoders.DecodeStream` on our tokenizer.json: where it agrees, and where it cannot."""

    @staticmethod
    def theirs(folder: Path, ids: list[int]) -> str:
        hf = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
        return "".join(stream.step(hf, i) or "" for i in ids)

    @pytest.mark.parametrize("model", ["unigram", "bpe-bytes"])
    def test_it_has_no_finish_so_an_incomplete_character_is_lost(self, model: str, trained: Trained) -> None:
        """It waits while the text ends in U+FFFD and has no `finish`: a model stopped in mid-character, or a text that
        really ends so, loses its last characters. Ours gives what `decode` gives."""
        folder = trained(**MODELS[model])
        ours = load(folder)
        for ids in (ours.encode("가\ufffd").ids, ours.encode("가😀").ids[:-1]):
            assert "".join(pushed(ours.stream(), ids)) == ours.decode(ids)
            assert ours.decode(ids).endswith("\ufffd")
            assert self.theirs(folder, ids) == "가"

    def test_it_fails_on_jamo(self, trained: Trained, mini: list[str]) -> None:
        """It wants each text to begin with the one before; 나 does not begin 난. Ours waits."""
        folder = trained(**MODELS["jamo model"])
        ours = load(folder)
        died = 0
        for line in mini[::90]:
            ids = ours.encode(line).ids
            assert "".join(pushed(ours.stream(), ids)) == ours.normalize(line)
            try:
                self.theirs(folder, ids)
            except Exception as error:
                assert "Invalid prefix encountered" in str(error)  # noqa: PT017
                died += 1
        assert died > 5
