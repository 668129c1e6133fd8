"""Morphemes to cuts: the boundaries on the surface, their kinds, and the policy that selects them.

Morphemes are not substrings (했다 is 하+었+다 with 하 and 었 in one syllable), so a cut is only where no morpheme's span
crosses it; the pieces then join back to the word for every analyser (law 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from koktok.errors import UsageError
from koktok.hangul import is_syllable, split
from koktok.segment.segmented import BoundaryKind, Cut


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


_UNKNOWN = "UN"
"""The tag of what is no morpheme."""

FUNCTIONAL: Final = frozenset(
    {BoundaryKind.JOSA, BoundaryKind.JOSA_CHAIN, BoundaryKind.EOMI, BoundaryKind.EOMI_CHAIN, BoundaryKind.COPULA}
)
"""Boundaries before particles, endings and the copula."""

POLICIES: dict[str, frozenset[BoundaryKind]] = {
    "none": frozenset(),
    "josa": frozenset({BoundaryKind.JOSA, BoundaryKind.PUNCTUATION}),
    "function": frozenset({BoundaryKind.JOSA, BoundaryKind.EOMI, BoundaryKind.COPULA, BoundaryKind.PUNCTUATION}),
    "inflection": FUNCTIONAL | {BoundaryKind.PUNCTUATION},
    "morphemes": frozenset(BoundaryKind),
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
    kinds: frozenset[BoundaryKind]
    tags: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Parse a named policy, or a comma-separated list of kinds, named policies and tag prefixes."""
        kinds: set[BoundaryKind] = set()
        tags: list[str] = []
        for word in (part.strip() for part in text.split(",")):
            if word in POLICIES:
                kinds |= POLICIES[word]
            elif word.upper() in BoundaryKind.__members__ and word.islower():
                kinds.add(BoundaryKind[word.upper()])
            elif any(tag.startswith(word.upper()) for tag in SEJONG_TAGS) and word:
                tags.append(word.upper())
            else:
                known = ", ".join([*POLICIES, *(kind.label for kind in BoundaryKind)])
                raise UsageError(
                    f"expected a boundary policy, a kind of boundary or a Sejong tag, got `{word}`",
                    hint=f"--policy {known}, or tags such as j,e,vcp,xsv",
                )
        return cls(text, frozenset(kinds), tuple(tags))

    def keeps(self, kind: BoundaryKind, right: str) -> bool:
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


def kind_of(left: str, right: str, before: str = "", behind: str = "") -> BoundaryKind:
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
def _kind(left: str, right: str, pointing: bool, bound_suffix: bool, single: bool) -> BoundaryKind:  # noqa: FBT001
    """The kind by tags and forms: whether these are in the lists above, and whether one is a single syllable."""
    rules = (
        (left.startswith(_SYMBOLS) or right.startswith(_SYMBOLS), BoundaryKind.PUNCTUATION),
        (right[0] == "J" and left[0] == "J", BoundaryKind.JOSA_CHAIN),
        (right[0] == "J", BoundaryKind.JOSA),
        (right.startswith("VCP") or (left.startswith("VCP") and right[0] == "E"), BoundaryKind.COPULA),
        (right[0] == "E" and left[0] == "E", BoundaryKind.EOMI_CHAIN),
        (right[0] == "E", BoundaryKind.EOMI),
        (right.startswith("XSN") and bound_suffix, BoundaryKind.SUFFIX),
        (left.startswith("XR") and pointing, BoundaryKind.ROOT),
        (right.startswith("XS"), BoundaryKind.DERIVATION),
        (left.startswith("XPN"), BoundaryKind.PREFIX),
        (
            left[:2] in ("SN", "NR") or right[:2] == "SN" or (left[:2] == "MM" and right[:3] == "NNB"),
            BoundaryKind.NUMERAL,
        ),
        (right.startswith("VX") or left[0] == "E", BoundaryKind.AUXILIARY),
        ((left[0] == "M" and right[0] in "NVX") or (left[0] == "N" and right[0] == "V"), BoundaryKind.MODIFIER),
        (left[:3] in _NOUNS and right[:3] in _NOUNS and single, BoundaryKind.BOUND),
        (left[0] in "NX" and right[0] in "NX", BoundaryKind.COMPOUND),
    )
    return next((kind for holds, kind in rules if holds), BoundaryKind.OTHER)


_NOUNS = ("NNG", "NNP")


@dataclass(frozen=True, eq=False)
class Spans:
    """The morphemes of many words as columns: the number of their word, their span in it, and the number of their tag."""

    word: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    tag: NDArray[np.int64]
    tags: Sequence[str]

    @classmethod
    def of(cls, analyses: Iterable[Iterable[Morpheme]]) -> Spans:
        """The columns of the morphemes of each word."""
        tags: dict[str, int] = {}
        flat = [(i, m.start, m.end, tags.setdefault(m.tag, len(tags))) for i, word in enumerate(analyses) for m in word]
        word, start, end, tag = np.array(flat, np.int64).reshape(-1, 4).T
        return cls(word, start, end, tag, [*tags])


@dataclass(frozen=True, eq=False)
class CutColumns:
    """The cuts of many words as columns: how many each word has, their offsets, and their kinds."""

    n: NDArray[np.int64]
    offset: NDArray[np.int32]
    kind: NDArray[np.uint8]

    @classmethod
    def of(cls, cuts: Iterable[Sequence[Cut]]) -> CutColumns:
        """The columns of the cuts of each word."""
        words = [*cuts]
        flat = np.array([cut[:2] for word in words for cut in word], np.int64).reshape(-1, 2)
        n = np.fromiter(map(len, words), np.int64, len(words))
        return cls(n, flat[:, 0].astype(np.int32), flat[:, 1].astype(np.uint8))

    def __iter__(self) -> Iterator[tuple[Cut, ...]]:
        """The cuts of each word."""
        cuts = map(Cut, self.offset.tolist(), map(BoundaryKind, self.kind.tolist()))
        return (tuple(islice(cuts, n)) for n in self.n.tolist())


def cuts_of_words(words: Sequence[str], spans: Spans, policy: Policy) -> CutColumns:
    """The cuts of words: offsets where a morpheme begins or ends, none crosses, and the policy keeps the kind.

    Examples
    --------
    >>> spans = Spans.of([[Morpheme(0, 1, "VV"), Morpheme(0, 1, "EP"), Morpheme(1, 2, "EF")]])
    >>> cuts_of_words(["갔다"], spans, Policy.parse("morphemes")).offset.tolist()
    [1]
    """
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    node = np.concatenate([[0], np.cumsum(sizes + 1)])  # a word has one place more than characters
    start, end = (np.clip(edge, 0, sizes[spans.word]) for edge in (spans.start, spans.end))
    there = end > start  # a zero-length copula (먹이다 → 이/VCP) has no surface to cut
    word = spans.word[there]
    start, end = start[there] + node[word], end[there] + node[word]
    left, right = np.full(node[-1] + 1, -1), np.full(node[-1] + 1, -1)  # the morphemes that touch at each place
    left[end] = np.arange(len(end))  # of several the last
    right[start[::-1]] = np.arange(len(start))[::-1]  # of several the first
    crossing = np.bincount(start + 1, minlength=len(left)) - np.bincount(end, minlength=len(left))
    places = ((left >= 0) | (right >= 0)) & (np.cumsum(crossing) == 0)
    places[node[:-1]] = places[node[1:] - 1] = False
    at = np.flatnonzero(places)
    left, right = left[at], right[at]

    def surface(i: int) -> str:
        """Morpheme `i` as the text has it."""
        which = int(word[i])
        return words[which][int(start[i] - node[which]) : int(end[i] - node[which])]

    # -1, no morpheme, is the last row of each of these tables.
    tag = np.append(spans.tag[there], len(spans.tags))
    syllable = np.append(end - start == 1, False)
    of_word = np.append(word, -1)
    # MeCab writes a fused span as VV+EP: the part that touches the border counts.
    befores = [name.split("+")[-1] for name in (*spans.tags, _UNKNOWN)]
    behinds = [name.split("+")[0] for name in (*spans.tags, _UNKNOWN)]
    pointing, bound = np.zeros(len(at), np.bool_), np.zeros(len(at), np.bool_)
    for i in np.flatnonzero(np.array([name.startswith("XR") for name in befores])[tag[left]]).tolist():
        pointing[i] = surface(left[i]) in _POINTING
    for i in np.flatnonzero(np.array([name.startswith("XSN") for name in behinds])[tag[right]]).tolist():
        bound[i] = surface(right[i]) not in _FREE_SUFFIXES
    # A kind depends on few things, and each combination of them is looked at once.
    shape = (len(befores), len(behinds), 2, 2, 2)
    seen = (tag[left], tag[right], pointing, bound, syllable[left] | syllable[right])
    combinations, which = np.unique(np.ravel_multi_index(seen, shape), return_inverse=True)
    kinds, kept = np.zeros(len(combinations), np.uint8), np.zeros(len(combinations), np.bool_)
    for k, (a, b, *rest) in enumerate(
        zip(*(column.tolist() for column in np.unravel_index(combinations, shape)), strict=True)
    ):
        kinds[k] = kind = _kind(befores[a], behinds[b], *map(bool, rest))
        kept[k] = policy.keeps(kind, behinds[b])
    keep = kept[which]
    of = np.where(left >= 0, of_word[left], of_word[right])[keep]
    return CutColumns(np.bincount(of, minlength=len(words)), (at[keep] - node[of]).astype(np.int32), kinds[which[keep]])


def cuts_of(word: str, morphemes: Iterable[Morpheme], policy: Policy) -> tuple[Cut, ...]:
    """The cuts of one word; many words are faster together."""
    (cuts,) = cuts_of_words([word], Spans.of([morphemes]), policy)
    return cuts


def codas_of(word: str, morphemes: Sequence[Morpheme], policy: Policy) -> tuple[Cut, ...]:
    """The cuts inside a syllable, before its final consonant, which exist in jamo only.

    갔 is 가+았 and 간 is 가+ᆫ: the second morpheme begins in the syllable where the first one ends, and what it adds to the
    surface is the final. Fusions that change the vowel as well (해 of 하+어) have no place to cut.

    Examples
    --------
    >>> went = [Morpheme(0, 1, "VV", "가"), Morpheme(0, 1, "EP", "었"), Morpheme(1, 2, "EF", "다")]
    >>> codas_of("갔다", went, Policy.parse("morphemes"))
    (Cut(offset=0, kind=<BoundaryKind.EOMI: 2>, confidence=1.0),)
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
