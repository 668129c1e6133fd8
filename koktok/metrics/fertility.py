"""Fertility and compression: how many tokens a text costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from koktok.foreign.base import Ints
from koktok.metrics.registry import metric, ratio
from koktok.metrics.tokens import Page, Tokens

LONG = 8
"""Syllables above which a token counts as long."""


def columns(page: Page, tokens: Tokens) -> dict[str, Ints]:
    """The counts of each line that this family sums."""
    rows = tokens.rows
    starts, ends = page.eojeol_starts, page.eojeol_ends
    over = tokens.over(starts, ends)
    hangul = page.hangul_before
    syllables = hangul[rows.ends] - hangul[rows.starts]
    # A gap is the place behind an eojeol that another one follows in its line: there a prompt may end.
    gap = np.zeros(len(page.codes) + 1, dtype=bool)
    followed = page.eojeol_lines[:-1] == page.eojeol_lines[1:]
    gap[ends[:-1][followed]] = True
    spaces = np.concatenate([[0], np.cumsum(page.space)])
    inner = (rows.ends - rows.starts > 2) & (
        spaces[np.maximum(rows.ends - 1, 0)] - spaces[np.minimum(rows.starts + 1, len(page.codes))] > 0
    )
    overlap = np.zeros(len(rows.ids), dtype=bool)
    overlap[1:] = rows.starts[1:] < rows.ends[:-1]
    return {
        "tokens": tokens.per_line,
        "eojeols": page.eojeols,
        "chars": np.diff(page.line_starts),
        "chars_solid": page.per_line(~page.space),
        "bytes": page.per_line(page.bytes_per_char),
        "hangul_eojeols": page.per_eojeol_line(hangul[ends] > hangul[starts]),
        "hangul_tokens": tokens.per_line_of(syllables > 0),
        "continued": page.per_eojeol_line(over > 1),
        "whole": page.per_eojeol_line(over == 1),
        "one_syllable": tokens.per_line_of((syllables == 1) & (rows.ends - rows.starts <= 2)),
        "long": tokens.per_line_of(syllables > LONG),
        "inner_space": tokens.per_line_of(inner),
        "gaps": page.per_line(gap[:-1]),
        "hidden_gaps": page.per_line((gap & tokens.crossed)[:-1]),
        "split_chars": tokens.per_line_of(overlap),
    }


@metric("M1", ko="어절당 토큰 수", unit="tokens/eojeol", better="lower")
def fertility(s: Any) -> Any:
    """Tokens per eojeol.

    Definition: all tokens / eojeols (whitespace words) of the NFC text, summed over all lines before dividing.
    Source: Rust et al. 2021 (fertility), whose word is the UD word.
    Pitfalls: an eojeol is no UD word; informal text leaves out spaces, so its eojeols are longer. Never compare across
    corpora. An unknown token for a whole eojeol makes it look good: read it beside M9.
    """
    return ratio(s["tokens"], s["eojeols"])


@metric("M3", ko="한글 어절당 한글 토큰 수", unit="tokens/eojeol", better="lower")
def hangul_fertility(s: Any) -> Any:
    """Tokens with Hangul per eojeol with Hangul.

    Definition: tokens that cover at least one Hangul syllable / eojeols that hold at least one.
    Source: this suite.
    Pitfalls: takes away what tokenizers decide about punctuation and digits, nothing else.
    """
    return ratio(s["hangul_tokens"], s["hangul_eojeols"])


@metric("M4a", ko="토큰당 글자 수", unit="chars/token", better="higher")
def chars_per_token(s: Any) -> Any:
    """Characters per token.

    Definition: code points of the NFC text, spaces included / tokens.
    Source: common practice (compression rate).
    Pitfalls: NFD has two to three times as many code points; only NFC figures compare.
    """
    return ratio(s["chars"], s["tokens"])


@metric("M4b", ko="토큰당 바이트 수", unit="bytes/token", better="higher")
def bytes_per_token(s: Any) -> Any:
    """UTF-8 bytes per token.

    Definition: UTF-8 bytes of the NFC text, spaces included / tokens.
    Source: common practice (compression rate).
    Pitfalls: a syllable is three bytes, so Korean looks up to three times better than English: use it within Korean.
    """
    return ratio(s["bytes"], s["tokens"])


@metric("M4c", ko="글자당 토큰 수", unit="tokens/char", better="lower")
def tokens_per_char(s: Any) -> Any:
    """Tokens per character.

    Definition: tokens / code points of the NFC text, spaces included.
    Source: common practice.
    Pitfalls: as M4a.
    """
    return ratio(s["tokens"], s["chars"])


@metric("M4d", ko="바이트당 토큰 수", unit="tokens/byte", better="lower")
def tokens_per_byte(s: Any) -> Any:
    """Tokens per UTF-8 byte.

    Definition: tokens / UTF-8 bytes of the NFC text, spaces included.
    Source: common practice.
    Pitfalls: as M4b.
    """
    return ratio(s["tokens"], s["bytes"])


@metric("M4e", ko="원문 대비 토큰 열의 크기", unit="ratio", better="lower", optional="id_bits")
def coded_size(s: Any) -> Any:
    """Size of the ids against raw UTF-8.

    Definition: tokens · log2(vocabulary size) / 8 / UTF-8 bytes: the ids in as few bits as equal lengths allow.
    Source: information theory; what an id costs without an entropy coder.
    Pitfalls: not defined for an open vocabulary; an unknown token costs as much as any other but tells nothing.
    """
    return ratio(s["id_bits"], 8 * s["bytes"])


@metric("M4f", ko="gzip 대비 크기", unit="ratio", better="lower", needs="sample", table="packed")
def coded_size_gzip(s: Any) -> Any:
    """Size of the ids against gzip.

    Definition: tokens · log2(vocabulary size) / 8 / bytes of each domain of the sample compressed with zlib level 9.
    Source: this suite.
    Pitfalls: gzip has to learn the text it compresses; short samples flatter the tokenizer.
    """
    return ratio(s["id_bits"], 8 * s["gzip"])


@metric("M4g", ko="zstd 대비 크기", unit="ratio", better="lower", needs="sample", table="packed", optional="zstd")
def coded_size_zstd(s: Any) -> Any:
    """Size of the ids against zstd.

    Definition: tokens · log2(vocabulary size) / 8 / bytes of each domain of the sample compressed with zstd level 19.
    Source: this suite.
    Pitfalls: as M4f; before Python 3.14 it needs the extra `zstd`.
    """
    return ratio(s["id_bits"], 8 * s["zstd"])


@metric("M5", ko="정규화 토큰 열 길이", unit="ratio", better="lower", needs="reference", optional="reference_tokens")
def nsl(s: Any) -> Any:
    """Normalized sequence length.

    Definition: tokens / tokens of the reference tokenizer on the same lines.
    Source: Dagan et al. 2024.
    Pitfalls: says nothing without the name of the reference, which stands in the signature.
    """
    return ratio(s["tokens"], s["reference_tokens"])


@metric("M6a", ko="병렬문 토큰 비율", unit="ratio", better="one", needs="parallel", table="parallel")
def parity(s: Any) -> Any:
    """Korean tokens per English token on parallel lines.

    Definition: tokens of the Korean lines / tokens of the English lines that say the same.
    Source: Petrov et al. 2023 (premium).
    Pitfalls: depends on the style of the translation.
    """
    return ratio(s["tokens"], s["other_tokens"])


@metric("M6b", ko="병렬문 한국어 할증", unit="ratio", better="one", needs="parallel", table="parallel")
def premium(s: Any) -> Any:
    """Mean premium of a Korean line.

    Definition: mean over parallel lines of Korean tokens / English tokens.
    Source: Petrov et al. 2023, per line.
    Pitfalls: short lines weigh as much as long ones; M6a does not have that.
    """
    return ratio(s["premium"], s["pairs"])


@metric("M6c", ko="영어 단어당 토큰 수", unit="tokens/word", better="lower", needs="english", table="english")
def english_fertility(s: Any) -> Any:
    """Tokens per English word.

    Definition: tokens / whitespace words of the English text.
    Source: common practice.
    Pitfalls: as M1; a Korean vocabulary pays for its Korean pieces here.
    """
    return ratio(s["tokens"], s["eojeols"])


@metric("M6d", ko="코드 바이트당 토큰 수", unit="tokens/byte", better="lower", needs="code", table="code")
def code_tokens_per_byte(s: Any) -> Any:
    """Tokens per byte of code.

    Definition: tokens / UTF-8 bytes of program text, indentation included.
    Source: common practice.
    Pitfalls: tokenizers that drop spaces look good here and cannot give the code back: read it beside M23.
    """
    return ratio(s["tokens"], s["bytes"])


@metric("M7", ko="둘 이상으로 나뉜 어절 비율", unit="share", better="none")
def pcw(s: Any) -> Any:
    """Proportion of continued eojeols.

    Definition: eojeols that share characters with two or more tokens / eojeols. A lone space token counts for none.
    Source: Rust et al. 2021 (proportion of continued words).
    Pitfalls: low means fewer tokens but also swallowed particles; never a score by itself.
    """
    return ratio(s["continued"], s["eojeols"])


@metric("M20a", ko="한 음절 토큰 비율", unit="share", better="none")
def one_syllable_share(s: Any) -> Any:
    """Share of tokens of one syllable.

    Definition: tokens with exactly one Hangul syllable and at most one character beside it / tokens with Hangul.
    Source: common practice; the shortest view of fragmentation.
    Pitfalls: many particles are one syllable, so 0 is no aim.
    """
    return ratio(s["one_syllable"], s["hangul_tokens"])


@metric("M20b", ko="공백을 품은 토큰 비율", unit="share", better="none")
def inner_space_share(s: Any) -> Any:
    """Share of tokens with a space inside.

    Definition: tokens with white space after their first and before their last character / tokens.
    Source: this suite; superwords.
    Pitfalls: runs of spaces in code count too when they are three or longer.
    """
    return ratio(s["inner_space"], s["tokens"])


@metric("M20c", ko="긴 토큰 비율", unit="share", better="none")
def long_share(s: Any) -> Any:
    """Share of tokens with more than eight syllables.

    Definition: tokens with more than 8 Hangul syllables / tokens.
    Source: this suite.
    Pitfalls: an unknown token for a long eojeol is one of them.
    """
    return ratio(s["long"], s["tokens"])


@metric("M21c", ko="글자 안에서 나뉜 비율", unit="cuts/char", better="lower")
def split_characters(s: Any) -> Any:
    """Cuts inside a character per character.

    Definition: neighbouring tokens that both hold a part of one character / code points.
    Source: this suite; bytes and jamo.
    Pitfalls: for analysers this counts fused syllables, which two morphemes share.
    """
    return ratio(s["split_chars"], s["chars"])


@metric("M24a", ko="토큰 안에 숨은 어절 경계", unit="share", better="lower")
def hidden_gaps(s: Any) -> Any:
    """Ends of eojeols that lie inside a token.

    Definition: places behind an eojeol that another one of its line follows, strictly inside a token / all such places.
    Source: the prefix alignment of arXiv 2601.23223.
    Pitfalls: the price of superwords, and of pieces that end with a space: a prompt that stops there is read otherwise.
    """
    return ratio(s["hidden_gaps"], s["gaps"])


@metric("M27a", ko="분야별 어절당 토큰 수의 폭", unit="tokens/eojeol", better="lower", table="domains")
def domain_spread(s: Any) -> Any:
    """Spread of fertility over domains.

    Definition: largest − smallest tokens per eojeol over the domains (files) of the text.
    Source: this suite.
    Pitfalls: domains differ by nature; compare tokenizers on the same domains only. No interval.
    """
    return s["fertility_max"] - s["fertility_min"]


@metric("M27b", ko="가장 불리한 분야의 비율", unit="ratio", better="lower", table="domains")
def worst_domain(s: Any) -> Any:
    """Worst domain against all.

    Definition: largest tokens per eojeol of a domain / tokens per eojeol of the whole text.
    Source: this suite.
    Pitfalls: as M27a.
    """
    return ratio(s["fertility_max"], s["fertility"])
