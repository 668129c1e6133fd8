"""Throughput, latency and memory: apart from all other figures, because they change from run to run."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from koktok.protocol.tokenizer import Tokenizer

MOST: Final = 200_000
"""Bytes of text that are timed."""


class SpeedRow(BaseModel):
    """Seconds and memory of one tokenizer, each the best of several passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    name: str
    scores: dict[str, float]


class SpeedReport(BaseModel):
    """Throughput, apart from the report because it is never the same twice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["koktok-speed"] = "koktok-speed"
    version: int = 5
    machine: str
    rows: list[SpeedRow]


def measure_speed(rows: Iterable[tuple[int, str, Callable[[], Tokenizer]]], lines: Sequence[str]) -> SpeedReport:
    """Time rows, each a number, a name and what opens it, on at most `MOST` bytes of the text."""
    total = np.cumsum([len(line.encode()) for line in lines])
    sample = lines[: max(1, int(np.searchsorted(total, MOST, side="right")))]
    made = [SpeedRow(number=number, name=name, scores=speed(opener, sample)) for number, name, opener in rows]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return SpeedReport(machine=machine, rows=made)


def speed(open_tokenizer: Callable[[], Tokenizer], lines: Sequence[str], *, repeats: int = 3) -> dict[str, float]:
    """Time a tokenizer (and opening it); the best of the repeats counts, the first of which warms caches.

    UTF-8 megabytes a second in batches and line by line; latency of about a kilobyte; opening the vocabulary; peak memory of
    the process so far, so measure one tokenizer a process where it matters.
    """
    clock = time.perf_counter
    began = clock()
    tokenizer = open_tokenizer()
    load = clock() - began
    size = sum(len(line.encode()) for line in lines) / 1e6
    times = []
    for _ in range(repeats):
        began = clock()
        rows = tokenizer.encode_lines(lines)
        times.append(clock() - began)
    few = list(lines[: max(1, min(len(lines), 2000))])
    began = clock()
    for line in few:
        tokenizer.encode_lines([line])
    single = sum(len(line.encode()) for line in few) / 1e6 / (clock() - began)
    kilobytes = _kilobytes(lines)
    latency = []
    for text in kilobytes:
        began = clock()
        tokenizer.encode_lines([text])
        latency.append(1000 * (clock() - began))
    p50, p99 = np.percentile(latency, [50, 99])
    found = {
        "encode_mb_s": size / min(times),
        "single_mb_s": single,
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "load_ms": 1000 * load,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if tokenizer.decodes:
        began = clock()
        for row in rows:
            tokenizer.decode(row.tolist())
        found["decode_mb_s"] = size / (clock() - began)
    return found


def _kilobytes(lines: Sequence[str], most: int = 200) -> list[str]:
    """Texts of about 340 characters, which is a kilobyte of Hangul."""
    text = " ".join(lines)[: 340 * most]
    return [text[k : k + 340] for k in range(0, max(len(text) - 339, 1), 340)] or [" "]
