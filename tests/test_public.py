"""The public names: what each takes, what is refused, and that a room of the same name never hides one."""

from __future__ import annotations

import importlib
import inspect
import re
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import MINI
from conftest import koktok as run

import koktok
from koktok.errors import InputError, KoktokError, UsageError
from koktok.recipe import SECTION_OF, SECTIONS, Recipe
from koktok.text.sources import read
from koktok.tokenizer import TrainedTokenizer

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


LONG = "다람쥐가쳇바퀴를" * 12
"""A hundred syllables are 300 bytes, and no name of a file."""


def test_a_str_alone_names_a_file_and_in_an_iterable_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_text("나는 집에 간다. 하늘이 맑다. 바다가 푸르다.\n" * 9, encoding="utf-8")
    small = {"segmenter": "whitespace", "vocab_size": 375, "holdout": 0.0, "cache": False, "required": "none"}
    named = koktok.train(str(file), **small)
    assert named.tokenizer.digest() == koktok.train(file, **small).tokenizer.digest()
    assert koktok.verify(named.save(tmp_path / "b"), str(file)).lines == 1
    lines = [str(file), LONG, "corpus:mini", "news.txt", "a\0b", "~nobody/x", "-", "", "*"] * 9

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("the system was asked about a line")

    with monkeypatch.context() as patch:
        for name in ("is_file", "exists", "stat", "is_dir"):
            patch.setattr(Path, name, asked)
        for given in (lines, tuple(lines), iter(lines), ({"text": line} for line in lines)):
            assert [line for block in read(given) for line in block.lines()] == lines
    assert koktok.train(iter(lines), **small).reading.report.lines == len(lines)
    for text in ("하늘이 맑다", LONG, "a\0b"):
        for call in (lambda text: koktok.train(text, **small), lambda text: koktok.verify(tmp_path / "b", text)):
            with pytest.raises(InputError, match=r"expected lines, got one `str`"):
                call(text)


def test_a_field_is_named_in_python(tmp_path: Path) -> None:
    """And a hint can be typed in Python; the fields that are parameters are those of the recipe."""
    rows = [{"id": f"r{i}", "review": f"나는 {i}번 집에\n간다."} for i in range(60)]
    pl.DataFrame(rows).write_ndjson(tmp_path / "reviews.jsonl")
    pl.DataFrame(rows).write_csv(tmp_path / "reviews.csv")
    small = SMALL | {"vocab_size": 370}
    made = [koktok.train(text, field="review", **small).tokenizer.vocab.digest()
            for text in (str(tmp_path / "reviews.jsonl"), tmp_path / "reviews.csv", rows)]  # fmt: skip
    assert made == [koktok.train([row["review"] for row in rows], **small).tokenizer.vocab.digest()] * 3
    with pytest.raises(InputError, match="the field `review` has no effect: item 1 is a text"):
        koktok.train(["나는 집에 간다."], field="review", **small)
    for text in (tmp_path / "reviews.jsonl", tmp_path / "reviews.csv", rows):
        with pytest.raises(InputError, match=r"no field .text.; it has: .id., .review.\nhint: field='review'"):
            koktok.train(text, **small)
    (tmp_path / "a.txt").write_text("가\n", encoding="utf-8")
    with pytest.raises(InputError, match="the field `review` has no effect"):
        koktok.train(str(tmp_path / "a.txt"), field="review")
    parameters = inspect.signature(koktok.train).parameters
    assert {*parameters} & {*SECTION_OF} > {"vocab_size", "model", "preset", "keep", "specials"}
    table = repr(koktok.evaluate(["syllables", "bytes"], tmp_path / "reviews.csv", field="review", resamples=0))
    assert [line.split()[0] for line in table.splitlines()] == ["ids", "syllables", "bytes"]


def test_save_refuses_another_tokenizer_without_force(tmp_path: Path) -> None:
    small = {"segmenter": "whitespace", "holdout": 0.0, "cache": False, "required": "none"}
    one, two = (koktok.train(["나는 집에 간다. 하늘이 맑다."] * 9, vocab_size=size, **small) for size in (370, 371))
    for name, save, other in (("a", one.save, two.save), ("b", one.tokenizer.save, two.tokenizer.save)):
        folder = save(tmp_path / name)
        assert save(folder) == folder
        with pytest.raises(UsageError, match=r"contains a different tokenizer\nhint: .*force=True"):
            other(folder)
        assert koktok.load(folder) == one.tokenizer
        assert koktok.load(other(folder, force=True)) == two.tokenizer


@pytest.mark.parametrize("name", [LONG, "a" * 5000, "a\0b", "\ud800", "", "~nobody/x", "a/" * 3000, "loop/x", "["])
def test_no_name_raises_anything_but_our_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    small = {"segmenter": "whitespace", "vocab_size": 380, "cache": False}
    prefixed = [f"{kind}:{name}" for kind in ("hf", "sp", "tiktoken", "package", "cuts", "dpe", "koktok")]
    calls = [partial(koktok.load, one) for one in (name, *prefixed)]
    calls += [partial(load, name) for load in (koktok.load, TrainedTokenizer.load, Recipe.load)]
    calls += [partial(koktok.train, Path(one), **small) for one in (name, f"corpus:{name}") if one]
    calls += [
        partial(koktok.train, ["가"] * 9, **small, **{option: name})
        for option in ("lexicon", "like", "user_dictionary")
    ]
    calls += [partial(koktok.evaluate, name, ["가"]), partial(koktok.extend, name, ["가"], "out", add=1)]
    for call in calls:
        with pytest.raises(KoktokError):
            call()
    with suppress(KoktokError):  # what is not a folder is a failed check
        assert not koktok.verify(name).passed


def test_what_users_pass_gets_the_line_to_type() -> None:
    import pandas as pd
    import polars as pl

    for frame in (pl.DataFrame({"글": ["가"]}), pd.DataFrame({"글": ["가"]}), pl.DataFrame({"글": ["가"]}).to_arrow()):
        with pytest.raises(InputError, match='with the columns "글"\nhint: frame'):
            koktok.train(frame)
    assert koktok.__version__ == version("koktok")


def test_evaluate_takes_tokenizers_of_others_and_functions(trained: Any) -> None:
    from transformers import AutoTokenizer

    folder = trained()
    auto = AutoTokenizer.from_pretrained(str(folder))

    def eojeols(text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\S+", text)]

    text = ["나는 집에 간다.", "너는 집에 온다."]
    rows = koktok.evaluate([folder, auto, auto.backend_tokenizer, eojeols, "eojeols"], text, resamples=0)
    figures = [one.values["fertility"].value for one in rows.values()]
    assert figures[0] == figures[1] == figures[2] > figures[3] == figures[4] == 1


def test_fields_have_one_name_each() -> None:
    assert len(SECTION_OF) == sum(len(inspect.signature(section).parameters) for section in SECTIONS.values())
    assert not set(SECTION_OF) & set(Recipe.model_fields)


def test_the_options_of_train_stand_in_groups() -> None:
    shown = run("train", "--help").stdout
    heads = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Arguments:", "Output:", "Options:", "Model:", "Korean:", "Data:", "Special tokens:"]
    assert shown.index("Korean:") < shown.index("--segmenter") < shown.index("Data:")


def test_names_in_a_card_stay_text(tmp_path: Path) -> None:
    text = tmp_path / "[x](javascript:alert)|<b> *a*.txt"
    text.write_text("나는 집에 간다. 하늘이 맑다.\n" * 9, encoding="utf-8")
    made = koktok.train(text, segmenter="whitespace", vocab_size=370, holdout=0.0, cache=False, required="none")
    card = (made.save(tmp_path / "made") / "README.md").read_text("utf-8")
    assert r"| \[x\](javascript:alert)\|\<b\> \*a\* | 1 |" in card
    assert "Runs in transformers, " in card
