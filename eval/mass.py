"""How much has to be analysed, and what becomes of the rest: vocabularies from a head that Kiwi read and a tail that it did not.

    python -m eval.mass DATA [--size 32000] [--masses 0.95,0.9,0.8] [--tails endings,model,dropped,whole]
        [--report FILE]

Text, held-out lines and gold cuts are those of eval.trainers. The head are the most frequent words that cover a share of the
running ones. Words of the tail are cut by the endings of the head (what `--segment-mass` does), cut as a tokenizer trained
on the head alone cuts them, left out, or left whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from eval import trainers
from eval.machine import Told, machine
from eval.texts import GOLDS, data_of
from koktok.count import count_words
from koktok.count.prepared import prepare
from koktok.recipe import Recipe
from koktok.segment import Policy, bare, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.segment.tail import head_of
from koktok.segment.workers import supervised
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.tokenizer import Tokenizer
from koktok.train.dispatch import Job, train

POLICY, PATTERN = Policy.parse("morphemes"), Pattern(digits="single")


def tokenizer_of(counts: SegmentedCounts, recipe: Recipe) -> Tokenizer:
    return Tokenizer(recipe, train(Job(counts, recipe, PATTERN)).vocab, {})


def without(whole: SegmentedCounts, head: set[str], tail: str, recipe: Recipe) -> SegmentedCounts:
    """The words of the head with their cuts, those of the tail as `tail` says."""

    def items(how: str, model: Tokenizer | None = None) -> Iterator[tuple[str, list[Cut], int]]:
        for word, cuts, n in whole.items():
            text = bare(word)
            if not text or text in head:
                yield word, cuts, n
            elif how == "whole":
                yield word, [], n
            elif model is not None:
                starts = {start for start, _ in model.encode(word).offsets}
                yield word, [Cut(at) for at in sorted(starts) if word[:at].strip(" ")], n

    if tail != "model":
        return SegmentedCounts.from_items(items(tail))
    model = tokenizer_of(SegmentedCounts.from_items(items("dropped")), recipe)
    return SegmentedCounts.from_items(items("model", model))


def row(name: str, tokenizer: Tokenizer, data: trainers.Data, analysed: int) -> str:
    v = trainers.measured(name, lambda line: tokenizer.encode(line).offsets, data).values
    figures = [v[f"boundary_{part}"].value for part in ("precision", "recall")]
    shown = " | ".join(f"{figure:.3f}" for figure in figures)
    return f"| {name} | {analysed:,} | {v['fertility'].value:.4f} | {shown} | {v['boundary_f1'].value:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--size", type=int, default=32_000)
    parser.add_argument("--masses", default="0.95,0.9,0.8")
    parser.add_argument("--tails", default="endings,model,dropped,whole")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    recipe = Recipe.build({"train": {"vocab_size": given.size}, "holdout": 0.0})
    data = trainers.read(given.data, GOLDS.split(",")[:1])
    counts = prepare(count_words(data.train), Normalizer(), PATTERN)
    segmenter = CachedSegmenter(supervised("kiwi"))
    whole = segment_counts(counts, segmenter, POLICY)
    n: dict[str, int] = {}
    for word, times in counts.items():
        if text := bare(word):
            n[text] = n.get(text, 0) + times
    tell = Told(given.report)
    tell(f"{machine()}\n\n| mass, tail | analysed | tokens/eojeol | P | R | F1 |\n|---|---|---|---|---|---|")
    tell(row("1", tokenizer_of(whole, recipe), data, len(n)))
    for mass in map(float, given.masses.split(",")):
        head = head_of(n, mass)
        for tail in given.tails.split(","):
            cut = (
                segment_counts(counts, segmenter, POLICY, mass=mass)
                if tail == "endings"
                else without(whole, set(head), tail, recipe)
            )
            tell(row(f"{mass}, {tail}", tokenizer_of(cut, recipe), data, len(head)))


if __name__ == "__main__":
    main()
