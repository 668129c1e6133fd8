"""Statistics of a trained vocabulary on its training words, in plain values for `--log json`.

Boundaries of each kind are counted with words segmented as at run time, without an analyser. A boundary inside a token is
swallowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.hangul import count_syllables
from koktok.model.models import model_for
from koktok.model.vocab import Vocab
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.training.superwords import crosses_space

MEASURED = 20_000
"""Distinct words that are encoded, the most frequent first: over .8 of running Korean text, in about a second."""


def shape_of(piece: str) -> str:
    """What a piece looks like: whether it begins a word, and whether it is Hangul."""
    bare = piece.lstrip(" ")
    space = "space+" if bare != piece else ""
    syllables = count_syllables(bare)
    if crosses_space(piece):
        return "superword"
    return space + ("hangul" if syllables and syllables == len(bare) else "mixed" if syllables else "other")


def describe(
    counts: SegmentedCounts, vocab: Vocab, node: NDArray[np.int64], cut: NDArray[np.bool_], tokens: float
) -> dict[str, Any]:
    """Pieces by length and shape, tokens a word, and by kind of boundary how many there were and how many were swallowed.

    Of runs also the gaps between their words, and how many of them lie inside a token.
    """
    boundary = np.repeat(node[:-1], np.diff(counts.start)) + counts.offset
    n = np.repeat(counts.n.astype(np.float64), np.diff(counts.start))
    there = np.bincount(counts.kind, weights=n, minlength=len(BoundaryKind))
    lost = np.bincount(counts.kind, weights=n * ~cut[boundary], minlength=len(BoundaryKind))
    known = set(vocab.pieces)
    return {
        **_pieces(vocab),
        "pieces_with_and_without_space": sum(p[0] == " " and p[1:] in known for p in vocab.pieces),
        "tokens_per_word": tokens / max(counts.total, 1),
        "boundaries": _boundaries(there.tolist(), lost.tolist()),
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


def account(counts: SegmentedCounts, vocab: Vocab) -> dict[str, Any]:
    """The same for any trainer, of the most frequent words, encoded as at run time."""
    model = model_for(vocab)
    there, lost = [0] * len(BoundaryKind), [0] * len(BoundaryKind)
    tokens = total = 0
    words = nlargest(MEASURED, counts.items(), key=lambda item: (item[2], item[0]))
    for word, cuts, n in words:
        ids, spans = model.encode(word)
        tokens += n * len(ids)
        total += n
        borders = {end for _, end in spans}
        for cut in cuts:
            there[cut.kind] += n
            lost[cut.kind] += n * (cut.offset not in borders)
    return {
        **_pieces(vocab),
        "words_measured": len(words),
        "tokens_per_word": tokens / max(1, total),
        "boundaries": _boundaries(there, lost),
    }


def texts_of(vocab: Vocab) -> Sequence[str]:
    """The pieces of a vocabulary in characters; bytes that are no whole character are U+FFFD."""
    if not vocab.bytewise:
        return vocab.pieces
    return [raw.decode(errors="replace") for raw in vocab.token_bytes[vocab.n_bytes : vocab.first_special]]


def _pieces(vocab: Vocab) -> dict[str, dict[str, int]]:
    texts = texts_of(vocab)
    lengths, shapes = Counter(map(len, texts)), Counter(map(shape_of, texts))
    return {
        "pieces_by_length": {str(length): lengths[length] for length in sorted(lengths)},
        "pieces_by_shape": {shape: shapes[shape] for shape in sorted(shapes)},
    }


def _boundaries(there: Sequence[float], lost: Sequence[float]) -> dict[str, dict[str, int]]:
    return {kind.label: {"n": int(there[kind]), "swallowed": int(lost[kind])} for kind in BoundaryKind if there[kind]}
