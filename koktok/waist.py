"""Counted words to segmented ones: everything that stands before a trainer (waist 2).

This file adds: `to_waist`. Normalize and pre-tokenize the distinct words, leave out the rare, cut the others.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.count import Counts, prepared
from koktok.count.counting import Reading, Tell, read, silent
from koktok.count.prepared import prepare
from koktok.errors import InputError, RecipeError, UsageError
from koktok.recipe import Recipe
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.segmented import SegmentedCounts
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
    "cut_words",
    "prepare_runs",
    "runs_with_documents",
    "timed",
    "to_waist",
    "usual_minimum",
    "with_dictionary",
]

MOST_WORDS = 1_000_000
"""At most so many words are trained on by default, all that come k times or more with the least such k: the memory of a
training goes into its distinct words, 1.6 KB each."""

PEER_WORDS = 3_000_000
"""To here raw words are kept whole for the closing table's SentencePiece, which must not be trained on less than the text
has: on 77 MB without the words that came once it had 1.902 tokens per eojeol in place of 1.807."""

MANY_WORDS = 500_000
"""From here on words that came once are left out by default: in 77 MB of text they are 995,000 of 1,399,000 distinct words
and 14 % of the running ones. It costs boundaries: rare words carry the dearest ones (`Dials.rarity`), so without them every
`nu` buys fewer cuts. On 20 MB `balanced` falls to the boundary F1 of SentencePiece's Unigram (eval/LOG.md)."""


@dataclass(frozen=True)
class Waist:
    """Everything that stands before a trainer.

    Parameters
    ----------
    reading : Reading
    counts : Counts
        Normalized pre-tokens, rare ones left out.
    segmented : SegmentedCounts
        The same with their cuts.
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
    """

    reading: Reading
    counts: Counts
    segmented: SegmentedCounts
    normalizer: Normalizer
    pattern: Pattern
    segmenter: Segmenter
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)
    analyser_peak: int = 0


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
    threads: int | None = None,
    tell: Tell = silent,
) -> Waist:
    """Text to segmented counts; parameters and errors as `train_tokenizer`."""
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
        counts = prepare(reading.train, normalizer, pattern.within_words)
        least = recipe.train.min_count or usual_minimum(counts)
        counts, dropped = counts.pruned(least)
    if dropped.words:
        if len(reading.train) > PEER_WORDS:
            reading = replace(reading, train=reading.train.at_least(least), pruned=True)
        notes.append(f"words that occur less than {least} times are not trained on: {dropped}")
    workers = supervised(recipe.segment.segmenter, user_dictionary=user_dictionary, processes=threads)
    segmenter: Segmenter = workers
    if cache is not False and recipe.segment.segmenter != "whitespace":
        segmenter = CachedSegmenter(segmenter, cache if isinstance(cache, Path) else None)
    with timed(seconds, "segment"):
        cut = cut_words(counts, recipe, segmenter, tell)
    if isinstance(workers, Workers):
        workers.close()  # each has 375 MB of dictionary, which the trainer may want
        notes += workers.notes()
        peak = workers.peak
    return Waist(reading, counts, cut, normalizer, pattern, segmenter, seconds, notes, peak)


def usual_minimum(counts: Counts) -> int:
    """How often a word must come to be trained on, where nobody says."""
    if len(counts) <= MANY_WORDS:
        return 1
    most_frequent_left_out = np.sort(counts.n)[-MOST_WORDS - 1] if len(counts) > MOST_WORDS else 1
    return max(2, int(most_frequent_left_out) + 1)


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


def prepare_runs(runs: Counts, normalizer: Normalizer, pattern: Pattern, words: SegmentedCounts) -> SegmentedCounts:
    """Raw runs to the second table of waist 2: normalized, cut where the pattern cuts, with the cuts of their words."""
    return runs_with_documents(runs, normalizer, pattern, words)[0]


def runs_with_documents(
    runs: Counts, normalizer: Normalizer, pattern: Pattern, words: SegmentedCounts
) -> tuple[SegmentedCounts, NDArray[np.uint64] | None]:
    """The second table of waist 2, and how many documents hold each run (the sum over its raw forms)."""
    found = prepared.prepare_runs(runs, normalizer, pattern, words.words)
    return segment_runs(found, words), found.documents


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note the wall time of a stage."""
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)
