"""The normalizer inside tokenizer.model: raw text gives the ids of `Tokenizer`, as far as a table of strings can say it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import eojeols, nfd_text, syllables

from koktok import load
from koktok.model.definition import Definition
from koktok.model.vocab import Vocab
from koktok.runtimes.sentencepiece.model_proto import differences, model_proto, rules
from koktok.text.normalize import Folds, JamoNormalizer, Normalizer
from koktok.text.prefix import without_prefix

PLAIN = Folds()
ALL = Folds(**{field.name: True for field in fields(Folds) if field.name not in ("repeats", "lone_jamo")})
EVERY = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]


@lru_cache
def compiled(folds: Folds) -> Any:
    return sentencepiece.SentencePieceNormalizer(
        norm_map=list(rules(Normalizer(folds)).items()),
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    )


class Both:
    def __init__(self, folder: Path) -> None:
        self.ours = load(folder)
        self.spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


@pytest.fixture(scope="module", params=["unigram", "bpe", "jamo", "folds"])
def both(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Both:
    folds = {field.name: True for field in fields(Folds) if field.name not in ("repeats", "lone_jamo")}
    recipe: dict[str, Any] = {
        "unigram": {},
        "bpe": {"train": {"model": "bpe"}},
        "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
        "folds": {"normalize": folds},
    }[request.param]
    return Both(trained(**recipe))


@pytest.mark.parametrize("folds", [PLAIN, ALL], ids=["default", "all"])
def test_every_code_point_and_its_decomposition(folds: Folds) -> None:
    normalizer, theirs = Normalizer(folds), compiled(folds)
    for char in EVERY:
        assert theirs.normalize(char) == normalizer(char), ascii(char)
        apart = unicodedata.normalize("NFD", char)
        if apart != char:
            assert theirs.normalize(apart) == normalizer(apart), ascii(char)


@pytest.mark.parametrize("folds", [PLAIN, ALL], ids=["default", "all"])
def test_no_rule_touches_normal_text(folds: Folds) -> None:
    """So that normalized text has the same ids whatever the rules leave out."""
    normalizer = Normalizer(folds)
    assert [source for source in rules(normalizer) if normalizer(source) == source] == []


@given(text=st.one_of(nfd_text(), syllables(), eojeols().map(lambda s: unicodedata.normalize("NFD", s))))
def test_raw_text_gives_our_ids(both: Both, text: str) -> None:
    """Decomposed Hangul is what macOS writes; SentencePiece composes it now."""
    text = re.sub("[\0\u0300-\u0e4d\u0f18-\u0fc6\u1037-\u10ff\u135d-\u1cf9\u1dc0-\u1dff\u20d0-\u20f0]", "", text)
    # Where normalization drops the first character, the space before the first word differs: see `koktok.text.prefix`.
    assume(not both.ours.prefix or next(iter(both.ours.normalizer.align(text).starts), 0) == 0)
    assume(both.ours.normalize(text) or not text)
    assert both.spm.encode(text) == both.ours.encode(text).ids


def test_pasted_text(both: Both, mini: list[str]) -> None:
    for line in (line for line in mini[::9] if not line.startswith(" ")):  # it has no mark for such a space
        for raw in (unicodedata.normalize("NFD", line), line.replace(" ", " \u200b") + "\ufeff", line):
            assert both.spm.encode(raw) == both.ours.encode(raw).ids
            spelled = without_prefix(both.spm.decode(both.spm.encode(raw)), both.ours.prefix)
            assert spelled == both.ours.normalize(raw)


def test_every_documented_difference_has_an_example() -> None:
    """Each sentence of `differences` has its example, and the example differs."""
    theirs, normalizer = compiled(PLAIN), Normalizer()
    assert theirs.normalize("q\u0301\u0323") != normalizer("q\u0301\u0323")
    assert theirs.normalize("\u1112\u200b\u1161") != normalizer("\u1112\u200b\u1161") == "하"
    assert len(differences(normalizer)) == 2
    more = replace(PLAIN, lone_jamo=True, repeats=2)
    assert compiled(more).normalize("ㅋㅋㅋᄒ") == "ㅋㅋᄒ" != Normalizer(more)("ㅋㅋㅋᄒ")
    assert compiled(more).normalize("ㅋ" * 33) == "ㅋㅋㅋ" != Normalizer(more)("ㅋ" * 33)
    assert compiled(replace(more, fullwidth=True)).normalize("!！!") == "!!!"
    assert [line.split("`")[1] for line in differences(Normalizer(more))[2:]] == ["lone_jamo", "repeats"]


@pytest.mark.parametrize("repeats", [1, 2, 7])
def test_runs_are_shortened_as_far_as_rules_go(repeats: int) -> None:
    """What people lengthen, in either width: some 10 % of chat text holds such a run."""
    folds = replace(ALL, repeats=repeats)
    normalizer, theirs = Normalizer(folds), compiled(folds)
    for char in "ㅋㅠ!~…！～♡ᄏﾡ㉠":
        for length in range(1, repeats + 31):
            text = f"가{char * length}나 {char * length}"
            assert theirs.normalize(text) == normalizer(text), (char, length)


def test_a_letter_that_a_fold_makes_takes_its_marks() -> None:
    normalizer, theirs = Normalizer(ALL), compiled(ALL)
    for text in ("Ａ\u0301", "ｅ\u0302\u0323", "Ⅳ\u0323", "℃\u0301", "ﬁ\u0300"):
        assert theirs.normalize(text) == normalizer(text) != text


def test_jamo_rules_spell_syllables() -> None:
    found = rules(JamoNormalizer())
    assert found["각"] == "\u1100\u1161\u11a8"
    assert "\u1100\u1161\u11a8" not in found
    assert found["\u200b"] == ""


SPECIALS = ("<unk>", "</s>", "<|user|>")


def test_user_defined_symbols_are_found_and_control_symbols_are_not() -> None:
    vocab = Vocab.bpe("가<>|/suer", [], specials=SPECIALS)
    data = model_proto(Definition(vocab), ["<|user|>"])
    spm = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = vocab.special_ids
    assert spm.encode("가<|user|>가") == [vocab.ids["가"], ids["<|user|>"], vocab.ids["가"]]
    assert ids["</s>"] not in spm.encode("가</s>")
    assert (spm.is_control(ids["</s>"]), spm.is_control(ids["<|user|>"]), spm.is_unknown(ids["<unk>"])) == (
        True,
        False,
        True,
    )
    assert spm.is_byte(0)
