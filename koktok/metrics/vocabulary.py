"""What the vocabulary itself shows, without a text: words it keeps whole, broken and unreachable pieces, safety."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from koktok.foreign.base import ForeignTokenizer
from koktok.metrics.registry import metric, ratio
from koktok.metrics.wordlists import ENDINGS, NOUNS, VERBS

CONTEXTS: Final = ("", "가", "a", "1", ".", " ", "\n")
"""What stands before a piece while its reach is tried: nothing, a syllable, a letter, a digit, a mark, a space."""

CONTROLS: Final = (
    "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "<|endoftext|>",
    "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<|begin▁of▁sentence|>", "<bos>", "<eos>",
)  # fmt: skip
"""Spellings of control tokens that users and attackers type."""

FULLWIDTH: Final = {ord(c): ord(c) + 0xFEE0 for c in "<>|[]/"}
SLICE: Final = 50_000
"""Pieces that are tried at once."""


def reachable(tokenizer: ForeignTokenizer) -> np.ndarray[Any, np.dtype[np.int8]]:
    """For each id: 1 where some text makes it, 0 where none was found, −1 where it cannot be asked.

    Every piece that is valid UTF-8 is written by itself and behind each of `CONTEXTS`; what comes back is reached.
    Broken bytes, the pieces of byte fallback (spare by nature), special and unknown ids cannot be asked.

    Raises
    ------
    ValueError
        For an open vocabulary.
    """
    if tokenizer.size is None:
        raise ValueError(f"{tokenizer.spec} has an open vocabulary")
    found = np.full(tokenizer.size, -1, dtype=np.int8)
    texts: list[str] = []
    wanted: list[int] = []

    def ask() -> None:
        for context in CONTEXTS:
            left = [k for k, i in enumerate(wanted) if found[i] == 0]
            if left:
                rows = tokenizer.encode([context + texts[k] for k in left])
                found[rows.ids[found[rows.ids] == 0]] = 1
        texts.clear()
        wanted.clear()

    silent = tokenizer.special_ids | tokenizer.unknown_ids | tokenizer.byte_ids
    for i in range(tokenizer.size):
        if i in silent:
            continue
        written = tokenizer.token_bytes(i)
        if not written:
            continue
        try:
            texts.append(written.decode())
        except UnicodeDecodeError:
            continue
        wanted.append(i)
        found[i] = 0
        if len(wanted) >= SLICE:
            ask()
    ask()
    return found


def vocabulary_counts(tokenizer: ForeignTokenizer) -> dict[str, float]:
    """Counts over the vocabulary and the word lists; one row."""
    counts: dict[str, float] = {}
    for name, words in (("nouns", NOUNS), ("verbs", VERBS), ("endings", ENDINGS)):
        forms = words.split()
        counts[f"{name}_all"] = len(forms)
        for where, lines in (("start", forms), ("inside", [f"가 {form}" for form in forms])):
            rows = tokenizer.encode(lines)
            whole = 0
            for row, line, form in zip(rows, lines, forms, strict=True):
                begin = len(line) - len(form)
                over = [int(i) for i, (a, b) in zip(row.ids, row.spans.tolist(), strict=True) if b > begin]
                first = next((a for a, b in row.spans.tolist() if b > begin), 0)
                whole += len(over) == 1 and over[0] not in tokenizer.unknown_ids and first >= begin - 1
            counts[f"{name}_{where}"] = whole
    controls = [*CONTROLS, *(tokenizer.piece(i) for i in sorted(tokenizer.special_ids)[:200])]
    tried = [text for text in dict.fromkeys(controls) if text]
    wide = [text.translate(FULLWIDTH) for text in tried]
    counts["controls"], counts["controls_reached"] = len(tried), _reached(tokenizer, tried)
    counts["wide"], counts["wide_reached"] = len(wide), _reached(tokenizer, wide)
    if tokenizer.size is not None:
        states = reachable(tokenizer)
        counts["size"] = tokenizer.size
        counts["asked"], counts["reached"] = int((states >= 0).sum()), int((states == 1).sum())
        counts["undecodable"] = sum(_undecodable(tokenizer.token_bytes(i)) for i in range(tokenizer.size))
    return counts


def _reached(tokenizer: ForeignTokenizer, texts: list[str]) -> int:
    rows = tokenizer.ids_by_default([f"나는 {text} 간다" for text in texts])
    return sum(not tokenizer.special_ids.isdisjoint(row) for row in rows)


def _undecodable(written: bytes | None) -> bool:
    if written is None:
        return False
    try:
        written.decode()
    except UnicodeDecodeError:
        return True
    return False


def _retention(name: str) -> Any:
    def share(s: Any) -> Any:
        return 100 * ratio(s[f"{name}_start"] + s[f"{name}_inside"], 2 * s[f"{name}_all"])

    return share


@metric("M8a", ko="단일 토큰 유지율: 명사", unit="%", better="higher", needs="vocabulary", table="vocabulary")
def strr_nouns(s: Any) -> Any:
    """Single-token retention of nouns.

    Definition: share of 100-odd everyday nouns that are one token, each asked at the start of a line and behind a space.
    Source: arXiv 2510.09947 (STRR), with a list of our own.
    Pitfalls: a short fixed list; both forms of a word weigh the same.
    """
    return _retention("nouns")(s)


@metric("M8b", ko="단일 토큰 유지율: 용언", unit="%", better="none", needs="vocabulary", table="vocabulary")
def strr_verbs(s: Any) -> Any:
    """Single-token retention of verbs in their dictionary form.

    Definition: as M8a over verbs and adjectives with 다.
    Source: as M8a.
    Pitfalls: a morpheme-aware vocabulary cuts before 다 on purpose, so low is no fault.
    """
    return _retention("verbs")(s)


@metric("M8c", ko="단일 토큰 유지율: 조사·어미", unit="%", better="higher", needs="vocabulary", table="vocabulary")
def strr_endings(s: Any) -> Any:
    """Single-token retention of particles and endings.

    Definition: as M8a over particles and endings.
    Source: as M8a.
    Pitfalls: they stand alone here, which they do not in text.
    """
    return _retention("endings")(s)


@metric(
    "M21a",
    ko="해독 불가 어휘 비율",
    unit="share",
    better="lower",
    needs="vocabulary",
    table="vocabulary",
    optional="undecodable",
)
def undecodable_types(s: Any) -> Any:
    """Ids whose bytes are no UTF-8.

    Definition: ids whose own bytes are not valid UTF-8 / all ids.
    Source: Land and Bartolo 2024 (magikarp).
    Pitfalls: the bytes of byte fallback are among them; they are needed.
    """
    return ratio(s["undecodable"], s["size"])


@metric(
    "M22",
    ko="도달 가능한 어휘 비율",
    unit="share",
    better="higher",
    needs="vocabulary",
    table="vocabulary",
    optional="reached",
)
def reachability(s: Any) -> Any:
    """Ids that some text makes.

    Definition: ids that come back when the texts of all pieces are encoded, alone and behind seven contexts / ids whose
    bytes are valid UTF-8; special and unknown ids and the pieces of byte fallback apart.
    Source: Land and Bartolo 2024 (magikarp).
    Pitfalls: a piece that needs another context counts as unreachable; BPE reaches nearly all, pruned Unigram should.
    """
    return ratio(s["reached"], s["asked"])


@metric("M30a", ko="제어 토큰으로 읽힌 입력", unit="share", better="lower", needs="vocabulary", table="vocabulary")
def control_injection(s: Any) -> Any:
    """Spellings of control tokens that become control ids.

    Definition: spellings (common ones and those of the vocabulary's own special ids) inside plain text whose encoding
    holds a special id / all spellings tried.
    Source: tiktoken's disallowed_special; OWASP.
    Pitfalls: the library's default call is tested; most have a switch.
    """
    return ratio(s["controls_reached"], s["controls"])


@metric("M30b", ko="전각 문자로 쓴 제어 토큰", unit="share", better="lower", needs="vocabulary", table="vocabulary")
def control_injection_wide(s: Any) -> Any:
    """The same, spelled with fullwidth marks.

    Definition: as M30a with ＜ ＞ ｜ ［ ］ ／ for their ASCII forms: NFKC turns them back into control tokens.
    Source: this suite.
    Pitfalls: as M30a.
    """
    return ratio(s["wide_reached"], s["wide"])
