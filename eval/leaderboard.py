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
from koktok.report.rows import UNREADABLE, equal_tokens, units_of
from koktok.report.schema import ReportRow

CLASSES: Final = ((20_000, "Up to 20,000 ids"), (40_000, "Up to 40,000 ids"), (80_000, "Up to 80,000 ids"))
COLUMNS: Final = (
    ("fertility", "tokens per eojeol"),
    ("boundary_f1_macro", "headline F1"),
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
INTERVALS: Final = ("fertility", "boundary_f1_macro")


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
            parts += [f"## {title}", table(rows)]
        low = high
    if beside:
        parts += ["## No vocabularies: analysers and trivial rows", table(beside, starred=False)]
    equal = equal_tokens(report)
    if equal:
        lines = [
            "| tokenizer | tokens per eojeol | headline F1 | koktok's rows at as many tokens |",
            "|---|---:|---:|---:|",
        ]
        lines += [
            f"| {row.name} | {row.scores['fertility'].value:.3f} | {f1.value:.3f} | {ours:.3f} |"
            for row, f1, ours in equal
        ]
        parts += ["## At equal tokens", "koktok's rows joined by straight lines, where they reach.", "\n".join(lines)]
    parts += [
        "## Tokens per eojeol, by text",
        by_text(vocabularies),
        "## Signatures",
        "\n".join(f"* {row.name}: `{row.signature}`" for row in report.rows),
    ]
    return "\n\n".join(parts) + "\n"


def table(rows: list[ReportRow], *, starred: bool = True) -> str:
    best = front(rows) if starred else set()
    heads = ["tokenizer", "ids", *(title for _, title in COLUMNS)]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for row in sorted(rows, key=lambda row: (figure(row, "fertility"), row.name)):
        size = f"{row.vocab_size:,}" if row.vocab_size else "–"
        cells = [cell(value_of(row, name), interval=name in INTERVALS) for name, _ in COLUMNS]
        lines.append(f"| {' | '.join([row.name + ' ★' * (row.name in best), size, *cells])} |")
    return "\n".join(lines)


def by_text(rows: list[ReportRow]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.domains))
    lines = [f"| tokenizer | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for row in sorted(rows, key=lambda row: (figure(row, "fertility"), row.name)):
        cells = [cell(row.domains.get(name, {}).get("fertility")) for name in names]
        lines.append(f"| {' | '.join([row.name, *cells])} |")
    return "\n".join(lines)


def front(rows: list[ReportRow]) -> set[str]:
    """Names of the rows that no other beats in both; one that cannot spell the text is no rival."""
    points = [
        (figure(row, "fertility"), figure(row, "boundary_f1_macro"), row.name)
        for row in rows
        if figure(row, "unknown_eojeols") <= UNREADABLE
    ]
    return {name for x, y, name in points if not any(a <= x and b >= y and (a, b) != (x, y) for a, b, _ in points)}


def value_of(row: ReportRow, name: str) -> Value | None:
    metric, _, gold = name.partition("@")
    if not gold:
        return row.scores.get(metric)
    return next((scores.get(metric) for key, scores in row.golds.items() if gold.lower() in key), None)


def figure(row: ReportRow, name: str) -> float:
    value = row.scores.get(name)
    return value.value if value else 0.0


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
