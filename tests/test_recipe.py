"""Recipes: TOML in and out, unknown keys refused with a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from koktok.errors import RecipeError
from koktok.recipe import Recipe, Source


def test_toml_comes_back_as_it_went() -> None:
    recipe = Recipe(sources=(Source(name="demo", weight=2.0, digest="ab"),)).changed(
        train={"vocab_size": 1234, "specials": ("<unk>", "</s>")}, normalize={"repeats": 2}, jamo=True
    )
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def test_every_default_is_spelled_out_and_the_signature_is_ignored() -> None:
    text = Recipe().to_toml({"koktok": "0.1.0", "eojeols": 3})
    for key in ("vocab_size", "zero_width", "digits", "policy", "min_count", "holdout", "[signature]"):
        assert key in text
    assert Recipe.from_toml(text) == Recipe()


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[recipe.train]\nvocab_sise = 1", r"unknown key `train.vocab_sise`\nhint: did you mean `vocab_size`\?"),
        ("[recipe]\nwhatever = 1", r"unknown key `whatever`\nhint: the keys are "),
        ("[recipes]\n", r"unknown table `recipes`"),
        ("[recipe.train]\nvocab_size = 0", r"`train.vocab_size` is 0: .*greater than or equal to 1"),
        ("[recipe.train]\nvocab_size = -5", r"`train.vocab_size` is -5"),
        ('[recipe.train]\nvocab_size = "many"', r"`train.vocab_size` is 'many'"),
        ('[recipe.train]\nmodel = "lstm"', r"`train.model` is 'lstm': .*'unigram'"),
        ('[recipe.train]\nspecials = ["<s>", "<s>"]', r"special tokens must be distinct"),
        ('[recipe.segment]\npolicy = "nonsense"', r"boundary policy `nonsense` is not known"),
        ("[recipe.train.reserve_script]\nlatin = 1.5", r"`train.reserve_script.latin` is 1.5: "),
        ("[recipe.train.reserve_script]\nklingon = 0.5", r"klingon"),
        ("[recipe]\nholdout = 1.5", r"`holdout` is 1.5"),
        ("[recipe]\nformat = 2", r"`format`"),
        ("[recipe", r"the recipe is no TOML"),
    ],
)
def test_what_is_wrong_is_named(toml: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        Recipe.from_toml(toml)
    assert caught.value.exit_code == 2


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
    ("values", "message"),
    [
        ({"model": "word", "backend": "spm"}, r"trains unigram and bpe here, not word\nhint: --backend koktok"),
        ({"model": "wordpiece", "specials": ("<s>",)}, r"one of .*\[UNK\], <unk>\nhint: --specials \[UNK\],<s>"),
        ({"model": "ngram", "ngram": 1}, r"`train.ngram` is 1"),
    ],
)
def test_a_model_that_cannot_be_says_why(values: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        Recipe().changed(train=values)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"none\.toml` cannot be read"):
        Recipe.load(tmp_path / "none.toml")
