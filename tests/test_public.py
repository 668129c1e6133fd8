"""The public names: what each takes, what is refused, and that a room of the same name never hides one."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
from conftest import MINI
from conftest import koktok as run

import koktok
from koktok.errors import InputError, UsageError
from koktok.recipe import SECTION_OF, SECTIONS, Recipe

SMALL = {"segmenter": "whitespace", "vocab_size": 900, "holdout": 0.0, "required": "none", "character_coverage": 0.9}


def test_a_room_does_not_hide_a_name() -> None:
    for room in ("koktok.training.unigram", "koktok.verification.checks", "koktok.extension.laws"):
        importlib.import_module(room)
    assert callable(koktok.train)
    assert callable(koktok.verify)
    assert callable(koktok.extend)
    from koktok.training import dispatch

    assert dispatch.__name__ == "koktok.training.dispatch"


def test_train_load_verify_evaluate(tmp_path: Path) -> None:
    made = koktok.train(MINI / "news.txt", **SMALL)
    folder = made.save(tmp_path / "mine")
    assert koktok.load(folder) == made.tokenizer
    again = koktok.train([MINI / "news.txt"], Recipe().changed(**SMALL))
    assert again.tokenizer.digest() == made.tokenizer.digest()
    assert "| tokenizer | ids |" not in (folder / "README.md").read_text("utf-8")
    assert koktok.verify(folder, ["나는 집에 간다."]).passed
    scores = koktok.evaluate([made.tokenizer, folder, "syllables"], MINI / "news.txt", resamples=0)
    figures = [one.values["fertility"].value for one in scores.values()]
    assert len(figures) == 3
    assert figures[0] == figures[1] != figures[2]


def test_names_of_files_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("나는 집에 간다.\n", encoding="utf-8")
    for wrong in ([str(file)], (str(file), str(file)), iter([str(file)]), ["corpus:mini"]):
        with pytest.raises(InputError, match="is the name of a file"):
            koktok.train(wrong, **SMALL)
    with pytest.raises(InputError, match="expected a path"):
        koktok.train([file, "나는 집에 간다."], **SMALL)
    with pytest.raises(UsageError, match="no tokenizer"):
        koktok.evaluate([], file)


def test_fields_have_one_name_each() -> None:
    assert len(SECTION_OF) == sum(len(inspect.signature(section).parameters) for section in SECTIONS.values())
    assert not set(SECTION_OF) & set(Recipe.model_fields)


def test_the_options_of_train_stand_in_groups() -> None:
    shown = run("train", "--help").stdout
    heads = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Arguments:", "Output:", "Options:", "Model:", "Korean:", "Data:", "Special tokens:"]
    assert shown.index("Korean:") < shown.index("--segmenter") < shown.index("Data:")
