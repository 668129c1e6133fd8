r"""The training pipeline: text → counts → words with cuts → vocabulary → tokenizer → folder. `train` runs it, top to bottom.

| stage | from | to | by |
|---|---|---|---|
| read | files, lines | `CountResult`: raw words with counts, held-out ones separately | `koktok.count` |
| prepare | raw words | normalized pretokens with counts, a sample if there are too many | `koktok.text`, `koktok.count` |
| segment | pretokens | `SegmentedCounts`: the same, with the cuts of an analyser | `koktok.segment` |
| train | cut pretokens | `Vocab`, and the log of the trainer | `koktok.training` |
| save | tokenizer | a folder with a model card | `koktok.formats` |

Nothing here prints: progress is reported to `Options.on_progress`, and remarks for the user are in `Training.notes`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from koktok.corpora.fetch import find
from koktok.corpora.paths import as_text
from koktok.corpora.recipe import CorpusRecipe
from koktok.count import Counts
from koktok.count.counting import CountResult, read
from koktok.count.counts import WORD, summed
from koktok.count.prepared import after_a_space, prepare, prepare_runs, without_addresses, words_in
from koktok.count.sample import enough, sampled, weights
from koktok.errors import CorpusError, KoktokError, UsageError
from koktok.formats.card import Credit, model_card
from koktok.formats.folder import CARD
from koktok.metrics.coverage import coverage
from koktok.metrics.silver import SilverRow
from koktok.pipeline.user_dictionary import with_dictionary
from koktok.progress import OnProgress, silent
from koktok.recipe import Fields, Recipe, SourceRecord
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.cache import CachedSegmenter
from koktok.segment.lexicon_file import Lexicon
from koktok.segment.segmented import SegmentedCounts
from koktok.segment.workers import Workers, in_subprocess
from koktok.special import STYLES, fill
from koktok.text.normalize import Normalizer
from koktok.text.pretokenize import Pattern
from koktok.tokenizer import TrainedTokenizer
from koktok.training.dispatch import check_counts
from koktok.training.dispatch import train as train_pieces
from koktok.training.job import Job, Learnt
from koktok.training.spm import tokens_per_eojeol
from koktok.training.superwords import segment_runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PEER_WORDS = 3_000_000
"""Up to this number all raw words are kept for the SentencePiece baseline of the closing table: on 77 MB without the words
that occur once, it had 1.902 tokens per eojeol in place of 1.807. Of more words a sample is kept."""

MEASURED = 100_000
"""Maximum number of distinct held-out texts that are analysed for the figures; ten seconds of Kiwi."""


@dataclass(frozen=True)
class Options:
    """Options of a run that do not change the recipe: threads, caches, progress."""

    user_dictionary: str | None = None
    like: str | Path | None = None
    cache: Path | bool | None = None
    lexicon: str | Path | None = None
    threads: int | None = None
    on_progress: OnProgress = silent
    measured: bool = False


@dataclass
class Training:
    """The result of `train`: the tokenizer, with the data, the log and the figures of its training.

    Parameters
    ----------
    tokenizer : TrainedTokenizer
    reading : CountResult
    segmented : SegmentedCounts
        The words that the trainer got.
    seconds : dict of str to float
        Wall time by stage.
    asked, known : int
        Words that were analysed, and words found in the cache.
    notes : list of str
        Remarks for the user.
    log : dict
        The log of the trainer (candidates, rounds or merges, pieces by length and shape, boundaries inside pieces), in
        values that JSON can hold.
    analyser_peak : int
        Peak memory of the analyser's processes, together, in bytes.
    silver : SegmentedCounts, optional
        Held-out texts with the analyser's cuts (the training words if nothing was held out), with `measured`.
    """

    tokenizer: TrainedTokenizer
    reading: CountResult = field(repr=False)  # holds sentences of the text
    segmented: SegmentedCounts
    seconds: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    notes: list[str] = field(default_factory=list)
    log: dict[str, Any] = field(default_factory=dict)
    analyser_peak: int = 0
    silver: SegmentedCounts | None = None

    def save(self, folder: str | Path, figures: Sequence[SilverRow] = (), *, force: bool = True) -> Path:
        """Write the tokenizer with a model card that shows these figures; see `TrainedTokenizer.save`."""
        held = self.reading.held.total
        corpora = _corpora(self.tokenizer.recipe.sources)
        card = model_card(
            self.tokenizer,
            figures,
            {name: corpus.licence for name, corpus in corpora.items()},
            words=held or self.reading.train.total,
            held_out=bool(held),
            covered=coverage(self.tokenizer),
            credited=[
                Credit(source.stem, source.place, source.licence)
                for corpus in corpora.values()
                for source in corpus.source
                if source.licence
            ],
            languages=[*dict.fromkeys(("ko", *(code for corpus in corpora.values() for code in corpus.languages)))],
        )
        return self.tokenizer.save(folder, extra={CARD: card}, force=force)


@dataclass(frozen=True)
class Prepared:
    """The results of the stages before the trainer."""

    reading: CountResult
    counts: Counts
    segmented: SegmentedCounts
    runs: SegmentedCounts | None
    run_documents: NDArray[np.uint64] | None
    normalizer: Normalizer
    pattern: Pattern
    segmenter: Segmenter
    seconds: dict[str, float]
    notes: list[str]
    analyser_peak: int
    eojeols: float
    silver: SegmentedCounts | None


# ── the road ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def train(
    text: Any,
    recipe: Recipe | None = None,
    *,
    user_dictionary: str | None = None,
    like: str | Path | None = None,
    cache: Path | bool | None = None,
    lexicon: str | Path | None = None,
    threads: int | None = None,
    on_progress: OnProgress = silent,
    measured: bool = False,
    **fields: Unpack[Fields],
) -> Training:
    r"""Train a tokenizer on text.

    Parameters
    ----------
    text : Path, Source, a sequence of these, or iterable of str or of mappings with a field `text`
        Files, folders, globs and corpora (`Path("corpus:demo")`), or lines in memory; a str is a file if one has that
        name, else a line.
    recipe : Recipe, optional
        By default `Recipe()`.
    user_dictionary, like, cache, lexicon, threads, on_progress, measured : optional
        As in `Options`.
    **fields
        Fields of the recipe by name, in place of its own: `vocab_size=8000, model="bpe"`.

    Returns
    -------
    Training
        `.tokenizer` encodes, `.save(folder)` writes it.

    Raises
    ------
    KoktokError
        When a stage fails; nothing is written then but the cache of analyses.

    Examples
    --------
    >>> lines = ["나는 집에 간다.", "너는 집에 온다."] * 5
    >>> made = train(lines, segmenter="whitespace", vocab_size=380, holdout=0.0)
    >>> made.tokenizer.decode(made.tokenizer.encode("너는 집에 간다.").ids)
    '너는 집에 간다.'
    """
    recipe = Recipe() if recipe is None else recipe
    if not isinstance(recipe, Recipe):
        raise UsageError(f"a {type(recipe).__name__} came where a recipe was wanted", hint="Recipe.build(values)")
    options = Options(user_dictionary, like, cache, lexicon, threads, on_progress, measured)
    recipe = recipe.changed(**fields) if fields else recipe
    if like is not None:
        recipe.changed(train={"tokens_per_eojeol": 1.0})  # or the model has no such target, which is better told now
    _check_libraries(recipe, options)
    recipe, prepared = segment_text(text, recipe, options)
    with timed(prepared.seconds, "train"):
        recipe, learnt = _learn(prepared, recipe, options)
    return _made(prepared, recipe, learnt)


def _check_libraries(recipe: Recipe, options: Options) -> None:
    """Import what only late stages use, so that a missing or broken library ends a run before its work."""
    late = ["tomli_w"]
    if options.measured or options.like or recipe.train.backend == "spm":
        late.append("sentencepiece")
    for name in late:
        try:
            import_module(name)
        except Exception as error:  # a broken library raises what it likes
            raise KoktokError(
                f"the library `{name}` cannot be imported: {error}", hint=f"pip install --force-reinstall {name}"
            ) from error


def segment_text(text: Any, recipe: Recipe, options: Options, *, check: bool = True) -> tuple[Recipe, Prepared]:
    """Run the first three stages, text to words with cuts; the returned recipe names its user dictionary.

    With `check`, a vocabulary size that the words cannot give is refused before they are analysed.
    """
    recipe, dictionary = with_dictionary(recipe, options.user_dictionary)
    if recipe.spelled and recipe.segment.mass < 1:
        raise UsageError("in jamo every word is analysed", hint="--segment-mass 1")
    seconds: dict[str, float] = {}
    on_progress, notes = options.on_progress, list[str]()

    with timed(seconds, "read"):
        reading = read(
            as_text(text),
            holdout=recipe.holdout,
            runs=recipe.train.superwords > 0,
            threads=options.threads,
            on_progress=on_progress,
        )

    with timed(seconds, "normalize"):
        on_progress("normalize", 0, None)
        normalizer, pattern = recipe.normalizer, recipe.pattern
        counts, runs, whole = trained_on(reading, recipe, notes)
        if len(reading.train) > PEER_WORDS:
            reading = replace(reading, train=sampled(reading.train, PEER_WORDS), pruned=True)
    if check:
        check_counts(counts.at_least(1), recipe)

    learnt = dict(counts.items()) if recipe.segment.segmenter == "soynlp" else None
    workers = in_subprocess(
        recipe.segment.segmenter, user_dictionary=dictionary, processes=options.threads, counts=learnt
    )
    segmenter: Segmenter = workers
    lexicon = None if options.lexicon is None else Lexicon.open(options.lexicon)
    kept = options.cache is not False and recipe.segment.segmenter != "whitespace"
    if kept or lexicon is not None:
        folder = options.cache if isinstance(options.cache, Path) else None
        segmenter = CachedSegmenter(segmenter, folder, kept=kept, lexicon=lexicon)
    with timed(seconds, "segment"):
        on_progress("segment", 0, len(counts))
        cut = cut_words(counts, recipe, segmenter, on_progress)
        cut_runs = None if runs is None else segment_runs(runs, cut)
        raw = reading.held if reading.held.total else reading.train
        policy = Policy.parse(recipe.segment.policy)
        first = recipe.pretokenize.prefix_space
        held = cut_texts(raw, normalizer, segmenter, policy, first=first) if options.measured else None
    peak = 0
    if isinstance(workers, Workers):
        workers.close()  # each has 375 MB of dictionary, which the trainer may want
        notes += workers.notes()
        peak = workers.peak
    counts, cut = counts.at_least(1), cut.where(cut.n > 0)
    return recipe, Prepared(
        reading=reading,
        counts=counts,
        segmented=cut,
        runs=cut_runs,
        run_documents=None if runs is None else runs.documents,
        normalizer=normalizer,
        pattern=pattern,
        segmenter=segmenter,
        seconds=seconds,
        notes=notes,
        analyser_peak=peak,
        eojeols=reading.eojeols * counts.total / whole,
        silver=held,
    )


def _learn(prepared: Prepared, recipe: Recipe, options: Options) -> tuple[Recipe, Learnt]:
    """Train the vocabulary; the returned recipe has the target of `like`."""
    on_progress = options.on_progress
    if options.like is not None:
        on_progress("like", 0, None)
        wanted = tokens_per_eojeol(options.like, prepared.reading.train)
        recipe = recipe.changed(train={"tokens_per_eojeol": round(wanted, 4)})
    on_progress("train", 0, None)
    job = Job.of(
        prepared.segmented,
        recipe,
        prepared.pattern,
        threads=options.threads,
        on_progress=lambda done, total: on_progress("train", done, total),
        runs=prepared.runs,
        run_documents=prepared.run_documents,
        eojeols=prepared.eojeols,
    )
    return recipe, train_pieces(job)


def _made(prepared: Prepared, recipe: Recipe, learnt: Learnt) -> Training:
    """Collect the tokenizer, its signature and the remarks for the user."""
    reading, segmented = prepared.reading, prepared.segmented
    digests = reading.report.digests
    records = tuple(
        SourceRecord(name=name, weight=weight, digest=digests[name]) for name, weight in reading.weights.items()
    )
    held = recipe.holdout if reading.holdout is None else reading.holdout
    signed = recipe.model_copy(update={"sources": records, "holdout": held})
    signature = {
        "koktok": version("koktok"),
        "segmenter": prepared.segmenter.signature(),
        "trainer": _trainer(recipe),
        "normalizer": prepared.normalizer.signature(),
        "counts": prepared.counts.digest(),
        "segmented": segmented.digest(),
        "lines": reading.report.lines,
        "eojeols": reading.eojeols,
        **({"dials": learnt.log["dials"]} if "dials" in learnt.log else {}),
    }
    notes = list(prepared.notes)
    if reading.report.bad_lines:
        bad, places = reading.report.bad_lines, ", ".join(reading.report.bad_places)
        notes.append(f"{bad} undecodable line{'s' * (bad > 1)} left out: {places}")
    if empty := reading.report.empty_files:
        notes.append(f"{len(empty)} file{'s' * (len(empty) > 1)} without text: {', '.join(empty[:5])}")
    segmenter = prepared.segmenter
    asked, known = len(segmented), 0
    if isinstance(segmenter, CachedSegmenter):
        asked, known = segmenter.asked, segmenter.known
    vocab = fill(learnt.vocab, recipe.special.pad_to_multiple, STYLES[recipe.special.style].tail)
    tokenizer = TrainedTokenizer(signed, vocab, signature)
    return Training(
        tokenizer,
        reading,
        segmented,
        prepared.seconds,
        asked,
        known,
        notes,
        learnt.log,
        prepared.analyser_peak,
        prepared.silver,
    )


# ── parts of the stages ───────────────────────────────────────────────────────────────────────────────────────────────


def trained_on(reading: CountResult, recipe: Recipe, notes: list[str]) -> tuple[Counts, Counts | None, int]:
    """Prepare the words and runs for training; words that occur only in runs have `n` 0."""
    normalizer, pattern = recipe.normalizer, recipe.pattern
    raw, raw_runs = reading.train, reading.runs
    if recipe.train.junk == "drop":
        raw = without_addresses(raw)
    if recipe.pretokenize.prefix_space:
        raw, raw_runs = after_a_space(raw), raw_runs and after_a_space(raw_runs)
    counts = prepare(raw, normalizer, pattern.within_words)
    whole = round(counts.total * reading.train.total / raw.total)
    counts, dropped = counts.pruned(recipe.train.min_count)
    runs = None if raw_runs is None else prepare_runs(raw_runs, normalizer, pattern, counts.words)
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
    """Sample words and runs if there are too many; words that occur only in runs have `n` 0."""
    n = weights(counts.n, enough(len(counts)))
    kept = n > 0
    if runs is not None:
        runs = sampled(runs, enough(len(runs)))
        kept[words_in(runs, counts.words)[1]] = True
    if bool((n == counts.n).all()):
        return counts, runs
    return Counts(tuple(counts.column.filter(kept)), n[kept], seen=counts.n[kept]), runs


def cut_words(counts: Counts, recipe: Recipe, segmenter: Segmenter, on_progress: OnProgress) -> SegmentedCounts:
    """Cut words as the recipe sets."""
    return segment_counts(
        counts,
        segmenter,
        Policy.parse(recipe.segment.policy),
        as_jamo=recipe.spelled,
        mass=recipe.segment.mass,
        on_progress=lambda done, n: on_progress("segment", done, n),
    )


def cut_texts(
    raw: Counts, normalizer: Normalizer, segmenter: Segmenter, policy: Policy, *, first: bool = False
) -> SegmentedCounts:
    """Normalize counted words or sentences and cut their words, in syllables.

    Of more than `MEASURED` distinct texts a sample is used (`koktok.count.sample`).

    Examples
    --------
    >>> from koktok.segment import Whitespace
    >>> cut_texts(Counts.from_mapping({" 집에 간다": 2}), Normalizer(), Whitespace(), Policy.parse("morphemes"))
    SegmentedCounts(words=1, cuts=0, total=2)
    """
    import polars as pl

    found = sampled(raw, MEASURED)
    column = found.column.str.strip_prefix(" ") if first else found.column
    normal = pl.DataFrame({"word": [normalizer(text) for text in column], "n": found.n}).filter(pl.col.word != "")
    texts = Counts.from_frame(summed([normal]))
    words = texts.column.str.extract_all(WORD).explode().unique().to_frame().with_columns(n=pl.lit(1, pl.UInt64))
    return segment_runs(texts, segment_counts(Counts.from_frame(words.sort("word")), segmenter, policy))


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Record the wall time of a stage."""
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)


def _trainer(recipe: Recipe) -> str:
    """Name and version of the trainer."""
    if recipe.train.backend == "spm":
        return f"sentencepiece:{version('sentencepiece')}"
    return f"koktok.{recipe.train.model}:{version('koktok')}"


def _corpora(sources: Iterable[SourceRecord]) -> dict[str, CorpusRecipe]:
    """The recipes of sources that are known corpora."""
    known = {}
    for source in sources:
        with suppress(CorpusError):  # most sources are no corpora, and a broken recipe must not cost a training
            known[source.name] = find(source.name)
    return known
