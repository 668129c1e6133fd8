"""The n-gram model of eval against one of dictionaries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.kneser_ney import FORMULA, kneser_ney


def slow_kneser_ney(train: list[list[int]], test: list[list[int]], size: int) -> list[float]:
    """Bigrams, with dictionaries."""
    begin, end = size + 1, size
    pairs = Counter(pair for line in train for pair in zip([begin, *line], [*line, end], strict=True))
    before = Counter(word for _, word in pairs)  # distinct left neighbours

    def discount(counts: Counter[object]) -> float:
        ones, twos = (sum(n == k for n in counts.values()) for k in (1, 2))
        return ones / (ones + 2 * twos) if ones else 0.5

    low, high = discount(before), discount(pairs)  # type: ignore[arg-type]
    after: defaultdict[int, list[int]] = defaultdict(list)
    for (left, _), n in pairs.items():
        after[left].append(n)
    found = []
    for line in test:
        total = 0.0
        for left, word in zip([begin, *line], [*line, end], strict=True):
            p = 1 / (size + 1)
            p = (max(before[word] - low, 0) + low * len(before) * p) / sum(before.values())
            if left in after:
                p = (max(pairs[left, word] - high, 0) + high * len(after[left]) * p) / sum(after[left])
            total -= math.log2(p)
        found.append(total)
    return found


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4),
)
def test_kneser_ney_equals_dictionaries(train: list[list[int]], test: list[list[int]]) -> None:
    bits = kneser_ney(train, test, order=2, size=6)
    assert [float(b.sum()) for b in bits] == pytest.approx(slow_kneser_ney(train, test, 6))


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_kneser_ney_is_a_distribution(order: int) -> None:
    train = [[0, 1, 2, 0, 1], [2, 2, 0], [1]]
    for prefix in ([], [0], [0, 1], [2, 1, 0]):
        tails = [[*prefix, word] for word in range(4)]
        seen = kneser_ney(train, tails, order=order, size=4)
        p = [2 ** -float(bits[len(prefix)]) for bits in seen]
        stop = 2 ** -float(kneser_ney(train, [prefix], order=order, size=4)[0][-1])
        assert sum(p) + stop == pytest.approx(1)


def test_kept_rows_are_of_this_formula() -> None:
    bits = kneser_ney([[0, 1, 2, 0, 1], [2, 2, 0], [1]], [[0, 1], [2, 3, 0]], order=3, size=4)
    assert (FORMULA, [round(float(line.sum()), 6) for line in bits]) == (1, [3.497201, 12.006767]), "raise FORMULA"
