"""Subword regularization: n-best lists and samplers against enumeration and against SentencePiece's sampler."""

import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.models import all_segmentations, spm

from koktok.errors import UsageError
from koktok.tokenizer.models import BpeModel, UnigramModel
from koktok.vocab import Vocab

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


def test_n_best_scores_equal_sentencepieces() -> None:
    theirs = spm(UNIGRAM).nbest_encode(WORD, nbest_size=5)
    assert [ids for (ids, _), _ in UnigramModel(UNIGRAM).n_best(WORD, 5)] == theirs


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


@pytest.mark.parametrize("model", [BpeModel(BPE), BpeModel(Vocab.bpe_bytes(["ê°", "ê°Ģ"]))])
def test_dropout_has_ends_and_a_seed(model: BpeModel) -> None:
    text = "가나가ㅋㅋㅋé"
    assert model.sample(text, dropout=0.0, rng=np.random.default_rng(0)) == model.encode(text)
    bare, _ = model.sample(text, dropout=1.0, rng=np.random.default_rng(0))
    assert all(len(model.vocab.tokens[i]) == 1 or i < 256 for i in bare)
    one, two = (model.sample(text, dropout=0.5, rng=np.random.default_rng(5)) for _ in range(2))
    assert one == two


@settings(max_examples=100)
@given(st.text("가나ㅋé", max_size=12), st.integers(0, 99))
def test_every_sample_covers_the_pretoken(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _, spans in (
        BpeModel(BPE).sample(text, dropout=0.5, rng=rng),
        UnigramModel(Vocab.unigram(dict.fromkeys(BPE.pieces, -1.0))).sample(text, alpha=0.1, rng=rng),
    ):
        assert "".join(text[a:b] for a, b in dict.fromkeys(spans)) == text


def test_a_seed_gives_the_same_unigram_samples() -> None:
    model = UnigramModel(UNIGRAM)
    one, two = ([model.sample(WORD, rng=rng) for _ in range(50)] for rng in map(np.random.default_rng, (9, 9)))
    assert one == two
    assert len({tuple(ids) for ids, _ in one}) > 1


def test_a_large_alpha_gives_the_best_and_a_long_text_does_not_overflow() -> None:
    model, rng = UnigramModel(UNIGRAM), np.random.default_rng(0)
    assert model.sample(WORD, alpha=1e6, rng=rng) == model.encode(WORD)
    ids, spans = model.sample("학교에서" * 5000, rng=rng)
    assert spans[-1][1] == 20_000
    assert len(ids) == len(spans)


def test_errors() -> None:
    rng, model = np.random.default_rng(0), UnigramModel(UNIGRAM)
    for alpha in (-1.0, math.nan, math.inf):
        with pytest.raises(UsageError, match=f"alpha = {alpha}; wanted a number from 0 to "):
            model.sample("가", alpha=alpha, rng=rng)
    with pytest.raises(UsageError, match="n = 0; wanted at least 1"):
        model.n_best("가", 0)
    with pytest.raises(UsageError, match="n = 0; wanted at least 1"):
        model.sample("가", rng=rng, n_best=0)
    with pytest.raises(UsageError, match="dropout = 2; wanted a probability from 0 to 1"):
        BpeModel(BPE).sample("가", dropout=2, rng=rng)
