"""What every rendering shares: which columns stand in the first table, how a figure is spelled, which rows are on the front."""

from __future__ import annotations

from statistics import median
from typing import Final

from koktok.report.schema import Cell, Measure, Report, Row

__all__ = ["COLUMNS", "columns_of", "differences", "on_front", "outliers", "shown", "shown_interval"]

COLUMNS: Final = (
    "fertility",
    "nsl",
    "boundary_precision",
    "boundary_recall",
    "boundary_f1",
    "boundary_ceiling",
    "stem_consistency",
    "unknown_eojeols",
    "fallback_bytes",
    "bytes_per_token",
    "renyi_efficiency",
    "utilisation",
    "round_trip_nfc",
    "parity",
    "english_fertility",
)
"""Measures of the first table, in reading order; the second table holds all of them."""

UNREADABLE: Final = 0.05
"""Largest share of eojeols with an unknown token that a row on the front may have."""

HUNDREDTHS: Final = ("bytes_per_token", "chars_per_token")


def columns_of(report: Report) -> list[Measure]:
    """The measures of the first table that some row has."""
    known = {measure.key: measure for measure in report.measures}
    return [known[key] for key in COLUMNS if key in known and any(key in row.scores for row in report.rows)]


def shown(cell: Cell | None, measure: Measure) -> str:
    """A figure as tables spell it.

    Examples
    --------
    >>> f1 = Measure(key="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> shown(Cell(value=0.70249), f1), shown(None, f1), shown(Cell(value=12345.0), f1), shown(Cell(value=0.0000123), f1)
    ('0.702', '', '12,345', '1.2e-05')
    """
    if cell is None:
        return ""
    size = abs(cell.value)
    if size >= 1000 or (size >= 100 and float(size).is_integer()):
        return f"{cell.value:,.0f}"
    if 0 < size < 0.0005:
        return f"{cell.value:.1e}"
    return f"{cell.value:.2f}" if measure.key in HUNDREDTHS or size >= 100 else f"{cell.value:.3f}"


def shown_interval(cell: Cell | None, measure: Measure) -> str:
    """The interval in brackets, or nothing.

    Examples
    --------
    >>> f1 = Measure(key="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> shown_interval(Cell(value=0.7, low=0.6, high=0.81), f1)
    '[0.600, 0.810]'
    """
    if cell is None or cell.low is None or cell.high is None:
        return ""
    low, high = Cell(value=cell.low), Cell(value=cell.high)
    return f"[{shown(low, measure)}, {shown(high, measure)}]"


def on_front(report: Report) -> list[Row]:
    """Rows that no other beats in both fertility and boundary F1, by fertility.

    Analysers and trivial rows are no vocabularies that a model could use; they are drawn, and never on the front. Neither
    are rows to which more than `UNREADABLE` of the eojeols hold something unknown: what is not spelled costs no tokens.
    """
    figures = [
        (row.scores["fertility"].value, row.scores["boundary_f1"].value, row)
        for row in report.rows
        if {"fertility", "boundary_f1"} <= row.scores.keys()
        and row.family not in ("analyser", "trivial")
        and not ("unknown_eojeols" in row.scores and row.scores["unknown_eojeols"].value > UNREADABLE)
    ]
    best = [
        (x, y, row) for x, y, row in figures if not any(a <= x and b >= y and (a, b) != (x, y) for a, b, _ in figures)
    ]
    return [row for _, _, row in sorted(best, key=lambda item: (item[0], -item[1], item[2].number))]


def outliers(report: Report) -> set[int]:
    """Rows with less than half or more than twice the median fertility: with bytes drawn, nothing else could be seen."""
    figures = {row.number: row.scores["fertility"].value for row in report.rows if "fertility" in row.scores}
    if not figures:
        return set()
    middle = median(figures.values())
    front = {row.number for row in on_front(report)}
    return {number for number, value in figures.items() if not middle / 2 <= value <= middle * 2} - front


def differences(report: Report) -> tuple[list[str], dict[int, dict[str, Cell]]]:
    """The compared measures, and for each row that was compared its differences by measure."""
    by_row: dict[int, dict[str, Cell]] = {}
    for item in report.comparisons:
        by_row.setdefault(item.row, {})[item.measure] = item.difference
    return list(dict.fromkeys(item.measure for item in report.comparisons)), by_row
