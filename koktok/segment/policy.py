"""Morphemes to cuts: the boundaries on the surface, their kinds, and the policy that selects them.

Morphemes are not substrings (했다 is 하+었+다 with 하 and 었 in one syllable), so a cut is only where no morpheme's span
crosses it; the pieces then join back to the word for every analyser (law 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

from koktok.errors import UsageError
from koktok.hangul import is_syllable, split
from koktok.segment.segmented import Cut, Kind


class Morpheme(NamedTuple):
    """A morpheme of an analyser: a span of the word, a tag, and its dictionary form."""

    start: int
    end: int
    tag: str
    form: str = ""


@runtime_checkable
class Segmenter(Protocol):
    """The protocol of a morphological analyser."""

    def signature(self) -> str:
        """Name, version and options: everything that changes an analysis."""
        ...

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        """The morphemes of each word, in the order of the words; spans are code points of the word."""
        ...


_UNKNOWN = Morpheme(0, 0, "UN")

_FUNCTION = frozenset({Kind.JOSA, Kind.JOSA_CHAIN, Kind.EOMI, Kind.EOMI_CHAIN, Kind.COPULA})

POLICIES: dict[str, frozenset[Kind]] = {
    "none": frozenset(),
    "josa": frozenset({Kind.JOSA, Kind.PUNCTUATION}),
    "function": frozenset({Kind.JOSA, Kind.EOMI, Kind.COPULA, Kind.PUNCTUATION}),
    "inflection": _FUNCTION | {Kind.PUNCTUATION},
    "morphemes": frozenset(Kind),
}
"""Named policies, from few cuts to all. `function` keeps chains of particles and of endings whole (에서는, 었습니다)."""


@dataclass(frozen=True)
class Policy:
    """A selection of kinds of boundary.

    Examples
    --------
    >>> sorted(kind.label for kind in Policy.parse("copula,eomi").kinds)
    ['copula', 'eomi']
    >>> Policy.parse("j,e,vcp,xsv").tags
    ('J', 'E', 'VCP', 'XSV')
    """

    name: str
    kinds: frozenset[Kind]
    tags: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Parse a named policy, or a comma-separated list of kinds, named policies and tag prefixes."""
        kinds: set[Kind] = set()
        tags: list[str] = []
        for word in (part.strip() for part in text.split(",")):
            if word in POLICIES:
                kinds |= POLICIES[word]
            elif word.upper() in Kind.__members__ and word.islower():
                kinds.add(Kind[word.upper()])
            elif any(tag.startswith(word.upper()) for tag in SEJONG_TAGS) and word:
                tags.append(word.upper())
            else:
                known = ", ".join([*POLICIES, *(kind.label for kind in Kind)])
                raise UsageError(
                    f"expected a boundary policy, a kind of boundary or a Sejong tag, got `{word}`",
                    hint=f"--policy {known}, or tags such as j,e,vcp,xsv",
                )
        return cls(text, frozenset(kinds), tuple(tags))

    def keeps(self, kind: Kind, right: str) -> bool:
        """True if a cut of this kind, before this tag, is kept."""
        return kind in self.kinds or any(right.startswith(tag) for tag in self.tags)


SEJONG_TAGS = [
    "NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "VX", "VCP", "VCN", "MM", "MAG", "MAJ", "IC", "JKS", "JKC", "JKG", "JKO",
    "JKB", "JKV", "JKQ", "JX", "JC", "EP", "EF", "EC", "ETN", "ETM", "XPN", "XSN", "XSV", "XSA", "XSM", "XR", "SF", "SP",
    "SS", "SSO", "SSC", "SE", "SO", "SW", "SL", "SH", "SN", "SB", "UN", "W_URL", "W_EMAIL", "W_HASHTAG", "W_MENTION",
    "W_SERIAL", "W_EMOJI", "Z_CODA", "Z_SIOT", "USER0",
]  # fmt: skip

_SYMBOLS = ("SF", "SP", "SS", "SE", "SO", "SW", "SB", "W_")

_FREE_SUFFIXES = frozenset({"들", "적", "님", "씩", "경", "쯤", "짜리", "어치", "당", "네", "끼리"})
"""Suffixes of nouns that people cut off: of 들, 적, 님, 씩, 경 the annotators of the Kaist treebank (train part) cut .86 to
1.00. Of 성, 화, 론, 권, 제, 률, 층 and some eighty more they cut .00 to .09: 가능성 is one noun."""

_POINTING = frozenset({"이러", "그러", "저러", "어떠", "요러", "고러", "조러", "아무러"})
"""Roots (XR) that are never cut from 하; of other roots (복잡|하, 강력|하) most are."""


def kind_of(left: str, right: str, before: str = "", behind: str = "") -> Kind:
    """The kind of the boundary between two Sejong tags.

    Examples
    --------
    >>> kind_of("NNG", "JKB").label, kind_of("VV-I", "EP").label, kind_of("EP", "EF").label, kind_of("SN", "NNB").label
    ('josa', 'eomi', 'eomi_chain', 'numeral')
    >>> [kind_of("NNG", "XSN", "가능", form).label for form in ("성", "적")], kind_of("NNG", "NNG", "외교", "사").label
    (['suffix', 'derivation'], 'bound')
    """
    single = len(before) == 1 or len(behind) == 1
    return _kind(left, right, before in _POINTING, bool(behind) and behind not in _FREE_SUFFIXES, single)


@lru_cache(maxsize=1 << 14)
def _kind(left: str, right: str, pointing: bool, bound_suffix: bool, single: bool) -> Kind:  # noqa: FBT001
    """The kind by tags and forms: whether these are in the lists above, and whether one is a single syllable."""
    rules = (
        (left.startswith(_SYMBOLS) or right.startswith(_SYMBOLS), Kind.PUNCTUATION),
        (right[0] == "J" and left[0] == "J", Kind.JOSA_CHAIN),
        (right[0] == "J", Kind.JOSA),
        (right.startswith("VCP"), Kind.COPULA),
        (right[0] == "E" and left[0] == "E", Kind.EOMI_CHAIN),
        (right[0] == "E", Kind.EOMI),
        (right.startswith("XSN") and bound_suffix, Kind.SUFFIX),
        (left.startswith("XR") and pointing, Kind.ROOT),
        (right.startswith("XS"), Kind.DERIVATION),
        (left.startswith("XPN"), Kind.PREFIX),
        (left[:2] in ("SN", "NR") or right[:2] == "SN" or (left[:2] == "MM" and right[:3] == "NNB"), Kind.NUMERAL),
        (right.startswith("VX") or left[0] == "E", Kind.AUXILIARY),
        ((left[0] == "M" and right[0] in "NVX") or (left[0] == "N" and right[0] == "V"), Kind.MODIFIER),
        (left[:3] in _NOUNS and right[:3] in _NOUNS and single, Kind.BOUND),
        (left[0] in "NX" and right[0] in "NX", Kind.COMPOUND),
    )
    return next((kind for holds, kind in rules if holds), Kind.OTHER)


_NOUNS = ("NNG", "NNP")


def cuts_of(word: str, morphemes: Iterable[Morpheme], policy: Policy) -> tuple[Cut, ...]:
    """The cuts of one word: offsets where a morpheme begins or ends, none crosses, and the policy keeps the kind.

    Examples
    --------
    >>> went = [Morpheme(0, 1, "VV"), Morpheme(0, 1, "EP"), Morpheme(1, 2, "EF")]
    >>> [cut.offset for cut in cuts_of("갔다", went, Policy.parse("morphemes"))]
    [1]
    """
    spans = [m for m in morphemes if m.end > m.start]  # a zero-length copula (먹이다 → 이/VCP) has no surface to cut
    if all(first.end == second.start for first, second in pairwise(spans)):
        pairs = list(pairwise((_UNKNOWN, *spans, _UNKNOWN)))
        places = [*(second.start for _, second in pairs[:-1]), pairs[-1][0].end]
    else:
        places, pairs = _uncrossed(spans)
    cuts = []
    for offset, (first, second) in zip(places, pairs, strict=True):
        if not 0 < offset < len(word):
            continue
        # MeCab writes a fused span as VV+EP: the part that touches the border counts.
        left, right = first.tag.split("+")[-1], second.tag.split("+")[0]
        kind = kind_of(left, right, word[first.start : first.end], word[second.start : second.end])
        if policy.keeps(kind, right):
            cuts.append(Cut(offset, kind))
    return tuple(cuts)


def _uncrossed(spans: Sequence[Morpheme]) -> tuple[list[int], list[tuple[Morpheme, Morpheme]]]:
    """Where morphemes begin or end and none crosses, and the two that touch there."""
    crossed = {offset for m in spans for offset in range(m.start + 1, m.end)}
    before: dict[int, Morpheme] = {}
    behind: dict[int, Morpheme] = {}
    for m in spans:
        before[m.end] = m
        behind.setdefault(m.start, m)
    places = sorted((before.keys() | behind.keys()) - crossed)
    return places, [(before.get(offset, _UNKNOWN), behind.get(offset, _UNKNOWN)) for offset in places]


def codas_of(word: str, morphemes: Sequence[Morpheme], policy: Policy) -> tuple[Cut, ...]:
    """The cuts inside a syllable, before its final consonant, which exist in jamo only.

    갔 is 가+았 and 간 is 가+ᆫ: the second morpheme begins in the syllable where the first one ends, and what it adds to the
    surface is the final. Fusions that change the vowel as well (해 of 하+어) have no place to cut.

    Examples
    --------
    >>> went = [Morpheme(0, 1, "VV", "가"), Morpheme(0, 1, "EP", "었"), Morpheme(1, 2, "EF", "다")]
    >>> codas_of("갔다", went, Policy.parse("morphemes"))
    (Cut(offset=0, kind=<Kind.EOMI: 2>, confidence=1.0),)
    """
    cuts = []
    for left, right in pairwise(morphemes):
        at = right.start
        if left.end != at + 1 or right.end <= at or not is_syllable(word[at]):
            continue
        written = split(word[at])[2:]
        kind = kind_of(left.tag.split("+")[-1], right.tag.split("+")[0])
        fused = written == right.form[:1] or (written == "ᆻ" and right.form[:1] in _PAST)
        if written and fused and policy.keeps(kind, right.tag):
            cuts.append(Cut(at, kind))
    return tuple(dict.fromkeys(cuts))


_PAST = ("었", "았", "였")
"""The past ending in its allomorphs; on the surface of a fused syllable only its ㅆ is left."""
