"""The leaderboard: rows of several reports on the benchmark, put together as one page.

    python -m eval.leaderboard REPORT.json … [--speed FILE.speed.json …] [--out docs/leaderboard.md]

A report is what `koktok report TOKENIZER --submit FILE.json` or `python -m eval full corpus:bench-ko` writes. Each must be measured
on the text and gold of the first, byte for byte; of two rows with one name the later counts. English and code are left out of
rows that were measured on others than the first's. Vocabularies stand by size,
fewest tokens first; ★ is on the front of its size: no other has both fewer tokens and a higher headline F1. Speed is what
`python -m eval full … --speed` writes, of one machine.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval.machine import report_text
from eval.speed import SpeedReport
from koktok.files import write_file
from koktok.metrics import Scores, Value, metrics
from koktok.metrics.robustness import PERTURBATIONS
from koktok.report import Report
from koktok.report.benchmark import BENCHMARK, check_same
from koktok.report.markdown import plain, table
from koktok.report.rows import HEADLINE, by_kind, equal_tokens, pareto_front, units_of

CLASSES: Final = ((20_000, "Up to 20,000 ids"), (40_000, "Up to 40,000 ids"), (80_000, "Up to 80,000 ids"))
COLUMNS: Final = (
    ("fertility", "tokens per eojeol"),
    (HEADLINE, "headline F1"),
    ("boundary_f1", "F1 Kaist"),
    ("boundary_f1@KSL", "F1 KSL"),
    ("boundary_f1_gaps", "all gaps"),
    ("recall_noun_particle", "josa"),
    ("recall_verb_ending", "eomi"),
    ("recall_copula", "copula"),
    ("span_borders@klue-ner", "entities"),
    ("span_borders@korquad", "answers"),
    ("stem_whole", "stems"),
    ("line_start_alike", "line start"),
    ("borders", "borders"),
    ("split_characters", "inside characters"),
    ("fertility_change_nfd", "NFD"),
    ("round_trip_nfc", "lines back"),
    ("unknown_eojeols", "unknown"),
    ("english_fertility", "English"),
    ("code_tokens_per_byte", "code"),
    ("code_tokens_per_byte_words", "code, one space"),
)
INTERVALS: Final = ("fertility", HEADLINE)
ROBUST: Final = {
    "stability": "F1 of the cuts before and after the change, between syllables that are still neighbours (with spaces between all, none are).",
    "fertility_change": "Additional tokens per eojeol. Longer lines need more tokens, so compare tokenizers, not columns.",
    "fallback_change": "Additional byte tokens per eojeol; none in vocabularies with unknown tokens, or with an alphabet of bytes.",
}


def merged(files: list[Path]) -> Report:
    """One report with the rows of all."""
    reports = [Report.from_json(report_text(file)) for file in files]
    for file, report in zip(files, reports, strict=True):
        check_same(report, reports[0], file.name)
    rows = {
        row.name: row if report.beside == reports[0].beside else without(row)
        for report in reports
        for row in report.rows
        if row.ran
    }
    numbered = [row.model_copy(update={"number": k, "differences": {}}) for k, row in enumerate(rows.values(), start=1)]
    return reports[0].model_copy(update={"rows": numbered, "sentences": []})


def by_front(rows: Sequence[Scores]) -> str:
    """The rows on the front of their size, in six columns."""
    cells, low = [], 0
    for high, _ in (*CLASSES, (1 << 62, "")):
        here = [row for row in rows if low < (row.vocab_size or 0) <= high]
        low = high
        for row in by_tokens(pareto_front(here, HEADLINE)):
            figures = [
                cell(value_of(row, name)) for name in ("fertility", HEADLINE, "boundary_f1", "span_borders@klue-ner")
            ]
            cells.append([plain(row.name), f"{row.vocab_size:,}", *figures])
    return table(["tokenizer", "ids", "tokens per eojeol", "headline F1", "F1 Kaist", "entities"], "lrrrrr", cells)


def without(row: Scores) -> Scores:
    """The row without its figures of English and code."""
    kept = {name: value for name, value in row.values.items() if not name.startswith(("english_", "code_"))}
    return row.model_copy(update={"scores": kept})


def page(report: Report, timed: Sequence[SpeedReport] = ()) -> str:
    speeds = {row.name: row.scores for one in timed for row in one.rows}
    vocabularies = [row for row in report.rows if row.family not in ("analyser", "trivial")]
    beside = [row for row in report.rows if row.family in ("analyser", "trivial")]
    draw = re.search(r"draw \d+", report.title)
    trained = (
        f"Rows that the benchmark trains (SentencePiece, HF, Kiwi, koktok) are of {draw[0] if draw else 'draw 0'} of the training text; "
        "[more figures](more-figures.md#draws-of-the-training-text) has three draws. "
    )
    parts = [
        f"# Leaderboard, {BENCHMARK}",
        "Pareto-optimal rows for each size: no other has both fewer tokens and a higher headline F1 (before particles, endings and "
        "the copula). "
        "[All columns](#what-the-columns-say) are listed by size below; [the benchmark](benchmark.md) explains the measurements. "
        + trained * any(row.spec.endswith("trained here") for row in vocabularies)
        + "A row of your own is `koktok report NAME=TOKENIZER --submit FILE.json`, sent as a pull request to eval/reports.",
        by_front(vocabularies),
    ]
    low = 0
    for high, title in (*CLASSES, (1 << 62, "Over 80,000 ids")):
        rows = [row for row in vocabularies if low < (row.vocab_size or 0) <= high]
        if rows:
            parts += [f"## {title}", by_figure(rows, speeds)]
        low = high
    if beside:
        parts += ["## Without a vocabulary: analysers and trivial rows", by_figure(beside, speeds, starred=False)]
    equal = equal_tokens(report)
    if equal:
        heads = ["tokenizer", "tokens per eojeol", "headline F1", "koktok's rows at as many tokens"]
        cells = ([plain(row.name), f"{figure(row):.3f}", f"{f1.value:.3f}", f"{ours:.3f}"] for row, f1, ours in equal)
        parts += [
            "## At equal tokens",
            "koktok's rows, interpolated linearly within their range; rows whose pieces cross spaces are compared with such rows only.",
        ]
        parts += [table(heads, "lrrr", cells)]
    parts += [
        "## F1 by gold",
        "F1 at all boundaries between syllables. Silver: annotated by a program, or by unknown annotators.",
        by_gold(report),
        "Below: the share of the boundaries of each kind that are cut (a cut inside a morpheme has no kind, so there is recall and no F1). "
        "N: noun; J: particle; V: stem; E: ending; XSV, XSN: suffix of a verb, of a noun; VCP: the copula 이; an asterisk: anything.",
    ]
    for gold, rows in by_kind(report):
        if gold.standing != "human":
            continue
        heads = ["tokenizer", *(f"{plain(kind)} ({n:,})" for kind, n in gold.kinds.items())]
        cells = (
            [plain(row.name), *(cell(row.values.get(f"recall:{kind}@{gold.name}")) for kind in gold.kinds)]
            for row in by_tokens(rows)
        )
        parts += [
            f"## Recall by kind of boundary, {gold.name} ({gold.standing})",
            table(heads, "l" + "r" * len(gold.kinds), cells),
        ]
    if robust := robustness(vocabularies):
        parts += ["## The same lines, slightly changed", *robust]
    parts += [
        "## What the columns say",
        "Made by `python -m eval.leaderboard`. Headline: F1 before particles (josa), endings (eomi) and the copula, mean of UD Kaist "
        "and UD KSL. F1 Kaist, KSL: all boundaries between syllables; all gaps: beside punctuation, digits and letters too. Entities, answers: "
        "the share that begins and ends at token boundaries. Stems: first nouns and verbs of a word that are exactly one token. Line start: "
        "words that are cut alike at the start of a line and inside it. Borders: the share of spaces at which the ids of the text before "
        "the space are not a prefix of those of the whole. Inside characters: token boundaries inside a character, per "
        "character. NFD: additional tokens per eojeol for decomposed text. Lines back: share of the lines that are restored by decoding (NFC). "
        "Unknown: eojeols with an unknown token. English: tokens per word; code: tokens per byte, with its indentation and with one space"
        " between words. "
        f"{beside_of(report)} {speed_of(timed)}"
        f"Brackets: 95 % intervals, Student's t over {units_of(report)[0]}; they cover texts, with one "
        "training each. Compare rows at equal tokens, because every cut raises recall.",
        "## Tokens per eojeol, by text",
        by_text(vocabularies),
        "## Signatures",
        "\n".join(f"* {row.name}: `{row.signature}`" for row in report.rows),
    ]
    return "\n\n".join(parts) + "\n"


def by_figure(rows: list[Scores], speeds: Mapping[str, Mapping[str, float]], *, starred: bool = True) -> str:
    best = {row.number for row in pareto_front(rows, HEADLINE)} if starred else set()
    heads = ["tokenizer", "ids", *(title for _, title in COLUMNS), *(["MB/s"] if speeds else [])]
    lines = []
    for row in by_tokens(rows):
        size = f"{row.vocab_size:,}" if row.vocab_size else "–"
        cells = [cell(value_of(row, name), interval=name in INTERVALS) for name, _ in COLUMNS]
        if speeds:
            speed = speeds.get(row.name, {}).get("encode_mb_s")
            cells.append(f"{speed:.2f}" if speed else "–")
        lines.append([plain(row.name) + " ★" * (row.number in best), size, *cells])
    return table(heads, "l" + "r" * (len(heads) - 1), lines)


def by_text(rows: list[Scores]) -> str:
    parts = (key.partition("@") for row in rows for key in row.values)
    names = list(dict.fromkeys(name for metric, _, name in parts if metric == "fertility" and name))
    lines = (
        [plain(row.name), *(cell(row.values.get(f"fertility@{name}")) for name in names)] for row in by_tokens(rows)
    )
    return table(["tokenizer", *names], "l" + "r" * len(names), lines)


def robustness(rows: list[Scores]) -> list[str]:
    """A table of each measure that has a figure: rows by tokens, a column for each change of the lines."""
    parts = []
    for measure, about in ROBUST.items():
        names = [name for name in PERTURBATIONS if any(f"{measure}_{name}" in row.values for row in rows)]
        heads = ["tokenizer", *(metrics()[f"{measure}_{name}"].title.partition(": ")[2] for name in names)]
        cells = [
            [plain(row.name), *(cell(row.values.get(f"{measure}_{name}")) for name in names)] for row in by_tokens(rows)
        ]
        if names:
            parts += [about, table(heads, "l" + "r" * len(names), cells)]
    return parts


def beside_of(report: Report) -> str:
    names = ", ".join(text.name for text in report.beside)
    return f"English and code: {names}." if names else "English and code: this Python's standard library."


def speed_of(timed: Sequence[SpeedReport]) -> str:
    machines = "; ".join(dict.fromkeys(one.machine for one in timed))
    return (
        "MB/s: encoding in batches, one process, by the report's adapters, which also compute offsets; it compares rows, and is not the "
        f"speed of `koktok encode` ({machines}). "
        if timed
        else ""
    )


def by_gold(report: Report) -> str:
    heads = ["tokenizer", *(f"{gold.name} ({gold.standing})" for gold in report.golds)]
    lines = (
        [plain(row.name), *(cell(row.values.get(f"boundary_f1@{gold.name}")) for gold in report.golds)]
        for row in by_tokens(report.rows)
    )
    return table(heads, "l" + "r" * len(report.golds), lines)


def by_tokens(rows: list[Scores]) -> list[Scores]:
    return sorted(rows, key=lambda row: (figure(row), row.name))


def value_of(row: Scores, name: str) -> Value | None:
    metric, _, gold = name.partition("@")
    if not gold:
        return row.values.get(metric)
    return next(
        (
            value
            for key, value in row.values.items()
            if re.fullmatch(rf"{metric}@.*{gold.lower()}.*", key, re.IGNORECASE)
        ),
        None,
    )


def figure(row: Scores) -> float:
    """Tokens per eojeol."""
    return row.values["fertility"].value


def cell(value: Value | None, *, interval: bool = False) -> str:
    if value is None:
        return "–"
    known = interval and value.low is not None and value.high is not None
    return f"{value.value:.3f}" + (f" [{value.low:.3f}, {value.high:.3f}]" if known else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+")
    parser.add_argument("--speed", type=Path, nargs="*", default=[], help="what `python -m eval full … --speed` wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/leaderboard.md"))
    given = parser.parse_args()
    timed = [SpeedReport.model_validate_json(file.read_text(encoding="utf-8")) for file in given.speed]
    print(write_file(given.out, page(merged(given.reports), timed).encode()))


if __name__ == "__main__":
    main()
