"""The Unigram model: Viterbi, ties and byte fallback, equal to Hugging Face and SentencePiece."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.models import best_sum, spm
from tokenizers import Tokenizer
from tokenizers import models as hf_models

from koktok.tokenizer.models import UnigramModel, model_for
from koktok.vocab import BYTE_PIECES, Vocab

ALPHABET = "가나ㅋ ▁a<0x>A"
"""Small, so that ties and repetitions are the rule; holds what spells the byte piece `<0x0A>`."""


def hf_ids(vocab: Vocab, text: str) -> list[int]:
    rows = [(piece, vocab.byte_score) for piece in BYTE_PIECES]
    rows += zip(vocab.pieces, vocab.scores, strict=True)
    model = hf_models.Unigram(rows, unk_id=0, byte_fallback=True)
    return [token.id for token in model.tokenize(text)]


pieces = st.text(ALPHABET.replace("▁", ""), min_size=2, max_size=5)
# "é" and "😀" are in no vocabulary: two bytes and four.
texts = st.text(ALPHABET.replace("▁", "") + "é😀▁", max_size=40) | st.integers(1, 60).map(lambda n: "ㅋ" * n)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocab:
    found = sorted(draw(st.sets(pieces, max_size=20)) | set(ALPHABET.replace("▁", "")))
    if draw(st.booleans()):
        return Vocab.unigram(dict.fromkeys(found, -1.0))
    return Vocab.unigram({piece: -draw(st.integers(1, 4)) / 2 for piece in found})


@settings(max_examples=300, deadline=None)
@given(vocabularies(), texts)
def test_ids_equal_hugging_face_and_sentencepiece(vocab: Vocab, text: str) -> None:
    ids, _ = UnigramModel(vocab).encode(text)
    assert ids == hf_ids(vocab, text)
    assert ids == spm(vocab).encode(text)


@given(vocabularies(), texts)
def test_spans_cover_the_pretoken_and_the_score_is_the_best(vocab: Vocab, text: str) -> None:
    ids, spans = UnigramModel(vocab).encode(text)
    score = 0.0
    for (start, end), i in zip(spans, ids, strict=True):
        piece = text[start:end]
        if i < 256:
            assert end == start + 1
        else:
            assert vocab.tokens[i] == piece
            score += vocab.scores[i - 256]
    distinct = list(dict.fromkeys(spans))
    assert "".join(text[a:b] for a, b in distinct) == text
    assert all(one[1] == two[0] for one, two in pairwise(distinct))
    unknown = sum(len(text[a:b].encode()) > 0 and text[a:b] not in vocab.ids for a, b in distinct)
    assert score + unknown * (vocab.byte_score - 10) == best_sum(vocab, text)


@pytest.mark.parametrize(
    ("scores", "text", "expected"),
    [
        ({"가": -1, "나": -1, "가나": -2}, "가나", ["가나"]),  # equal: the last piece that starts earliest
        ({"ㅋ": -1, "ㅋㅋ": -1}, "ㅋㅋㅋ", ["ㅋ", "ㅋㅋ"]),
        ({"ㅋ": -1, "ㅋㅋ": -1, "ㅋㅋㅋ": -1}, "ㅋㅋㅋㅋ", ["ㅋ", "ㅋㅋㅋ"]),
        ({"ㅋ": -1, "ㅋㅋㅋ": -2}, "ㅋㅋㅋㅋ", ["ㅋ", "ㅋㅋㅋ"]),
        ({"가": 0, "가가": 0}, "가가가", ["가", "가가"]),
        ({"가": -1, "가가가": -1}, "가가", ["가", "가"]),  # a prefix of a piece is no piece
        (dict.fromkeys("<0xA>", -1), "<0x0A>", ["<", "0", "x", "0", "A", ">"]),
        (dict.fromkeys("<0xA>", 0), "<0x0A>", ["<", "0", "x", "0", "A", ">"]),
        ({" ": -1, "가": -2, " 가": -2}, "  가 ", [" ", " 가", " "]),
        ({"가": -1}, "", []),
    ],
)
def test_golden(scores: dict[str, float], text: str, expected: list[str]) -> None:
    vocab = Vocab.unigram(scores)
    ids, spans = model_for(vocab).encode(text)
    assert [vocab.tokens[i] for i in ids] == expected
    assert [text[a:b] for a, b in spans] == expected
    assert hf_ids(vocab, text) == spm(vocab).encode(text) == ids


def test_a_byte_piece_is_spelled_by_users_only_in_hugging_face_and_only_with_unknown_characters() -> None:
    vocab = Vocab.unigram({"가": -1.0})
    text = "<0x0A>"
    assert UnigramModel(vocab).encode(text)[0] == spm(vocab).encode(text) == list(text.encode())
    assert hf_ids(vocab, text) == [10]  # why trainers must put these characters into every vocabulary


def test_the_bytes_of_one_character_share_its_span() -> None:
    ids, spans = UnigramModel(Vocab.unigram({"가": -1.0})).encode("가😀é가")
    assert ids == [256, *"😀é".encode(), 256]
    assert spans == [(0, 1), *[(1, 2)] * 4, *[(2, 3)] * 2, (3, 4)]


def test_hugging_face_gives_the_bytes_of_a_run_of_unknown_characters_the_span_of_the_run() -> None:
    """Pinned, so that a release that mends it is noticed: the one place where spans differ on NFC text."""
    vocab = Vocab.unigram({"가": -1.0})
    rows = [*((piece, vocab.byte_score) for piece in BYTE_PIECES), ("가", -1.0)]
    encoding = Tokenizer(hf_models.Unigram(rows, unk_id=0, byte_fallback=True)).encode("éñ가")
    ids, spans = UnigramModel(vocab).encode("éñ가")
    assert ids == encoding.ids
    assert encoding.offsets == [*[(0, 2)] * 4, (2, 3)]
    assert spans == [*[(0, 1)] * 2, *[(1, 2)] * 2, (2, 3)]


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        UnigramModel(Vocab.unigram({"가": -1.0})).encode("\ud800")


def test_a_long_pretoken_takes_linear_time_and_keeps_its_ids() -> None:
    rng = random.Random(0)
    vocab = Vocab.unigram({"ㅋ": -1, "ㅋㅋ": -1.5, "가": -1, "가ㅋ": -2, "ㅋㅋㅋㅋㅋㅋㅋㅋ": -3})
    model = UnigramModel(vocab)
    times = []
    for size in (1 << 15, 1 << 18):
        text = "".join(rng.choices("ㅋㅋㅋ가", k=size))
        started = time.perf_counter()
        ids, _ = model.encode(text)
        times.append(time.perf_counter() - started)
        assert ids == hf_ids(vocab, text)
    assert times[1] < 8 * times[0] * 4  # eight times the text; four for a noisy machine, quadratic would be 64
