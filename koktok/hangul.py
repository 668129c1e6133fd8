"""Hangul: what a syllable is, which letters it is made of, and syllables to conjoining jamo and back, exactly.

A Korean syllable fuses morphemes: 갔 is 가 + ㅆ. A tokenizer that works on jamo can cut there. The price is that decoding
has to compose them again, so jamo are a choice, not the default.

Only the 11,172 modern syllables are touched, by the arithmetic of Unicode (section 3.12): L + V + T. Compatibility jamo
(ㅋㅋ, ㅠ), ㈜, loose conjoining jamo and old Hangul pass through, and since NFC text never has a lead before a vowel, nor
an open syllable before a final, composing brings back exactly what was there. hgtk and jamotools, which go through
compatibility jamo, join the typed ㅎㅏㄴ to 한.

The letters, their order and their typed forms are those of Unicode's names, and of the package `jamo`, with which a test compares them.

Streaming: what composes on decoding is not prefix-stable. `koktok.model.decoding` holds a syllable back until it is
complete; Hugging Face's `DecodeStream` raises "Invalid prefix" at the first syllable that grows (가 becomes 갔).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import accumulate, product
from typing import Any, Final, Literal

from koktok.errors import InputError

__all__ = [
    "COMPATIBILITY",
    "EVERYDAY",
    "KS_X_1001",
    "KS_X_1001_SIGNS",
    "LEADS",
    "LETTERS",
    "MODERN_JAMO",
    "SPLIT",
    "SYLLABLE",
    "SYLLABLES",
    "TAILS",
    "VOWELS",
    "compose",
    "count_syllables",
    "has_syllable",
    "is_conjoining",
    "is_syllable",
    "join",
    "letters_of",
    "may_grow",
    "offsets",
    "split",
    "split_cuts",
    "syllable_mask",
    "tail_rules",
]

SYLLABLES: Final = range(0xAC00, 0xD7A4)
"""Code points of the 11,172 modern syllables, by lead, vowel and tail: 588 of each lead, 28 of each vowel."""

SYLLABLE: Final = "가-힣"
"""The same, for the inside of a character class."""

LEAD, VOWEL, TAIL = "\u1100-\u1112", "\u1161-\u1175", "\u11a8-\u11c2"
"""Conjoining jamo of modern syllables, for the inside of a character class."""

_LEADS, _VOWELS, _TAILS = (
    [chr(code) for code in range(ord(span[0]), ord(span[-1]) + 1)] for span in (LEAD, VOWEL, TAIL)
)

MODERN_JAMO: Final[str] = "".join((*_LEADS, *_VOWELS, *_TAILS))
"""The 67 conjoining jamo of modern syllables: 19 leads, 21 vowels, 27 tails."""

COMPATIBILITY: Final[dict[str, str]] = {
    jamo: unicodedata.lookup(re.sub("(CHO|JUNG|JONG)SEONG", "LETTER", unicodedata.name(jamo))) for jamo in MODERN_JAMO
}
"""Each of these as people type it, and as fonts and terminals draw it apart (ㅎ for U+1112)."""

LEADS, VOWELS = ("".join(map(COMPATIBILITY.__getitem__, letters)) for letters in (_LEADS, _VOWELS))
TAILS: Final[tuple[str, ...]] = ("", *map(COMPATIBILITY.__getitem__, _TAILS))
"""Letters as people type them, by their numbers in a syllable; tail 0 is none."""

KS_X_1001: Final = tuple(bytes((row, cell)).decode("euc_kr") for row in range(0xB0, 0xC9) for cell in range(0xA1, 0xFF))
"""The 2,350 precomposed syllables (완성형) of the standard KS X 1001, without which a Korean vocabulary looks broken."""

KS_X_1001_SIGNS: Final = tuple("①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮“”‘’…‥·∼「」『』《》〈〉【】×÷°²§※→○●□■☆★◆△▶♡♥㎡℃㈜")
"""Signs of KS X 1001 that Korean text uses: those in ten or more of the 79 texts of bench-ko, open-ko and the demo, all circled
digits, △ and ㈜. A frequency cut drops them where a text has few, and each is three bytes then."""

LETTERS: Final = tuple(map(chr, range(0x3131, 0x3164)))
"""The 51 modern letters by themselves (compatibility jamo), as KS X 1001 has them and chats use them."""

EVERYDAY: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(
        "안녕하세요괜찮아요맛있어요고맙습니다감사합니다죄송합니다미안해요반갑습니다사랑해요좋아요싫어요몰라요없어요"
        "잘먹겠습니다재밌어요힘들어요귀여워요예뻐요됐어요봤어요갔어요왔어요읽었어요끝났어요앉으세요"
    )
)
"""Syllables of everyday phrases, which few texts of a megabyte hold."""

SPLIT: Final[dict[int, str]] = dict(zip(SYLLABLES, map("".join, product(_LEADS, _VOWELS, ["", *_TAILS])), strict=True))
"""Code point of each syllable to its two or three jamo, for `str.translate`."""

# Only Hangul, so that NFC of a match is NFC of Hangul and touches nothing else.
_JOINABLE = re.compile(f"[{LEAD}{VOWEL}{TAIL}{SYLLABLE}]++")
_SYLLABLE = re.compile(f"[{SYLLABLE}]")
_OPEN = frozenset((*_LEADS, *map(chr, SYLLABLES[::28])))

Cut = int | tuple[int, Literal["coda"]]


def is_syllable(char: str) -> bool:
    """True for a modern syllable."""
    return "가" <= char <= "힣"


def is_conjoining(char: str) -> bool:
    """True for a conjoining jamo, a modern or an old one (U+1100 to U+11FF)."""
    return "\u1100" <= char <= "\u11ff"


def has_syllable(text: str) -> bool:
    """True where a text holds a modern syllable."""
    return _SYLLABLE.search(text) is not None


def count_syllables(text: str) -> int:
    """How many characters of a text are modern syllables."""
    return len(_SYLLABLE.findall(text))


def syllable_mask(codes: Any) -> Any:
    """Which code points of a numpy array are modern syllables."""
    return (codes >= SYLLABLES[0]) & (codes <= SYLLABLES[-1])


def letters_of(syllable: str) -> tuple[int, int, int]:
    """Numbers of the lead, the vowel and the tail of a syllable; tail 0 is none.

    Examples
    --------
    >>> lead, vowel, tail = letters_of("갔")
    >>> LEADS[lead], VOWELS[vowel], TAILS[tail], compose(lead, vowel)
    ('ㄱ', 'ㅏ', 'ㅆ', '가')
    """
    place = ord(syllable) - SYLLABLES[0]
    return place // 588, place // 28 % 21, place % 28


def compose(lead: int, vowel: int, tail: int = 0) -> str:
    """The syllable of letters by their numbers, see `letters_of`."""
    return chr(SYLLABLES[(lead * 21 + vowel) * 28 + tail])


def may_grow(char: str) -> bool:
    """True where what comes next may join a character: a lead, or a syllable without a tail."""
    return char in _OPEN


def split(text: str) -> str:
    """Decompose modern syllables to conjoining jamo.

    Law: ``join(split(x)) == x`` for every x in NFC.

    Examples
    --------
    >>> len(split("갔다")), split("ㅋㅋ ㈜") == "ㅋㅋ ㈜"
    (5, True)
    """
    return text.translate(SPLIT)


def join(text: str) -> str:
    """Compose conjoining jamo to modern syllables, and touch nothing else."""
    return _JOINABLE.sub(_compose, text)


def offsets(text: str) -> list[int]:
    """Where each offset of `text`, from 0 to its length, falls in `split(text)`."""
    return [0, *accumulate(len(SPLIT.get(ord(c), c)) for c in text)]


def split_cuts(text: str, cuts: Iterable[Cut]) -> list[int]:
    """Move cuts along with `split`: sorted, each once.

    A cut is an offset of `text`, or ``(i, "coda")``: inside syllable i, between its vowel and its final, where a fused
    morpheme begins.

    Examples
    --------
    >>> split_cuts("갔다", [1, (0, "coda")])
    [2, 3]
    """
    at = offsets(text)
    moved = set()
    for cut in cuts:
        i = cut if isinstance(cut, int) else cut[0]
        if not 0 <= i < len(at):
            raise InputError(f"expected a cut from 0 to {len(text)} in {text!r}, got {cut!r}")
        if isinstance(cut, int):
            moved.add(at[i])
        elif cut[1] == "coda" and i < len(text) and at[i + 1] - at[i] == 3:
            moved.add(at[i] + 2)
        else:
            raise InputError(f'expected (index of a syllable with a final, "coda") as a cut of {text!r}, got {cut!r}')
    return sorted(moved)


def tail_rules() -> list[tuple[str, str]]:
    """Each open syllable and tail, and the syllable that they join to: 10,773 of them, in the order of syllables."""
    return [(join(jamo[:2]) + jamo[2], chr(c)) for c, jamo in SPLIT.items() if len(jamo) == 3]


def _compose(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", match[0])
