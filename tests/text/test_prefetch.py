"""Files that are read ahead by threads: the same batches, reports, progress and errors as one after the other."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from koktok.count.counting import read
from koktok.errors import InputError
from koktok.text import prefetch, records, sources
from koktok.text.sources import ReadReport, Source


def read_all(text: object, **how: Any) -> list[tuple[bytes, list[bool]]]:
    return [(block.data, block.ends.tolist()) for block in sources.read(text, **how)]


def threads_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("koktok-read")]


@pytest.fixture
def folder(tmp_path: Path, mini: list[str]) -> Path:
    text = ("\n".join(mini) + "\n").encode()
    for i in range(3):
        (tmp_path / f"a{i}.txt").write_bytes(text[: 3000 * i] + b"\xff\n" + text)
        (tmp_path / f"b{i}.txt.gz").write_bytes(gzip.compress(text * (i + 1)))
        lines = [json.dumps({"text": f"{line}\n둘"}, ensure_ascii=i > 1) for line in mini]
        (tmp_path / f"c{i}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (tmp_path / f"d{i}.csv").write_text(f'id,text\n{i},"하나, 둘"\n', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chunk", [1 << 9, 1 << 18])
def test_batches_report_and_digest_are_those_of_reading_in_turn(
    folder: Path, threads: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "CHUNK", chunk)
    some = [Source.of(folder, name="all"), Source.of(folder / "a1.txt"), Source.of(folder / "c2.jsonl")]
    wanted, found = ReadReport(), ReadReport()
    steps: list[tuple[int, int | None]] = []
    blocks = read_all(some, report=wanted)
    record = lambda *step: steps.append(step)  # noqa: E731
    assert read_all(some, report=found, on_progress=record, threads=threads) == blocks
    assert found == wanted
    assert found.bad_lines == 4
    assert steps[-1][0] == steps[-1][1]
    assert all(a <= b for (a, _), (b, _) in itertools.pairwise(steps))
    assert not threads_left()


def test_counts_do_not_depend_on_the_threads(folder: Path) -> None:
    one, three = (read([Source.of(folder)], holdout=0.2, threads=n) for n in (1, 3))
    assert one.train == three.train
    assert one.held == three.held
    assert (one.samples, one.report) == (three.samples, three.report)


def test_an_error_comes_in_its_turn_and_names_its_place(folder: Path) -> None:
    (folder / "b1.txt.gz").write_bytes((folder / "b1.txt.gz").read_bytes()[:-20])
    (folder / "c0.jsonl").write_text('{"text": "하나"}\n{"text": 3}\n', encoding="utf-8")
    messages = []
    for threads in (None, 4):
        report = ReadReport()
        with pytest.raises(InputError) as error:
            read_all(Source.of(folder), report=report, threads=threads)
        messages.append(str(error.value))
        assert report.bad_lines == 3
    assert messages[0] == messages[1]
    assert "b1.txt.gz` is damaged or cut off" in messages[0]
    assert not threads_left()


def test_what_waits_is_bounded_and_goes_when_nobody_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHUNK", 100)
    for name in "abcd":
        (tmp_path / f"{name}.txt").write_text("나는 학생이다.\n" * 5000, encoding="utf-8")
    asked: list[int] = []
    whole = prefetch.records

    def counted(*what: object) -> object:
        for block in whole(*what):  # type: ignore[arg-type]
            asked.append(1)
            yield block

    monkeypatch.setattr(prefetch, "records", counted)
    blocks = sources.read(Source.of(tmp_path), threads=2)
    next(blocks)
    for _ in range(50):
        threading.Event().wait(0.005)
    assert len(asked) <= 3 * prefetch.WAITING
    blocks.close()
    assert not threads_left()


def test_ctrl_c_while_counting_leaves_no_thread(folder: Path) -> None:
    def press(stage: str, done: int, total: int | None) -> None:
        if stage == "read" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read([Source.of(folder)], holdout=0.0, threads=3, on_progress=press)
    assert not threads_left()


def test_a_pipe_is_read_in_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that may wait for ever waits in a thread, which no Ctrl-C would reach."""
    import io
    from types import SimpleNamespace

    (tmp_path / "a.txt").write_text("하나\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("둘\n".encode())))
    found = read_all(Source.of(tmp_path / "a.txt", "-", tmp_path / "a.txt"), threads=2)
    assert b"".join(data for data, _ in found) == "하나\n둘\n".encode()  # a file that is named twice is read once
