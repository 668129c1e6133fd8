"""What a trained vocabulary does with the text that it was trained on, in plain values for `--log json`.

It says how many boundaries of each kind survive where every distinct word is decoded as the
tokenizer will, without an analyser, so that a builder sees what the dials bought.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.hangul import count_syllables
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.training.superwords import crosses_space
from koktok.vocab import Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shape_of(piece: str) -> str:
    """What a piece looks like: whether it begins a word, and whether it is Hangul.

    Examples
    --------
    >>> shape_of(" 학교"), shape_of("다."), shape_of("ing"), shape_of("는 것")
    ('space+hangul', 'mixed', 'other', 'superword')
    """
    bare = piece.lstrip(" ")
    space = "space+" if bare != piece else ""
    syllables = count_syllables(bare)
    if crosses_space(piece):
        return "superword"
    return space + ("hangul" if syllables and syllables == len(bare) else "mixed" if syllables else "other")


def describe(
    counts: SegmentedCounts,
    vocab: Vocab,
    node: NDArray[np.int64],
    cut: NDArray[np.bool_],
    tokens: float,
) -> dict[str, Any]:
    """Pieces by length and shape, tokens a word, and by kind of boundary how many there were and how many were swallowed.

    Of runs also the gaps between their words, and how many of them lie inside a token.
    """
    boundary = np.repeat(node[:-1], np.diff(counts.start)) + counts.offset
    n = np.repeat(counts.n.astype(np.float64), np.diff(counts.start))
    there = np.bincount(counts.kind, weights=n, minlength=len(Kind))
    lost = np.bincount(counts.kind, weights=n * ~cut[boundary], minlength=len(Kind))
    lengths, shapes = Counter(map(len, vocab.pieces)), Counter(map(shape_of, vocab.pieces))
    known = set(vocab.pieces)
    return {
        "pieces_by_length": {str(length): lengths[length] for length in sorted(lengths)},
        "pieces_by_shape": {shape: shapes[shape] for shape in sorted(shapes)},
        "pieces_with_and_without_space": sum(p[0] == " " and p[1:] in known for p in vocab.pieces),
        "tokens_per_word": tokens / max(counts.total, 1),
        "boundaries": {
            kind.label: {"n": int(there[kind]), "swallowed": int(lost[kind])} for kind in Kind if there[kind]
        },
        **_gaps(counts, cut),
    }


def _gaps(counts: SegmentedCounts, cut: NDArray[np.bool_]) -> dict[str, dict[str, int]]:
    """Gaps between eojeols, where there are runs of them, and how many lie inside a token."""
    codes = np.frombuffer("".join(counts.words).encode("utf-32-le"), dtype=np.uint32)
    sizes = np.fromiter(map(len, counts.words), dtype=np.int64, count=len(counts))
    run = np.repeat(np.arange(len(counts)), sizes)
    space = codes == ord(" ")
    gap = np.flatnonzero(space[1:] & ~space[:-1] & (run[1:] == run[:-1])) + 1
    if not len(gap):
        return {}
    node, n = gap + run[gap], counts.n.astype(np.float64)[run[gap]]  # the node before the space
    return {"gaps": {"n": int(n.sum()), "inside": int((n * ~(cut[node] | cut[node + 1])).sum())}}
