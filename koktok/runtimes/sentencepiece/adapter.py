"""`sp:`, a SentencePiece model."""

from __future__ import annotations

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
from koktok.runtimes.library import IdsAndSpans, LibraryTokenizer
from koktok.runtimes.sentencepiece.message import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, ModelProto

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
        space = " " if not self.proto.normalizer_spec.escape_whitespaces else "▁"
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
        return normal.replace("▁", " ").removeprefix(" " if spec.add_dummy_prefix else "")

    @property
    def tokens(self) -> Sequence[str]:
        return self._pieces

    def files(self) -> dict[str, str | bytes]:
        """The model, unchanged."""
        return {"tokenizer.model": self.data}


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
