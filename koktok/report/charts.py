"""Drawings as inline SVG: the browser's own fonts draw the Hangul, and nothing is loaded from anywhere.

Two drawings: points with a front, and bars with whiskers. Words
that a reader sees come in pairs, English and Korean, and the page shows one of them. A drawing that is wide on a screen is
made a second time for a telephone, because letters of a drawing shrink with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

Label = tuple[str, str]
"""The same words in English and in Korean."""

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

COLOURS = 8
"""So many colours the style sheet has, in an order that keeps neighbours apart; the next rows get another shape or dash."""

SHAPES = ("", "M-5,-5H5V5H-5Z", "M0,-6.5L6.5,0L0,6.5L-6.5,0Z", "M0,-6L6,5H-6Z")
"""Disc, square, diamond, triangle."""

NARROW = 500
"""Below this width a drawing leaves less room for names."""


def style_of(number: int) -> str:
    """The classes of a row's colour and shape, which depend on its number alone.

    Examples
    --------
    >>> style_of(1), style_of(8), style_of(9)
    ('k0 s0', 'k7 s0', 'k0 s1')
    """
    return f"k{(number - 1) % COLOURS} s{(number - 1) // COLOURS % len(SHAPES)}"


@dataclass(frozen=True, slots=True)
class Dot:
    """A tokenizer between two axes; `front` where no other beats it."""

    number: int
    name: str
    x: float
    y: float
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


@dataclass(frozen=True, slots=True)
class Line:
    """A series of positive coordinates; a line of no row has a style of its own."""

    number: int
    name: str
    values: Sequence[tuple[float, float]]
    style: str = ""


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers between two ends, about `count` of them.

    Examples
    --------
    >>> ticks(1.61, 3.4)
    [2.0, 2.5, 3.0]
    >>> ticks(0.0, 1.0, 5)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / count))
    step = next(power * s for s in STEPS if power * s >= span / count * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def points(
    marks: Sequence[Dot],
    x_label: Label,
    y_label: Label,
    *,
    curves: Sequence[Line] | None = None,
    width: int = 900,
    height: int = 520,
) -> str:
    """Points between two axes, each with its name; the front is joined by steps, unless there are `curves` to draw instead.

    A name without room beside its point is placed farther away with a thin line, or replaced by its number.
    """
    narrow = width < NARROW
    left, right, top, bottom = 44 if narrow else 64, 8 if narrow else 24, 16, 52
    x0, x1 = _padded([x for m in marks for x in (m.x, *(m.x_interval or ()))], 0.05, 0.12)
    y0, y1 = _padded([y for m in marks for y in (m.y, *(m.y_interval or ()))], 0.06, 0.06)

    def px(x: float) -> float:
        return left + (x - x0) / (x1 - x0) * (width - left - right)

    def py(y: float) -> float:
        return height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom)

    parts = [_grid_x(px(t), top, height - bottom, _short(t)) for t in ticks(x0, x1, 4 if narrow else 8)]
    parts += [_grid_y(py(t), left, width - right, _short(t)) for t in ticks(y0, y1, 8)]
    parts.append(_words(x_label, left + (width - left - right) / 2, height - 10, "axis"))
    middle = top + (height - top - bottom) / 2
    parts.append(_words(y_label, 12, middle, "axis", turned=True))
    front = sorted((m for m in marks if m.front), key=lambda m: (m.x, m.y))
    for curve in curves or ():
        path = "M" + "L".join(f"{px(x):.1f},{py(y):.1f}" for x, y in curve.values)
        style = curve.style or style_of(curve.number)
        parts.append(f'<path class="line {style}" d="{path}"><title>{escape(curve.name)}</title></path>')
    if len(front) > 1 and curves is None:
        path = f"M{px(front[0].x):.1f},{py(front[0].y):.1f}"
        path += "".join(f"H{px(m.x):.1f}V{py(m.y):.1f}" for m in front[1:])
        parts.append(f'<path class="front" d="{path}"/>')
    boxes = [(px(m.x) - 7, py(m.y) - 7, px(m.x) + 7, py(m.y) + 7) for m in marks]
    for curve in curves or ():  # a name on a line is not read
        for (ax, ay), (bx, by) in pairwise((px(x), py(y)) for x, y in curve.values):
            steps = max(1, round(math.dist((ax, ay), (bx, by)) / STEP))
            along = [(ax + (bx - ax) * k / steps, ay + (by - ay) * k / steps) for k in range(steps + 1)]
            boxes += [(x - 2, y - 2, x + 2, y + 2) for x, y in along]
    frame = (left, top, width - right, height - bottom)
    names = []
    for m in sorted(marks, key=lambda m: (not m.front, m.number)):
        x, y = px(m.x), py(m.y)
        if m.y_interval:
            parts.append(_stroke("whisker", x, py(m.y_interval[0]), x, py(m.y_interval[1])))
        if m.x_interval:
            parts.append(_stroke("whisker", px(m.x_interval[0]), y, px(m.x_interval[1]), y))
        text = _cut(m.name, 110 if narrow else 220)
        place = _free_place(x, y, _width(text), boxes, frame)
        if place is None:
            text = str(m.number)
            place = _free_place(x, y, _width(text), boxes, frame)
        if place:
            boxes.append(place)
            names.append(
                f'<text class="mark {style_of(m.number)}" x="{place[0]:.1f}" y="{place[3] - 3:.1f}">{escape(text)}</text>'
            )
            near = min(max(x, place[0]), place[2]), min(max(y, place[1]), place[3])
            if math.dist((x, y), near) > LEADER:
                parts.append(_stroke(f"leader {style_of(m.number)}", x, y, *near))
    for m in sorted(marks, key=lambda m: (m.front, -m.number)):
        title = f"<title>{m.number}. {escape(m.name)}: {m.x:.3f}, {m.y:.3f}</title>"
        parts.append(_shape(m.number, px(m.x), py(m.y), " best" * m.front, title))
    return _svg("points", width, height, parts + names)


def _shape(number: int, x: float, y: float, more: str, title: str) -> str:
    path = SHAPES[(number - 1) // COLOURS % len(SHAPES)]
    if not path:
        return f'<circle class="dot {style_of(number)}{more}" cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>'
    return (
        f'<path class="dot {style_of(number)}{more}" transform="translate({x:.1f} {y:.1f})" d="{path}">{title}</path>'
    )


def bars(values: Sequence[Bar]) -> str:
    """Horizontal bars with whiskers, in the order given; a number, a name, a bar and its value a line."""
    width, row, left, right, top = 360, 17, 144, 48, 4
    height = top + row * len(values) + 20
    ends = [v.interval[1] if v.interval else v.value for v in values] or [1.0]
    high = max(*ends, 1e-9)

    def px(x: float) -> float:
        return left + max(x, 0.0) / high * (width - left - right)

    parts = [_grid_x(px(t), top, height - 20, _short(t)) for t in ticks(0.0, high, 4)]
    for i, v in enumerate(values):
        y = top + row * i
        parts.append(_clipped(v.number, v.name, left - 6, y + 12))
        title = f"{v.number}. {escape(v.name)}: {v.value:.3f}"
        if v.interval:
            title += f" [{v.interval[0]:.3f}, {v.interval[1]:.3f}]"
        parts.append(
            f'<rect class="bar {style_of(v.number)}" x="{left}" y="{y + 3}" width="{max(px(v.value) - left, 1):.1f}" '
            f'height="{row - 6}"><title>{title}</title></rect>'
        )
        if v.interval:
            parts.append(_stroke("whisker", px(v.interval[0]), y + row / 2, px(v.interval[1]), y + row / 2))
        parts.append(f'<text class="value" x="{width - 4}" y="{y + 12}">{v.value:.3f}</text>')
    return _svg("bars", width, height, parts)


def standalone(svg: str, style: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """A drawing as a file of its own: with the name space, a style, and below it a legend of (class, words)."""
    width, height = (int(n) for n in re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
    words = "".join(
        f'<path class="line {name}" d="M64,{height + 6 + 18 * k}h24"/>'
        f'<text x="96" y="{height + 10 + 18 * k}">{escape(text)}</text>'
        for k, (name, text) in enumerate(legend)
    )
    tall = f'viewBox="0 0 {width} {height + 18 * len(legend)}"'
    head, _, body = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).partition(">")
    head = head.replace(f'viewBox="0 0 {width} {height}"', tall)
    return f"{head}><style>{style}</style>{body.removesuffix('</svg>')}{words}</svg>\n"


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


LEADER: Final = 11
"""A name this far from its point, in pixels, is joined to it by a line."""

STEP: Final = 6
"""Between the points of a curve that names keep away from, in pixels: less than half of a name's height."""


def _free_place(
    x: float,
    y: float,
    wide: float,
    boxes: Iterable[tuple[float, float, float, float]],
    frame: tuple[float, float, float, float],
) -> tuple[float, float, float, float] | None:
    """The nearest free box for a name beside a point, right of it first."""
    others = list(boxes)
    for away in (0, 12, 26, 42, 60):
        for dx, dy in (
            (8 + away, 0),
            (8 + away / 2, -8 - away),
            (8 + away / 2, 8 + away),
            (-8 - away - wide, 0),
            (-8 - away / 2 - wide, -8 - away),
            (-8 - away / 2 - wide, 8 + away),
            (-wide / 2, -14 - away),
            (-wide / 2, 14 + away),
        ):
            box = (x + dx, y + dy - 7, x + dx + wide, y + dy + 7)
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


def _cut(name: str, room: float) -> str:
    """As much of a name as fits into so many pixels."""
    text = name
    while _width(text) > room:
        text = text[:-1]
    return text if text == name else text[:-1] + "…"


def _clipped(number: int, name: str, x: float, y: float) -> str:
    shown = _cut(name, x - 24)
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
