"""What the vocabulary cannot write: unknown tokens, counted three ways, and the bytes that stand in for characters."""

from __future__ import annotations

from typing import Any

import numpy as np

from koktok.foreign.base import ForeignTokenizer, Ints, Rows
from koktok.metrics.registry import metric, ratio
from koktok.metrics.tokens import Page, Tokens


def columns(page: Page, tokens: Tokens, tokenizer: ForeignTokenizer) -> dict[str, Ints]:
    """The counts of each line that this family sums."""
    rows = tokens.rows
    none = np.zeros(len(page), dtype=np.int64)
    found = {"unknown_tokens": none, "unknown_chars": none, "unknown_eojeols": none, "byte_tokens": none}
    if tokenizer.byte_ids:
        found["byte_tokens"] = tokens.per_line_of(_among(rows.ids, tokenizer.byte_ids))
    if tokenizer.unknown_ids:
        unknown = _among(rows.ids, tokenizer.unknown_ids)
        if unknown.any():
            only = Rows(rows.ids[unknown], rows.starts[unknown], rows.ends[unknown], rows.indptr, rows.line_starts)
            bad = Tokens(page, only)
            found["unknown_tokens"] = tokens.per_line_of(unknown)
            found["unknown_chars"] = page.per_line(bad.covered & ~page.space)
            found["unknown_eojeols"] = page.per_eojeol_line(bad.over(page.eojeol_starts, page.eojeol_ends) > 0)
    return found


def _among(ids: Ints, wanted: frozenset[int]) -> Any:
    table = np.zeros(max(int(ids.max(initial=0)), *wanted) + 1, dtype=bool)
    table[list(wanted)] = True
    return table[ids]


@metric("M9a", ko="미등록 토큰 비율", unit="share", better="lower")
def unknown_tokens(s: Any) -> Any:
    """Unknown tokens.

    Definition: unknown tokens / tokens.
    Source: KorTok (Park et al. 2020).
    Pitfalls: WordPiece turns a whole eojeol into one unknown token, so this understates: read M9b and M9c.
    """
    return ratio(s["unknown_tokens"], s["tokens"])


@metric("M9b", ko="미등록 글자 비율", unit="share", better="lower")
def unknown_chars(s: Any) -> Any:
    """Characters inside unknown tokens.

    Definition: characters, spaces apart, that an unknown token covers / characters, spaces apart.
    Source: Petrov et al. 2023.
    Pitfalls: SentencePiece joins neighbouring unknown characters into one token, WordPiece takes the whole word.
    """
    return ratio(s["unknown_chars"], s["chars_solid"])


@metric("M9c", ko="미등록 어절 비율", unit="share", better="lower")
def unknown_eojeols(s: Any) -> Any:
    """Eojeols with an unknown token.

    Definition: eojeols of which an unknown token covers a character / eojeols.
    Source: this suite.
    Pitfalls: none; the one to quote.
    """
    return ratio(s["unknown_eojeols"], s["eojeols"])


@metric("M9d", ko="바이트 대체 토큰 비율", unit="share", better="lower")
def fallback_bytes(s: Any) -> Any:
    """Tokens of byte fallback.

    Definition: tokens of the pieces `<0x00>` to `<0xFF>` / tokens.
    Source: this suite.
    Pitfalls: 0 for byte-level BPE, whose alphabet are bytes; its broken characters are in M21b.
    """
    return ratio(s["byte_tokens"], s["tokens"])
