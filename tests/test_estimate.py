"""What a training will take, told before: exact where all text was looked at, close where it was not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import MINI

from koktok import estimate as estimates
from koktok import train_tokenizer, waist
from koktok.count import Counts, count_words
from koktok.estimate import estimate
from koktok.recipe import Recipe
from koktok.text.sources import Source
from koktok.waist import usual_minimum

PLAIN = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 2300})


def test_a_look_at_everything_is_a_count(mini: list[str]) -> None:
    source = Source.of(*sorted(MINI.glob("*.txt")), name="mini")
    recipe = PLAIN.changed(holdout=0.0)
    found = estimate([source], recipe)
    made = train_tokenizer([source], recipe)
    assert (found.eojeols, found.distinct) == (made.reading.train.total, len(made.reading.train))
    assert (found.trained, found.minimum, found.counted) == (len(made.segmented), 1, 1.0)
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


def test_rare_words_go_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts.from_mapping({f"w{i}": 1 + i % 5 for i in range(100)})
    assert usual_minimum(counts) == 1
    monkeypatch.setattr(waist, "MANY_WORDS", 50)
    assert usual_minimum(counts) == 2
    for most, least in ((80, 2), (79, 3), (60, 3), (41, 4), (20, 5)):
        monkeypatch.setattr(waist, "MOST_WORDS", most)
        assert usual_minimum(counts) == least
        assert len(counts.at_least(least)) <= most
        monkeypatch.setattr(estimates, "MANY_WORDS", 50)
        monkeypatch.setattr(estimates, "MOST_WORDS", most)
        assert estimates._minimum(counts, 1.0) == least


def test_the_comparison_is_trained_on_what_the_trainer_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n", encoding="utf-8")
    monkeypatch.setattr(waist, "MANY_WORDS", 3)
    recipe = PLAIN.changed(holdout=0.0, train={"vocab_size": 380})
    whole = train_tokenizer([Source.of(text)], recipe).reading
    assert "드물다" in whole.train.as_dict()
    assert not whole.pruned
    monkeypatch.setattr(waist, "PEER_WORDS", 3)
    less = train_tokenizer([Source.of(text)], recipe).reading
    assert "드물다" not in less.train.as_dict()
    assert less.pruned


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5 + "드물다\n", encoding="utf-8")
    made = train_tokenizer([Source.of(text)], PLAIN.changed(holdout=0.0, train={"vocab_size": 380, "min_count": 2}))
    assert made.notes == ["words that occur less than 2 times are not trained on: 1 word, 3.23 % of the running ones"]
