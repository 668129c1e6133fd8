"""The run-time models by trying everything, and SentencePiece on the same vocabulary."""

from __future__ import annotations

import sentencepiece

from koktok.model.vocab import BYTE_PIECES, Vocab
from koktok.runtimes.sentencepiece.message import ModelProto


def spm(vocab: Vocab) -> sentencepiece.SentencePieceProcessor:
    proto = ModelProto()
    for piece in BYTE_PIECES:
        proto.add(piece, 0.0, 6)
    for rank, piece in enumerate(vocab.pieces):
        proto.add(piece, vocab.scores[rank] if vocab.scores else -rank, 1)
    proto.add("<unk>", 0.0, 2)
    trainer = proto.trainer_spec
    trainer.model_type, trainer.byte_fallback, trainer.split_by_whitespace = 1 if vocab.scores else 2, True, False
    trainer.unk_id, trainer.bos_id, trainer.eos_id, trainer.pad_id = len(proto.pieces) - 1, -1, -1, -1
    rules = proto.normalizer_spec
    rules.name = "identity"
    rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = False
    return sentencepiece.SentencePieceProcessor(model_proto=proto.serialized())


def all_segmentations(vocab: Vocab, text: str) -> dict[tuple[int, ...], float]:
    """Every segmentation with its score."""
    if not text:
        return {(): 0.0}
    found: dict[tuple[int, ...], float] = {}
    for end in range(1, len(text) + 1):
        piece = text[:end]
        if piece in vocab.ids:
            ids: tuple[int, ...] = (vocab.ids[piece],)
            score = vocab.scores[ids[0] - 256] if vocab.scores else 0.0
        elif end == 1:
            ids, score = tuple(piece.encode()), vocab.byte_score - 10
        else:
            continue
        for rest, more in all_segmentations(vocab, text[end:]).items():
            found[ids + rest] = score + more
    return found


def best_sum(vocab: Vocab, text: str) -> float:
    """The highest sum of scores, by trying everything."""
    best = {0: 0.0}
    for end in range(1, len(text) + 1):
        options = []
        for start in range(end):
            piece = text[start:end]
            if piece in vocab.ids:
                options.append(best[start] + vocab.scores[vocab.ids[piece] - 256])
            elif len(piece) == 1:
                options.append(best[start] + vocab.byte_score - 10)
        best[end] = max(options)
    return best[len(text)]
