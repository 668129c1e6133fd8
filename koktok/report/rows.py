"""What every rendering shares: which columns stand in the first table, how a figure is spelled, which rows are on the front."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Final

from koktok.metrics import Definition, Difference, Value
from koktok.report.schema import GoldInfo, Report, ReportRow

COLUMNS: Final = (
    "fertility",
    "boundary_f1_macro",
    "boundary_f1",
    "nsl",
    "recall_noun_particle",
    "recall_verb_ending",
    "unknown_eojeols",
    "fallback_bytes",
    "bytes_per_token",
    "boundary_precision",
    "boundary_recall",
    "recall_copula",
    "boundary_ceiling",
    "renyi_efficiency",
    "utilisation",
    "round_trip_nfc",
    "parity",
    "english_fertility",
)
"""Measures of the first table, in reading order; the second table holds all of them."""

UNREADABLE: Final = 0.05
"""Largest share of eojeols with an unknown token that a row on the front may have."""

HEADLINE: Final = "boundary_f1_macro"

HUNDREDTHS: Final = ("bytes_per_token", "chars_per_token")


def columns_of(report: Report) -> list[Definition]:
    """The measures of the first table that some row has."""
    known = {measure.name: measure for measure in report.measures}
    return [known[key] for key in COLUMNS if key in known and any(key in row.scores for row in report.rows)]


def shown(value: Value | None, measure: Definition) -> str:
    """A figure as tables spell it.

    Examples
    --------
    >>> f1 = Definition(name="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> [shown(x and Value(x), f1) for x in (0.70249, None, 12345.0, 0.0000123)]
    ['0.702', '', '12,345', '1.2e-05']
    """
    if value is None:
        return ""
    size = abs(value.value)
    if size >= 1000 or (size >= 100 and float(size).is_integer()):
        return f"{value.value:,.0f}"
    if 0 < size < 0.0005:
        return f"{value.value:.1e}"
    return f"{value.value:.2f}" if measure.name in HUNDREDTHS or size >= 100 else f"{value.value:.3f}"


def shown_interval(value: Value | None, measure: Definition) -> str:
    """The interval in brackets, or nothing.

    Examples
    --------
    >>> f1 = Definition(name="f1", title="F1", title_ko="F1", unit="", better="higher", definition="")
    >>> shown_interval(Value(0.7, 0.6, 0.81), f1)
    '[0.600, 0.810]'
    """
    if value is None or value.low is None or value.high is None:
        return ""
    return f"[{shown(Value(value.low), measure)}, {shown(Value(value.high), measure)}]"


def pareto_front(rows: Iterable[ReportRow], f1: str = "boundary_f1") -> list[ReportRow]:
    """Rows that no other beats in both fertility and an F1, by fertility.

    Analysers and trivial rows are no vocabularies that a model could use; they are drawn, and never on the front. Neither
    are rows to which more than `UNREADABLE` of the eojeols hold something unknown: what is not spelled costs no tokens.
    """
    figures = [
        (row.scores["fertility"].value, row.scores[f1].value, row)
        for row in rows
        if {"fertility", f1} <= row.scores.keys()
        and row.family not in ("analyser", "trivial")
        and not ("unknown_eojeols" in row.scores and row.scores["unknown_eojeols"].value > UNREADABLE)
    ]
    best = [
        (x, y, row) for x, y, row in figures if not any(a <= x and b >= y and (a, b) != (x, y) for a, b, _ in figures)
    ]
    return [row for _, _, row in sorted(best, key=lambda item: (item[0], -item[1], item[2].number))]


def equal_tokens(report: Report, family: str = "koktok") -> list[tuple[ReportRow, Value, float]]:
    """F1 at as many tokens: every other row beside the front of one family.

    Like is compared with like: a row whose pieces cross spaces with rows whose pieces do, the others with the others. A row of
    another family comes with its headline F1 and that of the front at the same tokens per eojeol, on the straight line between
    two of its rows; rows outside the front's range are left out.
    """
    fronts = {
        crosses: [
            (row.scores["fertility"].value, row.scores[HEADLINE].value)
            for row in pareto_front((r for r in report.rows if r.family == family and across(r) == crosses), HEADLINE)
        ]
        for crosses in (False, True)
    }
    found = []
    for row in report.rows:
        x, f1 = row.scores.get("fertility"), row.scores.get(HEADLINE)
        if row.family in (family, "analyser", "trivial") or x is None or f1 is None:
            continue
        for (a, low), (b, high) in pairwise(fronts[across(row)]):
            if a <= x.value <= b:
                found.append((row, f1, low + (high - low) * (x.value - a) / (b - a)))
                break
    return found


def across(row: ReportRow) -> bool:
    """Whether pieces of this row cross spaces; runs of spaces in a piece are rarer than one token in a thousand."""
    share = row.scores.get("inner_space_share")
    return share is not None and share.value > 0.001


def by_kind(report: Report) -> list[tuple[GoldInfo, list[ReportRow]]]:
    """Each gold corpus with kinds of border, and the rows that have their recall."""
    found = [
        (gold, [row for row in report.rows if any(f"recall:{kind}@{gold.name}" in row.scores for kind in gold.kinds)])
        for gold in report.golds
    ]
    return [(gold, rows) for gold, rows in found if rows]


def units_of(report: Report) -> str:
    """What the intervals of a report resample, in words."""
    found = [("the text", report.resampled), *((gold.name, gold.resampled) for gold in report.golds)]
    return "; ".join(f"{units} ({name})" for name, units in found if units) or "blocks of lines"


def outliers(report: Report) -> set[int]:
    """Rows with less than half or more than twice the median fertility: with bytes drawn, nothing else could be seen."""
    figures = {row.number: row.scores["fertility"].value for row in report.rows if "fertility" in row.scores}
    if not figures:
        return set()
    middle = median(figures.values())
    front = {row.number for row in pareto_front(report.rows)}
    return {number for number, value in figures.items() if not middle / 2 <= value <= middle * 2} - front


def shown_p(found: Difference) -> str:
    """The adjusted p-value, or nothing.

    Examples
    --------
    >>> [shown_p(Difference(1, adjusted=p)) for p in (0.0302, 1e-8, None)]
    ['p = .030', 'p < .001', '']
    """
    if found.adjusted is None:
        return ""
    return "p < .001" if found.adjusted < 0.001 else f"p = {found.adjusted:.3f}".replace(" 0.", " .")


def compared(report: Report) -> list[str]:
    """The measures of which some row has the difference from the reference."""
    return list(dict.fromkeys(name for row in report.rows for name in row.differences))
