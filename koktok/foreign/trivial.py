"""Rows that need no vocabulary: one token a syllable, an eojeol, a byte. Every table of boundary scores needs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from koktok.foreign.library import LibraryTokenizer
from koktok.tokenizer.tokens import SPACES, Tokens, code_points, running

Cut = Callable[[str], list[tuple[int, int]]]


class OpenVocabulary(LibraryTokenizer):
    """Tokens that are strings, numbered as they come."""

    def __init__(
        self,
        spec: str,
        name: str,
        cut: Callable[[Sequence[str]], Sequence[Sequence[tuple[int, int] | tuple[int, int, str]]]] = lambda _: (),
        *,
        digest: str,
        libraries: dict[str, str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(spec, name, size=None, digest=digest, libraries=libraries or {}, notes=notes)
        self._cut = cut
        self._ids: dict[str, int] = {}
        self._forms: list[str] = []

    @property
    def tokens(self) -> Sequence[str]:
        """The strings so far."""
        return self._forms

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        ids, spans = [], []
        for line, row in zip(lines, self._cut(lines), strict=True):
            forms = [part[2] if len(part) == 3 else line[part[0] : part[1]] for part in row]
            for form in forms:
                if form not in self._ids:
                    self._ids[form] = len(self._forms)
                    self._forms.append(form)
            ids.append([self._ids[form] for form in forms])
            spans.append([(part[0], part[1]) for part in row])
        return Tokens.of(ids, spans, lines)

    def token_bytes(self, i: int) -> bytes | None:
        return self._forms[i].encode("utf-8", "surrogatepass")


class Bytes(LibraryTokenizer):
    """One token a byte."""

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

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:  # noqa: ARG002
        return bytes(int(i) for i in ids).decode("utf-8", "replace")

    def token_bytes(self, i: int) -> bytes | None:
        return bytes([i])

    def piece(self, i: int) -> str:
        return f"<0x{i:02X}>"


class Characters(OpenVocabulary):
    """One token a character that is no space."""

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        codes, line_starts = code_points("".join(lines)), running([len(line) for line in lines])
        places = np.flatnonzero(~np.isin(codes, SPACES))
        found, first, which = np.unique(codes[places], return_index=True, return_inverse=True)
        for code in found[np.argsort(first)].tolist():
            if (form := chr(code)) not in self._ids:
                self._ids[form] = len(self._forms)
                self._forms.append(form)
        ids = np.array([self._ids[chr(code)] for code in found.tolist()], np.int64)[which]
        return Tokens(ids, np.searchsorted(places, line_starts), places, places + 1, line_starts)


def _eojeols(lines: Sequence[str]) -> list[list[tuple[int, int]]]:
    return [[found.span() for found in re.finditer(r"\S+", line)] for line in lines]


TRIVIAL: Final[dict[str, Callable[[], LibraryTokenizer]]] = {
    "bytes": Bytes,
    "eojeols": lambda: OpenVocabulary(
        "eojeols", "eojeols", _eojeols, digest="eojeols", notes=["one token an eojeol; spaces are no tokens"]
    ),
    "syllables": lambda: Characters(
        "syllables", "syllables", digest="syllables", notes=["one token a character; spaces are no tokens"]
    ),
}
"""Openers of the trivial rows."""
