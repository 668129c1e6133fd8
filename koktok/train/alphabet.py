"""Which characters get a piece of their own; the rest becomes bytes. Every trainer starts from this list.

This file adds: the alphabet. A frequency cut alone drops rare syllables that any reader expects (a coverage of .9995 on
20,000 lines loses 307 of 1,618 syllable types), so the 2,350 syllables of KS X 1001 are required where there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from koktok.errors import VocabSizeError
from koktok.hangul import KS_X_1001
from koktok.vocab import FORBIDDEN

__all__ = ["BASIC", "alphabet_of"]

BASIC = (" ", "\t", "\n", *map(chr, range(0x21, 0x7F)))
"""Always pieces: white space and printable ASCII, so that code, and text that spells `<0x0A>` or `</s>`, never needs bytes."""


def alphabet_of(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    taken: int = 0,
    coverage: float = 0.9995,
    required: str | Iterable[str] = "auto",
) -> tuple[str, ...]:
    """The characters that must be pieces, in code-point order.

    Parameters
    ----------
    words : iterable of (str, int)
        Words with counts.
    vocab_size : int
        All ids.
    taken : int
        How many of them are bytes and special tokens.
    coverage : float
        Share of the running characters to cover, most frequent first, ties by code point.
    required : "none", "ks-x-1001", "auto" or characters
        `auto` asks for KS X 1001 when it takes at most a tenth of the slots.

    Raises
    ------
    VocabSizeError
        When the alphabet does not fit; names the smallest size that has room for it.

    Examples
    --------
    >>> found = alphabet_of([("가가나", 100), ("뷁", 1)], vocab_size=1000, coverage=0.99)
    >>> "가" in found, "뷁" in found, "A" in found
    (True, False, True)
    """
    slots = vocab_size - taken
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
            f"a vocabulary of {vocab_size:,} is too small: {taken:,} ids are bytes and special tokens, and "
            f"{len(wanted):,} characters need a piece of their own",
            hint=f"--vocab-size {len(wanted) + taken} or more",
        )
    return tuple(sorted(wanted))
