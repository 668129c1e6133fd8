"""Counting, measured: threads, and the cost of runs, of files that are read and of shards that spill.

    python -m eval.counting FILE [--report FILE]

FILE is plain text of some size. Each row is the best of three counts; seconds are wall time and processor time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from eval.machine import Told, machine
from koktok.count import counting
from koktok.count.count_files import About, write_counts
from koktok.count.counting import parts, read
from koktok.text.sources import Source


def best(work: Callable[[], object], times: int = 3) -> tuple[float, float]:
    """Seconds of the fastest of some runs, and processor time of the thriftiest."""
    found = []
    for _ in range(times):
        begun, used = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - begun, time.process_time() - used))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    tell = Told(given.report)
    size = Path(given.file).stat().st_size / 1e6
    cores = os.cpu_count() or 1
    sources = [Source.of(given.file)]
    tell(f"{machine()}\n{size:.0f} MB\n\n| counting | s | processor s | MB/s |\n|---|---|---|---|")

    def told(name: str, work: Callable[[], object]) -> None:
        wall, cpu = best(work)
        tell(f"| {name} | {wall:.2f} | {cpu:.2f} | {size / wall:.0f} |")

    told("1 shard at once", lambda: read(sources, holdout=0.05, threads=1))
    told(f"{cores} shards at once", lambda: read(sources, holdout=0.05))
    told("runs too", lambda: read(sources, holdout=0.05, runs=True))
    kept, counting.KEPT = counting.KEPT, 0
    told("every shard through a file", lambda: read(sources, holdout=0.05))
    counting.KEPT = kept
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.parquet"
        with counting.counting(sources, holdout=0.05) as found:
            told("summed into a count file", lambda: write_counts(file, parts(found.words), About("words", ())))
        told("the count file read again", lambda: read([Source.of(file)], holdout=0.05))


if __name__ == "__main__":
    main()
