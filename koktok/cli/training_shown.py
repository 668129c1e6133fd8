"""What `koktok train` shows: the table at the end of a training, its log, and what a training would take."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from koktok.files import write_file
from koktok.pipeline.baseline import SECONDS_A_WORD, Comparison, plain_of
from koktok.pipeline.card import COMPARED, runs_of
from koktok.pipeline.estimate import ANALYSED, estimate
from koktok.pipeline.training import Training
from koktok.progress import SPACE, ConsoleProgress, OnProgress, print_pieces, print_text, stderr, stdout, table
from koktok.recipe import TARGETS, Recipe
from koktok.text.sources import Source
from koktok.tokenizer import TrainedTokenizer
from koktok.training.unigram_point import DEFAULT

MEANING = (
    "Fewer tokens make sequences shorter. F1 (silver) compares the cuts inside words with the morpheme boundaries of the analyser, "
    "not with human annotation: between syllables, and over all gaps. josa and eomi are the shares of the boundaries before "
    "particles and endings that are cut."
)
NO_BORDERS = "Fewer tokens make sequences shorter. The held-out words were not analysed, so there is no boundary F1."
NO_HANGUL = "Fewer tokens make sequences shorter. The held-out words have no Hangul, so there is no boundary F1."
BYTES = "bytes is the share of the tokens that are bytes."
"""Sentences under the table."""

MIXED = 0.1
"""Share of the bytes from which Hangul and Latin both count, so that the tokens of each script are shown."""

LINES = 3
"""Held-out lines that are shown."""

LONGER = 1.12
"""Tokens of the preset `lm`, for one of SentencePiece's, that need no word: the upper end of what its description names."""

BOUND_TO = 0.95
"""Share of boundaries from which no way to keep more is suggested."""


def write_log(target: str, training: Training) -> None:
    """The trainer's log and what the run took, as one line of JSON on stderr where `target` is "json", else into that file."""
    content = {
        **training.log,
        "stages_seconds": training.seconds,
        "words_analysed": training.asked,
        "words_from_cache": training.known,
        "peak_bytes": _peak(),
        "peak_bytes_of_analysers": training.analyser_peak,
        "digest": training.tokenizer.vocab.digest(),
    }
    text = json.dumps(content, ensure_ascii=False)
    if target == "json":
        print(text, file=sys.stderr)
        return
    write_file(target, f"{text}\n".encode(), ours=is_log, force=True)  # `train` has looked at what is there


def is_log(file: Path) -> bool:
    """Whether a file is one that `write_log` wrote."""
    try:
        return bool({"stages_seconds", "digest"} <= json.loads(file.read_text(encoding="utf-8")).keys())
    except (OSError, ValueError, AttributeError):
        return False


def announced(progress: ConsoleProgress, recipe: Recipe) -> OnProgress:
    """Progress with a note on a long stage before it starts."""
    from koktok.segment import analyser_of

    announced: set[str] = set()

    def on_progress(stage: str, done: int, total: int | None) -> None:
        what = ""
        if stage == "segment" and total and analyser_of(recipe.segment.segmenter).analyses:
            what = (
                f"analysing {total:,} distinct words with {recipe.segment.segmenter}: about "
                f"{max(1, round(total / ANALYSED))} s in one process, less if some are in the cache"
            )
        elif stage == "train":
            what = (
                f"training {recipe.train.model} with {recipe.train.vocab_size:,} ids (the first run after "
                "installation takes about 20 s longer, to compile)"
            )
        progress(stage, done, total)
        if what and stage not in announced:
            announced.add(stage)
            progress.note(what)

    return on_progress


def print_training(
    training: Training,
    compared: Comparison,
    out: Path,
) -> None:
    """Table, sentences and signature on stdout, notes on stderr."""
    rows, silver, plain = compared.rows, compared.silver, compared.peer
    held = training.reading.held.total
    unit = "sentences" if training.tokenizer.recipe.train.superwords else "words"
    where = f"{held:,} held-out {unit}" if held else "the training words: nothing was held out"
    unknown = any(row.figures.unknown for row in rows)
    columns = ("tokenizer", "tokens/eojeol", "F1", "all gaps", "josa", "eomi", "bytes", *(["unk"] if unknown else []))
    cells = []
    for row in rows:
        figures = row.figures
        recalls = [figures.recalls.get(kind) for kind in ("josa", "eomi")]
        scores = (figures.f1 if silver.boundaries else None, figures.f1_all if silver.boundaries else None, *recalls)
        shares = [
            f"{share:.2%}"
            for share in ([figures.byte_fallback, figures.unknown] if unknown else [figures.byte_fallback])
        ]
        shown = ["–" if score is None else f"{score:.3f}" for score in scores]
        cells.append((row.name, f"{figures.tokens_per_eojeol:.3f}", *shown, *shares))
    console = stdout()
    console.print()
    table(f"{training.tokenizer.vocab.size:,} ids each, measured on {where}", columns, cells)
    console.print()
    beside = f" {COMPARED[plain.name]}." if plain else ""
    meaning = MEANING if silver.boundaries else NO_BORDERS if silver.bytes_by_script.get("hangul") else NO_HANGUL
    print_text(f"{meaning} {BYTES}{beside}")
    if compared.refused:
        print_text(f"{plain_of(training.tokenizer.recipe.train.model)}: not run: {compared.refused}")
    _scripts(compared, unit, weighed=any(weight != 1 for weight in training.reading.weights.values()))
    both = [
        (_shown(training.tokenizer, line), plain.pieces(line) if plain else []) for line in training.reading.samples
    ]
    different = [(ours, theirs) for ours, theirs in both if ours != theirs][:LINES]
    if different:
        console.print()
        those = f" that the two cut differently, {plain.name} below" if plain else ""
        print_text(f"Held-out lines{those}; {SPACE} is a space:")
    for ours, theirs in different:
        console.print()
        print_pieces(ours)
        if plain:
            print_pieces(theirs)
    notes = stderr()
    per_eojeol, syllables = rows[0].figures.tokens_per_eojeol, rows[-1].figures.tokens_per_eojeol
    if per_eojeol > syllables:
        notes.print(
            f"warning: {per_eojeol:.3f} tokens per eojeol, more than one per syllable ({syllables:.3f}): the vocabulary is too "
            "small for this text; train with a larger --vocab-size",
            markup=False,
        )
    for note in training.notes:
        notes.print(note, markup=False)
    console.print()
    for line in (
        f"{out}: {training.tokenizer.vocab.kind}, {training.tokenizer.vocab.size:,} ids",
        *_borders(rows[0].figures.borders),
        *_longer(compared, training.tokenizer.recipe),
        *_next(training, out),
    ):
        print_text(line)


def _scripts(compared: Comparison, unit: str, *, weighed: bool) -> None:
    """A second table for text in several scripts, and for sources that were weighed: tokens per byte of each script."""
    sizes = compared.silver.bytes_by_script
    whole = sum(sizes.values())
    if not weighed and min(sizes.get("hangul", 0.0), sizes.get("latin", 0.0)) < MIXED * whole:
        return
    heads = [f"{script} ({size / whole:.0%})" for script, size in sizes.items()]
    cells = [(row.name, *(f"{value:.3f}" for value in row.figures.per_byte.values())) for row in compared.rows]
    stdout().print()
    table(f"tokens per byte of the {unit} by script (share of the bytes)", ("tokenizer", *heads), cells)


def _borders(share: float) -> Iterator[str]:
    """A line on the spaces at which a continuation changes the tokens of a prompt.

    Examples
    --------
    >>> list(_borders(0.0)), list(_borders(float("nan")))
    ([], [])
    >>> list(_borders(0.19))
    ['borders 19.0%: the share of spaces at which the tokens before the space depend on what follows it']
    """
    if share > 0:
        yield f"borders {share:.1%}: the share of spaces at which the tokens before the space depend on what follows it"


def _longer(compared: Comparison, recipe: Recipe) -> Iterator[str]:
    """A line where the preset `lm` takes more tokens than on most texts."""
    if compared.peer is None or (recipe.train.model, recipe.train.preset) != ("unigram", DEFAULT):
        return
    ours, theirs = (row.figures.tokens_per_eojeol for row in compared.rows[:2])
    if ours > LONGER * theirs and not {*TARGETS} & recipe.given.keys():
        yield (
            f"{ours / theirs - 1:.1%} more tokens than {compared.peer.name} on this text (8 to 12% is usual for the preset lm); for fewer: "
            "--keep 0.6 or --preset short"
        )


def _missed(outcome: Mapping[str, Any]) -> str:
    """The target that is missed most, with its own numbers.

    Examples
    --------
    >>> _missed({"target": "eomi", "asked": 0.53, "eomi": 0.518})
    'target for the boundaries before endings: 53.0%, reached: 51.8%'
    >>> _missed({"target": "all", "asked": 0.8, "all": 0.673})
    'target for all boundaries: 80.0%, reached: 67.3%'
    """
    target = outcome["target"]
    if target == "tokens":
        return f"target: {outcome['asked']:g} tokens per eojeol, reached: {outcome['tokens_per_eojeol']:.3f}"
    those = {
        "josa": "the boundaries before particles",
        "eomi": "the boundaries before endings",
        "all": "all boundaries",
    }
    return f"target for {those[target]}: {outcome['asked']:.1%}, reached: {outcome[target]:.1%}"


def _next(training: Training, out: Path) -> Iterator[str]:
    """Lines on the target of the training, and commands to try next."""
    folder, options = shlex.quote(str(out)), training.tokenizer.recipe.train
    outcome = training.log.get("outcome")
    if outcome and not outcome.get("met", True):
        yield f"{_missed(outcome)} in the training text (the best that was found with {options.vocab_size:,} ids)"
    if outcome and outcome["all"] < BOUND_TO and options.preset == DEFAULT:
        yield "for more accurate boundaries: --preset encoder or aligned, or --keep 0.95; --frontier draws the curve"
    yield runs_of(training.tokenizer).replace("`", "")
    yield "next:"
    yield f"  echo '학교에서는 책을 읽습니다.' | koktok encode {folder} --as pieces"
    yield f"  koktok verify {folder}"


def _shown(tokenizer: TrainedTokenizer, line: str) -> list[str]:
    """The readable pieces of a line; spelled bytes are decoded."""
    encoding = tokenizer.encode(line)
    spelled = tokenizer.vocab.kind in ("bpe-bytes", "wordpiece-bytes")
    return [tokenizer.decode([i]) for i in encoding.ids] if spelled else encoding.pieces


def _peak() -> int | None:
    """Peak resident memory of this process in bytes, where the system tells it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def print_estimate(sources: Sequence[Source], recipe: Recipe, threads: int | None = None) -> None:
    """What a training would do and cost, see `koktok.estimate`."""
    expected = estimate(sources, recipe, threads=threads)
    how = "counted" if expected.counted == 1 else f"from {expected.counted:.1%} of the text, by Heaps' law"
    files = [(source.name, sum(file.stat().st_size for file in source.paths if file.is_file())) for source in sources]
    stages = ", ".join(f"{stage} {seconds:,.0f}" for stage, seconds in expected.stages.items())
    rows = [(name, f"{size:,} bytes") for name, size in files]
    rows += [
        (f"eojeols ({how})", f"{expected.eojeols:,}"),
        ("distinct words", f"{expected.distinct:,}"),
        ("distinct words to train on", f"{expected.trained:,}"),
        ("time, nothing cached, about", f"{expected.seconds:,.0f} s: {stages}"),
        ("memory, about", f"{expected.memory / (1 << 30):.1f} GiB, and 0.35 GiB for each process of the analyser"),
        ("model, ids", f"{recipe.train.model}, {recipe.train.vocab_size:,}"),
        ("segmenter, policy", f"{recipe.segment.segmenter}, {recipe.segment.policy}"),
    ]
    table("Nothing was trained (--dry-run)", ("what", "how much"), rows)


def note_comparison(training: Training, progress: ConsoleProgress) -> None:
    """What the comparison will take."""
    words = len(training.reading.train)
    progress.note(
        f"training {plain_of(training.tokenizer.recipe.train.model)} on the same {words:,} distinct words, for comparison: about "
        f"{max(1, round(words * SECONDS_A_WORD))} s (--no-compare leaves it out)"
    )
    progress("compare", 0, None)
