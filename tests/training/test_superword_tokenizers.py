"""Superwords on the main road: pieces across spaces that swallow no cut, the same ids everywhere, and a way without."""

from __future__ import annotations

import pytest

from koktok import Recipe, Tokenizer, train
from koktok.count import Counts
from koktok.count.prepared import prepare_runs
from koktok.model.vocab import unspell
from koktok.segment.segmented import SegmentedCounts
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.training.superwords import crosses_space, segment_runs

NOUNS = (
    "그것",
    "사람",
    "마음",
    "세상",
    "소리",
    "이야기",
    "생각",
    "바람",
    "겨울",
    "노래",
)  # floors want six runs or more
LINES = [f"{noun}{'은' if (ord(noun[-1]) - 0xAC00) % 28 else '는'} 그럴 수밖에 없는 것 같다." for noun in NOUNS] * 40


@pytest.fixture(scope="module", params=["unigram", "bpe", "bpe-bytes"])
def wide(request: pytest.FixtureRequest) -> Tokenizer:
    size = 330 if request.param == "bpe-bytes" else 400
    given = {"superwords": 0.5, "vocab_size": size, "model": request.param, "nu": 1.0}
    return train(LINES, Recipe().changed(train=given, holdout=0.0)).tokenizer


def text_of(wide: Tokenizer, piece: str) -> str:
    return unspell(piece) if wide.vocab.kind == "bpe-bytes" else piece


def test_some_pieces_cross_spaces_and_swallow_no_cut(wide: Tokenizer) -> None:
    crossing = [text for piece in wide.vocab.pieces if crosses_space(text := text_of(wide, piece))]
    assert crossing
    assert not any("수밖" in piece or "없는" in piece or "같다" in piece for piece in crossing)
    encoding = wide.encode(LINES[0])
    assert any(crosses_space(text_of(wide, piece)) for piece in encoding.pieces)
    assert wide.decode(encoding.ids) == LINES[0]


def test_without_superwords_every_piece_stays_in_its_word(wide: Tokenizer) -> None:
    narrow = wide.encode(LINES[0], superwords=False)
    assert not any(crosses_space(text_of(wide, piece)) for piece in narrow.pieces)
    assert wide.decode(narrow.ids) == LINES[0]
    assert len(narrow) > len(wide.encode(LINES[0]))


def test_an_invisible_word_between_two_others_leaves_a_word_that_is_only_in_its_run() -> None:
    lines = [line.replace(" 그럴", " \u200b 그럴") for line in LINES]
    tokenizer = train(lines, Recipe().changed(train={"superwords": 0.5, "vocab_size": 400}, holdout=0.0)).tokenizer
    assert tokenizer.decode(tokenizer.encode(lines[0]).ids) == lines[0].replace("\u200b", "")


def test_runs_are_cut_where_the_pattern_cuts_and_at_words_left_out() -> None:
    words = SegmentedCounts.from_marked({"갈": 1, " 수": 1, " 있|다.": 1, " 3": 1, "번": 1})
    raw = Counts.from_mapping({"갈 수\u200b 있다.": 2, " 3번 수": 1, " 모르는 수": 1})
    pattern = Pattern(digits="single", superwords=True)
    found = segment_runs(prepare_runs(raw, Normalizer(), pattern, words.words), words)
    assert {found.words[i]: found.pieces(i) for i in range(len(found))} == {
        " 3": [" 3"],
        " 수": [" 수"],
        "갈 수 있다.": ["갈 수 있", "다."],
        "번 수": ["번 수"],
    }


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_inner_cuts_are_swallowed_only_when_asked(model: str) -> None:
    given = {"superwords": 0.5, "vocab_size": 400, "model": model, "nu": 0.2}
    narrow, inner = (
        train(LINES, Recipe().changed(train={**given, "inner_superwords": asked}, holdout=0.0)).tokenizer
        for asked in (False, True)
    )
    held = [piece for piece in inner.vocab.pieces if crosses_space(piece) and ("없는" in piece or "같다" in piece)]
    assert held
    assert not any(crosses_space(piece) and "없는" in piece for piece in narrow.vocab.pieces)
    assert len(inner.encode(LINES[0])) < len(narrow.encode(LINES[0]))
    assert inner.decode(inner.encode(LINES[0]).ids) == LINES[0]
