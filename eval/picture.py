"""The picture of README and docs: tokens against F1 at human morpheme boundaries, from a report of `eval full`.

python -m eval.picture eval/reports/2026-11-21-full.json docs/images/tokens-f1.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

SHOWN = {
    "SentencePiece Unigram, spaces only": "SentencePiece Unigram",
    "SentencePiece BPE, spaces only": "SentencePiece BPE",
    "HF byte-level BPE": "Hugging Face byte-level BPE",
    "Kiwi bpe_trainer j e vcp xsv": "Kiwi bpe_trainer",
    "koktok short": "koktok short",
    "koktok balanced": "koktok balanced",
    "koktok aligned": "koktok aligned",
    "koktok short, superwords": "short, superwords",
    "koktok balanced, superwords": "balanced, superwords",
    "koktok aligned, superwords": "aligned, superwords",
}
"""Rows trained on the same text at 32,000 ids, and what the picture calls them."""


def draw(report: Path, out: Path) -> list[str]:
    """Draw the rows of `SHOWN` that the report has; gives their names."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "koktok", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot as plt

    rows = {row["name"]: row for row in json.loads(report.read_text(encoding="utf-8"))["rows"]}
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    found = []
    for name, label in SHOWN.items():
        scores = rows.get(name, {}).get("scores", {})
        if "fertility" not in scores or "boundary_f1" not in scores:
            continue
        found.append(label)
        x, y = scores["fertility"]["value"], scores["boundary_f1"]["value"]
        ours, wide = name.startswith("koktok"), "superwords" in name
        axes.plot(x, y, "o" if not wide else "s", color="#00796b" if ours else "#9e9e9e", markersize=7)
        axes.annotate(label, (x, y), xytext=(7, -3), textcoords="offset points", fontsize=9)
    axes.set_xlabel("tokens per eojeol (fewer is shorter text)")
    axes.set_ylabel("F1 at human morpheme boundaries")
    axes.margins(x=0.25, y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return found


if __name__ == "__main__":
    print(*draw(Path(sys.argv[1]), Path(sys.argv[2])), sep="\n")
