"""Recipe and text in, tokenizer out: the one place that knows all stages.

This file adds: the main road. Read and count, normalize and pre-tokenize the distinct words, cut them, train, save;
then measure on the lines that were held out, beside plain SentencePiece of the same size on the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.count.counting import Reading, Tell, read, silent
from koktok.count.prepared import prepare
from koktok.errors import UsageError
from koktok.recipe import Recipe
from koktok.recipe import Source as SourceRecord
from koktok.segment.cache import CachedSegmenter
from koktok.segment.lexicon_file import LexiconSegmenter
from koktok.segment.segmented import SegmentedCounts
from koktok.special import STYLES, fill
from koktok.text.pretokenize import Pattern
from koktok.text.sources import Source
from koktok.tokenizer import Tokenizer
from koktok.train.dispatch import Job, Learnt, check_counts, train
from koktok.train.spm import tokens_per_eojeol
from koktok.waist import Waist, cut_words, timed, to_waist, with_dictionary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from koktok.frontier import FrontierRow, Reference

__all__ = [
    "Reading",
    "Training",
    "Waist",
    "prepare",
    "read",
    "to_waist",
    "train_frontier",
    "train_tokenizer",
    "train_vocab",
]


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
    analyser_peak : int
        Bytes that the analyser's processes had at most, together.
    silver : SegmentedCounts, optional
        Held-out texts with the analyser's cuts (the training words where nothing was held out), if they were asked for.
    """

    tokenizer: Tokenizer
    reading: Reading
    segmented: SegmentedCounts
    seconds: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    notes: list[str] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)
    analyser_peak: int = 0
    silver: SegmentedCounts | None = None


def train_vocab(
    segmented: SegmentedCounts,
    recipe: Recipe,
    *,
    pattern: Pattern,
    runs: SegmentedCounts | None = None,
    run_documents: NDArray[np.uint64] | None = None,
    eojeols: float | None = None,
    threads: int | None = None,
    tell: Tell = silent,
) -> Learnt:
    """Waist 2 to a vocabulary and the log of its making, by the trainer that the recipe names.

    `runs` is the second table, where the recipe wants superwords, and `run_documents` the documents that hold each;
    `eojeols` are the running whitespace words that tokens are counted by.

    Raises
    ------
    VocabSizeError
        When the size is below the alphabet or above what the text can give.
    """
    tell("train", 0, None)
    job = Job(segmented, recipe, pattern, threads, lambda done, total: tell("train", done, total), runs)
    return train(replace(job, run_documents=run_documents, eojeols=eojeols))


def train_tokenizer(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe | None = None,
    *,
    user_dictionary: str | None = None,
    like: str | Path | None = None,
    cache: Path | bool | None = None,
    lexicon: str | Path | None = None,
    threads: int | None = None,
    tell: Tell = silent,
    silver: bool = False,
) -> Training:
    r"""The main road: text to a tokenizer.

    Parameters
    ----------
    text : sequence of Source, or iterable of str or of mappings with a field `text`
        What to read.
    recipe : Recipe, optional
        Every default where there is none.
    user_dictionary : str, optional
        Path of a dictionary for Kiwi; its name and digest go into the recipe. A recipe that names one wants that file.
    like : str or Path, optional
        A SentencePiece model: as many tokens as it makes of the training words become the recipe's `tokens_per_eojeol`.
    cache : Path, False or None
        Folder of the analyses; False asks the analyser anew, None takes the user's cache folder.
    lexicon : str or Path, optional
        Words that were analysed elsewhere (`koktok.cluster.segment`); they are looked up before the cache.
    threads : int, optional
        Threads of the analyser; the result does not depend on it.
    tell : callable
        Progress.
    silver : bool
        Cut the held-out text as well, to measure on (`koktok.metrics.silver`).

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
    recipe = Recipe() if recipe is None else recipe
    if not isinstance(recipe, Recipe):
        raise UsageError(f"a {type(recipe).__name__} came where a recipe was wanted", hint="Recipe.build(values)")
    recipe, user_dictionary = with_dictionary(recipe, user_dictionary)
    if like is not None:
        recipe.changed(train={"tokens_per_eojeol": 1.0})  # or the model has no such target, which is better told now
    made = to_waist(
        text,
        recipe,
        user_dictionary=user_dictionary,
        cache=cache,
        lexicon=lexicon,
        threads=threads,
        tell=tell,
        silver=silver,
        check=partial(check_counts, recipe=recipe),
    )
    reading, segmented = made.reading, made.segmented
    with timed(made.seconds, "train"):
        if like is not None:
            tell("like", 0, None)
            wanted = tokens_per_eojeol(like, reading.train)
            recipe = recipe.changed(train={"tokens_per_eojeol": round(wanted, 4)})
        learnt = train_vocab(
            segmented,
            recipe,
            pattern=made.pattern,
            runs=made.runs,
            run_documents=made.run_documents,
            eojeols=made.eojeols,
            threads=threads,
            tell=tell,
        )
    digests = reading.report.digests
    records = tuple(
        SourceRecord(name=name, weight=weight, digest=digests[name]) for name, weight in reading.weights.items()
    )
    held = recipe.holdout if reading.holdout is None else reading.holdout
    signed = recipe.model_copy(update={"sources": records, "holdout": held})
    signature = {
        "koktok": version("koktok"),
        "segmenter": made.segmenter.signature(),
        "trainer": _trainer(recipe),
        "normalizer": made.normalizer.signature(),
        "counts": made.counts.digest(),
        "segmented": segmented.digest(),
        "lines": reading.report.lines,
        "eojeols": reading.eojeols,
        **({"dials": learnt.log["dials"]} if "dials" in learnt.log else {}),
    }
    notes = list(made.notes)
    if recipe.train.superwords:
        notes.append(
            "superwords cross spaces: not for question answering and named entities, whose spans end inside them"
        )
    if reading.report.bad_lines:
        bad, places = reading.report.bad_lines, ", ".join(reading.report.bad_places)
        notes.append(f"{bad} undecodable line{'s' * (bad > 1)} left out: {places}")
    if empty := reading.report.empty_files:
        notes.append(f"{len(empty)} file{'s' * (len(empty) > 1)} without text: {', '.join(empty[:5])}")
    asked, known = len(segmented), 0
    segmenter = made.segmenter
    if isinstance(segmenter, LexiconSegmenter):
        known, segmenter = segmenter.known, segmenter.inner
        asked -= known
    if isinstance(segmenter, CachedSegmenter):
        asked, known = segmenter.asked, known + segmenter.known
    vocab = fill(learnt.vocab, recipe.special.pad_to_multiple, STYLES[recipe.special.style].tail)
    tokenizer = Tokenizer(signed, vocab, signature)
    return Training(
        tokenizer, reading, segmented, made.seconds, asked, known, notes, learnt.log, made.analyser_peak, made.silver
    )


def train_frontier(
    text: Sequence[Source] | Iterable[Any],
    recipe: Recipe,
    *,
    vocab_sizes: Sequence[int],
    user_dictionary: str | None = None,
    cache: Path | bool | None = None,
    lexicon: str | Path | None = None,
    threads: int | None = None,
    tell: Tell = silent,
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
    points = [recipe.changed(train={"vocab_size": size}) for size in sorted(vocab_sizes)]  # refuses impossible sizes
    recipe, user_dictionary = with_dictionary(recipe, user_dictionary)
    made = to_waist(
        text, recipe, user_dictionary=user_dictionary, cache=cache, lexicon=lexicon, threads=threads, tell=tell
    )
    raw = made.reading.held
    if not raw.total:
        raise UsageError("the curve is drawn on held-out words, and nothing was held out", hint="--holdout 0.05")
    held = cut_words(prepare(raw, made.normalizer, made.pattern), recipe, made.segmenter, tell)
    eojeols = sum(n for word, n in raw.items() if word.strip(" "))
    # The smallest size decides the alphabet, so that all sizes have the same.
    job = Job(made.segmented, points[0], made.pattern)
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


def _trainer(recipe: Recipe) -> str:
    """Name and version of whoever chose the pieces."""
    if recipe.train.backend == "spm":
        return f"sentencepiece:{version('sentencepiece')}"
    return f"koktok.{recipe.train.model}:{version('koktok')}"
