"""tokenizer.model: the same vocabulary for the sentencepiece library.

This file adds: a ModelProto written piece by piece. `escape_whitespaces=false` keeps spaces real, `identity` means that
the library gets normalized text, and since no piece crosses a pre-token border and borders depend on two neighbouring
characters only, its search over the whole line finds what ours finds pre-token by pre-token.
"""

from __future__ import annotations

from koktok.errors import ArtifactError
from koktok.export.hf import ROLES
from koktok.pretokenize import Pattern
from koktok.vocab import BYTE_PIECES, Vocab

__all__ = ["model_proto", "why_not"]


def why_not(vocab: Vocab, pattern: Pattern) -> str:
    """Why this tokenizer has no tokenizer.model, or '' where it has one."""
    if not pattern.bigram:
        return "groups of three digits cannot be told to SentencePiece"
    if vocab.kind not in ("unigram", "bpe"):
        return f"SentencePiece has no {vocab.kind} model"
    if not any(token in vocab.specials for token in ROLES["unk_token"]):
        return "SentencePiece wants an unknown token, and the special tokens have none"
    crossing = next((piece for piece in vocab.pieces if pattern.crosses(piece)), None)
    return f"the piece {crossing!r} crosses a pre-token border" if crossing is not None else ""


def model_proto(vocab: Vocab, pattern: Pattern, *, jamo: bool = False) -> bytes:
    """The serialized ModelProto, the same bytes for the same vocabulary.

    Raises
    ------
    ArtifactError
        When SentencePiece cannot run this tokenizer; says why.
    """
    from sentencepiece import sentencepiece_model_pb2 as proto

    reason = why_not(vocab, pattern)
    if reason:
        raise ArtifactError(f"no tokenizer.model: {reason}")
    kinds = proto.ModelProto.SentencePiece
    model = proto.ModelProto()

    def add(piece: str, score: float, kind: int) -> None:
        row = model.pieces.add()
        row.piece, row.score, row.type = piece, score, kind

    for piece in BYTE_PIECES[: vocab.n_bytes]:
        add(piece, 0.0, kinds.BYTE)
    scores = vocab.scores or [-float(rank) for rank in range(len(vocab.pieces))]
    for piece, score in zip(vocab.pieces, scores, strict=True):
        add(piece, score, kinds.NORMAL)
    roles = {
        role: next((vocab.special_ids[token] for token in ROLES[role] if token in vocab.specials), -1)
        for role in ("unk_token", "bos_token", "eos_token", "pad_token")
    }
    for token in vocab.specials:
        add(token, 0.0, kinds.UNKNOWN if vocab.special_ids[token] == roles["unk_token"] else kinds.CONTROL)

    trainer = model.trainer_spec
    trainer.model_type = proto.TrainerSpec.UNIGRAM if vocab.kind == "unigram" else proto.TrainerSpec.BPE
    trainer.vocab_size = vocab.size
    trainer.byte_fallback = vocab.byte_fallback
    trainer.split_by_whitespace = False
    trainer.unk_id, trainer.bos_id = roles["unk_token"], roles["bos_token"]
    trainer.eos_id, trainer.pad_id = roles["eos_token"], roles["pad_token"]
    tokens = vocab.tokens
    trainer.unk_piece = tokens[roles["unk_token"]]
    if roles["bos_token"] >= 0:
        trainer.bos_piece = tokens[roles["bos_token"]]
    if roles["eos_token"] >= 0:
        trainer.eos_piece = tokens[roles["eos_token"]]
    if roles["pad_token"] >= 0:
        trainer.pad_piece = tokens[roles["pad_token"]]
    model.normalizer_spec.name = "identity"
    if jamo:
        from koktok.jamo import charsmap

        model.normalizer_spec.name = model.denormalizer_spec.name = "koktok_jamo"
        model.normalizer_spec.precompiled_charsmap = charsmap()
        model.denormalizer_spec.precompiled_charsmap = charsmap(back=True)
    for spec in (model.normalizer_spec, model.denormalizer_spec) if jamo else (model.normalizer_spec,):
        spec.add_dummy_prefix = False
        spec.remove_extra_whitespaces = False
        spec.escape_whitespaces = False
    return bytes(model.SerializeToString(deterministic=True))
