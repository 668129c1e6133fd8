"""`to_markdown`: the tables of a report for a README or a pull request, figures beside intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from koktok.metrics import Definition, Difference, Value
from koktok.report.rows import (
    by_kind,
    columns_of,
    compared,
    equal_tokens,
    pareto_front,
    shown,
    shown_interval,
    shown_p,
    units_of,
)
from koktok.report.schema import Report

_SIGNS = re.compile(r"[\\`*\[\]<>~&]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown reads inside a line; an underscore inside a word it does not."""

ARROWS = {"lower": " ↓", "higher": " ↑", "one": " →1", "none": ""}


def to_markdown(report: Report) -> str:
    r"""The report as Markdown; rows that did not run say why.

    Examples
    --------
    >>> fertility = Definition(name="fertility", title="tokens/eojeol", title_ko="", unit="", better="lower", definition="")
    >>> from koktok.metrics import Value
    >>> from koktok.report.schema import ReportRow
    >>> rows = [
    ...     ReportRow(number=1, name="a|b", spec="hf:a", family="hf", vocab_size=8000, scores={"fertility": Value(2)}),
    ...     ReportRow(number=2, name="c", spec="hf:c", family="hf", why="no such file"),
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
    parts = [f"# {plain(report.title)}"]
    parts += [f"> {remark}" for remark in report.remarks]
    parts += [_code(report.command)] if report.command else []
    parts.append(summary(report))
    if report.golds:
        heads = ["#", "tokenizer", *(f"{plain(gold.name)} ({gold.standing})" for gold in report.golds)]
        parts += [
            "## Morpheme boundaries: F1 (precision, recall)",
            table(heads, "rl" + "r" * len(report.golds), _by_gold(report)),
        ]
        parts.extend(_by_kind(report))
    if report.spans:
        heads = ["#", "tokenizer", *(f"{plain(one.name)} ({one.spans:,})" for one in report.spans)]
        parts += [
            "## Spans that tokens can express",
            "Marked spans (entities, answers) of which both ends are borders of tokens; in brackets 95 % intervals.",
            table(heads, "rl" + "r" * len(report.spans), _by_spans(report)),
        ]
    equal = equal_tokens(report)
    if equal:
        parts += [
            "## F1 at equal tokens",
            "Boundary F1 before particles, endings and the copula (mean of the golds) of each row, and of koktok's rows on the "
            "straight line between two of them at as many tokens per eojeol.",
            table(
                ["#", "tokenizer", "tokens per eojeol", "F1", "koktok, as many tokens"],
                "rlrrr",
                (
                    [
                        str(row.number),
                        plain(row.name),
                        f"{row.scores['fertility'].value:.3f}",
                        f"{f1.value:.3f}",
                        f"{ours:.3f}",
                    ]
                    for row, f1, ours in equal
                ),
            ),
        ]
    if len(report.texts) > 1:
        heads = ["#", "tokenizer", *(plain(text.name) for text in report.texts)]
        parts += ["## Tokens per eojeol, by text", table(heads, "rl" + "r" * len(report.texts), _by_text(report))]
    names = compared(report)
    if names:
        known = {measure.name: measure.title for measure in report.measures}
        heads = ["#", "tokenizer", *(known.get(name, name) for name in names)]
        rows = (
            [str(row.number), plain(row.name), *(_signed(row.differences.get(name)) for name in names)]
            for row in report.rows
            if row.differences
        )
        tests = sum(one.p is not None for row in report.rows for one in row.differences.values())
        parts += [
            f"## Paired differences from {plain(report.reference)}",
            table(heads, "rl" + "r" * len(names), rows),
            f"In brackets: 95 % intervals of the paired difference, Student's t over {plain(units_of(report))}. p: the same t, "
            f"adjusted for the {tests} tests of this table (Holm).",
        ]
    parts += ["## Data", table(["text", "lines", "eojeols", "bytes", "SHA-256"], "lrrrl", _texts(report))]
    if report.golds:
        parts.append(
            table(
                [
                    "gold",
                    "standing",
                    "sentences",
                    "words",
                    "skipped",
                    "coverage",
                    "syllables F1",
                    "reachable recall",
                    "resampled",
                    "SHA-256",
                ],
                "llrrrrrrll",
                _golds(report),
            )
        )
    if report.spans:
        rows_of_spans = (
            [plain(s.name), f"{s.texts:,}", f"{s.spans:,}", f"{s.skipped:,}", s.resampled, f"`{s.digest}`"]
            for s in report.spans
        )
        parts.append(table(["spans", "texts", "spans", "skipped", "resampled", "SHA-256"], "lrrrll", rows_of_spans))
    parts += ["## Notes and signatures", "\n".join(_signatures(report)) or "none"]
    return "\n\n".join(parts) + "\n"


def summary(report: Report) -> str:
    """The first table alone, with what its marks mean."""
    front = {row.number for row in pareto_front(report.rows)}
    columns = columns_of(report)
    heads = ["#", "tokenizer", "ids", *(measure.title + ARROWS[measure.better] for measure in columns)]
    first = table(heads, "rlr" + "r" * len(columns), _rows(report, columns, front))
    told = (
        "★ on the Pareto front of tokens per eojeol and boundary F1 (analysers and trivial rows apart). "
        f"In brackets: 95 % intervals, Student's t over {plain(units_of(report))}."
    )
    return f"{first}\n\n{told}" if front else first


def _by_kind(report: Report) -> Iterable[str]:
    """A table a gold corpus: recall of every kind of border."""
    for gold, rows in by_kind(report):
        heads = ["#", "tokenizer", *(f"{kind} ({n:,})" for kind, n in gold.kinds.items())]
        cells = ([row.scores.get(f"recall:{kind}@{gold.name}") for kind in gold.kinds] for row in rows)
        body = (
            [str(row.number), plain(row.name), *(f"{cell.value:.3f}" if cell else "–" for cell in mine)]
            for row, mine in zip(rows, cells, strict=True)
        )
        yield f"### Recall by kind of border, {plain(gold.name)}"
        yield table(heads, "rl" + "r" * len(gold.kinds), body)


def _rows(report: Report, columns: Sequence[Definition], front: set[int]) -> Iterable[list[str]]:
    for row in report.rows:
        size = f"{row.vocab_size:,}" if row.vocab_size else "–"
        name = plain(row.name) + (" ★" if row.number in front else "")
        if not row.ran:
            yield [str(row.number), name, size, f"not run: {_message(row.why)}", *[""] * (len(columns) - 1)]
            continue
        cells = (_figure(row.scores.get(measure.name), measure) for measure in columns)
        yield [str(row.number), name, size, *cells]


def _by_gold(report: Report) -> Iterable[list[str]]:
    for row in report.rows:
        if row.ran:
            cells = []
            for gold in report.golds:
                three = [row.scores.get(f"boundary_{part}@{gold.name}") for part in ("f1", "precision", "recall")]
                text = [f"{cell.value:.3f}" if cell else "–" for cell in three]
                cells.append(f"{text[0]} ({text[1]}, {text[2]})" if three[0] else "–")
            yield [str(row.number), plain(row.name), *cells]


def _by_spans(report: Report) -> Iterable[list[str]]:
    measure = next(measure for measure in report.measures if measure.name == "span_borders")
    for row in report.rows:
        if row.ran:
            cells = (_figure(row.scores.get(f"span_borders@{one.name}"), measure) for one in report.spans)
            yield [str(row.number), plain(row.name), *(cell or "–" for cell in cells)]


def _figure(value: Value | None, measure: Definition) -> str:
    """A figure and its interval."""
    return " ".join(filter(None, (shown(value, measure), shown_interval(value, measure))))


def _by_text(report: Report) -> Iterable[list[str]]:
    for row in report.rows:
        if row.ran:
            cells = [row.scores.get(f"fertility@{text.name}") for text in report.texts]
            yield [str(row.number), plain(row.name), *(f"{cell.value:.3f}" if cell else "–" for cell in cells)]


def _signed(cell: Difference | None) -> str:
    if cell is None:
        return "–"
    known = cell.low is not None and cell.high is not None
    interval = f"[{cell.low:+.4f}, {cell.high:+.4f}]" if known else ""
    return " ".join(filter(None, [f"{cell.value:+.4f}", interval, shown_p(cell)]))


def _texts(report: Report) -> Iterable[list[str]]:
    texts = (*report.texts, *report.beside)
    return ([plain(t.name), f"{t.lines:,}", f"{t.eojeols:,}", f"{t.bytes:,}", f"`{t.digest}`"] for t in texts)


def _golds(report: Report) -> Iterable[list[str]]:
    for g in report.golds:
        figures = [f"{g.sentences:,}", f"{g.words:,}", f"{g.skipped:,}"]
        shares = [f"{g.coverage:.4f}", f"{g.syllables_f1:.3f}", f"{g.reachable_recall:.3f}"]
        yield [plain(g.name), g.standing, *figures, *shares, g.resampled or "–", f"`{g.digest}`"]


def _signatures(report: Report) -> Iterable[str]:
    for row in report.rows:
        if row.ran:
            notes = "".join(f"; {plain(note)}" for note in row.notes)
            yield f"{row.number}. {plain(row.name)} ({_code(row.spec)}{notes}): {_code(row.signature)}"


def plain(text: str) -> str:
    r"""Text of a user, on one line, that Markdown shows as it is: no link, no HTML, no emphasis.

    Examples
    --------
    >>> print(plain("a_b <img> [x](y) *z*\n# `"))
    a_b \<img\> \[x\](y) \*z\* # \`
    """
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _message(text: str) -> str:
    r"""An error of ours, which quotes between backticks: what it quotes is code, the rest as `plain`.

    Examples
    --------
    >>> print(_message("`a<b` is no <b>"))
    `a<b` is no \<b\>
    """
    parts = re.split("(`[^`]+`)", " ".join(text.split()))
    return "".join(part if k % 2 else _SIGNS.sub(r"\\\g<0>", part) for k, part in enumerate(parts))


def _code(text: str) -> str:
    """Text of a user as code: between more backticks than it has in a row.

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
    r"""A table; a letter of `sides` is the side of a column, left or right.

    Examples
    --------
    >>> print(table(["name", "F1"], "lr", [["a|b", "0.5"]]))
    | name | F1 |
    |---|---:|
    | a\|b | 0.5 |
    """

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "|" + "|".join("---:" if side == "r" else "---" for side in sides) + "|"
    return "\n".join([line(heads), rule, *map(line, rows)])
