"""The training pipeline: text → counts → words with cuts → vocabulary → tokenizer → folder. `train` runs its stages in order.

| stage | from | to | in |
|---|---|---|---|
| read | files, lines | `SourceCounts`: parts of the text, counted, in memory and in files | `koktok.count` |
| normalize | counted parts | `TrainingWords`: pretokens with counts, a sample if there are too many | `koktok.pipeline.words` |
| segment | pretokens | `SegmentedCounts`: the same, with the cuts of an analyser | `koktok.segment` |
| train | cut pretokens | `Learnt`: a vocabulary, and the log of the trainer | `koktok.training` |
| save | tokenizer | a folder with a model card | `koktok.runtimes` |

Nothing here prints: progress is reported to `RunOptions.on_progress`, and remarks for the user are in `Training.notes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from koktok.corpora.paths import as_text
from koktok.count.counting import CountResult
from koktok.count.counting import counting as counting_of
from koktok.errors import KoktokError, UsageError, VocabSizeError
from koktok.files import path_of
from koktok.model.special import STYLES, StyleName, fill
from koktok.pipeline.training import Training
from koktok.pipeline.user_dictionary import cut_note, with_dictionary
from koktok.pipeline.words import cut_texts, cut_training_words, training_words
from koktok.progress import OnProgress, silent
from koktok.recipe import Group, Model, Preset, Recipe, SourceRecord
from koktok.segment import Segmenter, analyser_of
from koktok.segment.cache import CachedSegmenter
from koktok.segment.lexicon_file import Lexicon
from koktok.segment.segmented import SegmentedCounts
from koktok.segment.workers import Workers, in_subprocess
from koktok.text.pretokenize import Digits
from koktok.tokenizer import TrainedTokenizer
from koktok.training.dispatch import train as train_vocabulary
from koktok.training.job import Job, Learnt
from koktok.training.selection import SEEN
from koktok.training.spm import tokens_per_eojeol

MANY = 0.5
"""Share of rare pieces from which a size is said to be too large. Of 16,000 ids from corpus:demo (2 MB) they are .40, of 20,000 .53, and
of 32,000 .71, where F1 is .05 lower (`rare_pieces` in --log, and the table, of `koktok train corpus:demo --vocab-size 32000`)."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that do not change the recipe: threads, caches, progress."""

    user_dictionary: str | None = None
    like: str | Path | None = None
    cache: Path | bool | None = None
    lexicon: str | Path | None = None
    threads: int | None = None
    on_progress: OnProgress = silent
    measured: bool = False


@dataclass(frozen=True)
class Prepared:
    """The results of the stages before the trainer."""

    reading: CountResult
    segmented: SegmentedCounts
    runs: SegmentedCounts | None
    run_documents: NDArray[np.uint64] | None
    segmenter: Segmenter
    counts_digest: str
    eojeols: float
    analyser_peak: int
    silver: SegmentedCounts | None
    seconds: dict[str, float]
    notes: list[str]


def train(
    text: Any,
    recipe: Recipe | None = None,
    *,
    field: str | None = None,
    vocab_size: int | None = None,
    model: Model | None = None,
    preset: Preset | None = None,
    keep: float | Mapping[Group, float] | None = None,
    tokens_per_eojeol: float | None = None,
    superwords: float | None = None,
    segmenter: str | None = None,
    policy: str | None = None,
    digits: Digits | None = None,
    pattern: str | None = None,
    jamo: bool | Literal["fallback"] | None = None,
    style: StyleName | None = None,
    specials: Sequence[str] | None = None,
    chat_template: str | None = None,
    holdout: float | None = None,
    user_dictionary: str | None = None,
    like: str | Path | None = None,
    cache: Path | bool | None = None,
    lexicon: str | Path | None = None,
    threads: int | None = None,
    on_progress: OnProgress = silent,
    measured: bool = False,
    **fields: Any,
) -> Training:
    """Train a tokenizer on text.

    Parameters
    ----------
    text : str, Path, Source, a sequence of paths or sources, or iterable of str or of mappings
        Files, folders, globs and corpora (`"corpus:demo"`), or texts in memory. A str alone names files; a str in an iterable is
        a line or a document. Batches are their texts; None, NaN and what is not UTF-8 are left out and counted.
    recipe : Recipe, optional
        By default `Recipe()`.
    field : str, optional
        Field or column of records that holds the text; "text" by default.
    vocab_size, model, preset, keep, ... : optional
        Fields of the recipe, in place of its own; each is described in `Recipe`.
    user_dictionary, like, cache, lexicon, threads, on_progress, measured : optional
        As in `RunOptions`.
    **fields
        Further fields of the recipe by name.

    Returns
    -------
    Training
        `.tokenizer` encodes, `.save(folder)` writes it.

    Raises
    ------
    KoktokError
        When a stage fails; only the cache of analyses has been written then.

    Examples
    --------
    >>> lines = ["나는 집에 간다.", "너는 집에 온다."] * 5
    >>> tokenizer = train(lines, segmenter="whitespace", vocab_size=380, holdout=0.0).tokenizer
    >>> tokenizer.decode(tokenizer.encode("너는 집에 간다.").ids)
    '너는 집에 간다.'
    """
    recipe = Recipe() if recipe is None else recipe
    if not isinstance(recipe, Recipe):
        raise UsageError(
            f"expected a Recipe, got a {type(recipe).__name__}",
            hint=f"koktok.train(text, vocab_size={recipe})" if str(recipe).isdigit() else "Recipe.build(values)",
        )
    named = {
        "vocab_size": vocab_size,
        "model": model,
        "preset": preset,
        "keep": keep,
        "tokens_per_eojeol": tokens_per_eojeol,
        "superwords": superwords,
        "segmenter": segmenter,
        "policy": policy,
        "digits": digits,
        "pattern": pattern,
        "jamo": jamo,
        "style": style,
        "specials": specials,
        "chat_template": chat_template,
        "holdout": holdout,
    }
    fields |= {name: value for name, value in named.items() if value is not None}
    recipe = recipe.changed(**fields) if fields else recipe
    options = RunOptions(user_dictionary, like, cache, lexicon, threads, on_progress, measured)
    if like is not None:
        path_of(like, "a SentencePiece model")
        recipe.changed(tokens_per_eojeol=1.0)  # raises an error now if the model has no such target
    _import_late_libraries(recipe, options)

    recipe, prepared = segment_text(as_text(text, field), recipe, options)
    recipe, learnt = _learn(prepared, recipe, options)
    return _training(prepared, recipe, learnt)


def _import_late_libraries(recipe: Recipe, options: RunOptions) -> None:
    """Import what only late stages use, so that a missing or broken library ends a run before its work."""
    late = ["tomli_w"]
    if options.measured or options.like or recipe.train.backend == "spm":
        late.append("sentencepiece")
    for name in late:
        try:
            import_module(name)
        except Exception as error:  # a broken library may raise anything
            raise KoktokError(
                f"the library `{name}` cannot be imported: {error}", hint=f"pip install --force-reinstall {name}"
            ) from error


def segment_text(text: Any, recipe: Recipe, options: RunOptions, *, check: bool = True) -> tuple[Recipe, Prepared]:
    """Run the stages read, normalize and segment; the returned recipe names its user dictionary.

    With `check`, a vocabulary size without room for the characters is an error before words are analysed.
    """
    recipe, dictionary = with_dictionary(recipe, options.user_dictionary)
    seconds: dict[str, float] = {}
    on_progress = options.on_progress

    with ExitStack() as stack:
        with _timed(seconds, "read"):
            counting = counting_of(
                as_text(text),
                holdout=recipe.holdout,
                runs=recipe.train.superwords > 0,
                threads=options.threads,
                on_progress=on_progress,
            )
            counted = stack.enter_context(counting)
        with _timed(seconds, "normalize"):
            reading, words = training_words(counted, recipe, on_progress)
    trained_on = words.counts.at_least(1)
    if check and not recipe.spelled:  # whose characters are jamo
        Job.of(SegmentedCounts.uncut(trained_on), recipe, recipe.pattern)

    with _timed(seconds, "segment"):
        on_progress("segment", 0, len(words.counts))
        known = dict(words.counts.items()) if analyser_of(recipe.segment.segmenter).learns else None
        analyser = in_subprocess(
            recipe.segment.segmenter, user_dictionary=dictionary, processes=options.threads, counts=known
        )
        segmenter = _cached(analyser, recipe, options)
        segmented, runs = cut_training_words(words, recipe, segmenter, on_progress)
        held_out = reading.held if reading.held.total else reading.train
        silver = cut_texts(held_out, recipe, segmenter) if options.measured else None
    notes, peak = [*words.notes, *cut_note(dictionary, recipe)], 0
    if isinstance(analyser, Workers):
        analyser.close()  # each has 375 MB of dictionary, and the trainer may need that memory
        notes += analyser.notes()
        peak = analyser.peak
    if isinstance(segmenter, CachedSegmenter) and segmenter.damaged:
        notes.append(
            f"{len(segmenter.damaged):,} analyses in the cache were damaged, and these words were analysed again"
        )
    return recipe, Prepared(
        reading=reading,
        segmented=segmented,
        runs=runs,
        run_documents=None if words.runs is None else words.runs.documents,
        segmenter=segmenter,
        counts_digest=trained_on.digest(),
        eojeols=words.eojeols,
        analyser_peak=peak,
        silver=silver,
        seconds=seconds,
        notes=notes,
    )


def _cached(analyser: Segmenter, recipe: Recipe, options: RunOptions) -> Segmenter:
    """The analyser behind the cache of analyses and the lexicon, if the options have them."""
    lexicon = None if options.lexicon is None else Lexicon.open(options.lexicon)
    cached = options.cache is not False and analyser_of(recipe.segment.segmenter).analyses
    if not cached and lexicon is None:
        return analyser
    return CachedSegmenter(
        analyser, options.cache if isinstance(options.cache, Path) else None, kept=cached, lexicon=lexicon
    )


def _learn(prepared: Prepared, recipe: Recipe, options: RunOptions) -> tuple[Recipe, Learnt]:
    """Run the stage train; the returned recipe has the target of `like`."""
    on_progress = options.on_progress
    with _timed(prepared.seconds, "train"):
        if options.like is not None:
            on_progress("like", 0, None)
            target = tokens_per_eojeol(options.like, prepared.reading.train)
            recipe = recipe.changed(tokens_per_eojeol=round(target, 4))
        on_progress("train", 0, None)

        def learn(recipe: Recipe) -> Learnt:
            job = Job.of(
                prepared.segmented,
                recipe,
                recipe.pattern,
                threads=options.threads,
                on_progress=lambda done, total: on_progress("train", done, total),
                runs=prepared.runs,
                run_documents=prepared.run_documents,
                eojeols=prepared.eojeols,
            )
            return train_vocabulary(job)

        try:
            return recipe, learn(recipe)
        except VocabSizeError as error:
            if error.possible:
                error.hint = f"--vocab-size {_possible(recipe, learn, error)}, or more text"
            raise


def _possible(recipe: Recipe, learn: Callable[[Recipe], Learnt], error: VocabSizeError) -> int:
    """A size that was tried: a smaller one may ask for fewer characters, and then has fewer pieces."""
    try:
        learn(recipe.changed(vocab_size=error.possible))
    except VocabSizeError as smaller:
        if 0 < smaller.possible < error.possible:
            return _possible(recipe, learn, smaller)
    return error.possible


def _training(prepared: Prepared, recipe: Recipe, learnt: Learnt) -> Training:
    """Collect the tokenizer, its signature and the remarks for the user."""
    reading, segmenter = prepared.reading, prepared.segmenter
    report = reading.report
    sources = tuple(
        SourceRecord(name=name, weight=weight, digest=report.digests[name]) for name, weight in reading.weights.items()
    )
    held_out = recipe.holdout if reading.holdout is None else reading.holdout
    spm = recipe.train.backend == "spm"
    signature = {
        "koktok": version("koktok"),
        "segmenter": segmenter.signature(),
        "trainer": f"sentencepiece:{version('sentencepiece')}"
        if spm
        else f"koktok.{recipe.train.model}:{version('koktok')}",
        "normalizer": recipe.normalizer.signature(),
        "counts": prepared.counts_digest,
        "segmented": prepared.segmented.digest(),
        "lines": report.lines,
        "eojeols": reading.eojeols,
        **({"outcome": learnt.log["outcome"]} if "outcome" in learnt.log else {}),
    }
    notes = list(prepared.notes)
    if report.bad_lines:
        notes.append(report.left_out)
    if empty := report.empty_files:
        notes.append(f"{len(empty)} file{'s' * (len(empty) > 1)} without text: {', '.join(empty[:5])}")
    rare, size = learnt.log.get("rare_pieces", 0), recipe.train.vocab_size
    if rare > MANY * size:
        notes.append(
            f"{size:,} ids are many for this text: {rare:,} of them are pieces that it has fewer than {SEEN} times; train with a "
            "smaller --vocab-size, or on more text"
        )
    asked, known = len(prepared.segmented), 0
    if isinstance(segmenter, CachedSegmenter):
        asked, known = segmenter.asked, segmenter.known
    return Training(
        TrainedTokenizer(
            recipe.model_copy(update={"sources": sources, "holdout": held_out}),
            fill(learnt.vocab, recipe.special.pad_to_multiple, STYLES[recipe.special.style].tail),
            signature,
        ),
        reading,
        prepared.segmented,
        prepared.seconds,
        asked=asked,
        known=known,
        notes=notes,
        log=learnt.log,
        analyser_peak=prepared.analyser_peak,
        silver=prepared.silver,
    )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Record the wall time of a stage."""
    start = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - start, 2)
