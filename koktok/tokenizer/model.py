"""Run-time models: one pretoken in, ids and spans out; each is a plain algorithm over a `Vocab`.

This file adds: the interface that `Tokenizer` composes, and the choice of a model by the vocabulary's kind.
A span is (start, end) in code points of the pretoken, half-open. Spans rather than ends, because the tokens of a
byte-level vocabulary may overlap: the byte tokens of one character share its span, and a token that holds the last
byte of one character and the first of the next spans both.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from koktok.errors import UsageError
from koktok.vocab import Vocab

__all__ = ["Encoded", "Model", "model_for"]

Encoded = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Ids and, in parallel, spans."""

# Kind of vocabulary → module:class; imported on use, so that a unigram tokenizer never loads the others.
_MODELS = {
    "unigram": "koktok.tokenizer.unigram_model:UnigramModel",
    "bpe": "koktok.tokenizer.bpe_model:BpeModel",
    "bpe-bytes": "koktok.tokenizer.bpe_model:ByteBpeModel",
    "wordpiece": "koktok.tokenizer.wordpiece_model:WordPieceModel",
    "wordpiece-bytes": "koktok.tokenizer.wordpiece_model:ByteWordPieceModel",
    "word": "koktok.tokenizer.baseline_models:WordModel",
    "syllable": "koktok.tokenizer.baseline_models:LongestMatchModel",
    "jamo": "koktok.tokenizer.baseline_models:LongestMatchModel",
    "ngram": "koktok.tokenizer.baseline_models:LongestMatchModel",
    "morpheme": "koktok.tokenizer.baseline_models:LongestMatchModel",
}


class Model(Protocol):
    """What a tokenizer needs of a model: a pure function of one pretoken; callers cache it by pretoken."""

    @property
    def vocab(self) -> Vocab:
        """The vocabulary that the ids belong to."""
        ...

    @property
    def lossless(self) -> bool:
        """True where decode(encode(x)) == x for every x (law 4)."""
        ...

    def encode(self, pretoken: str) -> Encoded:
        """Ids and spans of `pretoken`; never special tokens, except the unknown token of a lossy model."""
        ...


def model_for(vocab: Vocab) -> Model:
    """The model that reads `vocab`.

    Raises
    ------
    UsageError
        When no model reads vocabularies of that kind.

    Examples
    --------
    >>> model = model_for(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> model.encode("가나가")
    ([257, 256], [(0, 2), (2, 3)])
    """
    if vocab.kind not in _MODELS:
        raise UsageError(f"no model reads a vocabulary of kind {vocab.kind!r}; known kinds: {', '.join(_MODELS)}")
    module, name = _MODELS[vocab.kind].split(":")
    return cast(Model, getattr(import_module(module), name)(vocab))
