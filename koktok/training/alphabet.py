"""The characters that get a piece of their own (the rest becomes bytes), and the check that a size has room for them.

A frequency cut alone drops rare syllables that any reader expects (a coverage of .9995 on
20,000 lines loses 307 of 1,618 syllable types; at 16,000 ids, 안녕하세요 was written with bytes), so the 2,350 syllables of
KS X 1001, its 51 letters (ㅋㅋ, ㅇㅈ) and its common signs are required where there is room, and the letters and the syllables
of everyday phrases where there is less.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from koktok.errors import VocabSizeError
from koktok.hangul import EVERYDAY, KS_X_1001, KS_X_1001_SIGNS, LETTERS
from koktok.model.tokens import code_points
from koktok.model.vocab import SPACE_MARK, spell
from koktok.text.patterns import PublishedPattern
from koktok.text.pretokenize import Pattern

MOST = 6
"""`auto` asks for KS X 1001 where it takes no more than one in so many of the ids: from 14,100 on. Below, for the
syllables of everyday phrases, where those that the text lacks take no more than one in so many of the ids that are left."""

SMALL = 1000
"""Below so many ids a vocabulary is an example, and of the text alone."""

GROUPED = 32_000
"""From so many ids, the 1,100 groups of two and three digits are pieces where numbers are cut in groups of three: 3.4 % of the ids.
In 16,000 they would take 7 %; there a group is a piece where the text has it often enough."""

SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Printable ASCII that is neither letter nor digit."""

BASIC = (" ", "\t", "\n", *map(chr, range(0x21, 0x7F)))
"""Always pieces: white space and printable ASCII, so that code, and text that spells `<0x0A>` or `</s>`, never needs bytes."""


def required_characters(required: str | Iterable[str], vocab_size: int, *, pieces: int = 1) -> tuple[str, ...]:
    """The characters that a recipe requires, besides those that the text makes frequent."""
    if required == "auto":
        required = "ks-x-1001" if len(KS_X_1001) * pieces * MOST <= vocab_size else "none"
    if required == "ks-x-1001":
        return (*KS_X_1001, *KS_X_1001_SIGNS, *LETTERS)
    return () if required == "none" else tuple(sorted(set("".join(required))))


def alphabet_of(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    taken: int = 0,
    coverage: float = 0.9995,
    required: str | Iterable[str] = "auto",
    bytewise: bool = False,
    check: bool = True,
) -> tuple[str, ...]:
    """The characters that must be pieces, in code-point order; without `check` even if there is no room for them.

    Where pieces are spelled in bytes, bytes are there for whatever has no piece, so that characters take three quarters of the
    ids at most, the commonest first; the others stay for longer pieces.

    Examples
    --------
    >>> found = alphabet_of([("가가나", 100), ("뷁", 1)], vocab_size=1000, coverage=0.99)
    >>> "가" in found, "뷁" in found, "A" in found
    (True, False, True)
    >>> len(found), sorted({*"안녕하세요괜찮아요맛있어요"} - {*found})
    (203, [])
    """
    slots = vocab_size - taken
    pairs = [*words]
    sizes = np.array([len(word) for word, _ in pairs], np.int64)
    times = np.repeat(np.array([n for _, n in pairs], np.float64), sizes)
    occurrences = np.bincount(code_points("".join(word for word, _ in pairs)), weights=times)
    counts = {chr(code): int(occurrences[code]) for code in np.flatnonzero(occurrences).tolist()}
    counts.pop(SPACE_MARK, None)
    wanted = {*BASIC, *required_characters(required, vocab_size)}
    wanted.discard(SPACE_MARK)
    spelled = set(joined_bytes(wanted)) if bytewise else wanted
    left = sum(counts.values()) * coverage
    for char, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left <= 0 or (bytewise and len(spelled) >= slots * 3 // 4):
            break
        wanted.add(char)
        spelled.update(joined_bytes(char) if bytewise else char)
        left -= n
    missing = {*EVERYDAY, *LETTERS} - wanted
    if required == "auto" and vocab_size >= SMALL and len(missing) * MOST <= slots - len(spelled):
        wanted |= missing
        spelled.update(joined_bytes(missing) if bytewise else missing)
    if check:
        check_size(vocab_size, len(spelled) + taken)
    return tuple(sorted(wanted))


def joined_bytes(characters: Iterable[str]) -> list[str]:
    """The pieces, spelled in bytes, that the bytes of characters are joined to: the characters, and the steps to them.

    A merge has two parts, so a character of three bytes needs a piece of its first two, which 64 characters share. Sorted, a
    step comes before what it leads to.

    Examples
    --------
    >>> from koktok.model.vocab import readable
    >>> [readable(piece, "bpe-bytes") for piece in joined_bytes("aé각가")]
    ['é', '<0xEA><0xB0>', '가', '각']
    """
    spelled = [spell(char) for char in characters if not char.isascii()]
    return sorted({char[:size] for char in spelled for size in range(2, len(char) + 1)})


def line_ends(pattern: Pattern, ids: int) -> tuple[str, ...]:
    r"""Signs followed by one or two line ends, if a published pattern keeps these together, apart from words, and there are ids for them.

    Training reads lines, so line ends are not counted; but text is encoded with them, and nearly all end in a sign (.7 in
    corpus:bench-ko) or in nothing. These pieces take 3 % off its tokens.

    Examples
    --------
    >>> line_ends(PublishedPattern(name="llama3"), 8000)[:4], line_ends(PublishedPattern(name="gpt2"), 8000)
    (('\n\n', '!\n', '!\n\n', '"\n'), ())
    """
    found = ("\n\n", *(sign + end for sign in SIGNS for end in ("\n", "\n\n")))
    fits = len(found) * MOST <= ids and not any(map(pattern.crosses, found))
    return found if fits and isinstance(pattern, PublishedPattern) and not pattern.across_spaces else ()


def digit_groups(pattern: Pattern, vocab_size: int) -> tuple[str, ...]:
    """All groups of two and three digits, if a pattern cuts numbers into groups of three and there are ids for them.

    Of the groups in a text only the frequent ones would be pieces, so that a number would be one, two or three tokens by chance.

    Examples
    --------
    >>> groups = digit_groups(Pattern(digits="three"), 32_000)
    >>> len(groups), groups[0], groups[100], digit_groups(Pattern(digits="three"), 31_999), digit_groups(Pattern(), 32_000)
    (1100, '00', '000', (), ())
    """
    if vocab_size < GROUPED or pattern.crosses("000") or not pattern.crosses("0000"):
        return ()
    return tuple(f"{number:0{size}}" for size in (2, 3) for number in range(10**size))


def check_size(size: int, smallest: int, largest: int | None = None, pieces: str = "pieces") -> None:
    """Refuse a vocabulary size that a text cannot give; the largest is that of this size, and a smaller one may have fewer pieces."""
    if size < smallest:
        raise VocabSizeError(
            f"expected at least {smallest:,} ids (bytes, special tokens and required characters), got {size:,}",
            hint=f"--vocab-size {smallest} or more",
        )
    if largest is not None and size > largest:
        error = VocabSizeError(
            f"the text has too few {pieces} for {size:,} ids", hint=f"--vocab-size {largest}, or more text"
        )
        error.possible = largest
        raise error
