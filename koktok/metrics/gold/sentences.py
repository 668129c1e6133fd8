"""A gold corpus: sentences with morphemes, legal cuts, fused borders, and the words that are not scored."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from koktok.errors import UsageError
from koktok.hangul import is_syllable
from koktok.segment.align import TOLERATED, surface_cuts

FUNCTIONAL: Final = ("N|J", "J|J", "E|J", "V|E", "XS|E", "VCP|E", "E|E", "*|VCP")
"""Borders before a particle (josa), an ending (eomi) or the copula: the kinds on which all schemes of annotation agree."""

GOLD_BOUNDARIES: Final = (*FUNCTIONAL, "*|XSV", "*|XSN", "N|N", "E|V", "other")
"""Kinds of border, by the classes on both sides. After the functional ones: before a suffix that makes a verb or an adjective
(공부|하) or another suffix (학생|들), inside a compound, between an ending and an auxiliary written together (먹어|보)."""


def word_class(tag: str) -> str:
    """Noun, verb, particle …: what the Kaist and the Sejong tag sets have in common.

    Examples
    --------
    >>> [word_class(tag) for tag in ("ncn", "NNG", "pvg", "jp", "VCP", "ecs", "EF", "xsv", "SL")]
    ['N', 'N', 'V', 'VCP', 'VCP', 'E', 'E', 'XS', 'S']
    """
    upper = tag.upper()
    if upper in ("JP", "VCP", "VCN"):
        return "VCP"
    if upper.startswith(("XS", "XR", "XP")):
        return "N" if upper == "XR" else upper[:2]
    if upper[:1] == "P":  # the Kaist tag set calls verbs and adjectives predicates: pvg, paa, px
        return "V"
    return upper[:1] if upper[:1] in ("N", "V", "J", "E", "M", "I", "S", "F") else "other"


def gold_boundary(left: str, right: str) -> str:
    """The kind of the border between two tags, one of `GOLD_BOUNDARIES`.

    Examples
    --------
    >>> gold_boundary("ncn", "jco"), gold_boundary("VV", "EP"), gold_boundary("EP", "EF")
    ('N|J', 'V|E', 'E|E')
    >>> gold_boundary("NNG", "XSV"), gold_boundary("XSV", "EC")
    ('*|XSV', 'XS|E')
    """
    a, b = word_class(left), word_class(right)
    if b == "XS":  # the Kaist tag set has xsa for what makes an adverb, the Sejong one XSA for what makes an adjective
        return "*|XSV" if right in ("XSV", "XSA", "XSM", "xsv", "xsm") else "*|XSN"
    if b == "VCP":
        return "*|VCP"
    if b == "E":
        return f"{a}|E" if a in ("V", "XS", "VCP", "E") else "other"
    if b == "J":
        return f"{a}|J" if a in ("J", "E") else "N|J" if a in ("N", "XS", "S", "F") else "other"
    return f"{a}|{b}" if (a, b) in (("N", "N"), ("E", "V")) else "other"


@dataclass(frozen=True, slots=True)
class GoldMorpheme:
    """A morpheme and the code points of the sentence in which it has a part; start == end where it left no trace."""

    form: str
    tag: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GoldCut:
    """A border between morphemes: an offset (of a fused one: its syllable) and its kind."""

    at: int
    kind: str


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence of the gold."""

    text: str
    morphemes: tuple[GoldMorpheme, ...]
    cuts: tuple[GoldCut, ...]
    fused: tuple[GoldCut, ...]
    masked: tuple[tuple[int, int], ...]
    neutral: tuple[int, ...] = ()
    document: str = ""
    outer: tuple[int, ...] = ()


Word = tuple[str, Sequence[str], Sequence[str], bool]
"""Form, morphemes, tags, and whether a space precedes it."""


@dataclass(frozen=True)
class GoldCorpus:
    """Sentences and what is known of their annotation."""

    name: str
    human: bool
    sentences: list[GoldSentence]
    words: int
    skipped: Counter[str] = field(default_factory=Counter)
    digest: str = ""

    @property
    def label(self) -> str:
        """What to call it: human or silver."""
        return "human" if self.human else "silver"

    @property
    def coverage(self) -> float:
        """The share of words that are scored."""
        return 1 - sum(self.skipped.values()) / self.words if self.words else 0.0

    @property
    def reachable(self) -> float:
        """The share of all borders that lie at the edge of a syllable: the recall that whole syllables can have."""
        cuts = sum(len(sentence.cuts) for sentence in self.sentences)
        fused = sum(len(sentence.fused) for sentence in self.sentences)
        return cuts / (cuts + fused) if cuts + fused else 0.0

    @classmethod
    def of(
        cls,
        name: str,
        sentences: Sequence[Sequence[Word]],
        *,
        human: bool,
        digest: str = "",
        documents: Sequence[str] = (),
    ) -> GoldCorpus:
        """A corpus from words with their morphemes and tags, and for each sentence the document that it is of, if known.

        Examples
        --------
        >>> words = [("집에서", ["집", "에서"], ["NNG", "JKB"], False), ("갔다", ["가", "았", "다"], ["VV", "EP", "EF"], True)]
        >>> gold = GoldCorpus.of("tiny", [words], human=True)
        >>> gold.sentences[0].text, [(c.at, c.kind) for c in gold.sentences[0].cuts]
        ('집에서 갔다', [(1, 'N|J'), (5, 'E|E')])
        >>> [(c.at, c.kind) for c in gold.sentences[0].fused], round(gold.reachable, 3)
        ([(4, 'V|E')], 0.667)
        """
        skipped: Counter[str] = Counter()
        annotated = []
        total = 0
        for words, document in zip(sentences, documents or [""] * len(sentences), strict=True):
            text = ""
            morphemes: list[GoldMorpheme] = []
            cuts: list[GoldCut] = []
            fused: list[GoldCut] = []
            masked: list[tuple[int, int]] = []
            neutral: list[int] = []
            outer: list[int] = []
            for form, forms, tags, spaced in words:
                text += " " if spaced and text else ""
                at = len(text)
                if at and not spaced and not (is_syllable(text[-1]) and is_syllable(form[:1] or " ")):
                    outer.append(at)  # treebanks write punctuation as words of their own
                text += form
                total += 1
                reason = _reason(form, forms, tags)
                if not reason:
                    alignment = surface_cuts(form, forms)
                    reason = "morphemes do not fit the form" if alignment.cost > TOLERATED else ""
                if reason:
                    skipped[reason] += 1
                    masked.append((at, at + len(form)))
                    continue
                morphemes += [
                    GoldMorpheme(m, tag, at + a, at + b)
                    for m, tag, (a, b) in zip(forms, tags, alignment.spans, strict=True)
                ]
                cuts += [
                    GoldCut(at + p, gold_boundary(tags[k], tags[k + 1]))
                    for p, k in alignment.cuts
                    if is_syllable(form[p - 1]) and is_syllable(form[p])
                ]
                outer += [at + p for p, _ in alignment.cuts if not (is_syllable(form[p - 1]) and is_syllable(form[p]))]
                fused += [GoldCut(at + p, gold_boundary(tags[k], tags[k + 1])) for p, k in alignment.fused]
                edges = {p + side for p, _ in alignment.fused for side in (0, 1)} - {p for p, _ in alignment.cuts}
                neutral += sorted(at + p for p in edges if 0 < p < len(form))
            annotated.append(
                GoldSentence(
                    text,
                    tuple(morphemes),
                    tuple(cuts),
                    tuple(fused),
                    tuple(masked),
                    tuple(neutral),
                    document,
                    tuple(outer),
                )
            )
        return cls(name, human, annotated, total, skipped, digest or _digest(annotated))


def check_names(corpora: Iterable[GoldCorpus]) -> None:
    """Refuse two corpora of one name, whose scores would overwrite each other.

    Examples
    --------
    >>> check_names([GoldCorpus("dev", True, [], 0), GoldCorpus("test", True, [], 0)])
    """
    seen: set[str] = set()
    for corpus in corpora:
        if corpus.name in seen:
            raise UsageError(f"two gold corpora are called `{corpus.name}`", hint="read_gold(PATH, name=NAME)")
        seen.add(corpus.name)


def _reason(form: str, forms: Sequence[str], tags: Sequence[str]) -> str:
    if len(forms) != len(tags):
        return "morphemes and tags differ in number"
    if not forms:
        return "no morphemes"
    if not form or not all(forms):
        return "an empty morpheme"
    return ""


def _digest(sentences: Sequence[GoldSentence]) -> str:
    return hashlib.sha256(repr(sentences).encode()).hexdigest()[:16]
