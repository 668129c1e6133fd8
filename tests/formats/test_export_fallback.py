"""The middle way: syllables whole, jamo for those without a piece; the same in every library."""

from __future__ import annotations

import json
import pickle
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import strategies as ks
from hypothesis import given
from hypothesis import strategies as st
from test_hangul import BESIDE, SYLLABLES

from koktok import Recipe, Tokenizer, hangul
from koktok.errors import RecipeError
from koktok.formats.sentencepiece import _joins, charsmap
from koktok.sentencepiece_model import ModelProto
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer
from koktok.vocab import Vocab

KNOWN = [*SYLLABLES[::5], "한글"]


@pytest.fixture(scope="module")
def normalizer() -> JamoNormalizer:
    return JamoNormalizer(Folds(), KNOWN)


@pytest.fixture(scope="module")
def hf(normalizer: JamoNormalizer) -> Any:
    from tokenizers import Tokenizer as HuggingFace
    from tokenizers.models import BPE

    blank = json.loads(HuggingFace(BPE()).to_str())
    blank["normalizer"] = normalizer.to_hf()
    return HuggingFace.from_str(json.dumps(blank)).normalizer


@pytest.fixture(scope="module")
def spm(normalizer: JamoNormalizer) -> Any:
    from sentencepiece import SentencePieceProcessor

    def load(table: bytes) -> Any:
        model = ModelProto()
        for piece, kind in (("<unk>", 2), ("가", 1)):
            model.add(piece, 0.0, kind)
        model.normalizer_spec.precompiled_charsmap = table
        model.normalizer_spec.add_dummy_prefix = model.normalizer_spec.escape_whitespaces = False
        model.normalizer_spec.remove_extra_whitespaces = False
        return SentencePieceProcessor(model_proto=model.serialized()).Normalize

    return load(charsmap(normalizer)), load(_joins())


@given(ks.korean_text())
def test_laws(text: str) -> None:
    normalizer = JamoNormalizer(Folds(), KNOWN)
    once = normalizer(text)
    assert normalizer(once) == once
    assert hangul.join(once) == Normalizer()(text)
    assert unicodedata.normalize("NFD", once) == unicodedata.normalize("NFD", Normalizer()(text))
    assert not {*once} & {*SYLLABLES} - {*KNOWN}
    aligned = normalizer.align(text)
    assert aligned.normal == once
    assert len(aligned.starts) == len(aligned.ends) == len(once)
    assert all(0 <= a < b <= len(text) for a, b in zip(aligned.starts, aligned.ends, strict=True))
    assert list(aligned.starts) == sorted(aligned.starts)


def test_a_rare_syllable_keeps_what_it_can(normalizer: JamoNormalizer) -> None:
    # KNOWN holds 가, not 각, and one open syllable in five.
    assert "각" not in KNOWN
    assert normalizer("각") == "가\u11a8"
    opened = next(s for s in SYLLABLES[::28] if s not in KNOWN)
    assert normalizer(opened) == hangul.split(opened)
    assert JamoNormalizer(Folds(), SYLLABLES).to_hf() == Normalizer().to_hf()


def test_same_in_tokenizers_for_every_syllable_beside_what_misleads(hf: Any, normalizer: JamoNormalizer) -> None:
    for other in BESIDE:
        text = "\n".join(f"{other}{s}{other}" for s in SYLLABLES)
        assert hf.normalize_str(text) == normalizer(text), repr(other)


@given(text=ks.korean_text())
def test_same_in_tokenizers_and_sentencepiece(hf: Any, spm: Any, normalizer: JamoNormalizer, text: str) -> None:
    normal = normalizer(text)
    assert hf.normalize_str(text) == normal
    forward, back = spm
    normal = normal.replace("\0", "")
    assert forward(normal) == normal
    assert forward(hangul.join(normal)) == normal
    assert back(normal) == hangul.join(normal)


def test_sentencepiece_knows_every_syllable(spm: Any, normalizer: JamoNormalizer) -> None:
    forward, back = spm
    for i in range(0, len(SYLLABLES), 500):
        text = "".join(SYLLABLES[i : i + 500])
        assert forward(text) == forward(unicodedata.normalize("NFD", text)) == normalizer(text)
        assert back(normalizer(text)) == text


@pytest.fixture(scope="module", params=["unigram", "bpe", "wordpiece", "syllable"])
def ours(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Tokenizer:
    size = {"wordpiece": 4000, "syllable": 1800}.get(request.param, 2300)
    return Tokenizer.load(trained(jamo="fallback", train={"model": request.param, "vocab_size": size}))


@given(data=st.data())
def test_any_syllable_has_pieces(ours: Tokenizer, data: st.DataObject) -> None:
    text = data.draw(st.text(st.sampled_from([*SYLLABLES, " "]), min_size=1, max_size=9).map(str.lstrip).filter(bool))
    found = ours.encode(text)
    assert not {ours.vocab.special_ids.get("[UNK]"), *range(ours.vocab.n_bytes)} & {*found.ids}
    assert all(0 <= a < b <= len(text) for a, b in found.offsets)
    if ours.lossless:
        assert ours.decode(found.ids) == ours.normalize(text) == text
        stream = ours.stream()
        assert "".join(map(stream.push, found.ids)) + stream.finish() == text
        assert next(ids.tolist() for ids in ours.encode_ids([text, text[::-1]])) == found.ids


def test_two_normalizers_are_equal_only_with_the_same_syllables(normalizer: JamoNormalizer) -> None:
    """What is compiled for one is kept, and must not be given to another."""
    assert normalizer != Normalizer() != normalizer
    assert normalizer != JamoNormalizer(Folds(), ["가"])
    again = pickle.loads(pickle.dumps(normalizer))
    assert again == normalizer
    assert hash(again) == hash(normalizer)


def test_what_has_bytes_anyway_is_refused() -> None:
    for model in ("bpe-bytes", "wordpiece-bytes", "word", "ngram", "morpheme"):
        with pytest.raises(RecipeError, match="jamo for rare syllables alone is for unigram"):
            Recipe().changed(jamo="fallback", train={"model": model})
    with pytest.raises(RecipeError, match="`jamo` is 'sometimes': wanted true, false"):
        Recipe().changed(jamo="sometimes")
    assert Recipe.from_toml("[recipe]\njamo = true").spelled
    assert not Recipe.from_toml('[recipe]\njamo = "fallback"').spelled
    assert Recipe().changed(jamo="fallback", train={"superwords": 0.2}).train.superwords == 0.2


def test_pieces_of_wordpiece_want_both_places() -> None:
    vocab = Vocab.plain("wordpiece", ["가", "##가", "나"], specials=["[UNK]"])
    assert vocab.whole_characters == {"가"}
