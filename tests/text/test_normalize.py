"""Laws of normalize.py: idempotent, NFC, aligned, and the same in tokenizers."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
import unicodedata
from dataclasses import fields

import pytest
import strategies as ks
from hypothesis import given
from hypothesis import strategies as st

from koktok.hangul import COMPATIBILITY
from koktok.runtimes.huggingface.normalizer import normalizer_node
from koktok.text import normalize
from koktok.text.normalize import OPAQUE, Folds, Normalizer, nfc, normalized

SWITCHES = [f.name for f in fields(Folds) if f.name != "repeats"]
EVERYTHING = Folds(**dict.fromkeys(SWITCHES, True), repeats=2)
ALL = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
LETTERS = "a가각ㅋᄒㅏᅡᆫᆞ1 "
MARKS = ["\u0334", "\u0323", "\u0327", "\u0301", "\u0345", "\u05b0", "\u3099", "\u094d", "\u0338", "\U00011930"]


def folds() -> st.SearchStrategy[Folds]:
    return st.builds(Folds, **dict.fromkeys(SWITCHES, st.booleans()), repeats=st.integers(0, 4))


def hf(folds: Folds):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    blank = json.loads(Tokenizer(BPE()).to_str())
    blank["normalizer"] = normalizer_node(Normalizer(folds))
    return Tokenizer.from_str(json.dumps(blank)).normalizer.normalize_str


def neighbours(char: str) -> list[str]:
    """`char` before and after what it may compose or move with."""
    return [char + char, *(c + char for c in LETTERS), *(a + x for m in MARKS for a, x in ((char, m), ("a" + m, char)))]


# --- laws ---------------------------------------------------------------------------------------------------------


@given(folds(), ks.korean_text())
def test_idempotent_and_nfc(folds, text):
    normalizer = Normalizer(folds)
    once = normalizer(text)
    assert normalizer(once) == once
    assert nfc(once) == once


def test_idempotent_on_every_code_point_and_every_pair_of_the_tables():
    sources = {chr(c) for name in normalize._SOURCES for c in normalize._fold(name)}
    sources |= set(ks.NASTY) | set(COMPATIBILITY) | set(normalize._spread(normalize._REPEATED))
    for folds in (Folds(), EVERYTHING):
        normalizer = Normalizer(folds)
        texts = ["\n".join(ALL[i : i + 9999]) for i in range(0, len(ALL), 9999)]
        texts += ["\n".join(a + b for b in sources) for a in sorted(sources)[::3]] if folds == EVERYTHING else []
        for text in texts:
            once = normalizer(text)
            assert normalizer(once) == once
            assert nfc(once) == once


def test_no_target_is_a_source_and_nfc_makes_no_source():
    sources = {chr(c) for name in normalize._SOURCES for c in normalize._fold(name)}
    for name in normalize._SOURCES:
        for before, after in normalize._fold(name).items():
            assert not sources & set(after), (name, chr(before), after)
            assert nfc(after) == after
    # NFC gives a source neither from one character nor as a composition.
    assert not [c for c in ALL if c not in sources and sources & set(nfc(c))]
    assert not [c for c in sources if len(unicodedata.normalize("NFD", c)) > 1]


@given(folds(), ks.korean_text())
def test_same_as_tokenizers(folds, text):
    assert hf(folds)(text) == Normalizer(folds)(text)


@pytest.mark.parametrize("folds", [Folds(), EVERYTHING], ids=["default", "everything"])
def test_same_as_tokenizers_on_every_code_point(folds):
    # Some 700 passes over a text are slow, and what lies beyond plane 0 is in no fold.
    theirs, ours = hf(folds), Normalizer(folds)
    chars = ALL if folds == Folds() else ALL[:0xF800]
    for i in range(0, len(chars), 9999):
        text = "\n".join(chars[i : i + 9999])
        assert theirs(text) == ours(text)


def test_same_as_tokenizers_with_neighbours():
    """Each code point that any Unicode moves or composes, beside one mark of each kind, both ways round."""
    theirs = hf(Folds(zero_width=False))
    moved = [c for c in ALL if unicodedata.combining(c) or unicodedata.decomposition(c)] + _spread(normalize.OPAQUE)
    for i in range(0, len(moved), 500):
        text = "\n".join(x for c in moved[i : i + 500] for x in neighbours(c))
        assert nfc(text) == theirs(text)


def test_where_this_python_and_tokenizers_disagree():
    """The set that OPAQUE exists for; a library that moves shows here first."""
    from tokenizers.normalizers import NFC

    theirs = NFC().normalize_str
    differs = set()
    for char in ALL:
        if unicodedata.combining(char):
            texts = ["a" + char + m for m in MARKS] + ["a" + m + char for m in MARKS]
        elif unicodedata.decomposition(char):
            texts = [char, unicodedata.normalize("NFD", char)]
        else:
            continue
        if any(unicodedata.normalize("NFC", t) != theirs(t) for t in texts):
            differs.add(char)
    # Exactly the listed code points that this Python moves or composes; the rest of the list is for later Pythons.
    known = {c for c in _spread(normalize.OPAQUE) if unicodedata.combining(c) or unicodedata.decomposition(c)}
    assert differs == known
    assert len(differs) == {"14.0.0": 99, "15.0.0": 109, "15.1.0": 109}[unicodedata.unidata_version]


def test_tables_are_frozen():
    """The folds are computed from `unicodedata`; every Python must compute the same."""
    table = sorted((name, k, v) for name in normalize._SOURCES for k, v in normalize._fold(name).items())
    assert len(table) == 701
    assert hashlib.sha256(repr(table).encode()).hexdigest()[:16] == "dc45e38504f5dd25"
    # Not computed, but many of them wait for Pythons to come and would be missed by no other test.
    frozen = normalize.OPAQUE + normalize._SECONDS.pattern
    assert hashlib.sha256(frozen.encode()).hexdigest()[:16] == "4f2e9a5890382aee"


# --- alignment ----------------------------------------------------------------------------------------------------


@given(folds(), ks.korean_text())
def test_alignment_is_monotonic_and_says_the_same_text(folds, text):
    normalizer = Normalizer(folds)
    aligned = normalizer.align(text)
    assert aligned.normal == normalizer(text)
    assert len(aligned.starts) == len(aligned.ends) == len(aligned.normal)
    spans = list(zip(aligned.starts, aligned.ends, strict=True))
    assert all(0 <= s < e <= len(text) for s, e in spans)
    # Two neighbours share a span, or the second begins where the first has ended or later.
    assert all(a == b or a[1] <= b[0] for a, b in itertools.pairwise(spans))


@given(ks.korean_text(), st.booleans(), st.booleans())
def test_each_span_normalizes_to_its_own_characters(text, fullwidth, compatibility):
    normalizer = Normalizer(Folds(fullwidth=fullwidth, compatibility=compatibility))
    aligned = normalizer.align(text)
    spans = zip(aligned.starts, aligned.ends, strict=True)
    for span, group in itertools.groupby(zip(spans, aligned.normal, strict=True), key=lambda pair: pair[0]):
        assert normalizer(text[slice(*span)]) == "".join(c for _, c in group)


@given(folds(), ks.korean_text())
def test_normal_text_is_aligned_to_itself(folds, text):
    normalizer = Normalizer(folds)
    aligned = normalizer.align(normalizer(text))
    assert list(aligned.starts) == list(range(len(aligned.normal)))
    assert list(aligned.ends) == list(range(1, len(aligned.normal) + 1))


def test_segments_join_back_to_nfc_for_every_composition():
    composed = [c for c in ALL if unicodedata.normalize("NFD", c) != c]
    for before in ("", "가", "a\u0323"):
        text = "\n".join(before + unicodedata.normalize("NFD", c) + "\u0301" for c in composed)
        assert Normalizer().align(text).normal == nfc(text)


ALIGNED = [
    (Folds(), unicodedata.normalize("NFD", "한글은"), "한글은", [(0, 3), (3, 6), (6, 9)]),
    # Marks that do not compose are characters of their own, and so is an opaque one.
    (Folds(lone_jamo=True), "\u1100\u1160q\u0323\u0301", None, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
    (Folds(), "a\u0301\u1dfa", "á\u1dfa", [(0, 2), (2, 3)]),
    # Characters that share a raw character share its span.
    (Folds(compatibility=True), "㈜x\ufb01\u0301", "(주)xfí", [(0, 1), (0, 1), (0, 1), (1, 2), (2, 4), (2, 4)]),
    # What was dropped has no span, but one around it covers it.
    (Folds(repeats=2), "\ufeffㅋㅋㅋㅋ\u200bㅎ", "ㅋㅋㅎ", [(3, 4), (4, 5), (6, 7)]),
    (Folds(), "나\u1112\u200b\u1161\u11ab", "나한", [(0, 1), (1, 5)]),
]


@pytest.mark.parametrize(("folds", "raw", "normal", "spans"), ALIGNED)
def test_golden_alignments(folds, raw, normal, spans):
    aligned = Normalizer(folds).align(raw)
    assert aligned.normal == (raw if normal is None else normal)
    assert list(zip(aligned.starts, aligned.ends, strict=True)) == spans


def test_a_span_of_normal_text_is_one_of_the_raw_text():
    aligned = Normalizer().align(unicodedata.normalize("NFD", "한글은"))
    assert [aligned.raw(*span) for span in ((1, 3), (2, 2), (3, 3))] == [(3, 9), (6, 6), (9, 9)]
    assert Normalizer().align("\ufeff").raw(0, 0) == (0, 0)


# --- golden -------------------------------------------------------------------------------------------------------

GOLDEN = [
    (Folds(), "ㅋㅋㅋ ㅠ ㄳ ㈜ ① ½ … ㅎㅏㄴ", "ㅋㅋㅋ ㅠ ㄳ ㈜ ① ½ … ㅎㅏㄴ"),
    (Folds(), "\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
    (Folds(), "\uac00\u11ab", "간"),
    (Folds(), "\u1112\u200b\u1161", "하"),
    (Folds(), "\uf90a\uf9b4", "金領"),
    (Folds(), "\u1112\u119e\u11ab\u302e", "\u1112\u119e\u11ab\u302e"),
    (Folds(), "👨\u200d👩 ❤\ufe0f می\u200cخواهم", "👨\u200d👩 ❤\ufe0f می\u200cخواهم"),
    (Folds(), "a\u00adb\ufeffc\u200ed", "abcd"),
    (Folds(zero_width=False), "a\u200bb", "a\u200bb"),
    (Folds(fullwidth=True), "ＡＢＣ１２！　～", "ABC12!　~"),
    (Folds(fullwidth=True), "＝\u0338", "≠"),
    (Folds(spaces=True), "가\u00a0나\u3000다\u2000라\t마", "가 나 다 라\t마"),
    (Folds(quotes=True), "“가” ‘나’ 「다」 5′ 6″", "\"가\" '나' 「다」 5' 6\""),
    (Folds(dashes=True), "1–2—3−4―5‐6", "1-2-3-4-5-6"),
    (Folds(halfwidth_jamo=True), "ﾡﾤￂￜ", "ㄱㄴㅏㅣ"),
    (Folds(compatibility=True), "㈜한글 ①②⑳ ½ 80㎏ 33㎡ ㉠㉮ Ⅳ ㅋ ㄳ", "(주)한글 1220 1/2 80kg 33m² ㄱ가 IV ㅋ ㄳ"),
    (Folds(lone_jamo=True), unicodedata.normalize("NFKC", "ㅋㅋㅋ 하ㅠㅠ ㄺ 갔ㄳ"), "ㅋㅋㅋ 하ㅠㅠ ㄺ 갔ㄳ"),
    (Folds(lone_jamo=True), "\u1112\u119e\u11ab \u1140\u1161\u11ab", "\u1112\u119e\u11ab \u1140\u1161\u11ab"),
    (Folds(lone_jamo=True), "\u1100\u1160 \u115f\u1161", "\u1100\u1160 \u115f\u1161"),
    (Folds(repeats=3), "ㅋㅋㅋㅋㅋ 하하하하 !!!!! ---- 1111 ~~~~\n", "ㅋㅋㅋ 하하하하 !!! ---- 1111 ~~~\n"),
    (Folds(repeats=2, compatibility=True), "‼‼ ?!?!?!", "!! ?!?!?!"),
    (Folds(repeats=1, halfwidth_jamo=True), "ﾻﾻㅋ", "ㅋ"),
    (Folds(), "", ""),
]


@pytest.mark.parametrize(("folds", "raw", "wanted"), GOLDEN)
def test_golden(folds, raw, wanted):
    assert Normalizer(folds)(raw) == wanted
    assert hf(folds)(raw) == wanted


def test_changes_tells_each_rule():
    normalizer = Normalizer(Folds(compatibility=True, lone_jamo=True, repeats=2))
    assert normalizer.changes("㈜\ufeff\ufeff\uf90a\u1112\u1161 \u110f ㅋㅋㅋㅋ") == {
        ("compatibility", "㈜", "(주)"): 1,
        ("zero_width", "\ufeff", ""): 2,
        ("nfc", "\uf90a", "金"): 1,
        ("nfc", "\u1112\u1161", "하"): 1,
        ("lone_jamo", "\u110f", "ㅋ"): 1,
        ("repeats", "ㅋㅋㅋㅋ", "ㅋㅋ"): 1,
    }


@given(folds(), ks.korean_text())
def test_changes_is_empty_exactly_where_nothing_changes(folds, text):
    normalizer = Normalizer(folds)
    assert bool(normalizer.changes(text)) == (normalizer(text) != text)


# --- edges --------------------------------------------------------------------------------------------------------


def test_signature_names_every_switch():
    signatures = {
        Normalizer(Folds(**{f.name: 3 if f.name == "repeats" else f.name != "zero_width"})).signature()
        for f in fields(Folds)
    }
    assert len(signatures) == len(fields(Folds))


def _spread(ranges: str) -> list[str]:
    return list(normalize._spread(ranges))


def test_long_runs_of_marks_are_those_of_unicodedata():
    """Sorted before they come to Python, which sorts them in quadratic time; also around what nothing moves across."""
    rng = random.Random(0)
    marks = [chr(c) for c in range(0x300, 0x1F000) if unicodedata.combining(unicodedata.normalize("NFD", chr(c))[0])]
    first = "ae가ᄀ\u1161각é\u0344\u0f73x "
    for _ in range(60):
        text = "".join(
            rng.choice(first) + "".join(rng.choices(marks, k=rng.choice((0, 1, 70, 200)))) for _ in range(12)
        )
        text += "x" * 1000
        for form in ("NFC", "NFKC"):
            assert normalized(form, text) == unicodedata.normalize(form, text)
        parts = re.split(f"([{OPAQUE}]+)", text)
        expected = "".join(part if i % 2 else unicodedata.normalize("NFC", part) for i, part in enumerate(parts))
        assert nfc(text) == nfc(nfc(text)) == expected
        assert Normalizer().align(text).normal == Normalizer()(text)
