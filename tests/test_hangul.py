"""Laws of hangul.py: an exact inverse, cuts that move along, and the same in every library."""

from __future__ import annotations

import json
import re
import unicodedata

import jamo
import numpy as np
import pytest
import strategies as ks
from hypothesis import given
from hypothesis import strategies as st

from koktok import hangul
from koktok.errors import InputError
from koktok.formats.hf import jamo_decoders
from koktok.text.normalize import Folds, JamoNormalizer, nfc

SYLLABLES = [chr(c) for c in range(0xAC00, 0xD7A4)]
# What may stand beside a syllable and mislead: jamo of each kind, fillers, marks of two and three bytes, joiners.
BESIDE = ["", *ks.LEADS, *ks.VOWELS, *ks.FINALS, *ks.OLD_LEADS, *ks.OLD_VOWELS, *ks.OLD_FINALS, *ks.TONE_MARKS, "가", "각",
          "ㅋ", "ㅏ", "\ud7c7", "\u11a7", "a", " ", "\u0301", "\u0323", "\u034f", "\u034f\u0301", "\u034f\u034f", "·", "\u20e3",
          "\u200d", "\ufe0f", "\u0600", "😀"]  # fmt: skip


@pytest.fixture(scope="module")
def hf():
    """The whole way of a tokenizer.json: normalize, and decode one piece."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    blank = json.loads(Tokenizer(BPE()).to_str())
    blank["normalizer"] = JamoNormalizer(Folds(zero_width=False)).to_hf()
    blank["decoder"] = {"type": "Sequence", "decoders": [{"type": "Fuse"}, *jamo_decoders()]}
    return Tokenizer.from_str(json.dumps(blank))


@pytest.fixture(scope="module")
def spm():
    """SentencePiece's normalizers made of the rules of both ways."""
    from sentencepiece import SentencePieceNormalizer

    plain = {"add_dummy_prefix": False, "escape_whitespaces": False, "remove_extra_whitespaces": False}
    apart = [(chr(c), jamo) for c, jamo in hangul.SPLIT.items()]
    return tuple(
        SentencePieceNormalizer(norm_map=rules, **plain).Normalize for rules in (apart, [(b, a) for a, b in apart])
    )


# --- laws ---------------------------------------------------------------------------------------------------------


@given(ks.korean_text().map(nfc))
def test_join_is_the_inverse_of_split(text):
    assert hangul.join(hangul.split(text)) == text


def test_join_is_the_inverse_of_split_for_every_syllable_beside_every_jamo():
    for other in BESIDE:
        text = nfc("\n".join(f"{other}{s}{other}" for s in SYLLABLES))
        parts = hangul.split(text)
        assert hangul.join(parts) == text
        assert not set(parts) & set(SYLLABLES)


@given(ks.korean_text())
def test_split_is_idempotent_and_canonically_equal(text):
    once = hangul.split(text)
    assert hangul.split(once) == once
    assert unicodedata.normalize("NFD", once) == unicodedata.normalize("NFD", text)


@given(ks.korean_text())
def test_split_is_what_the_jamo_package_does(text):
    assert hangul.split(text) == jamo.h2j(text)


@given(ks.korean_text())
def test_letters_are_those_of_the_jamo_package(text):
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


def test_the_letters_are_those_of_unicode():
    assert (len(hangul.LEADS), len(hangul.VOWELS), len(hangul.TAILS), len(hangul.MODERN_JAMO)) == (19, 21, 28, 67)
    for c, parts in hangul.SPLIT.items():
        assert parts == unicodedata.normalize("NFD", chr(c))
    for char, letter in hangul.COMPATIBILITY.items():
        assert unicodedata.name(letter).split()[-1] == unicodedata.name(char).split()[-1]
        assert re.fullmatch(f"[{hangul.LEAD}{hangul.VOWEL}{hangul.TAIL}]", char)
        assert hangul.may_grow(char) == bool(re.match(f"[{hangul.LEAD}]", char))


def test_syllables_are_told_alike_one_by_one_and_in_arrays():
    text = "".join(BESIDE) + "가힣\uabff\ud7a4漢A"
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    told = [hangul.is_syllable(char) for char in text]
    assert hangul.syllable_mask(codes).tolist() == told
    assert hangul.count_syllables(text) == sum(told)
    assert [hangul.has_syllable(char) for char in text] == told


@given(ks.korean_text().map(nfc))
def test_alignment(text):
    aligned = JamoNormalizer(Folds(zero_width=False)).align(text)
    parts, back = hangul.split(text), list(aligned.starts)
    assert aligned.normal == parts
    assert [i + 1 for i in back] == list(aligned.ends)
    assert len(back) == len(parts)
    at = hangul.offsets(text)
    assert [back.index(i) for i in range(len(text))] == at[:-1]
    assert at[-1] == len(parts)
    assert all(hangul.split(text[:i]) == parts[: at[i]] for i in range(0, len(text) + 1, 1 + len(text) // 20))


@given(st.data())
def test_cuts_move_along(data):
    text = data.draw(ks.korean_text())
    cuts = data.draw(st.sets(st.integers(0, len(text)), max_size=5))
    codas = {i for i in sorted(cuts) if i < len(text) and len(hangul.split(text[i])) == 3}
    moved = hangul.split_cuts(text, [*cuts, *((i, "coda") for i in codas)])
    parts = hangul.split(text)
    assert moved == sorted(moved)
    assert len(moved) == len(cuts) + len(codas)
    for i in cuts:
        assert hangul.join(parts[: hangul.offsets(text)[i]]) == hangul.join(hangul.split(text[:i]))
    for i in codas:
        assert hangul.offsets(text)[i] + 2 in moved
        assert "\u11a8" <= parts[hangul.offsets(text)[i] + 2] <= "\u11c2"


# --- other libraries ----------------------------------------------------------------------------------------------


def test_same_in_tokenizers_for_every_syllable_beside_every_jamo(hf):
    for other in BESIDE:
        text = nfc("\n".join(f"{other}{s}{other}" for s in SYLLABLES))
        assert hf.normalizer.normalize_str(text) == hangul.split(text)


def test_same_in_tokenizers_for_all_triples_of_what_misleads(hf):
    for first in BESIDE:
        text = nfc("\n".join(first + second + third for second in BESIDE for third in BESIDE))
        assert hf.normalizer.normalize_str(text) == hangul.split(text)


def test_same_in_tokenizers_beside_every_code_point(hf):
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for i in range(0, len(chars), 9999):
        text = nfc("".join(f"{c}가{c}각{c}" for c in chars[i : i + 9999]))
        assert hf.normalizer.normalize_str(text) == hangul.split(text)


@given(text=ks.korean_text())
def test_same_in_tokenizers(hf, text):
    assert hf.normalizer.normalize_str(text) == hangul.split(nfc(text))


@given(text=st.one_of(ks.old_hangul(), ks.conjoining_jamo(), ks.eojeols(), ks.nasty()).map(nfc))
def test_decoder_joins(hf, text):
    assert hf.decoder.decode([hangul.split(text)]) == text


def test_decoder_joins_every_syllable(hf):
    text = "".join(SYLLABLES)
    assert hf.decoder.decode(list(hangul.split(text))) == text


@given(text=ks.korean_text().map(nfc))
def test_same_in_sentencepiece(spm, text):
    forward, back = spm
    # SentencePiece's own texts end at a NUL.
    text = text.replace("\0", "")
    assert forward(text) == hangul.split(text)
    assert back(hangul.split(text)) == text


def test_sentencepiece_knows_every_syllable(spm):
    forward, back = spm
    for i in range(0, len(SYLLABLES), 500):
        text = "".join(SYLLABLES[i : i + 500])
        assert forward(text) == hangul.split(text)
        assert back(hangul.split(text)) == text


# --- golden -------------------------------------------------------------------------------------------------------


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
def test_golden(hf, text, wanted):
    assert hangul.split(text) == wanted
    assert hf.normalizer.normalize_str(text) == wanted
    assert hf.decoder.decode([wanted]) == hangul.join(wanted) == text


def test_join_takes_half_joined_text():
    assert hangul.join("가\u11bb다 \u1112\u1161\u11ab \u11bb \u1161 \u1112") == "갔다 한 \u11bb \u1161 \u1112"
    assert hangul.join("a\u0301 \uf90a") == "a\u0301 \uf90a"


@pytest.mark.parametrize("cut", [-1, 4, (1, "coda"), (3, "coda"), (0, "onset"), (9, "coda")])
def test_impossible_cuts_are_refused(cut):
    with pytest.raises(InputError, match="the cut"):
        hangul.split_cuts("갔다a", [cut])


def test_no_quadratic_time():
    for unit in ("가", "각", "\u1100", "\u1161", "\u11a8", "ㅋ"):
        text = unit * 1_000_000
        assert hangul.join(hangul.split(text)) == nfc(text)
