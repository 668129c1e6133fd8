"""The option schema: each option is a field of the Recipe and says what the field says."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from conftest import ROOT, koktok

from koktok.cli import VERBS_WITH_OPTIONS
from koktok.cli.option_schema import HOMES, TYPED, OptionField, values_of
from koktok.cli.text import FOLDS
from koktok.cli.train import OPTIONS as TRAIN
from koktok.errors import InputError
from koktok.extension.embeddings import METHODS
from koktok.extension.learn import Method
from koktok.recipe import SECTION_OF, Recipe

TOML_ONLY = {
    *(name.removeprefix("Folds.") for name in FOLDS.split()),
    "user_dictionary_sha256",
    "max_piece_length",
    "ngram",
    "roles",
}
"""Fields without an option of `train`: `normalize` has the folds, a training fills in the digest, `--specials` names roles, two are
seldom turned."""

NO_OPTION = {"Plan.kind", "Plan.masking", "Masking.epochs", "PruneOptions.pattern", "PruneOptions.specials"}
"""Fields without an option of their own: the verb sets them, or an option of the same name in another model does."""

NAMES = [name for verb in VERBS_WITH_OPTIONS.values() for names in verb.values() for name in names.split()]


def test_every_field_is_an_option_of_train_or_stands_in_the_list() -> None:
    options = " ".join(TRAIN.values()).split()
    assert len(options) == len(set(options))
    assert {*options} == {*SECTION_OF, "jamo", "holdout"} - TOML_ONLY


@pytest.mark.parametrize("owner", sorted({*HOMES} - {"Folds"}))
def test_every_field_of_other_models_is_an_option(owner: str) -> None:
    """`HOMES` is the models whose fields are options; a new field is one, or stands in the list."""
    fields = getattr(import_module(HOMES[owner]), owner).model_fields
    assert {f"{owner}.{name}" for name in fields} - {*NAMES} <= NO_OPTION


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_an_option_says_what_the_field_says(name: str) -> None:
    field = OptionField(name)
    assert field.description, "every field has a docstring"
    assert field.typed or {bool, int, float, str} & {*field.types} or field.choices, "somebody must be able to type it"
    assert field.help.removesuffix(".").startswith(field.description.split(". ")[0].removesuffix(".")[:40])
    assert not field.help[:-1].endswith((".", ","))
    for choice in field.choices:
        assert bool in field.types or choice in field.help


def test_fields_of_other_models_are_options() -> None:
    field = OptionField("Masking.rate")
    assert (field.option, field.default, field.value) == ("--rate", "0.15", 0.15)
    assert field.description.startswith(
        "Share of the units that are chosen, special tokens apart; or that of the first epoch"
    )
    assert OptionField("ExtendOptions.init").choices == [*METHODS] == [*get_args(Method)]
    assert OptionField("PackOptions.shard_tokens").default == "16777216"
    assert {name.partition(".")[0] for name in NAMES if "." in name} == {*HOMES}


def test_help_names_types_choices_defaults_and_groups() -> None:
    shown = " ".join(koktok("train", "--help", env={"COLUMNS": "80"}).stdout.split())
    for words in (
        "--vocab-size 32000|32k Vocabulary size, including 256 bytes, special and reserved tokens. [32000] --model <str>",
        "for nearly all boundaries, or for the fewest tokens: lm | encoder | aligned | short. [lm]",
        "--prefix-space / --no-prefix-space A space",
        "| exaone-moe. [koktok; bpe-bytes: llama3]",
        "which decoding removes. [on; bpe-bytes: off]",
        "--jamo / --no-jamo Train on conjoining jamo.",
        "--coverage <float> Share of the characters of the text that have a piece of their own. [0.9995]",
        "Korean: --segmenter <str> The morphological",
    ):
        assert words in shown
    unchanged = koktok("export", "--help").stdout.split("With --to hf")[1]
    assert "--padding-side" in unchanged
    assert "[plain]" not in unchanged, "an exported tokenizer keeps what it has"


def test_what_is_typed_becomes_values_of_the_recipe() -> None:
    typed = {
        "vocab_size": 8000,
        "specials": "<unk>,<s>",
        "reserve_script": ["latin=0.3", "hangul=.5"],
        "required": "none",
        "prefix_space": False,
        "keep": None,
    }
    values = values_of({name: OptionField(name) for name in typed}, typed)
    assert values["prefix_space"] is False
    recipe = Recipe().changed(**values)
    assert recipe.train.reserve_script == {"latin": 0.3, "hangul": 0.5}
    assert (recipe.train.vocab_size, recipe.train.specials, recipe.train.required) == (8000, ("<unk>", "<s>"), "none")
    assert "keep" not in values
    assert {*TYPED} <= {*NAMES}


def test_words_are_completed_options_and_choices() -> None:
    def completed(line: str) -> list[str]:
        env = {"_KOKTOK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        return koktok(env=env).stdout.split()

    assert completed("koktok train --pres") == ["--preset"]
    assert completed("koktok train --preset a") == ["aligned"]
    assert completed("koktok export x --sty") == ["--style"]
    assert "train" in completed("koktok tra")


def test_the_verbs_are_listed_without_the_recipe() -> None:
    code = (
        "import sys; sys.argv = ['koktok', '--help']\nfrom koktok.cli import app\ntry: app()\nexcept SystemExit: pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}assert not {{'pydantic', 'koktok.recipe'}} & {{*sys.modules}}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Train a tokenizer on Korean text" in done.stdout


def test_the_table_of_the_documentation_has_every_field() -> None:
    hooks = runpy.run_path(str(ROOT / "docs" / "hooks.py"))
    page = hooks["on_page_markdown"]((ROOT / "docs" / "reference" / "recipe.md").read_text(encoding="utf-8"))
    for name in (*SECTION_OF, "jamo", "holdout"):
        assert f"| `{OptionField(name).key}` |" in page
    assert "| `train.character_coverage` | `--coverage` | `0.9995` | Share of the characters" in page


def test_files_of_required_characters_and_pieces(tmp_path: Path) -> None:
    file = tmp_path / "pieces.txt"
    file.write_text("\ufeff안녕하세요\n뷁 2024\n", encoding="utf-8")
    assert TYPED["required_pieces"].value(str(file)) == ["안녕하세요", "뷁", "2024"]
    with pytest.raises(InputError, match=r"expected a character a line in .*, got '안녕하세요'") as caught:
        TYPED["required"].value(str(file))
    assert caught.value.hint.startswith("--require-pieces ")
    file.write_text("뷁\n쀍", encoding="utf-8")
    assert TYPED["required"].value(str(file)) == ["뷁", "쀍"]
    file.write_text(" \n", encoding="utf-8")
    with pytest.raises(InputError, match="is empty; expected a file of pieces"):
        TYPED["required_pieces"].value(str(file))
