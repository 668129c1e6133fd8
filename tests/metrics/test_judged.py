"""How gold morphemes are laid on the surface, against 299 eojeols of UD Kaist and UD KSL that were judged by hand.

In `judged.tsv` `|` is a boundary between two syllables, and brackets are around a syllable that holds one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from koktok.metrics.gold import GoldCorpus, GoldSentence, read_gold

JUDGED = [
    line.split("\t")[:4] for line in Path(__file__).with_name("judged.tsv").read_text(encoding="utf-8").splitlines()
]
GOLD = ROOT.parent / "shared" / "data" / "gold"


def eojeols(sentence: GoldSentence) -> Iterator[tuple[int, str]]:
    """Each scored eojeol of several morphemes: its number, and the eojeol with its boundaries."""
    start = 0
    for number, eojeol in enumerate(sentence.text.split(" ")):
        end = start + len(eojeol)
        inside = [m for m in sentence.morphemes if start <= m.start and m.end <= end]
        if len(inside) > 1 and not any(a < end and start < b for a, b in sentence.masked):
            cuts, fused = {cut.at for cut in sentence.cuts}, {cut.at for cut in sentence.fused}
            yield (
                number,
                "".join(
                    ("|" if at in cuts else "") + (f"({sentence.text[at]})" if at in fused else sentence.text[at])
                    for at in range(start, end)
                ),
            )
        start = end + 1


def test_boundaries_and_the_syllables_that_hold_one() -> None:
    words = [
        ("했다", ["하", "았", "다"], ["VV", "EP", "EF"], False),
        ("집에서", ["집", "에서"], ["NNG", "JKB"], True),
        ("꽃", ["꽃"], ["NNG"], True),
    ]
    (sentence,) = GoldCorpus.of("tiny", [words], human=True).sentences
    assert [*eojeols(sentence)] == [(0, "(했)|다"), (1, "집|에서")]


@pytest.mark.parametrize("name", ["ko_kaist-ud-dev", "ko_ksl-ud-dev"])
def test_the_treebank_is_aligned_as_it_was_judged(name: str) -> None:
    """One eojeol of all 299, a learner's spelling, is aligned in another way."""
    file = GOLD / f"{name}.conllu"
    if not file.exists():
        pytest.skip(f"{file.name} is not there: koktok corpus fetch gold-ko brings it")
    sentences = read_gold(file).sentences
    wanted = {(int(sentence), int(at)): marked for bank, sentence, at, marked in JUDGED if bank == name}
    found = {(k, at): marked for k, at in wanted for n, marked in eojeols(sentences[k]) if n == at}
    assert len(wanted) > 50
    assert sum(found.get(place) != marked for place, marked in wanted.items()) <= 1
