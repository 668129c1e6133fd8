"""The BPE trainer: parity with Hugging Face and SentencePiece, stages, determinism, errors."""

import gzip
import io
import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_bpe
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import koktok.training.bpe
from koktok.count import count_words
from koktok.errors import RecipeError
from koktok.files.sentencepiece_model import ModelProto
from koktok.model.models import BpeModel
from koktok.model.vocab import spell, unspell
from koktok.recipe import Recipe
from koktok.segment import Policy, segment_counts
from koktok.segment.kiwi import KiwiSegmenter
from koktok.segment.segmented import Cut, Kind, SegmentedCounts
from koktok.training.alphabet import joined_bytes
from koktok.training.bpe import Stage, curriculum
from koktok.training.job import Job
from koktok.training.lattice import TRUST
from koktok.training.log import account


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


def spm_pieces(words: dict[str, int], merges: int, max_length: int = 16) -> list[str]:
    """Merged pieces of SentencePiece's trainer on exactly these words, ▁ spelled as a space."""
    model = io.BytesIO()
    size = len({char for word in words for char in word}) + merges + 1
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{word}\t{n}" for word, n in words.items()]),
        input_format="tsv",
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        max_sentencepiece_length=max_length,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        split_by_unicode_script=False,
        split_by_number=False,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        pad_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    proto = ModelProto(model.getvalue())
    return [row.piece.replace("▁", " ") for row in proto.pieces[1:] if len(row.piece) > 1]


def real_words(folder: Path, lines: int) -> dict[str, int]:
    """Whitespace words of real text with their leading space; none holds ▁, none is longer than SentencePiece reads."""
    found: Counter[str] = Counter()
    for name in ("petitions.txt.gz", "reviews_movie_nsmc.txt.gz"):
        with gzip.open(folder / name, "rt", encoding="utf-8") as file:
            for _, line in zip(range(lines), file, strict=False):
                found.update(" " + word for word in line.split() if "▁" not in word)
    return dict(found)


def train(words: dict[str, int], merges: int, **options: object) -> list[tuple[str, str]]:
    counts = counts_of(words)
    size = 256 + len({char for word in words for char in word}) + merges
    return list(train_bpe(counts, vocab_size=size, **{"min_count": 1, **options}).merges)


def naive(words: dict[str, int], merges: int) -> list[tuple[str, str]]:
    """Count everything anew for every merge; ties by the pair."""
    rows = [(list(word), n) for word, n in words.items()]
    made: list[tuple[str, str]] = []
    while len(made) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, n in rows:
            for pair in pairwise(parts):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        made.append(best)
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
def test_ties_hf_gives_hugging_faces_merges(words: dict[str, int], merges: int) -> None:
    assert train(words, merges, ties="hf", max_length=99) == hf_merges(words, merges)


spm_tables = st.dictionaries(
    st.text("가나ㅋa", min_size=1, max_size=8).map(lambda word: " " + word), st.integers(1, 6), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(spm_tables, st.integers(1, 10))
def test_ties_spm_gives_sentencepieces_pieces(words: dict[str, int], merges: int) -> None:
    made = ["".join(pair) for pair in train(words, merges, ties="spm")]
    assert made == spm_pieces(words, merges)[: len(made)]


@pytest.mark.parametrize("lines", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_parity_on_real_text(shared_text: Path, lines: int) -> None:
    words = real_words(shared_text, lines)
    merges = 2000 if lines < 1000 else 20_000
    assert train(words, merges, ties="hf", max_length=99) == hf_merges(words, merges)
    short = {word: n for word, n in words.items() if len(word) < 1000}
    made = ["".join(pair) for pair in train(short, merges, ties="spm")]
    assert len(made) == merges
    assert made == spm_pieces(short, merges)


@pytest.mark.parametrize("lines", [300])
def test_merges_over_bytes_are_those_over_characters(shared_text: Path, lines: int) -> None:
    counts = counts_of(real_words(shared_text, lines))
    characters = {char for word in counts.words for char in word}
    joined = joined_bytes(characters)
    plain = train_bpe(counts, vocab_size=256 + len(characters) + 2000)
    spelled = train_bpe(counts, vocab_size=256 + len(joined) + 2000, alphabet="bytes")
    assert spelled.vocab.kind == "bpe-bytes"
    assert spelled.merges == plain.merges
    merged = [spell("".join(pair)) for pair in plain.merges]
    assert spelled.vocab.pieces[256:] == (*joined, *merged)


known, strange = "가각나é…漢😀a ", "갂뷁字😁ö"


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(known, min_size=1, max_size=6), st.integers(1, 9), min_size=1), st.text(known + strange))
def test_a_piece_ends_inside_a_character_only_as_a_step_to_one(words: dict[str, int], text: str) -> None:
    """Law 17: text of characters that have a piece holds neither a part of one nor a step."""
    size = 256 + len(joined_bytes(known)) + 6
    vocab = train_bpe(counts_of(words), vocab_size=size, alphabet="bytes", characters=known, min_count=1).vocab
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


@settings(max_examples=100, deadline=None)
@given(tables | laugh, st.sampled_from(["pair", "hf", "spm"]), st.randoms(use_true_random=False))
def test_run_time_makes_the_last_state_of_the_training(words: dict[str, int], ties: str, rng: random.Random) -> None:
    cut = SegmentedCounts.from_items(
        (word, [Cut(i) for i in range(1, len(word)) if rng.random() < 0.3], n) for word, n in words.items()
    )
    for stages in (curriculum(0.0), curriculum(0.5)):
        result = train_bpe(cut, vocab_size=256 + 4 + 12, characters="가나ㅋ ", stages=stages, ties=ties, min_count=1)
        model = BpeModel(result.vocab)
        assert result.log["stages"][-1]["tokens"] == sum(n * len(model.encode(word)[0]) for word, n in words.items())
        assert len(set(result.vocab.pieces)) == len(result.vocab.pieces)
        for word in words:
            encoded = [result.vocab.tokens[i] for i in model.encode(word)[0]]
            assert "".join(encoded) == word


CUT = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서|는": 3, " 학교|는": 3, " 집|은": 2})


def merged(result: object) -> list[str]:
    return ["".join(pair) for pair in result.merges]  # type: ignore[attr-defined]


def test_a_stage_inside_morphemes_never_joins_over_a_cut() -> None:
    one = train_bpe(CUT, vocab_size=999, stages=curriculum(1.0), min_count=1)
    assert merged(one) == [" 학", " 학교", "에서", " 집"]
    free = train_bpe(CUT, vocab_size=999, min_count=1)
    assert " 집에서" in merged(free)


def test_what_a_stage_cannot_use_goes_to_the_next() -> None:
    both = train_bpe(CUT, vocab_size=256 + 8 + 6, stages=curriculum(0.9), min_count=1)
    assert [record["merges"] for record in both.log["stages"]] == [4, 2]
    assert [record["wanted"] for record in both.log["stages"]] == [5, 2]
    assert merged(both)[:4] == [" 학", " 학교", "에서", " 집"]
    assert both.log["stages"][0]["parts"] == 5
    assert (both.log["stages"][0]["first_count"], both.log["stages"][0]["last_count"]) == (7, 5)
    assert both.log["stages"][1]["parts"] == 4


def test_a_stage_swallows_the_kinds_that_it_names() -> None:
    counts = SegmentedCounts.from_items(
        [("먹었다", [Cut(1, Kind.EOMI), Cut(2, Kind.EOMI_CHAIN)], 5), ("집에", [Cut(1, Kind.JOSA)], 9)]
    )
    stages = (Stage("endings", 1.0, frozenset({Kind.EOMI_CHAIN})),)
    assert merged(train_bpe(counts, vocab_size=999, stages=stages)) == ["었다"]


def test_a_refused_piece_is_never_made_but_longer_ways_around_it_are() -> None:
    words = counts_of({"가나다": 5})
    result = train_bpe(words, vocab_size=999, crosses=lambda piece: piece == "가나")
    assert merged(result) == ["나다", "가나다"]
    assert result.log["stages"][0]["refused"] == 1


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        # aa and then bb are made first; (aa, aac), (bb, c) and (x, b) stand 5 times each.
        ("pair", ("aa", "d")),  # the smallest left string
        ("hf", ("x", "b")),  # the oldest symbols: characters come before pieces
        ("spm", ("x", "b")),  # the shortest piece
    ],
)
def test_the_tie_rules_on_a_table(ties: str, expected: tuple[str, str]) -> None:
    words = {"aad": 5, "bbc": 5, "xb": 5, "aa": 9, "bb": 8}
    assert train(words, 3, ties=ties) == [("a", "a"), ("b", "b"), expected]


# ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def text(mini: list[str], kiwi: KiwiSegmenter) -> SegmentedCounts:
    return segment_counts(count_words(mini), kiwi, Policy.parse("morphemes"))


@pytest.mark.parametrize("kind", ["bpe", "bpe-bytes"])
@pytest.mark.parametrize("asked", [{"keep": 0.7}, {"tokens_per_eojeol": 2.4}])
def test_what_is_asked_for_is_met(text: SegmentedCounts, kind: str, asked: dict[str, float]) -> None:
    recipe = Recipe().changed(train={"model": kind, "vocab_size": 4000, **asked})
    learnt = koktok.training.bpe.train_bpe(Job.of(text, recipe, recipe.pattern))
    dials, model = learnt.log["dials"], BpeModel(learnt.vocab)
    assert dials["met"]
    kept = there = tokens = 0.0
    for word, cuts, n in text.items():
        ids, spans = model.encode(word)
        tokens += n * len(ids)
        edges = {start for start, _ in spans}
        for cut in cuts:
            worth = n * (0.0 if cut.kind.label == "punctuation" else TRUST.get(cut.kind.label, TRUST["rest"]))
            there, kept = there + worth, kept + worth * (cut.offset in edges)
    assert dials["all"] == pytest.approx(kept / there)
    assert dials["tokens_per_eojeol"] == pytest.approx(tokens / text.total)
    found = min(dials[name] for name in ("josa", "eomi", "all")) if "keep" in asked else dials["tokens_per_eojeol"]
    assert found == pytest.approx(next(iter(asked.values())), abs=0.01)


def test_presets_of_bpe(text: SegmentedCounts) -> None:
    recipe = Recipe().changed(train={"model": "bpe-bytes", "vocab_size": 5000})
    kept = {}
    for preset in ("short", "lm", "aligned"):
        learnt = koktok.training.bpe.train_bpe(Job.of(text, recipe.changed(preset=preset), recipe.pattern))
        rows = account(text, learnt.vocab)["boundaries"].values()
        kept[preset] = 1 - sum(row["swallowed"] for row in rows) / sum(row["n"] for row in rows)
    assert kept["short"] <= kept["lm"] <= kept["aligned"]
    assert kept["short"] < kept["aligned"]
    shared = recipe.changed(share=1.0)
    assert koktok.training.bpe.train_bpe(Job.of(text, shared, recipe.pattern)).vocab == learnt.vocab


def test_every_piece_is_used_or_a_step_to_another_one(text: SegmentedCounts) -> None:
    """Law 15."""
    recipe = Recipe().changed(train={"model": "bpe-bytes", "vocab_size": 5000, "share": 0.5})
    job = Job.of(text, recipe, recipe.pattern)
    learnt = koktok.training.bpe.train_bpe(job)
    encode = BpeModel(learnt.vocab).encode
    used = {learnt.vocab.tokens[i] for word in text.words for i in encode(word)[0]}
    steps = {part for pair in learnt.merges for part in pair}
    dead = {"".join(pair) for pair in learnt.merges} - steps - set(map(unspell, used))
    assert dead <= set(job.joined)
    assert learnt.vocab.size == 5000


@pytest.mark.parametrize("other", [{"keep": 0.6}, {"tokens_per_eojeol": 2.0}])
def test_a_share_excludes_a_target(other: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="set the same option"):
        Recipe.build({"train": {"model": "bpe", "share": 0.8, **other}})
    Recipe.build({"train": {"model": "unigram", "share": 0.8, **other}})  # as in folders of an older koktok
