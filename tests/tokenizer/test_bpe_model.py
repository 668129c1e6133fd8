"""The BPE models: joins by the rank of the joined piece, equal to Hugging Face, SentencePiece and tiktoken's rule."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.models import joined, spm
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as hf_models

from koktok.errors import UsageError
from koktok.tokenizer.models import BpeModel, model_for
from koktok.vocab import BYTE_CHARS, Vocab, splits


def hf_ids(vocab: Vocab, text: str, merges: list[tuple[str, str]] | None = None) -> list[int]:
    table = {piece: i for i, piece in enumerate(vocab.tokens)}
    model = hf_models.BPE(table, splits(vocab.pieces) if merges is None else merges, byte_fallback=vocab.byte_fallback)
    return [token.id for token in model.tokenize(text)]


@st.composite
def vocabularies(draw: st.DrawFn, alphabet: str = "ㅋ가나", unreachable: bool = True) -> Vocab:
    """Pieces in any order: many that only some order of joins can reach, as after an import or a selection."""
    pieces = sorted(draw(st.sets(st.text(alphabet, min_size=2, max_size=6), max_size=25)))
    return Vocab.bpe(alphabet, draw(st.permutations(pieces)))


texts = st.text("ㅋ가나", max_size=40) | st.text("ㅋ가나é😀", max_size=20) | st.integers(1, 60).map(lambda n: "ㅋ" * n)


@settings(max_examples=400, deadline=None)
@given(vocabularies(), texts)
def test_ids_equal_hugging_face_and_sentencepiece(vocab: Vocab, text: str) -> None:
    ids, _ = BpeModel(vocab).encode(text)
    assert ids == hf_ids(vocab, text)
    assert ids == spm(vocab).encode(text)


@settings(max_examples=300, deadline=None)
@given(vocabularies(), texts, st.randoms(use_true_random=False))
def test_the_order_of_the_splits_of_one_piece_does_not_matter(vocab: Vocab, text: str, rng: random.Random) -> None:
    merges = splits(vocab.pieces)
    rng.shuffle(merges)
    merges.sort(key=lambda pair: vocab.ids[pair[0] + pair[1]])  # stable: shuffled inside a rank
    assert hf_ids(vocab, text, merges) == BpeModel(vocab).encode(text)[0]


@settings(max_examples=300, deadline=None)
@given(vocabularies(), texts)
def test_equal_to_the_obvious_loop_and_spans_cover_the_pretoken(vocab: Vocab, text: str) -> None:
    ids, spans = BpeModel(vocab).encode(text)
    distinct = list(dict.fromkeys(spans))
    assert [text[a:b] for a, b in distinct] == joined(vocab, text)
    assert all(one[1] == two[0] for one, two in pairwise(distinct))
    assert all(i < 256 or vocab.tokens[i] == text[a:b] for i, (a, b) in zip(ids, spans, strict=True))


@pytest.mark.parametrize(
    ("merged", "text", "expected"),
    [
        (["ㅋㅋ"], "ㅋㅋㅋ", ["ㅋㅋ", "ㅋ"]),  # leftmost first
        (["ㅋㅋ", "ㅋㅋㅋㅋ"], "ㅋㅋㅋㅋㅋㅋㅋ", ["ㅋㅋㅋㅋ", "ㅋㅋ", "ㅋ"]),
        (["ㅋㅋ", "ㅋㅋㅋ"], "ㅋㅋㅋㅋㅋ", ["ㅋㅋ", "ㅋㅋㅋ"]),  # all ㅋㅋ are joined before any ㅋㅋㅋ
        (["가나", "나가"], "가나가", ["가나", "가"]),
        (["나가", "가나"], "가나가", ["가", "나가"]),
        (["가나가"], "가나가", ["가", "나", "가"]),  # no two pieces spell it: never joined
        ([], "", []),
    ],
)
def test_golden(merged: list[str], text: str, expected: list[str]) -> None:
    vocab = Vocab.bpe("가나ㅋ", merged)
    ids, spans = model_for(vocab).encode(text)
    assert [vocab.tokens[i] for i in ids] == [text[a:b] for a, b in spans] == expected


def test_text_that_spells_a_byte_piece_stays_text() -> None:
    for vocab in (Vocab.bpe("<0xA>", ["<0", "x0"]), Vocab.bpe("가", [])):
        ids, _ = BpeModel(vocab).encode("<0x0A>")
        assert 10 not in ids
        assert ids == hf_ids(vocab, "<0x0A>") == spm(vocab).encode("<0x0A>")


byte_texts = st.text("가나a é😀", max_size=20) | st.text(max_size=10)


@st.composite
def byte_vocabularies(draw: st.DrawFn) -> Vocab:
    spell = "".join(BYTE_CHARS[byte] for byte in draw(byte_texts).encode())
    spans = st.tuples(st.integers(0, len(spell)), st.integers(2, 6)).map(lambda span: spell[span[0] : sum(span)])
    found = sorted(piece for piece in draw(st.sets(spans, max_size=20)) if len(piece) > 1)
    return Vocab.bpe_bytes(draw(st.permutations(found)))


@settings(max_examples=300, deadline=None)
@given(byte_vocabularies(), byte_texts)
def test_bytes_equal_hugging_face_and_decode_back(vocab: Vocab, text: str) -> None:
    model = BpeModel(vocab)
    ids, spans = model.encode(text)
    tokenizer = Tokenizer(hf_models.BPE(vocab.ids, splits(vocab.pieces)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoding = tokenizer.encode(text)
    assert ids == encoding.ids
    assert spans == encoding.offsets
    assert bytes(BYTE_CHARS.index(char) for i in ids for char in vocab.tokens[i]).decode() == text


def test_byte_chars_are_gpt2s() -> None:
    assert sorted(BYTE_CHARS) == sorted(pre_tokenizers.ByteLevel.alphabet())
    text = bytes(range(128)).decode() + "éÿ가"
    [(spelled, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    assert spelled == "".join(BYTE_CHARS[byte] for byte in text.encode())


def test_an_unknown_kind_names_the_known_ones() -> None:
    vocab = Vocab.bpe("가", [])
    object.__setattr__(vocab, "kind", "quantum")
    with pytest.raises(UsageError, match="no model reads a vocabulary of kind 'quantum'; known kinds: unigram, bpe"):
        model_for(vocab)


def test_a_long_pretoken_is_not_quadratic_and_keeps_its_ids() -> None:
    rng = random.Random(0)
    vocab = Vocab.bpe("ㅋ가", ["ㅋㅋ", "ㅋㅋㅋㅋ", "가ㅋ", "ㅋㅋㅋㅋㅋㅋㅋㅋ", "가가"])
    model = BpeModel(vocab)
    times = []
    for size in (1 << 14, 1 << 17):
        text = "".join(rng.choices("ㅋㅋㅋ가", k=size))
        started = time.perf_counter()
        ids, _ = model.encode(text)
        times.append(time.perf_counter() - started)
        assert ids == hf_ids(vocab, text)
    assert times[1] < 8 * times[0] * 4  # eight times the text; quadratic would be 64
