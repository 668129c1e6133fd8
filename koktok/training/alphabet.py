"""Which characters get a piece of their own (the rest becomes bytes), and whether a size has room for them.

A frequency cut alone drops rare syllables that any reader expects (a coverage of .9995 on
20,000 lines loses 307 of 1,618 syllable types; at 16,000 ids, 안녕하세요 was written with bytes), so the 2,350 syllables of
KS X 1001 are required where there is room, and those of everyday phrases where there is less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from koktok.errors import VocabSizeError
from koktok.hangul import EVERYDAY, KS_X_1001
from koktok.vocab import FORBIDDEN

MOST = 6
"""`auto` asks for KS X 1001 where it takes no more than one in so many of the ids: from 14,100 on. Below, for the
syllables of everyday phrases, where those that the text lacks take no more than one in so many of the ids that are left."""

SMALL = 1000
"""Below so many ids a vocabulary is an example, and of the text alone."""

BASIC = (" ", "\t", "\n", *map(chr, range(0x21, 0x7F)))
"""Always pieces: white space and printable ASCII, so that code, and text that spells `<0x0A>` or `</s>`, never needs bytes."""


def required_characters(required: str | Iterable[str], vocab_size: int, *, pieces: int = 1) -> tuple[str, ...]:
    """The characters that a recipe requires, besides those that the text makes frequent."""
    if required == "auto":
        required = "ks-x-1001" if len(KS_X_1001) * pieces * MOST <= vocab_size else "none"
    if required == "ks-x-1001":
        return KS_X_1001
    return () if required == "none" else tuple(sorted(set("".join(required))))


def alphabet_of(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    taken: int = 0,
    coverage: float = 0.9995,
    required: str | Iterable[str] = "auto",
) -> tuple[str, ...]:
    """The characters that must be pieces, in code-point order.

    Examples
    --------
    >>> found = alphabet_of([("가가나", 100), ("뷁", 1)], vocab_size=1000, coverage=0.99)
    >>> "가" in found, "뷁" in found, "A" in found
    (True, False, True)
    >>> len(found), sorted({*"안녕하세요괜찮아요맛있어요"} - {*found})
    (152, [])
    """
    slots = vocab_size - taken
    counts: Counter[str] = Counter()
    for word, n in words:
        for char in word:
            counts[char] += n
    counts.pop(FORBIDDEN, None)
    wanted = {*BASIC, *required_characters(required, vocab_size)}
    wanted.discard(FORBIDDEN)
    left = sum(counts.values()) * coverage
    for char, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left <= 0:
            break
        wanted.add(char)
        left -= n
    missing = set(EVERYDAY) - wanted
    if required == "auto" and vocab_size >= SMALL and len(missing) * MOST <= slots - len(wanted):
        wanted |= missing
    check_size(vocab_size, len(wanted) + taken)
    return tuple(sorted(wanted))


def check_size(size: int, smallest: int, largest: int | None = None, pieces: str = "pieces", hint: str = "") -> None:
    """Refuse a vocabulary size that a text cannot give."""
    if size < smallest:
        raise VocabSizeError(
            f"expected at least {smallest:,} ids (bytes, special tokens and required characters), got {size:,}",
            hint=f"--vocab-size {smallest} or more",
        )
    if largest is not None and size > largest:
        raise VocabSizeError(
            f"expected at most {largest:,} ids (the text has no more {pieces}), got {size:,}",
            hint=hint or f"--vocab-size {largest}",
        )
