"""What a training will take, told before: exact where all text was looked at, close where it was not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import MINI

from koktok.count import count_words, sample
from koktok.pipeline import estimate as estimates
from koktok.pipeline.estimate import estimate
from koktok.pipeline.train import train
from koktok.recipe import Recipe
from koktok.text.sources import Source

PLAIN = Recipe().changed(segmenter="whitespace", vocab_size=2300, prefix_space=False)


def test_a_look_at_everything_is_a_count(mini: list[str]) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    recipe = PLAIN.changed(holdout=0.0)
    found = estimate([source], recipe)
    made = train([source], recipe)
    assert (found.eojeols, found.distinct) == (made.reading.train.total, len(made.reading.train))
    assert (found.trained, found.counted) == (len(made.segmented), 1.0)
    assert (found.analysers, found.seconds) == (0, 0)


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
    monkeypatch.setattr(sample, "WHOLE", 500)
    found, made = estimate([source], recipe), train([source], recipe)
    assert len(made.segmented) <= found.trained < 0.7 * found.distinct
    assert len(made.segmented) == pytest.approx(found.trained, rel=0.05)
    every = recipe.changed(train={"min_count": 1})
    assert estimate([source], every).trained == len(train([source], every).segmented) > found.trained


def test_runs_take_memory_and_have_words_of_their_own(mini: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    for constant in ("COUNTING", "TRAINING"):  # or they would be nearly all of so little text
        monkeypatch.setattr(estimates, constant, 0.0)
    recipe = Recipe().changed(segmenter="kiwi", vocab_size=2300, superwords=0.0)
    for whole, more in ((500, estimates.MORE_IN_RUNS), (sample.WHOLE, 1.0)):  # all are asked where no sample is drawn
        monkeypatch.setattr(sample, "WHOLE", whole)
        within, across = estimate([source], recipe), estimate([source], recipe.changed(superwords=0.3))
        assert across.trained == within.trained
        assert across.memory > 3 * within.memory
        assert across.seconds == pytest.approx(more * within.seconds, rel=0.03)


def test_the_comparison_is_trained_on_what_the_trainer_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n흔찮다\n", encoding="utf-8")
    monkeypatch.setattr(sample, "WHOLE", 5)
    recipe = PLAIN.changed(holdout=0.0, train={"vocab_size": 380})
    made = train([Source.of(text)], recipe)
    whole = made.reading
    assert {"드물다", "흔찮다"} - set(made.segmented.words)
    assert not {"드물다", "흔찮다"} - whole.train.as_dict().keys()
    assert not whole.pruned
    for name in ("PEER_WORDS", "MEASURED"):
        monkeypatch.setattr(f"koktok.pipeline.words.{name}", 5)
    less = train([Source.of(text)], recipe).reading
    assert (len(less.train), less.pruned) == (5, True)
    assert less.train.total == pytest.approx(whole.train.total, abs=2)


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n", encoding="utf-8")
    made = train([Source.of(text)], PLAIN.changed(holdout=0.0, train={"vocab_size": 380, "min_count": 2}))
    assert made.notes == ["words that occur less than 2 times are not trained on: 1 word, 3.23 % of the running ones"]
