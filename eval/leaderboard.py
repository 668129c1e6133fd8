"""The leaderboard: rows of several reports on the benchmark, put together as one page.

    python -m eval.leaderboard REPORT.json … [--out docs/leaderboard.md]

A report is what `koktok report TOKENIZER --submit FILE.json` or `python -m eval full corpus:bench-ko` writes. Each must be measured
on the text and gold of the first, byte for byte; of two rows with one name the later counts. Vocabularies stand by size,
fewest tokens first; ★ is on the front of its size: no other has both fewer tokens and a higher headline F1.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from koktok.files import write_file
from koktok.metrics import Value
from koktok.report import Report
from koktok.report.benchmark import BENCHMARK, check_same
from koktok.report.markdown import plain, table
from koktok.report.rows import HEADLINE, equal_tokens, on_front, units_of
from koktok.report.schema import ReportRow

CLASSES: Final = ((20_000, "Up to 20,000 ids"), (40_000, "Up to 40,000 ids"), (80_000, "Up to 80,000 ids"))
COLUMNS: Final = (
    ("fertility", "tokens per eojeol"),
    (HEADLINE, "headline F1"),
    ("boundary_f1", "F1 Kaist"),
    ("boundary_f1@KSL", "F1 KSL"),
    ("boundary_f1_full", "all gaps"),
    ("recall_noun_particle", "josa"),
    ("recall_verb_ending", "eomi"),
    ("recall_copula", "copula"),
    ("round_trip_nfc", "lines back"),
    ("unknown_eojeols", "unknown"),
    ("english_fertility", "English"),
    ("code_tokens_per_byte", "code"),
)
INTERVALS: Final = ("fertility", HEADLINE)


def merged(files: list[Path]) -> Report:
    """One report with the rows of all."""
    reports = [Report.from_json(file.read_text(encoding="utf-8")) for file in files]
    for file, report in zip(files, reports, strict=True):
        check_same(report, reports[0], file.name)
    rows = {row.name: row for report in reports for row in report.rows if row.ran}
    numbered = [row.model_copy(update={"number": k, "differences": {}}) for k, row in enumerate(rows.values(), start=1)]
    return reports[0].model_copy(update={"rows": numbered, "sentences": []})


def page(report: Report) -> str:
    vocabularies = [row for row in report.rows if row.family not in ("analyser", "trivial")]
    beside = [row for row in report.rows if row.family in ("analyser", "trivial")]
    parts = [
        f"# Leaderboard, {BENCHMARK}",
        "What is measured, and how: [the benchmark](benchmark.md). Made by `python -m eval.leaderboard`; a row of your own is "
        "`koktok report NAME=TOKENIZER --submit FILE.json`, sent as a pull request to eval/reports.",
        "Headline: F1 before particles (josa), endings (eomi) and the copula, mean of UD Kaist and UD KSL. F1 Kaist, KSL: all borders between "
        "syllables; all gaps: punctuation and digits too. Lines back: share that decodes to what was encoded (NFC). Unknown: "
        "eojeols with an unknown token. English: tokens per word; code: tokens per byte. "
        f"Brackets: 95 % bootstrap intervals over {units_of(report)}. Compare rows at equal tokens: every cut raises recall.",
    ]
    low = 0
    for high, title in (*CLASSES, (1 << 62, "More")):
        rows = [row for row in vocabularies if low < (row.vocab_size or 0) <= high]
        if rows:
            parts += [f"## {title}", by_figure(rows)]
        low = high
    if beside:
        parts += ["## No vocabularies: analysers and trivial rows", by_figure(beside, starred=False)]
    equal = equal_tokens(report)
    if equal:
        heads = ["tokenizer", "tokens per eojeol", "headline F1", "koktok's rows at as many tokens"]
        cells = ([plain(row.name), f"{figure(row):.3f}", f"{f1.value:.3f}", f"{ours:.3f}"] for row, f1, ours in equal)
        parts += ["## At equal tokens", "koktok's rows joined by straight lines, where they reach."]
        parts += [table(heads, "lrrr", cells)]
    parts += [
        "## Tokens per eojeol, by text",
        by_text(vocabularies),
        "## Signatures",
        "\n".join(f"* {row.name}: `{row.signature}`" for row in report.rows),
    ]
    return "\n\n".join(parts) + "\n"


def by_figure(rows: list[ReportRow], *, starred: bool = True) -> str:
    best = {row.number for row in on_front(rows, HEADLINE)} if starred else set()
    heads = ["tokenizer", "ids", *(title for _, title in COLUMNS)]
    lines = []
    for row in by_tokens(rows):
        size = f"{row.vocab_size:,}" if row.vocab_size else "–"
        cells = [cell(value_of(row, name), interval=name in INTERVALS) for name, _ in COLUMNS]
        lines.append([plain(row.name) + " ★" * (row.number in best), size, *cells])
    return table(heads, "l" + "r" * (len(heads) - 1), lines)


def by_text(rows: list[ReportRow]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.domains))
    lines = (
        [plain(row.name), *(cell(row.domains.get(name, {}).get("fertility")) for name in names)]
        for row in by_tokens(rows)
    )
    return table(["tokenizer", *names], "l" + "r" * len(names), lines)


def by_tokens(rows: list[ReportRow]) -> list[ReportRow]:
    return sorted(rows, key=lambda row: (figure(row), row.name))


def value_of(row: ReportRow, name: str) -> Value | None:
    metric, _, gold = name.partition("@")
    if not gold:
        return row.scores.get(metric)
    return next((scores.get(metric) for key, scores in row.golds.items() if gold.lower() in key), None)


def figure(row: ReportRow) -> float:
    """Tokens per eojeol."""
    return row.scores["fertility"].value


def cell(value: Value | None, *, interval: bool = False) -> str:
    if value is None:
        return "–"
    known = interval and value.low is not None and value.high is not None
    return f"{value.value:.3f}" + (f" [{value.low:.3f}, {value.high:.3f}]" if known else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/leaderboard.md"))
    given = parser.parse_args()
    print(write_file(given.out, page(merged(given.reports)).encode()))


if __name__ == "__main__":
    main()
