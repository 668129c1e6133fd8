"""The pictures of README and docs: tokens against F1 at human morpheme boundaries, from reports of `eval full`.

python -m eval.picture eval/reports/2026-11-2?-bench-ko{,-koktok,-lm}.json.xz docs/images/tokens-f1.svg
python -m eval.picture eval/reports/2026-11-26-curve.json.xz eval/reports/2026-11-26-bench-ko.json.xz docs/images/equal-tokens.svg

The second, drawn where the reports have the curves, has one message; beside it stands the same in Korean.
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


CURVES = {
    "koktok unigram, ": ("koktok Unigram", "koktok Unigram"),
    "koktok bpe-bytes, ": ("koktok byte-level BPE", "koktok 바이트 수준 BPE"),
}
"""Beginnings of the names of rows that are points of a curve, and its name."""

PEERS = {
    "SentencePiece Unigram, defaults": ("SentencePiece", "SentencePiece"),
    "SentencePiece Unigram, spaces only": ("SentencePiece, split on spaces only", "SentencePiece, 공백에서만 나눔"),
    "HF byte-level BPE": ("Hugging Face byte-level BPE", "Hugging Face 바이트 수준 BPE"),
}
EQUAL = "koktok unigram, 1.75 asked"
"""The point with as many tokens as SentencePiece."""

TOKENS = ("tokens per eojeol (fewer: shorter sequences)", "어절당 토큰 수(적을수록 시퀀스가 짧음)")
BOUNDARIES = ("F1 at human morpheme boundaries", "사람이 주석한 형태소 경계의 F1")
WIDTH, HEIGHT = 720, 440


def read(reports: list[Path]) -> dict[str, tuple[float, float]]:
    """Tokens per eojeol and F1 of every row that has both."""
    every = [row for report in reports for row in json.loads(report_text(report))["rows"]]
    scores = {row["name"]: row.get("scores", {}) for row in every}
    return {
        name: (found["fertility"]["value"], found["boundary_f1"]["value"])
        for name, found in scores.items()
        if {"fertility", "boundary_f1"} <= found.keys()
    }


def draw(reports: list[Path], out: Path) -> list[str]:
    """Draw the rows of `SHOWN` that the reports have; gives their names."""
    rows = read(reports)
    shown = {name: label for name, label in SHOWN.items() if name in rows}
    marks = [  # the numbers are those of a colour
        Dot(1 + ("koktok" in name), label, *rows[name], front="koktok" in name and "bytes" not in name)
        for name, label in shown.items()
    ]
    ours = sorted((mark.x, mark.y) for mark in marks if mark.front)
    curves = [Line(2, "koktok", ours)]
    drawing = points(marks, (TOKENS[0], ""), (BOUNDARIES[0], ""), curves=curves, width=WIDTH, height=HEIGHT)
    out.write_text(standalone(drawing, f"{STYLE}{INK}"), encoding="utf-8")
    return list(shown.values())


def draw_curves(reports: list[Path], out: Path) -> list[str]:
    """Draw how many boundaries there are for as many tokens, in English and, beside it, in Korean; gives both files."""
    rows = read(reports)
    plain = rows[next(iter(PEERS))]
    done = []
    for k, file in enumerate((out, out.with_suffix(f".ko{out.suffix}"))):
        curves = [
            Line(2, names[k], sorted(place for name, place in rows.items() if name.startswith(begin)))
            for begin, names in CURVES.items()
        ]
        gap = Line(1, "", [plain, rows[EQUAL]], style="level")
        marks = [Dot(1, names[k], *rows[name], front=False) for name, names in PEERS.items()]
        more = rows[EQUAL][1] - plain[1]
        said = (f"koktok: as many tokens, F1 +{more:.2f}", f"koktok: 토큰 수는 같고 F1 +{more:.2f}")[k].replace(
            "0.", "."
        )
        marks.append(Dot(2, said, *rows[EQUAL], front=True))
        for curve in curves:
            middle, end = curve.values[len(curve.values) // 2], curve.values[-1]
            marks += [Dot(2, curve.name, *middle, front=False), Dot(2, "", *end, front=False)]
        drawing = points(marks, TOKENS, BOUNDARIES, curves=[*curves, gap], width=WIDTH, height=HEIGHT)
        swapped = STYLE.replace(".ko {", ".en {") if k else STYLE
        file.write_text(standalone(drawing, f"{swapped}{INK}"), encoding="utf-8")
        done.append(str(file))
    return done


if __name__ == "__main__":
    *reports, out = map(Path, sys.argv[1:])
    print(*(draw_curves if EQUAL in read(reports) else draw)(reports, out), sep="\n")
