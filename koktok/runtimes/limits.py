"""Sentences about the limits of other libraries: why a format cannot hold a vocabulary, and what differs where it can.

limits.toml has the sentences by name; the file of each format has the conditions under which they hold.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path


@cache
def _sentences() -> dict[str, dict[str, str]]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: {key: text.strip() for key, text in table.items()} for name, table in tables.items()}


def that_hold(table: str, cases: Iterable[tuple[str, object]], **holes: object) -> list[str]:
    """The sentences of a table whose condition holds; `holes` fill their fields."""
    return [_sentences()[table][name].format_map(holes) for name, holds in cases if holds]


def first_that_holds(obstacles: Iterable[tuple[str, object]], kind: str) -> str:
    """The sentence of the first obstacle, or '' without one; each is a name, and the offending piece or a truth value."""
    for name, found in obstacles:
        if found:
            return _sentences()["unsupported"][name].format(kind=kind, found=found)
    return ""
