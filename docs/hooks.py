"""Writes the table of the dials from the fields that also make the options, and lets `|` stand in code in tables."""

from __future__ import annotations

import re
from typing import Any

from koktok.cli.dials import Dial
from koktok.cli.train import DIALS
from koktok.recipe import SECTION_OF


def dials() -> str:
    """A row for each field: its name, its option, what may be typed, what it does."""
    options = " ".join(DIALS.values()).split()
    rows = ["| `[recipe.…]` | option of `koktok train` | default | |", "|---|---|---|---|"]
    for name in (*SECTION_OF, "jamo", "holdout"):
        dial = Dial(name)
        option = f"`{dial.option}`" if name in options else ""
        value = dial.value
        shown = str(value).lower() if isinstance(value, bool) else dial.default
        default = f"`{shown}`" if shown else ""
        choices = f" One of {', '.join(f'`{choice}`' for choice in dial.choices)}." if dial.choices else ""
        rows.append(f"| `{dial.key}` | {option} | {default} | {dial.description}{choices} |")
    return "\n".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """As MkDocs calls it, for every page."""
    # GitHub wants `\|` inside code in a table; Python-Markdown takes a plain `|` there, and would show the backslash.
    plain = re.sub(r"^\|.*", lambda row: re.sub("`[^`]*`", _unescaped, row[0]), markdown, flags=re.MULTILINE)
    return plain.replace("<!-- dials -->", dials()) if "<!-- dials -->" in plain else plain


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
