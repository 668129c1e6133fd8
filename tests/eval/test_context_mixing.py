"""The context-mixing model on a source whose entropy is known."""

from __future__ import annotations

import numpy as np
import pytest

from eval.context_mixing import FORMULA, class_tree, context_mixing


def test_bits_are_those_of_the_source_and_always_the_same() -> None:
    """A chain of order 1 over eight tokens, in lines of fifty: its entropy, and the certain end of a line, within 4 %."""
    draws = np.random.default_rng(0)
    chain = draws.dirichlet(np.full(8, 0.3), size=8)

    def lines(count: int) -> list[np.ndarray]:
        found = []
        for _ in range(count):
            state, line = 0, []
            for _ in range(50):
                state = int(draws.choice(8, p=chain[state]))
                line.append(state)
            found.append(np.array(line))
        return found

    train, test = lines(600), lines(100)
    letters = list("가나다라마바사아")
    bits = context_mixing(train, test, letters, slots=1 << 14)
    true = [-np.log2([chain[a, b] for a, b in zip([0, *line[:-1]], line, strict=True)]).sum() for line in test]
    assert len(bits) == len(test)
    # Where a line ends is 1 in 50 to the model: 50 · H(1/50) bits of a line are for that.
    end = 51 * (-(1 / 51) * np.log2(1 / 51) - (50 / 51) * np.log2(50 / 51))
    assert sum(bits) == pytest.approx(sum(true) + end * len(test), rel=0.04)
    assert sum(bits) > sum(true)
    assert context_mixing(train, test, letters, slots=1 << 14) == bits
    assert (FORMULA, round(sum(bits))) == (1, 11059), "raise FORMULA: kept rows are of this one"


def test_the_tree_gives_every_token_a_code_of_its_own() -> None:
    ids = np.random.default_rng(1).zipf(1.3, 20_000) % 500
    code, depth = class_tree(ids.astype(np.int64), 500)
    words = {format(c, "b").zfill(d) if d else "" for c, d in zip(code.tolist(), depth.tolist(), strict=True)}
    assert len(words) == 500
    assert not any(a != b and b.startswith(a) for a in words for b in words)
    assert sum(2.0**-d for d in depth) == pytest.approx(1)
