"""The main road measured: wall time with a cold and a warm cache of analyses, peak memory, and the closing table.

    python -m eval.main_road corpus:demo --vocab-size 16000
    python -m eval.main_road FOLDER --vocab-size 32000

Each run is a process of its own, as a user starts it; the cache is a temporary folder, into which corpora are fetched first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Annotated

import typer

from eval.machine import machine


def main(
    paths: Annotated[list[str], typer.Argument(help="As `koktok train` takes them.")],
    vocab_size: int = 16000,
    options: Annotated[str, typer.Option(help="More words for `koktok train`.")] = "",
) -> None:
    """Print the table in Markdown."""
    with tempfile.TemporaryDirectory() as home:
        env = os.environ | {"KOKTOK_CACHE": f"{home}/cache", "NO_COLOR": "1"}
        for path in paths:
            if path.startswith("corpus:"):
                subprocess.run(
                    [sys.executable, "-m", "koktok", "corpus", "fetch", path[7:]],
                    env=env,
                    check=True,
                    capture_output=True,
                )
        words = [sys.executable, "-m", "koktok", "train", *paths, "--vocab-size", str(vocab_size), *options.split()]
        print(f"{machine()}\n\n| run | wall time | peak memory |\n|---|---|---|")
        tables = []
        for run in ("cold, with the comparison", "warm, with the comparison", "warm, --no-compare"):
            more = ["--no-compare"] if "no-compare" in run else []
            begun = time.perf_counter()
            done = subprocess.run(
                [*words, *more, "--out", f"{home}/out"], env=env, check=True, capture_output=True, text=True
            )
            seconds = time.perf_counter() - begun
            peak = done.stderr.split("peak memory ")[1].split("\n")[0]
            print(f"| {run} | {seconds:.1f} s | {peak} |", flush=True)
            tables.append(done.stdout + done.stderr)
        print("\n" + "\n".join(line for line in tables[0].splitlines() if "|" not in line and "·" not in line))


if __name__ == "__main__":
    typer.run(main)
