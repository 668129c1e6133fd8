"""Writes the table of the options from the fields that also make the options, and lets `|` stand in code in tables."""

from __future__ import annotations

import re
from typing import Any

from koktok.cli.option_schema import OptionField
from koktok.cli.train import OPTIONS
from koktok.recipe import SECTION_OF


def options_table() -> str:
    """A row for each field: its name, its option, what may be typed, what it does."""
    options = " ".join(OPTIONS.values()).split()
    rows = ["| `[recipe.…]` | option of `koktok train` | default | |", "|---|---|---|---|"]
    for name in (*SECTION_OF, "jamo", "holdout"):
        field = OptionField(name)
        option = f"`{field.option}`" if name in options else ""
        value = field.value
        shown = str(value).lower() if isinstance(value, bool) else field.default
        default = f"`{shown}`" if shown else ""
        choices = f" One of {', '.join(f'`{choice}`' for choice in field.choices)}." if field.choices else ""
        rows.append(f"| `{field.key}` | {option} | {default} | {field.description}{choices} |")
    return "\n".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """As MkDocs calls it, for every page."""
    # GitHub wants `\|` inside code in a table; Python-Markdown takes a plain `|` there, and would show the backslash.
    plain = re.sub(r"^\|.*", lambda row: re.sub("`[^`]*`", _unescaped, row[0]), markdown, flags=re.MULTILINE)
    return plain.replace("<!-- options -->", options_table()) if "<!-- options -->" in plain else plain


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
