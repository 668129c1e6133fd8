"""Sources to counted words: text through the shards, count files as they are.

This file adds: `read`, the only stage whose time follows the text; all others follow the distinct words.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koktok.count import Counts
from koktok.count.engine import Engine, total
from koktok.count.files import About, about, read_counts, runs_file
from koktok.count.rows import Rows
from koktok.count.shards import Shards, Told
from koktok.errors import InputError
from koktok.text.ahead import Ahead
from koktok.text.sources import Batch, ReadReport, Source, item_batches, read_blocks
from koktok.train.superwords import RUN

__all__ = ["Found", "Reading", "Tell", "read", "read_shards", "silent"]

Tell = Callable[[str, int, int | None], None]
"""Progress: the stage's name, what is done and what there is in all (None where nobody knows)."""


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
    weights : dict of str to float
        By source, in the order of reading.
    holdout : float, optional
        Share that was held out, where all sources agree.
    eojeols : int
        Running words that were read to be trained on.
    pruned : bool
        Whether rare words were taken out of `train`, to save the memory.
    """

    train: Counts
    held: Counts
    samples: tuple[str, ...]
    report: ReadReport
    runs: Counts | None = None
    weights: dict[str, float] = field(default_factory=dict)
    holdout: float | None = None
    eojeols: int = 0
    pruned: bool = False


def silent(_stage: str, _done: int, _total: int | None) -> None:
    """The library says nothing; the command line draws bars."""


def read(
    text: Sequence[Source] | Iterable[Any],
    *,
    holdout: float,
    runs: bool = False,
    threads: int | None = None,
    engine: Engine | None = None,
    tell: Tell = silent,
) -> Reading:
    """Count the words of all sources in one pass, a share of the lines apart.

    Parameters
    ----------
    text : sequence of Source, or iterable of str or of mappings with a field `text`
        Files by source, or lines that are there already (a generator, a `datasets` split). A source of count files
        (`koktok count`) is taken as it was counted, its held-out words among it.
    holdout : float
        Share of the lines, in blocks of 50, that is not trained on.
    runs : bool
        Count runs of words as well.
    threads : int, optional
        All cores by default; the counts do not depend on it.
    engine : Engine, optional
        Who sums; koktok itself by default.
    tell : callable
        Progress in bytes read from disk.

    Raises
    ------
    InputError
        When a source cannot be read, or holds nothing to train on.
    """
    with read_shards(text, holdout=holdout, runs=runs, threads=threads, engine=engine, tell=tell) as found:
        rows = total(found.words, engine)
        longer = total(found.runs, engine) if runs else rows
    train = Counts.from_rows(rows)
    if not train.total:
        raise InputError("there is no word to train on in the text", hint="koktok train FILE ... --holdout 0")
    # Superwords see more than a word, so a tokenizer with them is measured on sentences.
    held = Counts.from_rows(longer, held=True)
    share = found.shares[0] if len(set(found.shares)) == 1 else None
    wide = Counts.from_rows(longer) if runs else None
    return Reading(train, held, found.samples, found.report, wide, found.weights, share, train.total)


@dataclass
class Found:
    """Shards that wait to be summed, and what their reading told.

    Parameters
    ----------
    words, runs : list of Rows
    report : ReadReport
    samples : tuple of str
    weights, lines : dict
        By source.
    shares : list of float
        Of lines held out, by source.
    told : Told
    """

    words: list[Rows] = field(default_factory=list)
    runs: list[Rows] = field(default_factory=list)
    report: ReadReport = field(default_factory=ReadReport)
    samples: tuple[str, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)
    told: Told = field(default_factory=Told)


@contextmanager
def read_shards(
    text: Sequence[Source] | Iterable[Any],
    *,
    holdout: float,
    runs: bool = False,
    threads: int | None = None,
    folder: Path | None = None,
    engine: Engine | None = None,
    tell: Tell = silent,
) -> Iterator[Found]:
    """Count all sources and give what is to be summed; spilled shards are gone when the context ends.

    Parameters and errors as `read`; `folder` keeps finished shards for a count that is killed.
    """
    found = Found()
    report = found.report
    with Shards(holdout=holdout, runs=RUN if runs else None, threads=threads, folder=folder) as shards:
        for source, batches in _streams(text, report, tell, threads):
            before = report.lines
            if batches is None:
                words, wide = _counted(source, found, runs=runs)
            else:
                with closing(batches):  # ends the threads that read ahead, whatever happened
                    words, wide = shards.count(batches, name=source.name)
                found.weights[source.name] = source.weight
                found.lines[source.name] = report.lines - before
                found.shares.append(holdout)
            for kept, new in ((found.words, words), (found.runs, wide)):
                kept.extend(new if source.weight == 1.0 else [total(new, engine).times(source.weight)])
        found.samples, found.told = shards.samples, shards.told
        yield found


def _streams(
    text: Any, report: ReadReport, tell: Tell, threads: int | None
) -> Iterator[tuple[Source, Generator[Batch, None, None] | None]]:
    """Each source with its documents, None for count files; progress goes on from one source to the next."""
    if not (isinstance(text, list | tuple) and all(isinstance(source, Source) for source in text)):
        yield Source("lines", ()), (batch for batch in item_batches(text, report=report))
        return
    sizes = [sum(file.stat().st_size for file in source.paths if file.is_file()) for source in text]
    known = not any(str(file) == "-" for source in text for file in source.paths)
    for i, source in enumerate(text):
        before = sum(sizes[:i])

        def on_progress(done: int, _total: int | None, before: int = before) -> None:
            tell("read", before + done, sum(sizes) if known else None)

        if any(about(file) for file in source.paths):
            yield source, None
            on_progress(sizes[i], None)
        else:
            yield source, read_blocks(source, report=report, on_progress=on_progress, files=Ahead(threads))


def _counted(source: Source, found: Found, *, runs: bool) -> tuple[list[Rows], list[Rows]]:
    """Words and runs of a source of count files; whatever they tell of their making goes into the report."""
    report = found.report
    told = {file: about(file) for file in source.paths}
    if foreign := [str(file) for file, said in told.items() if said is None]:
        raise InputError(f"the source `{source.name}` mixes count files with `{foreign[0]}`; give them apart")
    files = [file for file, said in told.items() if said is not None and said.kind == "words"]
    if not files:
        raise InputError(f"`{source.paths[0]}` holds runs of words; the words were wanted", hint="koktok train FILE")
    wide = [runs_file(file) for file in files]
    if runs and (missing := [str(file) for file in wide if not file.is_file()]):
        raise InputError(
            f"superwords want the runs of the text, and there is no `{missing[0]}`", hint="koktok count ... --runs"
        )
    whole = About("words", ())
    for file in files:
        whole += told[file] or whole
    for counted in whole.sources:
        if counted.name in report.digests:
            raise InputError(f"two sources are named `{counted.name}`; every digest needs its own name")
        report.digests[counted.name] = counted.digest
        report.lines += counted.lines
        found.weights[counted.name] = source.weight
        found.lines[counted.name] = counted.lines
        found.shares.append(counted.holdout)
    report.files += len(files)
    return read_counts(files), read_counts(wide) if runs else []
