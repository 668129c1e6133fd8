"""Text grown by Heaps' law has the size and the number of words that were wanted, and the same bytes each time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from eval.heaps import Heaps
from koktok.count import words_of


def lines() -> list[str]:
    chance = np.random.default_rng(0)
    stems = ["".join(chance.choice(list("가나다라마바사아자차카타파하"), 3)) for _ in range(900)]
    picks = chance.zipf(1.4, (3000, 8)) % 900
    return [" ".join(stems[i] + "은는이가를에"[j % 6] for j, i in enumerate(row)) for row in picks]


def test_text_beyond_its_end_has_new_words_by_the_law() -> None:
    base = lines()
    size = sum(len(line.encode()) + 1 for line in base)
    text = Heaps(base, power=0.6)
    assert b"".join(text.grown(size)).decode().splitlines() == base, "the text itself comes first"
    grown = b"".join(text.grown(8 * size))
    assert 7.9 * size < len(grown) <= 8 * size
    assert grown == b"".join(Heaps(base, power=0.6).grown(8 * size))
    n = Counter(word for line in grown.decode().splitlines() for word in words_of(line))
    assert len(n) == pytest.approx(text.distinct * 8**0.6, rel=0.05)
    known = {word for line in base for word in words_of(line)}
    new = [times for word, times in n.items() if word not in known]
    assert np.mean(np.array(new) == 1) > 0.5


def test_the_law_is_fitted_to_the_text() -> None:
    assert 0.2 < Heaps(lines()).power < 0.9
