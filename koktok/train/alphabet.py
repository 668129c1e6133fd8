"""Which characters get a piece of their own; the rest becomes bytes. Every trainer starts from this list.

This file adds: the alphabet. A frequency cut alone drops rare syllables that any reader expects (a coverage of .9995 on
20,000 lines loses 307 of 1,618 syllable types), so the 2,350 syllables of KS X 1001 are required where there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from koktok.errors import VocabSizeError

__all__ = ["BASIC", "FORBIDDEN", "KS_X_1001", "alphabet_of"]

BASIC = (" ", "\t", "\n", *map(chr, range(0x21, 0x7F)))
"""Always pieces: white space and printable ASCII, so that code, and text that spells `<0x0A>` or `</s>`, never needs bytes."""

FORBIDDEN = "▁"
"""Never part of a piece: SentencePiece decodes it to a space. As bytes it comes back exactly."""


def _ks_x_1001() -> tuple[str, ...]:
    # Rows B0 to C8 of EUC-KR are the 2,350 syllables of the standard, in its order.
    return tuple(bytes((row, cell)).decode("euc_kr") for row in range(0xB0, 0xC9) for cell in range(0xA1, 0xFF))


KS_X_1001 = _ks_x_1001()
"""The 2,350 precomposed syllables (완성형) of KS X 1001, without which a Korean vocabulary looks broken."""


def alphabet_of(
    words: Iterable[tuple[str, int]],
    *,
    slots: int,
    coverage: float = 0.9995,
    required: str | Iterable[str] = "auto",
) -> tuple[str, ...]:
    """The characters that must be pieces, in code-point order.

    Parameters
    ----------
    words : iterable of (str, int)
        Words with counts.
    slots : int
        Pieces that the vocabulary has room for, without bytes and specials.
    coverage : float
        Share of the running characters to cover, most frequent first, ties by code point.
    required : "none", "ks-x-1001", "auto" or characters
        `auto` asks for KS X 1001 when it takes at most a tenth of the slots.

    Raises
    ------
    VocabSizeError
        When the alphabet does not fit into the slots.

    Examples
    --------
    >>> found = alphabet_of([("가가나", 100), ("뷁", 1)], slots=1000, coverage=0.99)
    >>> "가" in found, "뷁" in found, "A" in found
    (True, False, True)
    """
    counts: Counter[str] = Counter()
    for word, n in words:
        for char in word:
            counts[char] += n
    counts.pop(FORBIDDEN, None)
    wanted: set[str] = set(BASIC)
    if required == "auto":
        required = "ks-x-1001" if len(KS_X_1001) * 10 <= slots else "none"
    wanted.update(() if required == "none" else KS_X_1001 if required == "ks-x-1001" else required)
    wanted.discard(FORBIDDEN)
    left = sum(counts.values()) * coverage
    for char, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left <= 0:
            break
        wanted.add(char)
        left -= n
    if len(wanted) > slots:
        raise VocabSizeError(
            f"the alphabet has {len(wanted):,} characters and the vocabulary only {slots:,} slots besides bytes and "
            "special tokens",
            hint=f"--vocab-size with at least {len(wanted) - slots:,} more",
        )
    return tuple(sorted(wanted))
