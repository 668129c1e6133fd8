"""Recipe and text in, tokenizer out: the one place that knows all stages.

This file adds: the main road. Read and count, normalize and pre-tokenize the distinct words, cut them, train, save;
then measure on the lines that were held out, beside plain SentencePiece of the same size on the same words.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nsmallest
from importlib.metadata import version
from pathlib import Path

from koktok.corpus import ReadReport, Source, read_lines, split_lines
from koktok.count import Counts, WordCounter
from koktok.errors import InputError
from koktok.normalize import Folds, Normalizer
from koktok.pretokenize import Pattern
from koktok.recipe import Recipe
from koktok.recipe import Source as SourceRecord
from koktok.segment import Policy, segment_counts, segmenter_for
from koktok.segment.cache import CachedSegmenter
from koktok.segmented import SegmentedCounts
from koktok.tokenizer import Tokenizer
from koktok.train.alphabet import MODERN_JAMO, alphabet_of
from koktok.vocab import BYTE_PIECES, Vocab

__all__ = ["Reading", "Training", "prepare", "read", "train_tokenizer", "train_vocab"]

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
    """

    train: Counts
    held: Counts
    samples: tuple[str, ...]
    report: ReadReport


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
    """

    tokenizer: Tokenizer
    reading: Reading
    segmented: SegmentedCounts
    seconds: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    notes: list[str] = field(default_factory=list)


def _silent(_stage: str, _done: int, _total: int | None) -> None:
    """The library says nothing; the command line draws bars."""


def read(sources: Sequence[Source], *, holdout: float, tell: Tell = _silent) -> Reading:
    """Count the words of all sources in one pass, a share of the lines apart.

    Raises
    ------
    InputError
        When a source cannot be read, or holds nothing to train on.
    """
    report = ReadReport()
    train, held = Counts.from_mapping({}), WordCounter()
    shown: list[tuple[bytes, str]] = []
    for source in sources:
        counter = WordCounter()
        lines = read_lines(source, report=report, on_progress=lambda done, total: tell("read", done, total))
        for out, line in split_lines(lines, share=holdout, key=source.name):
            (held if out else counter).add(line)
            if out and 20 <= len(line) <= 70:
                shown.append((hashlib.blake2b(line.encode(), digest_size=8).digest(), line))
                if len(shown) >= 4096:
                    shown = nsmallest(SAMPLES, set(shown))
        train += counter.counts(source.weight)
    if not train.total:
        raise InputError("there is no word to train on in the text", hint="koktok train FILE ... --holdout 0")
    return Reading(train, held.counts(), tuple(line for _, line in nsmallest(SAMPLES, set(shown))), report)


def prepare(counts: Counts, normalizer: Normalizer, pattern: Pattern) -> Counts:
    """Raw words to pre-tokens: each distinct word normalized and cut once (exact by law 11)."""
    total: Counter[str] = Counter()
    for word, n in counts.items():
        for pretoken in pattern.pretokenize(normalizer(word)):
            total[pretoken] += n
    return Counts.from_mapping(total)


def train_vocab(segmented: SegmentedCounts, recipe: Recipe, *, pattern: Pattern, tell: Tell = _silent) -> Vocab:
    """Waist 2 to a vocabulary, by the trainer that the recipe names.

    Raises
    ------
    VocabSizeError
        When the size is below the alphabet or above what the text can give.
    """
    options = recipe.train
    taken = len(BYTE_PIECES) + len(recipe.special_tokens)
    required = MODERN_JAMO if recipe.jamo else options.required
    words = zip(segmented.words, segmented.n.tolist(), strict=True)
    alphabet = alphabet_of(
        words, vocab_size=options.vocab_size, taken=taken, coverage=options.character_coverage, required=required
    )
    tell("train", 0, None)
    from koktok.train.spm import train_spm

    return train_spm(
        segmented,
        model=options.model,
        vocab_size=options.vocab_size,
        alphabet=alphabet,
        specials=recipe.special_tokens,
        max_piece_length=options.max_piece_length,
    )


def train_tokenizer(
    sources: Sequence[Source],
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
    sources : sequence of Source
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
    seconds: dict[str, float] = {}
    with _timed(seconds, "read"):
        reading = read(sources, holdout=recipe.holdout, tell=tell)
    normalizer = Normalizer(Folds(**recipe.normalize.model_dump()))
    pattern = Pattern(split=recipe.pretokenize.split, digits=recipe.pretokenize.digits)
    with _timed(seconds, "normalize"):
        tell("normalize", 0, None)
        counts = prepare(reading.train, normalizer, pattern)
        counts = counts.at_least(recipe.train.min_count or (2 if len(counts) > MANY_WORDS else 1))
    segmenter = segmenter_for(recipe.segment.segmenter, user_dictionary=user_dictionary, threads=threads)
    cached = None
    if cache is not False and recipe.segment.segmenter != "whitespace":
        segmenter = cached = CachedSegmenter(segmenter, cache if isinstance(cache, Path) else None)
    with _timed(seconds, "segment"):
        segmented = segment_counts(
            counts,
            segmenter,
            Policy.parse(recipe.segment.policy),
            as_jamo=recipe.jamo,
            on_progress=lambda done, n: tell("segment", done, n),
        )
    with _timed(seconds, "train"):
        vocab = train_vocab(segmented, recipe, pattern=pattern, tell=tell)
    digests = reading.report.digests
    records = tuple(SourceRecord(name=s.name, weight=s.weight, digest=digests[s.name]) for s in sources)
    signed = recipe.model_copy(update={"sources": records})
    signature = {
        "koktok": version("koktok"),
        "segmenter": segmenter.signature(),
        "trainer": f"sentencepiece:{version('sentencepiece')}",
        "normalizer": normalizer.signature(),
        "counts": counts.digest(),
        "segmented": segmented.digest(),
        "lines": reading.report.lines,
        "eojeols": reading.train.total,
    }
    notes = []
    if reading.report.bad_lines:
        bad, places = reading.report.bad_lines, ", ".join(reading.report.bad_places)
        notes.append(f"{bad} undecodable line{'s' * (bad > 1)} left out: {places}")
    asked, known = (cached.asked, cached.known) if cached else (len(segmented), 0)
    return Training(Tokenizer(signed, vocab, signature), reading, segmented, seconds, asked, known, notes)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[stage] = round(time.perf_counter() - begun, 2)
