"""eval/tagger, its placebos and its contrasts: what is judged, what is learnt, what an interval holds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from eval import tagger
from eval.contrasts import Scored, contrasts, scored
from eval.machine import write_between
from eval.peers import digest_of
from eval.placebo import ALL, at_random, displaced, moved
from eval.tagger import Examples, Sentences, figures, folds, judged, labelled, page, polarity
from koktok.metrics.gold.spans import SpanCorpus
from koktok.metrics.spans import SpanPage, span_table
from koktok.segment import Morpheme
from koktok.segment.policy import cuts_of
from koktok.text.normalize import normalized
from koktok.tokenizer.open import load

NAMES, PLACES = ("김철수", "이영희", "박민수"), ("서울", "부산", "대구시")
ENDS = ("는", "가", "도", "와")


def sentences() -> SpanCorpus:
    """36 sentences of a person and a place, each with a particle behind it."""
    texts, spans, labels = [], [], []
    for name, place, end in itertools.product(NAMES, PLACES, ENDS):
        text = f"{name}{end} 어제 {place}에 갔다"
        at = text.index(place)
        texts.append(text)
        spans.append([(0, len(name)), (at, at + len(place))])
        labels.append(["PS", "LC"])
    return SpanCorpus("toy", texts, spans, [0] * len(texts), labels=labels)


@given(st.data())
def test_the_labels_of_the_gold_give_back_what_tokens_can_express(data: st.DataObject) -> None:
    text = normalized("NFC", data.draw(korean_text())).strip()
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [(a, b) for a, b in zip(places[::2], places[1::2], strict=False) if text[a:b] == text[a:b].strip()]
    types = [data.draw(st.sampled_from(["LC", "PS"])) for _ in spans]
    corpus = SpanCorpus("drawn", [text], [spans], [0], labels=[types])
    for name in ("syllables", "eojeols", "bytes"):
        cut = Sentences.of(corpus, load(name))
        right, _, found = cut.judged(0, cut.labels)
        table = span_table(load(name), SpanPage(corpus)).sums()
        assert right == int(table["expressed"])
        assert found <= int(table["spans"])


def test_a_perceptron_learns_what_the_tokens_say_and_the_same_twice() -> None:
    corpus = sentences()
    cut, every = Sentences.of(corpus, load("syllables")), np.arange(36)
    out = labelled(cut.examples, every, every, seed=0)
    assert out.tolist() == cut.labels.tolist()
    assert labelled(cut.examples, every, every, seed=0).tolist() == out.tolist()
    assert not labelled(cut.examples, every[:0], every, seed=0).any()
    eojeols = Sentences.of(corpus, load("eojeols"))
    out = labelled(eojeols.examples, every, every, seed=0)
    counts = np.sum([eojeols.judged(k, out[4 * k : 4 * k + 4]) for k in range(36)], axis=0)
    assert counts.tolist() == [0, 72, 72]  # no end of an entity is an end of an eojeol until its particle is off


def test_the_weights_are_averaged() -> None:
    """Two texts of one feature and other labels: the last of six passes does not decide alone."""
    same = Examples(np.zeros(2, np.int32), np.arange(3), np.arange(3), np.array([0, 1], np.int8), pairs=0)
    found = [labelled(same, np.array([0, 1]), np.array([0, 1]), seed)[0] for seed in range(8)]
    assert len(set(found)) == 1


def test_folds_ask_every_text_once_and_parts_are_nested() -> None:
    asked = []
    for train, test in folds(103, seed=3):
        assert sorted([*train, *test]) == list(range(103))
        asked += test.tolist()
    assert sorted(asked) == list(range(103))
    assert [test.tolist() for _, test in folds(103, 3)] != [test.tolist() for _, test in folds(103, 4)]


def test_polarity_is_learnt_from_tokens() -> None:
    texts = [f"{word} 영화" for word in ("좋은", "나쁜") for _ in range(20)]
    examples = polarity(texts, [0] * 20 + [1] * 20, load("syllables"))
    out = labelled(examples, np.arange(0, 40, 2), np.arange(1, 40, 2), seed=0)
    assert out[1::2].tolist() == examples.labels[1::2].tolist()


def test_rows_to_figures_and_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of the same tokens do not differ; one that cannot express anything is behind by all."""
    corpus = sentences()
    monkeypatch.setattr(tagger, "PAIRS", (("a", "b"), ("a", "c")))
    monkeypatch.setattr(tagger, "PRIMARY", (("a", "c"),))

    def row(name: str, spec: str) -> dict[str, object]:
        cut, control = Sentences.of(corpus, load(spec)), polarity(["가 나", "다"] * 20, [0, 1] * 20, load(spec))
        found = [judged(cut, control, seed) for seed in (0, 1)]
        ones = np.ones((2, 40), np.int64)
        counts = {}
        for share in tagger.SHARES:
            right, stripped, all_of = np.swapaxes([seed["entities"][str(share)] for seed in found], 0, 1)
            counts[f"entities, {share} %"] = right, all_of, np.full(36, 2)
            counts[f"stripped, {share} %"] = stripped, all_of, np.full(36, 2)
            counts[f"control, {share} %"] = np.array([seed["control"][str(share)] for seed in found]), ones, ones[0]
        return {"name": name, "ids": None, "tokens": 1.0, "expressed": 1.0, "counts": counts}

    seed = json.dumps(
        judged(
            Sentences.of(corpus, load("syllables")), polarity(["가 나", "다"] * 20, [0, 1] * 20, load("syllables")), 0
        )
    )
    assert (tagger.FORMULA, digest_of([seed])) == (1, "c84f281f19c0d22f"), "raise FORMULA: kept seeds are of this one"
    report = figures([row("a", "syllables"), row("b", "syllables"), row("c", "eojeols")], corpus)
    same, other = report["contrasts"]["a − b"], report["contrasts"]["a − c"]
    assert same[tagger.ALL_LABELS] == {"value": 0, "low": 0, "high": 0, "p": 1}
    assert other[tagger.ALL_LABELS]["value"] == pytest.approx(report["rows"][0]["scores"][tagger.ALL_LABELS]["value"])
    assert other[tagger.ALL_LABELS]["value"] > 0.9
    assert "holm" in other[tagger.ALL_LABELS]
    assert "holm" not in same[tagger.ALL_LABELS]
    assert "| a − c |" in page(report)


# ── contrasts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Texts and seeds with effects of their own: the 95 % interval of a mean misses in some 5 % of the worlds."""
    rng, missed, worlds = np.random.default_rng(1), 0, 200
    for _ in range(worlds):
        right = 0.5 + rng.normal(0, 0.1, (8, 1)) + rng.normal(0, 0.3, 60) + rng.normal(0, 0.1, (8, 60))
        ones = np.ones((8, 60))
        one = scored({"a": {"x": (right, ones, ones[0])}})["a"]["x"].minus()
        missed += not one.low <= 0.5 <= one.high
    assert missed / worlds < 0.08


def test_the_wider_interval_is_shown_and_holm_adjusts_the_primary_ones() -> None:
    rng = np.random.default_rng(0)
    ones = np.ones((5, 50))
    rows = {
        name: {"x": (rng.random((5, 50)) + shift, ones, ones[0])}
        for name, shift in {"a": 0.4, "b": 0, "c": 0.1}.items()
    }
    found = contrasts(scored(rows), [("a", "b"), ("a", "c"), ("a", "absent")], [("a", "b", "x"), ("a", "c", "x")])
    assert list(found) == ["a − b", "a − c"]
    assert min(one["x"]["p"] for one in found.values()) * 2 == pytest.approx(
        min(one["x"]["holm"] for one in found.values())
    )
    steady = Scored(np.array([0.1, 0.5, 0.9]), np.full(10, 0.5)).minus()
    assert steady.low < 0 < 0.5 < steady.value + 0.1
    one = Scored(np.array([0.5]), np.array([0.4, 0.5, 0.6])).minus()
    assert one.high - 0.5 == pytest.approx(1.96 * 0.1, abs=1e-3)


# ── placebos ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text("가나다라마", min_size=2, max_size=9), st.data())
def test_placebos_partition_words_at_other_places(word: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(word) - 1))))
    edges = [0, *cuts, len(word)]
    tags = data.draw(st.lists(st.sampled_from(["NNG", "JKO", "EF"]), min_size=len(edges), max_size=len(edges)))
    morphemes = [Morpheme(a, b, tag) for (a, b), tag in zip(itertools.pairwise(edges), tags, strict=False)]
    for displace in (moved, at_random):
        found = displaced(word, morphemes, displace)
        assert "".join(word[m.start : m.end] for m in found) == (word if found else "")
        places = [cut.offset for cut in cuts_of(word, found, ALL)]
        if displace is moved:
            assert not {*places} & {*cuts}
        else:
            assert len(places) == len(cuts)
        assert displaced(word, morphemes, displace) == found


def test_a_section_of_a_page_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n", encoding="utf-8")
    for _ in range(2):
        write_between(file, "x", "new")
    assert file.read_text(encoding="utf-8") == "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n"
    with pytest.raises(SystemExit, match="expected one line"):
        write_between(file, "y", "new")
