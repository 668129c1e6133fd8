"""The WordPiece trainer: the score, its ties, and equality with the formula computed anew."""

import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_wordpiece

from koktok import Recipe, Tokenizer, train
from koktok.errors import UsageError, VocabSizeError
from koktok.segment.segmented import SegmentedCounts
from koktok.tokenizer.models import model_for

HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
Words = dict[str, int]


def counts_of(words: Words) -> SegmentedCounts:
    return SegmentedCounts.from_items((word, (), n) for word, n in words.items())


def naive(words: Words, merges: int, *, first: bool) -> list[tuple[str, str]]:
    """The formula in exact fractions, counted anew for every merge."""
    rows = [([word[0], *("##" + char for char in word[1:])], n) for word, n in words.items()]
    made: list[tuple[str, str]] = []
    while len(made) < merges:
        symbols: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()  # in the order of first sight
        for parts, n in rows:
            for part in parts:
                symbols[part] += n
            for pair in pairwise(parts):
                pairs[pair] += n
        if not pairs:
            break
        score = {pair: Fraction(n, symbols[pair[0]] * symbols[pair[1]]) for pair, n in pairs.items()}
        ties = [pair for pair in pairs if score[pair] == max(score.values())]
        best = ties[0] if first else min(ties)
        made.append(best)
        for parts, _ in rows:
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1].removeprefix("##")]
                i += 1
    return made


def test_the_hug_example() -> None:
    result = train_wordpiece(
        counts_of(HUGS), vocab_size=99, min_count=1, ties="first", order=list(HUGS), allow_fewer=True
    )
    assert ["".join((a, b.removeprefix("##"))) for a, b in result.merges[:3]] == ["##gs", "hu", "hugs"]
    assert result.log["stages"][0]["first_score"] == 1 / 20
    assert result.vocab.pieces[:7] == ("##g", "##n", "##s", "##u", "b", "h", "p")
    free = train_wordpiece(counts_of(HUGS), vocab_size=99, min_count=1, allow_fewer=True)
    assert free.merges[:2] == (("##g", "##s"), ("##u", "##g"))


tables = st.dictionaries(st.text("가나ㅋ", min_size=1, max_size=7), st.integers(1, 6), min_size=1, max_size=10)
laugh = st.dictionaries(st.integers(1, 20).map(lambda n: "ㅋ" * n), st.integers(1, 5), min_size=1, max_size=5)


@settings(max_examples=300)
@given(tables | laugh, st.integers(0, 25), st.booleans())
def test_equal_to_the_formula(words: Words, merges: int, first: bool) -> None:
    bare = len({(char, i > 0) for word in words for i, char in enumerate(word)})
    result = train_wordpiece(
        counts_of(words),
        vocab_size=5 + bare + merges,
        min_count=1,
        max_length=99,
        ties="first" if first else "pair",
        order=list(words),
        allow_fewer=True,
    )
    assert list(result.merges) == naive(words, merges, first=first)
    assert result.log["stages"][0]["merges"] == len(result.merges)


@settings(max_examples=100)
@given(st.dictionaries(st.text("#가[UNK]", min_size=1, max_size=8), st.integers(1, 9), min_size=1, max_size=8))
def test_every_word_of_the_training_can_be_spelled(words: Words) -> None:
    result = train_wordpiece(counts_of(words), vocab_size=999, min_count=1, max_length=4, allow_fewer=True)
    model = model_for(result.vocab)
    for word in words:
        ids, _ = model.encode(word)
        if not word.startswith("#"):  # "##가" is read as the continued piece, and what follows may be unknown
            assert result.vocab.unknown_id not in ids
    assert all(len(piece.removeprefix("##")) <= 4 for piece in result.vocab.pieces)


def test_spaces_before_words_are_dropped_and_their_counts_join() -> None:
    one = train_wordpiece(counts_of({" 집에": 3, "집에": 4, "  집에": 1, " ": 5}), vocab_size=99, allow_fewer=True)
    assert one.vocab.pieces == ("##에", "집", "집에")
    assert one.log["stages"][0]["first_score"] == 8 / 64
    assert one.log["stages"][0]["tokens"] == 8


def test_cuts_can_be_kept() -> None:
    counts = SegmentedCounts.from_marked({" 학교|에서": 9, " 집|에서": 9})
    inside = train_wordpiece(counts, vocab_size=99, swallows=(), allow_fewer=True)
    assert inside.vocab.pieces[5:] == ("학교", "##에서")  # 9 / 81 is more than 18 / 324
    assert "집에서" in train_wordpiece(counts, vocab_size=99, allow_fewer=True).vocab.pieces


def test_bytes_never_need_the_unknown_token() -> None:
    result = train_wordpiece(counts_of({" 가나": 9, "다": 5}), vocab_size=520, alphabet="bytes", allow_fewer=True)
    assert result.vocab.kind == "wordpiece-bytes"
    assert len(result.vocab.pieces) == 512 + 3
    model = model_for(result.vocab)
    for text in ("가나", " 뷁😀", "\t\n"):
        assert result.vocab.unknown_id not in model.encode(text)[0]


def test_limits() -> None:
    words = counts_of({"가나다": 9, "라마": 2})
    assert train_wordpiece(words, vocab_size=99, max_length=2, allow_fewer=True).vocab.pieces[5:] == ("##나다",)
    assert "라마" in train_wordpiece(words, vocab_size=99, min_count=2, allow_fewer=True).vocab.pieces
    limited = train_wordpiece(words, vocab_size=99, characters="가나", required="하", allow_fewer=True)
    assert limited.vocab.pieces == ("##나", "##하", "가", "하", "가나")
    refused = train_wordpiece(words, vocab_size=99, crosses=lambda piece: piece == "나다", allow_fewer=True)
    assert refused.merges == (("가", "##나"), ("가나", "##다"))
    assert refused.log["stages"][0]["refused"] == 1
    special = train_wordpiece(counts_of({"[UNK]": 9}), vocab_size=99, allow_fewer=True)
    assert "[UNK]" not in special.vocab.pieces


def test_progress_ends_with_all_merges() -> None:
    seen: list[tuple[int, int]] = []
    train_wordpiece(counts_of(HUGS), vocab_size=15, min_count=1, on_progress=lambda *step: seen.append(step))
    assert seen == [(3, 3)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ties": "hf"}, UsageError, "ties = 'hf'; wanted 'pair' or 'first'"),
        ({"min_count": 0}, UsageError, "min_count = 0; wanted at least 1"),
        ({"vocab_size": 9}, VocabSizeError, "9 ids were wanted, and alphabet, bytes and special tokens alone take 12"),
        ({"vocab_size": 99}, VocabSizeError, r"99 ids were wanted, and the text gives only \d+ \(pairs that stand 5"),
    ],
)
def test_errors_say_what_came_and_what_was_wanted(options: dict[str, object], error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        train_wordpiece(counts_of(HUGS), **{"vocab_size": 15, **options})  # type: ignore[arg-type]
    assert ("hint: --vocab-size " in str(caught.value)) == (error is VocabSizeError)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_other_hash_seeds_give_the_same_vocabulary(seed: str) -> None:
    code = (
        "from koktok.segment.segmented import SegmentedCounts; from koktok.training.wordpiece import *; from koktok.training.job import Job\n"
        "c = SegmentedCounts.from_marked({'hug': 10, 'pug': 5, 'pun': 12, 'bun': 4, 'hugs': 5})\n"
        "j = Job(c, 99, 'wordpiece', ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'), max_length=16, allow_fewer=True)\n"
        "print(joined(j, min_count=1).vocab.digest())"
    )
    env = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    here = train_wordpiece(counts_of(HUGS), vocab_size=99, min_count=1, allow_fewer=True)
    assert done.stdout.strip() == here.vocab.digest()


KNOWN = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3) | st.sampled_from(" .,aZ19"), max_size=20)


@pytest.fixture(scope="module", params=[True, False], ids=["jamo", "bytes"])
def complete(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    """A WordPiece tokenizer without unknown words, and the same in Hugging Face."""
    lines = ["학교에서 책을 읽었다.", "집에서 밥을 먹었다.", "갔다가 왔습니다."] * 30
    chosen = (
        {"model": "wordpiece", "vocab_size": 370} if request.param else {"model": "wordpiece-bytes", "vocab_size": 540}
    )
    recipe = Recipe().changed(train=chosen, segment={"segmenter": "whitespace"}, jamo=request.param, holdout=0.0)
    made = train(lines, recipe, cache=False).tokenizer
    folder = made.save(tmp_path_factory.mktemp("complete") / "tokenizer")
    return made, tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))


@settings(max_examples=60, deadline=None)
@given(text=KNOWN)
def test_jamo_and_byte_pieces_leave_no_unknown_word(
    complete: tuple[Tokenizer, tokenizers.Tokenizer], text: str
) -> None:
    ours, theirs = complete
    ids = ours.encode(text).ids
    assert ours.vocab.unknown_id not in ids
    assert theirs.encode(ours.normalize(text)).ids == ids
    back = ours.decode(ids)
    assert back.split() == text.split() or back.replace(" ", "") == text.replace(" ", "")
    assert theirs.decode(ids) == back
