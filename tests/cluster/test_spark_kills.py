"""Executors and drivers that are killed, on a small cluster of processes; minutes, so `-m slow`.

Spark starts no second attempt of a slow task on a host that has the first one, so speculation cannot be had on one machine; what
two attempts at once do to the writer, test_spark_source.py tries by hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from test_spark import NEWS, java, koktok
from test_spark_source import expected, folder, lines, rows_of  # noqa: F401 - fixtures

pytest.importorskip("pyspark", reason="pip install 'koktok[spark]'")
pytestmark = pytest.mark.slow
CLUSTER = "local-cluster[2,1,1024]"  # two executors of one core and 1024 MB, each a process of its own


def start(master: str, how: str, tokenizer: Path, base: Path) -> subprocess.Popen[bytes]:
    java()
    marks = base / f"marks-{how}"
    marks.mkdir(exist_ok=True)
    script = Path(__file__).with_name("spark_job.py")
    out = base / "out"
    words = [sys.executable, str(script), master, how, str(tokenizer), str(marks), str(out), *NEWS]
    with (base / "log").open("wb") as log:
        return subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=log)


def finished(job: subprocess.Popen[bytes], base: Path) -> None:
    assert job.wait(timeout=400) == 0, (base / "log").read_text(errors="replace")[-3000:]


def is_right(base: Path, tokenizer: Path, texts: list[str]) -> None:
    out = base / "out"
    koktok("count", *NEWS, "--holdout-by", "documents", "--holdout", 0.2, "-o", base / "one.parquet", "-q")
    assert (out / "counts.parquet").read_bytes() == (base / "one.parquet").read_bytes()
    assert rows_of(out / "ids") == expected(tokenizer, texts)
    assert {file.name for file in out.iterdir()} == {"ids", "counts.parquet"}


def test_a_killed_executor(folder: Path, lines: list[str], tmp_path: Path) -> None:  # noqa: F811
    finished(start(CLUSTER, "executor", folder, tmp_path), tmp_path)
    assert any(n > 1 for n in attempts(tmp_path / "marks-executor").values())
    is_right(tmp_path, folder, lines)


def attempts(marks: Path) -> Counter[str]:
    """How often each task of a stage was begun."""
    return Counter(file.name.rsplit("-", 1)[0] for file in marks.glob("*.attempt"))


def test_a_killed_driver(folder: Path, lines: list[str], tmp_path: Path) -> None:  # noqa: F811
    job = start("local[6]", "stuck", folder, tmp_path)
    work = tmp_path / "out" / ".ids.partial"
    until = time.monotonic() + 200
    while len(list(work.glob("*.json"))) < 3:
        assert time.monotonic() < until
        assert job.poll() is None, (tmp_path / "log").read_text(errors="replace")[-3000:]
        time.sleep(0.2)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    kept = {note.stem for note in work.glob("*.json")}
    assert not (tmp_path / "out" / "ids").exists()
    before = {file.name: file.stat().st_mtime_ns for file in work.glob("*.npy")}
    finished(start("local[2]", "nothing", folder, tmp_path), tmp_path)
    is_right(tmp_path, folder, lines)
    again = {file.stat().st_mtime_ns for file in (tmp_path / "out" / "ids").glob("*.npy")}
    assert len(kept) >= 3
    assert len(again & set(before.values())) >= 2 * 3  # ids and offsets of each
