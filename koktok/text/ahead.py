"""Files read ahead of the count: unpacked, decoded and parsed by threads of their own, given in their order.

This file adds: the queue between reading and counting. One thread a file, as many files at once as there are threads, so
that many .gz files are unpacked on all cores and a single one is unpacked while its text is counted. What waits is
bounded; order, digests, messages and what the report says are those of one file read behind the other.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Full, Queue
from threading import Event

from koktok.text.records import PLACES, Batch, Errors, Meter, ReadReport, records

__all__ = ["Ahead"]

WAITING = 32
"""Batches of a file that wait; a batch is 256 KiB of text or 1000 rows of a table."""

_LOOK = 0.2  # seconds until a thread that waits looks whether anybody still wants it


@dataclass
class _File:
    """A file in work: what it told so far, and its batches with the bytes that were read by then; None is the end."""

    path: Path
    report: ReadReport = field(default_factory=ReadReport)
    batches: Queue[tuple[Batch, int] | None] = field(default_factory=lambda: Queue(WAITING))
    work: Future[None] | None = None


@dataclass(frozen=True)
class Ahead:
    r"""Who reads the files of a source for `koktok.text.sources.read_blocks`.

    Parameters
    ----------
    threads : int, optional
        Files that are read at once; all cores by default.

    Examples
    --------
    >>> import tempfile
    >>> from koktok.text.sources import Source, read_blocks
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in "ab":
    ...     _ = (folder / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    >>> list(read_blocks(Source.of(folder), files=Ahead(2)))
    [b'a\n', b'b\n']
    """

    threads: int | None = None

    def __call__(
        self, paths: Sequence[Path], field: str | None, errors: Errors, report: ReadReport, meter: Meter
    ) -> Generator[Batch, None, None]:
        """All batches of all files in order; parameters and errors are those of `koktok.text.records.records`."""
        n = self.threads or os.cpu_count() or 1
        over = Event()

        def give(file: _File, what: tuple[Batch, int] | None) -> None:
            while not over.is_set():
                with suppress(Full):
                    file.batches.put(what, timeout=_LOOK)
                    break

        def read(file: _File) -> None:
            own = Meter([file.path], None)
            try:
                for batch in records(file.path, field, errors, file.report, own):
                    give(file, (batch, own.done))
                    if over.is_set():
                        return
            finally:
                give(file, None)

        waiting = deque(paths)
        open_files: deque[_File] = deque()
        with ThreadPoolExecutor(n, thread_name_prefix="koktok-read") as pool:
            try:
                while waiting or open_files:
                    # What is no regular file may keep a thread waiting for ever; it is read here, in its turn.
                    while waiting and len(open_files) < n and meter.sizes[waiting[0]] is not None:
                        file = _File(waiting.popleft())
                        file.work = pool.submit(read, file)
                        open_files.append(file)
                    if open_files:
                        yield from _given(open_files[0], report, meter)
                        open_files.popleft()
                    else:
                        yield from records(waiting.popleft(), field, errors, report, meter)
            finally:
                over.set()


def _given(file: _File, report: ReadReport, meter: Meter) -> Generator[Batch, None, None]:
    """The batches of one file as they come; then what it told, also where it ends in an error."""
    assert file.work is not None
    begun = meter.done
    try:
        while (given := file.batches.get()) is not None:
            batch, done = given
            meter.add(begun + done - meter.done)
            yield batch
        file.work.result()
        meter.end(file.path, begun)
    finally:
        told = file.report
        report.files += told.files
        report.bytes += told.bytes
        report.empty_files += told.empty_files
        report.bad_bytes += told.bad_bytes
        report.bad_lines += told.bad_lines
        report.bad_places += told.bad_places[: max(0, PLACES - len(report.bad_places))]
