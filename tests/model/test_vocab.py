"""The canonical form of a vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koktok.errors import VocabSizeError
from koktok.hangul import EVERYDAY, KS_X_1001, KS_X_1001_SIGNS, LETTERS
from koktok.model.models import model_for
from koktok.model.vocab import BYTE_PIECES, SCORE_STEP, Vocab
from koktok.training.alphabet import BASIC, alphabet_of

SOME = "가나다 "
scores = st.floats(min_value=-20, max_value=20)
vocabularies = st.dictionaries(st.text(SOME, min_size=2, max_size=5), scores, max_size=12).flatmap(
    lambda pieces: st.fixed_dictionaries(dict.fromkeys(SOME, scores)).map(lambda chars: pieces | chars)
)


@given(vocabularies)
def test_unigram_scores_are_at_most_zero_rounded_and_ordered(pieces: dict[str, float]) -> None:
    vocab = Vocab.unigram(pieces)
    assert all(score <= 0 and (score / SCORE_STEP) % 1 == 0 for score in vocab.scores)
    assert list(zip((-s for s in vocab.scores), vocab.pieces, strict=True)) == sorted(
        zip((-s for s in vocab.scores), vocab.pieces, strict=True)
    )
    assert set(vocab.pieces) == set(pieces)


@given(vocabularies, st.text(SOME, max_size=8))
def test_lowering_scores_changes_no_segmentation(pieces: dict[str, float], word: str) -> None:
    """Scores that need lowering give the segmentation of the same scores lowered further by hand, per character."""
    steps = {piece: round(score / SCORE_STEP) * SCORE_STEP for piece, score in pieces.items()}
    lower = {piece: score - 32 * len(piece) for piece, score in steps.items()}
    assert _cost(word, steps, Vocab.unigram(lower)) == pytest.approx(_cost(word, steps, Vocab.unigram(steps)), abs=0.05)


def _cost(word: str, scores: dict[str, float], vocab: Vocab) -> float:
    ids, _ = model_for(vocab).encode(word)
    return sum(scores[vocab.tokens[i]] for i in ids)


@given(vocabularies)
def test_text_that_spells_a_byte_loses_no_character(pieces: dict[str, float]) -> None:
    vocab = Vocab.unigram(pieces | dict.fromkeys("<0xABCDEF123456789>", -9.0))
    ids, _ = model_for(vocab).encode("<0x0A>")
    assert "".join(vocab.tokens[i] for i in ids) == "<0x0A>"
    assert min(ids) >= 256
    assert vocab.byte_score < 6 * min(vocab.scores)


def test_ids_bytes_then_pieces_then_specials() -> None:
    vocab = Vocab.bpe("나가", ["가나"], specials=("<unk>", "</s>"))
    assert vocab.tokens == (*BYTE_PIECES, "가", "나", "가나", "<unk>", "</s>")
    assert (vocab.size, vocab.token_ids["가나"], vocab.token_ids["</s>"]) == (261, 258, 260)


def test_different_vocabularies_have_different_digests() -> None:
    one = Vocab.unigram({"가": -1.0, "나": -2.0})
    assert one.digest() == Vocab.unigram({"나": -2.0, "가": -1.0}).digest()
    assert one.digest() != Vocab.unigram({"가": -1.0, "나": -2.5}).digest()
    assert one.digest() != Vocab.unigram({"가": -1.0, "나": -2.0}, specials=("</s>",)).digest()


def test_ks_x_1001_is_the_standard() -> None:
    assert (len(KS_X_1001), len(set(KS_X_1001)), KS_X_1001[0], KS_X_1001[-1]) == (2350, 2350, "가", "힝")
    assert "뷁" not in KS_X_1001
    assert all(len(sign.encode("euc_kr")) == 2 for sign in KS_X_1001_SIGNS), "as in the standard, outside ASCII"
    assert {*"①⑮※·㎡℃「」『』㈜○△→★"} <= {*KS_X_1001_SIGNS}
    assert not {*KS_X_1001_SIGNS} & {*KS_X_1001}
    assert "똠" not in KS_X_1001


def test_the_alphabet_covers_and_requires() -> None:
    words = [("가" * 50, 10), ("나", 9), ("뷁", 1), ("▁", 99)]
    small = alphabet_of(words, vocab_size=300, coverage=0.99)
    assert set(small) == {*BASIC, "가", "나"}
    assert set(alphabet_of(words, vocab_size=30_000, coverage=0.99)) == {
        *BASIC,
        "나",
        *KS_X_1001,
        *KS_X_1001_SIGNS,
        *LETTERS,
    }
    assert "뷁" in alphabet_of(words, vocab_size=300, coverage=1.0)
    assert "ᄀ" in alphabet_of(words, vocab_size=300, required="ᄀ")


def test_greetings_are_spelled_in_syllables_at_every_size_that_has_room() -> None:
    """안녕하세요 is in few texts of a megabyte, and nobody forgives a vocabulary that spells it in bytes."""
    greetings = {*"안녕하세요괜찮아요맛있어요"}
    words = [("가" * 50, 10), ("뷁", 1)]
    for size in (1000, 2300, 8000, 14_099, 14_100, 64_000):
        assert greetings <= set(alphabet_of(words, vocab_size=size, taken=261)), size
        assert not greetings & set(alphabet_of(words, vocab_size=size, taken=261, required="none"))
    assert set(alphabet_of(words, vocab_size=14_000, taken=261)) == {*BASIC, *EVERYDAY, *LETTERS, "가", "뷁"}
    assert set(EVERYDAY) <= set(KS_X_1001)
    tight = [(chr(0xAC00 + i), 100) for i in range(640)]  # 737 of 739 places are taken
    assert len(alphabet_of(tight, vocab_size=1000, taken=261)) == 737, "no size is refused for them"


def test_an_alphabet_that_does_not_fit_names_the_size_that_does() -> None:
    with pytest.raises(VocabSizeError, match=r"at least 103 ids .*, got 95\n.*vocab_size=103 or"):
        alphabet_of([("가", 1)], vocab_size=95, taken=5)
    assert len(alphabet_of([("가", 1)], vocab_size=103, taken=5)) == 98
