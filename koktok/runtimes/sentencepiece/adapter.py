"""`sp:`, a SentencePiece model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import ArtifactError, asking
from koktok.files import read_bounded
from koktok.model.note import Note
from koktok.model.tokens import ByteTable
from koktok.model.vocab import SPACE_MARK
from koktok.runtimes import gguf
from koktok.runtimes.huggingface.tokenizer_json import added_nodes, bpe_node, whole_json
from koktok.runtimes.library import IdsAndSpans, LibraryTokenizer
from koktok.runtimes.sentencepiece.message import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ModelProto,
)

_HINT = "a SentencePiece model is the .model file of spm_train"


class SentencePiece(LibraryTokenizer):
    """A tokenizer.model."""

    library: ClassVar[str] = "sentencepiece"

    def __init__(
        self,
        data: bytes,
        *,
        spec: str = "tokenizer.model",
        name: str = "tokenizer",
        notes: Sequence[Note] = (),
    ) -> None:
        import sentencepiece

        self.data = data
        try:
            self.proto = ModelProto(data)
            self._pieces = [row.piece for row in self.proto.pieces]
        except ValueError as error:
            raise ArtifactError(f"`{spec}` is not a SentencePiece model: {error}", hint=_HINT) from error
        if not self.proto.whole:
            raise ArtifactError(f"`{spec}` is not a SentencePiece model, or it is cut short", hint=_HINT)
        sentencepiece.set_min_log_level(2)
        with asking(self.library, spec, _HINT):
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        of_type: dict[int, set[int]] = {}
        for i, row in enumerate(self.proto.pieces):
            of_type.setdefault(row.type, set()).add(i)
        self._silent = of_type.get(CONTROL, set()) | of_type.get(UNUSED, set())
        normalizer = self.proto.normalizer_spec
        own_notes = {
            Note(f"normalizes by {normalizer.name}", f"{normalizer.name}로 정규화함"): normalizer.name != "identity",
            Note("drops repeated spaces", "연속된 공백을 하나로 줄임"): normalizer.remove_extra_whitespaces,
        }
        super().__init__(
            spec,
            name,
            size=len(self._pieces),
            digest=hashlib.sha256(data).hexdigest()[:16],
            libraries={"sentencepiece": version("sentencepiece")},
            notes=list(dict.fromkeys([*notes, *(note for note, holds in own_notes.items() if holds)])),
            unknown_ids=of_type.get(UNKNOWN, set()),
            byte_ids=of_type.get(BYTE, set()),
            special_ids=of_type.get(CONTROL, set()),
        )
        self._silent |= self.unknown_ids

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            partial(SentencePiece, spec=self.spec, name=self.name, notes=self.notes),
            (self.data,),
            {"signature": self.signature},
        )

    @property
    def own_normalizer(self) -> bool:
        """Whether it changes any text."""
        return str(self._processor.normalize("\ufeff")) != "\ufeff"

    @cached_property
    def byte_table(self) -> ByteTable:
        space = " " if not self.proto.normalizer_spec.escape_whitespaces else SPACE_MARK
        return ByteTable(
            [
                b""
                if i in self._silent
                else bytes([int(piece[3:5], 16)])
                if i in self.byte_ids
                else piece.replace(space, " ").encode()
                for i, piece in enumerate(self._pieces)
            ]
        )

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:  # noqa: ARG002
        with asking(self.library):
            return list(self._processor.encode(list(lines), return_type=int))

    def read(self, text: str, *, specials: bool = False, template: bool = False) -> IdsAndSpans:  # noqa: ARG002
        with asking(self.library):
            mapping = self._processor.encode(text, return_type="offset_mapping")
        return list(mapping["ids"]), [(int(a), int(b)) for a, b in mapping["offsets"]]

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text; the library drops control symbols, so the ids between them are decoded one run at a time."""
        if skip_special_tokens or not self.special_ids.intersection(ids):
            unknown = self.unknown_ids if skip_special_tokens else frozenset()
            return str(self._processor.decode([int(i) for i in ids if i not in unknown]))
        parts: list[str] = []
        for special, run in groupby(map(int, ids), self.special_ids.__contains__):
            row = list(run)
            parts += map(self._pieces.__getitem__, row) if special else [str(self._processor.decode(row))]
        return "".join(parts)

    def normalize(self, text: str) -> str:
        """The text after the library's normalizer, with spaces as spaces."""
        normal = str(self._processor.normalize(text))
        spec = self.proto.normalizer_spec
        if not spec.escape_whitespaces:
            return normal
        return normal.replace(SPACE_MARK, " ").removeprefix(" " if spec.add_dummy_prefix else "")

    @property
    def tokens(self) -> Sequence[str]:
        return self._pieces

    def files(self) -> dict[str, str | bytes]:
        """The model, unchanged."""
        return {"tokenizer.model": self.data}

    def tokenizer_json(self) -> dict[str, Any]:
        """A tokenizer.json that does the same: nodes of Hugging Face in place of SentencePiece's rules."""
        proto = self.proto
        trainer, spec = proto.trainer_spec, proto.normalizer_spec
        if trainer.model_type not in (UNIGRAM, BPE) or trainer.treat_whitespace_as_suffix:
            raise ArtifactError("no tokenizer.json for word or character models, nor for spaces as suffixes")
        steps: list[dict[str, Any]] = []
        if spec.precompiled_charsmap:
            packed = base64.b64encode(spec.precompiled_charsmap).decode("ascii")
            steps.append({"type": "Precompiled", "precompiled_charsmap": packed})
        if spec.remove_extra_whitespaces:
            steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
            steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
        space = SPACE_MARK if spec.escape_whitespaces else " "
        if spec.add_dummy_prefix:
            steps.append({"type": "Prepend", "prepend": " "})
        if spec.escape_whitespaces:
            steps.append({"type": "Replace", "pattern": {"String": " "}, "content": space})
        decoders: list[dict[str, Any]] = [{"type": "ByteFallback"}, {"type": "Fuse"}]
        if spec.escape_whitespaces:
            decoders.insert(0, {"type": "Replace", "pattern": {"String": space}, "content": " "})
        if spec.add_dummy_prefix:
            decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        scores = {row.piece: row.score for row in proto.pieces if row.type in (NORMAL, USER_DEFINED)}
        lowest = min((row.score for row in proto.pieces if row.type == NORMAL), default=0.0)
        if trainer.model_type == UNIGRAM:
            # Hugging Face matches every row in text, SentencePiece only normal ones: the others get the lowest score.
            model: dict[str, Any] = {
                "type": "Unigram",
                "unk_id": self.unknown,
                "vocab": [[row.piece, scores.get(row.piece, lowest)] for row in proto.pieces],
                "byte_fallback": trainer.byte_fallback,
            }
        else:
            model = bpe_node(
                {row.piece: i for i, row in enumerate(proto.pieces)},
                sorted(scores, key=lambda piece: -scores[piece]),
                unknown=self.tokens[self.unknown or 0],
                byte_fallback=trainer.byte_fallback,
            )
        user_defined = {row.piece: i for i, row in enumerate(proto.pieces) if row.type == USER_DEFINED}
        return whole_json(
            added_tokens=added_nodes(self.specials, user_defined),
            normalizer={"type": "Sequence", "normalizers": steps} if steps else None,
            decoder={"type": "Sequence", "decoders": decoders},
            model=model,
        )

    def gguf_vocab(self) -> gguf.GgufVocab:
        """The vocabulary for llama.cpp, which runs unigram and BPE models."""
        proto = self.proto
        trainer, spec = proto.trainer_spec, proto.normalizer_spec
        if trainer.model_type not in (UNIGRAM, BPE) or trainer.treat_whitespace_as_suffix:
            raise ArtifactError("no GGUF: llama.cpp runs unigram and BPE models with spaces as prefixes only")
        unigram = trainer.model_type == UNIGRAM
        if not unigram and not trainer.byte_fallback:
            raise ArtifactError(
                "no GGUF: llama.cpp's BPE over characters requires byte pieces, and this model has none"
            )
        tokens = tuple(self.tokens)
        types = tuple(row.type for row in proto.pieces)
        symbols = [token for token, kind in zip(tokens, types, strict=True) if kind == gguf.USER_DEFINED]
        beyond = next((token for token in symbols if not token.isascii()), None)
        if unigram and beyond is not None:
            # It matches the longest *beginning* of a symbol, byte by byte: after ㅋㅋ it leaves half of ㄹ.
            raise ArtifactError(
                f"no GGUF: llama.cpp breaks characters that begin with the bytes of the user-defined symbol {beyond!r}",
                hint="user-defined symbols in ASCII are fine",
            )
        if not spec.escape_whitespaces:
            if any(SPACE_MARK in token for token in tokens):
                raise ArtifactError("no GGUF: llama.cpp writes a space as ▁, and this model has both")
            tokens = tuple(token.replace(" ", SPACE_MARK) for token in tokens)
        ids = {"bos": trainer.bos_id, "eos": trainer.eos_id, "pad": trainer.pad_id, "unk": trainer.unk_id}
        return gguf.GgufVocab(
            model="t5" if unigram else "llama",
            pre="default",
            tokens=tokens,
            scores=tuple(row.score for row in proto.pieces),
            types=types,
            roles={role: i for role, i in ids.items() if i >= 0},
            charsmap=bytes(spec.precompiled_charsmap) if unigram else b"",
            add_space_prefix=spec.add_dummy_prefix,
            remove_extra_whitespaces=spec.remove_extra_whitespaces,
        )


def open_sp(spec: str, path: Path) -> SentencePiece:
    """A .model file."""
    name = path.resolve().parent.name if path.stem in ("tok", "tokenizer", "spiece", "m") else path.stem
    return SentencePiece(read_bounded(path), spec=spec, name=name)


def with_tokens(data: bytes, added: Iterable[Mapping[str, Any]]) -> bytes | None:
    """A model with the added tokens of a tokenizer.json: special ones as control symbols, others as user-defined ones.

    None if one of them has the id of another piece, or one after a gap.
    """
    proto, same = ModelProto(data), True
    for token in sorted(added, key=lambda row: int(row["id"])):
        kind, i = CONTROL if token["special"] else USER_DEFINED, int(token["id"])
        if i == len(proto.pieces):
            proto.add(token["content"], 0.0, kind)
        elif i > len(proto.pieces) or proto.pieces[i].piece != token["content"]:
            return None
        elif (piece := proto.pieces[i]).type in (NORMAL, UNUSED):
            piece.type = kind
        else:
            continue
        same = False
    if same:
        return data
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return proto.serialized()
