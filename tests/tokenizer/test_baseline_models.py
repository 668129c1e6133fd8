"""The models of simple tokenizers."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.tokenizer.models import LongestMatchModel, WordModel, model_for
from koktok.vocab import Vocab

MORPHEMES = Vocab.plain("morpheme", [*"학교에서는 ", "학교", " 학교", "에서", "에서는"], specials=["</s>"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 학교에서는", [" 학교", "에서는"]),
        ("학교에서", ["학교", "에서"]),
        ("교에", ["교", "에"]),
        ("</s>", ["<0x3C>", "<0x2F>", "<0x73>", "<0x3E>"]),
        ("é학", ["<0xC3>", "<0xA9>", "학"]),
        ("", []),
    ],
)
def test_longest_match(text: str, expected: list[str]) -> None:
    ids, _ = model_for(MORPHEMES).encode(text)
    assert [MORPHEMES.tokens[i] for i in ids] == expected


@given(st.text("학교에서는 é😀<0xA>", max_size=20), st.sampled_from(["morpheme", "syllable", "jamo", "ngram"]))
def test_spans_cover_the_pretoken_and_ids_spell_it(text: str, kind: str) -> None:
    vocab = Vocab.plain(kind, MORPHEMES.pieces)  # type: ignore[arg-type]
    model = model_for(vocab)
    assert isinstance(model, LongestMatchModel)
    assert model.lossless
    ids, spans = model.encode(text)
    assert len(ids) == len(spans)
    distinct = list(dict.fromkeys(spans))
    assert "".join(text[a:b] for a, b in distinct) == text
    assert all(one[1] == two[0] for one, two in pairwise(distinct))
    assert b"".join(bytes([i]) if i < 256 else vocab.tokens[i].encode() for i in ids).decode() == text


def test_words_are_known_or_unknown() -> None:
    vocab = Vocab.plain("word", [" 집", "집"], specials=["<pad>", "<unk>"])
    model = model_for(vocab)
    assert isinstance(model, WordModel)
    assert not model.lossless
    assert model.encode(" 집") == ([0], [(0, 2)])
    assert model.encode("집") == ([1], [(0, 1)])
    assert model.encode(" 집에") == ([vocab.id_of("<unk>")], [(0, 3)])
    assert model.encode("<pad>") == ([vocab.id_of("<unk>")] * 2, [(0, 1), (1, 5)])  # never the special token
    assert model.encode("") == ([], [])
