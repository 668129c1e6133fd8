"""The models in compiled code, many pretokens a call: the same ids as `koktok.tokenizer.model`, ties and unknown characters too.

This file adds: the choice of the algorithm, and for each the arrays that it reads. A solver is a pure function of the
characters of a pretoken, so what is solved may be kept, dropped, and solved on any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.bulk.trie import BYTEWISE, Trie
from koktok.tokenizer.unigram_model import UNKNOWN_PENALTY
from koktok.tokenizer.wordpiece_model import MAX_CHARS, NO_MAX_CHARS
from koktok.vocab import SCORE_STEP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from koktok.vocab import Vocab

__all__ = ["Solver"]


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Pretokens to ids, in bulk.

    Parameters
    ----------
    kernel : callable
        Compiled.
    constants : tuple
        What the kernel reads of the vocabulary.
    growth : int
        Most ids that a unit of UTF-16 can become.

    Examples
    --------
    >>> from koktok.bulk.utf16 import CODEC
    >>> from koktok.vocab import Vocab
    >>> solver = Solver.of(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> data = np.frombuffer("가나가é".encode(CODEC), np.uint16)
    >>> ids, offsets = solver(data, np.array([0, 2]), np.array([2, 4]))
    >>> ids.tolist(), offsets.tolist()
    ([257, 256, 195, 169], [0, 1, 4])
    """

    kernel: Callable[..., int]
    constants: tuple[Any, ...]
    growth: int

    @classmethod
    def of(cls, vocab: Vocab, *, letters: bool = False) -> Solver:
        """The solver of a vocabulary; `letters` where syllables are taken apart to jamo first."""
        trie = Trie.of(vocab)
        read = (trie.symbols, vocab.kind in BYTEWISE, letters)
        walk = (trie.cells, trie.ids)
        growth = 9 if letters else 3  # a syllable is three letters, and each of them, where it is no piece, three bytes
        match vocab.kind:
            case "unigram":
                from koktok.bulk.viterbi import solve_unigram

                unknown = min(vocab.byte_score, min(vocab.scores, default=0.0)) - UNKNOWN_PENALTY
                steps = np.column_stack((trie.cells, trie.values)).reshape(-1)
                return cls(solve_unigram, (*read, steps, trie.ids, trie.depth, round(unknown / SCORE_STEP)), growth)
            case "bpe" | "bpe-bytes":
                from koktok.bulk.merges import Pairs, solve_bpe

                pairs = Pairs.of(trie, vocab.n_bytes)
                return cls(solve_bpe, (*read, trie.ids, pairs.keys, pairs.joined), growth)
            case "wordpiece" | "wordpiece-bytes":
                from koktok.bulk.longest import solve_wordpiece

                limit = MAX_CHARS if vocab.kind == "wordpiece" else NO_MAX_CHARS
                return cls(solve_wordpiece, (*read, *walk, trie.inside, vocab.unknown_id, limit), growth)
            case "word":
                from koktok.bulk.longest import solve_word

                return cls(solve_word, (*read, *walk, vocab.unknown_id), growth)
            case _:
                from koktok.bulk.longest import solve_longest

                return cls(solve_longest, (*read, *walk), growth)

    def __call__(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of pretokens, and where those of each begin and end.

        Parameters
        ----------
        data : ndarray of uint16
            Valid UTF-16.
        begins, ends : ndarray of int64, shape (pretokens,)

        Returns
        -------
        ids : ndarray of int32
        offsets : ndarray of int64, shape (pretokens + 1,)
        """
        sizes = ends - begins
        ids = np.empty(int(sizes.sum()) * self.growth, np.int32)
        offsets = np.zeros(len(begins) + 1, np.int64)
        longest = int(sizes.max(initial=0)) * self.growth
        used = self.kernel(data, begins, ends, *self.constants, longest, ids, offsets)
        return ids[:used], offsets
