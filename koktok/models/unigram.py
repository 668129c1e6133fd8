"""The Unigram model: the segmentation with the highest sum of scores, by Viterbi (Kudo 2018, arXiv:1804.10959).

This file adds: ties. Scores are multiples of 1/256, so equal sums are common, and ids agree between libraries only if
ties break alike. Hugging Face's `encode_optimized` and SentencePiece's `EncodeOptimized` both walk over the starts from
left to right, over the pieces at each start from short to long, and replace a path to an end only by a strictly better
one: of equal paths the one whose last piece starts earliest wins. So does this one, in Hugging Face's float64.
"""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence

from koktok.models import Encoded
from koktok.vocab import Vocab

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
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        steps = self._best_steps(pretoken)
        cuts = []
        end = len(pretoken)
        while end:
            cuts.append(end)
            end -= steps[end]
        start = 0
        for end in reversed(cuts):
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
