"""`sp:`, a SentencePiece model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from koktok.errors import InputError, KoktokError
from koktok.foreign.base import Rows, Subject
from koktok.foreign.engines import asking
from koktok.foreign.spans import ByteTable, Spans, rows_by_bytes
from koktok.foreign.trial import prove

__all__ = ["SentencePiece", "open_sp"]

MARK = "▃"
"""How the vocabularies trained on MeCab's output write the spaces of the text."""


class SentencePiece(Subject):
    """A tokenizer.model.

    Parameters
    ----------
    spec, name, notes
        As in `Subject`.
    model : bytes
        The file.
    """

    def __init__(self, spec: str, name: str, model: bytes, *, notes: Sequence[str] = ()) -> None:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2

        try:
            form = sentencepiece_model_pb2.ModelProto.FromString(model)
            if not form.pieces:  # the library takes an empty file for a model
                raise InputError(f"`{spec}` is no SentencePiece model: it holds no piece")
            prove("sentencepiece", model, where=spec)
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except KoktokError:
            raise
        except Exception as error:
            raise InputError(f"`{spec}` is no SentencePiece model: {error}") from error
        space = " " if not form.normalizer_spec.escape_whitespaces else "▁"
        self._pieces = [piece.piece for piece in form.pieces]
        kinds = [piece.type for piece in form.pieces]
        of_kind = {kind: {i for i, k in enumerate(kinds) if k == kind} for kind in (2, 3, 5, 6)}
        self._silent = of_kind[2] | of_kind[3] | of_kind[5]
        self._table = [
            b""
            if i in self._silent
            else bytes([int(piece[3:5], 16)])
            if i in of_kind[6]
            else piece.replace(space, " ").encode()
            for i, piece in enumerate(self._pieces)
        ]
        self._bytes = ByteTable(self._table)
        self._scores = [piece.score for piece in form.pieces] if form.trainer_spec.model_type == 1 else []
        rule = form.normalizer_spec.name
        more = [f"normalizes by {rule}"] if rule != "identity" else []
        if form.normalizer_spec.remove_extra_whitespaces:
            more.append("drops repeated spaces")
        super().__init__(
            spec,
            name,
            size=len(self._pieces),
            digest=hashlib.sha256(model).hexdigest()[:16],
            libraries={"sentencepiece": version("sentencepiece")},
            notes=[*notes, *more],
            unknown_ids=of_kind[2],
            byte_ids=of_kind[6],
            special_ids=of_kind[3],
        )

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `Subject.encode`."""
        with asking("sentencepiece"):
            ids = self.processor.encode(list(lines), return_type=int)

        def offsets(which: list[int]) -> list[Spans]:
            return [self.processor.encode(lines[k], return_type="offset_mapping")["offsets"] for k in which]

        return rows_by_bytes(lines, ids, self._bytes, offsets)

    def decode(self, ids: Sequence[int]) -> str | None:
        """As `Subject.decode`."""
        return str(self.processor.decode([int(i) for i in ids]))

    def token_bytes(self, i: int) -> bytes | None:
        """As `Subject.token_bytes`."""
        return None if i in self._silent else self._table[i]

    def piece(self, i: int) -> str:
        """As `Subject.piece`."""
        return str(self._pieces[i])

    def unigram(self) -> dict[str, float] | None:
        """As `Subject.unigram`."""
        pairs = zip(self._table, self._scores, strict=False)
        return {text.decode("utf-8", "ignore"): score for text, score in pairs if text} or None


def open_sp(spec: str, path: Path) -> Subject:
    """A .model file, or the folder that holds one; models trained on MeCab's output get it as input."""
    if path.is_dir():
        inside = sorted(path.glob("*.model"))
        if not inside:
            raise InputError(f"`{path}` holds no .model file", hint=f"sp:{path}/tokenizer.model")
        path = inside[0]
    name = path.resolve().parent.name if path.stem in ("tok", "tokenizer", "spiece", "m") else path.stem
    subject = SentencePiece(spec, name, path.read_bytes())
    if MARK in subject._pieces or f"▁{MARK}" in subject._pieces:
        from koktok.foreign.analysers import mecab_spans, mecab_version
        from koktok.foreign.rewriting import Adapted, marked_morphemes

        def undo(text: str) -> str:
            return text.replace(" ", "").replace(MARK, " ")

        return Adapted(
            subject,
            marked_morphemes(mecab_spans(), MARK),
            note=f"input segmented by MeCab-ko {mecab_version()}, spaces as {MARK}, which are tokens",
            undo=undo,
            libraries={"python-mecab-ko": mecab_version()},
        )
    return subject
