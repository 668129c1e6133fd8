"""`kiwi`, the analyser as a tokenizer, and `kiwi-sw:`, its morpheme-aware subword vocabularies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import AnalyserError, ArtifactError
from koktok.foreign.base import ForeignTokenizer, Rows
from koktok.foreign.trial import prove
from koktok.foreign.trivial import OpenVocabulary
from koktok.formats.hf import parsed, utf8


def _versions() -> dict[str, str]:
    return {"kiwipiepy": version("kiwipiepy"), "kiwipiepy_model": version("kiwipiepy_model")}


def open_kiwi() -> ForeignTokenizer:
    """Morphemes of Kiwi, read in whole sentences; a fused syllable holds two tokens with one span."""
    from kiwipiepy import Kiwi

    try:
        kiwi = Kiwi(load_multi_dict=False, model_type="cong")
    except Exception as error:
        raise AnalyserError(f"Kiwi could not be loaded: {error}") from error

    def cut(lines: Sequence[str]) -> list[list[tuple[int, int, str]]]:
        return [[(t.start, t.end, t.form) for t in row] for row in kiwi.tokenize(iter(lines))]

    libraries = _versions()
    return OpenVocabulary(
        "kiwi",
        "kiwi",
        cut,
        digest=hashlib.sha256(repr(libraries).encode()).hexdigest()[:16],
        libraries=libraries,
        notes=["analyser at run time; morphemes are restored forms, spaces are no tokens"],
    )


def _within(spans: Any, length: int) -> list[tuple[int, int]]:
    """Spans inside the line: kiwipiepy 0.24.1 leaves the end of the last token of some words (노라고) undefined."""
    return [
        (min(start, length), end if start <= end <= length else min(start, length)) for start, end in spans.tolist()
    ]


class KiwiSubwords(ForeignTokenizer):
    """A vocabulary of Kiwi's SwTokenizer."""

    library: ClassVar[str] = "kiwipiepy"

    def __init__(self, spec: str, name: str, path: Path) -> None:
        from kiwipiepy.sw_tokenizer import SwTokenizer

        prove("kiwipiepy", str(path.resolve()), path.read_bytes(), where=spec)
        try:
            self.tokenizer: Any = SwTokenizer(str(path))
        except Exception as error:
            raise ArtifactError(f"`{path}` is no SwTokenizer vocabulary: {error}") from error
        vocab: dict[str, int] = self.tokenizer.vocab
        self._pieces = [""] * (max(vocab.values()) + 1)
        for piece, i in vocab.items():
            self._pieces[i] = piece
        controls = {i for i in self.tokenizer.all_special_ids if i is not None}
        unknown = self.tokenizer.unk_token_id
        self._unknown = {unknown} if unknown is not None else set()
        byte_ids = {i for i, p in enumerate(self._pieces) if len(p) == 6 and p.startswith("<0x") and p.endswith(">")}
        super().__init__(
            spec,
            name,
            size=len(self._pieces),
            digest=hashlib.sha256(path.read_bytes()).hexdigest()[:16],
            libraries=_versions(),
            notes=["Kiwi at run time; morphemes are restored forms, spaces are no tokens"],
            unknown_ids=self._unknown,
            byte_ids=byte_ids,
            special_ids=controls - self._unknown,
        )

    def encode(self, lines: Sequence[str]) -> Rows:
        """As `ForeignTokenizer.encode`."""
        found = list(self.tokenizer.encode(iter(lines), return_offsets=True))
        spans = [_within(spans, len(line)) for (_, spans), line in zip(found, lines, strict=True)]
        return Rows.of([ids.tolist() for ids, _ in found], spans, lines)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:
        """As `ForeignTokenizer.decode`."""
        left_out = self.special_ids if skip_special_tokens else frozenset()
        return str(self.tokenizer.decode([int(i) for i in ids if i not in left_out]))

    def token_bytes(self, i: int) -> bytes | None:
        """As `ForeignTokenizer.token_bytes`: the form without its tag."""
        if i in self.byte_ids:
            return bytes([int(self._pieces[i][3:5], 16)])
        if i in self.special_ids or i in self._unknown or not self._pieces[i]:
            return None
        form, slash, tag = self._pieces[i].rpartition("/")
        return (
            (form if slash and form and tag.replace("-", "").isupper() else self._pieces[i]).removeprefix("##").encode()
        )

    def piece(self, i: int) -> str:
        """As `ForeignTokenizer.piece`."""
        return self._pieces[i]


def open_kiwi_sw(spec: str, path: Path) -> KiwiSubwords:
    """The file of a SwTokenizer."""
    parsed(utf8(path), str(path))  # Kiwi ends the whole process on what is no JSON
    name = path.resolve().parent.name if path.stem == "tokenizer" else path.stem
    return KiwiSubwords(spec, name, path)
