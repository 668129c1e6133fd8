"""What a training will take, told before: exact where all text was looked at, close where it was not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import MINI, sample_above
from typer.testing import CliRunner

from koktok.cli import app
from koktok.count import count_words, sample
from koktok.pipeline import estimate as estimates
from koktok.pipeline.estimate import estimate
from koktok.pipeline.train import train
from koktok.recipe import Recipe
from koktok.text.sources import Source

PLAIN = Recipe().changed(segmenter="whitespace", vocab_size=2300, prefix_space=False)


def test_a_look_at_everything_is_a_count(tmp_path: Path) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    recipe = PLAIN.changed(holdout=0.0)
    found = estimate([source], recipe)
    made = train([source], recipe)
    assert (found.eojeols, found.distinct) == (made.reading.train.total, len(made.reading.train))
    assert (found.trained, found.counted) == (len(made.segmented), 1.0)
    assert (found.analysers, found.stages["segment"]) == (0, 0)
    assert found.seconds == sum(found.stages.values()) > 0
    written = tmp_path / "c.parquet"
    assert (
        CliRunner()
        .invoke(app, ["count", *map(str, source.paths), "-o", str(written), "--holdout", "0", "-q"])
        .exit_code
        == 0
    )
    again = estimate([Source.of(written)], recipe)
    assert (again.eojeols, again.distinct, again.trained) == (found.eojeols, found.distinct, found.trained)
    assert again.stages == {**found.stages, "read": 0.0}


def test_a_look_at_a_part_grows_by_heaps_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words drawn by Zipf's law, which is Heaps' law: a twentieth tells the distinct words within a tenth."""
    chance = np.random.default_rng(0)
    drawn = chance.zipf(1.5, size=400_000) % 10**9
    text = tmp_path / "zipf.txt"
    text.write_text("\n".join(" ".join(f"w{i}" for i in drawn[k : k + 20]) for k in range(0, len(drawn), 20)))
    true = len(count_words(text.read_text().split("\n")))
    monkeypatch.setattr(estimates, "LOOK", text.stat().st_size // 2)
    found = estimate([Source.of(text)], PLAIN.changed(holdout=0.0))
    assert found.counted < 0.9
    assert found.distinct == pytest.approx(true, rel=0.15)
    assert found.eojeols == pytest.approx(len(drawn), rel=0.05)


def test_where_there_are_too_many_a_sample_is_expected(mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, recipe = Source.of(*sorted(MINI.glob("*.txt")), name="mini"), PLAIN.changed(holdout=0.0)
    sample_above(monkeypatch, 500)
    found, made = estimate([source], recipe), train([source], recipe)
    assert len(made.segmented) <= found.trained < 0.7 * found.distinct
    assert len(made.segmented) == pytest.approx(found.trained, rel=0.05)
    every = recipe.changed(train={"min_count": 1})
    assert estimate([source], every).trained == len(train([source], every).segmented) > found.trained


def test_runs_take_memory_and_have_words_of_their_own(mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    for constant in ("COUNTING", "TRAINING", "STARTED"):  # or they would be nearly all of so little text
        monkeypatch.setattr(estimates, constant, 0.0)
    recipe = Recipe().changed(segmenter="kiwi", vocab_size=2300, superwords=0.0)
    for whole, more in ((500, estimates.MORE_IN_RUNS), (sample.WHOLE, 1.0)):  # all are asked where no sample is drawn
        sample_above(monkeypatch, whole)
        within, across = estimate([source], recipe), estimate([source], recipe.changed(superwords=0.3))
        assert across.trained == within.trained
        assert across.memory > 3 * within.memory
        assert across.stages["segment"] == pytest.approx(more * within.stages["segment"], rel=0.03)
        assert across.seconds > within.seconds


def test_the_comparison_is_trained_on_what_the_trainer_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n흔찮다\n", encoding="utf-8")
    sample_above(monkeypatch, 5)
    recipe = PLAIN.changed(holdout=0.0, train={"vocab_size": 380})
    made = train([Source.of(text)], recipe)
    whole = made.reading
    assert {"드물다", "흔찮다"} - set(made.segmented.words)
    assert not {"드물다", "흔찮다"} - whole.train.as_dict().keys()
    assert whole.complete
    for name in ("PEER_WORDS", "MEASURED"):
        monkeypatch.setattr(f"koktok.pipeline.words.{name}", 5)
    less = train([Source.of(text)], recipe).reading
    assert (len(less.train), less.complete) == (5, False)
    assert less.train.total == pytest.approx(whole.train.total, abs=2)


def test_memory_while_counting_has_a_bound_and_grows_with_what_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    sizes = {}
    for text in (10**7, 10**9, 10**11, 10**13):
        monkeypatch.setattr(
            estimates, "_expected", lambda *_, n=text: (n, n // 100, sample.enough(n // 100, 32_000), 1.0)
        )
        sizes[text] = estimate([source], PLAIN)
    memory = [found.memory for found in sizes.values()]
    assert memory == sorted(memory)
    assert memory[0] < memory[1] < memory[2] == memory[3] < 4 << 30
    assert [found.seconds for found in sizes.values()] == sorted(found.seconds for found in sizes.values())


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n", encoding="utf-8")
    made = train([Source.of(text)], PLAIN.changed(holdout=0.0, train={"vocab_size": 380, "min_count": 2}))
    assert made.notes == ["words that occur less than 2 times are not trained on: 1 word, 3.23 % of the running ones"]
