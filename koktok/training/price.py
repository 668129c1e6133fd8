"""What a piece costs, in tokens: one each, or what its bits are worth.

A segmentation pays `lam` times the price of each of its pieces. With the price `tokens` every piece costs one, and what
is chosen is what saves most tokens. With `bits` a piece also pays for what it swallows and for being rare. By the chain
rule, where a text is cut changes nothing of its bits for an ideal model; what a piece of k parts saves is steps, and what
it costs is that its parts share no statistics with the other words that they are in. So it is worth a single token only
as far as its parts already predict each other: with b = -log₂ of the relative frequency it costs k · b(piece) / Σ b(part)
tokens, at least one. That is k, no saving, where the parts meet by chance, and one where each predicts the others:
pointwise mutual information (Church & Hanks 1990). The parts are what the analyser's cuts, and spaces, make of the piece.

The limits, by experiment (eval/log/038): with the whole contrast pieces are many and the tokens too, so a part of it counts
(`CONTRAST`). A rare piece, too, has little to save and must be learnt: `RARITY` of the price goes with its bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.training.lattice import Lattice

CONTRAST: Final = 0.25
"""Share of the price of a piece inside a word that its parts decide."""

ACROSS: Final = 0.7
"""The same of a piece that crosses spaces."""

RARITY: Final = 0.1
"""Share of the price that goes with the bits of a piece."""

USUAL_BITS: Final = 10.0
"""Bits of a token at which `RARITY` changes nothing: about the mean of 32,000 pieces."""

FEWEST, MOST = 0.5, 22.0
"""Bits of a token, at least and at most: a quarter of a text, and once in four million tokens."""

TOKENS: Final = 1.9
"""Tokens of an eojeol, where the number of tokens is not known yet."""

LONGEST = 31
"""Characters of a piece whose cuts are looked at; longer ones are addresses and code."""


def common_cuts(lattice: Lattice, cut: NDArray[np.bool_], n_pieces: int) -> NDArray[np.int64]:
    """For each piece where its cuts are in most of its places: bit k - 1 is the gap after k characters.

    By the vote of Boyer & Moore (1981): where no set of cuts has a majority, a frequent one.
    """
    ahead = np.zeros(len(cut), np.int64)  # of every node, the cuts after it
    for k in range(1, LONGEST):
        ahead[:-k] |= cut[k:].astype(np.int64) << (k - 1)
    cuts, lead = np.zeros(n_pieces, np.int64), np.zeros(n_pieces)
    _vote(lattice.node, lattice.arc, lattice.length, lattice.piece, lattice.weight, ahead, cuts, lead)
    return cuts


@njit(nogil=True, cache=True)
def _vote(node, arc, length, piece, weight, ahead, cuts, lead):
    for w in range(len(node) - 1):
        for v in range(node[w] + 1, node[w + 1]):
            for e in range(arc[v], arc[v + 1]):
                k = length[e]
                if k < 2 or k > LONGEST:
                    continue
                p, inside = piece[e], ahead[v - k] & ((1 << (k - 1)) - 1)
                if inside == cuts[p]:
                    lead[p] += weight[w]
                else:
                    lead[p] -= weight[w]
                    if lead[p] < 0:
                        cuts[p], lead[p] = inside, -lead[p]


def prices_in_bits(
    pieces: Sequence[str], n: NDArray[np.float64], cuts: NDArray[np.int64], words: float
) -> NDArray[np.float64]:
    """The price of each piece; `n` are the occurrences, `words` those of all words, and `cuts` is of `common_cuts`.

    Examples
    --------
    >>> n = np.asarray([100.0, 10.0, 10.0, 5.0, 1.0])
    >>> prices_in_bits(("는", " 수", " 있", " 수 있", "는 것"), n, np.asarray([0, 0, 0, 2, 1]), 1000.0).round(2).tolist()
    [0.94, 0.98, 0.98, 1.09, 1.36]
    """
    number = {piece: i for i, piece in enumerate(pieces)}
    bits = np.log2(np.maximum(words, n + 1) / np.maximum(n, 1e-9))
    price = np.ones(len(pieces))
    for i in np.flatnonzero(cuts).tolist():
        piece, mask = pieces[i], int(cuts[i])
        edges = [0, *(k for k in range(1, len(piece)) if mask >> (k - 1) & 1), len(piece)]
        parts = [number.get(piece[a:b]) for a, b in pairwise(edges)]
        apart = sum(bits[i] if part is None else max(bits[part], 0.1) for part in parts)
        share = ACROSS if " " in piece.lstrip(" ") else CONTRAST
        price[i] += share * (max(1.0, len(parts) * bits[i] / apart) - 1.0)
    rare = np.clip(np.log2(np.maximum(TOKENS * words, n + 1) / np.maximum(n, 1e-9)), FEWEST, MOST)
    return price * (1 - RARITY + RARITY * rare / USUAL_BITS)
