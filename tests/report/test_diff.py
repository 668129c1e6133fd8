"""Two tokenizers compared: what counts as a change, the verdict of gold, exit codes like `diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import MINI, koktok
from hypothesis import given
from hypothesis import strategies as st

from koktok.metrics.gold import GoldCorpus
from koktok.report.diff import WordChange, difference
from koktok.tokenizer.open import load

NEWS = (MINI / "news.txt").read_text(encoding="utf-8").splitlines()


def wordpiece(folder: Path, name: str, words: str) -> str:
    """A vocabulary with these pieces, and every syllable of its own pieces as a continuation."""
    pieces = words.split()
    chars = sorted({char for piece in pieces for char in piece.removeprefix("##")})
    path = folder / f"{name}.txt"
    every = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *pieces, *chars, *(f"##{char}" for char in chars)])
    path.write_text("\n".join(every), encoding="utf-8")
    return f"wordpiece:{path}"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return wordpiece(tmp_path, "a", "학교 ##에서 ##는 집"), wordpiece(tmp_path, "b", "학교에 ##서는 집 ##에서")


def test_words_by_frequency_and_their_price(pair: tuple[str, str]) -> None:
    a, b = map(load, pair)
    found = difference(a, b, ["학교에서는 집", "집에서 학교에서는", "집"])
    assert found.words == (WordChange("학교에서는", "학교|에서|는", "학교에|서는", 2),)
    assert (found.lines, found.lines_changed, found.eojeols, found.eojeols_changed) == (3, 2, 5, 2)
    assert (found.only_a, found.only_b) == (4, 2)
    assert (found.a.tokens, found.b.tokens) == (10, 8)
    assert found.fertility_difference.value == pytest.approx(-0.4)
    assert found.examples[0].a == "학교|에서|는 집"
    assert not found.same


def test_gold_says_who_is_right(pair: tuple[str, str]) -> None:
    words = [("학교에서는", ["학교", "에서", "는"], ["NNG", "JKB", "JX"], False)]
    gold = GoldCorpus.of("tiny", [words], human=True)
    (judged,) = difference(*map(load, pair), ["집"], gold=[gold]).judged
    assert (judged.f1_a, judged.f1_b) == (1.0, 0.0)
    assert (judged.only_a, judged.only_a_right, judged.only_b, judged.only_b_right) == (2, 2, 1, 0)
    assert judged.standing == "human"
    assert (judged.difference.value, judged.difference.low, judged.difference.p) == (-1.0, None, None)


def test_the_interval_is_that_of_a_report(pair: tuple[str, str]) -> None:
    """One rule: the same units, the same draws, the same numbers."""
    from koktok.metrics import Material, Settings, Text, compare, score

    domains = {f"d{k}": ["학교에서는 집"] * (k + 1) + ["집에서 집"] * (3 * k) for k in range(6)}
    a, b = map(load, pair)
    changes = difference(a, b, domains | {"d0": ["", *domains["d0"]]})  # what is blank is no unit
    found = changes.fertility_difference
    text = Text.of(domains)
    other = compare(
        score(b, Material(text), Settings(resamples=0)),
        score(a, Material(text), Settings(resamples=0)),
        "fertility",
        resamples=1000,
    )
    assert (found.value, found.low, found.high, found.p) == pytest.approx(
        (other.value, other.low, other.high, other.p), abs=1e-8
    )
    assert (changes.units, found.n, other.n) == ("6 domains", 6, 6)


def test_ids_in_another_order_are_told_and_are_no_change(tmp_path: Path) -> None:
    a, b = wordpiece(tmp_path, "a", "학교 집"), wordpiece(tmp_path, "b", "집 학교")
    found = difference(load(a), load(b), ["학교 집"])
    assert found.same
    assert found.lines_same_cuts_other_ids == 1


def test_a_token_over_a_space_is_marked(tmp_path: Path) -> None:
    from koktok.model.vocab import Vocab
    from koktok.recipe import Recipe
    from koktok.tokenizer import TrainedTokenizer

    scores = {" ": -9.0, "할": -9.0, "수": -9.0, "할 수": -1.0}
    recipe = Recipe().changed(superwords=0.3, prefix_space=False)
    folder = TrainedTokenizer(recipe, Vocab.unigram(scores)).save(tmp_path / "t")
    found = difference(load(f"koktok:{folder}"), load("syllables"), ["할 수"])
    assert {(item.word, item.a, item.b) for item in found.words} == {("할", "할~", "할"), ("수", "~수", "수")}


@given(st.lists(st.text(alphabet="가나다 a1.\t뷁ㅋ😀", max_size=12), max_size=5))
def test_nothing_differs_from_itself_and_sides_swap(lines: list[str]) -> None:
    a, b = load("syllables"), load("eojeols")
    assert difference(a, a, lines).same
    here, there = difference(a, b, lines), difference(b, a, lines)
    assert (here.only_a, here.only_b, here.lines_changed) == (there.only_b, there.only_a, there.lines_changed)
    assert here.fertility_difference.value == pytest.approx(-there.fertility_difference.value)
    # A cut that only one makes is a cut of the syllables: eojeols have none inside.
    assert here.only_b == 0


def test_the_verb_ends_like_diff(tmp_path: Path, pair: tuple[str, str]) -> None:
    same = koktok("diff", "syllables", "syllables", "--text", MINI / "news.txt", "-q")
    assert (same.returncode, same.stderr) == (0, "")
    assert "lines cut differently: 0 of" in same.stdout
    other = koktok("diff", *pair, stdin="학교에서는\n")
    assert other.returncode == 1
    assert "학교|에서|는" in other.stdout
    assert koktok("diff", "syllables", "nothing", stdin="").returncode == 2
    runs = [koktok("diff", *pair, "--json", "-q", stdin="학교에서는\n집에서\n").stdout for _ in range(2)]
    assert runs[0] == runs[1]
    data = json.loads(runs[0])
    assert (data["format"], data["same"], data["words"][0]["times"]) == ("koktok-diff", False, 1)


def test_the_verdict_is_the_metric_of_a_report(pair: tuple[str, str]) -> None:
    from koktok.metrics import Material, Settings, score

    words = [
        ("학교에서는", ["학교", "에서", "는"], ["NNG", "JKB", "JX"], False),
        ("집에서", ["집", "에서"], ["NNG", "JKB"], True),
    ]
    gold = GoldCorpus.of("tiny", [words], human=True)
    sides = [load(spec) for spec in pair]
    (judged,) = difference(*sides, ["집"], gold=[gold]).judged
    measured = [
        score(side, Material(golds=[gold]), Settings(resamples=0)).values["boundary_f1"].value for side in sides
    ]
    assert [judged.f1_a, judged.f1_b] == pytest.approx(measured)
