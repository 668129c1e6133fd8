"""Words to a learnt segmentation: candidates by the classic Unigram trainer, then dynamic programming encoding among them.

A Unigram vocabulary of the same words holds whole stems, which strings that merely stand in many
words are not: 대한민국 is one candidate, and not only 대한 and 민국.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from koktok.count import Counts
from koktok.dpe.learning import DEFAULT
from koktok.dpe.learnt import Dpe, DpeDials
from koktok.dpe.prefixes import END
from koktok.errors import VocabSizeError
from koktok.progress import Done
from koktok.segment import Segmenter
from koktok.segment.dpe import learn_segmenter
from koktok.segment.segmented import SegmentedCounts
from koktok.training.job import Job
from koktok.training.unigram_em import train_unigram_em
from koktok.vocab import BYTE_PIECES

ENDS = 1 / 2
"""Ends of words for each piece at first: a word has two pieces."""


def unigram_candidates(runs: Mapping[str, int], dials: DpeDials) -> dict[str, float]:
    """Pieces of a Unigram vocabulary and how probable each is; of fewer where the text is small, and none where it is tiny.

    Examples
    --------
    >>> runs = {stem + ending: 9 for stem in ("학교", "도서관", "시장") for ending in ("에서", "에는", "까지", "")}
    >>> found = unigram_candidates(runs, DpeDials(pieces=18))
    >>> sorted(piece for piece in found if len(piece) > 1)
    ['까지', '도서관', '시장', '에는', '에서', '학교']
    """
    counts = SegmentedCounts.uncut(Counts.from_mapping(runs))
    size = dials.pieces
    while size > 8:
        try:
            job = Job(
                counts, len(BYTE_PIECES) + size, alphabet=(), coverage=0.9995, max_length=dials.longest, threads=1
            )
            vocab = train_unigram_em(job).vocab
        except VocabSizeError:
            size //= 2
            continue
        found = {piece: math.exp(score) for piece, score in zip(vocab.pieces, vocab.scores, strict=True)}
        return {**found, END: ENDS * sum(found.values())}
    return {}


def learn_cuts(
    words: Mapping[str, int],
    analyser: Segmenter | None = None,
    *,
    name: str = "",
    dials: DpeDials = DEFAULT,
    on_progress: Done | None = None,
) -> Dpe:
    """Learn a segmentation; parameters and errors as `koktok.segment.dpe.learn_segmenter`."""
    return learn_segmenter(
        words,
        analyser,
        name=name,
        dials=dials,
        candidates=lambda runs: unigram_candidates(runs, dials),
        on_progress=on_progress,
    )
