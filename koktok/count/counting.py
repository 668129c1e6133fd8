"""Text of any size to counted words: split, group by, sum, on all cores and in bounded memory.

One thread reads, signs and joins documents; shards of `SHARD` bytes are counted beside it, each
by one plan in polars. What waits is bounded, and so is what is kept: beyond `KEPT` bytes shards go to files, and they are
summed range by range of the words. With a folder every shard goes there at once, under a name made from its own bytes: a
killed count finds it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shlex
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from polars import col

from koktok.count.count_files import About, about, read_counts, runs_file
from koktok.count.counts import WORD, Counts, summed
from koktok.errors import InputError, UsageError
from koktok.files import Checkpoint, scratch
from koktok.progress import OnProgress, silent
from koktok.text.documents import LIMBS, document_hashes, hash_sum, hash_sum_digest, held_documents
from koktok.text.records import Batch, Prefetch, ReadReport
from koktok.text.sources import BLOCK, Source, held_block, item_batches, read_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray


log = logging.getLogger(__name__)

SHARD = 16 << 20
"""Bytes of text in a shard: some 300,000 distinct words, and 250 MB of memory while it is counted."""

KEPT = 256 << 20
"""Bytes of counted shards in memory; more goes to files."""

PART = 2_000_000
"""Rows of shards that are summed at once."""

SAMPLES = 5
"""Held-out sentences that the closing table shows."""

RUN = 8
"""Eojeols in a run at most. Training superwords on whole sentences finds the same pieces, from a larger table."""

SENTENCE_ENDS = r"""([.?!…。]["'”’)\]」』]*) """
"""Where a sentence ends inside a line, as a regular expression: a mark, closing quotes and brackets, a space."""

_FORMAT = b"koktok count 2"
_NOTES = "progress.jsonl"
_GROUP = 1 << 15  # rows of a spilled shard that are skipped or read together
_STEP = 512  # rows of a shard for a word of its sample
_RUN = rf" *[^ \n]+(?: +[^ \n]+){{{RUN - 1}}}"

HoldOutBy = Literal["blocks", "documents"]


def _words(line: pl.Expr, *, held: bool) -> pl.Expr:  # noqa: ARG001 - one shape for both kinds of table
    return line.str.extract_all(WORD)


def _runs(line: pl.Expr, *, held: bool) -> pl.Expr:
    """Runs of words for superwords: cut behind sentence ends, and after `RUN` words where the line is not held out."""
    cut = line.str.replace_all(SENTENCE_ENDS, "$1\n ")
    return (cut if held else cut.str.replace_all(_RUN, "${0}\n")).str.split("\n")


def _counted(lines: pl.DataFrame, cut: Callable[..., pl.Expr], *, documents: bool = False) -> pl.DataFrame:
    """The plan: lines to a table of the words that `cut` finds in them, those of held-out lines apart."""
    sides = []
    for held in (False, True):
        rows = lines.lazy().filter(col.held == held).select("document", word=cut(col.line, held=held)).explode("word")
        rows = rows.filter(col.word != "")
        if documents:
            rows = rows.group_by("document", "word").len("n").group_by("word").agg(col.n.sum(), documents=pl.len())
        else:
            rows = rows.group_by("word").len("n")
        columns = [name for name in ("n", "documents") if documents or name == "n"]
        numbers = [(pl.lit(0) if held else col(name)).cast(pl.UInt64).alias(name) for name in columns]
        sides.append(rows.select("word", *numbers, held=(col.n if held else pl.lit(0)).cast(pl.UInt64)))
    return summed(sides)


def tables_of(
    data: bytes, held: NDArray[np.bool_], ends: NDArray[np.bool_], *, runs: bool = False
) -> list[pl.DataFrame]:
    r"""The table of the words of some text, and behind it that of its runs where they are wanted.

    Examples
    --------
    >>> tables_of("나는 집에\n집에\n".encode(), np.array([False, True]), np.array([True, True]))[0].rows()
    [(' 집에', 1, 0), ('나는', 1, 0), ('집에', 0, 1)]
    """
    text = pl.Series([data[:-1]], dtype=pl.Binary).cast(pl.String)
    del data
    lines = pl.DataFrame(
        [text.str.split("\n").explode().alias("line"), pl.Series("held", held), pl.Series("document", ends)]
    ).with_columns(document=col.document.cum_sum() - col.document)
    words = _counted(lines, _words)
    return [words, _counted(lines, _runs, documents=True)] if runs else [words]


def flat(batch: Batch) -> tuple[bytes, NDArray[np.bool_]]:
    r"""Documents as lines, each ended by a newline, and whether each line is the last one of its document.

    Examples
    --------
    >>> data, ends = flat(["a\nb", "c"])
    >>> data, ends.tolist()
    (b'a\nb\nc\n', [False, True, True])
    """
    data = batch if isinstance(batch, bytes) else ("\n".join(batch) + "\n").encode()
    n = data.count(b"\n")
    ends = np.ones(n, np.bool_)
    if not isinstance(batch, bytes) and n > len(batch):
        ends[:] = False
        ends[np.cumsum([1 + document.count("\n") for document in batch]) - 1] = True
    return data, ends


def documents_in(data: bytes, ends: NDArray[np.bool_]) -> list[bytes]:
    r"""Lines put together to documents.

    Examples
    --------
    >>> documents_in(b"a\nb\nc\n", np.array([False, True, True]))
    [b'a\nb', b'c']
    """
    lines = data.split(b"\n")[:-1]
    if ends.all():
        return lines
    return [b"\n".join(lines[a:b]) for a, b in pairwise([0, *(np.flatnonzero(ends) + 1).tolist()])]


def counted_lines(lines: Iterable[str], *, runs: bool = False) -> Counts:
    """Counts of lines that are in memory, words or runs of them; what `read` does without files, shards and held-out lines.

    Examples
    --------
    >>> counted_lines(["갈 수 있다. 그 사람은"], runs=True).as_dict()
    {' 그 사람은': 1, '갈 수 있다.': 1}
    """
    with Shards(runs=runs) as shards:
        words, wide = shards.count([list(lines)], name="lines")
        return whole(wide if runs else words)


@dataclass(frozen=True)
class Shard:
    """A counted part of the text: a table in memory or in a file, by code point."""

    frame: pl.LazyFrame
    rows: int
    sample: pl.Series

    @classmethod
    def of(cls, frame: pl.DataFrame, file: Path | None = None) -> Shard:
        """The shard of a table, which is read from that file where there is one."""
        return cls(
            frame.lazy() if file is None else pl.scan_parquet(file, glob=False),
            len(frame),
            frame["word"].gather_every(_STEP),
        )


def parts(shards: Sequence[Shard]) -> Iterator[pl.DataFrame]:
    """Shards summed, in code-point order, in parts: the range of all words is cut where parts have some `PART` rows."""
    sample = pl.concat([pl.Series("word", [], pl.String), *(shard.sample for shard in shards)])
    for low, high in pairwise([None, *borders(sample, sum(shard.rows for shard in shards)), None]):
        rows = [shard.frame for shard in shards if shard.rows]
        if low is not None:
            rows = [frame.filter(col.word >= low) for frame in rows]
        if high is not None:
            rows = [frame.filter(col.word < high) for frame in rows]
        if rows:
            yield summed(rows)


def borders(sample: pl.Series, rows: int) -> list[str]:
    """Words at which to cut tables so that some `PART` rows lie between two of them."""
    sample, wanted = sample.sort(), rows // PART
    return sorted({sample[i * len(sample) // (wanted + 1)] for i in range(1, wanted + 1)})


@dataclass
class CountStats:
    """Statistics of a count, beside its tables."""

    counted: int = 0
    resumed: int = 0
    spilled: int = 0


@dataclass
class _Text:
    """Text on its way to a table: lines ended by newlines, and of each whether it is held out and ends its document."""

    data: list[bytes] = field(default_factory=list)
    held: list[NDArray[np.bool_]] = field(default_factory=list)
    ends: list[NDArray[np.bool_]] = field(default_factory=list)
    size: int = 0


class Shards:
    """Counts in progress; a context manager, because it owns threads and files.

    Examples
    --------
    >>> with Shards() as shards:
    ...     words, _ = shards.count([["나는 집에", "집에"]], name="lines")
    ...     next(parts(words)).rows()
    [(' 집에', 1, 0), ('나는', 1, 0), ('집에', 1, 0)]
    """

    def __init__(
        self,
        *,
        holdout: float = 0.0,
        by: HoldOutBy = "blocks",
        runs: bool = False,
        threads: int | None = None,
        folder: Path | None = None,
    ) -> None:
        if not 0 <= holdout <= 1:
            raise UsageError(f"a share of {holdout} came; 0 to 1 was wanted", hint="--holdout 0.05")
        self._holdout = holdout
        self._by = by
        self._limbs = np.zeros(LIMBS, np.uint64)
        self._runs = runs
        self._threads = threads or os.cpu_count() or 1
        self._kept_at = None if folder is None else Checkpoint(folder / _NOTES, folder, {"format": _FORMAT.decode()})
        self._noted = {part["name"]: part for part in self._kept_at.parts} if self._kept_at else {}
        self._noting = threading.Lock()
        self._pool = ThreadPoolExecutor(self._threads)
        self._spill: Path | None = None
        self._until_done = contextlib.ExitStack()
        self._kept = 0
        self._shown: list[tuple[bytes, str]] = []
        self.stats = CountStats()

    def __enter__(self) -> Shards:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._until_done.close()

    @property
    def samples(self) -> tuple[str, ...]:
        """Some held-out lines of a showable length, chosen by hash."""
        return tuple(line for _, line in nsmallest(SAMPLES, set(self._shown)))

    def count(self, batches: Iterable[Batch], *, name: str) -> tuple[list[Shard], list[Shard]]:
        """Shards of words and shards of runs of one source."""
        words: list[Shard] = []
        runs: list[Shard] = []
        waiting: deque[Future[list[Shard]]] = deque()

        def take() -> None:
            counted, *wide = waiting.popleft().result()
            words.append(counted)
            runs.extend(wide)

        for text in self._filled(batches, name):
            data, held, ends = b"".join(text.data), np.concatenate(text.held), np.concatenate(text.ends)
            text.data.clear()
            waiting.append(self._pool.submit(self._shards, data, held, ends))
            del data
            if len(waiting) > self._threads:  # one is joined while each thread counts another
                take()
        while waiting:
            take()
        return words, runs

    def _filled(self, batches: Iterable[Batch], name: str) -> Iterator[_Text]:
        """Documents in pieces of `SHARD` bytes; blocks of lines go on from one to the next."""
        text = _Text()
        line = 0
        for batch in batches:
            data, ends = flat(batch)
            n = len(ends)
            held = self._held_documents(data, ends) if self._by == "documents" else self._held(name, line, n)
            if held.any():
                self._look(data, held)
            line += n
            text.data.append(data)
            text.held.append(held)
            text.ends.append(ends)
            text.size += len(data)
            if text.size >= SHARD:
                yield text
                text = _Text()
        if text.size:
            yield text

    def _held(self, name: str, line: int, n: int) -> NDArray[np.bool_]:
        if not self._holdout:
            return np.zeros(n, np.bool_)
        first, last = line // BLOCK, (line + n - 1) // BLOCK
        blocks = np.array([held_block(i, self._holdout, name) for i in range(first, last + 1)])
        begin = line - first * BLOCK
        return np.repeat(blocks, BLOCK)[begin : begin + n]

    def _held_documents(self, data: bytes, ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
        digests = document_hashes(documents_in(data, ends))
        self._limbs += hash_sum(digests)
        return np.repeat(held_documents(digests, self._holdout), np.diff(np.flatnonzero(ends), prepend=-1))

    def digest(self) -> str:
        """Of the documents since it was last asked for, where they are hashed one by one."""
        limbs, self._limbs = self._limbs, np.zeros(LIMBS, np.uint64)
        return hash_sum_digest(limbs.tolist())

    def _look(self, data: bytes, held: NDArray[np.bool_]) -> None:
        lines = data.split(b"\n")
        for i in np.flatnonzero(held).tolist():
            if 20 <= len(line := lines[i].decode()) <= 70:
                self._shown.append((hashlib.blake2b(lines[i], digest_size=8).digest(), line))
        if len(self._shown) >= 4096:
            self._shown = nsmallest(SAMPLES, set(self._shown))

    def _shards(self, data: bytes, held: NDArray[np.bool_], ends: NDArray[np.bool_]) -> list[Shard]:
        """The table of words of some text, and that of its runs, counted or found; runs on a thread of its own."""
        name = ""
        if self._kept_at is not None:
            sha = hashlib.blake2b(_FORMAT, digest_size=20)
            for part in (data, held.data, ends.data):
                sha.update(part)
            name = sha.hexdigest()
            files = [self._kept_at.folder / file for file in _names(name, runs=self._runs)]
            noted = self._noted.get(name, {"files": {}})
            if {file.name for file in files} <= noted["files"].keys() and self._kept_at.whole(noted):
                self.stats.resumed += 1
                return [Shard.of(pl.read_parquet(file, columns=["word"], glob=False), file) for file in files]
        self.stats.counted += 1
        tables = tables_of(data, held, ends, runs=self._runs)
        if self._kept_at is None:
            return [self._settled(table) for table in tables]
        return self._written(self._kept_at, name, tables)

    def _written(self, kept_at: Checkpoint, name: str, tables: Sequence[pl.DataFrame]) -> list[Shard]:
        """Shards kept in files, which are noted when the disk has them."""
        files = [kept_at.folder / file for file in _names(name, runs=self._runs)]
        try:
            for table, file in zip(tables, files, strict=True):
                _write(table, file)
            with self._noting:
                kept_at.add({"name": name}, [file.name for file in files])
        except OSError as error:
            raise InputError(f"the folder `{kept_at.folder}` cannot be written to: {error}") from error
        return [Shard.of(table, file) for table, file in zip(tables, files, strict=True)]

    def _settled(self, table: pl.DataFrame) -> Shard:
        """The table itself, or a file where memory holds enough of them."""
        self._kept += int(table.estimated_size())
        if self._kept <= KEPT:
            return Shard.of(table)
        if self._spill is None:
            self._spill = self._until_done.enter_context(scratch("koktok-count"))
        self.stats.spilled += 1
        file = self._spill / str(self._kept)
        _write(table, file)
        return Shard.of(table, file)


def _write(table: pl.DataFrame, file: Path) -> None:
    table.write_parquet(file, compression="lz4", row_group_size=_GROUP)


def _names(name: str, *, runs: bool) -> list[str]:
    return [f"{name}.{kind}" for kind in (("words", "runs") if runs else ("words",))]


def forget(folder: Path) -> None:
    """Take away the shards that a count kept in a folder, and its notes; anything else in it stays."""
    for file in folder.iterdir():
        if file.name == _NOTES or re.fullmatch(r"[0-9a-f]{40}\.(words|runs)", file.name):
            with contextlib.suppress(OSError):  # Windows keeps what is still mapped
                file.unlink()


@dataclass(frozen=True)
class CountResult:
    """Words, runs and statistics of one pass over the text."""

    train: Counts
    held: Counts
    samples: tuple[str, ...]
    report: ReadReport
    runs: Counts | None = None
    weights: dict[str, float] = field(default_factory=dict)
    holdout: float | None = None
    eojeols: int = 0
    pruned: bool = False


def read(
    text: Sequence[Source] | Iterable[Any],
    *,
    holdout: float,
    runs: bool = False,
    threads: int | None = None,
    on_progress: OnProgress = silent,
) -> CountResult:
    """Count the words of all sources in one pass, a share of the lines apart.

    The only stage whose time follows the text; all others follow the distinct words.
    """
    with counting(text, holdout=holdout, runs=runs, threads=threads, on_progress=on_progress) as found:
        words, wide = _joined(found.words), _joined(found.runs)
    train = _occurring(words, "n")
    if not train.total and (empty := found.report.empty_files) and not found.report.lines:
        raise InputError(f"`{empty[0]}` is empty; text was wanted", hint=f"ls -l {shlex.quote(empty[0])}")
    if not train.total:
        raise InputError("there is no word to train on in the text", hint="koktok train FILE ... --holdout 0")
    # Superwords see more than a word, so a tokenizer with them is measured on sentences.
    held = _occurring(wide if runs else words, "held")
    share = found.shares[0] if len(set(found.shares)) == 1 else None
    spans = _occurring(wide, "n") if runs else None
    return CountResult(train, held, found.samples, found.report, spans, found.weights, share, train.total)


def whole(shards: Sequence[Shard]) -> Counts:
    """What shards counted in the lines that are trained on."""
    return _occurring(_joined(shards), "n")


def _joined(shards: Sequence[Shard]) -> pl.DataFrame:
    nothing = pl.DataFrame(schema={"word": pl.String, "n": pl.UInt64, "held": pl.UInt64})
    return pl.concat(list(parts(shards)) or [nothing])


def _occurring(table: pl.DataFrame, column: str) -> Counts:
    """The words that occur in the lines that are trained on, or in those that are held out."""
    numbers = {"n": col(column)} | ({"documents": col.documents} if column == "n" and "documents" in table else {})
    return Counts.from_frame(table.filter(col(column) > 0).select("word", **numbers))


@dataclass
class CountedShards:
    """Shards to be summed, and the report of their reading."""

    words: list[Shard] = field(default_factory=list)
    runs: list[Shard] = field(default_factory=list)
    report: ReadReport = field(default_factory=ReadReport)
    samples: tuple[str, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    shares: list[float] = field(default_factory=list)
    stats: CountStats = field(default_factory=CountStats)


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
) -> Iterator[CountedShards]:
    """Count all sources and give what is to be summed; spilled shards are gone when the context ends.

    Parameters and errors as `read`; `by` is that of `Shards`, and `folder` keeps finished shards for a count that is killed.
    """
    found = CountedShards()
    report = found.report
    with Shards(holdout=holdout, by=by, runs=runs, threads=threads, folder=folder) as shards:
        for source, batches in _streams(text, report, on_progress, threads):
            before = report.lines
            if batches is None:
                words, wide = _counted_before(source, found, runs=runs)
            else:
                with contextlib.closing(batches):  # ends the threads that read ahead, whatever happened
                    words, wide = shards.count(batches, name=source.name)
                if by == "documents":
                    report.digests[source.name] = shards.digest()
                found.weights[source.name] = source.weight
                found.lines[source.name] = report.lines - before
                found.shares.append(holdout)
            for kept, new in ((found.words, words), (found.runs, wide)):
                kept.extend(
                    new if source.weight == 1.0 else [Shard.of(weighed(part, source.weight)) for part in parts(new)]
                )
        found.samples, found.stats = shards.samples, shards.stats
        if found.stats.resumed:
            log.info(
                "%d of %d shards were counted before", found.stats.resumed, found.stats.counted + found.stats.resumed
            )
        yield found


def weighed(table: pl.DataFrame, weight: float) -> pl.DataFrame:
    """Occurrences times the weight, rounded to integers, halves to even; documents and held-out lines stay.

    Examples
    --------
    >>> weighed(pl.DataFrame({"word": ["가", "나"], "n": [3, 1], "held": [0, 0]}), 0.5).rows()
    [('가', 2, 0)]
    """
    if weight == 1.0:
        return table
    table = table.with_columns(n=pl.Series(np.rint(table["n"].to_numpy() * weight), dtype=pl.UInt64))
    if "documents" in table:
        table = table.with_columns(documents=pl.when(col.n > 0).then("documents").otherwise(0).cast(pl.UInt64))
    return table.filter((col.n > 0) | (col.held > 0))


def _streams(
    text: Any, report: ReadReport, on_progress: OnProgress, threads: int | None
) -> Iterator[tuple[Source, Generator[Batch, None, None] | None]]:
    """Each source with its documents, None for count files; progress goes on from one source to the next."""
    if not (isinstance(text, list | tuple) and all(isinstance(source, Source) for source in text)):
        yield Source("lines", ()), (batch for batch in item_batches(text, report=report))
        return
    sizes = [sum(file.stat().st_size for file in source.paths if file.is_file()) for source in text]
    known = not any(str(file) == "-" for source in text for file in source.paths)
    for i, source in enumerate(text):
        before = sum(sizes[:i])

        def report_read(done: int, _total: int | None, before: int = before) -> None:
            on_progress("read", before + done, sum(sizes) if known else None)

        if any(about(file) for file in source.paths):
            yield source, None
            report_read(sizes[i], None)
        else:
            # Whether all of them together may be empty, the caller knows.
            yield (
                source,
                read_blocks(source, report=report, on_progress=report_read, may_be_empty=True, files=Prefetch(threads)),
            )


def _counted_before(source: Source, found: CountedShards, *, runs: bool) -> tuple[list[Shard], list[Shard]]:
    """Words and runs of a source of count files; their statistics go into the report."""
    report = found.report
    heads = {file: about(file) for file in source.paths}
    if foreign := [str(file) for file, head in heads.items() if head is None]:
        raise InputError(f"the source `{source.name}` mixes count files with `{foreign[0]}`; give them apart")
    files = [file for file, head in heads.items() if head is not None and head.kind == "words"]
    if not files:
        raise InputError(f"`{source.paths[0]}` holds runs of words; the words were wanted", hint="koktok train FILE")
    wide = [runs_file(file) for file in files]
    if runs and (missing := [str(file) for file in wide if not file.is_file()]):
        raise InputError(
            f"superwords want the runs of the text, and there is no `{missing[0]}`", hint="koktok count ... --runs"
        )
    whole = About("words", ())
    for file in files:
        whole += heads[file] or whole
    for counted in whole.sources:
        if counted.name in report.digests:
            raise InputError(f"two sources are named `{counted.name}`; every digest needs its own name")
        report.digests[counted.name] = counted.digest
        report.lines += counted.lines
        found.weights[counted.name] = source.weight
        found.lines[counted.name] = counted.lines
        found.shares.append(counted.holdout)
    report.files += len(files)
    return [shard_of(file) for file in files], [shard_of(file) for file in wide] if runs else []


def shard_of(file: Path) -> Shard:
    """A count file as a shard."""
    frame = read_counts(file)
    try:
        words = frame.select("word").collect()["word"]
    except pl.exceptions.PolarsError as error:
        raise InputError(f"the count file `{file}` is damaged: {error}") from error
    if words.null_count() or not (words[1:] > words[:-1]).all():
        raise InputError(
            f"the words of the count file `{file}` stand twice, or in no order; expected each once, by code point",
            hint="koktok count TEXT ... -o counts.parquet",
        )
    return Shard(frame, len(words), words.gather_every(_STEP))
