"""All trainers: one small table of words, and what every vocabulary keeps, whoever made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from conftest import MODELS, ROOT
from hypothesis import given
from hypothesis import strategies as st
from reference.trainers import train_simple

from koktok import Recipe
from koktok.bulk import solvers
from koktok.errors import RecipeError, VocabSizeError
from koktok.model import models
from koktok.model.models import model_for
from koktok.model.vocab import KINDS, MARK, Vocab, unspell
from koktok.pipeline.train import train as train_tokenizer
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.text.blocklist import Blocklist
from koktok.text.pretokenize import Pattern
from koktok.tokenizer import TrainedTokenizer
from koktok.training import alphabet, dispatch
from koktok.training import log as logs
from koktok.training.dispatch import train
from koktok.training.job import Job, Learnt
from koktok.training.log import account
from koktok.training.scripts import script_of

WORDS = {
    " 학교|에서": 40, " 학교|는": 30, " 집|에서": 20, " 집|은": 15, " 산|에서|는": 9, "산|은": 8, " 멍청|하|다": 30, " 멍청|한": 20,
    " 멍청이|꽃": 9,
}  # fmt: skip
COUNTS = SegmentedCounts.from_marked({**WORDS, " 010-1234-5678": 40, " </s></s>": 50, "▁▁": 50, "\t\t": 50})

TRAINERS = (*(name for name in KINDS), "unigram-em", "spm unigram", "spm bpe")


def job(trainer: str, size: int, **values: object) -> Job:
    model = trainer.removeprefix("spm ")
    if trainer != model:
        values["backend"] = "spm"
    options = {"model": model, "vocab_size": size, "required": "none", "ngram": 3, **values}
    return Job.of(COUNTS, Recipe().changed(train=options), Pattern(digits="single"))


@cache
def bounds(trainer: str) -> tuple[int, int]:
    """The least and the most ids, as the errors of impossible sizes say."""
    with pytest.raises(VocabSizeError, match=r"expected at least [\d,]+ ids .*, got 4\n") as small:
        train(job(trainer, 4))
    with pytest.raises(VocabSizeError, match=r"the text has too few .* for 9,999 ids") as large:
        train(job(trainer, 9_999))
    return _size_in(small.value), _size_in(large.value)


def _size_in(error: VocabSizeError) -> int:
    return int(error.hint.removesuffix(", or more text").removesuffix(" or more").removeprefix("--vocab-size "))


def between(trainer: str) -> int:
    return bounds(trainer)[1] - 5


def texts(learnt: Learnt) -> list[str]:
    """The pieces as text."""
    vocab = learnt.vocab
    bare = [piece.removeprefix(MARK) if vocab.marked else piece for piece in vocab.pieces]
    return [unspell(piece) if vocab.bytewise else piece for piece in bare]


def test_every_kind_has_a_trainer_a_model_a_solver_and_a_fixture() -> None:
    assert set(dispatch.TRAINERS) == set(models.MODELS) == set(solvers.SOLVERS) == set(KINDS)
    assert {name.split(" ")[0] for name in MODELS} == {*KINDS, *dispatch.OTHERS} - {"spm"}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_size_is_met_and_the_log_is_that_of_the_model(trainer: str) -> None:
    learnt = train(job(trainer, between(trainer)))
    log = json.loads(json.dumps(learnt.log))
    assert learnt.vocab.size == between(trainer) == log["vocab_size"]
    assert log["trainer"] == trainer.split(" ")[0]
    assert sum(log["pieces_by_length"].values()) == sum(log["pieces_by_shape"].values()) == len(learnt.vocab.pieces)
    shapes = log["pieces_by_shape"]
    assert shapes.get("hangul", 0) + shapes.get("space+hangul", 0) > 0, (
        "in characters, also where pieces are spelled in bytes"
    )
    assert log.get("pieces_by_script", {"hangul": 1})["hangul"] > 0
    swallowed = there = 0
    for word, cuts, n in COUNTS.items():
        ends = {end for _, end in model_for(learnt.vocab).encode(word)[1]}
        there += n * len(cuts)
        swallowed += n * sum(cut.offset not in ends for cut in cuts)
    assert {k: sum(row[k] for row in log["boundaries"].values()) for k in ("n", "swallowed")} == {
        "n": there,
        "swallowed": swallowed,
    }


@pytest.mark.parametrize("trainer", TRAINERS)
def test_no_piece_is_what_the_recipe_blocks_or_spells_a_token(trainer: str) -> None:
    blocked = Blocklist(["멍청", "!멍청이꽃"])
    free, kept = (
        train_most(trainer, **values) for values in ({"personal_data": "keep"}, {"blocklist": ["멍청", "!멍청이꽃"]})
    )
    if trainer not in ("syllable", "jamo"):
        assert any(map(blocked.refuses, texts(free))), "or nothing is shown"
    assert not any(map(blocked.refuses, texts(kept)))
    assert not any("010-1234-5" in text for text in texts(kept))
    for learnt in (free, kept):
        assert "</s>" not in learnt.vocab.pieces
        assert not any("▁" in piece for piece in learnt.vocab.pieces)


def train_most(trainer: str, **values: object) -> Learnt:
    """The largest vocabulary that these words give; the error of a larger one names it."""
    size = bounds(trainer)[1]
    while True:
        try:
            return train(job(trainer, size, **values))
        except VocabSizeError as error:
            size = _size_in(error)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_size_that_an_error_names_works(trainer: str) -> None:
    least, most = bounds(trainer)
    size = train_most(trainer).vocab.size
    assert size == most or (trainer.startswith(("spm", "unigram-em")) and least < size < most)  # a second one does


CODE = """
import sys
sys.path[:0] = ["tests", "tests/training"]
from test_trainers import digests
print(digests(int(sys.argv[1])))
"""


def digests(threads: int) -> Mapping[str, str]:
    """The digest of what each trainer makes."""
    return {name: train(replace(job(name, between(name)), threads=threads)).vocab.digest() for name in TRAINERS}


def test_the_same_bytes_in_any_process() -> None:
    """Law 5: with any hash seed and any number of threads."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, "3"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(digests(1))


@pytest.mark.parametrize("trainer", ["bpe", "bpe-bytes", "wordpiece"])
def test_progress_ends_with_all_merges_and_counts_are_64_bit(trainer: str) -> None:
    seen: list[tuple[int, int]] = []
    large = SegmentedCounts.from_items((word, cuts, n * 100_000_000) for word, cuts, n in COUNTS.items())
    asked = replace(job(trainer, between(trainer)), on_progress=lambda *step: seen.append(step))
    learnt = train(asked)
    assert seen[-1] == (merges := sum(stage["merges"] for stage in learnt.log["stages"]), merges)
    assert train(replace(asked, counts=large)).vocab == learnt.vocab


def test_the_account_measures_the_most_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MEASURED", 2)
    counts = SegmentedCounts.from_marked({" 학교|에서": 40, " 학교|는": 30, " 집|에서": 20})
    found = account(counts, Vocab.bpe(" 학교에서집는", []))
    assert (found["words_measured"], found["boundaries"]) == (2, {BoundaryKind.OTHER.label: {"n": 70, "swallowed": 0}})


def test_reserved_shares_reach_the_trainer() -> None:
    words = [f"{a}{b}" for a in "abcdefgh" for b in ("ing", "ed", "er")]
    lines = [" ".join(words), "나는 집에 간다 너는 학교에 온다 우리는 들에 나간다"] * 30
    base = Recipe().changed(segment={"segmenter": "whitespace"}, train={"vocab_size": 400}, holdout=0.0)
    shares = []
    for reserve in ({}, {"latin": 0.57}):
        pieces = train_tokenizer(lines, base.changed(train={"reserve_script": reserve})).tokenizer.vocab.pieces
        shares.append(sum(script_of(piece) == "latin" for piece in pieces) / len(pieces))
    assert shares[0] < shares[1]


def test_jamo_pieces_are_blocked_as_syllables_and_the_text_comes_back() -> None:
    lines = ["멍청하다고 하지 마라.", "멍청한 말은 멍청하다."] * 40
    recipe = Recipe().changed(
        train={"model": "bpe", "vocab_size": 448, "blocklist": ["멍청"]},
        segment={"segmenter": "whitespace"},
        jamo=True,
        holdout=0.0,
    )
    assert Recipe.from_toml(recipe.to_toml()).train.blocklist == ("멍청",)
    tokenizer = train_tokenizer(lines, recipe, cache=False).tokenizer
    assert not any("멍청" in tokenizer.decode([i]) for i in range(tokenizer.vocab.size))
    assert tokenizer.decode(tokenizer.encode(lines[0]).ids) == lines[0]


# --- Lists --------------------------------------------------------------------------------------------------------------

LISTED = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서|는": 3, "▁": 9, "</s>": 7})
LETTERS = "학교에서집는 "


@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("word", 2, (" 학교에서", " 집에서는")),
        ("syllable", 2, (" ", "서")),  # all of  에 서 stand 7 times: by string
        ("jamo", 2, (" ", "서")),
        ("ngram", 2, (*sorted(LETTERS), "에서", " 학")),
        ("morpheme", 2, (*sorted(LETTERS), "에서", " 학교")),
    ],
)
def test_the_most_frequent_units_by_count_then_string(kind: Any, n: int, expected: tuple[str, ...]) -> None:
    specials = ("</s>", "[UNK]")
    size = len(expected) + len(specials) + (0 if kind == "word" else 256)
    vocab = train_simple(LISTED, kind, vocab_size=size, specials=specials, characters=LETTERS, n=n)
    assert vocab.pieces == expected


def test_required_characters_come_first() -> None:
    vocab = train_simple(LISTED, "syllable", vocab_size=999, required="하", characters=LETTERS)
    assert vocab.pieces[:4] == ("하", " ", "서", "에")
    pair = train_simple(LISTED, "morpheme", vocab_size=999, characters="에", required="서")
    assert pair.pieces == ("서", "에", "에서")


@given(
    st.dictionaries(st.text("가나다 ", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from(("word", "syllable", "jamo", "ngram", "morpheme")),
    st.text("가나다 é", max_size=10),
)
def test_any_text_can_be_encoded(words: dict[str, int], kind: Any, text: str) -> None:
    counts = SegmentedCounts.from_items((word, (), n) for word, n in words.items())
    vocab = train_simple(counts, kind, vocab_size=300, specials=["[UNK]"])
    _, spans = model_for(vocab).encode(text)
    assert "".join(text[a:b] for a, b in dict.fromkeys(spans)) == text


# --- SentencePiece under our cuts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("trainer", ["spm unigram", "spm bpe"])
def test_pieces_of_sentencepiece_stay_inside_morphemes_while_there_are_any(trainer: str) -> None:
    parts = {part for i in range(len(COUNTS)) for part in COUNTS.pieces(i)}
    least = bounds(trainer)[0]
    for vocab, stay in ((train(job(trainer, least + 2)).vocab, True), (train_most(trainer).vocab, False)):
        longer = [piece for piece in vocab.pieces if len(piece) > 1]
        assert longer
        assert all(any(piece in part for part in parts) for piece in longer) == stay


# ── strings that are always pieces ────────────────────────────────────────────────────────────────────────────────────

GROUPS = [f"{number:0{size}}" for size in (1, 2, 3) for number in range(10**size)]
NUMBERS = SegmentedCounts.from_marked(
    {
        " 값|은": 40,
        " 123": 30,
        "123": 20,
        " 12": 90,
        "12": 25,
        " 4567": 8,
        "00": 3,
        "007": 1,
        "원|이": 40,
        " 1": 90,
        "3": 60,
    }
    | {" " + "".join(chr(0xAC00 + 37 * (i * k % 300)) for k in (1, 7, 11)): 9 for i in range(300)}
    | {" " + "".join(chr(0xAC00 + 37 * ((i * k + 5) % 300)) for k in (3, 13, 17)): 9 for i in range(300)}
    | {" " + "".join(chr(0xAC00 + 37 * ((i * k + 9) % 300)) for k in (19, 23, 29)): 9 for i in range(300)}
)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("unigram", {"digits": "three"}),
        ("bpe", {"digits": "three"}),
        ("bpe-bytes", {"pattern": "llama3"}),
        ("bpe-bytes", {"pattern": "superbpe"}),
    ],
)
def test_every_group_of_digits_is_one_token(
    model: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2800
    monkeypatch.setattr(alphabet, "GROUPED", size)
    recipe = Recipe.build({"train": {"model": model, "vocab_size": size}, "pretokenize": settings})
    tokenizer = TrainedTokenizer(recipe, train(Job.of(NUMBERS, recipe, recipe.pattern)).vocab)
    for text in ("값은{}원", "값은 {}원", "값  {}."):
        for group in GROUPS:
            tokens = [tokenizer.decode([i]).strip() for i in tokenizer.encode(text.format(group)).ids]
            assert group in tokens, (text, tokens)


@pytest.mark.parametrize("model", ["unigram", "bpe", "bpe-bytes"])
@pytest.mark.parametrize("size", [1000, 1400])
def test_required_pieces_are_used_for_their_own_text(model: str, size: int) -> None:
    strings = ("값은이", "안녕하세요", "녕하", "값은", "뷁쀍뚊")
    options = {"model": model, "vocab_size": size, "required": "none", "required_pieces": strings}
    recipe = Recipe.build({"train": options, "pretokenize": {"prefix_space": False}})
    tokenizer = TrainedTokenizer(recipe, train(Job.of(NUMBERS, recipe, recipe.pattern)).vocab)
    assert tokenizer.vocab.size == size
    for string in strings:
        assert [tokenizer.decode([i]) for i in tokenizer.encode(string).ids] == [string]


@pytest.mark.parametrize(
    ("string", "why"), [("가 나", "the pattern cuts it"), ("멍청이", "blocked word"), ("<pad>", "special")]
)
def test_a_required_piece_that_can_be_none_is_refused(string: str, why: str) -> None:
    with pytest.raises(RecipeError, match=f"`required_pieces`: '{string}' cannot be a piece: .*{why}"):
        job("unigram", 900, required_pieces=(string,), blocklist=("멍청",))
