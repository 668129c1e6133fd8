"""Spark beside one machine, on the same cores: counting, analysing, encoding, and what a second run costs.

    python -m eval.cluster TEXT [--cores 2] [--tokenizer FOLDER] [--work FOLDER] [--report FILE]

TEXT is plain text of some size. Each row is a process of its
own that is measured from outside: wall time, processor time of it and of all that it starts (JVM, Python workers, Kiwi), the
JVM's share of that, and the most memory that these have at once (sums of resident memory, so pages that they share count for each).
`start` is a session that does nothing. The last column is the processor time without that of the start, as a multiple of what one
machine takes for the same, and for second runs as a share of the first. Results are compared: every row must give the bytes, or
the ids, of the row above it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from eval.machine import Told, machine

SHUFFLE = "8"
INCREMENT = 0.05
"""Share of the words that are new in the row of the increment."""

HEAPS = 0.754
"""Exponent of distinct words in running ones, fitted from 77 MB to 1 GB; it falls with size, so that a terabyte has fewer."""

CLUSTER = 200
"""Cores of the cluster on paper: 50 executors of 4."""


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
    from koktok.cluster.source import encode_files

    encode_files(spark(given), [str(given.text)], given.work / "many", given.tokenizer)


def many_encode_touched(given: argparse.Namespace) -> None:
    os.utime(given.text)
    many_encode(given)


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
    "many-encode-touched": ("encode, Spark, nothing new, but the file is touched", many_encode_touched),
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


def measured(command: list[str]) -> tuple[float, float, float, float]:
    """Wall time, processor time, that of Java in it, and memory in GB of a process and of all processes of its session."""
    begun = time.perf_counter()
    job = subprocess.Popen(command, start_new_session=True)
    used: dict[str, float] = {}
    java: set[str] = set()
    peak = 0
    while job.poll() is None:
        now = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name, rest = (process / "stat").read_text().rsplit(")", 1)
                fields = rest.split()
                if int(fields[3]) == job.pid:
                    java |= {process.name} if name.endswith("(java") else set()
                    used[process.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                    now += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
            except OSError:
                continue
        peak = max(peak, now)
        time.sleep(0.1)
    if job.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {job.returncode}")
    jvm = sum(seconds for process, seconds in used.items() if process in java)
    return time.perf_counter() - begun, sum(used.values()), jvm, peak / 1e9


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
    with tempfile.TemporaryDirectory() as folder:
        work = given.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        text = given.text
        size = text.stat().st_size / 1e6
        tell(f"{machine()}\n{size:.0f} MB, {given.cores} cores\n")
        tell("| stage | s | processor s | of it Java | MB/s | GB of memory | beside one machine |\n" + "|---" * 7 + "|")
        kept = work / "measured.json"
        found: dict[str, list[float]] = json.loads(kept.read_text()) if given.only and kept.exists() else {}
        made: dict[str, object] = {}
        took: dict[str, float] = {}
        for stage, (name, _) in STAGES.items():
            if "encode" in stage and not given.tokenizer:
                continue
            which, _, rest = stage.partition("-")
            if not given.only or stage in given.only.split(","):
                words = [sys.executable, "-m", "eval.cluster", str(text), "--stage", stage, "--work", str(work)]
                words += ["--cores", str(given.cores)]
                words += ["--tokenizer", str(given.tokenizer)] if given.tokenizer else []
                if stage in ("one-encode", "many-encode"):  # not a second run
                    shutil.rmtree(work / which, ignore_errors=True)
                found[stage] = [*measured(words)]
                kept.write_text(json.dumps(found))
                what = rest.split("-")[0]
                if which == "many":
                    if what not in made:
                        made[what] = content(work, f"one-{what}")
                    if content(work, stage) != made[what]:
                        raise SystemExit(f"{name}: other bytes than one machine's")
            if stage not in found:
                continue
            wall, cpu, jvm, peak = found[stage]
            took[stage] = max(0.0, cpu - took.get("start", 0.0)) if which == "many" else cpu
            tell(
                f"| {name} | {wall:.1f} | {cpu:.1f} | {jvm:.1f} | {size / wall:.1f} | {peak:.2f} | {beside(stage, took)} |"
            )
        tell("")
        for line in on_paper(size, took, work):
            tell(line)


def on_paper(size: float, took: dict[str, float], work: Path) -> Iterator[str]:
    """What a terabyte would take on a cluster, from the rates measured here: size in MB, processor time without the start."""
    import polars as pl

    from koktok.cluster.segment import words_to_analyse
    from koktok.text.sources import Source

    times = 1e6 / size
    yield f"1 TB on {CLUSTER} cores, from these rates\n"
    yield "| stage | rate of a core | what | minutes |\n|---|---|---|---|"
    if seconds := took.get("many-count"):
        yield f"| count | {size / seconds:.1f} MB/s | | {1e6 / (size / seconds) / CLUSTER / 60:.0f} |"
    counted = work / "one.parquet"
    if counted.exists():
        distinct = pl.scan_parquet(counted).select(pl.len()).collect().item()
        grown = distinct * times**HEAPS
        yield f"| distinct words | | {distinct:,} here, by Heaps' law {grown / 1e9:.1f} billion | |"
        if seconds := took.get("many-segment"):
            asked = len(words_to_analyse([Source.of(counted)]))
            wanted = asked * (grown / distinct) ** 0.5  # a training takes the square root of what there is
            rate = asked / seconds
            yield f"| analyse | {rate:,.0f} words/s | {wanted / 1e6:.0f} million words | {wanted / rate / CLUSTER / 60:.1f} |"
    if seconds := took.get("many-encode"):
        yield f"| encode | {size / seconds:.1f} MB/s | | {1e6 / (size / seconds) / CLUSTER / 60:.0f} |"


def beside(stage: str, took: dict[str, float]) -> str:
    """What a stage of Spark takes without its start: of one machine's, or of the first run."""
    which, _, rest = stage.partition("-")
    what, _, again = rest.partition("-")
    first = took.get(f"many-{what}" if again else f"one-{what}")
    if which != "many" or not first:
        return ""
    return f"{took[stage] / first:.0%} of the first" if again else f"× {took[stage] / first:.1f}"


if __name__ == "__main__":
    main()
