"""`Stream`: whatever comes in, what goes out joins to `decode`, is never taken back, and does not wait without need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import tokenizers
from conftest import MODELS, WITHOUT_HF
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import emoji, hanja, korean_text

from koktok import Recipe, Tokenizer
from koktok.errors import InputError
from koktok.hangul import may_grow
from koktok.tokenizer.decoding import Stream
from koktok.vocab import Vocab

Trained = Callable[..., Path]

RECIPES = {
    **MODELS,
    "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
    "fallback": {"jamo": "fallback"},
    "jamo bpe-bytes": {"jamo": True, "train": {"model": "bpe-bytes", "vocab_size": 1500}},
    "jamo wordpiece": {"jamo": True, "train": {"model": "wordpiece", "vocab_size": 1500}},
}


@pytest.fixture(scope="module", params=RECIPES)
def tokenizer(request: pytest.FixtureRequest, trained: Trained) -> Tokenizer:
    return Tokenizer.load(trained(**RECIPES[request.param]))


def pushed(stream: Stream, ids: Iterable[int]) -> list[str]:
    return [*map(stream.push, ids), stream.finish()]


@given(text=korean_text())
def test_text_comes_back_and_is_never_broken(tokenizer: Tokenizer, text: str) -> None:
    """In both ways of waiting: no character is lost or repeated, and no U+FFFD appears that the text has not."""
    ids = tokenizer.encode(text).ids
    expected = tokenizer.decode(ids)
    for early in (False, True):
        parts = pushed(tokenizer.stream(early=early), ids)
        assert "".join(parts) == expected
        if tokenizer.lossless:
            assert "".join(parts).count("\ufffd") == tokenizer.normalize(text).count("\ufffd")


def some_ids(vocab: Vocab) -> st.SearchStrategy[list[int]]:
    """Any ids, with bytes, halves of characters, jamo and special tokens far more often than chance would have them."""
    jamo = [i for i, token in enumerate(vocab.tokens) if len(token) == 1 and "\u1100" <= token <= "\u11ff"]
    special = list(vocab.special_ids.values())
    one = st.one_of(
        st.integers(0, vocab.size - 1), *(st.sampled_from(ids) for ids in (sorted(vocab.fragment_ids), jamo, special) if ids)
    )  # fmt: skip
    return st.lists(one, max_size=14)


@given(st.data())
def test_any_ids_give_what_decode_gives(tokenizer: Tokenizer, data: st.DataObject) -> None:
    """Broken bytes too: U+FFFD exactly where `decode` has it."""
    ids = data.draw(some_ids(tokenizer.vocab))
    for skip in (False, True):
        stream = tokenizer.stream(skip_special_tokens=skip)
        assert "".join(pushed(stream, ids)) == tokenizer.decode(ids, skip_special_tokens=skip)
        assert "".join(pushed(stream, ids)) == tokenizer.decode(ids, skip_special_tokens=skip)  # as new after finish


@given(st.data())
def test_what_waits_is_bounded(tokenizer: Tokenizer, data: st.DataObject) -> None:
    """Early: less than a character of bytes and one open syllable. By default a run of byte pieces besides, no more."""
    ids = data.draw(some_ids(tokenizer.vocab))
    vocab = tokenizer.vocab
    early, usual = tokenizer.stream(early=True), tokenizer.stream()
    done = {"early": "", "usual": ""}
    for n, i in enumerate(ids, start=1):
        done["early"] += early.push(i)
        done["usual"] += usual.push(i)
        run = next((k for k, j in enumerate(reversed(ids[:n])) if j >= vocab.n_bytes), n)
        settled = tokenizer.decode(ids[: n - run])
        assert len(done["usual"]) >= len(settled) - 2  # an open syllable may be two or three jamo of which one is held
        if not run:
            assert not usual.waiting or usual._open or vocab.kind.endswith("bytes")
        raw = early._decoder
        assert len(raw._utf8.getstate()[0]) <= 3 if hasattr(raw, "_utf8") else not raw.waiting
        assert len(early._open) <= 1
        assert not early._open or may_grow(early._open)


@given(text=st.one_of(hanja(), emoji(), st.text(st.characters(min_codepoint=0x0E01, max_codepoint=0x0E3A))))
@example(text="ภาษาไทย" * 200)
def test_early_lets_each_character_out_with_its_last_byte(trained: Trained, text: str) -> None:
    tokenizer = Tokenizer.load(trained())
    encoding = tokenizer.encode(text)
    stream, out = tokenizer.stream(early=True), ""
    for i, (_, end) in zip(encoding.ids, encoding.offsets, strict=True):
        out += stream.push(i)
        if tokenizer.normalize(text) == text:
            assert text[: end - 1] == out or text[:end] == out
    assert not stream.waiting
    assert out == tokenizer.normalize(text)


def test_a_syllable_waits_for_its_final() -> None:
    """가 may become 갔, and 갔 nothing more; a lead waits for its vowel, the typed ㅎ for nothing."""
    letters = ["\u1100", "\u1161", "\u11bb", "\u1103", "ㅎ", "ㅏ", "다"]
    tokenizer = Tokenizer(Recipe(jamo=True), Vocab.plain("jamo", [*letters, " "]))
    ids = {letter: tokenizer.vocab.ids[letter] for letter in [*letters, " "]}
    stream = tokenizer.stream()
    given = ["\u1100", "\u1161", "\u11bb", "\u1103", "\u1161", " ", "ㅎ", "ㅏ", "다", "\u1103"]
    assert [stream.push(ids[letter]) for letter in given] == ["", "", "갔", "", "", "다 ", "ㅎ", "ㅏ", "", "다"]
    assert (stream.waiting, stream.finish(), stream.waiting) == (True, "\u1103", False)


def test_every_syllable_of_jamo_in_every_cut() -> None:
    """All 11,172: the two or three jamo of a syllable one by one, and nothing of the next one is lost."""
    jamo = [*map(chr, range(0x1100, 0x1113)), *map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))]
    tokenizer = Tokenizer(Recipe(jamo=True), Vocab.plain("jamo", jamo))
    text = "".join(map(chr, range(0xAC00, 0xD7A4)))
    parts = pushed(tokenizer.stream(), tokenizer.encode(text).ids)
    assert "".join(parts) == text
    assert max(map(len, parts)) == 1


def test_a_wrong_id_leaves_the_stream_as_it_was(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("가나다 漢字").ids
    stream = tokenizer.stream()
    parts = []
    for i in ids:
        for wrong, message in (
            (-1, "outside the vocabulary"),
            (tokenizer.vocab.size, "outside the vocabulary"),
            ("1", "ids are integers"),
            (None, "ids are integers"),
            ([1], "ids are integers"),
        ):
            with pytest.raises(InputError, match=message):
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

    @pytest.mark.parametrize("model", [name for name in MODELS if name not in (*WITHOUT_HF, "jamo model")])
    def test_the_same_text_on_mini(self, model: str, trained: Trained, mini: list[str]) -> None:
        folder = trained(**MODELS[model])
        ours = Tokenizer.load(folder)
        for line in mini[::9]:
            ids = ours.encode(line).ids
            assert self.theirs(folder, ids) == "".join(pushed(ours.stream(), ids)) == ours.decode(ids)

    @pytest.mark.parametrize("model", ["unigram", "bpe-bytes"])
    def test_it_never_ends_so_a_broken_end_is_lost(self, model: str, trained: Trained) -> None:
        """It waits while the text ends in U+FFFD and has no `finish`: a model stopped in mid-character, or a text that
        really ends so, loses its last characters. Ours gives what `decode` gives."""
        folder = trained(**MODELS[model])
        ours = Tokenizer.load(folder)
        for ids in (ours.encode("가\ufffd").ids, ours.encode("가😀").ids[:-1]):
            assert "".join(pushed(ours.stream(), ids)) == ours.decode(ids)
            assert ours.decode(ids).endswith("\ufffd")
            assert self.theirs(folder, ids) == "가"

    @pytest.mark.parametrize("name", ["jamo", "jamo bpe-bytes", "jamo model"])
    def test_it_dies_of_jamo(self, name: str, trained: Trained, mini: list[str]) -> None:
        """It wants each text to begin with the one before; 나 does not begin 난. Ours waits."""
        folder = trained(**RECIPES[name])
        ours = Tokenizer.load(folder)
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
