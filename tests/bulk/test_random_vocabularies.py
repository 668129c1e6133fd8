"""Bulk gives the ids of `encode` with vocabularies that no trainer made."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_vocabularies import SPACED, case, differences, lost, plane_behind_spaces

from koktok import Recipe
from koktok.model.vocab import Vocab, spell
from koktok.tokenizer import TrainedTokenizer


@given(seed=st.integers(0, 1 << 32))
def test_ids_are_those_of_encode_and_give_the_text_back(seed: int) -> None:
    tokenizer, texts, options = case(str(seed))
    assert not differences(tokenizer, texts, **options)
    assert not lost(tokenizer, texts)


@pytest.mark.parametrize("seed", ["12", "14"])
def test_characters_of_the_first_plane_behind_spaces(seed: str) -> None:
    tokenizer, texts = plane_behind_spaces(seed)
    assert not differences(tokenizer, random.Random(seed).sample(texts, 10_000))


@pytest.mark.parametrize("prefix", [False, True])
def test_a_space_before_may_take_the_space(prefix: bool) -> None:
    """Two spaces are joined before the second one takes the bytes of a dash."""
    dash = spell(" —")
    vocab = Vocab.bpe_bytes(["ĠĠ", dash[:2], dash[:3], dash])
    tokenizer = TrainedTokenizer(Recipe().changed(model="bpe-bytes", prefix_space=prefix), vocab)
    texts = [
        f"{before}{spaces}{char}" for before in ("", "가", "\n") for spaces in SPACED for char in ("—", "—a", "가")
    ]
    assert not differences(tokenizer, texts)
