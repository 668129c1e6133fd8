"""The sample that stands for all words: what it promises of any counts, and that the options mean the same with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok import Recipe
from koktok.count import Counts, sample
from koktok.count.sample import WHOLE, enough, sampled, weights
from koktok.pipeline.train import train as train_tokenizer
from koktok.segment import Morpheme

NUMBERS = st.lists(st.integers(1, 60), min_size=1, max_size=80).map(lambda n: np.array(n, np.uint64))


@given(NUMBERS, st.integers(1, 90))
def test_a_sample_keeps_the_total_the_frequent_and_no_more_than_was_asked(n: np.ndarray, most: int) -> None:
    found = weights(n, most)
    assert found.sum() == n.sum()
    assert min(most, len(n)) * 0.98 - 1 <= np.count_nonzero(found) <= most
    if len(n) <= most:
        assert found.tolist() == n.tolist()
        return
    assert (found[found > 0] >= n[found > 0]).all(), "a word stands for itself at least"
    thinned = n[found != n]
    least = int(thinned.max())  # no word that comes oftener than one that was thinned is touched
    assert (found[n > least] == n[n > least]).all()


def test_sums_over_words_are_right_on_average() -> None:
    """Of 40 stems with 50 rare words each, every stem keeps its weight to within two words' worth."""
    chance = np.random.default_rng(1)
    n = chance.integers(1, 4, 2000).astype(np.uint64)
    found = weights(n, 700)
    step = n.sum() / 700
    assert np.abs(found.reshape(40, 50).sum(axis=1) - n.reshape(40, 50).sum(axis=1).astype(float)).max() < 2.5 * step
    # Periodic words are no trap: of four forms of each stem none is always left out.
    forms = weights(np.ones(4000, np.uint64), 1000).reshape(-1, 4).sum(axis=0)
    assert forms.min() > 100


def test_more_text_keeps_more_words_and_nothing_jumps() -> None:
    sizes = [enough(n) for n in range(WHOLE - 50, WHOLE + 50)]
    assert sizes == sorted(sizes)
    assert np.diff(sizes).max() <= 1
    n = np.array([1] * 900 + [2] * 300 + [9] * 100, np.uint64)
    assert np.count_nonzero(weights(n, 1299) != n) <= 8, "one word less is no other sample"


def test_samples_are_counts_with_their_own_occurrences(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts.from_mapping({f"w{i:03}": 1 + (i % 10 == 0) * i for i in range(300)})
    counts.documents = counts.n.copy()
    some = sampled(counts, 100)
    every = counts.as_dict()
    assert some.seen is not None
    assert dict(zip(some.words, some.seen.tolist(), strict=True)).items() <= every.items()
    assert some.total == counts.total
    assert some.documents is not None
    assert (some.documents == some.n).all(), "documents are thinned as words are"
    assert sampled(counts, 300) is counts
    assert sampled(counts, 100) == some, "no chance but the words"
    monkeypatch.setattr(sample, "WHOLE", 4)
    assert enough(9) == math.isqrt(36)


STEMS, ENDINGS, VOCABULARY = 4000, 60, 1000


@cache
def zipf_text(words: int) -> tuple[list[str], dict[str, int]]:
    """Stems and endings drawn by Zipf's law: the lines, and where each word is cut."""
    chance = np.random.default_rng(3)
    letters = [chr(i) for i in range(0xAC00, 0xAC00 + 28 * 400, 28)]

    def drawn(n: int, longest: int, among: list[str]) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < n:
            found["".join(chance.choice(among, int(chance.integers(1, longest + 1))))] = None
        return list(found)

    stems, endings = drawn(STEMS, 3, letters[:300]), drawn(ENDINGS, 2, letters[300:])
    picks = [
        chance.choice(n, words, p=1 / np.arange(1, n + 1) / sum(1 / np.arange(1, n + 1))) for n in (STEMS, ENDINGS)
    ]
    pairs = [(stems[a], endings[b]) for a, b in zip(*picks, strict=True)]
    spelled = [a + b for a, b in pairs]
    return [" ".join(spelled[i : i + 10]) for i in range(0, words, 10)], {a + b: len(a) for a, b in pairs}


class Known:
    """A segmenter that was told where every word is cut."""

    def __init__(self, cut: dict[str, int]) -> None:
        self.cut = cut

    def signature(self) -> str:
        return "known"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        for word in words:
            at = self.cut.get(word, 0)
            ends = ((0, at, "NNG"), (at, len(word), "JKB"))
            yield tuple(Morpheme(a, b, tag, word[a:b]) for a, b, tag in ends) if at else ()


def figures(lines: list[str], cut: dict[str, int], held: list[str], **train: Any) -> tuple[float, float, int]:
    """Tokens per word and boundary F1 on held-out lines, and words trained on; the road and its defaults."""
    recipe = Recipe().changed(
        holdout=0.0, train={"vocab_size": VOCABULARY, "required": "none", **train}, segment={"segmenter": "mecab"}
    )
    made = train_tokenizer(lines, recipe, cache=False)
    tokens = words = hits = found = 0
    for line in held:
        encoding = made.tokenizer.encode(line)
        borders = {begin for begin, _ in encoding.offsets}
        at, tokens = 0, tokens + len(encoding.ids)
        for word in line.split():
            words += 1
            hits += at + cut[word] in borders
            found += sum(at < border < at + len(word) for border in borders)
            at += len(word) + 1
    return tokens / words, 2 * hits / (found + words), len(made.segmented)


@pytest.mark.parametrize("preset", ["short", "lm", "aligned"])
def test_the_dials_mean_the_same_on_both_sides_of_every_threshold(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything kept and the default give the same tokens within .5 % and the same boundary F1 within .01."""
    lines, cut = zipf_text(40_000)
    held, lines = lines[-300:], lines[:-300]
    monkeypatch.setattr("koktok.pipeline.train.in_subprocess", lambda *_, **__: Known(cut))
    tokens, f1, words = figures(lines, cut, held, preset=preset, min_count=1)
    for whole in (words - 1, words // 3):
        monkeypatch.setattr(sample, "WHOLE", whole)
        fewer = figures(lines, cut, held, preset=preset)
        assert fewer[2] == pytest.approx(min(words, math.isqrt(words * whole)), rel=0.02)
        assert fewer[0] == pytest.approx(tokens, rel=0.005)
        assert fewer[1] == pytest.approx(f1, abs=0.01)
    less = figures(lines, cut, held, preset=preset, min_count=2)
    told = "the test can tell: without the words that came once the result drifts"
    if preset == "short":
        assert less[1] < f1 - 0.01, told
    elif preset == "lm":  # borders are what it asks for, so it pays in tokens; `aligned` never sells cuts
        assert abs(less[0] / tokens - 1) > 0.005, told
