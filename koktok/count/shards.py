"""Text of any size to rows: documents gathered into shards, every core counting one, rows kept or spilled or found again.

This file adds: the stream. One thread reads, signs and joins documents; the others count shards of `SHARD` bytes in
compiled code without the lock of the interpreter (threads, because nothing has to be sent; `python -m eval.counting FILE`
sets processes beside them). What waits is bounded, and so is what is kept: beyond `KEPT` bytes rows go to files. With a
folder every shard's rows go there at once, under a name made from the shard's own bytes: a killed count finds them again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from koktok.count.rows import Rows
from koktok.errors import InputError, UsageError
from koktok.text.sources import Batch, held_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BLOCK", "SAMPLES", "SHARD", "Shards", "Told"]

SHARD = 16 << 20
"""Bytes of text in a shard: some 300,000 distinct words, and 60 MB of memory while it is counted."""

KEPT = 256 << 20
"""Bytes of rows in memory; more goes to files."""

BLOCK = 50
"""Lines that are held out together, see `koktok.text.sources.split_lines`."""

SAMPLES = 5
"""Held-out sentences that the closing table shows."""

_FORMAT = b"koktok count 1"
_DOCUMENT_ENDS = 2  # as in koktok.count.table, which is compiled code and loaded late


@dataclass
class _Shard:
    """Text on its way to a table: lines ended by newlines, and a flag a line."""

    data: list[bytes] = field(default_factory=list)
    flags: list[NDArray[np.uint8]] = field(default_factory=list)
    size: int = 0


@dataclass
class Told:
    """What a count has to tell besides its rows.

    Attributes
    ----------
    counted, found : int
        Shards that were counted, and shards whose rows an earlier count had left.
    spilled : int
        Bytes of rows that went to files for want of room.
    """

    counted: int = 0
    found: int = 0
    spilled: int = 0


class Shards:
    """Counts in progress; a context manager, because it may own threads and files.

    Parameters
    ----------
    holdout : float
        Share of the lines, in blocks of 50, that is counted apart.
    runs : int, optional
        Count runs of words beside the words, as `koktok.train.superwords.runs_of` cuts them, of so many words at most;
        in lines that are held out of any number.
    threads : int, optional
        All cores by default; the rows do not depend on it.
    folder : Path, optional
        Where the rows of finished shards are kept for a count that is killed.

    Examples
    --------
    >>> with Shards() as shards:
    ...     words, _ = shards.count([["나는 집에", "집에"]], name="lines")
    ...     [row.words() for row in words]
    [[' 집에', '나는', '집에']]
    """

    def __init__(
        self,
        *,
        holdout: float = 0.0,
        runs: int | None = None,
        threads: int | None = None,
        folder: Path | None = None,
    ) -> None:
        if not 0 <= holdout <= 1:
            raise UsageError(f"a share of {holdout} came; 0 to 1 was wanted", hint="--holdout 0.05")
        self._threshold = int(holdout * 2**64)
        self._runs = runs
        self._threads = threads or os.cpu_count() or 1
        self._folder = folder
        self._pool = ThreadPoolExecutor(self._threads)
        self._spill: tempfile.TemporaryDirectory[str] | None = None
        self._kept = 0
        self._shown: list[tuple[bytes, str]] = []
        self.told = Told()

    def __enter__(self) -> Shards:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._spill is not None:
            self._spill.cleanup()

    @property
    def samples(self) -> tuple[str, ...]:
        """Some held-out lines of a showable length, chosen by hash."""
        return tuple(line for _, line in nsmallest(SAMPLES, set(self._shown)))

    def count(self, batches: Iterable[Batch], *, name: str) -> tuple[list[Rows], list[Rows]]:
        """Rows of words and rows of runs of one source, an entry a shard.

        Parameters
        ----------
        batches : iterable of list of str or of bytes
            Documents, each of one line or many; as bytes, each of one line that a newline ends.
        name : str
            Of the source; decides which lines are held out.

        Raises
        ------
        InputError
            When the folder cannot be written.
        """
        words: list[Rows] = []
        runs: list[Rows] = []
        waiting: deque[Future[tuple[Rows, Rows | None]]] = deque()

        def take() -> None:
            counted, wide = waiting.popleft().result()
            words.append(self._settled(counted))
            if wide is not None:
                runs.append(self._settled(wide))

        for shard in self._filled(batches, name):
            data, flags = b"".join(shard.data), np.concatenate(shard.flags)
            shard.data.clear()
            waiting.append(self._pool.submit(self._counted, data, flags))
            del data
            if len(waiting) > self._threads:  # one is joined while each thread counts another
                take()
        while waiting:
            take()
        return words, runs

    def _filled(self, batches: Iterable[Batch], name: str) -> Iterator[_Shard]:
        """Documents into shards; blocks of lines go on from shard to shard."""
        shard = _Shard()
        line = 0
        for batch in batches:
            data = batch if isinstance(batch, bytes) else ("\n".join(batch) + "\n").encode()
            n = data.count(b"\n")
            if isinstance(batch, bytes) or n == len(batch):
                flags = np.full(n, _DOCUMENT_ENDS, np.uint8)
            else:
                flags = np.zeros(n, np.uint8)
                flags[np.cumsum([1 + document.count("\n") for document in batch]) - 1] = _DOCUMENT_ENDS
            if self._threshold:
                held = self._held(name, line, n)
                flags |= held
                if held.any():
                    self._look(data, held)
            line += n
            shard.data.append(data)
            shard.flags.append(flags)
            shard.size += len(data)
            if shard.size >= SHARD:
                yield shard
                shard = _Shard()
        if shard.size:
            yield shard

    def _held(self, name: str, line: int, n: int) -> NDArray[np.uint8]:
        first, last = line // BLOCK, (line + n - 1) // BLOCK
        blocks = np.array([held_block(i, self._threshold, name) for i in range(first, last + 1)], np.uint8)
        begin = line - first * BLOCK
        return np.repeat(blocks, BLOCK)[begin : begin + n]

    def _look(self, data: bytes, held: NDArray[np.uint8]) -> None:
        lines = data.split(b"\n")
        for i in np.flatnonzero(held).tolist():
            if 20 <= len(line := lines[i].decode()) <= 70:
                self._shown.append((hashlib.blake2b(lines[i], digest_size=8).digest(), line))
        if len(self._shown) >= 4096:
            self._shown = nsmallest(SAMPLES, set(self._shown))

    def _counted(self, data: bytes, flags: NDArray[np.uint8]) -> tuple[Rows, Rows | None]:
        """The rows of one shard, counted or found; runs on a thread of its own."""
        from koktok.count.runs import count_runs
        from koktok.count.table import Table

        files: list[Path] = []
        if self._folder is not None:
            sha = hashlib.blake2b(_FORMAT, digest_size=20)
            for part in (data, flags.data):
                sha.update(part)
            files = [self._folder / f"{sha.hexdigest()}.{kind}" for kind in ("words", "runs")]
            with contextlib.suppress(OSError, ValueError):
                found = Rows.mapped(str(files[0]))
                wide = Rows.mapped(str(files[1])) if self._runs else None
                self.told.found += 1
                return found, wide
        self.told.counted += 1
        table = Table(1 << 16)
        table.count(data, flags)
        rows, wide = table.rows(), None
        del table
        if self._runs:
            other = Table(1 << 16)
            count_runs(other, data, flags, self._runs)
            wide = other.rows()
        return (rows, wide) if self._folder is None else self._written([rows, wide], files)

    @staticmethod
    def _written(rows: Sequence[Rows | None], files: Sequence[Path]) -> tuple[Rows, Rows | None]:
        """Rows kept in files, runs first, so that a file of words tells that both are there."""
        try:
            files[0].parent.mkdir(parents=True, exist_ok=True)
            for part, file in reversed(list(zip(rows, files, strict=True))):
                if part is not None:
                    _write(part, file)
        except OSError as error:
            raise InputError(f"the folder `{files[0].parent}` cannot be written to: {error}") from error
        return Rows.mapped(str(files[0])), None if rows[1] is None else Rows.mapped(str(files[1]))

    def _settled(self, rows: Rows) -> Rows:
        """The rows themselves, or those of a file where memory holds enough of them."""
        if self._folder is not None:
            return rows
        self._kept += rows.nbytes
        if self._kept <= KEPT:
            return rows
        if self._spill is None:
            self._spill = tempfile.TemporaryDirectory(prefix="koktok-count-")
        self.told.spilled += rows.nbytes
        file = Path(self._spill.name) / str(self._kept)
        _write(rows, file)
        return Rows.mapped(str(file))


def _write(rows: Rows, file: Path) -> None:
    partial = file.with_suffix(f"{file.suffix}.{os.getpid()}.part")
    with partial.open("wb") as out:
        rows.write(out)
    partial.replace(file)
