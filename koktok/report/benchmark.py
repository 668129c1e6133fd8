"""The benchmark `ko-1` (docs/benchmark.md): its text, gold and numbers of samples, which make rows comparable."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from koktok.corpora.fetch import fetch, texts
from koktok.errors import InputError
from koktok.metrics import Text
from koktok.metrics.gold import read_gold
from koktok.metrics.gold.spans import read_spans
from koktok.report.measure import ReportMaterial
from koktok.report.schema import Report
from koktok.text.normalize import normalized

BENCHMARK: Final = "ko-1"
CAP: Final = 11_000
"""Eojeols measured of each source, a tenth of the 110,000 that are trained on, so that no domain drowns the others."""
ENGLISH: Final = 2000
"""Words of English measured of each source of open-en."""
SAMPLE: Final = 500
"""Lines for the measures that encode again."""
LEFT_OUT: Final = ("bible-krv-1961", "news-north-korean")
"""Sources with the same content as bible-modern and news-parallel."""
GOLDS: Final = (
    "ko_kaist-ud-dev.conllu",
    "ko_ksl-ud-dev.conllu",
    "ko_gsd-ud-dev.conllu",
    "klue-dp-v1.1_dev.tsv",
    "jhe-koen-dev.ko.pos",
)
"""The human ones first: they make the headline."""

SPANS: Final = ("klue-ner-v1.1_dev.tsv", "KorQuAD_v1.0_dev.json")
"""Files of gold-ko with marked entities and answers; `eval.texts` keeps their texts out of what rows are trained on."""


def material() -> ReportMaterial:
    """The benchmark's held-out text and gold, fetched where they are not there yet."""
    held = {file.name.split(".")[0]: head(file, CAP) for file in texts("bench-ko/held-out")}
    gold = fetch("gold-ko")
    return ReportMaterial(
        text=Text.of({name: lines for name, lines in sorted(held.items()) if lines and name not in LEFT_OUT}),
        golds=[read_gold(gold / name) for name in GOLDS],
        spans=[read_spans(gold / name) for name in SPANS],
        english=english_of(texts("open-en/held-out")),
        code=code_of(fetch("code").glob("*.py")),
    )


def english_of(files: Iterable[Path]) -> Text | None:
    """English beside the Korean, a domain a file; None where there is none."""
    texts = {file.name.split(".")[0]: head(file, ENGLISH) for file in sorted(files)}
    nonempty = {name: lines for name, lines in texts.items() if lines}
    return Text.of(nonempty) if nonempty else None


def code_of(files: Iterable[Path]) -> Text | None:
    """Source code with its indentation, no line empty; None where there is none."""
    lines = [line for file in sorted(files) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return Text.of({"code": lines}) if lines else None


def head(file: Path, eojeols: int) -> list[str]:
    """The first lines of a text, NFC and none of them empty, up to so many eojeols."""
    lines, seen = [], 0
    with file.open(encoding="utf-8") as text:
        for raw in text:
            line = normalized("NFC", raw.rstrip("\n"))
            seen += len(line.split())
            if seen > eojeols:
                break
            if line.strip():
                lines.append(line)
    return lines


def check_same(report: Report, other: Report, name: str) -> None:
    """Refuse a report that was measured on something else than another."""
    for kind in ("texts", "golds"):
        theirs = {one.name: one.digest for one in getattr(other, kind)}
        ours = {one.name: one.digest for one in getattr(report, kind)}
        if strange := sorted(ours.items() ^ theirs.items()):
            raise InputError(
                f"`{name}` is not a submission to {BENCHMARK}: its {kind[:-1]} `{strange[0][0]}` differs or is missing",
                hint="koktok report TOKENIZER --submit FILE.json",
            )
