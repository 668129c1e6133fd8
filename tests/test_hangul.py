"""Laws of hangul.py: an exact inverse, cuts that move along, and the same in every library, for all syllables or rare ones."""

from __future__ import annotations

import json
import pickle
import re
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies as ks
from hypothesis import given
from hypothesis import strategies as st

from koktok import Recipe, Tokenizer, hangul, load
from koktok.errors import RecipeError
from koktok.model.vocab import Vocab
from koktok.runtimes.huggingface.normalizer import normalizer_node
from koktok.runtimes.huggingface.tokenizer_json import jamo_decoders
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.runtimes.sentencepiece.model_proto import _joins, charsmap
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer, nfc

with warnings.catch_warnings():  # an escape in its source, of which Python warns from 3.12 on when it compiles it
    warnings.simplefilter("ignore")
    import jamo

SYLLABLES = [chr(c) for c in range(0xAC00, 0xD7A4)]
# What may stand beside a syllable and mislead: jamo of each kind, fillers, marks of two and three bytes, joiners.
BESIDE = ["", *ks.LEADS, *ks.VOWELS, *ks.FINALS, *ks.OLD_LEADS, *ks.OLD_VOWELS, *ks.OLD_FINALS, *ks.TONE_MARKS, "가", "각",
          "ㅋ", "ㅏ", "\ud7c7", "\u11a7", "a", " ", "\u0301", "\u0323", "\u034f", "\u034f\u0301", "\u034f\u034f", "·", "\u20e3",
          "\u200d", "\ufe0f", "\u0600", "😀"]  # fmt: skip

FEW = ["", *ks.LEADS[::9], *ks.VOWELS[::10], *ks.FINALS[::13], *ks.OLD_LEADS[:1], *ks.OLD_VOWELS[:1], *ks.OLD_FINALS[:1],
       *ks.TONE_MARKS, *BESIDE[BESIDE.index("가") :]]  # fmt: skip
"""Of each kind of jamo a few."""

NORMALIZERS = {
    "all": JamoNormalizer(Folds(zero_width=False)),
    "rare": JamoNormalizer(Folds(zero_width=False), [*SYLLABLES[::5], "한글"]),  # of syllables without a piece
}


@pytest.fixture(scope="module", params=NORMALIZERS)
def normalizer(request: pytest.FixtureRequest) -> JamoNormalizer:
    return NORMALIZERS[request.param]


@pytest.fixture(scope="module")
def hf(normalizer: JamoNormalizer) -> Any:
    """The whole way of a tokenizer.json: normalize, and decode one piece."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    blank = json.loads(Tokenizer(BPE()).to_str())
    blank["normalizer"] = normalizer_node(normalizer)
    blank["decoder"] = {"type": "Sequence", "decoders": [{"type": "Fuse"}, *jamo_decoders()]}
    return Tokenizer.from_str(json.dumps(blank))


@pytest.fixture(scope="module")
def spm(normalizer: JamoNormalizer) -> Any:
    """The whole way of a tokenizer.model."""
    from sentencepiece import SentencePieceProcessor

    def normalizer_of(table: bytes) -> Any:
        model = ModelProto()
        for piece, kind in (("<unk>", 2), ("가", 1)):
            model.add(piece, 0.0, kind)
        rules = model.normalizer_spec
        rules.precompiled_charsmap = table
        rules.add_dummy_prefix = rules.escape_whitespaces = rules.remove_extra_whitespaces = False
        return SentencePieceProcessor(model_proto=model.serialized()).Normalize

    return normalizer_of(charsmap(normalizer)), normalizer_of(_joins())


# --- laws ---------------------------------------------------------------------------------------------------------


@given(ks.korean_text())
def test_split_and_join(text: str) -> None:
    """An exact inverse on NFC, idempotent, canonically equal, and what the package jamo does."""
    parts = hangul.split(text)
    assert hangul.split(parts) == parts == jamo.h2j(text)
    assert unicodedata.normalize("NFD", parts) == unicodedata.normalize("NFD", text)
    assert hangul.join(hangul.split(nfc(text))) == nfc(text)


@given(text=ks.korean_text())
def test_normalization_and_alignment(normalizer: JamoNormalizer, text: str) -> None:
    once = normalizer(text)
    assert normalizer(once) == once
    assert hangul.join(once) == nfc(text)
    assert unicodedata.normalize("NFD", once) == unicodedata.normalize("NFD", nfc(text))
    aligned = normalizer.align(text)
    assert aligned.normal == once
    assert len(aligned.starts) == len(aligned.ends) == len(once)
    assert all(0 <= a < b <= len(text) for a, b in zip(aligned.starts, aligned.ends, strict=True))
    assert list(aligned.starts) == sorted(aligned.starts)


@given(ks.korean_text())
def test_letters_are_those_of_the_jamo_package(text: str) -> None:
    for char in {*text, *"가힣각"}:
        assert hangul.is_syllable(char) == jamo.is_hangul_char(char) == (ord(char) in hangul.SYLLABLES)
        if hangul.is_syllable(char):
            numbers = hangul.letters_of(char)
            lead, vowel, tail = (
                letters[n] for letters, n in zip((hangul.LEADS, hangul.VOWELS, hangul.TAILS), numbers, strict=True)
            )
            assert jamo.j2h(lead, vowel, tail) == hangul.compose(*numbers) == char
            assert jamo.j2hcj(hangul.split(char)) == lead + vowel + tail
            assert hangul.may_grow(char) == (not tail)


def test_the_letters_are_those_of_unicode() -> None:
    assert (len(hangul.LEADS), len(hangul.VOWELS), len(hangul.TAILS), len(hangul.MODERN_JAMO)) == (19, 21, 28, 67)
    for c, parts in hangul.SPLIT.items():
        assert parts == unicodedata.normalize("NFD", chr(c))
    for char, letter in hangul.COMPATIBILITY.items():
        assert unicodedata.name(letter).split()[-1] == unicodedata.name(char).split()[-1]
        assert hangul.may_grow(char) == bool(re.match(f"[{hangul.LEAD}]", char))


def test_syllables_are_told_alike_one_by_one_and_in_arrays() -> None:
    text = "".join(BESIDE) + "가힣\uabff\ud7a4漢A"
    told = [hangul.is_syllable(char) for char in text]
    assert hangul.syllable_mask(np.frombuffer(text.encode("utf-32-le"), np.uint32)).tolist() == told
    assert hangul.count_syllables(text) == sum(told)
    assert [hangul.has_syllable(char) for char in text] == told


@given(st.data())
def test_offsets_and_cuts_move_along(data: st.DataObject) -> None:
    text = data.draw(ks.korean_text())
    at, parts = hangul.offsets(text), hangul.split(text)
    assert all(hangul.split(text[:i]) == parts[: at[i]] for i in range(0, len(text) + 1, 1 + len(text) // 20))
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=5))
    codas = {i for i in sorted(cuts) if i < len(text) and len(hangul.split(text[i])) == 3}
    moved = hangul.split_cuts(text, [*cuts, *((i, "coda") for i in codas)])
    assert moved == sorted({at[i] for i in cuts} | {at[i] + 2 for i in codas})
    assert all("\u11a8" <= parts[at[i] + 2] <= "\u11c2" for i in codas)


# --- other libraries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_every_syllable_beside_what_misleads(hf: Any, normalizer: JamoNormalizer, step: int) -> None:
    """By default each syllable beside every eleventh, so that every lead, vowel and final is beside all."""
    for i, other in enumerate(BESIDE):
        text = nfc("\n".join(f"{other}{s}{other}" for s in SYLLABLES[i % step :: step]))
        assert hf.normalizer.normalize_str(text) == normalizer(text), repr(other)
        assert hangul.join(hangul.split(text)) == text


@pytest.mark.parametrize("normalizer", ["all"], indirect=True)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_triples_of_what_misleads_and_every_code_point(hf: Any, normalizer: JamoNormalizer, every: bool) -> None:
    """By default all pairs, triples of a few of each kind, and the code points that are assigned."""
    among = BESIDE if every else FEW
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    chars = [c for c in chars if every or unicodedata.category(c) not in ("Cn", "Co")]
    texts = ["\n".join(first + second + third for second in among for third in among) for first in among]
    texts.append("\n".join(first + second for first in BESIDE for second in BESIDE))
    texts += ["".join(f"{c}가{c}각{c}" for c in chars[i : i + 9999]) for i in range(0, len(chars), 9999)]
    for text in map(nfc, texts):
        assert hf.normalizer.normalize_str(text) == normalizer(text)


@given(text=ks.korean_text())
def test_the_same_in_tokenizers_and_sentencepiece(hf: Any, spm: Any, normalizer: JamoNormalizer, text: str) -> None:
    normal = normalizer(text)
    assert hf.normalizer.normalize_str(text) == normal
    assert hf.decoder.decode([normal]) == hangul.join(normal)
    forward, back = spm
    normal = normal.replace("\0", "")  # SentencePiece's own texts end at a NUL
    assert forward(hangul.join(normal)) == forward(normal) == normal
    assert back(normal) == hangul.join(normal)


def test_every_syllable_in_sentencepiece_and_in_the_decoder(hf: Any, spm: Any, normalizer: JamoNormalizer) -> None:
    forward, back = spm
    for i in range(0, len(SYLLABLES), 500):
        text = "".join(SYLLABLES[i : i + 500])
        assert forward(text) == normalizer(text)
        assert back(normalizer(text)) == text
        assert hf.decoder.decode(list(hangul.split(text))) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("갔다", "\u1100\u1161\u11bb\u1103\u1161"),
        ("ㅋㅋ ㅠ ㄳ ㄱㅏ ㈜", "ㅋㅋ ㅠ ㄳ ㄱㅏ ㈜"),
        ("\u1112\u119e\u11ab\u302e나", "\u1112\u119e\u11ab\u302e\u1102\u1161"),
        ("가\u0301", "\u1100\u1161\u0301"),
        ("漢字 1,234원 😀", "漢字 1,234\u110b\u116f\u11ab 😀"),
        ("", ""),
    ],
)
def test_golden(text: str, wanted: str) -> None:
    assert hangul.split(text) == wanted
    assert hangul.join(wanted) == text
    assert hangul.join("가\u11bb다 \u1112\u1161\u11ab \u11bb \u1161 \u1112") == "갔다 한 \u11bb \u1161 \u1112"


# --- jamo for rare syllables alone --------------------------------------------------------------------------------


def test_a_rare_syllable_keeps_what_it_can() -> None:
    rare = NORMALIZERS["rare"]
    assert "각" not in SYLLABLES[::5]
    assert rare("각") == "가\u11a8"
    assert rare(SYLLABLES[28]) == hangul.split(SYLLABLES[28])
    assert normalizer_node(JamoNormalizer(Folds(), SYLLABLES)) == normalizer_node(Normalizer())
    # What is compiled for one is kept, and must not be given to another.
    assert rare != Normalizer() != rare
    assert rare != JamoNormalizer(Folds(zero_width=False), ["가"])
    assert pickle.loads(pickle.dumps(rare)) == rare


@pytest.fixture(scope="module", params=["unigram", "bpe", "wordpiece", "syllable"])
def ours(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Tokenizer:
    size = {"wordpiece": 4000, "syllable": 1800}.get(request.param, 2300)
    return load(trained(jamo="fallback", train={"model": request.param, "vocab_size": size}))


@given(data=st.data())
def test_any_syllable_has_pieces(ours: Tokenizer, data: st.DataObject) -> None:
    text = data.draw(st.text(st.sampled_from([*SYLLABLES, " "]), min_size=1, max_size=9).map(str.lstrip).filter(bool))
    ids = ours.encode(text).ids
    assert not {ours.vocab.special_ids.get("[UNK]"), *range(ours.vocab.n_bytes)} & {*ids}


def test_what_has_bytes_anyway_is_refused() -> None:
    for model in ("bpe-bytes", "wordpiece-bytes", "word", "ngram", "morpheme"):
        with pytest.raises(RecipeError, match="`jamo = fallback` is for unigram"):
            Recipe().changed(jamo="fallback", train={"model": model})
    assert Recipe.from_toml("[recipe]\njamo = true").spelled
    assert not Recipe.from_toml('[recipe]\njamo = "fallback"').spelled
    assert Vocab.plain("wordpiece", ["가", "##가", "나"], specials=["[UNK]"]).whole_characters == {"가"}
