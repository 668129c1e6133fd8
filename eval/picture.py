"""The picture of README and docs: tokens against F1 at human morpheme boundaries, from reports of `eval full`.

python -m eval.picture eval/reports/2026-11-26-bench-ko*.json.xz docs/images/tokens-f1.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from eval.machine import report_text
from koktok.report.charts import Dot, Line, points, standalone
from koktok.report.frontier import STYLE

INK = ".k0 { stroke: #757575 } .k1 { stroke: #00796b } .dot.best { fill: #00796b } .mark { stroke: none }"

SHOWN = {
    "SentencePiece Unigram, spaces only": "SentencePiece, spaces only",
    "SentencePiece Unigram, defaults": "SentencePiece, defaults",
    "SentencePiece Unigram, across spaces": "SentencePiece, across spaces",
    "SentencePiece BPE, spaces only": "SentencePiece BPE",
    "HF byte-level BPE": "Hugging Face byte-level BPE",
    "Kiwi bpe_trainer j e vcp xsv": "Kiwi bpe_trainer",
    "Kiwi SwTokenizer": "Kiwi SwTokenizer",
    "koktok short": "koktok short",
    "koktok lm": "koktok lm, the default",
    "koktok encoder": "koktok encoder",
    "koktok aligned": "koktok aligned",
    "koktok bpe-bytes lm": "koktok byte-level BPE",
}
"""Rows trained on the same text at 32,000 ids, and what the picture calls them."""


def draw(reports: list[Path], out: Path) -> list[str]:
    """Draw the rows of `SHOWN` that the reports have; gives their names."""
    every = [row for report in reports for row in json.loads(report_text(report))["rows"]]
    rows = {row["name"]: row.get("scores", {}) for row in every}
    shown = {name: label for name, label in SHOWN.items() if {"fertility", "boundary_f1"} <= rows.get(name, {}).keys()}
    marks = [
        # The numbers are those of a colour.
        Dot(
            1 + ("koktok" in name),
            label,
            rows[name]["fertility"]["value"],
            rows[name]["boundary_f1"]["value"],
            front="koktok" in name and "bytes" not in name,
        )
        for name, label in shown.items()
    ]
    ours = sorted((mark.x, mark.y) for mark in marks if mark.front)
    curves = [Line(2, "koktok", ours)]
    axes = ("tokens per eojeol (fewer tokens: shorter sequences)", ""), ("F1 at human morpheme boundaries", "")
    out.write_text(
        standalone(points(marks, *axes, curves=curves, width=720, height=440), f"{STYLE}{INK}"), encoding="utf-8"
    )
    return list(shown.values())


if __name__ == "__main__":
    *reports, out = map(Path, sys.argv[1:])
    print(*draw(reports, out), sep="\n")
