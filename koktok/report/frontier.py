"""The curve of `koktok train --frontier` shown: a table, plain values for JSON, a scatter for the terminal, a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypedDict

from koktok.errors import InputError
from koktok.pipeline.baseline import shown
from koktok.pipeline.curve import FrontierRow, Reference, on_front, ordered
from koktok.report.charts import Line, Mark, points, standalone, style_of
from koktok.training.unigram_point import PRESETS

if TYPE_CHECKING:
    pass


TITLE: Final = "Tokens per eojeol against boundary F1 (silver: the analyser's cuts, held out)"
FORMAT: Final = "koktok-frontier"
VERSION: Final = 2
OPTIONS: Final = {"keep": "--keep", "tokens": "--tokens-per-eojeol", "lam": "--lam", "mu": "--mu", "nu": "--nu"}


def flags(dials: Mapping[str, Any]) -> str:
    """The options of `koktok train` that give these dials; empty where no options do.

    Examples
    --------
    >>> from koktok.pipeline.curve import FRONTIER
    >>> [flags(vars(point)) for point in FRONTIER[2:4]]
    ['--preset lm --keep 0.7', '--preset lm']
    """
    found: list[tuple[int, bool, str]] = []
    for name, preset in PRESETS.items():
        there = asdict(preset)
        changed = {key: dials.get(key) for key in there if key != "name" and there[key] != dials.get(key)}
        changed.pop("at_least", None)  # follows from whether a target is named
        if any(changed.get(key) is not None for key in ("keep", "tokens", "nu")):  # which take the preset's target away
            changed = {key: value for key, value in changed.items() if value is not None}
        typed = {key: _typed(key, value) for key, value in changed.items()}
        if all(typed.values()):
            options = " ".join([f"--preset {name}", *(f"{OPTIONS[key]} {value}" for key, value in typed.items())])
            found.append((len(changed), name != "lm", options))
    return min(found)[2] if found else ""


def _typed(name: str, value: Any) -> str:
    """A value as one types it; nothing where no option gives it."""
    if name not in OPTIONS or value is None or not (name == "keep" or isinstance(value, float | int)):
        return ""
    return shown(value) if name == "keep" else f"{value:g}"


def to_markdown(rows: Sequence[FrontierRow], against: Reference | None = None) -> str:
    """The rows as a Markdown table, by size, then tokens; a star for those on the front.

    Examples
    --------
    >>> print(to_markdown([FrontierRow("short", 8000, 1.9, 0.7, 0.5, 0.583, 0.6, vars(PRESETS["short"]))]))
    Tokens per eojeol against boundary F1 (silver: the analyser's cuts, held out)
    <BLANKLINE>
    | ids | point | tokens/eojeol | P | R | F1 | all gaps | ceiling | front | options |
    |---:|---|---:|---:|---:|---:|---:|---:|:---:|---|
    | 8,000 | short | 1.900 | 0.700 | 0.500 | 0.583 | 0.600 | 0.833 | * | `--preset short` |
    """
    lines = [
        TITLE,
        "",
        "| ids | point | tokens/eojeol | P | R | F1 | all gaps | ceiling | front | options |",
        "|---:|---|---:|---:|---:|---:|---:|---:|:---:|---|",
    ]
    rows = ordered(rows)
    marked = [*zip(rows, on_front(rows), strict=True), *([(against.trivial, False)] if against else [])]
    for row, best in marked:
        figures = (row.tokens_per_eojeol, row.precision, row.recall, row.f1, row.f1_all, row.ceiling)
        options = flags(row.dials)
        cells = [f"{row.vocab_size:,}", row.name.replace("|", "\\|"), *(f"{figure:.3f}" for figure in figures)]
        lines.append(f"| {' | '.join([*cells, '*' * best, f'`{options}`' if options else ''])} |")
    return "\n".join(lines)


COLUMNS: Final = ("point", "ids", "tokens/eojeol", "F1", "all gaps", "options")


def cells(rows: Sequence[FrontierRow], against: Reference | None = None) -> list[list[str]]:
    """The rows for a terminal, below `COLUMNS`, in the order of `to_markdown`."""
    rows = ordered(rows)
    marked = [*zip(rows, on_front(rows), strict=True), *([(against.trivial, False)] if against else [])]
    return [
        [
            row.name + " ★" * best,
            f"{row.vocab_size:,}",
            *(f"{figure:.3f}" for figure in (row.tokens_per_eojeol, row.f1, row.f1_all)),
            flags(row.dials),
        ]
        for row, best in marked
    ]


class RowDict(TypedDict):
    """A row in plain values."""

    name: str
    vocab_size: int
    tokens_per_eojeol: float
    precision: float
    recall: float
    f1: float
    f1_all: float
    dials: dict[str, Any]
    on_front: bool


class FrontierDict(TypedDict):
    """What `to_dict` gives and JSON keeps."""

    format: str
    version: int
    gold: str
    reference: dict[str, Any] | None
    rows: list[RowDict]


def to_dict(rows: Sequence[FrontierRow], against: Reference | None = None) -> FrontierDict:
    """The rows in plain values that JSON can write, by size, then tokens.

    Examples
    --------
    >>> found = to_dict([FrontierRow("short", 8000, 1.9, 0.7, 0.5, 0.583, 0.6, {})])
    >>> found["version"], found["rows"][0]["on_front"]
    (2, True)
    """
    rows = ordered(rows)
    return {
        "format": FORMAT,
        "version": VERSION,
        "gold": "silver: cuts of a morphological analyser",
        "reference": asdict(against) if against else None,
        "rows": [_row_dict(row, on_front=best) for row, best in zip(rows, on_front(rows), strict=True)],
    }


def _row_dict(row: FrontierRow, *, on_front: bool) -> RowDict:
    return {
        "name": row.name,
        "vocab_size": row.vocab_size,
        "tokens_per_eojeol": row.tokens_per_eojeol,
        "precision": row.precision,
        "recall": row.recall,
        "f1": row.f1,
        "f1_all": row.f1_all,
        "dials": dict(row.dials),
        "on_front": on_front,
    }


Limits = tuple[float, float, float, float]


def _limits(rows: Sequence[FrontierRow], against: Reference | None) -> Limits:
    """Left, right, bottom and top of a picture, with some air; the trivial row counts with its F1 alone, it is far off."""
    if not rows:
        raise InputError("there are no rows to draw")
    xs = [row.tokens_per_eojeol for row in rows]
    ys = [row.f1 for row in rows] + ([against.trivial.f1] if against else [])
    wide, high = max(0.05 * (max(xs) - min(xs)), 0.02), max(0.05 * (max(ys) - min(ys)), 0.02)
    return min(xs) - wide, max(xs) + wide, max(0.0, min(ys) - high), min(1.0, max(ys) + high)


STYLE: Final = """
svg { background: #fff; font: 12px system-ui, sans-serif } text { fill: #222 } .ko { display: none }
.grid, .leader { stroke: #ddd } .tick { fill: #666; font-size: 11px } .tick.x, .axis { text-anchor: middle } .tick.y { text-anchor: end }
.mark { font-size: 11px } .dot { fill: #fff; stroke-width: 2 } .line { fill: none; stroke-width: 1.5 }
.bound { stroke: #666; stroke-dasharray: 3 3 }
"""
INKS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's, which colour-blind readers can tell apart."""


def draw(rows: Sequence[FrontierRow], against: Reference | None = None) -> str:
    """The curve as SVG: a line a size, the points by name and filled on the front.

    Examples
    --------
    >>> draw([FrontierRow("short", 8000, 1.9, 0.7, 0.5, 0.583, 0.6, {})])[:39]
    '<svg xmlns="http://www.w3.org/2000/svg"'
    """
    left, right, bottom, top = _limits(rows, against)
    rows = ordered(rows)
    sizes = sorted({row.vocab_size for row in rows})
    curves, legend, style = [], [], STYLE
    for number, size in enumerate(sizes, start=1):
        name, ink = style_of(number), INKS[(number - 1) % len(INKS)]
        mine = f".{name.split()[0]}"
        style += f"{mine} {{ stroke: {ink} }} .mark{mine} {{ stroke: none }} .dot.best{mine} {{ fill: {ink} }}\n"
        here = [(row.tokens_per_eojeol, row.f1) for row in rows if row.vocab_size == size]
        curves.append(Line(number, f"{size:,} ids", here))
        legend.append((name, f"{size:,} ids; filled: on the front"))
    if against:
        xs = [left + (right - left) * k / 200 for k in range(201)]
        bound = [(x, y) for x in xs if bottom <= (y := against.ceiling(x)) <= top]
        trivial = against.trivial
        words = f"one token a character (F1 {trivial.f1:.3f} at {trivial.tokens_per_eojeol:.2f})"
        curves += [Line(0, "ceiling of any tokenizer", bound)] if bound else []
        curves.append(Line(0, words, [(left, trivial.f1), (right, trivial.f1)]))
        legend += [("bound", "the ceiling of any tokenizer"), ("bound", words)]
    marks = [
        Mark(sizes.index(row.vocab_size) + 1, row.name, row.tokens_per_eojeol, row.f1, best)
        for row, best in zip(rows, on_front(rows), strict=True)
    ]
    axes = ("tokens per eojeol", "어절당 토큰 수"), ("boundary F1 (silver)", "형태소 경계 F1")
    return standalone(points(marks, *axes, curves=curves), style, legend)
