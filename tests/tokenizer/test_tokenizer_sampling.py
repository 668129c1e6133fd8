"""`Tokenizer.sample` and `Tokenizer.n_best`: seeded, lossless, exact; and errors that name the way out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import MODELS
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from koktok import Recipe, Tokenizer
from koktok.errors import UsageError
from koktok.tokenizer.models import best_choices
from koktok.vocab import Vocab

Trained = Callable[..., Path]
TEXT = "학교에서는 책을 읽습니다. 나는 집에 갔다."
DROPOUT = ("bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes")
PIECES = {"가": -2.0, "나": -2.5, "가나": -4.0, " ": -1.0, " 가": -3.0, "나가": -4.5}
SMALL = Tokenizer(Recipe().changed(prefix_space=False), Vocab.unigram(PIECES))


def options(kind: str, strength: float) -> dict[str, float]:
    return {"alpha": 1 - strength} if kind == "unigram" else {"dropout": strength}


@pytest.fixture(scope="module", params=["unigram", *DROPOUT])
def tokenizer(request: pytest.FixtureRequest, trained: Trained) -> Tokenizer:
    return Tokenizer.load(trained(**MODELS[request.param]))


def test_a_seed_gives_the_same_sample_and_a_generator_goes_on(tokenizer: Tokenizer) -> None:
    how = options(tokenizer.vocab.kind, 0.5)
    assert tokenizer.sample(TEXT, **how, seed_or_rng=3) == tokenizer.sample(TEXT, **how, seed_or_rng=3)
    rng = np.random.default_rng(3)
    drawn = [tokenizer.sample(TEXT, **how, seed_or_rng=rng) for _ in range(30)]
    assert drawn[0] == tokenizer.sample(TEXT, **how, seed_or_rng=3)
    assert len({tuple(encoding.ids) for encoding in drawn}) > 2
    again = tokenizer.encode(TEXT)  # sampling leaves no trace
    assert again == Tokenizer(tokenizer.recipe, tokenizer.vocab).encode(TEXT)


@given(text=korean_text(), seed=st.integers(0, 9))
def test_every_sample_decodes_to_the_text(tokenizer: Tokenizer, text: str, seed: int) -> None:
    """Law 4, for samples."""
    drawn = tokenizer.sample(text, **options(tokenizer.vocab.kind, 0.4), seed_or_rng=seed)
    assert len(drawn.ids) == len(drawn.pieces) == len(drawn.offsets)
    if tokenizer.lossless:
        assert tokenizer.decode(drawn.ids) == tokenizer.normalize(text)
    elif tokenizer.vocab.unknown_id not in drawn.ids and "##" not in text:
        assert tokenizer.decode(drawn.ids) == tokenizer.decode(tokenizer.encode(text).ids)


def test_the_ends_are_the_best_and_the_letters(tokenizer: Tokenizer, mini: list[str]) -> None:
    kind = tokenizer.vocab.kind
    best = {"alpha": 1e6} if kind == "unigram" else {"dropout": 0.0}
    for line in mini[:40]:
        assert tokenizer.sample(line, **best, seed_or_rng=0) == tokenizer.encode(line)
    if kind != "unigram":
        pieces = tokenizer.sample(TEXT, dropout=1.0, seed_or_rng=0).pieces
        assert {len(piece.removeprefix("##")) for piece in pieces} == {1}


def test_specials_stay_whole_in_samples(trained: Trained) -> None:
    tokenizer = Tokenizer.load(trained())
    drawn = tokenizer.sample("가</s>나", alpha=0.0, seed_or_rng=0, allowed_special="all")
    assert tokenizer.vocab.special_ids["</s>"] in drawn.ids
    assert tokenizer.vocab.special_ids["</s>"] not in tokenizer.sample("가</s>나", alpha=0.0, seed_or_rng=0).ids


def test_samples_from_the_n_best_are_among_them() -> None:
    rng = np.random.default_rng(0)
    drawn = {tuple(SMALL.sample("가나가", alpha=0.0, n_best=2, seed_or_rng=rng).ids) for _ in range(60)}
    assert drawn == {tuple(encoding.ids) for encoding, _ in SMALL.n_best("가나가", 2)}


@given(text=st.text("가나 é", max_size=9), n=st.integers(1, 12))
def test_n_best_of_a_text_is_the_top_of_all(text: str, n: int) -> None:
    """Against every combination of every segmentation of every pretoken."""
    pretokens = SMALL.pattern.pretokenize(SMALL.normalize(text))
    lists = [SMALL.model.n_best(word, 10_000) for word in pretokens]  # type: ignore[attr-defined]
    every = sorted((sum(score for _, score in ways) for ways in itertools.product(*lists)), reverse=True)
    found = SMALL.n_best(text, n)
    assert [score for _, score in found] == every[:n]
    assert found[0][0] == SMALL.encode(text)
    assert len({tuple(encoding.ids) for encoding, _ in found}) == len(found)
    for encoding, _ in found:
        assert SMALL.decode(encoding.ids) == SMALL.normalize(text)
        assert "".join(text[a:b] for a, b in dict.fromkeys(encoding.offsets)) == text


@given(st.lists(st.lists(st.integers(-9, 0), min_size=1, max_size=5), max_size=4), st.integers(1, 20))
def test_best_choices_are_the_best(numbers: list[list[int]], n: int) -> None:
    lists = [sorted(map(float, row), reverse=True) for row in numbers]
    every = sorted(map(sum, itertools.product(*lists)), reverse=True)
    found = best_choices(lists, n)
    assert [total for _, total in found] == every[:n]
    assert all(sum(row[i] for row, i in zip(lists, choice, strict=True)) == total for choice, total in found)
    assert len({choice for choice, _ in found}) == len(found)


def test_a_long_text_has_its_n_best() -> None:
    found = SMALL.n_best("가나가 나가" * 2000, 50)
    assert len(found) == 50
    assert found[0][0] == SMALL.encode("가나가 나가" * 2000)


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("unigram", {"dropout": 0.1}, r"`dropout` is not for a unigram.*\nhint: tokenizer.sample\(text, alpha=0.1"),
        ("bpe", {"alpha": 0.1}, r"`alpha` is not for a bpe tokenizer.*\nhint: tokenizer.sample\(text, dropout=0.1"),
        ("wordpiece", {"dropout": 0.1, "n_best": 3}, "`n_best` is not for a wordpiece"),
        ("unigram", {}, "samples of a unigram tokenizer want `alpha`"),
        ("bpe-bytes", {}, "samples of a bpe-bytes tokenizer want `dropout`"),
        ("word", {"dropout": 0.1}, r"a word tokenizer has one segmentation.*\nhint: tokenizer.encode"),
        ("bpe", {"dropout": 1.5}, "dropout = 1.5; wanted a probability"),
        ("unigram", {"alpha": -1.0}, "alpha = -1.0; wanted a number from 0 to 1"),
    ],
)
def test_a_wrong_keyword_is_answered_with_the_right_one(
    model: str, given: dict[str, float], message: str, trained: Trained
) -> None:
    tokenizer = Tokenizer.load(trained(**MODELS[model]))
    with pytest.raises(UsageError, match=message):
        tokenizer.sample(TEXT, **given, seed_or_rng=0)


def test_only_unigram_knows_a_second_best(trained: Trained) -> None:
    with pytest.raises(UsageError, match=r"a bpe tokenizer gives segmentations no score.*\nhint: .*unigram"):
        Tokenizer.load(trained(**MODELS["bpe"])).n_best(TEXT, 2)
    for text in (TEXT, ""):
        with pytest.raises(UsageError, match="n = 0; wanted at least 1"):
            SMALL.n_best(text, 0)
