"""Gold morphemes to cuts: treebanks and Sejong-style files, read into sentences with legal and fused borders.

Only the treebanks whose morphemes people annotated are called human; words
whose annotation contradicts itself are masked, counted and never scored.
"""

from koktok.metrics.gold.readers import read_gold
from koktok.metrics.gold.sentences import (
    FUNCTIONAL,
    KINDS,
    GoldCorpus,
    GoldCut,
    GoldMorpheme,
    GoldSentence,
    check_names,
    kind_of,
)
from koktok.segment.align import Alignment, surface_cuts

__all__ = [
    "FUNCTIONAL",
    "KINDS",
    "Alignment",
    "GoldCorpus",
    "GoldCut",
    "GoldMorpheme",
    "GoldSentence",
    "check_names",
    "kind_of",
    "read_gold",
    "surface_cuts",
]
