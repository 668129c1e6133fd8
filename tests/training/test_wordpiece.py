"""The WordPiece trainer: the score, its ties, and equality with the formula computed anew."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_wordpiece

from koktok.model.models import model_for
from koktok.segment.segmented import SegmentedCounts

Words = dict[str, int]


def counts_of(words: Words) -> SegmentedCounts:
    return SegmentedCounts.from_items((word, (), n) for word, n in words.items())


def naive(words: Words, merges: int) -> list[tuple[str, str]]:
    """The formula in exact fractions, counted anew for every merge."""
    rows = [([word[0], *("##" + char for char in word[1:])], n) for word, n in words.items()]
    made: list[tuple[str, str]] = []
    while len(made) < merges:
        symbols: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, n in rows:
            for part in parts:
                symbols[part] += n
            for pair in pairwise(parts):
                pairs[pair] += n
        if not pairs:
            break
        score = {pair: Fraction(n, symbols[pair[0]] * symbols[pair[1]]) for pair, n in pairs.items()}
        best = min(pair for pair in pairs if score[pair] == max(score.values()))
        made.append(best)
        for parts, _ in rows:
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1].removeprefix("##")]
                i += 1
    return made


tables = st.dictionaries(st.text("가나ㅋ", min_size=1, max_size=7), st.integers(1, 6), min_size=1, max_size=10)
laugh = st.dictionaries(st.integers(1, 20).map(lambda n: "ㅋ" * n), st.integers(1, 5), min_size=1, max_size=5)


@settings(max_examples=300)
@given(tables | laugh, st.integers(0, 25))
def test_equal_to_the_formula(words: Words, merges: int) -> None:
    bare = len({(char, i > 0) for word in words for i, char in enumerate(word)})
    result = train_wordpiece(counts_of(words), vocab_size=5 + bare + merges, min_count=1, max_length=99)
    assert list(result.merges) == naive(words, merges)
    assert result.log["stages"][0]["merges"] == len(result.merges)


@settings(max_examples=100)
@given(st.dictionaries(st.text("#가[UNK]", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=8))
def test_every_word_of_the_training_can_be_spelled(words: Words) -> None:
    result = train_wordpiece(counts_of(words), vocab_size=999, min_count=1, max_length=4)
    model = model_for(result.vocab)
    for word in words:
        ids, _ = model.encode(word)
        if not word.startswith("#"):  # "##가" is read as the continued piece, and what follows may be unknown
            assert result.vocab.unknown_id not in ids
    assert all(len(piece.removeprefix("##")) <= 4 for piece in result.vocab.pieces)


def test_limits() -> None:
    words = counts_of({"가나다": 9, "라마": 2})
    assert train_wordpiece(words, vocab_size=99, max_length=2).vocab.pieces[5:] == ("##나다",)
    assert "라마" in train_wordpiece(words, vocab_size=99, min_count=2).vocab.pieces
    limited = train_wordpiece(words, vocab_size=99, characters="가나", required="하")
    assert limited.vocab.pieces == ("##나", "##하", "가", "하", "가나")
    refused = train_wordpiece(words, vocab_size=99, crosses=lambda piece: piece == "나다")
    assert refused.merges == (("가", "##나"), ("가나", "##다"))
    assert refused.log["stages"][0]["refused"] == 1
    special = train_wordpiece(counts_of({"[UNK]": 9}), vocab_size=99)
    assert "[UNK]" not in special.vocab.pieces
