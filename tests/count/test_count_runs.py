"""Runs of words are the runs of the plain functions: cut alike, with the same parts and the same cuts."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference.lines import known_parts, runs_of
from strategies import korean_text

from koktok.count import Counts, prepared, words_of
from koktok.count.prepared import prepare_runs
from koktok.count.shards import RUN, tables_of
from koktok.segment.segmented import BoundaryKind, Cut, SegmentedCounts
from koktok.text.blocks import Block
from koktok.text.normalize import Folds, Normalizer
from koktok.text.pretokenize import Pattern
from koktok.training.superwords import segment_runs

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


@given(any_lines, st.data())
@example(["  ", " 가.  ", "", "가 나 ", "가 " * 20, "다. . .) (가.) 나… “다?”라 3.5"], None)
def test_runs_are_those_of_the_plain_function(lines: list[str], data: st.DataObject | None) -> None:
    """In documents of several lines too; lines that are held out are cut at sentence ends alone."""
    held = [data is not None and data.draw(st.booleans()) for _ in lines]
    ends = [data is None or data.draw(st.booleans()) for _ in lines]
    n: Counter[str] = Counter()
    held_out: Counter[str] = Counter()
    documents: dict[str, set[int]] = {}
    for i, (line, out) in enumerate(zip(lines, held, strict=True)):
        found = list(runs_of(line, longest=sys.maxsize if out else RUN))
        (held_out if out else n).update(found)
        for run in [] if out else found:
            documents.setdefault(run, set()).add(sum(ends[:i]))
    text = "".join(f"{line}\n" for line in lines).encode()
    table = []
    if lines:
        block = Block(text, np.array(ends, np.bool_))
        counted = tables_of([(block, np.array(held, np.bool_))], runs=True)[1]
        table = counted.select("word", "n", "documents", "held").rows()
    words = sorted(n | held_out)
    assert table == [(word, n[word], len(documents.get(word, ())), held_out[word]) for word in words]


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
    digits = data.draw(st.sampled_from(["free", "single", "three"]))
    normalizer, pattern = Normalizer(folds), Pattern(digits=digits, superwords=True)
    runs = Counter(run for line in lines for run in runs_of(line))
    order = sorted(runs)
    number = np.arange(1, len(order) + 1, dtype=np.uint64)
    raw = Counts(tuple(order), np.array([runs[run] for run in order], np.uint64), number, seen=3 * number)
    every = sorted(
        {word for run in order for chunk in pattern.pretokenize(normalizer(run)) for word in words_of(chunk)}
    )
    kept = [word for word in every if data.draw(st.booleans())]
    items = [(word, [Cut(i, BoundaryKind(i % 5), 0.5) for i in range(1, min(3, len(word)))], 1) for word in kept]
    words = SegmentedCounts.from_items(items)
    n: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for i, run in enumerate(order, 1):
        for chunk in pattern.pretokenize(normalizer(run)):
            for part in known_parts(chunk, set(kept)):
                n[part] += runs[run]
                documents[part] += i
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "_CHUNK", data.draw(st.integers(1, 9)))
        made = prepare_runs(raw, normalizer, pattern, words.words)
    found, found_documents = segment_runs(made, words), made.documents
    assert list(found.words) == sorted(n)
    assert found.n.tolist() == [n[run] for run in found.words]
    assert found_documents.tolist() == [documents[run] for run in found.words]
    assert found.seen.tolist() == [3 * documents[run] for run in found.words]
    for i, run in enumerate(found.words):
        assert [(cut.offset, int(cut.kind), cut.confidence) for cut in found.cuts(i)] == plain_cuts(run, words)
