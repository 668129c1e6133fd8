"""Recipes: TOML in and out, unknown keys refused with a way out."""

from __future__ import annotations

import pickle

import pytest

from koktok.hangul import KS_X_1001, KS_X_1001_SIGNS, LETTERS
from koktok.recipe import Recipe, SourceRecord


def test_toml_comes_back_as_it_went() -> None:
    recipe = Recipe(sources=(SourceRecord(name="demo", weight=2.0, digest="ab"),)).changed(
        train={"vocab_size": 1234, "specials": ("<unk>", "</s>")}, normalize={"repeats": 2}, jamo=True
    )
    assert Recipe.from_toml(recipe.to_toml()) == pickle.loads(pickle.dumps(recipe)) == recipe


def test_every_default_is_spelled_out_and_the_signature_is_ignored() -> None:
    text = Recipe().to_toml({"koktok": "0.1.0", "eojeols": 3})
    for key in ("vocab_size", "zero_width", "digits", "policy", "min_count", "holdout", "[signature]"):
        assert key in text
    assert Recipe.from_toml(text) == Recipe()


def test_another_analyser_has_no_user_dictionary() -> None:
    named = Recipe().changed(segment={"user_dictionary": "words.tsv", "user_dictionary_sha256": "0" * 64})
    assert named.changed(train={"vocab_size": 8000}).segment == named.segment
    assert named.changed(segment={"segmenter": "whitespace"}).segment.user_dictionary == ""


def test_the_model_decides_what_is_left_open() -> None:
    """The recipe shows it, so koktok.toml does."""
    wordpiece = Recipe().changed(train={"model": "wordpiece"})
    assert wordpiece.train.specials == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert Recipe.from_toml(wordpiece.to_toml()) == wordpiece
    assert Recipe().changed(train={"model": "wordpiece", "specials": ("[UNK]",)}).train.specials == ("[UNK]",)
    assert Recipe().changed(train={"model": "word"}).train.specials == Recipe().train.specials
    assert Recipe().changed(train={"model": "jamo"}).jamo
    assert not Recipe().changed(train={"model": "syllable"}).jamo


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": "bpe-bytes", "style": "bert", "keep": 0.8},
        {"model": "bpe-bytes", "digits": "single"},
        {"preset": "aligned", "price": "tokens", "prefix_space": False},
        {"model": "jamo", "chat_template": "chatml", "specials": ("<unk>", "<x>")},
    ],
)
def test_what_was_given_makes_the_recipe(changes: dict[str, object]) -> None:
    recipe = Recipe().changed(**changes)
    assert Recipe().changed(**recipe.given) == recipe
    assert Recipe.from_toml(recipe.to_toml()).given == recipe.given
    assert "split" not in recipe.given


def test_a_list_of_required_characters_may_name_a_set() -> None:
    mixed = Recipe.build({"train": {"required": ["ks-x-1001", "😀"]}})
    assert {*"".join(mixed.train.required)} == {*KS_X_1001, *KS_X_1001_SIGNS, *LETTERS, "😀"}
    assert Recipe.from_toml(mixed.to_toml()) == mixed


def test_digits_follow_the_preset() -> None:
    assert Recipe().pretokenize.digits == Recipe().changed(preset="aligned").pretokenize.digits == "single"
    assert Recipe().changed(preset="encoder").pretokenize.digits == "free"
    assert Recipe().changed(preset="encoder", digits="single").pretokenize.digits == "single"
    spelled = Recipe().changed(preset="encoder", model="bpe-bytes").pretokenize
    assert (spelled.pattern, spelled.digits) == ("llama3", "single")  # the pattern has its own digits


def test_the_pattern_follows_the_model() -> None:
    recipe = Recipe().changed(model="bpe-bytes")
    assert (recipe.pretokenize.pattern, recipe.normalize.zero_width) == ("llama3", False)
    assert Recipe.build({"train": {"model": "bpe-bytes"}}) == recipe
    assert recipe.changed(model="unigram") == Recipe()
    assert Recipe().changed(preset="aligned").changed(model="bpe-bytes").pretokenize.pattern == "llama3"
    for given in (
        {"superwords": 0.2},
        {"split": "scripts"},
        {"digits": "free"},
        {"digits": "three"},
        {"digits": "single"},
        {"pattern": "koktok"},
    ):
        for own in (recipe.changed(**given), Recipe().changed(model="bpe-bytes", **given)):
            assert (own.pretokenize.pattern, own.normalize.zero_width) == ("koktok", True), given
    assert recipe.changed(vocab_size=8000).pretokenize.pattern == "llama3"
