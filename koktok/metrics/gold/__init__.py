"""Gold morphemes to cuts: treebanks and Sejong-style files, read into sentences with legal and fused borders.

Only the treebanks whose morphemes people annotated are called human; words
whose annotation contradicts itself are masked, counted and never scored.
"""

from koktok.metrics.gold.readers import read_gold
from koktok.metrics.gold.sentences import (
    FUNCTIONAL,
    GOLD_BOUNDARIES,
    GoldCorpus,
    GoldCut,
    GoldMorpheme,
    GoldSentence,
    check_names,
    gold_boundary,
)
from koktok.segment.align import Alignment, surface_cuts

__all__ = [
    "FUNCTIONAL",
    "GOLD_BOUNDARIES",
    "Alignment",
    "GoldCorpus",
    "GoldCut",
    "GoldMorpheme",
    "GoldSentence",
    "check_names",
    "gold_boundary",
    "read_gold",
    "surface_cuts",
]
