"""Throughput, latency and memory: apart from all other figures, because they change from run to run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from koktok.tokenizer.protocol import Tokenizer


@dataclass(frozen=True)
class Speed:
    """How fast one tokenizer is here.

    UTF-8 megabytes a second in batches and line by line; latency of about a kilobyte; opening the vocabulary; peak memory of
    the process so far, so measure one tokenizer a process where it matters.
    """

    encode_mb_s: float
    decode_mb_s: float | None
    single_mb_s: float
    p50_ms: float
    p99_ms: float
    load_ms: float
    peak_mb: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def speed(open_tokenizer: Callable[[], Tokenizer], lines: Sequence[str], *, repeats: int = 3) -> Speed:
    """Time a tokenizer (and opening it); the best of the repeats counts, the first of which warms caches."""
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
    decode = None
    ids = [row.tolist() for row in rows]
    if ids and tokenizer.decodes:
        began = clock()
        for row in ids:
            tokenizer.decode(row)
        decode = size / (clock() - began)
    p50, p99 = np.percentile(latency, [50, 99])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Speed(size / min(times), decode, single, float(p50), float(p99), 1000 * load, peak)


def _kilobytes(lines: Sequence[str], most: int = 200) -> list[str]:
    """Texts of about 340 characters, which is a kilobyte of Hangul."""
    text = " ".join(lines)[: 340 * most]
    return [text[k : k + 340] for k in range(0, max(len(text) - 339, 1), 340)] or [" "]
