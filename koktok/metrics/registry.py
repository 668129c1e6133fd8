"""The definitions of metrics in `definitions.toml`: a formula over column sums, and its description in two languages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from koktok.errors import UsageError
from koktok.metrics.gold import FUNCTIONAL, GOLD_BOUNDARIES

Floats = npt.NDArray[np.float64]
Better = Literal["lower", "higher", "one", "none"]


def ratio(above: Any, below: Any) -> Any:
    """Above / below, and nan where there is nothing below."""
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below != 0)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The description of a figure. `better`: lower, higher, one (nearer to 1), none (a description)."""

    name: str
    title: str
    title_ko: str
    unit: str
    better: Better
    definition: str
    source: str = ""
    pitfalls: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Where a metric is shown besides the table of all; `column` is its place in the first table of a report, from 1."""

    column: int = 0
    head: str = ""
    domains: bool = False
    compared: bool = False
    brief: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric(Measure):
    """`id` is its number (M9a), `table` what it sums, `needs` what it is measured on, `optional` a column that may be missing."""

    id: str
    needs: str
    table: str
    optional: str
    definition_ko: str
    value: Callable[[Any], Any]
    shown: Shown = Shown()


class Formula:
    """Column sums to a value: one expression, whose `/` is `ratio`; `of(column, KIND, ...)` adds up kinds of boundaries."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):  # a / b -> ratio(a, b)
            for field, child in ast.iter_fields(node):
                if isinstance(child, ast.BinOp) and isinstance(child.op, ast.Div):
                    call = ast.Call(ast.Name("ratio", ast.Load()), [child.left, child.right], [])
                    setattr(node, field, ast.copy_location(call, child))
        self._code = compile(ast.fix_missing_locations(tree), text, "eval")

    def __call__(self, sums: Any) -> Any:
        """The value; an array where `sums` are those of many resamples."""

        def of(column: str, *kinds: str) -> Any:
            return sum(sums[f"{column}_{GOLD_BOUNDARIES.index(kind)}"] for kind in kinds)

        known = {"ratio": ratio, "minimum": np.minimum, "of": of, "FUNCTIONAL": FUNCTIONAL}
        columns = sums if isinstance(sums, Mapping) else _Attributes(sums)
        return eval(self._code, known, columns)


class _Attributes(dict[str, Any]):
    """The names of a histogram as if they were columns."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __missing__(self, name: str) -> Any:
        if hasattr(self.of, name):
            return getattr(self.of, name)
        raise KeyError(name)


def boundary_f1_macro(s: Any) -> Any:
    """Mean over gold corpora."""
    count = sum(name.startswith("functional_hits") for name in s)
    names = ("functional_hits", "functional_cuts", "functional_borders")
    hits, cuts, borders = ([s[f"{name}_{k}"] for k in range(count)] for name in names)
    return np.mean([ratio(2 * h, c + b) for h, c, b in zip(hits, cuts, borders, strict=True)], axis=0)


def recall_by_kind(s: Any) -> Any:
    """Mean over the kinds that the gold has."""
    recalls = np.array([ratio(s[f"hits_{k}"], s[f"borders_{k}"]) for k, _ in enumerate(GOLD_BOUNDARIES[:-1])])
    held = np.isfinite(recalls)
    return ratio(np.where(held, recalls, 0).sum(axis=0), held.sum(axis=0))


def percentile_frequency(h: Any) -> Any:
    """As tokenization-scorer has it."""
    falling = np.sort(h.counts)[::-1]
    n = len(falling)
    if not n:
        return float("nan")
    start, end = min(int(n * 0.03), n - 1), min(int(n * 0.83), n - 1)
    start = max(0, start - 1) if start == end else start
    end = min(n - 1, end + 1) if start == end else end
    return float(falling[start:end].sum() / h.tokens)


def utilisation(h: Any) -> Any:
    """Types over the size."""
    return h.types / h.size if h.size else float("nan")


def frequent_utilisation(h: Any) -> Any:
    """Types that occur 100 times per million tokens, over the size."""
    return float((h.counts >= h.tokens / 10_000).sum() / h.size) if h.size and h.tokens else float("nan")


_KNOWN: dict[str, Metric] = {}


@cache
def _load() -> None:
    rows = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8"))
    perturbations = rows.pop("_perturbations")
    for name, row in rows.items():
        which, _, without = row.pop("each", "").partition(", not ")
        each = {key: words for key, words in perturbations.items() if key != without} if which else {"": []}
        for suffix, words in each.items():  # perturbations: one row for all, {0} the letter, {1} and {2} what is done
            key = f"{name}_{suffix}" if suffix else name
            _KNOWN[key] = _metric(key, row, [suffix, *words])


def _metric(name: str, row: Mapping[str, Any], words: list[str]) -> Metric:
    def filled(text: str) -> str:
        return text.format(*words) if len(words) > 1 else text

    (number, unit, better), (title, title_ko) = row["about"], row["title"]
    value, (definition, *korean), on = row["value"], row["definition"], row.get("on", {})
    return Metric(
        id=filled(number),
        name=name,
        title=filled(title),
        title_ko=filled(title_ko),
        unit=unit,
        better=better,
        needs=on.get("needs", "text"),
        table=on.get("table", "text"),
        optional=on.get("optional", ""),
        definition=definition,
        definition_ko="".join(korean),
        source=row["source"],
        pitfalls=row["pitfalls"],
        value=globals()[value[1:]] if value[0] == "@" else Formula(filled(value)),
        shown=Shown(**row.get("shown", {})),
    )


def metrics() -> dict[str, Metric]:
    """Every metric by name, in the order of their numbers."""
    _load()
    return dict(sorted(_KNOWN.items(), key=lambda item: (*_order(item[1].id), item[0])))


def columns() -> list[Metric]:
    """The metrics of the first table of a report, in reading order."""
    return sorted((metric for metric in metrics().values() if metric.shown.column), key=lambda one: one.shown.column)


def _order(number: str) -> tuple[str, int, str]:
    letter, digits, rest = re.fullmatch(r"([MX])(\d+)(.*)", number).groups()  # type: ignore[union-attr]
    return letter, int(digits), rest


def describe(which: str) -> list[Metric]:
    """The metrics of a number ("M10", and all below it) or a name; a UsageError where there is none.

    >>> [metric.name for metric in describe("M1")]
    ['fertility']
    """
    known = metrics()
    if which in known:
        return [known[which]]
    number = re.escape(which.upper().removesuffix("."))
    matches = [m for m in known.values() if re.fullmatch(rf"{number}($|[^0-9].*)", m.id.upper())]
    if not matches:
        raise UsageError(f"`{which}` is not a metric", hint="koktok metrics")
    return matches
