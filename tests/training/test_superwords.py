"""Superwords: the second table, its rules, and what the trainer makes of it."""

import pytest
from reference.lines import runs_of
from reference.trainers import train_unigram

import koktok.training.price
from koktok.count import Counts, words_of
from koktok.model.models import UnigramModel
from koktok.segment.segmented import SegmentedCounts
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.superwords import SuperwordPolicy, crosses_space, eojeol_counts, segment_runs

WORDS = {"그|는": 1, " 사람|은": 1, " 할": 1, " 수": 1, " 있|다.": 1, " 없|다.": 1, " 먹|을": 1, " 갈": 1}
LINES = ["그는 할 수 있다.", "그는 갈 수 없다. 그는 먹을 수 있다.", "그는 사람은"] * 10


def words() -> SegmentedCounts:
    return SegmentedCounts.from_marked({**WORDS, " 그|는": 1})


def runs() -> SegmentedCounts:
    return segment_runs(Counts.from_mapping({run: 20 for line in LINES for run in runs_of(line)}), words())


def test_cuts_of_runs_are_those_of_their_words():
    found = {run: runs().pieces(i) for i, run in enumerate(runs().words)}
    assert found["그는 할 수 있다."] == ["그", "는 할 수 있", "다."]
    assert found["그는 갈 수 없다."] == ["그", "는 갈 수 없", "다."]


def test_frequency_is_that_of_the_eojeol():
    counts = SegmentedCounts.from_marked({"가|나 다|라": 1, "가|나": 3})
    assert eojeol_counts(counts).tolist() == pytest.approx([8e5, 8e5, 2e5])


def test_superwords_swallow_no_cut_and_end_at_edges():
    rule = SuperwordPolicy(min_count=20, min_runs=2)
    found = [p for p in mine(runs(), CandidatePolicy(min_count=10, superwords=rule)).pieces if crosses_space(p)]
    assert " 수 있" in found
    assert "는 할" not in found, "one run only"
    assert not any("있다" in p or "그는" in p or "." in p or p.endswith(" ") for p in found)
    rare = SuperwordPolicy(min_count=20, min_runs=1)
    more = [p for p in mine(runs(), CandidatePolicy(min_count=10, superwords=rare)).pieces if crosses_space(p)]
    assert "는 할 수 있" in more
    assert not any("그는" in p or "있다" in p for p in more), "a cut of an eojeol lies inside"
    assert not any(crosses_space(p) for p in mine(runs(), CandidatePolicy(min_count=10)).pieces)


def test_share_is_a_ceiling():
    repeated = segment_runs(
        Counts.from_mapping(
            {run: 20 + i for i, run in enumerate(sorted({r for line in LINES for r in runs_of(line)}))}
        ),
        words(),
    )
    bare, some = (
        train_unigram(
            words(),
            runs=repeated,
            superwords=SuperwordPolicy(share=share, min_count=20, min_runs=1),
            vocab_size=290,
            min_count=10,
            preset="aligned",
        ).vocab
        for share in (0.0, 0.2)
    )
    assert not any(map(crosses_space, bare.pieces))
    assert 0 < sum(map(crosses_space, some.pieces)) <= 0.2 * len(some.pieces)


def test_inner_superwords_swallow_cuts_where_that_pays():
    rule = SuperwordPolicy(min_count=20, min_runs=1, inner=True)
    found = [p for p in mine(runs(), CandidatePolicy(min_count=10, superwords=rule)).pieces if crosses_space(p)]
    assert "그는 할" in found
    made = [
        train_unigram(
            words(),
            runs=runs(),
            superwords=SuperwordPolicy(share=0.9, min_count=20, min_runs=1, inner=True),
            vocab_size=278,  # more would have to swallow: nothing else is left that some run uses
            min_count=10,
            preset=preset,
        ).vocab.pieces
        for preset in ("aligned", "short")
    ]
    swallowing = [sum("그는 " in piece or "는 먹을" in piece for piece in pieces) for pieces in made]
    assert swallowing[0] < swallowing[1], "a cut costs more than a token when aligned"


def test_the_log_counts_the_gaps_inside_tokens():
    policy = SuperwordPolicy(share=0.9, min_count=20, min_runs=1)
    options = {"vocab_size": 290, "min_count": 10, "preset": "aligned"}
    made = train_unigram(words(), runs=runs(), superwords=policy, **options)
    model, n, inside = UnigramModel(made.vocab), 0, 0
    for run, _, times in runs().items():
        borders = {end for _, end in model.encode(run)[1]}
        for at in (i for i, char in enumerate(run) if char == " " and i):
            n += times
            inside += times * borders.isdisjoint({at, at + 1})
    assert made.log["gaps"] == {"n": n, "inside": inside}
    assert inside
    assert "gaps" not in train_unigram(words(), **{**options, "vocab_size": 271, "min_count": 1}).log


def by_chance_and_together() -> tuple[SegmentedCounts, SegmentedCounts]:
    """Words, and runs in which 수 stands before 있 alone, and 오 before each of eight words, which stand behind 우, too."""
    others = [f" {syllable}" for syllable in "가나다라마바사아"]
    lines = {"할 수 있": 40, **{f"오{word}": 100 for word in others}, **{f"우{word}": 100 for word in others}}
    return (
        SegmentedCounts.from_marked({word: 40 for line in lines for word in words_of(line)}),
        SegmentedCounts.from_marked(lines),
    )


def test_in_bits_words_that_meet_by_chance_save_nothing(monkeypatch):
    monkeypatch.setattr(koktok.training.price, "ACROSS", 1.0)
    counts, table = by_chance_and_together()
    chosen = [
        [
            piece
            for piece in train_unigram(
                counts,
                runs=table,
                superwords=SuperwordPolicy(share=0.12, min_runs=1, lexical=0.0),  # two of 18 pieces
                price=price,
                vocab_size=274,
                preset="short",
            ).vocab.pieces
            if crosses_space(piece)
        ]
        for price in ("tokens", "bits")
    ]
    assert len(chosen[0]) == 2
    assert all(piece[0] in "오우" for piece in chosen[0]), "such a piece saves 100 tokens, and 할 수 있 80"
    assert chosen[1] == ["할 수 있"]
