"""The Unigram model: the segmentation with the highest sum of scores, by Viterbi (Kudo 2018, arXiv:1804.10959).

This file adds: ties. Scores are multiples of 1/256, so equal sums are common, and ids agree between libraries only if
ties break alike. Hugging Face's `encode_optimized` and SentencePiece's `EncodeOptimized` both walk over the starts from
left to right, over the pieces at each start from short to long, and replace a path to an end only by a strictly better
one: of equal paths the one whose last piece starts earliest wins. So does this one, in Hugging Face's float64.

And: subword regularization. A model that is trained on one segmentation knows only that one; `n_best` and `sample` give
others, each with a probability that grows with its score.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, MutableSequence
from typing import TYPE_CHECKING

from koktok.errors import UsageError
from koktok.models import Encoded
from koktok.vocab import Vocab

if TYPE_CHECKING:
    import numpy as np

__all__ = ["UNKNOWN_PENALTY", "UnigramModel"]

UNKNOWN_PENALTY = 10.0
"""What Hugging Face and SentencePiece subtract from the lowest score for an unknown character."""

_LONG = 1 << 16  # from here the table of sums is an array: a list of floats costs four times its memory

_NO_PIECE = 1.0  # a proper prefix of a piece that is no piece itself; real scores are at most 0


class UnigramModel:
    """Viterbi over a unigram vocabulary; exact, and linear in the length of the pretoken.

    Parameters
    ----------
    vocab : Vocab
        Of kind "unigram", with byte fallback.

    Notes
    -----
    Equal to Hugging Face on every text if the characters of `<0x0A>`-like strings are pieces: Hugging Face keeps the
    byte pieces in its trie, where such a string beats a path over an unknown character (SentencePiece does not).
    Its *spans* differ where unknown characters stand in a row: it fuses them, and gives every byte the span of the run.

    Examples
    --------
    >>> model = UnigramModel(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> model.encode("가나é")  # é is no piece: its two bytes share its span
    ([257, 195, 169], [(0, 2), (2, 3), (2, 3)])
    """

    lossless = True

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._ids = vocab.ids
        self._unknown = min(vocab.byte_score, min(vocab.scores, default=0.0)) - UNKNOWN_PENALTY
        # Pieces and their proper prefixes in one dict: a look-up that finds nothing ends the walk from this start, so
        # the work for a start is bounded by the longest piece.
        table = dict(zip(vocab.pieces, vocab.scores, strict=True))
        for piece in vocab.pieces:
            for end in range(len(piece) - 1, 0, -1):
                if piece[:end] in table:
                    break  # its own prefixes are, or will be, entered for it
                table[piece[:end]] = _NO_PIECE
        self._table = table

    @property
    def vocab(self) -> Vocab:
        """The vocabulary that the ids belong to."""
        return self._vocab

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans of the best segmentation.

        Parameters
        ----------
        pretoken : str
            Any text without lone surrogates; empty gives nothing.

        Returns
        -------
        ids : list of int
        spans : list of (int, int)
            Code points of `pretoken`, half-open; the bytes of one character share its span.
        """
        steps = self._best_steps(pretoken)
        cuts = [len(pretoken)]
        while cuts[-1]:
            cuts.append(cuts[-1] - steps[cuts[-1]])
        return self._encoded(pretoken, cuts)

    def n_best(self, pretoken: str, n: int) -> list[tuple[Encoded, float]]:
        """The `n` best segmentations with their sums of scores, best first; fewer when there are not so many.

        The first is that of `encode`; later ties are broken likewise.

        Parameters
        ----------
        pretoken : str
        n : int
            At least 1.

        Raises
        ------
        UsageError
            When `n` is less than 1.

        Examples
        --------
        >>> model = UnigramModel(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
        >>> [(ids, score) for (ids, _), score in model.n_best("가나", 9)]
        [([257], -1.5), ([256, 258], -3.0)]
        """
        if n < 1:
            raise UsageError(f"n = {n}; wanted at least 1")
        # For every end the n best paths to it: (minus score, last start, which path to that start).
        paths: list[list[tuple[float, int, int]]] = [[(0.0, 0, 0)]]
        for arcs in self._arcs(pretoken):
            found = [(path[0] - score, start, k) for start, score in arcs for k, path in enumerate(paths[start])]
            paths.append(sorted(found)[:n])
        result = []
        for rank, (cost, _, _) in enumerate(paths[-1]):
            cuts, k = [len(pretoken)], rank
            while cuts[-1]:
                _, start, k = paths[cuts[-1]][k]
                cuts.append(start)
            result.append((self._encoded(pretoken, cuts), -cost or 0.0))
        return result

    def sample(
        self, pretoken: str, *, alpha: float = 1.0, rng: np.random.Generator, n_best: int | None = None
    ) -> Encoded:
        """A random segmentation, with a probability proportional to exp(alpha · score).

        Drawn exactly, by forward-filtering and backward-sampling over all segmentations (Scott 2002), as SentencePiece
        does for `nbest_size=-1`; or from the `n_best` best ones (Kudo 2018, section 3.3).

        Parameters
        ----------
        pretoken : str
        alpha : float
            0 makes all segmentations equally likely; the larger, the likelier the best one.
        rng : numpy.random.Generator
        n_best : int, optional
            How many segmentations to draw from; the default is all.

        Raises
        ------
        UsageError
            When `alpha` is negative or no number, or `n_best` less than 1.

        Examples
        --------
        >>> import numpy as np
        >>> model = UnigramModel(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
        >>> rng = np.random.default_rng(0)
        >>> sum(len(model.sample("가나", rng=rng)[0]) == 1 for _ in range(1000))  # 1 / (1 + exp(-1.5)) is .818
        795
        """
        if not 0 <= alpha < math.inf:
            raise UsageError(f"alpha = {alpha}; wanted a number of at least 0")
        if n_best is not None:
            found = self.n_best(pretoken, n_best)
            return found[_draw([alpha * score for _, score in found], rng)][0]
        # forward[end]: logarithm of the summed weight of all paths from the start to there.
        forward, arcs = [0.0], list(self._arcs(pretoken))
        for ways in arcs:
            logs = [forward[start] + alpha * score for start, score in ways]
            top = max(logs)
            forward.append(top + math.log(sum([math.exp(log - top) for log in logs])))
        cuts = [len(pretoken)]
        while cuts[-1]:
            ways = arcs[cuts[-1] - 1]
            cuts.append(ways[_draw([forward[start] + alpha * score for start, score in ways], rng)][0])
        return self._encoded(pretoken, cuts)

    def _encoded(self, pretoken: str, cuts: list[int]) -> Encoded:
        """Ids and spans of the pieces between `cuts`, which fall from the end to 0."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        for end in reversed(cuts[:-1]):
            piece = pretoken[start:end]
            known = self._ids.get(piece)
            if known is None:
                data = piece.encode()
                ids += data  # a byte piece's id is the byte
                spans += [(start, end)] * len(data)
            else:
                ids.append(known)
                spans.append((start, end))
            start = end
        return ids, spans

    def _arcs(self, text: str) -> Iterator[list[tuple[int, float]]]:
        """For every end from 1 on, the pieces that end there as (start, score), starts ascending."""
        size, look_up = len(text), self._table.get
        waiting: dict[int, list[tuple[int, float]]] = {}
        for start in range(size):
            end = start + 1
            score = look_up(text[start:end])
            if score is None:
                waiting.setdefault(end, []).append((start, self._unknown))
            while score is not None:
                if score <= 0.0:
                    waiting.setdefault(end, []).append((start, score))
                end += 1
                score = look_up(text[start:end]) if end <= size else None
            yield waiting.pop(start + 1)

    def _best_steps(self, text: str) -> list[int]:
        """For every end, the length of the last piece on the best path to it."""
        size = len(text)
        worst = float("-inf")
        best: MutableSequence[float] = [worst] * (size + 1) if size < _LONG else array("d", [worst]) * (size + 1)
        best[0] = 0.0
        steps = [0] * (size + 1)
        look_up = self._table.get
        for start in range(size):
            here = best[start]
            end = start + 1
            score = look_up(text[start:end])
            if score is None:
                # No piece holds this character (all characters of pieces are pieces): every path takes this step.
                if here + self._unknown > best[end]:
                    best[end] = here + self._unknown
                    steps[end] = 1
                continue
            while score is not None:
                if score <= 0.0 and here + score > best[end]:
                    best[end] = here + score
                    steps[end] = end - start
                end += 1
                if end > size:
                    break
                score = look_up(text[start:end])
        return steps


def _draw(logs: list[float], rng: np.random.Generator) -> int:
    """An index with a probability proportional to exp(log)."""
    top = max(logs)
    weights = [math.exp(log - top) for log in logs]
    left = rng.random() * sum(weights)
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return len(logs) - 1  # rounding
