"""The models in compiled code, many pretokens a call: the same ids as `koktok.model.models`, ties and unknown characters too.

`SOLVERS` has for each kind the function that returns the kernel of its algorithm, and the arrays that it reads besides symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.bulk.bpe import bpe
from koktok.bulk.longest import longest, word, wordpiece
from koktok.bulk.trie import Trie
from koktok.bulk.unigram import unigram
from koktok.model.vocab import Vocab, VocabKind

SOLVERS: Mapping[VocabKind, Callable[..., tuple[Any, ...]]] = {
    "unigram": unigram,
    "bpe": bpe,
    "bpe-bytes": bpe,
    "wordpiece": wordpiece,
    "wordpiece-bytes": wordpiece,
    "word": word,
    "syllable": longest,
    "jamo": longest,
    "ngram": longest,
    "morpheme": longest,
}
"""The algorithm of each kind of vocabulary."""


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Pretokens to ids, in bulk.

    Examples
    --------
    >>> from koktok.bulk.texts import CODEC
    >>> from koktok.model.vocab import Vocab
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
        kernel, *constants = SOLVERS[vocab.kind](vocab, trie, letters=letters)
        growth = 9 if letters else 3  # a syllable is three letters, and each of them, where it is no piece, three bytes
        return cls(kernel, (trie.symbols, vocab.bytewise, letters, *constants), growth)

    def __call__(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Ids of pretokens, and where those of each begin and end."""
        sizes = ends - begins
        ids = np.empty(int(sizes.sum()) * self.growth, np.int32)
        offsets = np.zeros(len(begins) + 1, np.int64)
        longest = int(sizes.max(initial=0)) * self.growth
        used = self.kernel(data, begins, ends, *self.constants, longest, ids, offsets)
        return ids[:used], offsets
