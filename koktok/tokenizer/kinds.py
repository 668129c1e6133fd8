"""Which model reads which kind of vocabulary: one table. A new kind is a row here, a model, a trainer and a bulk solver."""

from __future__ import annotations

from collections.abc import Mapping

from koktok.errors import UsageError
from koktok.tokenizer.baseline_models import LongestMatchModel, WordModel
from koktok.tokenizer.bpe_model import BpeModel, ByteBpeModel
from koktok.tokenizer.model import Model
from koktok.tokenizer.unigram_model import UnigramModel
from koktok.tokenizer.wordpiece_model import ByteWordPieceModel, WordPieceModel
from koktok.vocab import ModelKind, Vocab

MODELS: Mapping[ModelKind, type[Model]] = {
    "unigram": UnigramModel,
    "bpe": BpeModel,
    "bpe-bytes": ByteBpeModel,
    "wordpiece": WordPieceModel,
    "wordpiece-bytes": ByteWordPieceModel,
    "word": WordModel,
    "syllable": LongestMatchModel,
    "jamo": LongestMatchModel,
    "ngram": LongestMatchModel,
    "morpheme": LongestMatchModel,
}


def model_for(vocab: Vocab) -> Model:
    """The model that reads `vocab`.

    Examples
    --------
    >>> model = model_for(Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}))
    >>> model.encode("가나가")
    ([257, 256], [(0, 2), (2, 3)])
    """
    if vocab.kind not in MODELS:
        raise UsageError(f"no model reads a vocabulary of kind {vocab.kind!r}; known kinds: {', '.join(MODELS)}")
    return MODELS[vocab.kind](vocab)
