"""Writes the front page, the table of the options and the help of the verbs from what makes them; lets `|` stand in code in tables."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from subprocess import run
from sys import executable
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
    plain = re.sub(r"<!-- (README[.\w]*\.md) -->", lambda name: front_page(name[1]), plain)
    plain = re.sub(r"(\]\([^):#\s]*)\.ko\.md", r"\1.md", plain)  # the site puts the page of the reader's language there
    plain = re.sub(r"<!-- help (\w+) -->", lambda verb: f"```text\n{help_of(verb[1])}```", plain)
    return plain.replace("<!-- options -->", options_table()) if "<!-- options -->" in plain else plain


def front_page(name: str) -> str:
    """README with the links of the site: pages of docs/ in the reader's language, no file that the site has not."""
    readme = (Path(__file__).parents[1] / name).read_text(encoding="utf-8")
    readme = re.sub(r"^\[[^\]\n]*\]\(README[.\w]*\)\n", "", readme, flags=re.MULTILINE)
    readme = re.sub(r"\[([^\]]*)\]\((?!docs/|https?:)[^)]*\)", r"\1", readme)
    return re.sub(
        r"\]\(docs/([^)#]*?)(\.ko)?(\.\w+)(#[^)]*)?\)", lambda link: f"]({link[1]}{link[3]}{link[4] or ''})", readme
    )


@cache
def help_of(verb: str) -> str:
    """What `koktok VERB --help` prints."""
    shown = run([executable, "-m", "koktok", verb, "--help"], capture_output=True, text=True, check=True).stdout
    return shown.replace("python -m koktok", "koktok")


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace(r"\|", "|")
