"""A table of figures is written once, in the English page; `python docs/tables.py` writes it into the Korean one.

GitHub shows the pages as they are, so the tables stand in both. The words of heads and rows are in tables.toml; tests/test_pages.py
says when a Korean page is behind. A table of sentences is translated by hand.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS: dict[str, str] = tomllib.loads((ROOT / "docs" / "tables.toml").read_text(encoding="utf-8"))
BLOCK = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
FIGURE = re.compile(r"yes|no|refused|[−+.<>~]? ?\d.*|–")


def pages() -> Iterator[tuple[Path, Path]]:
    """Every English page that has a Korean one, and that."""
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        if (korean := page.with_suffix(".ko.md")).exists():
            yield page, korean


def cells(row: str) -> list[str]:
    r"""The cells of a row; `\|` does not end one."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])]


def tables(text: str) -> list[tuple[int, int]]:
    """Where the tables of a page begin and end; `|` in a block of code begins none."""
    code = [block.span() for block in BLOCK.finditer(text)]
    found = (table.span() for table in TABLE.finditer(text))
    return [(begin, end) for begin, end in found if not any(first <= begin < last for first, last in code)]


def is_of_figures(table: str) -> bool:
    """Whether more than half of what stands beside the first column are figures."""
    beside = [cell for row in table.splitlines()[2:] for cell in cells(row)[1:] if cell]
    return 2 * sum(FIGURE.fullmatch(cell) is not None for cell in beside) > len(beside)


def in_korean(table: str) -> str:
    """The same rows with the words of tables.toml."""
    rows = table.splitlines()
    translated = [re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(map(_translated, cells(row)))} |") for row in rows]
    return "\n".join([translated[0], rows[1], *translated[2:]]) + "\n"


def _translated(cell: str) -> str:
    name, bracket, version = cell.rpartition(" (")
    if cell in WORDS:
        return WORDS[cell]
    if name in WORDS:  # what was measured, and the library's version
        return WORDS[name] + bracket + version
    wrong = re.fullmatch(r"([\d,]+) of ([\d,]+) wrong", cell)
    return f"{wrong[2]}개 중 {wrong[1]}개 틀림" if wrong else cell.removesuffix(" %") + "%" * cell.endswith(" %")


def current(page: Path, korean: Path) -> str:
    """The Korean page with the English one's figures."""
    english, text = page.read_text(encoding="utf-8"), korean.read_text(encoding="utf-8")
    own, theirs = tables(text), tables(english)
    assert len(own) == len(theirs), f"{korean.name} has {len(own)} tables, {page.name} has {len(theirs)}"
    for (begin, end), (first, last) in reversed([*zip(own, theirs, strict=True)]):
        if is_of_figures(english[first:last]):
            text = text[:begin] + in_korean(english[first:last]) + text[end:]
    return text


if __name__ == "__main__":
    for page, korean in pages():
        korean.write_text(current(page, korean), encoding="utf-8")
