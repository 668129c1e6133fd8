"""What scoring costs beside encoding: the ratio for one Hugging Face tokenizer.

    python -m eval.metrics_cost TOKENIZER TEXT... [--megabytes 8]

TOKENIZER is a spec (`hf:tokenizer.json`, a koktok folder, `package:NAME`). Prints the best of three of encoding alone
(the library's own batch call, ids taken out), of encoding with spans, and of `score` with its intervals.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from eval.machine import machine
from koktok.foreign import open_spec
from koktok.metrics import Text, score


def best(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", nargs="+")
    parser.add_argument("--megabytes", type=float, default=8.0)
    given = parser.parse_args()
    subject = open_spec(given.tokenizer)
    lines: list[str] = []
    left = given.megabytes * 1e6
    for line in Text.read(given.text).lines:
        left -= len(line.encode())
        lines.append(line)
        if left <= 0:
            break
    text = Text.of({"text": lines})
    size = sum(len(line.encode()) for line in text.lines) / 1e6
    inner = getattr(subject, "tokenizer", None)
    if hasattr(inner, "encode_batch"):
        alone = best(lambda: [e.ids for e in inner.encode_batch(text.lines, add_special_tokens=False)])
    else:
        alone = best(lambda: subject.encode(text.lines))
    spans = best(lambda: subject.encode(text.lines))
    whole = best(lambda: score(subject, text))
    print(machine())
    print(f"{subject.name}, {size:.1f} MB, {len(text):,} lines")
    print(f"encoding alone {alone:.2f} s, with spans {spans:.2f} s, scored {whole:.2f} s: {whole / alone:.2f} times")


if __name__ == "__main__":
    main()
