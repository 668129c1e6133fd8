"""How often the alignment of gold morphemes to the surface is wrong, by 299 eojeols that were judged by hand.

    python -m eval.alignment [--gold FOLDER] [--draw 75]

FOLDER holds the files of UD Kaist and UD KSL; the recipe gold-ko by default. Eojeols whose morphemes simply join are aligned
by that alone, so those judged are drawn (by hash) from the others, half from each treebank; four that the first reading found
wrong are of one kind, mended since (취미+이+라서 is 취미|라서, with no part of 이 in 미). In `alignment.tsv` each stands as it was
judged: `|` is a border between two syllables, brackets are around a syllable that holds one. `--draw N` prints the N
eojeols of each treebank that the hash takes first, as koktok aligns them, for a judge to correct.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path

from scipy.stats import binomtest

from koktok.gold import GoldSentence, read_gold
from koktok.text.corpora import fetch

JUDGED = Path(__file__).with_name("alignment.tsv")
BANKS = {"Kaist": ("ko_kaist-ud-dev", "ko_kaist-ud-test"), "KSL": ("ko_ksl-ud-dev", "ko_ksl-ud-test")}
Place = tuple[str, int, int]
"""File, sentence, eojeol, counted from 0."""


def eojeols(sentence: GoldSentence) -> Iterator[tuple[int, str, bool]]:
    """Of each scored eojeol of several morphemes: its number, the eojeol with its borders, and whether they simply join."""
    start = 0
    for number, eojeol in enumerate(sentence.text.split(" ")):
        end = start + len(eojeol)
        forms = [m.form for m in sentence.morphemes if start <= m.start and m.end <= end]
        if len(forms) > 1 and not any(a < end and start < b for a, b in sentence.masked):
            cuts, fused = {cut.at for cut in sentence.cuts}, {cut.at for cut in sentence.fused}
            marked = "".join(
                ("|" if at in cuts else "") + (f"({sentence.text[at]})" if at in fused else sentence.text[at])
                for at in range(start, end)
            )
            yield number, marked, "".join(forms) == eojeol
        start = end + 1


def aligned(folder: Path, bank: str) -> tuple[dict[Place, str], int]:
    """The eojeols of a treebank that a judge may be asked about, as koktok aligns them, and how many simply join."""
    asked: dict[Place, str] = {}
    joined = 0
    for name in BANKS[bank]:
        for number, sentence in enumerate(read_gold(folder / f"{name}.conllu").sentences):
            for at, marked, joins in eojeols(sentence):
                if joins:
                    joined += 1
                else:
                    asked[name, number, at] = marked
    return asked, joined


def drawn(asked: dict[Place, str], count: int) -> list[Place]:
    return sorted(asked, key=lambda place: hashlib.sha256(":".join(map(str, place)).encode()).digest())[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, help="a folder; the recipe gold-ko by default")
    parser.add_argument("--draw", type=int, help="print so many eojeols of each treebank instead")
    given = parser.parse_args()
    folder = given.gold or fetch("gold-ko")
    found = {bank: aligned(folder, bank) for bank in BANKS}
    if given.draw:
        for asked, _ in found.values():
            for place in drawn(asked, given.draw):
                print(*place, asked[place], sep="\t")
        return
    judged: dict[Place, str] = {}
    for line in JUDGED.read_text(encoding="utf-8").splitlines():
        name, sentence, eojeol, marked = line.split("\t")[:4]
        judged[name, int(sentence), int(eojeol)] = marked
    print(
        "| treebank | eojeols of several morphemes | simply joined | judged | borders wrong | borders or syllables wrong |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    found["both"] = ({**found["Kaist"][0], **found["KSL"][0]}, found["Kaist"][1] + found["KSL"][1])
    for bank, (asked, joined) in found.items():
        mine = {place: marked for place, marked in judged.items() if place in asked}
        cuts = sum(_borders(asked[place]) != _borders(marked) for place, marked in mine.items())
        either = sum(asked[place] != marked for place, marked in mine.items())
        total = joined + len(asked)
        cells = (
            bank,
            f"{total:,}",
            f"{joined / total:.1%}",
            len(mine),
            _rate(cuts, len(mine)),
            _rate(either, len(mine)),
        )
        print(f"| {' | '.join(map(str, cells))} |")
    for place, marked in judged.items():
        if marked != found["both"][0][place]:
            print(
                f"\n{place[0]}, sentence {place[1]}, eojeol {place[2]}: judged {marked}, aligned {found['both'][0][place]}"
            )


def _borders(marked: str) -> str:
    return marked.replace("(", "").replace(")", "")


def _rate(wrong: int, of: int) -> str:
    """Count, share and the exact 95 % interval (Clopper and Pearson)."""
    interval = binomtest(wrong, of).proportion_ci()
    return f"{wrong} ({wrong / of:.1%}, 95 % {interval.low:.1%} to {interval.high:.1%})"


if __name__ == "__main__":
    main()
