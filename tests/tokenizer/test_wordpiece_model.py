"""The WordPiece model: the longest match is Hugging Face's, and MaxMatch-dropout."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as hf_models

from koktok.errors import ArtifactError, UsageError
from koktok.tokenizer.models import WordPieceModel, model_for
from koktok.vocab import BYTE_CHARS, Vocab, spell

SPECIALS = ("[PAD]", "[UNK]")


def hf(vocab: Vocab, text: str, max_chars: int = 100) -> list[tuple[int, tuple[int, int]]]:
    table = {token: i for i, token in enumerate(vocab.tokens)}
    tokenizer = Tokenizer(hf_models.WordPiece(table, unk_token="[UNK]", max_input_chars_per_word=max_chars))
    encoding = tokenizer.encode(text)
    return list(zip(encoding.ids, encoding.offsets, strict=True))


@st.composite
def vocabularies(draw: st.DrawFn, alphabet: str) -> Vocab:
    heads = draw(st.sets(st.text(alphabet, min_size=1, max_size=4), max_size=12))
    tails = draw(st.sets(st.text(alphabet, min_size=1, max_size=4), max_size=12))
    pieces = sorted(heads | {"##" + tail for tail in tails})
    return Vocab.plain("wordpiece", pieces, specials=SPECIALS)


@settings(max_examples=500)
@given(st.data(), st.sampled_from(["가나", "가나다#", "ㅋ", "a#"]))
def test_equals_hugging_face(data: st.DataObject, alphabet: str) -> None:
    vocab = data.draw(vocabularies(alphabet))
    word = data.draw(st.text(alphabet, max_size=15))
    ids, spans = WordPieceModel(vocab).encode(word)
    assert list(zip(ids, spans, strict=True)) == hf(vocab, word)


@settings(max_examples=300)
@given(st.data(), st.text("가나다", min_size=1, max_size=12), st.integers(0, 3))
def test_spans_cover_the_word_but_not_the_spaces_before_it(data: st.DataObject, word: str, spaces: int) -> None:
    vocab = data.draw(vocabularies("가나다"))
    ids, spans = WordPieceModel(vocab).encode(" " * spaces + word)
    assert spans[0][0] == spaces
    assert spans[-1][1] == spaces + len(word)
    assert all(one[1] == two[0] for one, two in pairwise(spans))
    if ids != [vocab.unknown_id]:
        assert "".join(vocab.tokens[i].removeprefix("##") for i in ids) == word


GOLDEN = Vocab.plain(
    "wordpiece", ["학교", "학", "에", "##교", "##에서", "##에", "##서는", "#", "##", "###", "##가"], specials=SPECIALS
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("학교", ["학교"]),
        (" 학교에서", ["학교", "##에서"]),
        ("학교에서는", ["[UNK]"]),  # greedy takes 에서 and is left with 는: unknown, though 에 + 서는 would do
        ("학교에에서", ["학교", "##에", "##에서"]),
        ("학학", ["[UNK]"]),
        ("교", ["[UNK]"]),
        ("", []),
        ("  ", []),
        ("##가", ["##가"]),  # as in Hugging Face: a word that spells a continued piece is that piece
        ("#가", ["#", "##가"]),
        ("에" * 100, ["에", *["##에"] * 99]),
        ("에" * 101, ["[UNK]"]),
    ],
)
def test_golden(text: str, expected: list[str]) -> None:
    model = WordPieceModel(GOLDEN)
    ids, _ = model.encode(text)
    assert [GOLDEN.tokens[i] for i in ids] == expected
    assert ids == [i for i, _ in hf(GOLDEN, text.strip(" "))]


def test_the_length_limit_is_hugging_faces_and_can_be_moved() -> None:
    assert WordPieceModel(GOLDEN, max_chars=2).encode("학교에")[0] == [i for i, _ in hf(GOLDEN, "학교에", 2)]
    assert WordPieceModel(GOLDEN, max_chars=200).encode("에" * 101)[0] == [i for i, _ in hf(GOLDEN, "에" * 101, 200)]


def test_special_tokens_are_not_reached_by_text() -> None:
    """Such text is cut behind its first character, so that Hugging Face finds no special token in its own table."""
    vocab = Vocab.plain("wordpiece", ["[", "P", "##A", "##D", "##]", "##P"], specials=SPECIALS)
    ids, spans = WordPieceModel(vocab).encode(" [PAD]")
    assert [vocab.tokens[i] for i in ids] == ["[", "P", "##A", "##D", "##]"]
    assert spans == [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]


@settings(max_examples=200)
@given(st.data(), st.text("가a é😀", max_size=8))
def test_bytes_are_never_unknown_and_equal_hugging_face(data: st.DataObject, text: str) -> None:
    found = data.draw(st.sets(st.text(spell("가a é"), min_size=2, max_size=4), max_size=8))
    pieces = sorted({*BYTE_CHARS, *("##" + char for char in BYTE_CHARS), *found, *("##" + piece for piece in found)})
    vocab = Vocab.plain("wordpiece-bytes", pieces, specials=SPECIALS)
    model = model_for(vocab)
    assert isinstance(model, WordPieceModel)
    ids, spans = model.encode(text)
    table = {token: i for i, token in enumerate(vocab.tokens)}
    tokenizer = Tokenizer(hf_models.WordPiece(table, unk_token="[UNK]", max_input_chars_per_word=10**6))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoding = tokenizer.encode(text)
    assert (ids, spans) == (encoding.ids, encoding.offsets)
    assert vocab.unknown_id not in ids


def test_dropout_follows_its_probabilities() -> None:
    vocab = Vocab.plain("wordpiece", ["가나다", "가나", "가", "##나다", "##나", "##다"], specials=SPECIALS)
    model = WordPieceModel(vocab)
    rng = np.random.default_rng(7)
    seen = Counter(
        tuple(vocab.tokens[i] for i in model.sample("가나다", dropout=0.25, rng=rng)[0]) for _ in range(4000)
    )
    expected = {
        ("가나다",): 0.75,
        ("가나", "##다"): 0.25 * 0.75,
        ("가", "##나다"): 0.25 * 0.25 * 0.75,
        ("가", "##나", "##다"): 0.25 * 0.25 * 0.25,
    }
    chi2 = sum((seen[key] - 4000 * p) ** 2 / (4000 * p) for key, p in expected.items())
    assert chi2 < 11.34  # 3 degrees of freedom, 1 %
    assert sum(seen.values()) == sum(seen[key] for key in expected)


@given(st.text("가나다", max_size=12), st.integers(0, 9))
def test_dropout_has_ends_and_a_seed(word: str, seed: int) -> None:
    pieces = sorted({*"가나다", *("##" + char for char in "가나다"), "가나", "##가나"})
    model = WordPieceModel(Vocab.plain("wordpiece", pieces, specials=SPECIALS))
    assert model.sample(word, dropout=0.0, rng=np.random.default_rng(seed)) == model.encode(word)
    assert model.sample(word, dropout=1.0, rng=np.random.default_rng(seed))[1] == [(i, i + 1) for i in range(len(word))]
    first = model.sample(word, dropout=0.5, rng=np.random.default_rng(seed))
    assert first == model.sample(word, dropout=0.5, rng=np.random.default_rng(seed))


def test_errors() -> None:
    for wrong in (-0.1, 1.5):
        with pytest.raises(UsageError, match=f"dropout = {wrong}; wanted a probability from 0 to 1"):
            WordPieceModel(GOLDEN).sample("가", dropout=wrong, rng=np.random.default_rng(0))
    with pytest.raises(ArtifactError, match=r"a wordpiece vocabulary wants one of the special tokens \[UNK\], <unk>"):
        Vocab.plain("wordpiece", ["가"])
