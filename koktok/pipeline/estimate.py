"""An estimate of the cost of a training: the numbers of `koktok train --dry-run`.

Up to `LOOK` bytes of text are counted, a share of each source; the number of words in the whole text follows Heaps' law, with an
exponent fitted to the first half of that part and to all of it. A count file is read whole. Time is linear in running words, distinct words
and those that are trained on; memory in those that are trained on alone, beyond what counting takes at any size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from koktok.count import Counts
from koktok.count.count_files import CountFile
from koktok.count.counting import counting
from koktok.count.prepared import prepare, texts_of
from koktok.count.sample import enough
from koktok.count.shards import Shards, joined, occurring
from koktok.pipeline.words import RUNS, training_words
from koktok.recipe import Recipe
from koktok.segment import analyser_of
from koktok.text.blocks import Block
from koktok.text.sources import Source, read

LOOK = 48 << 20

COUNTING, PER_DISTINCT, COUNTED = 450e6, 350.0, 1.5e9
"""Bytes while words are counted, summed and sampled: from the start on, for each distinct word, and at most, as further tables are in files."""

TRAINING, PER_TRAINED, PER_TRAINED_IN_RUNS = 235e6, 1630.0, 6000.0
"""Bytes while words are trained on; the larger of the two stages is the peak. Fitted to 20 MB, 1 GB and 10 GB (eval/log/049)."""

READ, READ_RUNS = 2.6e6, 1.6e6
"""Running words that a thread counts in a second, alone and with runs; 1 GB and 10 GB on two cores."""

PREPARED = 300_000
"""Distinct words that are summed and prepared in a second."""

TRAINED, PER_ID, TRAINED_IN_RUNS = 27e-6, 130e-12, 180e-6
"""Seconds of training for a word, more for each id, and for a word in runs."""

STARTED, ANALYSED, MORE_IN_RUNS = 2.0, 9_000, 1.7
"""Seconds until processes of Kiwi 0.24 answer; distinct words that one reads in a second; and how many times more words are in the runs
that are trained on (1.5 at 20 MB, 2.0 at 61 MB, 1.7 at 1 GB)."""


@dataclass(frozen=True)
class Estimate:
    """The expected size and cost of a training; `stages` are seconds where no analysis is cached."""

    eojeols: int
    distinct: int
    trained: int
    memory: float
    analysers: int
    stages: dict[str, float]
    counted: float

    @property
    def seconds(self) -> float:
        """The time of all stages."""
        return sum(self.stages.values())


def estimate(sources: Sequence[Source], recipe: Recipe, *, threads: int | None = None) -> Estimate:
    """Estimate a training from a part of its text."""
    in_runs, cores = recipe.train.superwords > 0, threads or os.cpu_count() or 1
    files = any(CountFile.at(file) for source in sources for file in source.paths)
    if files:
        with counting(sources, holdout=recipe.holdout, runs=in_runs, threads=threads) as counted:
            reading, words = training_words(counted, recipe)
        eojeols, distinct, times = reading.eojeols, reading.distinct, 1.0
        trained = int((words.counts.n > 0).sum())
    else:
        eojeols, distinct, trained, times = _expected(sources, recipe, threads)
    asked = min(distinct, trained * MORE_IN_RUNS) if in_runs else trained
    analysed = asked if analyser_of(recipe.segment.segmenter).analyses else 0
    processes = cores if analysed else 0
    size = recipe.train.vocab_size
    runs = min(trained, enough(RUNS, size)) if in_runs else 0
    return Estimate(
        eojeols,
        distinct,
        trained,
        max(
            min(COUNTING + PER_DISTINCT * distinct, COUNTED),
            TRAINING + max(PER_TRAINED * trained, PER_TRAINED_IN_RUNS * runs),
        ),
        processes,
        {
            "read": 0.0 if files else eojeols / ((READ_RUNS if in_runs else READ) * cores),
            "normalize": distinct / PREPARED,
            "segment": STARTED + analysed / (ANALYSED * processes) if processes else 0.0,
            "train": (TRAINED + PER_ID * size) * trained + TRAINED_IN_RUNS * runs,
        },
        1 / times,
    )


def _expected(sources: Sequence[Source], recipe: Recipe, threads: int | None) -> tuple[int, int, int, float]:
    """Running words, distinct ones and those to train on by Heaps' law, and how many times larger than a part of it the text is."""
    raw, half, times = _counted_part(sources, recipe.holdout, threads)
    words = texts_of(raw.frame, addresses=recipe.train.junk != "drop", after_a_space=recipe.pretokenize.prefix_space)
    counts = prepare(Counts.from_frame(words), recipe.normalizer, recipe.pattern.within_words)
    power = 1.0
    if times > 1 and 0 < len(half) < len(raw):
        power = math.log(len(raw) / len(half)) / math.log(raw.total / half.total)
    growth = times**power
    trained = int(growth * np.count_nonzero(counts.n >= recipe.train.min_count))
    if not recipe.train.min_count:
        trained = enough(trained, recipe.train.vocab_size)
    return int(raw.total * times), int(len(raw) * growth), trained, times


def _counted_part(sources: Sequence[Source], holdout: float, threads: int | None) -> tuple[Counts, Counts, float]:
    """Counts of a part of the text and of its first half, and how many times larger the whole text is."""
    sizes = [sum(file.stat().st_size for file in source.paths if file.is_file()) for source in sources]
    done = [0] * len(sources)
    halves: list[list[Block]] = [[], []]
    for i, source in enumerate(sources):

        def on_progress(count: int, _total: int | None, i: int = i) -> None:
            done[i] = count

        share = LOOK * sizes[i] / max(1, sum(sizes))
        for block in _some(read(source, on_progress=on_progress, may_be_empty=len(sources) > 1), share):
            documents = block.documents()
            halves[0].append(Block.of(documents[: (len(documents) + 1) // 2]))
            halves[1].append(Block.of(documents[(len(documents) + 1) // 2 :]))
    with Shards(holdout=holdout, threads=threads) as shards:
        shards.count(halves[0], name="first")
        half = occurring(joined(shards.words), "n")
        shards.count((block for block in halves[1] if block.data), name="rest")
        look = occurring(joined(shards.words), "n")
    times = max(1.0, sum(sizes) / max(1, sum(done)))
    return look, half, times


def _some(blocks: Iterator[Block], size: float) -> Iterator[Block]:
    for block in blocks:
        yield block
        size -= len(block.data) - block.n_lines
        if size <= 0:
            return
