"""What tokens cost, by tokenizer: bytes per token, tokens per character, the premium over English, and the embeddings.

    python -m eval.costs KOREAN ENGLISH NAME=SPEC ... [--report FILE]

KOREAN and ENGLISH are files whose lines say the same: FLORES-200 (AleksandarPetrov/tokenization-fairness, `dev` and `devtest` of kor_Hang
and eng_Latn). Measured are the pairs whose Korean line `corpus:open-ko` holds out, as koktok's ready vocabularies were trained on the others
(on most of the English ones, too, where they have English). The premium is tokens of Korean over tokens of English that says the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from eval.machine import Told
from koktok.corpora.fetch import find, is_held_out
from koktok.metrics import Parallel, Settings, Text
from koktok.report.measure import ReportMaterial, entries_of, measure
from koktok.report.tables import SHAPES, sections_of


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m eval.costs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("korean", type=Path)
    parser.add_argument("english", type=Path)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    recipe = find("open-ko")
    sides = (file.read_text(encoding="utf-8").splitlines() for file in (given.korean, given.english))
    pairs = [pair for pair in zip(*sides, strict=True) if is_held_out(recipe, "".join(pair[0].split()))]
    parallel = Parallel([korean for korean, _ in pairs], [english for _, english in pairs])
    beside = Text.of({"English": parallel.other})
    material = ReportMaterial(text=Text.of({"Korean": parallel.korean}), parallel=parallel, english=beside)
    report = measure(entries_of(given.specs), material, Settings(resamples=0))
    shown = ("bytes_per_token", "tokens_per_char", "fertility", "english_fertility", "parity")
    embeddings = {row.number: cells for row, cells in sections_of(report)["embeddings"].tables[0].rows}
    say = Told(given.report)
    korean, english = report.beside[-2:]
    say(
        f"{len(pairs):,} pairs of lines: {korean.bytes:,} bytes, {korean.characters:,} characters, {korean.eojeols:,} eojeols of Korean; "
        f"{english.eojeols:,} words of English\n"
    )
    heads = ["tokenizer", "ids", "bytes per token", "tokens per character", "per eojeol", "per English word", "premium"]
    heads += [f"embeddings, {shape.title}" for shape in SHAPES]
    say(f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}")
    for row in report.rows:
        if not row.ran:
            say(f"| {row.name} | not run: {row.why} |")
            continue
        cells = [f"{row.values[name].value:.3f}" for name in shown]
        cells += [f"{cell.text} {cell.small}" for cell in embeddings.get(row.number, [])]
        say(f"| {row.name} | {row.vocab_size or 0:,} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
