"""The files of a source, read by threads: the same blocks, in the same order, as without them.

Each thread reads a file, and a single file is read while its text is used. A file has at most one task in the pool, which
reads its next few blocks, so the number of waiting blocks is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from koktok.text.blocks import Block
from koktok.text.records import ByteProgress, Errors, ReadReport, records

WAITING = 32
"""Blocks of a file that wait to be used; a block is 256 KiB of text or 1000 rows of a table."""


@dataclass
class _Ahead:
    """A file that is being read: its blocks, and the task that reads the next ones."""

    path: Path
    report: ReadReport
    progress: ByteProgress
    blocks: Iterator[Block]
    task: Future[list[Block]]


def read_files(
    paths: Sequence[Path],
    field: str | None,
    errors: Errors,
    report: ReadReport,
    progress: ByteProgress,
    *,
    threads: int | None = None,
) -> Generator[Block, None, None]:
    """Yield the blocks of files in order, read by so many threads, or by the caller's."""
    if threads is None:
        for path in paths:
            yield from records(path, field, errors, report, progress)
        return
    waiting = deque(paths)
    ahead: deque[_Ahead] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="koktok-read") as pool:

        def read_next(blocks: Iterator[Block]) -> Future[list[Block]]:
            return pool.submit(list, islice(blocks, WAITING))

        while waiting or ahead:
            # A file that is not regular may block a thread for ever; it is read here, in its turn.
            while waiting and len(ahead) < threads and progress.sizes[waiting[0]] is not None:
                path, own = waiting.popleft(), ReadReport()
                count = ByteProgress([path], None)
                blocks = records(path, field, errors, own, count)
                ahead.append(_Ahead(path, own, count, blocks, read_next(blocks)))
            if not ahead:
                yield from records(waiting.popleft(), field, errors, report, progress)
                continue
            file, begun = ahead[0], progress.done
            try:
                while ready := file.task.result():
                    done = begun + file.progress.done
                    file.task = read_next(file.blocks)
                    progress.add(done - progress.done)
                    yield from ready
                progress.end(file.path, begun)
            finally:  # also after an error
                report.add(file.report)
            ahead.popleft()
