"""Choices that every rendering of a report shares: the columns of the first table, the rows on the front, at equal tokens, outside."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import Final

from koktok.metrics import Measure, Scores, Value
from koktok.metrics.registry import columns
from koktok.report.korean import korean_units
from koktok.report.schema import GoldInfo, Report

UNREADABLE: Final = 0.05
"""Largest share of eojeols with an unknown token that a row on the front may have."""

HEADLINE: Final = "boundary_f1_macro"


def columns_of(report: Report) -> list[Measure]:
    """The measures of the first table that some row has."""
    known = {measure.name: measure for measure in report.measures}
    names = [metric.name for metric in columns()]
    return [known[name] for name in names if name in known and any(name in row.values for row in report.rows)]


def pareto_front(rows: Iterable[Scores], f1: str = "boundary_f1") -> list[Scores]:
    """Return the rows that no other beats in both fertility and an F1, by fertility.

    Analysers and trivial rows are no vocabularies that a model could use, so they are never on the front. Nor are rows for which
    more than `UNREADABLE` of the eojeols hold an unknown token, because unknown text costs few tokens.
    """
    figures = [
        (row.values["fertility"].value, row.values[f1].value, row)
        for row in rows
        if {"fertility", f1} <= row.values.keys()
        and row.family not in ("analyser", "trivial")
        and not ("unknown_eojeols" in row.values and row.values["unknown_eojeols"].value > UNREADABLE)
    ]
    best = [
        (x, y, row) for x, y, row in figures if not any(a <= x and b >= y and (a, b) != (x, y) for a, b, _ in figures)
    ]
    return [row for _, _, row in sorted(best, key=lambda item: (item[0], -item[1], item[2].number))]


def equal_tokens(report: Report, family: str = "koktok") -> list[tuple[Scores, Value, float]]:
    """Compare the F1 of every other row with that of one family's front at as many tokens.

    Rows whose pieces cross spaces are compared with such rows only. The F1 of the front is read off the straight line between two
    of its rows; rows outside the front's range are left out.
    """
    fronts = {
        crosses: [
            (row.values["fertility"].value, row.values[HEADLINE].value)
            for row in pareto_front((r for r in report.rows if r.family == family and across(r) == crosses), HEADLINE)
        ]
        for crosses in (False, True)
    }
    compared_rows = []
    for row in report.rows:
        x, f1 = row.values.get("fertility"), row.values.get(HEADLINE)
        if row.family in (family, "analyser", "trivial") or x is None or f1 is None:
            continue
        for (a, low), (b, high) in pairwise(fronts[across(row)]):
            if a <= x.value <= b:
                compared_rows.append((row, f1, low + (high - low) * (x.value - a) / (b - a)))
                break
    return compared_rows


def across(row: Scores) -> bool:
    """Whether pieces of a row cross spaces; runs of spaces inside a piece are rarer than one token in a thousand."""
    share = row.values.get("inner_space_share")
    return share is not None and share.value > 0.001


def by_kind(report: Report) -> list[tuple[GoldInfo, list[Scores]]]:
    """Each gold corpus with kinds of border, and the rows that have their recall."""
    tables = [
        (gold, [row for row in report.rows if any(f"recall:{kind}@{gold.name}" in row.values for kind in gold.kinds)])
        for gold in report.golds
    ]
    return [(gold, rows) for gold, rows in tables if rows]


def units_of(report: Report) -> tuple[str, str]:
    """What the intervals of a report resample, in English and in Korean."""
    resampled = [
        ("the text", "본문", report.resampled),
        *((gold.name, gold.name, gold.resampled) for gold in report.golds),
    ]
    named = [one for one in resampled if one[2]]
    english = "; ".join(f"{units} ({name})" for name, _, units in named)
    return english or "blocks of lines", "; ".join(f"{korean_units(n)}({name})" for _, name, n in named) or "줄 묶음"


def outliers(report: Report) -> set[int]:
    """Numbers of the rows with less than half or more than twice the median fertility, which would squeeze all others in a drawing."""
    figures = {row.number: row.values["fertility"].value for row in report.rows if "fertility" in row.values}
    if not figures:
        return set()
    middle = median(figures.values())
    front = {row.number for row in pareto_front(report.rows)}
    return {number for number, value in figures.items() if not middle / 2 <= value <= middle * 2} - front


def compared(report: Report) -> list[str]:
    """The measures of which some row has the difference from the reference."""
    return list(dict.fromkeys(name for row in report.rows for name in row.differences))
