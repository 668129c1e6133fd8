"""From counted text to the words that a training uses: normalized, split into pretokens, sampled, and cut by an analyser.

No table of all distinct words or runs is in memory. Counted ranges are prepared one after the other, and go to temporary files
where there are many; of the sums a sample is drawn as they come (`koktok.count.sample`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from koktok.count import Counts
from koktok.count.counting import CountResult, SourceCounts
from koktok.count.counts import BY_WORD, WORD, Dropped, copied, summed
from koktok.count.prepared import prepare_runs, pretokens_of, texts_of
from koktok.count.sample import Sample, drawn_from, enough, sampled
from koktok.count.shards import Shard, Spill, parts
from koktok.errors import InputError
from koktok.progress import OnProgress, silent
from koktok.recipe import Recipe
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.segmented import SegmentedCounts
from koktok.training.superwords import segment_runs

RUNS = 4_000_000
"""The sample of runs grows up to this number of distinct ones (480 MB of text): 1 GB has the same tokens and F1 as with a larger
sample, and .3 % more tokens with one for 1,000,000 runs. A run takes the trainer four times the memory of a word."""

PEER_WORDS = 3_000_000
"""Up to this number all words are kept for the SentencePiece baseline of the closing table: on 77 MB without the words
that occur once, it had 1.902 tokens per eojeol in place of 1.807. Of more words it is not trained, and a sample is kept."""

MEASURED = 100_000
"""Maximum number of distinct held-out texts that are kept and analysed for the figures; ten seconds of Kiwi."""


@dataclass(frozen=True)
class TrainingWords:
    """Pretokens with counts, and runs of words for superwords; words that occur only in runs have the count 0."""

    counts: Counts
    runs: Counts | None
    eojeols: float
    notes: tuple[str, ...]


def training_words(
    counted: SourceCounts, recipe: Recipe, on_progress: OnProgress = silent
) -> tuple[CountResult, TrainingWords]:
    """Sum, prepare and sample counted words and runs for a training; what else is known of the text comes first."""
    raw, held, runs = Sample(MEASURED, whole=PEER_WORDS), Sample(MEASURED), None
    least, in_runs = recipe.train.min_count, recipe.train.superwords > 0

    def report(done: int, total: int | None) -> None:
        on_progress("normalize", done, total)

    with Spill() as spill:
        shards: list[Shard] = []
        eojeols = prepared = 0
        for part in parts(counted.shards.words, report):
            raw.add(part)
            if not in_runs:
                held.add(_held(part))
            words = _texts(part.filter(pl.col.n > 0), recipe)
            pretokens = pretokens_of(words, recipe.normalizer, recipe.pattern.within_words)
            shards.append(spill.keep(pretokens.sort(BY_WORD)))
            eojeols, prepared = eojeols + int(words["n"].sum()), prepared + int(pretokens["n"].sum())
        counted.check_total(raw.total, held.total)
        if not prepared:
            raise InputError("there is no word in the text besides web addresses", hint="--junk keep")
        counts, dropped = _at_least(least, shards) if least else (None, Dropped())
        if in_runs:
            runs = _runs(counted.shards.runs, recipe, held, None if counts is None else counts.words, on_progress)
        notes = []
        if dropped.words:
            notes.append(f"words that occur less than {least} times are not trained on: {dropped}")
        if counts is None:
            counts, distinct = _sampled(shards, runs, recipe.train.vocab_size)
            if counts.seen is not None:
                n = int((counts.n > 0).sum())
                notes.append(
                    f"{n:,} of {distinct:,} distinct words are trained on, rare words are represented by a sample"
                )
    # Superwords see more than a word, so a tokenizer with them is measured on sentences.
    reading = counted.result(raw.counts(), held.counts(), eojeols=raw.total, distinct=raw.words)
    return reading, TrainingWords(counts, runs, eojeols * counts.total / prepared, tuple(notes))


def _texts(table: pl.DataFrame, recipe: Recipe) -> pl.DataFrame:
    """The words or runs of a table as a recipe trains on them, not yet summed."""
    addresses = recipe.train.junk != "drop"
    return texts_of(table, addresses=addresses, after_a_space=recipe.pretokenize.prefix_space)


def _held(part: pl.DataFrame) -> pl.DataFrame:
    return part.select("word", n="held")


def _at_least(least: int, shards: Sequence[Shard]) -> tuple[Counts, Dropped]:
    """All words that occur so often, and a summary of the others."""
    kept, dropped = [pl.DataFrame(schema={"word": pl.String, "n": pl.UInt64})], Dropped()
    for part in parts(shards):
        words, rare = Counts.from_frame(part).pruned(least)
        kept.append(copied(words.frame))
        dropped = Dropped(dropped.words + rare.words, dropped.n + rare.n, dropped.of + rare.of)
    return Counts.from_frame(pl.concat(kept)), dropped


def _runs(
    shards: Sequence[Shard], recipe: Recipe, held: Sample, known: tuple[str, ...] | None, on_progress: OnProgress
) -> Counts:
    """The runs of a training, all or, where no words are left out, a sample; `held` gets those of held-out lines."""

    def trained_on() -> Iterator[pl.DataFrame]:
        for part in parts(shards, lambda done, total: on_progress("sample", done, total)):
            held.add(_held(part))
            yield part.filter(pl.col.n > 0).select("word", "n", "documents")

    if known is not None:
        runs = Counts.from_frame(pl.concat(trained_on()))
    else:
        sample = drawn_from(trained_on(), enough(RUNS, recipe.train.vocab_size))
        runs = sample.counts(enough(min(sample.words, RUNS), recipe.train.vocab_size))
    texts = Counts.from_frame(_texts(runs.frame, recipe))
    return prepare_runs(texts, recipe.normalizer, recipe.pattern, known)


def _sampled(shards: Sequence[Shard], runs: Counts | None, vocab_size: int) -> tuple[Counts, int]:
    """A sample of prepared words, with those of the runs, which have the count 0 if they are not in it; and how many words there are."""
    in_runs = None if runs is None else runs.column.str.extract_all(WORD).explode().unique().to_frame()
    sample, found = Sample(enough(sum(shard.rows for shard in shards), vocab_size)), []
    for part in parts(shards):
        sample.add(part)
        if in_runs is not None:
            found.append(copied(part.join(in_runs, on="word", how="semi")))
    counts = sample.counts(enough(sample.words, vocab_size))
    if in_runs is None:
        return counts, sample.words
    others = in_runs.join(counts.frame, on="word", how="anti").join(pl.concat(found), on="word", how="left")
    others = others.select("word", n=pl.lit(0, pl.UInt64), seen=pl.col.n.fill_null(0))  # 0: a word of its run only
    return Counts.from_frame(pl.concat([counts.frame, others.select(counts.frame.columns)]).sort("word")), sample.words


def cut_words(counts: Counts, recipe: Recipe, segmenter: Segmenter, on_progress: OnProgress) -> SegmentedCounts:
    """Cut words at the boundaries that a recipe uses."""
    return segment_counts(
        counts,
        segmenter,
        Policy.parse(recipe.segment.policy),
        as_jamo=recipe.spelled,
        on_progress=lambda done, total: on_progress("segment", done, total),
    )


def cut_training_words(
    words: TrainingWords, recipe: Recipe, segmenter: Segmenter, on_progress: OnProgress
) -> tuple[SegmentedCounts, SegmentedCounts | None]:
    """Cut the words of a training, and its runs with the cuts of their words."""
    segmented = cut_words(words.counts, recipe, segmenter, on_progress)
    runs = None if words.runs is None else segment_runs(words.runs, segmented)
    return segmented.where(segmented.n > 0), runs  # without the words that occur only in runs


def cut_texts(texts: Counts, recipe: Recipe, segmenter: Segmenter) -> SegmentedCounts:
    """Normalize counted words or sentences and cut their words, in syllables; of more than `MEASURED` texts a sample is used.

    Examples
    --------
    >>> from koktok.segment import Whitespace
    >>> cut_texts(Counts.from_mapping({" 집에 간다": 2}), Recipe(), Whitespace())
    SegmentedCounts(words=1, cuts=0, total=2)
    """
    texts = sampled(texts, MEASURED)
    column = texts.column.str.strip_prefix(" ") if recipe.pretokenize.prefix_space else texts.column
    normal = pl.DataFrame({"word": list(map(recipe.normalizer, column)), "n": texts.n}).filter(pl.col.word != "")
    texts = Counts.from_frame(summed([normal]))
    words = texts.column.str.extract_all(WORD).explode().unique().to_frame().with_columns(n=pl.lit(1, pl.UInt64))
    policy = Policy.parse(recipe.segment.policy)
    return segment_runs(texts, segment_counts(Counts.from_frame(words.sort("word")), segmenter, policy))
