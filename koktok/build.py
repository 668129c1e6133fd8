"""Recipe and text in, tokenizer out: the one place that knows all stages.

This file adds: the main road. Read and count, normalize and pre-tokenize the distinct words, cut them, train, save;
then measure on the lines that were held out, beside plain SentencePiece of the same size on the same words.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nsmallest
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.corpus import ReadReport, Source, lines_of, read_lines, split_lines
from koktok.count import Counts, RunCounter, WordCounter
from koktok.errors import InputError, UsageError
from koktok.normalize import Folds, Normalizer
from koktok.pretokenize import Pattern
from koktok.recipe import Recipe
from koktok.recipe import Source as SourceRecord
from koktok.segment import Policy, Segmenter, segment_counts, segmenter_for
from koktok.segment.cache import CachedSegmenter
from koktok.segmented import SegmentedCounts
from koktok.tokenizer import Tokenizer
from koktok.train.dispatch import Job, Learnt, train
from koktok.train.superword import known_parts, runs_of, segment_runs

if TYPE_CHECKING:
    from koktok.frontier import FrontierRow, Reference

__all__ = [
    "Reading",
    "Training",
    "Waist",
    "prepare",
    "prepare_runs",
    "read",
    "to_waist",
    "train_frontier",
    "train_tokenizer",
    "train_vocab",
]

Tell = Callable[[str, int, int | None], None]
"""Progress: the stage's name, what is done and what there is in all (None where nobody knows)."""

MANY_WORDS = 500_000
"""From here on words that came once are left out by default: in 77 MB of text they are 995,000 of 1,399,000 distinct words
and 14 % of the running ones, and no piece that matters hangs on them."""

SAMPLES = 5
"""Held-out sentences that the closing table shows."""


@dataclass(frozen=True)
class Reading:
    """What one pass over the text found.

    Parameters
    ----------
    train, held : Counts
        Raw words, weights applied; held-out lines apart, without weights.
    samples : tuple of str
        Held-out lines of a showable length, chosen by hash.
    report : ReadReport
        Files, lines, bad bytes and digests.
    runs : Counts, optional
        Runs of the training words, where superwords are wanted; `held` has whole sentences then.
    """

    train: Counts
    held: Counts
    samples: tuple[str, ...]
    report: ReadReport
    runs: Counts | None = None


@dataclass
class Training:
    """What `train_tokenizer` returns: the tokenizer and everything worth telling about its making.

    Parameters
    ----------
    tokenizer : Tokenizer
    reading : Reading
    seconds : dict of str to float
        Wall time by stage.
    asked, known : int
        Words that the analyser was asked about, and words that the cache knew.
    notes : list of str
        What the user should know.
    log : dict
        What the trainer did (candidates, rounds or merges, pieces by length and shape, boundaries swallowed), in plain
        values that JSON can write.
    """

    tokenizer: Tokenizer
    reading: Reading
    segmented: SegmentedCounts
    seconds: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    notes: list[str] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)


def _silent(_stage: str, _done: int, _total: int | None) -> None:
    """The library says nothing; the command line draws bars."""


def read(
    text: Sequence[Source] | Iterable[Any], *, holdout: float, runs: bool = False, tell: Tell = _silent
) -> Reading:
    """Count the words of all sources in one pass, a share of the lines apart.

    Parameters
    ----------
    text : sequence of Source, or iterable of str or of mappings with a field `text`
        Files by source, or lines that are there already (a generator, a `datasets` split).
    holdout : float
        Share of the lines, in blocks of 50, that is not trained on.
    runs : bool
        Count runs of words as well.
    tell : callable
        Progress in bytes read from disk.

    Raises
    ------
    InputError
        When a source cannot be read, or holds nothing to train on.
    """
    report = ReadReport()
    train = wide = Counts.from_mapping({})
    # Superwords see more than a word, so a tokenizer with them is measured on sentences.
    held = RunCounter(partial(runs_of, longest=sys.maxsize)) if runs else WordCounter()
    shown: list[tuple[bytes, str]] = []
    for name, weight, lines in _streams(text, report, tell):
        counter, runner = WordCounter(), RunCounter(runs_of)
        for out, line in split_lines(lines, share=holdout, key=name):
            (held if out else counter).add(line)
            if runs and not out:
                runner.add(line)
            if out and 20 <= len(line) <= 70:
                shown.append((hashlib.blake2b(line.encode(), digest_size=8).digest(), line))
                if len(shown) >= 4096:
                    shown = nsmallest(SAMPLES, set(shown))
        train += counter.counts(weight)
        wide += runner.counts(weight)
    if not train.total:
        raise InputError("there is no word to train on in the text", hint="koktok train FILE ... --holdout 0")
    samples = tuple(line for _, line in nsmallest(SAMPLES, set(shown)))
    return Reading(train, held.counts(), samples, report, wide if runs else None)


def _streams(text: Any, report: ReadReport, tell: Tell) -> Iterator[tuple[str, float, Iterator[str]]]:
    """Name, weight and lines of each source; progress goes on from one source to the next."""
    if not (isinstance(text, list | tuple) and all(isinstance(source, Source) for source in text)):
        yield "lines", 1.0, lines_of(text, report=report)
        return
    sizes = [sum(file.stat().st_size for file in source.paths if file.is_file()) for source in text]
    known = not any(str(file) == "-" for source in text for file in source.paths)
    for i, source in enumerate(text):
        before = sum(sizes[:i])

        def on_progress(done: int, _total: int | None, before: int = before) -> None:
            tell("read", before + done, sum(sizes) if known else None)

        yield source.name, source.weight, read_lines(source, report=report, on_progress=on_progress)


def prepare(counts: Counts, normalizer: Normalizer, pattern: Pattern) -> Counts:
    """Raw words to pre-tokens: each distinct word normalized and cut once (exact by law 11)."""
    total: Counter[str] = Counter()
    for word, n in counts.items():
        for pretoken in pattern.pretokenize(normalizer(word)):
            total[pretoken] += n
    return Counts.from_mapping(total)


def prepare_runs(runs: Counts, normalizer: Normalizer, pattern: Pattern, words: SegmentedCounts) -> SegmentedCounts:
    """Raw runs to the second table of waist 2: normalized, cut where the pattern cuts, with the cuts of their words."""
    known = set(words.words)
    total: Counter[str] = Counter()
    for run, n in runs.items():
        for chunk in pattern.pretokenize(normalizer(run)):
            for part in known_parts(chunk, known):
                total[part] += n
    return segment_runs(Counts.from_mapping(total), words)


def train_vocab(
    segmented: SegmentedCounts,
    recipe: Recipe,
    *,
    pattern: Pattern,
    runs: SegmentedCounts | None = None,
    threads: int | None = None,
    tell: Tell = _silent,
) -> Learnt:
    """Waist 2 to a vocabulary and the log of its making, by the trainer that the recipe names.

    `runs` is the second table, where the recipe wants superwords.

    Raises
    ------
    VocabSizeError
        When the size is below the alphabet or above what the text can give.
    """
    tell("train", 0, None)
    return train(Job(segmented, recipe, pattern, threads, lambda done, total: tell("train", done, total), runs))


def train_tokenizer(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe | None = None,
    *,
    user_dictionary: str | None = None,
    cache: Path | bool | None = None,
    threads: int | None = None,
    tell: Tell = _silent,
) -> Training:
    r"""The main road: text to a tokenizer.

    Parameters
    ----------
    text : sequence of Source, or iterable of str or of mappings with a field `text`
        What to read.
    recipe : Recipe, optional
        Every default where there is none.
    user_dictionary : str, optional
        Path of a dictionary for the analyser.
    cache : Path, False or None
        Folder of the analyses; False asks the analyser anew, None takes the user's cache folder.
    threads : int, optional
        Threads of the analyser; the result does not depend on it.
    tell : callable
        Progress.

    Raises
    ------
    KoktokError
        Whatever a stage has to say; nothing was written by then but the cache of analyses.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = file.write_text("나는 집에 간다.\n너는 집에 온다.\n" * 5, encoding="utf-8")
    >>> values = {"segment": {"segmenter": "whitespace"}, "train": {"vocab_size": 380}, "holdout": 0.0}
    >>> made = train_tokenizer([Source.of(file)], Recipe.build(values))
    >>> made.tokenizer.decode(made.tokenizer.encode("너는 집에 간다.").ids)
    '너는 집에 간다.'
    """
    recipe = recipe or Recipe()
    made = to_waist(text, recipe, user_dictionary=user_dictionary, cache=cache, threads=threads, tell=tell)
    reading, segmented = made.reading, made.segmented
    with _timed(made.seconds, "train"):
        runs = None
        if reading.runs is not None:
            runs = prepare_runs(reading.runs, made.normalizer, made.pattern, segmented)
        learnt = train_vocab(segmented, recipe, pattern=made.pattern, runs=runs, threads=threads, tell=tell)
    named = text if isinstance(text, list | tuple) else ()  # an iterator is spent by now
    weights = {source.name: source.weight for source in named if isinstance(source, Source)}
    digests = reading.report.digests.items()
    records = tuple(SourceRecord(name=name, weight=weights.get(name, 1.0), digest=digest) for name, digest in digests)
    signed = recipe.model_copy(update={"sources": records})
    signature = {
        "koktok": version("koktok"),
        "segmenter": made.segmenter.signature(),
        "trainer": _trainer(recipe),
        "normalizer": made.normalizer.signature(),
        "counts": made.counts.digest(),
        "segmented": segmented.digest(),
        "lines": reading.report.lines,
        "eojeols": reading.train.total,
    }
    notes = []
    if reading.report.bad_lines:
        bad, places = reading.report.bad_lines, ", ".join(reading.report.bad_places)
        notes.append(f"{bad} undecodable line{'s' * (bad > 1)} left out: {places}")
    asked, known = len(segmented), 0
    if isinstance(made.segmenter, CachedSegmenter):
        asked, known = made.segmenter.asked, made.segmenter.known
    tokenizer = Tokenizer(signed, learnt.vocab, signature)
    return Training(tokenizer, reading, segmented, made.seconds, asked, known, notes, learnt.log)


def train_frontier(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe,
    *,
    vocab_sizes: Sequence[int],
    user_dictionary: str | None = None,
    cache: Path | bool | None = None,
    threads: int | None = None,
    tell: Tell = _silent,
) -> tuple[list[FrontierRow], Reference]:
    """Many settings and sizes of the default trainer from one count, measured on the held-out words.

    Returns
    -------
    rows and reference
        See `koktok.frontier`.

    Raises
    ------
    KoktokError
        As `train_tokenizer`; UsageError also where the recipe holds nothing out, or wants another model or superwords.
    """
    from koktok.frontier import frontier, reference

    if recipe.train.model != "unigram" or recipe.train.superwords:
        raise UsageError("the curve is drawn for `unigram` without superwords", hint="--model unigram --superwords 0")
    made = to_waist(text, recipe, user_dictionary=user_dictionary, cache=cache, threads=threads, tell=tell)
    raw = made.reading.held
    if not raw.total:
        raise UsageError("the curve is drawn on held-out words, and nothing was held out", hint="--holdout 0.05")
    held = _segmented(prepare(raw, made.normalizer, made.pattern), recipe, made.segmenter, tell)
    eojeols = sum(n for word, n in raw.items() if word.strip(" "))
    # The smallest size decides the alphabet, so that all sizes have the same.
    job = Job(made.segmented, recipe.changed(train={"vocab_size": min(vocab_sizes)}), made.pattern)
    rows = frontier(
        made.segmented,
        held,
        held_eojeols=eojeols,
        vocab_sizes=vocab_sizes,
        required=job.alphabet(),
        coverage=1e-9,  # the alphabet is decided
        specials=recipe.special_tokens,
        crosses=job.crosses,
        threads=threads,
        on_progress=tell,
    )
    return rows, reference(held, eojeols=eojeols)


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
    """

    reading: Reading
    counts: Counts
    segmented: SegmentedCounts
    normalizer: Normalizer
    pattern: Pattern
    segmenter: Segmenter
    seconds: dict[str, float]


def to_waist(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe,
    *,
    user_dictionary: str | None = None,
    cache: Path | bool | None = None,
    threads: int | None = None,
    tell: Tell = _silent,
) -> Waist:
    """Text to segmented counts; parameters and errors as `train_tokenizer`."""
    seconds: dict[str, float] = {}
    with _timed(seconds, "read"):
        reading = read(text, holdout=recipe.holdout, runs=recipe.train.superwords > 0, tell=tell)
    normalizer = Normalizer(Folds(**recipe.normalize.model_dump()))
    pattern = Pattern(split=recipe.pretokenize.split, digits=recipe.pretokenize.digits)
    with _timed(seconds, "normalize"):
        tell("normalize", 0, None)
        counts = prepare(reading.train, normalizer, pattern)
        counts = counts.at_least(recipe.train.min_count or (2 if len(counts) > MANY_WORDS else 1))
    segmenter = segmenter_for(recipe.segment.segmenter, user_dictionary=user_dictionary, threads=threads)
    if cache is not False and recipe.segment.segmenter != "whitespace":
        segmenter = CachedSegmenter(segmenter, cache if isinstance(cache, Path) else None)
    with _timed(seconds, "segment"):
        segmented = _segmented(counts, recipe, segmenter, tell)
    wide = replace(pattern, superwords=recipe.train.superwords > 0)
    return Waist(reading, counts, segmented, normalizer, wide, segmenter, seconds)


def _segmented(counts: Counts, recipe: Recipe, segmenter: Segmenter, tell: Tell) -> SegmentedCounts:
    return segment_counts(
        counts,
        segmenter,
        Policy.parse(recipe.segment.policy),
        as_jamo=recipe.jamo,
        on_progress=lambda done, n: tell("segment", done, n),
    )


def _trainer(recipe: Recipe) -> str:
    """Name and version of whoever chose the pieces."""
    if recipe.train.backend == "spm":
        return f"sentencepiece:{version('sentencepiece')}"
    return f"koktok.{recipe.train.model}:{version('koktok')}"


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)
