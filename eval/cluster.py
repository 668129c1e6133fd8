"""Spark beside one machine, on the same cores: counting, analysing, encoding, and what a second run costs.

    python -m eval.cluster TEXT [--cores 2] [--tokenizer FOLDER] [--work FOLDER] [--report FILE]

TEXT is plain text of some size (`python -m eval.heaps` makes some). Each row is a process of its own that is measured from
outside: wall time, processor time of it and of all that it starts (JVM, Python workers, Kiwi), and the most memory that these
have at once (sums of resident memory, so pages that they share count for each). `start` is a session that does nothing: Spark's
other rows hold that much, too. Results are compared: every row must give the bytes, or the ids, of the row above it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from eval.machine import Told, machine

SHUFFLE = "8"
INCREMENT = 0.05
"""Share of the words that are new in the row of the increment."""


# ── the stages, each in a process of its own ──────────────────────────────────────────────────────────────────────────


def one_count(given: argparse.Namespace) -> None:
    os.environ["POLARS_MAX_THREADS"] = str(given.cores)
    koktok(
        given,
        "count",
        given.text,
        "--holdout-by",
        "documents",
        "--threads",
        given.cores,
        "-o",
        given.work / "one.parquet",
    )


def many_count(given: argparse.Namespace) -> None:
    from koktok.cluster.spark import count_to_files, read_text

    count_to_files(read_text(spark(given), [str(given.text)]), given.work / "many.parquet")


def one_segment(given: argparse.Namespace) -> None:
    from koktok.cluster.segment import words_to_analyse
    from koktok.segment.lexicon_file import analyses, write_lexicon
    from koktok.segment.workers import supervised
    from koktok.text.sources import Source

    words = words_to_analyse([Source.of(given.work / "one.parquet")])
    segmenter = supervised("kiwi", processes=given.cores)
    write_lexicon(given.work / "one.lexicon", analyses(words, segmenter), segmenter.signature(), {})
    segmenter.close()  # type: ignore[attr-defined]


def many_segment(given: argparse.Namespace, lexicon: Path | None = None) -> None:
    from koktok.cluster.segment import segment_to_file
    from koktok.text.sources import Source

    counted = [Source.of(given.work / "one.parquet")]
    segment_to_file(spark(given), counted, given.work / "many.lexicon", lexicon=lexicon)


def many_segment_more(given: argparse.Namespace) -> None:
    import polars as pl

    from koktok.segment.lexicon_file import Lexicon, write_lexicon

    whole = Lexicon.open(given.work / "one.lexicon")
    table = whole.frame.collect()
    kept = table.filter(pl.int_range(len(table)) % round(1 / INCREMENT) > 0)
    some = write_lexicon(given.work / "some.lexicon", [kept], whole.signature, {})
    many_segment(given, some.file)


def many_segment_again(given: argparse.Namespace) -> None:
    many_segment(given, given.work / "one.lexicon")


def one_encode(given: argparse.Namespace) -> None:
    koktok(
        given,
        "encode",
        given.tokenizer,
        given.text,
        "--format",
        "npy",
        "--out",
        given.work / "one",
        "--threads",
        given.cores,
    )


def many_encode(given: argparse.Namespace) -> None:
    from koktok.cluster.source import register
    from koktok.cluster.spark import read_text

    session = spark(given)
    register(session)
    writer = read_text(session, [str(given.text)]).write.format("koktok").option("tokenizer", str(given.tokenizer))
    writer.mode("overwrite").save(str(given.work / "many"))


def start(given: argparse.Namespace) -> None:
    spark(given).range(10).count()


STAGES: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    "start": ("Spark: start", start),
    "one-count": ("count, one machine", one_count),
    "many-count": ("count, Spark", many_count),
    "one-segment": ("analyse, one machine", one_segment),
    "many-segment": ("analyse, Spark", many_segment),
    "many-segment-more": (f"analyse, Spark, {INCREMENT:.0%} new", many_segment_more),
    "many-segment-again": ("analyse, Spark, nothing new", many_segment_again),
    "one-encode": ("encode, one machine", one_encode),
    "many-encode": ("encode, Spark", many_encode),
    "many-encode-again": ("encode, Spark, nothing new", many_encode),
}


def koktok(given: argparse.Namespace, *words: object) -> None:
    from typer.testing import CliRunner

    from koktok.cli import app

    done = CliRunner().invoke(app, [*map(str, words), "-q"])
    if done.exit_code:
        raise RuntimeError(f"{given.stage}: {done.output}") from done.exception


def spark(given: argparse.Namespace):
    from koktok.cluster.spark import session

    return session(
        f"local[{given.cores}]",
        **{"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": SHUFFLE, "spark.driver.memory": "2g"},
    )


# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def measured(command: list[str]) -> tuple[float, float, float]:
    """Wall time, processor time and memory in GB of a process and of all processes of its session."""
    begun = time.perf_counter()
    job = subprocess.Popen(command, start_new_session=True)
    used: dict[str, float] = {}
    peak = 0
    while job.poll() is None:
        now = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[3]) == job.pid:
                    used[process.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                    now += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
            except OSError:
                continue
        peak = max(peak, now)
        time.sleep(0.1)
    if job.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {job.returncode}")
    return time.perf_counter() - begun, sum(used.values()), peak / 1e9


def content(work: Path, stage: str) -> object:
    """What a stage has made, to be compared."""
    which, what = stage.split("-")[:2]
    if what == "encode":
        from koktok.bulk.shards import TokenFiles

        rows: Counter[bytes] = Counter()
        for shard in TokenFiles.open(work / which):
            rows.update(hashlib.blake2b(ids.tobytes(), digest_size=16).digest() for ids in shard)
        return rows
    file = work / f"{which}.{'parquet' if what == 'count' else 'lexicon'}"
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--tokenizer", type=Path, help="a folder; without it there are no rows of encoding")
    parser.add_argument("--work", type=Path, help="where the stages write; a temporary folder by default")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--only", help="stages, separated by commas")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.stage:
        STAGES[given.stage][1](given)
        return
    tell = Told(given.report)
    size = given.text.stat().st_size / 1e6
    tell(f"{machine()}\n{size:.0f} MB, {given.cores} cores\n")
    tell("| stage | s | processor s | MB/s | GB of memory |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        work = given.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        made: dict[str, object] = {}
        for stage, (name, _) in STAGES.items():
            if ("encode" in stage and not given.tokenizer) or (given.only and stage not in given.only.split(",")):
                continue
            words = [sys.executable, "-m", "eval.cluster", str(given.text), "--stage", stage, "--work", str(work)]
            words += ["--cores", str(given.cores), *(["--tokenizer", str(given.tokenizer)] if given.tokenizer else [])]
            wall, cpu, peak = measured(words)
            tell(f"| {name} | {wall:.1f} | {cpu:.1f} | {size / wall:.1f} | {peak:.2f} |")
            if stage != "start":
                found, what = content(work, stage), stage.split("-")[1]
                if made.setdefault(what, found) != found:
                    raise SystemExit(f"{name}: other bytes than one machine's")


if __name__ == "__main__":
    main()
