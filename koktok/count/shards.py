"""Counted parts of a text: split, group by, sum, on all cores and in bounded memory.

The text is collected into parts of `SHARD` bytes, each counted by one plan in polars on a pool of threads. Beyond `KEPT` bytes
counted shards go to files, and they are summed range by range of the words. With a folder every shard goes there at once,
named by a hash of its text: a count that was killed finds it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from heapq import nsmallest
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from polars import col

from koktok.count.count_files import CountFile
from koktok.count.counts import BY_WORD, WORD, Counts, copied, summed
from koktok.errors import InputError, UsageError
from koktok.files import Checkpoint, scratch, writing
from koktok.progress import Done
from koktok.text.blocks import Block
from koktok.text.documents import LIMBS, document_hashes, hash_sum, hash_sum_digest, held_by_document, held_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Text = list[tuple[Block, Flags]]
    """Blocks, and which of their lines are held out."""


SHARD = 16 << 20
"""Bytes of text in a shard: some 300,000 distinct words, and 250 MB of memory while it is counted."""

KEPT = 256 << 20
"""Bytes of counted shards in memory; more goes to files."""

PART = 2_000_000
"""Rows of shards that are summed at once."""

SAMPLES = 20
"""Held-out sentences of which the closing table shows some."""

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


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _runs(*, held: bool) -> pl.Expr:
    """Cut lines into runs of words: after sentence ends, and after `RUN` words if the line is not held out."""
    cut = col.line.str.replace_all(SENTENCE_ENDS, "$1\n ")
    return (cut if held else cut.str.replace_all(_RUN, "${0}\n")).str.split("\n")


def tables_of(text: Text, *, runs: bool = False) -> list[pl.DataFrame]:
    """Count the words of some text, and its runs of words if they are wanted: one or two tables."""
    data = pl.Series([block.unix[:-1] for block, _ in text], dtype=pl.Binary).cast(pl.String)
    lines = pl.DataFrame(
        [
            data.str.split("\n").explode().alias("line"),
            pl.Series("held", np.concatenate([held for _, held in text])),
            pl.Series("ends", np.concatenate([block.ends for block, _ in text])),
        ]
    ).lazy()
    words = lines.select("held", word=col.line.str.extract_all(WORD)).explode("word").filter(col.word != "")
    own, other = (~col.held).sum().cast(pl.UInt64), col.held.sum().cast(pl.UInt64)
    plans = [words.group_by("word").agg(n=own, held=other)]
    if runs:
        run = pl.when("held").then(_runs(held=True)).otherwise(_runs(held=False))
        document = col.ends.cum_sum() - col.ends
        wide = lines.select("held", document=document, word=run).explode("word")
        by_document = wide.filter(col.word != "").group_by("document", "word").agg(n=own, held=other)
        plans.append(
            by_document.group_by("word").agg(
                col.n.sum(), documents=(col.n > 0).sum().cast(pl.UInt64), held=col.held.sum()
            )
        )
    return [plan.sort(BY_WORD).collect() for plan in plans]


def weighed(table: pl.DataFrame, weight: float) -> pl.DataFrame:
    """Occurrences times the weight, rounded to integers, halves to even; documents and held-out lines stay."""
    if weight == 1.0:
        return table
    table = table.with_columns(n=pl.Series(np.rint(table["n"].to_numpy() * weight), dtype=pl.UInt64))
    if "documents" in table:
        table = table.with_columns(documents=pl.when(col.n > 0).then("documents").otherwise(0).cast(pl.UInt64))
    return table.filter((col.n > 0) | (col.held > 0))


# ── shards and their sum ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Shard:
    """A counted part of the text: a table in memory or in a file, in code-point order."""

    frame: pl.LazyFrame
    rows: int
    sample: pl.Series

    @classmethod
    def of(cls, table: pl.DataFrame, file: Path | None = None) -> Shard:
        """Make a shard of a table, which is read from that file if there is one."""
        frame = table.lazy() if file is None else pl.scan_parquet(file, glob=False)
        return cls(frame, len(table), table["word"].gather_every(_STEP) + "")  # a copy, see `copied`

    @classmethod
    def of_count(cls, file: CountFile) -> Shard:
        """Make a shard of a count file."""
        return cls(file.frame, *file.every(_STEP))


def parts(shards: Sequence[Shard], on_progress: Done = lambda _done, _total: None) -> Iterator[pl.DataFrame]:
    """Shards summed, in code-point order, in parts: the range of all words is cut where parts have some `PART` rows."""
    sample = pl.concat([pl.Series("word", [], pl.String), *(shard.sample for shard in shards)])
    ranges = list(pairwise([None, *borders(sample, sum(shard.rows for shard in shards)), None]))
    for i, (low, high) in enumerate(ranges):
        on_progress(i, len(ranges))
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


def joined(shards: Sequence[Shard]) -> pl.DataFrame:
    """Sum shards into one table."""
    nothing = pl.DataFrame(schema={"word": pl.String, "n": pl.UInt64, "held": pl.UInt64})
    return pl.concat(list(parts(shards)) or [nothing])


def occurring(table: pl.DataFrame, column: str) -> Counts:
    """Return the words of lines that are trained on (`n`), or of those that are held out (`held`)."""
    numbers = {"n": col(column)} | ({"documents": col.documents} if column == "n" and "documents" in table else {})
    return Counts.from_frame(table.filter(col(column) > 0).select("word", **numbers))


class Spill:
    """Tables that are kept as shards, in memory and beyond `KEPT` bytes in files; a context manager, because the files go with it."""

    def __init__(self) -> None:
        self.files = 0
        self._in_memory = 0
        self._until_done = contextlib.ExitStack()
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until_done.close()

    def keep(self, table: pl.DataFrame) -> Shard:
        """Make a shard of a table in code-point order."""
        size = int(table.estimated_size())
        with self._lock:
            if self._in_memory + size <= KEPT:
                self._in_memory += size
                return Shard.of(copied(table))
            if self._folder is None:
                self._folder = self._until_done.enter_context(scratch("koktok-count"))
            self.files += 1
            file = self._folder / str(self.files)
        _write(table, file)
        return Shard.of(table, file)


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Kept:
    """Shards in a folder, named by a hash of their text, which a later count of the same text finds again."""

    def __init__(self, folder: Path, *, runs: bool) -> None:
        self.checkpoint = Checkpoint(folder / _NOTES, folder, {"format": _FORMAT.decode()})
        self.suffixes = ("words", "runs") if runs else ("words",)
        self.noted = {part["name"]: part for part in self.checkpoint.parts}
        self.lock = threading.Lock()

    def files(self, name: str) -> list[Path]:
        """Return the files of a shard."""
        return [self.checkpoint.folder / f"{name}.{suffix}" for suffix in self.suffixes]

    def find(self, name: str) -> list[Shard] | None:
        """Return the shards of a text if they are complete."""
        noted, files = self.noted.get(name, {"files": {}}), self.files(name)
        if {file.name for file in files} <= noted["files"].keys() and self.checkpoint.whole(noted):
            return [Shard.of(pl.read_parquet(file, columns=["word"], glob=False), file) for file in files]
        return None

    def write(self, name: str, tables: Sequence[pl.DataFrame]) -> list[Shard]:
        """Write the shards of a text, and note them when they are on the disk."""
        files = self.files(name)
        try:
            for table, file in zip(tables, files, strict=True):
                _write(table, file)
            with self.lock, writing(self.checkpoint.notes):
                self.checkpoint.add({"name": name}, [file.name for file in files])
        except InputError:
            for file in files:
                file.unlink(missing_ok=True)
            raise
        return [Shard.of(table, file) for table, file in zip(tables, files, strict=True)]


class Shards:
    """A count in progress: the shards of its words and runs; a context manager, because it owns threads and files.

    Examples
    --------
    >>> with Shards() as shards:
    ...     shards.count([Block.of(["나는 집에", "집에"])], name="lines")
    ...     next(parts(shards.words)).rows()
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
            raise UsageError(f"expected a share of 0 to 1, got {holdout}", hint="--holdout 0.05")
        self.words: list[Shard] = []
        self.runs: list[Shard] = []
        self.counted = self.resumed = 0
        self._holdout, self._by, self._with_runs = holdout, by, runs
        self._limbs = np.zeros(LIMBS, np.uint64)
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads)
        self._kept = None if folder is None else _Kept(folder, runs=runs)
        self._spill = Spill()
        self._shown: list[tuple[bytes, str]] = []

    def __enter__(self) -> Shards:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._spill.__exit__(kind, error, trace)

    @property
    def spilled(self) -> int:
        """The number of tables in temporary files."""
        return self._spill.files

    def count(self, blocks: Iterable[Block], *, name: str, weight: float = 1.0) -> None:
        """Count the text of one source."""
        words: list[Shard] = []
        runs: list[Shard] = []
        waiting: deque[Future[list[Shard]]] = deque()

        def take() -> None:
            shard, *wide = waiting.popleft().result()
            words.append(shard)
            runs.extend(wide)

        for text in self._parts(blocks, name):
            waiting.append(self._pool.submit(self._shards, text))
            del text
            if len(waiting) > self._threads:  # one is collected while each thread counts another
                take()
        while waiting:
            take()
        self.add(words, runs, weight)

    def add(self, words: Sequence[Shard], runs: Sequence[Shard], weight: float = 1.0) -> None:
        """Add the shards of one source, its occurrences times a weight."""
        for kept, new in ((self.words, words), (self.runs, runs)):
            kept += new if weight == 1.0 else [self._spill.keep(weighed(part, weight)) for part in parts(new)]

    def _parts(self, blocks: Iterable[Block], name: str) -> Iterator[Text]:
        """Collect blocks into texts of `SHARD` bytes, with the lines of each that are held out."""
        text: Text = []
        size = line = 0
        for block in blocks:
            if self._by == "documents":
                digests = document_hashes(block.raw_documents())
                self._limbs += hash_sum(digests)
                held = held_by_document(block, digests, self._holdout)
            else:
                held = held_lines(line, block.n_lines, self._holdout, name)
            if held.any():
                self._look(block, held)
            text.append((block, held))
            line += block.n_lines
            size += len(block.data)
            if size >= SHARD:
                yield text
                text, size = [], 0
        if text:
            yield text

    def digest(self) -> str:
        """Return the digest of the documents since the last call, if they are hashed one by one."""
        limbs, self._limbs = self._limbs, np.zeros(LIMBS, np.uint64)
        return hash_sum_digest(limbs.tolist())

    @property
    def samples(self) -> tuple[str, ...]:
        """Some held-out lines of a length that can be shown, chosen by hash."""
        return tuple(line for _, line in nsmallest(SAMPLES, set(self._shown)))

    def _look(self, block: Block, held: Flags) -> None:
        lines = block.unix.split(b"\n")
        for i in np.flatnonzero(held).tolist():
            if 20 <= len(line := lines[i].decode()) <= 70:
                self._shown.append((hashlib.blake2b(lines[i], digest_size=8).digest(), line))
        if len(self._shown) >= 4096:
            self._shown = nsmallest(SAMPLES, set(self._shown))

    def _shards(self, text: Text) -> list[Shard]:
        """Count some text, words and perhaps runs, or find its shards; on a thread of the pool."""
        if self._kept is None:
            self.counted += 1
            return [self._spill.keep(table) for table in tables_of(text, runs=self._with_runs)]
        sha = hashlib.blake2b(_FORMAT, digest_size=20)
        blocks, held = zip(*text, strict=True)
        flags = [*held, *(block.ends for block in blocks)]
        for part in (*(block.data for block in blocks), *(array.tobytes() for array in flags)):
            sha.update(part)
        if (shards := self._kept.find(sha.hexdigest())) is not None:
            self.resumed += 1
            return shards
        self.counted += 1
        return self._kept.write(sha.hexdigest(), tables_of(text, runs=self._with_runs))


def _write(table: pl.DataFrame, file: Path) -> None:
    with writing(file):
        table.write_parquet(file, compression="lz4", row_group_size=_GROUP)


def forget(folder: Path) -> None:
    """Remove the shards that a count kept in a folder, and its notes; anything else in it stays."""
    for file in folder.iterdir():
        if file.name == _NOTES or re.fullmatch(r"[0-9a-f]{40}\.(words|runs)", file.name):
            with contextlib.suppress(OSError):  # Windows keeps what is still mapped
                file.unlink()
