"""`to_markdown`: the tables of a report for a README or a pull request, figures beside intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from koktok.pipeline.card import BAR, SIGNS, plain
from koktok.report.schema import Report
from koktok.report.tables import Cell, Column, PageTable, data_tables, sections_of


def to_markdown(report: Report, files: Mapping[str, str] | None = None) -> str:
    r"""Print a report as Markdown; rows that did not run give the reason. `files` are those of its texts, by name.

    Examples
    --------
    >>> from koktok.metrics import Measure, Value
    >>> from koktok.metrics import Scores
    >>> fertility = Measure(name="fertility", title="tokens/eojeol", title_ko="", unit="", better="lower", definition="")
    >>> rows = [
    ...     Scores(number=1, name="a|b", spec="hf:a", family="hf", vocab_size=8000, scores={"fertility": Value(2)}),
    ...     Scores(number=2, name="c", spec="hf:c", family="hf", why="no such file"),
    ... ]
    >>> base = {"title": "Mini", "seed": 0, "resamples": 0, "libraries": {}, "texts": [], "golds": []}
    >>> print(to_markdown(Report(**base, measures=[fertility], rows=rows)))  # doctest: +ELLIPSIS
    # Mini
    <BLANKLINE>
    | # | tokenizer | ids | tokens/eojeol ↓ |
    |---:|---|---:|---:|
    | 1 | a\|b | 8,000 | 2.000 |
    | 2 | c | – | not run: no such file |
    ...
    """
    parts = [f"# {plain(report.title)}", *(f"> {_message(remark)}" for remark in report.remarks)]
    parts += [f"{report.made} {_code(report.command)}".strip()] if report.command else []
    for name, section in sections_of(report).items():
        if name == "all":  # of the page alone
            continue
        texts = [plain(section.text[0])] if section.text[0] else []
        tables = [
            part for t in section.tables for part in ([f"### {plain(t.title[0])}"] * bool(t.title[0]) + [_rows(t)])
        ]
        parts += [*tables, *texts] if name == "summary" else [f"## {plain(section.title[0])}", *texts, *tables]
    parts.append("## Data")
    for data in data_tables(report, files):
        columns = [*data.columns, Column(("SHA-256", ""), figure=False)]
        cells = ([*(plain(cell) for cell, _ in row[:-1]), f"`{row[-1][0]}`"] for row in data.rows)
        parts.append(table([column.title[0] for column in columns], _sides(columns), cells))
    signatures = (
        f"{row.number}. {plain(row.name)} ({_code(row.spec)}{''.join(f'; {plain(note)}' for note in row.notes)}): {_code(row.signature)}"
        for row in report.rows
        if row.ran
    )
    return "\n\n".join([*parts, "## Notes and signatures", "\n".join(signatures) or "none"]) + "\n"


def _rows(rows: PageTable) -> str:
    heads = ["#", "tokenizer", *["ids"] * rows.sizes, *(plain(column.title[0]) for column in rows.columns)]
    lines = []
    for row, cells in rows.rows:
        first = [str(row.number), plain(row.name) + " ★" * (row.number in rows.front)]
        first += [f"{row.vocab_size:,}" if row.vocab_size else "–"] * rows.sizes
        if row.ran:
            lines.append([*first, *map(_cell, cells)])
        else:
            lines.append([*first, f"not run: {_message(row.why)}", *[""] * (len(rows.columns) - 1)])
    return table(heads, "rl" + "r" * rows.sizes + _sides(rows.columns), lines)


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.bold else cell.text
    return f"{text} {cell.small}" if cell.small else text


def _sides(columns: Iterable[Column]) -> str:
    return "".join("r" if column.figure else "l" for column in columns)


def _message(text: str) -> str:
    """Escape a message of koktok, whose quotations between backticks are code."""
    parts = re.split("(`[^`]+`)", " ".join(text.split()))
    return "".join(part if k % 2 else SIGNS.sub(r"\\\g<0>", part) for k, part in enumerate(parts))


def _code(text: str) -> str:
    """Quote text as code, between more backticks than it has in a row.

    Examples
    --------
    >>> _code("hf:a"), _code("a`b")
    ('`hf:a`', '`` a`b ``')
    """
    line = " ".join(text.split())
    runs = re.findall("`+", line)
    fence = "`" * (1 + max(map(len, runs), default=0))
    return f"{fence} {line} {fence}" if runs else f"{fence}{line}{fence}"


def table(heads: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> str:
    r"""Print a table; a letter of `sides` is the side of a column, left or right.

    Examples
    --------
    >>> print(table(["name", "F1"], "lr", [["a|b", "0.5"]]))
    | name | F1 |
    |---|---:|
    | a\|b | 0.5 |
    """

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", BAR).replace("\n", " ") for cell in cells) + " |"

    rule = "|" + "|".join("---:" if side == "r" else "---" for side in sides) + "|"
    return "\n".join([line(heads), rule, *map(line, rows)])
