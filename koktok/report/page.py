"""`to_html`: one self-contained page in English and Korean, without external resources. The template holds no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from koktok.metrics import Scores, Value, metrics
from koktok.report.charts import Bar, Dot, bars, points, style_of
from koktok.report.korean import KOREAN
from koktok.report.playground.web_page import policy
from koktok.report.rows import columns_of, outliers, pareto_front
from koktok.report.schema import Report, Sentence
from koktok.report.tables import data_tables, measured, sections_of

if TYPE_CHECKING:
    from jinja2 import Environment


HERE: Final = Path(__file__).parent

OPEN_DOMAINS: Final = 4
"""Number of charts of domains that are unfolded; with forty tokenizers on twenty texts the page would be too long."""


TELEPHONE: Final[dict[str, int]] = {"width": 360, "height": 440}
"""Size of a drawing on a telephone in pixels, so that its letters are as large as those of the text."""

LEADING: Final = 9
"""Number of columns with intervals that fit on 1,400 pixels; the others are in the table of all measures."""

OPEN_LINES: Final = 80
"""Sentences are unfolded until they fill this number of lines."""


@dataclass(frozen=True, slots=True)
class Span:
    """A run of characters of one token between two marks."""

    text: str
    colour: int
    edge: str


def spans_of(
    text: str, tokens: Sequence[tuple[int, int]], gold: Sequence[int] | None, unjudged: Sequence[int] = ()
) -> list[Span]:
    """Split a line into coloured runs, with a mark where a token or a gold morpheme begins.

    At unjudged places a cut is neither right nor wrong and a boundary is not missed, as in the scores.

    Examples
    --------
    >>> [(s.text, s.colour, s.edge) for s in spans_of("집에 갔다", [(0, 2), (2, 4), (4, 5)], [1, 4])]
    [('집', 0, 'start'), ('에', 0, 'miss'), (' ', 1, 'start'), ('갔', 1, 'start'), ('다', 2, 'hit')]
    >>> [(s.text, s.edge) for s in spans_of("해요.", [(0, 1), (1, 2), (2, 3)], [2], [1, 2])]
    [('해', 'start'), ('요', 'cut'), ('.', 'cut')]
    """
    covered = {p for a, b in tokens for p in range(a, b)}
    crossed = {p for a, b in tokens for p in range(a + 1, b)}
    starts = {a for a, _ in tokens} - crossed
    marks = set(gold or ())
    spaces = {i for i, char in enumerate(text) if char.isspace()}
    edges = sorted(({0, len(text)} | starts | marks | spaces | {i + 1 for i in spaces}) & set(range(len(text) + 1)))
    runs, colour = [], -1
    for a, b in pairwise(edges):
        colour += a in starts
        if a in spaces or a == 0 or a - 1 in spaces:
            edge = "start"
        elif gold is None or a in unjudged:
            edge = "cut" if a in starts else ""
        elif a in marks:
            edge = "hit" if a in starts else "miss"
        else:
            edge = "over" if a in starts else ""
        runs.append(Span(text[a:b], colour if a in covered else -1, edge))
    return runs


def environment() -> Environment:
    """The Jinja environment of the template."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def to_html(report: Report, files: Mapping[str, str] | None = None) -> str:
    """Render a report as a page; `files` are those of its texts, by name."""
    ran = [row for row in report.rows if row.ran]
    far = outliers(report)
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    page = (
        environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            sections=sections_of(report),
            leading=measured(report, columns_of(report)[:LEADING]),
            data=data_tables(report, files),
            outside=[row for row in ran if row.number in far],
            scatter=_scatter(report),
            scatter_narrow=_scatter(report, **TELEPHONE),
            style_of=style_of,
            notes=_notes(ran),
            korean=KOREAN,
            definitions={name: metric.definition_ko for name, metric in metrics().items()},
            domains=_domains(report),
            open_domains=OPEN_DOMAINS,
            open_sentences=max(1, OPEN_LINES // max(1, len(ran))),
            sentences=[(s, _rows_of(s, report.rows)) for s in report.sentences],
            spans_of=spans_of,
            style=style,
            script=script,
            policy=policy(script, style),
        )
    )
    return page if page.endswith("\n") else page + "\n"


def _interval(value: Value) -> tuple[float, float] | None:
    return None if value.low is None or value.high is None else (value.low, value.high)


def _notes(rows: Sequence[Scores]) -> list[tuple[str, str, str]]:
    """Each note once: the numbers of its rows, the note in English and in Korean."""
    numbers_of: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for note in zip(row.notes, row.notes_ko or row.notes, strict=True):
            numbers_of.setdefault(note, []).append(str(row.number))
    return [(", ".join(numbers), note, korean or note) for (note, korean), numbers in numbers_of.items()]


def _scatter(report: Report, width: int = 900, height: int = 520) -> str:
    front, far = {row.number for row in pareto_front(report.rows)}, outliers(report)
    marks = []
    for row in report.rows:
        if row.number in far:
            continue
        x, y = row.values.get("fertility"), row.values.get("boundary_f1")
        if x and y:
            best = row.number in front
            marks.append(Dot(row.number, row.name, x.value, y.value, best, _interval(x), _interval(y)))
    if not marks:
        return ""
    return points(
        marks, ("tokens per eojeol", "어절당 토큰 수"), ("boundary F1", "형태소 경계 F1"), width=width, height=height
    )


def _domains(report: Report) -> list[tuple[str, str]]:
    """A chart of fertility for each text."""
    charts, far = [], outliers(report)
    for text in report.texts:
        values = []
        for row in report.rows:
            if row.number in far:
                continue
            cell = row.values.get(f"fertility@{text.name}")
            if cell:
                values.append(Bar(row.number, row.name, cell.value, _interval(cell)))
        if values:
            charts.append((text.name, bars(values)))
    return charts


def _rows_of(sentence: Sentence, rows: Sequence[Scores]) -> list[tuple[Scores, list[Span], int]]:
    return [
        (row, spans_of(sentence.text, spans, sentence.gold, sentence.unjudged), len(spans))
        for row in rows
        if (spans := sentence.tokens.get(row.number)) is not None
    ]
