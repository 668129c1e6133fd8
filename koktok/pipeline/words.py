"""From counted text to the words that a training uses: normalized, split into pretokens, sampled, and cut by an analyser."""

from __future__ import annotations

from dataclasses import dataclass

from koktok.count import Counts
from koktok.count.counting import CountResult
from koktok.count.counts import WORD, summed
from koktok.count.prepared import after_a_space, prepare, prepare_runs, without_addresses, words_in
from koktok.count.sample import enough, sampled, weights
from koktok.progress import OnProgress
from koktok.recipe import Recipe
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.segmented import SegmentedCounts
from koktok.training.superwords import segment_runs

RUNS = 4_000_000
"""Above this number of distinct runs (480 MB of text) a sample is drawn before they are prepared, as large as for this number. 1 GB takes
276 s and 5.7 GiB (394 and 7.5 without), with the same tokens and F1; a limit of 1,000,000 gives .3 % more tokens."""

MEASURED = 100_000
"""Maximum number of distinct held-out texts that are analysed for the figures; ten seconds of Kiwi."""


@dataclass(frozen=True)
class TrainingWords:
    """Pretokens with counts, and runs of words for superwords; words that occur only in runs have the count 0."""

    counts: Counts
    runs: Counts | None
    eojeols: float
    notes: tuple[str, ...]


def training_words(reading: CountResult, recipe: Recipe) -> TrainingWords:
    """Prepare counted words and runs for a training."""
    words, runs = reading.train, reading.runs
    if runs and not recipe.train.min_count and len(runs) > RUNS:
        runs = sampled(runs, enough(RUNS))
    if recipe.train.junk == "drop":
        words = without_addresses(words)
    if recipe.pretokenize.prefix_space:
        words, runs = after_a_space(words), runs and after_a_space(runs)
    counts = prepare(words, recipe.normalizer, recipe.pattern.within_words)
    total = round(counts.total * reading.train.total / words.total)
    counts, dropped = counts.pruned(recipe.train.min_count)
    runs = runs and prepare_runs(runs, recipe.normalizer, recipe.pattern, counts.words)
    notes = []
    if dropped.words:
        notes.append(f"words that occur less than {recipe.train.min_count} times are not trained on: {dropped}")
    if not recipe.train.min_count:
        distinct = len(counts)
        counts, runs = _sampled(counts, runs)
        if counts.seen is not None:
            n = int((counts.n > 0).sum())
            notes.append(
                f"{n:,} of {distinct:,} distinct words are trained on, the rare ones as a sample of their kind"
            )
    return TrainingWords(counts, runs, reading.eojeols * counts.total / total, tuple(notes))


def _sampled(counts: Counts, runs: Counts | None) -> tuple[Counts, Counts | None]:
    """Sample words and runs if there are too many; the words of sampled runs stay, with the count 0."""
    n = weights(counts.n, enough(len(counts)))
    used = n > 0
    if runs is not None:
        runs = runs if runs.seen is not None else sampled(runs, enough(len(runs)))
        used[words_in(runs, counts.words)[1]] = True
    if bool((n == counts.n).all()):
        return counts, runs
    return Counts(tuple(counts.column.filter(used)), n[used], seen=counts.n[used]), runs


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
    import polars as pl

    texts = sampled(texts, MEASURED)
    column = texts.column.str.strip_prefix(" ") if recipe.pretokenize.prefix_space else texts.column
    normal = pl.DataFrame({"word": list(map(recipe.normalizer, column)), "n": texts.n}).filter(pl.col.word != "")
    texts = Counts.from_frame(summed([normal]))
    words = texts.column.str.extract_all(WORD).explode().unique().to_frame().with_columns(n=pl.lit(1, pl.UInt64))
    policy = Policy.parse(recipe.segment.policy)
    return segment_runs(texts, segment_counts(Counts.from_frame(words.sort("word")), segmenter, policy))
