"""Tokenizers without a vocabulary: one token for each syllable, eojeol (어절) or byte, for comparison in reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from koktok.model.note import Note
from koktok.model.tokens import SPACES, Tokens, code_points, running
from koktok.runtimes.library import LibraryTokenizer

Cut = Callable[[Sequence[str]], Sequence[Sequence[tuple[int, int] | tuple[int, int, str]]]]
"""Lines to the spans of their tokens, each with its form if that is not the text of the span."""


class OpenVocabulary(LibraryTokenizer):
    """Tokens that are strings; a new string gets the next id."""

    def __init__(
        self,
        spec: str,
        name: str,
        cut: Cut = lambda _: (),
        *,
        digest: str,
        libraries: dict[str, str] | None = None,
        notes: Sequence[Note] = (),
    ) -> None:
        super().__init__(spec, name, size=None, digest=digest, libraries=libraries or {}, notes=notes)
        self._cut = cut
        self._ids: dict[str, int] = {}
        self._forms: list[str] = []

    def _id(self, form: str) -> int:
        if form not in self._ids:
            self._ids[form] = len(self._forms)
            self._forms.append(form)
        return self._ids[form]

    @property
    def tokens(self) -> Sequence[str]:
        """The strings so far."""
        return self._forms

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:  # noqa: ARG002
        return [row.tolist() for row in self.encode_lines(lines)]

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        ids, spans = [], []
        for line, row in zip(lines, self._cut(lines), strict=True):
            ids.append([self._id(part[2] if len(part) == 3 else line[part[0] : part[1]]) for part in row])
            spans.append([(part[0], part[1]) for part in row])
        return Tokens.of(ids, spans, lines)

    def token_bytes(self, i: int) -> bytes | None:
        return self._forms[i].encode("utf-8", "surrogatepass")


class Bytes(LibraryTokenizer):
    """One token for each byte."""

    def __init__(self, spec: str = "bytes") -> None:
        super().__init__(spec, "bytes", size=256, digest="bytes", libraries={})

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        raws = [line.encode() for line in lines]
        flat = np.frombuffer(b"".join(raws), dtype=np.uint8)
        char_of = (np.cumsum((flat & 0xC0) != 0x80) - 1).astype(np.int64)
        return Tokens(
            flat.astype(np.int64),
            running([len(raw) for raw in raws]),
            char_of,
            char_of + 1,
            running([len(line) for line in lines]),
        )

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:  # noqa: ARG002
        return bytes(int(i) for i in ids).decode("utf-8", "replace")

    def token_bytes(self, i: int) -> bytes | None:
        return bytes([i])

    @cached_property
    def tokens(self) -> Sequence[str]:
        return [f"<0x{i:02X}>" for i in range(256)]


class Characters(OpenVocabulary):
    """One token for each character that is no space."""

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        codes, line_starts = code_points("".join(lines)), running([len(line) for line in lines])
        places = np.flatnonzero(~np.isin(codes, SPACES))
        distinct, first, which = np.unique(codes[places], return_index=True, return_inverse=True)
        for code in distinct[np.argsort(first)].tolist():
            self._id(chr(code))
        ids = np.array([self._ids[chr(code)] for code in distinct.tolist()], np.int64)[which]
        return Tokens(ids, np.searchsorted(places, line_starts), places, places + 1, line_starts)


def _eojeols(lines: Sequence[str]) -> list[list[tuple[int, int]]]:
    return [[match.span() for match in re.finditer(r"\S+", line)] for line in lines]


TRIVIAL: Final[dict[str, Callable[[], LibraryTokenizer]]] = {
    "bytes": Bytes,
    "eojeols": lambda: OpenVocabulary(
        "eojeols",
        "eojeols",
        _eojeols,
        digest="eojeols",
        notes=[Note("one token for each eojeol; spaces are no tokens", "어절마다 토큰 하나; 공백은 토큰이 되지 않음")],
    ),
    "syllables": lambda: Characters(
        "syllables",
        "syllables",
        digest="syllables",
        notes=[
            Note("one token for each character; spaces are no tokens", "글자마다 토큰 하나; 공백은 토큰이 되지 않음")
        ],
    ),
}
"""Functions that open these tokenizers."""
