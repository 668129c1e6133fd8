"""The sample that stands for all words: what it promises of any counts, and that the options mean the same with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import sample_above
from hypothesis import given
from hypothesis import strategies as st

from koktok import Recipe
from koktok.count import Counts, sample
from koktok.count.sample import WHOLE, drawn_from, enough, sampled
from koktok.pipeline.train import train as train_tokenizer
from koktok.segment import Morpheme

tables = st.dictionaries(st.text("가나다는 a", min_size=1, max_size=4), st.integers(1, 60), min_size=12, max_size=80)
some = st.integers(1, 24)
"""Sizes of samples; most are smaller than the tables."""


@given(tables, some, st.data())
def test_a_sample_is_the_same_from_any_tables_in_any_order(n: dict[str, int], most: int, data: st.DataObject) -> None:
    """Laws 5 and 8; and a smaller one is a part of a larger one."""
    counts = Counts.from_mapping(n)
    found = sampled(counts, most)
    rows = data.draw(st.permutations(list(n)))
    size = data.draw(st.integers(1, len(rows)))
    tables = [Counts.from_mapping({word: n[word] for word in rows[i : i + size]}) for i in range(0, len(rows), size)]
    drawn = drawn_from([table.frame for table in tables], most + data.draw(st.integers(0, 9)))
    assert drawn.counts(most) == found
    assert (drawn.words, drawn.total) == (len(n), sum(n.values()))
    assert {*sampled(counts, max(1, most - 1)).words} <= {*found.words}
    whole = data.draw(st.integers(1, 90))
    drawn = drawn_from([table.frame for table in tables], most, whole)
    assert drawn.counts() == (counts if len(n) <= whole else found)


@given(tables, some)
def test_a_sample_keeps_the_total_and_the_frequent_words(n: dict[str, int], most: int) -> None:
    counts = Counts.from_mapping(n)
    found = sampled(counts, most)
    assert len(found) == min(most, len(n))
    if found.seen is None:
        assert found == counts
        return
    assert dict(zip(found.words, found.seen.tolist(), strict=True)).items() <= n.items()
    least = np.sort(sample._priorities(counts.frame))[-most - 1]
    frequent = {word: times for word, times in n.items() if times >= least}
    assert frequent.items() <= dict(found.items()).items()
    if len(frequent) < most:
        assert found.total == counts.total


def test_the_hash_of_a_word_is_that_of_every_machine() -> None:
    """FNV-1a, and the end of MurmurHash3, in whole numbers of Python."""

    def plain(word: str) -> int:
        key = 0xCBF29CE484222325
        for byte in word.encode():
            key = (key ^ byte) * 0x100000001B3 % 2**64
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            key = (key ^ key >> 33) * factor % 2**64
        return key ^ key >> 33

    words = ["", "a", " 집에서", "\0", "한국어 토크나이저는 " * 9]
    assert sample._hashes_of(Counts.from_mapping(dict.fromkeys(words, 1)).frame).tolist() == list(
        map(plain, sorted(words))
    )


def test_sums_over_words_are_right_on_average() -> None:
    """Of 40 stems with 50 rare words each, the sums of the sample differ from those of all words as chance has it."""
    chance = np.random.default_rng(1)
    n = {f" {chr(0xAC00 + 28 * i)}{j}": int(chance.integers(1, 4)) for i in range(40) for j in range(50)}
    found = sampled(Counts.from_mapping(n), 700)
    of_stem, of_sample = Counter[str](), Counter[str]()
    for into, words in ((of_stem, n.items()), (of_sample, found.items())):
        for word, times in words:
            into[word[:2]] += times
    step = sum(n.values()) / 700
    off = np.array([of_sample[stem] - of_stem[stem] for stem in of_stem]) / step
    assert abs(off.mean()) < 1e-9
    assert 2 < np.sqrt(np.mean(off**2)) < 4.5  # some 17 words are drawn of a stem's 50, each with a chance of a third
    # Forms of one stem differ in their last characters, and none is left out.
    forms = Counter(
        word[-1]
        for word in sampled(Counts.from_mapping({f"{i}{c}": 1 for i in range(1000) for c in "은는이가"}), 1000).words
    )
    assert min(forms.values()) > 200


def test_more_text_keeps_more_words_and_nothing_jumps() -> None:
    sizes = [enough(n) for n in range(WHOLE - 50, WHOLE + 50)]
    assert sizes == sorted(sizes)
    assert np.diff(sizes).max() <= 1
    n = {f"{i}": 1 + (i % 13 > 8) + 7 * (i % 13 > 11) for i in range(1300)}
    counts = sampled(Counts.from_mapping(n), 1299)
    assert np.count_nonzero(counts.n != counts.seen) <= 8, "one word less is no other sample"


def test_larger_vocabularies_see_more_words_and_the_sample_ends_growing() -> None:
    ids = (0, 8_000, 32_000, 64_000, 128_000, 200_000)
    sizes = [enough(2_000_000, size) for size in ids]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[2] < sizes[3] < sizes[4] < sizes[5]
    assert enough(500_000, 128_000) == 500_000
    assert enough(10**9, 32_000) == enough(10**8, 32_000) < 2_000_000


def test_documents_are_thinned_as_occurrences_are(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts.from_mapping({f"w{i:03}": 1 + (i % 10 == 0) * i for i in range(300)})
    counts.documents = counts.n.copy()
    some = sampled(counts, 100)
    assert (some.documents == some.n).all()
    assert sampled(counts, 300) is counts
    sample_above(monkeypatch, 4)
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
        sample_above(monkeypatch, whole)
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
