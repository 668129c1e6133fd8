"""The tables of pages of which `python -m eval full` keeps a report; `python docs/tables.py` writes them into the Korean pages.

    python -m eval.figures eval/reports/2026-11-2?-bench-ko{,-koktok,-lm}.json.xz README.md docs/figures.md

They go between the lines `<!-- eval.figures.NAME -->` and `<!-- end of eval.figures.NAME -->`; of two rows with one name the later counts.
Bits of small transformers are those of the finished cells in reports/study-cpu.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval.contrasts import with_interval
from eval.machine import report_text, write_between
from eval.study.cells import KEPT, LAST
from eval.study.compared import REFERENCE, Figures, shown
from eval.study.sizes import SIZES
from eval.study.tables import signed
from koktok.metrics import Scores
from koktok.report import Report
from koktok.report.frontier import cells_of_sizes
from koktok.report.markdown import table

LLAMA: Final = "HF byte-level BPE, Llama 3's pattern"

SHOWN: Final = {
    "SentencePiece Unigram, spaces only": "SentencePiece Unigram, split on spaces only",
    "SentencePiece Unigram, defaults": "SentencePiece Unigram, default settings",
    "SentencePiece Unigram, across spaces": "SentencePiece Unigram, pieces across spaces (`split_by_whitespace=false`)",
    "SentencePiece BPE, spaces only": "SentencePiece BPE, split on spaces only",
    "HF Unigram": "Hugging Face Unigram",
    "HF byte-level BPE": "Hugging Face byte-level BPE",
    LLAMA: "Hugging Face byte-level BPE, Llama 3's pattern",
    "Kiwi SwTokenizer": "Kiwi SwTokenizer (decodes {round_trip} of the lines exactly)",
    "koktok's cuts, SentencePiece Unigram": "koktok's cuts under SentencePiece's Unigram trainer",
    "syllables": "one token per syllable",
    "koktok lm": "**koktok** `lm`, the default",
    "koktok encoder": "**koktok** `encoder`",
    "koktok aligned": "**koktok** `aligned`",
    "koktok short": "**koktok** `short`",
    "koktok lm, digits free": "**koktok** `lm --digits free`",
    "koktok lm, superwords": "**koktok** `lm --superwords 0.3`",
    "koktok bpe-bytes lm": "**koktok** `--model bpe-bytes`",
    "koktok bpe-bytes encoder": "**koktok** `--model bpe-bytes --preset encoder`",
    "koktok bpe-bytes aligned": "**koktok** `--model bpe-bytes --preset aligned`",
    "koktok bpe-bytes lm, superbpe": "**koktok** `--model bpe-bytes --pattern superbpe`",
    "koktok bpe-bytes, superwords": "**koktok** `--model bpe-bytes --pattern superbpe --superwords 0.3`",
}
"""Rows of the reports as the page names them; others have their own names."""

ROWS: Final[Mapping[str, Sequence[str]]] = {
    "rows": (
        *(
            "SentencePiece Unigram, spaces only",
            "SentencePiece Unigram, defaults",
            "SentencePiece Unigram, across spaces",
        ),
        *("SentencePiece BPE, spaces only", "HF Unigram", "HF byte-level BPE", LLAMA, "Kiwi bpe_trainer"),
        *("Kiwi bpe_trainer j e vcp xsv", "Kiwi SwTokenizer", "koktok's cuts, SentencePiece Unigram", "syllables"),
        *("koktok lm", "koktok encoder", "koktok aligned", "koktok short", "koktok lm, digits free"),
        *("koktok lm, superwords", "koktok bpe-bytes lm"),
        *("koktok bpe-bytes encoder", "koktok bpe-bytes aligned", "koktok bpe-bytes lm, superbpe"),
        "koktok bpe-bytes, superwords",
    ),
    "spans": (
        *("SentencePiece Unigram, defaults", "SentencePiece Unigram, spaces only", "HF byte-level BPE", "koktok lm"),
        *("koktok encoder", "koktok lm, digits free", "koktok aligned", "koktok short", "koktok bpe-bytes lm"),
        "koktok bpe-bytes encoder",
    ),
    "purposes": (
        *("koktok lm", "koktok encoder", "koktok aligned", "koktok bpe-bytes lm", "SentencePiece Unigram, defaults"),
        *("SentencePiece Unigram, spaces only", LLAMA),
    ),
}
PURPOSES: Final = {
    "koktok lm": "koktok `lm`, the default: for language models",
    "koktok encoder": "koktok `encoder`: for tagging and extraction",
    "koktok aligned": "koktok `aligned`: nearly all boundaries",
    "koktok bpe-bytes lm": "koktok `lm`, byte-level BPE with Llama 3's pattern",
    LLAMA: "Hugging Face byte-level BPE with Llama 3's pattern",
}
"""Rows as README names them."""

DECODERS: Final = {
    "SentencePiece Unigram, defaults": REFERENCE,
    "koktok lm": "lm",
    "koktok encoder": "encoder",
    "koktok aligned": "aligned",
    "koktok bpe-bytes lm": "bpe",
    "SentencePiece Unigram, spaces only": "sp-spaces",
    LLAMA: "hf",
}
"""Rows of the study (eval/study/rows.py) whose bits stand beside them."""

SIZED: Final = {
    **dict.fromkeys(
        f"sp-aligned-rate sp-12k-rate sp-bpe sp-encoder-rate sp-more sp-lm sp-before {REFERENCE} sp-short".split(),
        "SentencePiece Unigram",
    ),
    **dict.fromkeys(("lm-8k", "lm-12k-rate", "lm", "lm-64k", "lm-128k"), "koktok `lm`"),
}
"""Rows of the study that differ by the number of ids."""

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "rows": {
        "tokens per eojeol": "fertility",
        "against the first row": "",
        "F1 Kaist": "boundary_f1@ko_kaist-ud-dev",
        "all gaps": "boundary_f1_gaps@ko_kaist-ud-dev",
        "F1 KSL": "boundary_f1@ko_ksl-ud-dev",
        "josa": "recall_noun_particle@ko_kaist-ud-dev",
        "eomi": "recall_verb_ending@ko_kaist-ud-dev",
    },
    "spans": {
        "entities": "span_borders@klue-ner-v1.1_dev",
        "answers": "span_borders@KorQuAD_v1.0_dev",
        "English": "english_fertility",
        "Python": "code_tokens_per_byte",
        "Python, one space": "code_tokens_per_byte_words",
    },
    "purposes": {
        "tokens": "fertility",
        "F1": "boundary_f1@ko_kaist-ud-dev",
        "josa": "recall_noun_particle@ko_kaist-ud-dev",
        "eomi": "recall_verb_ending@ko_kaist-ud-dev",
        "entities": "span_borders@klue-ner-v1.1_dev",
    },
}
"""The metric of each column; "" divides the tokens by those of the first row."""


def bits_of(found: Figures, row: str) -> tuple[str, str]:
    """By how many percent bits are over those of the reference, after the same text and the same compute; * one run, † beyond a curve."""
    if row == REFERENCE:
        return "0", "0"
    if row not in found.rows or not (seeds := found.both(row, REFERENCE)):
        return "not run", ""
    equal, below = found.at_equal_flops(row, REFERENCE)
    one = "*" * (len(seeds) == 1)
    return (
        with_interval(shown(found.ratio(row, REFERENCE))) + one,
        with_interval(shown(equal)) + "†" * below + one,
    )


def bits_of_decoders(found: Figures) -> dict[str, tuple[str, str]]:
    """The bits of a small transformer by row of README's table."""
    return {name: bits_of(found, row) for name, row in DECODERS.items()}


def table_of_ids(found: Figures) -> str:
    """What the number of ids does to a small transformer: the same trainers at several sizes."""
    asked, cells = found.asked["rows"], []
    for name in (name for name in SIZED if name in found.rows and found.both(name, REFERENCE)):
        ids, row = asked[name]["vocabulary"] - 1, found.rows[name]
        embeddings = ids * found.cells.size.width
        flops = row.flops(LAST) / found.rows[REFERENCE].flops(LAST) - 1
        right = (row.of([*row.cells], LAST, "pairs") > 0).mean()
        cells.append(
            [
                SIZED[name], f"{ids:,}", f"{asked[name]['tokens']:.3f}", f"{embeddings / (embeddings + found.cells.size.body):.0%}",
                "0" if name == REFERENCE else f"{signed(flops, 0)}%", *bits_of(found, name), f"{right:.3f}".removeprefix("0"),
            ]
        )  # fmt: skip
    heads = ["", "ids", "tokens", "embeddings", "compute", "bits, %", "at equal compute, %", "minimal pairs"]
    return table(heads, "l" + "r" * 7, cells)


def table_of_models(found: Figures) -> str:
    """What the number of ids would cost larger models, from the tokens of `lm` that stand in the table of ids."""
    asked = (found.asked["rows"][name] for name in SIZED if SIZED[name] == "koktok `lm`")
    columns, cells = cells_of_sizes({row["vocabulary"] - 1: row["tokens"] for row in asked})
    return table(columns, "r" * len(columns), cells)


def tables(reports: Sequence[Report]) -> dict[str, str]:
    """Each table by its name."""
    study = Figures(SIZES["cpu"], KEPT, 3)
    bits = bits_of_decoders(study)
    scores: dict[str, Scores] = {}
    for report in reports:
        scores |= {row.name: row.scores for row in report.rows if row.scores}
    made = {}
    for name, rows in ROWS.items():
        first = scores[rows[0]]["fertility"].value
        cells = []
        for row in rows:
            values = scores[row]
            named = (SHOWN | (PURPOSES if name == "purposes" else {})).get(row, row)
            if "{" in named:
                named = named.format(round_trip=f"{values['round_trip_strict'].value:.2f}".removeprefix("0"))
            figures = [
                values[metric].value if metric else values["fertility"].value / first
                for metric in COLUMNS[name].values()
            ]
            cells.append([named, *(f"{figure:.3f}".removeprefix("0") for figure in figures)])
            if name == "purposes":
                cells[-1] += bits[row]
        more = ["bits, %", "at equal compute, %"] if name == "purposes" else []
        heads = ["" if more else "tokenizer", *COLUMNS[name], *more]
        made[name] = table(heads, "l" * len(heads), cells)
    return made | {"ids": table_of_ids(study), "models": table_of_models(study)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "files", type=Path, nargs="+", help="reports of `python -m eval full corpus:bench-ko`, and pages (.md)"
    )
    given = parser.parse_args().files
    reports = [Report.from_json(report_text(file)) for file in given if file.suffix != ".md"]
    for name, text in tables(reports).items():
        for page in (file for file in given if file.suffix == ".md"):
            if f"<!-- eval.figures.{name} -->" in page.read_text(encoding="utf-8"):
                write_between(page, f"eval.figures.{name}", text)


if __name__ == "__main__":
    main()
