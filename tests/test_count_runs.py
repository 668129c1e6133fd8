"""Runs in compiled code are the runs of the plain functions: cut alike, with the same parts and the same cuts."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import korean_text

from koktok.count import Counts, words_of
from koktok.count.rows import Rows
from koktok.count.runs import Known, count_runs
from koktok.count.table import Table
from koktok.segment.segmented import Cut, Kind, SegmentedCounts
from koktok.text.normalize import Folds, Normalizer
from koktok.text.pretokenize import Pattern
from koktok.train.superwords import known_parts, runs_of, segment_runs
from koktok.waist import runs_with_documents

WORDS = [
    "갈",
    "수",
    "있다.",
    "ㅋㅋ",
    "뭐?)",
    "네…",
    "“예.”",
    "'응!'",
    "‘어?’",
    "「끝。」",
    "(",
    ".",
    '"',
    "a.b",
    "3.",
    "『네!』",
    "😀.",
    "]",
]
lines_of_words = st.lists(
    st.lists(st.tuples(st.sampled_from(["", " ", " ", "  "]), st.sampled_from(WORDS)), max_size=12).map(
        lambda pairs: "".join(space + word for space, word in pairs)
    ),
    max_size=8,
)
any_lines = lines_of_words | st.lists(korean_text().map(lambda text: text.replace("\n", " ")), max_size=5)


@given(any_lines, st.integers(1, 9), st.data())
@example(["  ", " 가.  ", "", "가 나 "], 1, None)
def test_runs_are_those_of_the_plain_function(lines: list[str], longest: int, data: st.DataObject | None) -> None:
    held = [data is not None and data.draw(st.booleans()) for _ in lines]
    n: Counter[str] = Counter()
    held_out: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for line, out in zip(lines, held, strict=True):
        found = list(runs_of(line, longest=sys.maxsize if out else longest))
        (held_out if out else n).update(found)
        documents.update(set() if out else set(found))
    table = Table(2)
    flags = np.array([2 | out for out in held], np.uint8)
    count_runs(table, "".join(f"{line}\n" for line in lines).encode(), flags, longest)
    rows = table.rows()
    words = rows.words()
    assert words == sorted(n | held_out)
    for column, wanted in ((rows.n, n), (rows.held, held_out), (rows.documents, documents)):
        assert column.tolist() == [wanted[word] for word in words]


def plain_cuts(run: str, words: SegmentedCounts) -> list[tuple[int, int, float]]:
    """The cuts of a run in a few lines."""
    known = {word: i for i, word in enumerate(words.words)}
    found, at = [], 0
    for word in words_of(run):
        found += [(at + cut.offset, int(cut.kind), cut.confidence) for cut in words.cuts(known[word])]
        at += len(word)
    return found


@given(any_lines, st.sampled_from([Folds(), Folds(repeats=2), Folds(quotes=True, fullwidth=True)]), st.data())
def test_the_short_way_prepares_runs_as_the_long_one(lines: list[str], folds: Folds, data: st.DataObject) -> None:
    digits = data.draw(st.sampled_from(["free", "single", "groups"]))
    normalizer, pattern = Normalizer(folds), Pattern(digits=digits, superwords=True)
    runs = Counter(run for line in lines for run in runs_of(line))
    order = sorted(runs)
    raw = Counts(
        tuple(order), np.array([runs[run] for run in order], np.uint64), np.arange(1, len(order) + 1, dtype=np.uint64)
    )
    every = sorted(
        {word for run in order for chunk in pattern.pretokenize(normalizer(run)) for word in words_of(chunk)}
    )
    kept = [word for word in every if data.draw(st.booleans())]
    items = [(word, [Cut(i, Kind(i % 5), 0.5) for i in range(1, min(3, len(word)))], 1) for word in kept]
    words = SegmentedCounts.from_items(items)
    n: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for i, run in enumerate(order, 1):
        for chunk in pattern.pretokenize(normalizer(run)):
            for part in known_parts(chunk, set(kept)):
                n[part] += runs[run]
                documents[part] += i
    found, found_documents = runs_with_documents(raw, normalizer, pattern, words)
    assert list(found.words) == sorted(n)
    assert found_documents is not None
    assert found.n.tolist() == [n[run] for run in found.words]
    assert found_documents.tolist() == [documents[run] for run in found.words]
    for i, run in enumerate(found.words):
        assert [(cut.offset, int(cut.kind), cut.confidence) for cut in found.cuts(i)] == plain_cuts(run, words)


def test_a_run_with_a_word_that_nobody_cut_is_named() -> None:
    from koktok.errors import InputError

    words = SegmentedCounts.from_marked({"그|는": 1, " 집": 1})
    with pytest.raises(InputError, match="the run '그는 집 사람' has the word ' 사람'"):
        segment_runs(Counts.from_mapping({"그는 집": 1, "그는 집 사람": 1}), words)


def test_many_stretches_grow_the_table_and_count_once() -> None:
    """Room is asked for in the middle of a run; what was counted before is not counted again."""
    runs = Rows.of(
        {"가": 1} | {f"가{i} 나{i} 모름 다{i} 라{i}": i + 1 for i in range(3000)}
    )  # the first shifts the others
    known = Known(Rows.of({"가": 1} | {w: 1 for i in range(3000) for w in (f"가{i}", f" 나{i}", f" 다{i}", f" 라{i}")}))
    rows = known.stretches(runs)
    assert len(rows) == 6001
    found = dict(zip(rows.words(), rows.n.tolist(), strict=True))
    assert all(found[f"가{i} 나{i}"] == found[f" 다{i} 라{i}"] == i + 1 for i in range(3000))
