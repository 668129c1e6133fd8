"""Vocabularies of simple tokenizers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.trainers import train_simple

from koktok.errors import ArtifactError, UsageError, VocabSizeError
from koktok.segment.segmented import SegmentedCounts
from koktok.tokenizer.models import model_for

COUNTS = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서|는": 3, "▁": 9, "</s>": 7})
LETTERS = "학교에서집는 "


@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("word", 2, (" 학교에서", " 집에서는")),
        ("syllable", 2, (" ", "서")),  # all of  에 서 stand 7 times: by string
        ("jamo", 2, (" ", "서")),
        ("ngram", 2, (*sorted(LETTERS), "에서", " 학")),
        ("ngram", 3, (*sorted(LETTERS), "에서", " 학")),
        ("morpheme", 2, (*sorted(LETTERS), "에서", " 학교")),
    ],
)
def test_the_most_frequent_units_by_count_then_string(kind: str, n: int, expected: tuple[str, ...]) -> None:
    specials = ("</s>", "[UNK]")
    size = len(expected) + len(specials) + (0 if kind == "word" else 256)
    vocab = train_simple(COUNTS, kind, vocab_size=size, specials=specials, characters=LETTERS, n=n)  # type: ignore[arg-type]
    assert vocab.pieces == expected
    assert (vocab.kind, vocab.size) == (kind, size)


def test_required_characters_come_first_and_rare_units_are_left_out() -> None:
    vocab = train_simple(
        COUNTS, "syllable", vocab_size=999, required="하", characters=LETTERS, min_count=4, allow_fewer=True
    )
    assert vocab.pieces == ("하", " ", "서", "에", "교", "학")
    pair = train_simple(COUNTS, "morpheme", vocab_size=999, characters="에", required="서", allow_fewer=True)
    assert pair.pieces == ("서", "에", "에서")
    free = train_simple(COUNTS, "ngram", vocab_size=999, n=9, allow_fewer=True)
    assert " 집에서는" in free.pieces
    assert not any("▁" in piece for piece in free.pieces)
    assert "</s>" in free.pieces
    assert "</s>" not in train_simple(COUNTS, "ngram", vocab_size=999, n=9, specials=["</s>"], allow_fewer=True).pieces


@given(
    st.dictionaries(st.text("가나다 ", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from(("word", "syllable", "jamo", "ngram", "morpheme")),
    st.text("가나다 é", max_size=10),
)
def test_any_text_can_be_encoded(words: dict[str, int], kind: str, text: str) -> None:
    counts = SegmentedCounts.from_items((word, (), n) for word, n in words.items())
    vocab = train_simple(counts, kind, vocab_size=300, specials=["[UNK]"], allow_fewer=True)  # type: ignore[arg-type]
    _, spans = model_for(vocab).encode(text)
    assert "".join(text[a:b] for a, b in dict.fromkeys(spans)) == text


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        ("ngram", {"n": 1}, UsageError, "n = 1; wanted at least 2"),
        (
            "morpheme",
            {"vocab_size": 260},
            VocabSizeError,
            "260 ids were wanted, and alphabet, bytes and special tokens",
        ),
        ("word", {"vocab_size": 99}, VocabSizeError, r"99 ids were wanted, and the text gives only 4 \(word units"),
        ("word", {"specials": ()}, ArtifactError, r"a word vocabulary wants one of the special tokens \[UNK\], <unk>"),
    ],
)
def test_errors(kind: str, options: dict[str, object], error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        train_simple(COUNTS, kind, **{"vocab_size": 3, "specials": ("[UNK]",), **options})  # type: ignore[arg-type]
    assert ("hint: --vocab-size " in str(caught.value)) == (error is VocabSizeError)
