"""Recipes: TOML in and out, unknown keys refused with a way out."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from koktok.errors import RecipeError
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
        ('[recipe.segment]\npolicy = "nonsense"', r"expected a boundary policy"),
        ("[recipe.train.reserve_script]\nlatin = 1.5", r"`train.reserve_script.latin` is 1.5: "),
        ("[recipe.train.reserve_script]\nklingon = 0.5", r"klingon"),
        ("[recipe]\nholdout = 1.5", r"`holdout` is 1.5"),
        ("[recipe]\nformat = 3", r"`format`"),
        ("[recipe", r"the recipe is no TOML"),
        (f"a = {'[' * 5000}", r"the recipe is no TOML: it is nested too deep"),
        (f"[recipe]\nx = {'[' * 5000}{']' * 5000}", r"the recipe is no TOML: it is nested too deep"),
        ("[recipe.train]\nlam = 1e308", r"`train.lam` is 1e\+308: input should be less than or equal to 1000000"),
        ("[recipe.train]\nlam = 0.0", r"`train.lam` is 0.0"),
        ("[recipe.train]\nmu = inf", r"`train.mu` is inf: input should be a finite number"),
        ("[recipe.train]\nmu = 1e308", r"`train.mu` is 1e\+308"),
        ("[recipe.train]\nnu = nan", r"`train.nu` is nan: input should be a finite number"),
        ("[recipe.train.nu]\nrest = 0.3\njosa = inf", r"`train.nu.josa` is inf: input should be a finite number"),
        ("[recipe.train]\nsuperwords = nan", r"`train.superwords` is nan"),
        ("[recipe.train]\ncharacter_coverage = inf", r"`train.character_coverage` is inf"),
        ("[recipe.train.reserve_script]\nlatin = nan", r"`train.reserve_script.latin` is nan"),
        ("[recipe]\nholdout = nan", r"`holdout` is nan"),
        ("[recipe.train]\nvocab_size = 10_000_001", r"`train.vocab_size` is 10000001"),
        ("[recipe.train]\nreserved = 100_000_000", r"`train.reserved` is 100000000"),
        ("[recipe.train]\nreserved = 1_000_000", r"1,000,005 special tokens and reserved slots leave no id"),
        (f"[recipe.train]\nmin_count = {10**30}", r"`train.min_count`"),
        (f"[recipe.train]\nngram = {10**9}", r"`train.ngram`"),
        ("[recipe.train]\nmax_piece_length = 65", r"`train.max_piece_length`"),
        ("[recipe.normalize]\nrepeats = 1001", "`repeats`: expected a whole number of 0 to 1000, got 1001"),
        (f"[recipe.special]\nmodel_max_length = {10**40}", r"`special.model_max_length`"),
        ("[recipe.special]\npad_to_multiple = 4097", r"`special.pad_to_multiple`"),
        ('[[recipe.sources]]\nname = "a"\nweight = inf', r"`sources.0.weight` is inf"),
        (r"[recipe.train]" + '\nspecials = ["<unk>", "\\u0000"]', r"holds the control character U\+0000"),
        (r"[recipe.train]" + '\nspecials = ["<unk>", "a\\nb"]', r"holds the control character U\+000A"),
        (
            f'[recipe.train]\nspecials = ["<unk>", "{"x" * 100_000}"]',
            r"expected special tokens of at most 256 characters, got one of 100,000",
        ),
        ('[recipe.train]\nspecials = ["<unk>", "<0x00>"]', r"<0x00> is spelled like the byte piece"),
        ('[recipe.segment]\nsegmenter = "dpe:"', r"`segment.segmenter` is 'dpe:': input should be 'kiwi'"),
        ('[recipe.segment]\nuser_dictionary_sha256 = "no digest"', r"`segment.user_dictionary_sha256`"),
    ],
)
def test_what_is_wrong_is_named(toml: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        Recipe.from_toml(toml)
    assert caught.value.exit_code == 2


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
    ("values", "message"),
    [
        (
            {"model": "word", "backend": "spm"},
            r"`backend = spm` is for unigram, bpe, not for word\nhint: --backend koktok",
        ),
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


@pytest.mark.parametrize("ignoring", [{"model": "wordpiece"}, {"model": "bpe", "backend": "spm"}])
def test_a_preset_that_the_trainer_would_ignore_is_refused(ignoring: dict[str, str]) -> None:
    with pytest.raises(RecipeError, match="`preset = aligned` is for koktok's own trainers of unigram"):
        Recipe().changed(preset="aligned", **ignoring)
    assert Recipe().changed(**ignoring).train.preset == "lm"


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
