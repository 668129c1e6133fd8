"""Drawings as inline SVG: the browser's own fonts draw the Hangul, and nothing is loaded from anywhere.

This file adds: four drawings (points with a front, bars with whiskers, stacked bars, lines over two logarithmic axes). Words
that a reader sees come in pairs, English and Korean, and the page shows one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "Label", "Line", "Mark", "bars", "lines", "points", "stacked", "ticks"]

Label = tuple[str, str]
"""The same words in English and in Korean."""

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A tokenizer between two axes; `family` decides its colour, `front` whether it is named."""

    number: int
    name: str
    x: float
    y: float
    family: str
    front: bool
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval."""

    number: int
    name: str
    value: float
    interval: tuple[float, float] | None
    family: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series of positive coordinates."""

    number: int
    name: str
    values: Sequence[tuple[float, float]]
    family: str


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers between two ends, about `wanted` of them.

    Examples
    --------
    >>> ticks(1.61, 3.4)
    [2.0, 2.5, 3.0]
    >>> ticks(0.0, 1.0, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / wanted))
    step = next(power * s for s in STEPS if power * s >= span / wanted * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def points(marks: Sequence[Mark], x_label: Label, y_label: Label, *, width: int = 900, height: int = 520) -> str:
    """Points between two axes, the front joined by steps and named; the others carry their number and a hover text."""
    left, right, top, bottom = 64, 24, 16, 52
    x0, x1 = _padded([m.x for m in marks], 0.05, 0.12)
    y0, y1 = _padded([m.y for m in marks], 0.06, 0.06)

    # Intervals may be wider than the drawing; they end at its frame.
    def px(x: float) -> float:
        return left + (min(max(x, x0), x1) - x0) / (x1 - x0) * (width - left - right)

    def py(y: float) -> float:
        return height - bottom - (min(max(y, y0), y1) - y0) / (y1 - y0) * (height - top - bottom)

    found = [_grid_x(px(t), top, height - bottom, _short(t)) for t in ticks(x0, x1, 8)]
    found += [_grid_y(py(t), left, width - right, _short(t)) for t in ticks(y0, y1, 8)]
    found.append(_words(x_label, left + (width - left - right) / 2, height - 10, "axis"))
    middle = top + (height - top - bottom) / 2
    found.append(_words(y_label, 16, middle, "axis", turned=True))
    front = sorted((m for m in marks if m.front), key=lambda m: (m.x, m.y))
    if len(front) > 1:
        path = f"M{px(front[0].x):.1f},{py(front[0].y):.1f}"
        path += "".join(f"H{px(m.x):.1f}V{py(m.y):.1f}" for m in front[1:])
        found.append(f'<path class="front" d="{path}"/>')
    taken: list[tuple[float, float, float, float]] = []
    for m in sorted(marks, key=lambda m: (not m.front, m.number)):
        x, y = px(m.x), py(m.y)
        if m.y_interval:
            found.append(_stroke("whisker", x, py(m.y_interval[0]), x, py(m.y_interval[1])))
        if m.x_interval:
            found.append(_stroke("whisker", px(m.x_interval[0]), y, px(m.x_interval[1]), y))
        title = f"<title>{m.number}. {escape(m.name)}: {m.x:.3f}, {m.y:.3f}</title>"
        found.append(
            f'<circle class="dot {m.family}{" best" if m.front else ""}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>'
        )
        text = f"{m.number} {m.name}" if m.front else str(m.number)
        place = _free_place(x, y, _width(text), taken, (left, top, width - right, height - bottom))
        if place:
            taken.append(place)
            found.append(f'<text class="mark" x="{place[0]:.1f}" y="{place[3] - 3:.1f}">{escape(text)}</text>')
        taken.append((x - 5, y - 5, x + 5, y + 5))
    return _svg("points", width, height, found)


def bars(values: Sequence[Bar], *, width: int = 430, start: float | None = None, digits: int = 3) -> str:
    """Horizontal bars with whiskers, in the order given; a number, a name, a bar and its value a line."""
    row, left, right, top = 17, 178, 54, 4
    height = top + row * len(values) + 20
    ends = [v.interval[1] if v.interval else v.value for v in values] or [1.0]
    low = 0.0 if start is None else start
    high = max([*ends, low + 1e-9])

    def px(x: float) -> float:
        return left + (max(x, low) - low) / (high - low) * (width - left - right)

    found = [_grid_x(px(t), top, height - 20, _short(t)) for t in ticks(low, high, 4)]
    for i, v in enumerate(values):
        y = top + row * i
        found.append(_clipped(v.number, v.name, left - 6, y + 12))
        title = f"{v.number}. {escape(v.name)}: {v.value:.{digits}f}"
        if v.interval:
            title += f" [{v.interval[0]:.{digits}f}, {v.interval[1]:.{digits}f}]"
        found.append(
            f'<rect class="bar {v.family}" x="{left}" y="{y + 3}" width="{max(px(v.value) - left, 1):.1f}" '
            f'height="{row - 6}"><title>{title}</title></rect>'
        )
        if v.interval:
            found.append(_stroke("whisker", px(v.interval[0]), y + row / 2, px(v.interval[1]), y + row / 2))
        found.append(f'<text class="value" x="{width - 4}" y="{y + 12}">{v.value:.{digits}f}</text>')
    return _svg("bars", width, height, found)


def stacked(
    rows: Sequence[tuple[int, str, Sequence[float]]], parts: Sequence[Label], *, width: int = 900, left: int = 230
) -> str:
    """Bars of one length, cut into shares; the legend stands above them."""
    row, top, right = 17, 26, 24
    height = top + row * len(rows) + 22
    unit = width - left - right
    found = []
    for k, part in enumerate(parts):
        x = left + k * unit / len(parts)
        found.append(f'<rect class="part p{k}" x="{x:.1f}" y="4" width="12" height="12"/>')
        found.append(_words(part, x + 17, 14, "legend"))
    found += [_grid_x(left + t * unit, top, height - 20, f"{t:.0%}") for t in (0, 0.25, 0.5, 0.75, 1)]
    for i, (number, name, shares) in enumerate(rows):
        y, x = top + row * i, float(left)
        found.append(_clipped(number, name, left - 6, y + 12))
        for k, share in enumerate(shares):
            title = f"{number}. {escape(name)}: {escape(parts[k][0])} {share:.1%}"
            found.append(
                f'<rect class="part p{k}" x="{x:.1f}" y="{y + 2}" width="{share * unit:.1f}" height="{row - 4}">'
                f"<title>{title}</title></rect>"
            )
            x += share * unit
    return _svg("stacked", width, height, found)


def lines(series: Sequence[Line], x_label: Label, y_label: Label, *, width: int = 900, height: int = 420) -> str:
    """Lines between two logarithmic axes; each carries its number at its end and its name as hover text."""
    left, right, top, bottom = 64, 40, 12, 52
    xs = [math.log10(x) for s in series for x, _ in s.values] or [0.0, 1.0]
    ys = [math.log10(y) for s in series for _, y in s.values] or [0.0, 1.0]
    (x0, x1), (y0, y1) = _padded(xs, 0.0, 0.02), _padded(ys, 0.02, 0.02)

    def px(x: float) -> float:
        return left + (math.log10(x) - x0) / (x1 - x0) * (width - left - right)

    def py(y: float) -> float:
        return height - bottom - (math.log10(y) - y0) / (y1 - y0) * (height - top - bottom)

    tens = [10.0**power for power in range(math.ceil(x0 - 1e-9), math.floor(x1 + 1e-9) + 1)]
    found = [_grid_x(px(ten), top, height - bottom, _short(ten)) for ten in tens]
    tens = [10.0**power for power in range(math.ceil(y0 - 1e-9), math.floor(y1 + 1e-9) + 1)]
    found += [_grid_y(py(ten), left, width - right, _short(ten)) for ten in tens]
    found.append(_words(x_label, left + (width - left - right) / 2, height - 10, "axis"))
    found.append(_words(y_label, 16, top + (height - top - bottom) / 2, "axis", turned=True))
    taken: list[float] = []
    for s in series:
        path = "M" + "L".join(f"{px(x):.1f},{py(y):.1f}" for x, y in s.values)
        found.append(f'<path class="line {s.family}" d="{path}"><title>{s.number}. {escape(s.name)}</title></path>')
        x, y = s.values[-1]
        if all(abs(py(y) - other) > 10 for other in taken):
            taken.append(py(y))
            found.append(f'<text class="mark" x="{px(x) + 4:.1f}" y="{py(y) + 4:.1f}">{s.number}</text>')
    return _svg("lines", width, height, found)


def _padded(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = (high - low) or abs(high) or 1.0
    return low - below * span, high + above * span


def _short(value: float) -> str:
    if 0 < abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"


def _width(text: str) -> float:
    # Enough for placing a label: a Hangul syllable is about as wide as the letters are high.
    return sum(11.0 if char >= "\u1100" else 6.2 for char in text)


def _free_place(
    x: float,
    y: float,
    wide: float,
    taken: Iterable[tuple[float, float, float, float]],
    frame: tuple[float, float, float, float],
) -> tuple[float, float, float, float] | None:
    others = list(taken)
    for dx, dy in (
        (8, -6),
        (8, 8),
        (-8 - wide, -6),
        (-8 - wide, 8),
        (-wide / 2, -19),
        (-wide / 2, 8),
        (14, -22),
        (14, 22),
    ):
        box = (x + dx, y + dy - 6, x + dx + wide, y + dy + 8)
        inside = frame[0] <= box[0] and box[2] <= frame[2] and frame[1] <= box[1] and box[3] <= frame[3]
        if inside and not any(box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in others):
            return box
    return None


def _words(words: Label, x: float, y: float, style: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return "".join(
        f'<text class="{style} {tongue}" x="{x:.1f}" y="{y:.1f}"{turn}>{escape(text)}</text>'
        for tongue, text in zip(("en", "ko"), words, strict=True)
    )


def _clipped(number: int, name: str, x: float, y: float) -> str:
    room, kept = x - 24, name
    while _width(kept) > room:
        kept = kept[:-1]
    shown = kept if kept == name else kept[:-1] + "…"
    return (
        f'<text class="number" x="16" y="{y}">{number}</text>'
        f'<text class="name" x="{x}" y="{y}">{escape(shown)}<title>{escape(name)}</title></text>'
    )


def _stroke(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _grid_x(x: float, top: float, bottom: float, text: str) -> str:
    return _stroke("grid", x, top, x, bottom) + f'<text class="tick x" x="{x:.1f}" y="{bottom + 14:.1f}">{text}</text>'


def _grid_y(y: float, left: float, right: float, text: str) -> str:
    return _stroke("grid", left, y, right, y) + f'<text class="tick y" x="{left - 6:.1f}" y="{y + 4:.1f}">{text}</text>'


def _svg(kind: str, width: int, height: int, parts: Iterable[str]) -> str:
    # The namespace is the only address that an SVG needs; inside HTML it may be left out, and is.
    return f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img">{"".join(parts)}</svg>'
