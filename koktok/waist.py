"""Counted words to segmented ones: everything that stands before a trainer (waist 2).

This file adds: `to_waist`. Normalize and pre-tokenize the distinct words, take a sample where there are too many (see
`koktok.count.sample`), cut them.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.count import Counts, words_of
from koktok.count.counting import Reading, Tell, read, silent
from koktok.count.prepared import prepare, prepare_runs, words_in
from koktok.count.sample import enough, sampled, weights
from koktok.errors import InputError, RecipeError, UsageError
from koktok.recipe import Recipe
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.lexicon_file import Lexicon, LexiconSegmenter
from koktok.segment.segmented import Cut, SegmentedCounts
from koktok.segment.workers import Workers, supervised
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source
from koktok.train.superwords import segment_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "PEER_WORDS",
    "Waist",
    "cut_texts",
    "cut_words",
    "thinned",
    "timed",
    "to_waist",
    "trained_on",
    "with_dictionary",
]

PEER_WORDS = 3_000_000
"""To here raw words are kept whole for the closing table's SentencePiece, which must not be trained on less than the text
has: on 77 MB without the words that came once it had 1.902 tokens per eojeol in place of 1.807. Of more a sample is kept."""

MEASURED = 100_000
"""Distinct held-out texts that are analysed to measure on, at most; ten seconds of Kiwi."""


@dataclass(frozen=True)
class Waist:
    """Everything that stands before a trainer.

    Parameters
    ----------
    reading : Reading
    counts : Counts
        Normalized pre-tokens, those that are trained on.
    segmented : SegmentedCounts
        The same with their cuts.
    runs : SegmentedCounts or None
        The second table, runs of eojeols, where superwords are wanted.
    run_documents : ndarray of uint64, optional
        Documents that hold each run.
    normalizer : Normalizer
    pattern : Pattern
        What no piece may cross.
    segmenter : Segmenter
    seconds : dict of str to float
        Wall time by stage.
    notes : list of str
        What was left out, and why.
    analyser_peak : int
        Bytes that the analyser's processes had at most, together.
    eojeols : float
        Running whitespace words behind `counts`.
    silver : SegmentedCounts, optional
        Held-out texts with the analyser's cuts, where they were asked for.
    """

    reading: Reading
    counts: Counts
    segmented: SegmentedCounts
    runs: SegmentedCounts | None
    run_documents: NDArray[np.uint64] | None
    normalizer: Normalizer
    pattern: Pattern
    segmenter: Segmenter
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)
    analyser_peak: int = 0
    eojeols: float = 0.0
    silver: SegmentedCounts | None = None


def with_dictionary(recipe: Recipe, given: str | None) -> tuple[Recipe, str | None]:
    """The recipe with the name and digest of its user dictionary, and the path of that file.

    Parameters
    ----------
    recipe : Recipe
        May name a dictionary already; then it must be that one.
    given : str or None
        Path of the file; without it the name in the recipe is a path.

    Raises
    ------
    RecipeError
        When the file that the recipe names is not there, or another one came.
    InputError
        When the given file cannot be read.
    UsageError
        When the analyser takes none.
    """
    named, wanted = recipe.segment.user_dictionary, recipe.segment.user_dictionary_sha256
    if given is None and not named and not wanted:
        return recipe, None
    if recipe.segment.segmenter != "kiwi":
        raise UsageError("a user dictionary works with Kiwi only", hint="--segmenter kiwi")
    called = " ".join([*([f"`{named}`"] if named else []), *([f"of SHA-256 {wanted[:16]}"] if wanted else [])])
    try:
        found = hashlib.sha256(Path(given or named).read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        if given is not None:
            raise InputError(f"the user dictionary `{given}` cannot be read: {error}") from error
        raise RecipeError(
            f"the recipe wants the user dictionary {called}, and there is no such file here",
            hint="--user-dictionary FILE, or --user-dictionary '' to do without",
        ) from None
    if not found.startswith(wanted):
        raise RecipeError(
            f"the recipe wants the user dictionary {called}, and `{given or named}` is another one ({found[:16]})",
            hint="--user-dictionary FILE with the one of the recipe, or --recipe with another recipe",
        )
    name = named if named and wanted else Path(given or named).name
    return recipe.changed(segment={"user_dictionary": name, "user_dictionary_sha256": found}), given or named


def to_waist(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe,
    *,
    user_dictionary: str | None = None,
    cache: Path | bool | None = None,
    lexicon: str | Path | None = None,
    threads: int | None = None,
    tell: Tell = silent,
    silver: bool = False,
    check: Callable[[Counts], None] = lambda _: None,
) -> Waist:
    """Text to segmented counts; parameters and errors as `train_tokenizer`.

    With `silver` held-out texts are cut as well; `check` sees the counts first and may refuse them.
    """
    if recipe.spelled and recipe.segment.mass < 1:
        raise UsageError("in jamo every word is analysed", hint="--segment-mass 1")
    seconds: dict[str, float] = {}
    notes: list[str] = []
    peak = 0
    with timed(seconds, "read"):
        reading = read(text, holdout=recipe.holdout, runs=recipe.train.superwords > 0, threads=threads, tell=tell)
    normalizer, pattern = recipe.normalizer, recipe.pattern
    with timed(seconds, "normalize"):
        tell("normalize", 0, None)
        counts, runs, whole = trained_on(reading, recipe, notes)
        if len(reading.train) > PEER_WORDS:
            reading = replace(reading, train=sampled(reading.train, PEER_WORDS), pruned=True)
    check(counts.at_least(1))
    workers = supervised(recipe.segment.segmenter, user_dictionary=user_dictionary, processes=threads)
    segmenter: Segmenter = workers
    if cache is not False and recipe.segment.segmenter != "whitespace":
        segmenter = CachedSegmenter(segmenter, cache if isinstance(cache, Path) else None)
    if lexicon is not None:
        segmenter = LexiconSegmenter(segmenter, Lexicon.open(lexicon))
    with timed(seconds, "segment"):
        tell("segment", 0, len(counts))
        cut = cut_words(counts, recipe, segmenter, tell)
        cut_runs = None if runs is None else segment_runs(runs, cut)
        raw = reading.held if reading.held.total else reading.train
        held = cut_texts(raw, normalizer, segmenter, Policy.parse(recipe.segment.policy)) if silver else None
    if isinstance(workers, Workers):
        workers.close()  # each has 375 MB of dictionary, which the trainer may want
        notes += workers.notes()
        peak = workers.peak
    documents = None if runs is None else runs.documents
    counts, cut = counts.at_least(1), cut.where(cut.n > 0)
    return Waist(
        reading=reading,
        counts=counts,
        segmented=cut,
        runs=cut_runs,
        run_documents=documents,
        normalizer=normalizer,
        pattern=pattern,
        segmenter=segmenter,
        seconds=seconds,
        notes=notes,
        analyser_peak=peak,
        eojeols=reading.eojeols * counts.total / whole,
        silver=held,
    )


def trained_on(reading: Reading, recipe: Recipe, notes: list[str]) -> tuple[Counts, Counts | None, int]:
    """The words that are trained on, and the runs; words that only the runs have come with `n` 0.

    Returns
    -------
    Counts, Counts or None, int
        Normalized pre-tokens, runs where superwords are wanted, and the running pre-tokens of the text. What was left out goes
        to `notes`.
    """
    normalizer, pattern = recipe.normalizer, recipe.pattern
    counts = prepare(reading.train, normalizer, pattern.within_words)
    whole = counts.total
    counts, dropped = counts.pruned(recipe.train.min_count)
    runs = None if reading.runs is None else prepare_runs(reading.runs, normalizer, pattern, counts.words)
    if dropped.words:
        notes.append(f"words that occur less than {recipe.train.min_count} times are not trained on: {dropped}")
    if not recipe.train.min_count:
        distinct = len(counts)
        counts, runs = thinned(counts, runs)
        if counts.seen is not None:
            n = int((counts.n > 0).sum())
            notes.append(
                f"{n:,} of {distinct:,} distinct words are trained on, the rare ones as a sample of their kind"
            )
    return counts, runs, whole


def thinned(counts: Counts, runs: Counts | None) -> tuple[Counts, Counts | None]:
    """The words that are trained on where nobody says, and the runs; words that only the runs have come with `n` 0."""
    n = weights(counts.n, enough(len(counts)))
    kept = n > 0
    if runs is not None:
        runs = sampled(runs, enough(len(runs)))
        kept[words_in(runs, counts.words)[1]] = True
    if bool((n == counts.n).all()):
        return counts, runs
    return Counts(tuple(counts.column.filter(kept)), n[kept], seen=counts.n[kept]), runs


def cut_words(counts: Counts, recipe: Recipe, segmenter: Segmenter, tell: Tell) -> SegmentedCounts:
    """The cuts that a recipe asks for."""
    return segment_counts(
        counts,
        segmenter,
        Policy.parse(recipe.segment.policy),
        as_jamo=recipe.spelled,
        mass=recipe.segment.mass,
        on_progress=lambda done, n: tell("segment", done, n),
    )


def cut_texts(raw: Counts, normalizer: Normalizer, segmenter: Segmenter, policy: Policy) -> SegmentedCounts:
    """Counted words or sentences, normalized, with the analyser's cuts of their words, in syllables.

    Of more than `MEASURED` distinct texts a sample stands for all of them (`koktok.count.sample`).

    Parameters
    ----------
    raw : Counts
        As they stand in the text.
    normalizer, segmenter, policy
        As the tokenizer was trained with.

    Examples
    --------
    >>> from koktok.segment import Whitespace
    >>> cut_texts(Counts.from_mapping({" 집에 간다": 2}), Normalizer(), Whitespace(), Policy.parse("morphemes"))
    SegmentedCounts(words=1, cuts=0, total=2)
    """
    texts: Counter[str] = Counter()
    for text, n in sampled(raw, MEASURED).items():
        texts[normalizer(text)] += n
    words: Counter[str] = Counter()
    for text, n in texts.items():
        for word in words_of(text):
            words[word] += n
    cut = segment_counts(Counts.from_mapping(words), segmenter, policy)
    number = {word: i for i, word in enumerate(cut.words)}
    items = []
    for text, n in texts.items():
        at = 0
        cuts: list[Cut] = []
        for word in words_of(text):
            cuts += [boundary._replace(offset=at + boundary.offset) for boundary in cut.cuts(number[word])]
            at += len(word)
        items.append((text, cuts, n))
    return SegmentedCounts.from_items(items)


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the wall time of a stage."""
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)
