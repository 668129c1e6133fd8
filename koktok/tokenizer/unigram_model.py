"""The Unigram model: the segmentation with the highest sum of scores, by Viterbi (Kudo 2018, arXiv:1804.10959).

Scores are multiples of 1/256, so equal sums are common, and ids agree between libraries only if
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
from functools import cached_property
from typing import TYPE_CHECKING, Any

from koktok.errors import UsageError
from koktok.tokenizer.model import Encoded, Model
from koktok.vocab import Vocab

if TYPE_CHECKING:
    import numpy as np


SHARPEST = 1e6
"""Largest `alpha`: a step of a score (1/256) then makes a segmentation e^3906 times likelier, and only the best is drawn."""

_LONG = 1 << 16  # from here the table of sums is an array: a list of floats costs four times its memory

_WORST = float("-inf")

_Node = list[Any]  # score, id (-1: no piece ends here) and children by character (None: there are none)

_NO_PIECE = 1.0  # a proper prefix of a piece that is no piece itself; real scores are at most 0


class UnigramModel(Model):
    """Viterbi over a unigram vocabulary; exact, and linear in the length of the pretoken.

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

    drawn_by = "alpha"

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._unknown = vocab.unknown_score

    @cached_property
    def _trie(self) -> dict[str, _Node]:
        """Pieces by their characters; made when the first text comes, not on loading."""
        trie: dict[str, _Node] = {}
        first = self.vocab.n_bytes
        for i, (piece, score) in enumerate(zip(self.vocab.pieces, self.vocab.scores, strict=True)):
            children = trie
            for char in piece[:-1]:
                node = children.get(char)
                if node is None:
                    children[char] = node = [_NO_PIECE, -1, {}]
                elif node[2] is None:
                    node[2] = {}
                children = node[2]
            known = children.get(piece[-1])
            if known is None:
                children[piece[-1]] = [score, first + i, None]
            else:
                known[0], known[1] = score, first + i
        return trie

    @cached_property
    def _table(self) -> dict[str, float]:
        """Pieces and their proper prefixes with their scores, for `n_best` and `sample`.

        A look-up that finds nothing ends the walk from its start, so the work for a start is bounded by the longest piece.
        """
        vocab = self.vocab
        table = dict(zip(vocab.pieces, vocab.scores, strict=True))
        for piece in vocab.pieces:
            for end in range(len(piece) - 1, 0, -1):
                if piece[:end] in table:
                    break  # its own prefixes are, or will be, entered for it
                table[piece[:end]] = _NO_PIECE
        return table

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans of the best segmentation."""
        size = len(pretoken)
        # For every end the best sum, and of the last piece on the way there its start and its id.
        best: MutableSequence[float] = [_WORST] * (size + 1) if size < _LONG else array("d", [_WORST]) * (size + 1)
        starts: MutableSequence[int] = [0] * (size + 1) if size < _LONG else array("q", bytes(8 * size + 8))
        found: MutableSequence[int] = [-1] * (size + 1) if size < _LONG else array("q", [-1]) * (size + 1)
        best[0] = 0.0
        first = self._trie.get
        for start, char in enumerate(pretoken):
            here = best[start]
            node = first(char)
            end = start + 1
            if node is None:
                # No piece holds this character (all characters of pieces are pieces): every path takes this step.
                if here + self._unknown > best[end]:
                    best[end], starts[end], found[end] = here + self._unknown, start, -1
                continue
            while True:
                score, piece, children = node
                if piece >= 0 and here + score > best[end]:
                    best[end], starts[end], found[end] = here + score, start, piece
                if children is None or end == size:
                    break
                node = children.get(pretoken[end])
                if node is None:
                    break
                end += 1
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        end = size
        while end:
            start, piece = starts[end], found[end]
            if piece < 0:
                data = pretoken[start:end].encode()
                ids += data[::-1]  # a byte piece's id is the byte
                spans += [(start, end)] * len(data)
            else:
                ids.append(piece)
                spans.append((start, end))
            end = start
        ids.reverse()
        spans.reverse()
        return ids, spans

    def n_best(self, pretoken: str, n: int) -> list[tuple[Encoded, float]]:
        """The `n` best segmentations with their sums of scores, best first; fewer when there are not so many.

        The first is that of `encode`; later ties are broken likewise.

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

        Examples
        --------
        >>> import numpy as np
        >>> model = UnigramModel(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
        >>> rng = np.random.default_rng(0)
        >>> sum(len(model.sample("가나", rng=rng)[0]) == 1 for _ in range(1000))  # 1 / (1 + exp(-1.5)) is .818
        795
        """
        if not 0 <= alpha <= SHARPEST:
            raise UsageError(f"alpha = {alpha}; wanted a number from 0 to {SHARPEST:g}")
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
        start, look_up = 0, self.vocab.ids.get
        for end in reversed(cuts[:-1]):
            piece = pretoken[start:end]
            known = look_up(piece)
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
