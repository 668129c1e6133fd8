"""The last stage of the BPE curriculum: chains of tokens across spaces, floors, and places given back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.trainers import train_bpe

from koktok.count import Counts, words_of
from koktok.model.models import BpeModel
from koktok.model.vocab import unspell
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.training.bpe import curriculum
from koktok.training.superwords import SuperwordPolicy, crosses_space, segment_runs

MARKED = ["그|는 할 수 있|다.", "너|는 갈 수 없|다.", "나|는 볼 수 있|다.", "그|는 올 수 있|다.", "너|는 살 수 있|다."]
OPEN = SuperwordPolicy(share=0.5, min_count=1, min_runs=1, min_documents=1)


def tables(marked: list[str] = MARKED, n: int = 5) -> tuple[SegmentedCounts, SegmentedCounts]:
    """Words and runs of marked lines."""
    runs = SegmentedCounts.from_marked(dict.fromkeys(marked, n))
    words: dict[str, list[int]] = {}
    for line in marked:
        at, bare = 0, line.replace("|", "")
        offsets = SegmentedCounts.from_marked({line: 1}).cuts(0)
        for word in words_of(bare):
            words[word] = [cut.offset - at for cut in offsets if at < cut.offset < at + len(word)]
            at += len(word)
    return SegmentedCounts.from_items((w, [Cut(o) for o in cuts], n) for w, cuts in words.items()), runs


def train(policy: SuperwordPolicy, *, merges: int, alphabet: str = "chars", documents: list[int] | None = None, **more):
    words, runs = tables()
    letters = {char for word in words.words for char in word}
    size = merges + 256 + (0 if alphabet == "bytes" else len(letters))
    return train_bpe(
        words,
        vocab_size=size,
        stages=more.pop("stages", curriculum(1.0)),
        min_count=1,
        runs=runs,
        superwords=policy,
        documents=documents,
        alphabet=alphabet,
        **more,
    )


@pytest.mark.parametrize("alphabet", ["chars", "bytes"])
def test_gaps_are_joined_and_no_cut_is_swallowed(alphabet: str) -> None:
    result = train(OPEN, merges=120, alphabet=alphabet)
    pieces = [unspell(piece) if alphabet == "bytes" else piece for piece in result.vocab.pieces]
    wide = [piece for piece in pieces if crosses_space(piece)]
    assert " 수 있" in wide
    assert "는 할 수 있" in wide
    assert not any("있다" in piece or "그는" in piece or "." in piece or "\ufffd" in piece for piece in wide)
    assert [record["stage"] for record in result.log["stages"]][-1] == "superword"
    assert result.log["stages"][-1]["merges"] == len(wide)


@pytest.mark.parametrize(
    ("policy", "documents", "made"),
    [
        (OPEN, None, True),
        (SuperwordPolicy(share=0.5, min_count=20, min_runs=1, min_documents=1), None, True),  # it stands 4 · 5 times
        (SuperwordPolicy(share=0.5, min_count=21, min_runs=1, min_documents=1), None, False),
        (SuperwordPolicy(share=0.5, min_count=1, min_runs=4, min_documents=1), None, True),
        (SuperwordPolicy(share=0.5, min_count=1, min_runs=5, min_documents=1), None, False),
        (SuperwordPolicy(share=0.5, min_count=1, min_runs=1, min_documents=99), None, True),  # nobody counted them
        (SuperwordPolicy(share=0.5, min_count=1, min_runs=1, min_documents=8), [2] * 5, True),
        (SuperwordPolicy(share=0.5, min_count=1, min_runs=1, min_documents=9), [2] * 5, False),
    ],
)
def test_floors(policy: SuperwordPolicy, documents: list[int] | None, *, made: bool) -> None:
    assert (" 수 있" in train(policy, merges=40, documents=documents).vocab.pieces) is made


def test_places_that_floors_leave_free_go_back_inside_eojeols() -> None:
    high = SuperwordPolicy(share=0.5, min_count=20, min_runs=4, min_documents=1)
    result = train(high, merges=10)  # five and five are wanted; one superword is frequent enough
    assert ["".join(pair) for pair in result.merges if crosses_space("".join(pair))] == [" 수 있"]
    assert result.merges[-1] == (" 수", " 있"), "superwords stand last"
    assert [record["merges"] for record in result.log["stages"]] == [5, 4, 1]
    none = train(SuperwordPolicy(share=0.5, min_count=999), merges=8)
    assert [record["merges"] for record in none.log["stages"]] == [4, 4, 0]


marked_lines = st.lists(
    st.lists(
        st.text("가나다|", min_size=1, max_size=5).map(lambda w: w.strip("|").replace("||", "|")),
        min_size=2,
        max_size=4,
    )
    .filter(all)
    .map(" ".join),
    min_size=1,
    max_size=6,
    unique_by=lambda line: line.replace("|", ""),
)


@settings(max_examples=80, deadline=None)
@given(marked_lines, st.integers(0, 25))
def test_what_training_joined_swallows_no_cut_anywhere(lines: list[str], merges: int) -> None:
    # One analysis a word, as in real counts: the first line that has a word decides.
    known: dict[str, str] = {}
    lines = [" ".join(known.setdefault(word.replace("|", ""), word) for word in line.split(" ")) for line in lines]
    lines = list(dict.fromkeys(lines))
    runs = SegmentedCounts.from_marked(dict.fromkeys(lines, 3))
    spaced = {word: known[word.strip(" ")] for line in lines for word in words_of(line.replace("|", ""))}
    words = SegmentedCounts.from_marked({(" " if w[0] == " " else "") + m: 3 for w, m in spaced.items()})
    assert segment_runs(Counts(runs.words, runs.n), words).words == runs.words
    result = train_bpe(
        words,
        vocab_size=256 + 4 + merges,
        characters="가나다 ",
        stages=curriculum(1.0),
        min_count=1,
        runs=runs,
        superwords=OPEN,
    )
    model = BpeModel(result.vocab)
    for piece in result.vocab.pieces:
        if not crosses_space(piece):
            continue
        stands = [
            (i, at)
            for i, run in enumerate(runs.words)
            for at in range(len(run) - len(piece) + 1)
            if run.startswith(piece, at)
        ]
        fine = [
            at
            for i, at in stands
            if not any(at < cut.offset < at + len(piece) for cut in runs.cuts(i))
            and {at, at + len(piece)} <= edges(runs, i)
        ]
        assert fine, f"{piece!r} was made where a cut lies inside"
    for run in runs.words:
        ids, spans = model.encode(run)
        assert "".join(result.vocab.tokens[i] for i in ids) == run
        assert all(a[1] == b[0] for a, b in pairwise(spans))


def edges(runs: SegmentedCounts, i: int) -> set[int]:
    """Where a word or a cut begins or ends."""
    run, at, found = runs.words[i], 0, {cut.offset for cut in runs.cuts(i)}
    for word in words_of(run):
        found |= {at, at + 1 if word[0] == " " else at, at + len(word)}
        at += len(word)
    return found
