"""The curve of `koktok train --frontier` as a table, JSON and a drawing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from koktok.pipeline.baseline import shown
from koktok.pipeline.curve import SPLITTING, FrontierRow, Reference, on_front, ordered
from koktok.report.charts import Dot, Line, points, standalone, style_of
from koktok.report.markdown import table
from koktok.report.tables import SHAPES
from koktok.training.unigram_point import DEFAULT, PRESETS

TITLE: Final = "Tokens per eojeol against boundary F1 (silver: the analyser's cuts, held out)"
OPTIONS: Final = {"keep": "--keep", "tokens": "--tokens-per-eojeol", "lam": "--lam", "mu": "--mu", "nu": "--nu"}
COLUMNS: Final = ("ids", "point", "tokens/eojeol", "P", "R", "F1", "all gaps", "ceiling", "front", "options")
NARROW: Final = ("point", "ids", "tokens/eojeol", "F1", "all gaps", "options")
"""Columns that fit on a terminal."""


def flags(settings: Mapping[str, Any]) -> str:
    """Return the options of `koktok train` for the settings of a point; empty if no options give them.

    Examples
    --------
    >>> from koktok.training.unigram_point import FRONTIER
    >>> [flags(vars(point)) for point in FRONTIER[3:5]]
    ['--preset lm', '--preset lm --keep 0.9']
    >>> flags(vars(PRESETS["encoder"]) | {"digits": "single"})
    '--preset encoder --digits single'
    """
    ways: list[tuple[int, bool, str]] = []
    for name, preset in PRESETS.items():
        there = asdict(preset)
        changed = {key: settings.get(key) for key in there if key != "name" and there[key] != settings.get(key)}
        if changed.pop("at_least", None) is False and settings.get("keep"):
            # The preset's own shares are lower bounds; shares that are typed are not.
            changed["keep"] = settings["keep"]
        if any(changed.get(key) is not None for key in ("keep", "tokens", "nu")):  # which take the preset's target away
            changed = {key: value for key, value in changed.items() if value is not None}
        typed = {key: _typed(key, value) for key, value in changed.items()}
        if all(typed.values()):
            split = (f"--{key} {settings[key]}" for key in SPLITTING if key in settings)
            more = (f"{OPTIONS[key]} {value}" for key, value in typed.items())
            options = " ".join([f"--preset {name}", *more, *split])
            ways.append((len(changed), name != DEFAULT, options))
    return min(ways)[2] if ways else ""


def _typed(name: str, value: Any) -> str:
    """A value as it is typed; empty if no option has it."""
    if name not in OPTIONS or value is None or not (name == "keep" or isinstance(value, float | int)):
        return ""
    return shown(value) if name == "keep" else f"{value:g}"


def cells(rows: Sequence[FrontierRow], reference: Reference | None = None) -> list[dict[str, str]]:
    """The cells of the rows by column, by size, then tokens; a star for those on the front."""
    starred = dict(zip(rows, on_front(rows), strict=True))
    beside = [*reference.peers] if reference else []
    shown = [*ordered([*rows, *beside]), *([reference.trivial] if reference else [])]
    return [
        {
            "ids": f"{row.vocab_size:,}",
            "point": row.name,
            **{
                column: f"{figure:.3f}"
                for column, figure in zip(
                    COLUMNS[2:8],
                    (row.tokens_per_eojeol, row.precision, row.recall, row.f1, row.f1_all, row.ceiling),
                    strict=True,
                )
            },
            "front": "★" * starred.get(row, False),
            "options": flags(row.settings),
        }
        for row in shown
    ]


SIZES_TITLE: Final = "Embeddings' share of a model, and compute for the same text (1: the least)"
SIZES_NOTE: Final = "Compute says nothing of bits; docs/guides/choose.md has those of small models."


def tokens_by_size(rows: Sequence[FrontierRow]) -> dict[int, float]:
    """Tokens per eojeol of the default preset by number of ids."""
    return {row.vocab_size: row.tokens_per_eojeol for row in ordered(rows) if row.name == DEFAULT}


def cells_of_sizes(tokens: Mapping[int, float]) -> tuple[list[str], list[list[str]]]:
    """Columns and cells of what the number of ids costs a model, from the tokens per eojeol; no cells for a single size."""
    columns = ["ids", "tokens/eojeol", *(shape.title.split(" (")[0] for shape in SHAPES)]
    compute = [[shape.compute(some, ids) for ids, some in tokens.items()] for shape in SHAPES]
    made = []
    for k, (ids, some) in enumerate(tokens.items()):
        there = [shape.embeddings(ids) for shape in SHAPES]
        shares = [n / (n + shape.body) for n, shape in zip(there, SHAPES, strict=True)]
        each = [f"{share:.0%}, {of[k] / min(of):.3f}" for share, of in zip(shares, compute, strict=True)]
        made.append([f"{ids:,}", f"{some:.3f}", *each])
    return columns, made if len(made) > 1 else []


def to_markdown(rows: Sequence[FrontierRow], reference: Reference | None = None) -> str:
    """Print the rows as a Markdown table, and what the number of ids costs if there are several sizes.

    Examples
    --------
    >>> print(to_markdown([FrontierRow("short", 8000, 1.9, 0.7, 0.5, 0.583, 0.6, vars(PRESETS["short"]))]))
    Tokens per eojeol against boundary F1 (silver: the analyser's cuts, held out)
    <BLANKLINE>
    | ids | point | tokens/eojeol | P | R | F1 | all gaps | ceiling | front | options |
    |---:|---|---:|---:|---:|---:|---:|---:|---|---|
    | 8,000 | short | 1.900 | 0.700 | 0.500 | 0.583 | 0.600 | 0.833 | ★ | `--preset short` |
    """
    lines = [
        [*(row | {"options": f"`{row['options']}`" * bool(row["options"])}).values()] for row in cells(rows, reference)
    ]
    shown = f"{TITLE}\n\n{table(COLUMNS, 'rlrrrrrrll', lines)}"
    columns, sizes = cells_of_sizes(tokens_by_size(rows))
    costs = f"{SIZES_TITLE}\n\n{table(columns, 'r' * len(columns), sizes)}\n\n{SIZES_NOTE}"
    return f"{shown}\n\n{costs}" if sizes else shown


def to_json(rows: Sequence[FrontierRow], reference: Reference | None = None) -> str:
    """Print the rows as JSON, by size, then tokens."""
    rows = ordered(rows)
    data = {
        "format": "koktok-frontier",
        "version": 2,
        "gold": "silver: cuts of a morphological analyser",
        "reference": asdict(reference) if reference else None,
        "rows": [asdict(row) | {"on_front": best} for row, best in zip(rows, on_front(rows), strict=True)],
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


STYLE: Final = """
svg { background: #fff; font: 12px system-ui, sans-serif } text { fill: #222 } .ko { display: none }
.grid, .leader { stroke: #ddd } .tick { fill: #666; font-size: 11px } .tick.x, .axis { text-anchor: middle } .tick.y { text-anchor: end }
.mark { font-size: 11px } .dot { fill: #fff; stroke-width: 2 } .line { fill: none; stroke-width: 1.5 }
.bound { stroke: #666; stroke-dasharray: 7 4 } .level { stroke: #666; stroke-dasharray: 1 4 }
@media (prefers-color-scheme: dark) { svg { background: #14181d } text { fill: #e6eaf0 } .grid, .leader { stroke: #39424e }
.tick { fill: #9aa6b5 } .dot { fill: #14181d } .bound, .level { stroke: #9aa6b5 } }
"""
INKS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""The colours of Okabe and Ito, which colour-blind readers can tell apart."""


def draw(rows: Sequence[FrontierRow], reference: Reference | None = None) -> str:
    """Draw the curve as SVG: a line for each size, the points with their names, and filled on the front.

    Examples
    --------
    >>> draw([FrontierRow("short", 8000, 1.9, 0.7, 0.5, 0.583, 0.6, {})])[:39]
    '<svg xmlns="http://www.w3.org/2000/svg"'
    """
    rows, peers = ordered(rows), reference.peers if reference else ()
    xs, ys = [row.tokens_per_eojeol for row in (*rows, *peers)], [row.f1 for row in (*rows, *peers)]
    ys += [reference.trivial.f1] if reference else []  # its tokens are far to the right
    wide, high = max(0.05 * (max(xs) - min(xs)), 0.02), max(0.05 * (max(ys) - min(ys)), 0.02)
    left, right, bottom, top = min(xs) - wide, max(xs) + wide, max(0.0, min(ys) - high), min(1.0, max(ys) + high)
    sizes = sorted({row.vocab_size for row in rows})
    series = [
        (f"{size:,} ids; filled: Pareto-optimal", [row for row in rows if row.vocab_size == size], INKS[k % len(INKS)])
        for k, size in enumerate(sizes)
    ]
    if peers:
        series.append((f"{peers[0].name}, default settings", [*peers], "#777"))
    curves, legend, style = [], [], STYLE
    for number, (words, line, ink) in enumerate(series, start=1):
        name = style_of(number)
        mine = f".{name.split()[0]}"
        style += f"{mine} {{ stroke: {ink} }} .mark{mine} {{ stroke: none }} .dot.best{mine} {{ fill: {ink} }}\n"
        curves.append(Line(number, words, [(row.tokens_per_eojeol, row.f1) for row in line]))
        legend.append((name, words))
    if reference:
        steps = [left + (right - left) * k / 200 for k in range(201)]
        bound = [(x, y) for x in steps if bottom <= (y := reference.ceiling(x)) <= top]
        trivial = reference.trivial
        words = f"one token per character (F1 {trivial.f1:.3f} at {trivial.tokens_per_eojeol:.2f})"
        if bound:
            curves.append(Line(0, "upper bound of any tokenizer", bound, "bound"))
            legend.append(("bound", "upper bound of any tokenizer"))
        curves.append(Line(0, words, [(left, trivial.f1), (right, trivial.f1)], "level"))
        legend.append(("level", words))
    marks = [
        Dot(sizes.index(row.vocab_size) + 1, row.name, row.tokens_per_eojeol, row.f1, best)
        for row, best in zip(rows, on_front(rows), strict=True)
    ]
    marks += [
        Dot(len(sizes) + 1, f"SentencePiece {row.vocab_size:,}", row.tokens_per_eojeol, row.f1, front=False)
        for row in peers
    ]
    axes = ("tokens per eojeol", "어절당 토큰 수"), ("boundary F1 (silver)", "형태소 경계 F1 (분석기 기준)")
    return standalone(points(marks, *axes, curves=curves), style, legend)
