"""Writes the table of the dials into the page of the recipe, from the fields that also make the options."""

from __future__ import annotations

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
        rows.append(
            f"| `{dial.key}` | {option} | {default} | {dial.description.replace('|', chr(92) + '|')}{choices} |"
        )
    return "\n".join(rows)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """As MkDocs calls it, for every page."""
    return markdown.replace("<!-- dials -->", dials()) if "<!-- dials -->" in markdown else markdown
