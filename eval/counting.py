"""Choices in counting, measured: threads against processes, engines that sum shards, and shapes in which shards spill.

    python -m eval.counting FILE [--report FILE]

FILE is plain text of some size. The first table counts it on one thread, on all, and as halves in two processes started
beforehand (what processes could give at best: nothing is sent back). The second sums its shards with every engine; the
rows are compared. The third writes and reads the shards as koktok spills them, and as Parquet.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from eval.machine import Told, machine
from koktok.count.engine import DuckEngine, Engine, OwnEngine, total
from koktok.count.files import About, read_counts, write_counts
from koktok.count.reading import read_shards
from koktok.count.rows import Rows
from koktok.text.sources import Source


def shards_of(file: str, threads: int) -> list[Rows]:
    with read_shards([Source.of(file)], holdout=0.0, threads=threads) as found:
        # Read whole, as spilled ones go with their folder.
        return [Rows(*(np.array(c) for c in (s.data, s.offsets, s.n, s.documents, s.held))) for s in found.words]


def count_only(file: str) -> int:
    with read_shards([Source.of(file)], holdout=0.0, threads=1) as found:
        return sum(map(len, found.words))


def best(work: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of some runs."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    tell = Told(given.report)
    size = Path(given.file).stat().st_size / 1e6
    cores = os.cpu_count() or 1
    tell(f"{machine()}\n{size:.0f} MB\n\n| counting | s | MB/s |\n|---|---|---|")
    shards = shards_of(given.file, cores)
    with tempfile.TemporaryDirectory() as folder:
        for name, threads in (("1 thread", 1), (f"{cores} threads", cores)):
            seconds = best(lambda n=threads: shards_of(given.file, n))  # type: ignore[misc]
            tell(f"| {name} | {seconds:.2f} | {size / seconds:.0f} |")
        lines = Path(given.file).read_bytes().splitlines(keepends=True)
        parts = [Path(folder) / f"{i}.txt" for i in range(cores)]
        for i, part in enumerate(parts):
            part.write_bytes(b"".join(lines[i * len(lines) // cores : (i + 1) * len(lines) // cores]))
        del lines
        with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
            list(pool.map(count_only, map(str, parts)))
            seconds = best(lambda: list(pool.map(count_only, map(str, parts))))
        tell(f"| {cores} processes | {seconds:.2f} | {size / seconds:.0f} |")

        n = sum(map(len, shards))
        tell(f"\n| engine, {len(shards)} shards of {n:,} rows | s |\n|---|---|")
        wanted = total(shards, OwnEngine())
        engines: tuple[tuple[str, Engine], ...] = (("koktok", OwnEngine()), ("DuckDB", DuckEngine()))
        for name, engine in engines:
            rows = total(shards, engine)
            assert np.array_equal(rows.data, wanted.data)
            assert np.array_equal(rows.n, wanted.n)
            tell(f"| {name} | {best(lambda e=engine: total(shards, e)):.2f} |")  # type: ignore[misc]

        def spill() -> None:
            for i, shard in enumerate(shards):
                with (Path(folder) / f"{i}.rows").open("wb") as out:
                    shard.write(out)

        def spill_parquet() -> None:
            for i, shard in enumerate(shards):
                write_counts(Path(folder) / f"{i}.parquet", [shard], About("words", ()))

        tell("\n| spilled as | write s | read and sum s | MB |\n|---|---|---|---|")
        for name, suffix, write in (("flat arrays", "rows", spill), ("Parquet, zstd", "parquet", spill_parquet)):
            wrote = best(write)
            files = [Path(folder) / f"{i}.{suffix}" for i in range(len(shards))]

            def again(files: list[Path] = files, suffix: str = suffix) -> None:
                total([Rows.mapped(str(file)) for file in files] if suffix == "rows" else read_counts(files))

            tell(
                f"| {name} | {wrote:.2f} | {best(again):.2f} | {sum(f.stat().st_size for f in files) / 1e6:.0f} |",
            )


if __name__ == "__main__":
    main()
