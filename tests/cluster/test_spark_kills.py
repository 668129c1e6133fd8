"""Executors and drivers that are killed, and tasks that run twice, on small clusters of processes; minutes, so `-m slow`.

Spark starts no second attempt of a slow task on the host of the first one, so speculation wants two hosts: workers of Spark's own
cluster manager, on two addresses of the loopback.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
        env = os.environ | {"PYSPARK_PYTHON": sys.executable}
        return subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=log, env=env)


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


@contextmanager
def standalone(base: Path) -> Iterator[str]:
    """A master and two workers of one core, on two hosts; gives the address of the master."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def begun(name: str, *words: str) -> subprocess.Popen[bytes]:
        env = os.environ | {"SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
        with (base / f"{name}.log").open("wb") as log:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
            return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log, env=env)

    def ended(job: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()

    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as until_done:
        place = ["--port", str(port), "--webui-port", "0"]
        until_done.callback(ended, begun("master", "master.Master", "--host", "127.0.0.1", *place))
        for host in ("127.0.0.2", "127.0.0.3"):
            room = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(base / host)]
            until_done.callback(ended, begun(host, "worker.Worker", "--host", host, *room, master))
        yield master


def test_a_slow_task_and_its_speculative_duplicate(folder: Path, lines: list[str], tmp_path: Path) -> None:  # noqa: F811
    java()
    with standalone(tmp_path) as master:
        finished(start(master, "slow", folder, tmp_path), tmp_path)
    assert any(n > 1 for n in attempts(tmp_path / "marks-slow").values())
    is_right(tmp_path, folder, lines)


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
