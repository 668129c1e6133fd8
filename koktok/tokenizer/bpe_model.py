"""The BPE models: join the neighbours whose joined piece has the lowest rank, leftmost first, until nothing joins.

The rank of the *joined piece*. Sennrich et al. (2016, arXiv:1508.07909) rank merges, pairs (left,
right); here, as in tiktoken and SentencePiece, a rank belongs to the piece and any pair that spells it may join.
Hugging Face ranks pairs, and gets every split of every piece in the order of the pieces' ranks; the order of the
splits of one piece does not matter: when a piece is made at some place, no join has crossed its edges, so the
joins inside were those of the piece encoded by itself. One split of each piece is ever joined, everywhere.

And: dropout (Provilkov et al. 2020, arXiv:1910.13267), which passes over joins at random, as SentencePiece does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from koktok.errors import UsageError
from koktok.tokenizer.model import Encoded, Model
from koktok.vocab import Vocab, spell

if TYPE_CHECKING:
    import numpy as np


class BpeModel(Model):
    """BPE over characters, with byte fallback; n log n in the length n of the pretoken.

    Examples
    --------
    >>> BpeModel(Vocab.bpe("가나", ["가나"])).encode("나가나é")
    ([257, 258, 195, 169], [(0, 1), (1, 3), (3, 4), (3, 4)])
    """

    drawn_by = "dropout"

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._pieces = vocab.pieces

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {piece: rank for rank, piece in enumerate(self._pieces)}

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans."""
        return self._encode(pretoken, None)

    def sample(self, pretoken: str, *, dropout: float, rng: np.random.Generator) -> Encoded:
        """A random segmentation: a join that comes up is passed over with a probability.

        A join that was passed over comes back only when one of its parts grows, as in SentencePiece; in Hugging Face it
        comes back behind the next join.

        Examples
        --------
        >>> import numpy as np
        >>> model = BpeModel(Vocab.bpe("가나", ["가나"]))
        >>> model.sample("가나", dropout=1.0, rng=np.random.default_rng(0))
        ([256, 257], [(0, 1), (1, 2)])
        """
        if not 0 <= dropout <= 1:
            raise UsageError(f"dropout = {dropout}; wanted a probability from 0 to 1")
        return self._encode(pretoken, lambda: rng.random() < dropout)

    def _encode(self, pretoken: str, passed_over: Callable[[], bool] | None) -> Encoded:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        first = self.vocab.n_bytes
        start = 0
        for piece in self._joined(pretoken, passed_over):
            end = start + len(piece)
            rank = self._ranks.get(piece)
            if rank is None:
                data = piece.encode()
                ids += data  # a byte piece's id is the byte
                spans += [(start, end)] * len(data)
            else:
                ids.append(first + rank)
                spans.append((start, end))
            start = end
        return ids, spans

    def _joined(self, text: str, passed_over: Callable[[], bool] | None) -> list[str]:
        """The pieces (and unknown characters) of `text`, in order."""
        ranks, pieces = self._ranks, self._pieces
        size = len(text)
        parts = list(text)  # a part that was joined to its left neighbour is ""
        right = list(range(1, size + 1))
        left = list(range(-1, size - 1))
        # One integer an entry, rank · size + place: it sorts by rank, then from the left, and compares fast.
        heap = [rank * size + i for i in range(size - 1) if (rank := ranks.get(text[i : i + 2])) is not None]
        heapify(heap)
        while heap:
            rank, i = divmod(heappop(heap), size)
            j = right[i]
            if not parts[i] or j >= size or parts[i] + parts[j] != pieces[rank]:
                continue  # one of the two was joined to something else since
            if passed_over is not None and passed_over():
                continue
            parts[i] = pieces[rank]
            parts[j] = ""
            k = right[i] = right[j]
            if k < size:
                left[k] = i
                joined = ranks.get(parts[i] + parts[k])
                if joined is not None:
                    heappush(heap, joined * size + i)
            h = left[i]
            if h >= 0:
                joined = ranks.get(parts[h] + parts[i])
                if joined is not None:
                    heappush(heap, joined * size + h)
        return [part for part in parts if part]


class ByteBpeModel(BpeModel):
    """BPE over the bytes of UTF-8, spelled with GPT-2's 256 characters; nothing is ever unknown.

    Examples
    --------
    >>> vocab = Vocab.bpe_bytes(["ê°", "ê°Ģ"])
    >>> ids, spans = ByteBpeModel(vocab).encode("가a")
    >>> [vocab.tokens[i] for i in ids], spans
    (['ê°Ģ', 'a'], [(0, 1), (1, 2)])
    """

    def _encode(self, pretoken: str, passed_over: Callable[[], bool] | None) -> Encoded:
        # A token that holds part of a character spans all of it, so spans overlap where a token ends inside one.
        owner = [i for i, char in enumerate(pretoken) for _ in range(len(char.encode()))]
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        for piece in self._joined(spell(pretoken), passed_over):
            end = start + len(piece)
            ids.append(self._ranks[piece])
            spans.append((owner[start], owner[end - 1] + 1))
            start = end
        return ids, spans
