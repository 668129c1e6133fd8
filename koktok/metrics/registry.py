"""What each metric is: one function a metric, whose docstring is the only place where its definition stands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from koktok.errors import UsageError

Floats = npt.NDArray[np.float64]
Sums = Mapping[str, Floats]
"""Column to its sum; an array when sums of many resamples are asked for at once."""

Better = Literal["lower", "higher", "one", "none"]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What a reader of a figure has to know; reports carry it along.

    Parameters
    ----------
    name : str
        The key everywhere.
    title, title_ko : str
        Labels.
    better : str
        Which way is better: lower, higher, one (the nearer to 1), none (a description, not a score).
    definition, source, pitfalls : str
    """

    name: str
    title: str
    title_ko: str
    unit: str
    better: Better
    definition: str
    source: str = ""
    pitfalls: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric(Definition):
    """A metric: its definition, where its counts come from, and the function from their sums to the value.

    Parameters
    ----------
    id : str
        Its number in the suite, with a letter where one number has several (M9a).
    needs : str
        text, gold, reference, parallel, labelled, vocabulary, sample (encodes again; only when extended).
    table : str
        Which table of statistics it sums.
    family : str
        Its file.
    optional : str
        Column that the table lacks for some tokenizers and materials, which then have no such figure; '' where every
        column is always there.
    value : callable
        From sums to the value.
    """

    id: str
    needs: str
    table: str
    family: str
    optional: str
    value: Callable[[Any], Any]


_KNOWN: Final[dict[str, Metric]] = {}

FAMILIES: Final = (
    "fertility",
    "unknowns",
    "boundaries",
    "border_kinds",
    "consistency",
    "distribution",
    "vocabulary",
    "fidelity",
    "robustness",
    "language_model",
    "probe",
    "speed",
)


def metric(
    number: str, *, ko: str, unit: str, better: Better, needs: str = "text", table: str = "text", optional: str = ""
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Put a function into the registry; its docstring holds a title and the parts Definition, Source and Pitfalls."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        doc = inspect.cleandoc(function.__doc__ or "")
        title = doc.split("\n\n")[0].replace("\n", " ").rstrip(".")
        parts = {
            name: " ".join(found[1].split())
            if (found := re.search(rf"^{name}: (.*?)(?=^[A-Z][a-z]+: |\Z)", doc, re.M | re.S))
            else ""
            for name in ("Definition", "Source", "Pitfalls")
        }
        family = function.__module__.rpartition(".")[2]
        _KNOWN[function.__name__] = Metric(
            id=number,
            name=function.__name__,
            title=title,
            title_ko=ko,
            unit=unit,
            better=better,
            needs=needs,
            table=table,
            family=family,
            optional=optional,
            definition=parts["Definition"],
            source=parts["Source"],
            pitfalls=parts["Pitfalls"],
            value=function,
        )
        return function

    return register


def metrics() -> dict[str, Metric]:
    """Every metric by name, in the order of their numbers."""
    from importlib import import_module

    for family in FAMILIES:
        import_module(f"koktok.metrics.{family}")
    return dict(sorted(_KNOWN.items(), key=lambda item: (_order(item[1].id), item[0])))


def _order(number: str) -> tuple[str, int, str]:
    letter, digits, rest = re.fullmatch(r"([MX])(\d+)(.*)", number).groups()  # type: ignore[union-attr]
    return letter, int(digits), rest


def describe(which: str) -> list[Metric]:
    """The metrics of a number ("M10", and all below it) or a name.

    Raises
    ------
    UsageError
        When there is none.

    Examples
    --------
    >>> describe("fertility")[0].definition
    'all tokens / eojeols (whitespace words) of the NFC text, summed over all lines before dividing.'
    >>> [metric.name for metric in describe("M1")]
    ['fertility']
    """
    known = metrics()
    if which in known:
        return [known[which]]
    wanted = re.escape(which.upper().removesuffix("."))
    found = [m for m in known.values() if re.fullmatch(rf"{wanted}($|[^0-9].*)", m.id.upper())]
    if not found:
        raise UsageError(f"`{which}` is no metric", hint="koktok metrics")
    return found


def ratio(above: Any, below: Any) -> Any:
    """Above / below, and nan where there is nothing below."""
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below != 0)


def f_score(hits: Any, predicted: Any, gold: Any) -> Any:
    """2·hits / (predicted + gold): the harmonic mean of precision and recall."""
    return ratio(2 * np.asarray(hits, dtype=np.float64), np.asarray(predicted) + np.asarray(gold))
