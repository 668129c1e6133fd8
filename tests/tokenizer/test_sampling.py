"""Subword regularization: n-best lists and samplers against enumeration and SentencePiece's; seeded, lossless, exact."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from conftest import MODELS
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.models import all_segmentations, spm
from strategies import korean_text

from koktok import Recipe, Tokenizer, load
from koktok.model.models import BpeModel, UnigramModel
from koktok.model.vocab import Vocab
from koktok.tokenizer import TrainedTokenizer

DRAWS = 6000


def critical(freedom: int) -> float:
    """Chi-square value that chance passes once in a thousand times (Wilson and Hilferty 1931)."""
    return freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


def fits(seen: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> bool:
    """Counts of draws against probabilities; rare cells are pooled."""
    draws = sum(seen.values())
    assert set(seen) <= set(expected)
    cells = [(seen[key], p * draws) for key, p in expected.items() if p * draws >= 5]
    rest = draws - sum(n for n, _ in cells), draws - sum(e for _, e in cells)
    cells += [rest] if rest[1] >= 5 else []
    return sum((n - e) ** 2 / e for n, e in cells) < critical(max(1, len(cells) - 1))


def same(one: Counter[tuple[int, ...]], two: Counter[tuple[int, ...]]) -> bool:
    """Two samples of one distribution (equal numbers of draws)."""
    keys = [key for key in one | two if one[key] + two[key] >= 10]
    return sum((one[key] - two[key]) ** 2 / (one[key] + two[key]) for key in keys) < critical(max(1, len(keys) - 1))


def drawn(draw: Callable[[], Iterable[int]], draws: int = DRAWS) -> Counter[tuple[int, ...]]:
    return Counter(tuple(draw()) for _ in range(draws))


UNIGRAM = Vocab.unigram(
    {
        "학": -4.0,
        "교": -4.5,
        "에": -3.0,
        "서": -3.5,
        "학교": -5.0,
        "에서": -4.0,
        "교에": -6.0,
        "학교에": -8.0,
        " ": -3.0,
    }
)
WORD = " 학교에서é"


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
def test_unigram_samples_follow_the_distribution_and_sentencepieces(alpha: float) -> None:
    model, rng = UnigramModel(UNIGRAM), np.random.default_rng(1)
    mine = drawn(lambda: model.sample(WORD, alpha=alpha, rng=rng)[0])
    scores = all_segmentations(UNIGRAM, WORD)
    total = sum(math.exp(alpha * score) for score in scores.values())
    expected = {ids: math.exp(alpha * score) / total for ids, score in scores.items()}
    assert fits(mine, expected)
    assert not fits(drawn(lambda: model.sample(WORD, alpha=alpha + 0.3, rng=rng)[0]), expected)
    theirs = spm(UNIGRAM)
    sentencepiece.set_random_generator_seed(1)
    other = drawn(lambda: theirs.encode(WORD, enable_sampling=True, alpha=alpha, nbest_size=-1))
    assert same(mine, other)
    assert fits(other, expected)


def test_sampling_from_the_n_best_follows_sentencepieces() -> None:
    model, rng, theirs = UnigramModel(UNIGRAM), np.random.default_rng(2), spm(UNIGRAM)
    sentencepiece.set_random_generator_seed(2)
    mine = drawn(lambda: model.sample(WORD, alpha=0.3, rng=rng, n_best=4)[0])
    other = drawn(lambda: theirs.encode(WORD, enable_sampling=True, alpha=0.3, nbest_size=4))
    assert len(mine) == len(other) == 4
    assert same(mine, other)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocab:
    found = {*draw(st.sets(st.text("가나ㅋ", min_size=2, max_size=4), max_size=12)), *"가나ㅋ"}
    return Vocab.unigram({piece: -draw(st.integers(0, 8)) / 2 for piece in sorted(found)})


@settings(max_examples=200)
@given(vocabularies(), st.text("가나ㅋé", max_size=8), st.integers(1, 12))
def test_n_best_is_the_top_of_all_segmentations(vocab: Vocab, text: str, n: int) -> None:
    model = UnigramModel(vocab)
    found = model.n_best(text, n)
    scores = all_segmentations(vocab, text)
    assert [score for _, score in found] == sorted(scores.values(), reverse=True)[:n]
    assert all(scores[tuple(ids)] == score for (ids, _), score in found)
    assert len({tuple(ids) for (ids, _), _ in found}) == len(found)
    assert found[0][0] == model.encode(text)
    assert [ids for (ids, _), _ in UnigramModel(UNIGRAM).n_best(WORD, 5)] == spm(UNIGRAM).nbest_encode(
        WORD, nbest_size=5
    )


BPE = Vocab.bpe("가나ㅋ", ["가나", "나가", "가나가", "ㅋㅋ", "ㅋㅋㅋ", "ㅋㅋㅋㅋ", "나가나", "가나가나"])


@pytest.mark.parametrize("text", ["가나가나", "ㅋㅋㅋㅋㅋ", "가나가ㅋㅋé"])
@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_bpe_dropout_follows_sentencepieces(text: str, dropout: float) -> None:
    model, rng, theirs = BpeModel(BPE), np.random.default_rng(3), spm(BPE)
    sentencepiece.set_random_generator_seed(3)
    mine = drawn(lambda: model.sample(text, dropout=dropout, rng=rng)[0])
    other = drawn(lambda: theirs.encode(text, enable_sampling=True, alpha=dropout, nbest_size=-1))
    assert same(mine, other)
    assert not same(mine, drawn(lambda: model.sample(text, dropout=dropout + 0.1, rng=rng)[0]))


def test_a_large_alpha_gives_the_best_and_a_long_text_does_not_overflow() -> None:
    model, rng = UnigramModel(UNIGRAM), np.random.default_rng(0)
    assert model.sample(WORD, alpha=1e6, rng=rng) == model.encode(WORD)
    ids, spans = model.sample("학교에서" * 5000, rng=rng)
    assert spans[-1][1] == 20_000
    assert len(ids) == len(spans)


# --- Tokenizer.sample and Tokenizer.n_best ------------------------------------------------------------------------------

Trained = Callable[..., Path]
TEXT = "학교에서는 책을 읽습니다. 나는 집에 갔다."
DROPOUT = ("bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes")
PIECES = {"가": -2.0, "나": -2.5, "가나": -4.0, " ": -1.0, " 가": -3.0, "나가": -4.5}
SMALL = TrainedTokenizer(Recipe().changed(prefix_space=False), Vocab.unigram(PIECES))


def options(kind: str, strength: float) -> dict[str, float]:
    return {"alpha": 1 - strength} if kind == "unigram" else {"dropout": strength}


@pytest.fixture(scope="module", params=["unigram", *DROPOUT])
def tokenizer(request: pytest.FixtureRequest, trained: Trained) -> Tokenizer:
    return load(trained(**MODELS[request.param]))


def test_a_seed_gives_the_same_sample_and_a_generator_continues(tokenizer: Tokenizer) -> None:
    how = options(tokenizer.vocab.kind, 0.5)
    assert tokenizer.sample(TEXT, **how, seed_or_rng=3) == tokenizer.sample(TEXT, **how, seed_or_rng=3)
    rng = np.random.default_rng(3)
    drawn = [tokenizer.sample(TEXT, **how, seed_or_rng=rng) for _ in range(30)]
    assert drawn[0] == tokenizer.sample(TEXT, **how, seed_or_rng=3)
    assert len({tuple(encoding.ids) for encoding in drawn}) > 2
    again = tokenizer.encode(TEXT)  # sampling leaves no trace
    assert again == TrainedTokenizer(tokenizer.recipe, tokenizer.vocab).encode(TEXT)


@given(text=korean_text(), seed=st.integers(0, 9))
def test_every_sample_decodes_to_the_text(tokenizer: Tokenizer, text: str, seed: int) -> None:
    """Law 4, for samples."""
    drawn = tokenizer.sample(text, **options(tokenizer.vocab.kind, 0.4), seed_or_rng=seed)
    assert len(drawn.ids) == len(drawn.pieces) == len(drawn.offsets)
    if tokenizer.lossless:
        assert tokenizer.decode(drawn.ids) == tokenizer.normalize(text)
    elif tokenizer.vocab.unknown_id not in drawn.ids and "##" not in text:
        assert tokenizer.decode(drawn.ids) == tokenizer.decode(tokenizer.encode(text).ids)


def test_no_dropout_gives_encode_and_full_dropout_gives_characters(tokenizer: Tokenizer, mini: list[str]) -> None:
    kind = tokenizer.vocab.kind
    best = {"alpha": 1e6} if kind == "unigram" else {"dropout": 0.0}
    for line in mini[:40]:
        assert tokenizer.sample(line, **best, seed_or_rng=0) == tokenizer.encode(line)
    if kind != "unigram":
        pieces = tokenizer.sample(TEXT, dropout=1.0, seed_or_rng=0).pieces
        assert {len(piece.removeprefix("##")) for piece in pieces} == {1}


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
