"""Tokens of the benchmark that no vocabulary of today needs: Kiwi's SwTokenizer, and lists of characters.

`open_row` knows these references and what `koktok report` knows:

    kiwi-sw:FILE    a vocabulary of Kiwi's SwTokenizer
    plain:FILE      a list of characters
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import ArtifactError
from koktok.files import read_utf8
from koktok.model.note import Note
from koktok.model.tokens import Tokens
from koktok.model.vocab import UNKNOWN
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.folder import IN_A_FOLDER
from koktok.runtimes.huggingface.tokenizer_json import parsed
from koktok.tokenizer.open import load


class Characters(LibraryTokenizer):
    """Characters looked up in a list, a line each."""

    def __init__(self, spec: str, path: Path) -> None:
        raw = path.read_bytes()
        self._pieces = [line for line in raw.decode("utf-8").splitlines() if line]
        self._ids = {piece: i for i, piece in enumerate(self._pieces)}
        unknown = next((self._ids[piece] for piece in UNKNOWN if piece in self._ids), None)
        if unknown is None:
            raise ArtifactError(f"`{spec}` has none of {', '.join(UNKNOWN)} in its list")
        self._unknown, self._space = unknown, next((space for space in ("▁", " ") if space in self._ids), "")
        super().__init__(
            spec,
            path.stem,
            size=len(self._pieces),
            digest=hashlib.sha256(raw).hexdigest()[:16],
            libraries={},
            notes=[
                Note("one token per character", "글자마다 토큰 하나"),
                Note("spaces are tokens", "공백도 토큰")
                if self._space
                else Note("spaces are no tokens", "공백은 토큰이 되지 않음"),
            ],
            unknown_ids={unknown},
            special_ids={i for piece, i in self._ids.items() if len(piece) > 1} - {unknown},
        )

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:  # noqa: ARG002
        return [row.tolist() for row in self.encode_lines(lines)]

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        kept = [[k for k, char in enumerate(line) if self._space or not char.isspace()] for line in lines]
        ids = [
            [self._ids.get(self._space if line[k].isspace() else line[k], self._unknown) for k in row]
            for line, row in zip(lines, kept, strict=True)
        ]
        return Tokens.of(ids, [[(k, k + 1) for k in row] for row in kept], lines)

    def token_bytes(self, i: int) -> bytes | None:
        if i == self._unknown or i in self.special_ids:
            return None
        return b" " if self._pieces[i] == self._space else self._pieces[i].encode()

    @property
    def tokens(self) -> Sequence[str]:
        return self._pieces


def _within(spans: Any, length: int) -> list[tuple[int, int]]:
    """Spans inside the line: kiwipiepy 0.24.1 leaves the end of the last token of some words (노라고) undefined."""
    return [
        (min(start, length), end if start <= end <= length else min(start, length)) for start, end in spans.tolist()
    ]


class KiwiSubwords(LibraryTokenizer):
    """A vocabulary of Kiwi's SwTokenizer."""

    library: ClassVar[str] = "kiwipiepy"

    def __init__(self, spec: str, name: str, path: Path) -> None:
        from kiwipiepy.sw_tokenizer import SwTokenizer

        try:
            self.tokenizer: Any = SwTokenizer(str(path))
        except Exception as error:
            raise ArtifactError(f"`{path}` is not a SwTokenizer vocabulary: {error}") from error
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
            libraries={name: version(name) for name in ("kiwipiepy", "kiwipiepy_model")},
            notes=[
                Note(
                    "Kiwi at run time; morphemes are restored forms, spaces are no tokens",
                    "실행할 때 Kiwi를 씀; 형태소는 원형으로 복원됨, 공백은 토큰이 되지 않음",
                )
            ],
            unknown_ids=self._unknown,
            byte_ids=byte_ids,
            special_ids=controls - self._unknown,
        )

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        found = list(self.tokenizer.encode(iter(lines), return_offsets=True))
        spans = [_within(spans, len(line)) for (_, spans), line in zip(found, lines, strict=True)]
        return Tokens.of([ids.tolist() for ids, _ in found], spans, lines)

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        left_out = self.special_ids if skip_special_tokens else frozenset()
        return str(self.tokenizer.decode([int(i) for i in ids if i not in left_out]))

    def token_bytes(self, i: int) -> bytes | None:
        if i in self.byte_ids:
            return bytes([int(self._pieces[i][3:5], 16)])
        if i in self.special_ids or i in self._unknown or not self._pieces[i]:
            return None
        form, slash, tag = self._pieces[i].rpartition("/")
        return (
            (form if slash and form and tag.replace("-", "").isupper() else self._pieces[i]).removeprefix("##").encode()
        )

    @property
    def tokens(self) -> Sequence[str]:
        return self._pieces


def open_kiwi_sw(spec: str, path: Path) -> KiwiSubwords:
    """The file of a SwTokenizer."""
    parsed(read_utf8(path), str(path))  # Kiwi ends the whole process on what is no JSON
    name = path.resolve().parent.name if path.stem == "tokenizer" else path.stem
    return KiwiSubwords(spec, name, path)


def open_row(spec: str) -> LibraryTokenizer:
    """The tokenizer of a row."""
    kind, _, place = spec.partition(":")
    if kind == "kiwi-sw":
        return open_kiwi_sw(spec, Path(place))
    if kind == "plain":
        return Characters(spec, Path(place))
    path = Path(spec)
    file = next((file for name in IN_A_FOLDER for file in sorted(path.glob(name))), None) if path.is_dir() else path
    if file is not None and file.is_file() and _is_kiwi(file):
        return open_kiwi_sw(spec, file)
    if file is not None and file.is_file() and _is_list(file):
        return Characters(spec, file)
    return load(spec)


def _is_kiwi(file: Path) -> bool:
    kiwi = rb'"simple_tag"|"integrate_allomorph"|"type"\s*:\s*"Kiwi"'
    return file.suffix == ".json" and re.search(kiwi, file.read_bytes()[:4096]) is not None


def _is_list(file: Path) -> bool:
    """Whether a file is a list of characters, and no WordPiece."""
    if file.suffix != ".txt":
        return False
    pieces = read_utf8(file).splitlines()
    words = [piece for piece in pieces if piece and not (piece[0] in "[<" and piece[-1] in "]>")]
    return any(name in pieces for name in UNKNOWN) and max(map(len, words), default=0) == 1
