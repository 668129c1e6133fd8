"""The BPE trainer: parity with Hugging Face, the state of its words, boundaries that are kept, targets."""

import json
import random
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_bpe
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import koktok.training.bpe
from koktok.count import count_words
from koktok.model.models import BpeModel
from koktok.recipe import Recipe
from koktok.segment import Policy, segment_counts
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.segmented import BoundaryKind, Cut, SegmentedCounts
from koktok.training.alphabet import joined_bytes
from koktok.training.job import Job
from koktok.training.lattice import TRUST
from koktok.training.log import account
from koktok.training.pairs import GainQueue, PairCounter


def counts_of(words: dict[str, int]) -> SegmentedCounts:
    return SegmentedCounts.from_items((word, (), n) for word, n in words.items())


def hf_merges(words: dict[str, int], merges: int, *, max_length: int | None = None) -> list[tuple[str, str]]:
    """Merges of Hugging Face's trainer on exactly these words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    size = len({char for word in words for char in word}) + merges
    extra = {} if max_length is None else {"max_token_length": max_length + 1}  # Hugging Face asks for "less than"
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **extra)
    tokenizer.train_from_iterator(("\n".join([word] * n) for word, n in words.items()), trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def train(words: dict[str, int], merges: int, **options: object) -> list[tuple[str, str]]:
    counts = counts_of(words)
    size = 256 + len({char for word in words for char in word}) + merges
    return list(train_bpe(counts, vocab_size=size, **{"lowest": 1, **options}).merges)


def naive(words: dict[str, int], merges: int) -> list[tuple[str, str]]:
    """Count everything anew for every merge; of equal pairs that of the oldest symbols."""
    rows = [(list(word), n) for word, n in words.items()]
    made: list[tuple[str, str]] = []
    age = {symbol: i for i, symbol in enumerate(sorted({char for word in words for char in word}))}
    while len(made) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, n in rows:
            for pair in pairwise(parts):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], age[pair[0]], age[pair[1]]))
        made.append(best)
        age["".join(best)] = len(age)
        for parts, _ in rows:
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [parts[i] + parts[i + 1]]
                i += 1
    return made


tables = st.dictionaries(st.text("가나ㅋ ", min_size=1, max_size=8), st.integers(1, 6), min_size=1, max_size=12)
laugh = st.dictionaries(st.integers(1, 30).map(lambda n: "ㅋ" * n), st.integers(1, 5), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(tables | laugh, st.integers(0, 30))
def test_equal_to_counting_everything_anew(words: dict[str, int], merges: int) -> None:
    assert train(words, merges, max_length=99) == naive(words, merges)


@settings(max_examples=100, deadline=None)
@given(tables | laugh, st.integers(0, 30))
def test_equal_to_hugging_faces_merges(words: dict[str, int], merges: int) -> None:
    assert train(words, merges, max_length=99) == hf_merges(words, merges)


known, strange = "가각나é…漢😀a ", "갂뷁字😁ö"


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(known, min_size=1, max_size=6), st.integers(1, 9), min_size=1), st.text(known + strange))
def test_a_piece_ends_inside_a_character_only_as_a_step_to_one(words: dict[str, int], text: str) -> None:
    """Law 17: text of characters that have a piece holds neither a part of one nor a step."""
    size = 256 + len(joined_bytes(known)) + 6
    vocab = train_bpe(counts_of(words), vocab_size=size, alphabet="bytes", characters=known, lowest=1).vocab
    pieces = dict(zip(vocab.pieces, vocab.token_bytes, strict=True))
    whole = {char.encode() for char in known}
    assert whole <= set(pieces.values())
    for data in pieces.values():
        step = any(char.startswith(data) for char in whole)
        assert len(data) == 1 or step or set(data.decode()) <= set(known)
    model = BpeModel(vocab)
    encode = lambda part: [vocab.token_bytes[i] for i in model.encode(part)[0]]  # noqa: E731
    for part in filter(None, re.split(f"[{strange}]", text)):
        assert "".join(data.decode() for data in encode(part)) == part
    # What has no piece is bytes and steps by itself, and changes nothing in the text around it.
    alone = [data for part in re.split(f"([{strange}])", text) if part for data in encode(part)]
    assert encode(text) == alone


@settings(max_examples=150, deadline=None)
@given(tables | laugh, st.booleans(), st.randoms(use_true_random=False))
def test_run_time_makes_the_last_state_of_the_training(words: dict[str, int], chosen: bool, rng: random.Random) -> None:
    """A merge is made at all its places, so nothing has to be segmented anew, and every piece is used or a part (law 15)."""
    cut = SegmentedCounts.from_items(
        (word, [Cut(i) for i in range(1, len(word)) if rng.random() < 0.3], 9 * n) for word, n in words.items()
    )
    result = train_bpe(cut, vocab_size=256 + 4 + 12, characters="가나ㅋ ", chosen=chosen)
    model = BpeModel(result.vocab)
    found = {word: [result.vocab.tokens[i] for i in model.encode(word)[0]] for word in words}
    assert result.log["stages"][-1]["tokens"] == sum(9 * n * len(found[word]) for word, n in words.items())
    assert len(set(result.vocab.pieces)) == len(result.vocab.pieces)
    made = {"".join(pair) for pair in result.merges}
    assert made <= {part for pair in result.merges for part in pair} | {t for tokens in found.values() for t in tokens}
    for piece in made:
        assert [result.vocab.tokens[i] for i in model.encode(piece)[0]] == [piece]


# 학교에서 stands in more places than all the rest, and a particle is a boundary that is worth keeping.
CUT_WORDS = [
    (word, [Cut(at, BoundaryKind.JOSA) for at in cuts], n)
    for word, cuts, n in [
        (" 학교에서", [3], 90),
        (" 집에서", [2], 60),
        (" 산에서", [2], 30),
        (" 학교", [], 20),
        (" 에서", [], 1),
    ]
]
CUT = SegmentedCounts.from_items(CUT_WORDS)


def merged(result: object) -> list[str]:
    return ["".join(pair) for pair in result.merges]  # type: ignore[attr-defined]


def test_a_boundary_that_the_choice_keeps_is_not_joined_over() -> None:
    kept = train_bpe(CUT, vocab_size=256 + 7 + 5, chosen=True, options={"preset": "aligned"})
    assert merged(kept) == ["에서", " 학", " 학교", " 집", " 산"]
    plain = train_bpe(CUT, vocab_size=256 + 7 + 5)
    assert {" 학교에서", " 집에서"} & set(merged(plain))


def test_what_is_left_goes_to_joins_over_boundaries() -> None:
    more = train_bpe(CUT, vocab_size=256 + 7 + 8, chosen=True, options={"preset": "aligned"})
    assert [(stage["stage"], stage["merges"]) for stage in more.log["stages"]] == [
        ("chosen", 5),
        ("once", 1),
        ("rest", 2),
    ]
    assert merged(more)[5:] == [" 에서", " 학교에서", " 집에서"]


def test_what_occurs_once_is_a_piece_before_a_boundary_that_is_kept_is_joined_over() -> None:
    words = SegmentedCounts.from_items([*CUT_WORDS, (" 누마루", [], 1)])
    more = train_bpe(words, vocab_size=256 + 10 + 9, chosen=True, options={"preset": "aligned"})
    assert [stage["stage"] for stage in more.log["stages"]] == ["chosen", "once"]
    assert merged(more)[-1] == " 누마루"


def test_a_refused_piece_is_never_made_but_longer_ways_around_it_are() -> None:
    words = counts_of({"가나다": 5})
    result = train_bpe(words, vocab_size=999, crosses=lambda piece: piece == "가나")
    assert merged(result) == ["나다", "가나다"]
    assert result.log["stages"][0]["refused"] == 1


# ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def text(mini: list[str], kiwi: KiwiSegmenter) -> SegmentedCounts:
    return segment_counts(count_words(mini), kiwi, Policy.parse("morphemes"))


@pytest.mark.parametrize("kind", ["bpe", "bpe-bytes"])
@pytest.mark.parametrize("asked", [{"keep": 0.9}, {"tokens_per_eojeol": 2.4}])
def test_what_is_asked_for_is_met(text: SegmentedCounts, kind: str, asked: dict[str, float]) -> None:
    recipe = Recipe().changed(train={"model": kind, "vocab_size": 4000, **asked})
    learnt = koktok.training.bpe.train_bpe(Job.of(text, recipe, recipe.pattern))
    outcome, model = learnt.log["outcome"], BpeModel(learnt.vocab)
    assert outcome["met"]
    kept = there = tokens = 0.0
    for word, cuts, n in text.items():
        ids, spans = model.encode(word)
        tokens += n * len(ids)
        edges = {start for start, _ in spans}
        for cut in cuts:
            worth = n * (0.0 if cut.kind.label == "punctuation" else TRUST.get(cut.kind.label, TRUST["rest"]))
            there, kept = there + worth, kept + worth * (cut.offset in edges)
    assert outcome["all"] == pytest.approx(kept / there)
    assert outcome["tokens_per_eojeol"] == pytest.approx(tokens / text.total)
    names = ("josa", "eomi", "all") if "keep" in asked else ("tokens_per_eojeol",)
    for name in names:
        assert outcome[name] == pytest.approx(next(iter(asked.values())), abs=0.01)


def test_presets_of_bpe(text: SegmentedCounts) -> None:
    recipe = Recipe().changed(train={"model": "bpe-bytes", "vocab_size": 5000})
    kept = {}
    for preset in ("short", "lm", "aligned"):
        learnt = koktok.training.bpe.train_bpe(Job.of(text, recipe.changed(preset=preset), recipe.pattern))
        rows = account(text, learnt.vocab)["boundaries"].values()
        kept[preset] = 1 - sum(row["swallowed"] for row in rows) / sum(row["n"] for row in rows)
        assert learnt.vocab.size == 5000
    assert kept["short"] <= kept["lm"] <= kept["aligned"]
    assert kept["short"] < kept["aligned"]


def test_without_cuts_it_is_plain_bpe() -> None:
    words = counts_of({" 학교에서": 9, " 집에서": 5, " 집": 3})
    assert (
        train_bpe(words, vocab_size=256 + 7 + 4, chosen=True).merges == train_bpe(words, vocab_size=256 + 7 + 4).merges
    )


def test_a_pair_that_has_become_rare_is_not_joined():
    """Where a join gains nothing at the places that a pair lost, its gain is the old one."""
    value = np.array([256, 256, 256, 256, 0], np.int32)
    words = PairCounter(["ab", "cab"], [1, 2], ["a", "b", "c"], value=value)
    queue = GainQueue(words, lengths=np.ones(5, np.int32), longest=9, lowest=2)
    assert queue.best == words.find(2, 0), "c a gains two places"
    assert queue.merge(queue.best, 3) is None, "a b occurs once, and c a + b gains nothing"
