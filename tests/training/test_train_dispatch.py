"""Every model of the recipe has an adapter, every training a log, and the log is what happened."""

from __future__ import annotations

import json

import pytest
from conftest import MODELS

from koktok import Recipe
from koktok.errors import VocabSizeError
from koktok.pipeline import road
from koktok.recipe import SPM_MODELS
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.text.pretokenize import Pattern
from koktok.tokenizer.models import Model, model_for
from koktok.training import log as summaries
from koktok.training.dispatch import OTHERS, train
from koktok.training.job import Job
from koktok.training.log import account, summary
from koktok.training.unigram import script_of
from koktok.vocab import KINDS, Vocab, named

COUNTS = SegmentedCounts.from_marked(
    {" 학교|에서": 40, " 학교|는": 30, " 집|에서": 20, " 집|은": 15, " 산|에서|는": 9, "산|은": 8}
)


def job(model: str, size: int, **values: object) -> Job:
    train_values = {"model": model, "vocab_size": size, "required": "none", **values}
    return Job.of(COUNTS, Recipe().changed(train=train_values), Pattern(digits="single"))


def test_every_kind_has_an_adapter_and_a_fixture() -> None:
    assert {name.split(" ")[0] for name in MODELS} == {*KINDS, *OTHERS} - {"spm"}
    for row in KINDS.values():
        assert callable(named(row.trainer))
        assert issubclass(named(row.model), Model)
        assert callable(named(row.solver))
    assert all(callable(named(trainer)) for trainer in OTHERS.values())


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("unigram", 366),
        ("bpe", 366),
        ("bpe-bytes", 270),
        ("wordpiece", 215),
        ("wordpiece-bytes", 530),
        ("word", 9),
        ("ngram", 366),
        ("morpheme", 368),
    ],
)
def test_the_log_is_json_and_its_figures_are_those_of_the_model(model: str, size: int) -> None:
    learnt = train(job(model, size))
    assert learnt.vocab.size == size == learnt.log["vocab_size"]
    log = json.loads(json.dumps(learnt.log))
    assert log["trainer"] == model
    assert sum(log["pieces_by_length"].values()) == sum(log["pieces_by_shape"].values()) == len(learnt.vocab.pieces)
    swallowed = there = 0
    for word, cuts, n in COUNTS.items():
        ends = {end for _, end in model_for(learnt.vocab).encode(word)[1]}
        there += n * len(cuts)
        swallowed += n * sum(cut.offset not in ends for cut in cuts)
    assert log["boundaries"] == {"other": {"n": there, "swallowed": swallowed}}
    lines = summary(log)
    assert lines[0].startswith(f"{model}: ")
    assert f"other {1 - swallowed / there:.0%}" in lines[-1]


@pytest.mark.parametrize("model", SPM_MODELS)
def test_the_sentencepiece_backend_has_an_account_too(model: str) -> None:
    log = train(job(model, 366, backend="spm")).log
    assert (log["trainer"], log["model"]) == ("spm", model)
    assert log["boundaries"]["other"]["n"] == 131


def test_the_account_measures_the_most_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "MEASURED", 2)
    found = account(COUNTS, Vocab.bpe(" 학교에서집은는산", []))
    assert (found["words_measured"], found["boundaries"]) == (2, {Kind.OTHER.label: {"n": 70, "swallowed": 0}})


def test_a_lower_floor_is_tried_where_the_text_is_small() -> None:
    rare = SegmentedCounts.from_marked({" 가나다": 2, " 나다라": 2})
    recipe = Recipe().changed(train={"model": "wordpiece", "vocab_size": 220, "required": "none"})
    with pytest.raises(VocabSizeError, match=r"pairs that stand 1 times.*\nhint: --vocab-size (\d+)") as caught:
        train(Job.of(rare, recipe, Pattern()))
    size = int(caught.value.hint.split()[1])
    vocab = train(Job.of(rare, recipe.changed(train={"vocab_size": size}), Pattern())).vocab
    assert "가나다" in vocab.pieces


def test_reserved_shares_reach_the_trainer() -> None:
    words = [f"{a}{b}" for a in "abcdefgh" for b in ("ing", "ed", "er")]
    lines = [" ".join(words), "나는 집에 간다 너는 학교에 온다 우리는 들에 나간다"] * 30
    base = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 400}, holdout=0.0)
    shares = []
    for reserve in ({}, {"latin": 0.57}):
        pieces = road.train(lines, base.changed(train={"reserve_script": reserve})).tokenizer.vocab.pieces
        shares.append(sum(script_of(piece) == "latin" for piece in pieces) / len(pieces))
    assert shares[0] < shares[1]
