"""Eojeols judged by hand: what a judge reads, and that the table kept holds the right number of places once each."""

from eval.alignment import JUDGED, eojeols
from koktok.gold import GoldCorpus


def test_a_judge_reads_borders_and_the_syllables_that_hold_one() -> None:
    words = [
        ("했다", ["하", "았", "다"], ["VV", "EP", "EF"], False),
        ("집에서", ["집", "에서"], ["NNG", "JKB"], True),
        ("꽃", ["꽃"], ["NNG"], True),
    ]
    (sentence,) = GoldCorpus.of("tiny", [words], human=True).sentences
    assert [*eojeols(sentence)] == [(0, "(했)|다", False), (1, "집|에서", True)]


def test_every_judged_eojeol_stands_once() -> None:
    places = [tuple(line.split("\t")[:3]) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    assert len(places) == len(set(places)) == 299
