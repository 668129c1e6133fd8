"""Text to counted words: all sources in one pass, read ahead by threads and counted in shards."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koktok.count.count_files import About, CountFile, runs_file
from koktok.count.counts import Counts
from koktok.count.shards import HoldOutBy, Shard, Shards, joined, occurring
from koktok.errors import InputError
from koktok.progress import OnProgress, silent
from koktok.text import sources
from koktok.text.records import ReadReport
from koktok.text.sources import Source

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CountResult:
    """The words of one pass over the text, those of held-out lines separately, and statistics of the text."""

    train: Counts
    held: Counts
    samples: tuple[str, ...]
    report: ReadReport
    weights: dict[str, float]
    holdout: float | None
    eojeols: int
    distinct: int

    @property
    def complete(self) -> bool:
        """Whether `train` has every distinct word, and not a sample."""
        return len(self.train) == self.distinct


@dataclass
class SourceCounts:
    """The shards of some sources, and for each source its digest, lines, weight and share of held-out lines."""

    shards: Shards
    report: ReadReport = field(default_factory=ReadReport)
    weights: dict[str, float] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)

    def add(self, name: str, lines: int, weight: float, share: float) -> None:
        """Note a source."""
        self.lines[name], self.weights[name] = lines, weight
        self.shares.append(share)

    def check_total(self, total: int, held: int) -> None:
        """Refuse a text without a word to train on; all of them may be held out."""
        if not total and (empty := self.report.empty_files) and not self.report.lines:
            raise InputError(f"`{empty[0]}` is empty", hint=f"ls -l {shlex.quote(empty[0])}")
        if not total:
            hint = "koktok train FILE ... --holdout 0" if held else "koktok train FILE ..., with words in the file"
            raise InputError("there is no word to train on in the text", hint=hint)

    def result(self, train: Counts, held: Counts, *, eojeols: int, distinct: int) -> CountResult:
        """Return the result of the pass with these words."""
        self.check_total(eojeols, held.total)
        share = self.shares[0] if len(set(self.shares)) == 1 else None
        return CountResult(train, held, self.shards.samples, self.report, self.weights, share, eojeols, distinct)


def read(
    text: Sequence[Source] | Iterable[Any],
    *,
    holdout: float,
    threads: int | None = None,
    on_progress: OnProgress = silent,
) -> CountResult:
    """Count the words of all sources in one pass, those of a share of the lines apart; all distinct words are in memory then."""
    with counting(text, holdout=holdout, threads=threads, on_progress=on_progress) as counts:
        words = joined(counts.shards.words)
    train = occurring(words, "n")
    return counts.result(train, occurring(words, "held"), eojeols=train.total, distinct=len(train))


@contextlib.contextmanager
def counting(
    text: Sequence[Source] | Iterable[Any],
    *,
    holdout: float,
    by: HoldOutBy = "blocks",
    runs: bool = False,
    threads: int | None = None,
    folder: Path | None = None,
    on_progress: OnProgress = silent,
) -> Iterator[SourceCounts]:
    """Count all sources; the shards last as long as the context.

    `folder` keeps finished shards for a count that is killed.
    """
    with Shards(holdout=holdout, by=by, runs=runs, threads=threads, folder=folder) as shards:
        counts = SourceCounts(shards)
        report = counts.report
        if not (isinstance(text, list | tuple) and all(isinstance(source, Source) for source in text)):
            shards.count(sources.read(text, report=report), name="lines")
            counts.add("lines", report.lines, 1.0, holdout)
            text = []
        sizes = [sum(file.stat().st_size for file in source.paths if file.is_file()) for source in text]
        total = None if any(str(file) == "-" for source in text for file in source.paths) else sum(sizes)
        for i, source in enumerate(text):
            before, lines = sum(sizes[:i]), report.lines

            def report_read(done: int, _total: int | None, before: int = before) -> None:
                on_progress("read", before + done, total)

            files = [CountFile.at(file) for file in source.paths]
            if any(files):
                _add_count_files(source, files, counts, runs=runs)
                report_read(sizes[i], None)
                continue
            # The caller knows whether all sources together may be empty.
            blocks = sources.read(
                source, report=report, on_progress=report_read, may_be_empty=True, threads=threads or os.cpu_count()
            )
            with contextlib.closing(blocks):  # ends the threads that read ahead, whatever happened
                shards.count(blocks, name=source.name, weight=source.weight)
            if by == "documents":
                report.digests[source.name] = shards.digest()
            counts.add(source.name, report.lines - lines, source.weight, holdout)
        if shards.resumed:
            log.info("%d of %d shards were counted before", shards.resumed, shards.counted + shards.resumed)
        yield counts


def _add_count_files(source: Source, files: Sequence[CountFile | None], counts: SourceCounts, *, runs: bool) -> None:
    """Add a source of count files."""
    report = counts.report
    if foreign := [path for path, file in zip(source.paths, files, strict=True) if file is None]:
        raise InputError(f"the source `{source.name}` mixes count files with `{foreign[0]}`; give them apart")
    words = [file for file in files if file is not None and file.about.kind == "words"]
    if not words:
        raise InputError(f"`{source.paths[0]}` holds runs of words; expected the words", hint="koktok train FILE")
    wide = [runs_file(file.path) for file in words] if runs else []
    if missing := [str(file) for file in wide if not file.is_file()]:
        raise InputError(
            f"superwords need the runs of the text, and there is no `{missing[0]}`", hint="koktok count ... --runs"
        )
    for counted in sum((file.about for file in words), About("words", ())).sources:
        if counted.name in report.digests:
            raise InputError(f"two sources are named `{counted.name}`; every digest needs its own name")
        report.digests[counted.name] = counted.digest
        report.lines += counted.lines
        counts.add(counted.name, counted.lines, source.weight, counted.holdout)
    report.files += len(words)
    counts.shards.add(
        [Shard.of_count(file) for file in words], [Shard.of_count(CountFile.open(file)) for file in wide], source.weight
    )
