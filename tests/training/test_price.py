"""What a piece costs in bits: laws of the contrast, and the parts that it is made with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.segment.segmented import SegmentedCounts
from koktok.training import price as priced
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.price import common_cuts, prices_in_bits

WORDS = 1000.0


@pytest.fixture
def contrast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contrast alone, and all of it."""
    monkeypatch.setattr(priced, "RARITY", 0.0)
    monkeypatch.setattr(priced, "CONTRAST", 1.0)
    monkeypatch.setattr(priced, "ACROSS", 1.0)


@pytest.mark.parametrize("piece", ["가 다", "가다"])
@pytest.mark.usefixtures("contrast")
def test_the_contrast_is_between_one_token_and_one_a_part(piece):
    parts = ("가", piece[1:])
    for n, both, wanted in ((100.0, 10.0, 2.0), (10.0, 10.0, 1.0)):  # by chance; always together
        found = prices_in_bits((*parts, piece), np.asarray([n, n, both]), np.asarray([0, 0, 1]), WORDS)
        assert found.tolist() == pytest.approx([1.0, 1.0, wanted])
    never_less = prices_in_bits((*parts, piece), np.asarray([9.0, 9.0, 100.0]), np.asarray([0, 0, 1]), WORDS)
    assert never_less[2] == 1.0
    alone = prices_in_bits(("가", piece), np.asarray([9.0, 9.0]), np.asarray([0, 1]), WORDS)
    assert alone[1] == 1.0, "a part that is no candidate is as rare as the piece"


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=2), st.floats(0.01, 1), st.sampled_from(["가 다", "가다"]))
def test_a_price_falls_as_the_parts_belong_together(n, share, piece):
    together = share * min(n)
    often, seldom = (
        prices_in_bits(("가", piece[1:], piece), np.asarray([*n, times]), np.asarray([0, 0, 1]), WORDS)[2]
        for times in (together, together / 2)
    )
    assert 0 < often <= seldom


@given(st.lists(st.floats(1, 500), min_size=2, max_size=8))
def test_a_rare_piece_costs_no_less_than_a_frequent_one(n):
    pieces = [chr(ord("가") + i) for i in range(len(n))]
    found = prices_in_bits(pieces, np.asarray(n), np.zeros(len(n), np.int64), WORDS)
    order = np.argsort(n)
    assert (np.diff(found[order]) <= 1e-12).all()


def test_the_parts_of_a_piece_are_those_of_most_of_its_places():
    counts = SegmentedCounts.from_marked({" 학교|에서": 5, " 학|교": 2, " 교|에|서": 1, " 가을 학교|에": 1})
    found = mine(counts, CandidatePolicy(min_count=1, aligned=False, coverage=1.0))
    cut = np.zeros(int(found.lattice.node[-1]), bool)
    cut[np.repeat(found.lattice.node[:-1], np.diff(counts.start)) + counts.offset] = True
    cuts = dict(zip(found.pieces, common_cuts(found.lattice, cut, len(found.pieces)).tolist(), strict=True))
    assert cuts[" 학교에서"] == 0b100
    assert cuts["교에"] == 0b1
    assert cuts["에서"] == 0
    assert cuts["학교"] == 0
