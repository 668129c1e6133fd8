"""Minimal pairs of Korean morphology, made of any lines: a true line, and one that is wrong in one particle, ending or place.

A file of them has one JSON object a line:

    {"kind": "은/는", "good": "남규리는 …", "bad": "남규리은 …", "at": 3, "stem": "남규리", "frequency": 7, "source": "wiki"}

`at` is where the two begin to differ, `stem` the string before the particle or ending, `frequency` how often the training text has it as
a word, alone or with particles (of verbs: how many of its words begin with it). A model is right where the good line is more probable.
The rule behind every kind holds whatever the sentence says: which of two forms follows a final consonant or a vowel, which endings
an auxiliary wants, in which order particles stand. Only `order` (the object behind its verb) is a matter of style.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from koktok.files import write_file
from koktok.hangul import is_syllable

CLASSES: Final = (0, 1, 10, 100, 1000)
"""Least frequencies of the classes of words and stems."""
SHORTEST, LONGEST = 12, 120
"""Characters of a line."""
MOST, MOST_OF_CLASS, MOST_OF_STEM = 240, 60, 4
"""Pairs of a kind, of a kind and class of frequency, of a kind and stem."""

AFTER_CONSONANT: Final = {"은": "는", "이": "가", "을": "를", "과": "와", "으로": "로"}
PARTNER: Final = AFTER_CONSONANT | {vowel: consonant for consonant, vowel in AFTER_CONSONANT.items()}
KINDS: Final = {form: f"{a}/{b}" for a, b in AFTER_CONSONANT.items() for form in (a, b)}
TAGS: Final = {
    "은/는": ("JX",),
    "이/가": ("JKS", "JKC"),
    "을/를": ("JKO",),
    "과/와": ("JC", "JKB"),
    "으로/로": ("JKB",),
}
NOUNS: Final = ("NNG", "NNP", "NNB", "NP", "NR", "XSN")
HARMONY: Final = {"았": "었", "었": "았", "아": "어", "어": "아"}
BRIGHT: Final = (0, 2, 8)
"""Numbers of ㅏ, ㅑ, ㅗ, after which 아 stands."""
WANTED: Final = {"지": ("않", "못하"), "고": ("있", "싶")}
"""Auxiliaries behind these endings."""
_WRITTEN: Final = (
    "은 는 이 가 을 를 과 와 의 에 도 만 로 으로 에서 에게 까지 부터 이나 나 에는 에도 에서는 에서도 으로는 로는 으로도 로도 에게는 에게도 "
    "이다 다 이라고 라고 이라는 라는 인 이며 이고 보다 처럼 께서 한테 이란 란 들 들은 들이 들을 들의 들에게"
)
BEHIND_NOUNS: Final = frozenset(_WRITTEN.split())
EDGES: Final = ".,!?\"'()[]‘’“”…~·:;<>《》「」『』"


@dataclass(frozen=True)
class Pair:
    """A true line and a wrong one."""

    kind: str
    good: str
    bad: str
    at: int
    stem: str
    frequency: int
    source: str


@dataclass(frozen=True)
class Found:
    """What is wrong in a line: kind, where, the wrong line, and the stem of a verb or of a noun."""

    kind: str
    at: int
    bad: str
    stem: str
    noun: bool = False


def closed(syllable: str) -> int:
    """The number of the final consonant, 0 for none.

    Examples
    --------
    >>> [closed(syllable) for syllable in "남리길"]
    [16, 0, 8]
    """
    return (ord(syllable) - 0xAC00) % 28


def vowel(syllable: str) -> int:
    """The number of the vowel."""
    return (ord(syllable) - 0xAC00) // 28 % 21


def class_of(frequency: int) -> int:
    """The class of a frequency.

    Examples
    --------
    >>> [class_of(frequency) for frequency in (0, 9, 10, 5000)]
    [0, 1, 2, 4]
    """
    return sum(frequency >= least for least in CLASSES) - 1


class Words:
    """How often the training text has each word."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.counts = Counter(word for line in lines for word in line.split())

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.counts)

    def beginning(self, stem: str) -> Iterator[str]:
        """Words that begin so."""
        at = bisect_left(self._sorted, stem)
        while at < len(self._sorted) and self._sorted[at].startswith(stem):
            yield self._sorted[at]
            at += 1

    def noun(self, stem: str) -> int:
        """How often a noun occurs alone or with particles.

        Examples
        --------
        >>> Words(["나무는 나무, 나무라고 나무꾼"]).noun("나무")
        3
        """
        found = (word for word in self.beginning(stem) if word[len(stem) :].rstrip(EDGES) in BEHIND_NOUNS | {""})
        return sum(self.counts[word] for word in found)

    def verb(self, stem: str) -> int:
        """How many words begin with a stem."""
        return sum(self.counts[word] for word in self.beginning(stem))


def found_in(line: str, tokens: Sequence[Any]) -> Iterator[Found]:
    """The pairs in a line that Kiwi analysed."""
    for i, here in enumerate(tokens[1:], 1):
        start, end, before = here.start, here.start + here.len, tokens[i - 1]
        form, behind = line[start:end], line[end : end + 1]
        if form != here.form or before.start + before.len != start or not is_syllable(line[start - 1]):
            continue
        word = line.rfind(" ", 0, start) + 1
        stem, last = line[word:start].lstrip(EDGES), line[start - 1]
        ended, bare = behind in ("", " "), bool(stem) and all(map(is_syllable, stem))
        kind, tag = KINDS.get(form, ""), here.tag
        if kind and tag in TAGS[kind] and before.tag in NOUNS and ended and bare:
            consonant = bool(closed(last)) and not (kind == "으로/로" and closed(last) == 8)
            if (form in AFTER_CONSONANT) == consonant:
                yield Found(kind, start, line[:start] + PARTNER[form] + line[end:], stem, noun=True)
        elif bare and before.tag[:2] in ("VV", "VA", "VX") and is_harmonic(form, tag):
            if (vowel(last) in BRIGHT) == (form[0] in "아았"):
                yield Found("았/었", start, line[:start] + HARMONY[form[0]] + line[start + 1 :], stem)
        elif bare and form == "은" and tag == "ETM" and before.tag == "VA" and behind == " ":
            yield Found("adjective + 은", start, line[:start] + "는" + line[end:], stem)
        elif form in ("는", "도") and tag == "JX" and before.tag == "JKB" and i > 1 and ended:
            particle, noun = line[before.start : start], line[word : before.start].lstrip(EDGES)
            if particle == before.form and tokens[i - 2].tag in NOUNS and noun and all(map(is_syllable, noun)):
                bad = line[: before.start] + form + particle + line[end:]
                yield Found("order of particles", before.start, bad, noun, noun=True)
        elif bare and form in WANTED and tag == "EC" and behind == " " and wanted_by(form, tokens[i + 1 :]):
            yield Found("지/고", start, line[:start] + ("고" if form == "지" else "지") + line[end:], stem)
    yield from moved_object(line, tokens)


def is_harmonic(form: str, tag: str) -> bool:
    """Whether an ending begins with 아 or 어 by the vowel before it."""
    if tag == "EP":
        return form in ("았", "었")
    return tag in ("EC", "EF") and form[0] in "아어" and form[1:] in ("서", "도", "야", "요")


def wanted_by(form: str, behind: Sequence[Any]) -> bool:
    """Whether the auxiliary behind an ending takes this one alone."""
    return bool(behind) and behind[0].tag.startswith("VX") and behind[0].form in WANTED[form]


def moved_object(line: str, tokens: Sequence[Any]) -> Iterator[Found]:
    """The last two words of a sentence in the other order, where they are an object and its verb."""
    words = line.split(" ")
    if len(words) < 4 or len(tokens) < 3 or (tokens[-2].tag, tokens[-1].tag) != ("EF", "SF"):
        return
    object_of, verb, mark = words[-2], words[-1][:-1], words[-1][-1:]
    start = len(line) - len(words[-1]) - 1 - len(object_of)
    ends_so = any(t.tag == "JKO" and t.start + t.len == start + len(object_of) for t in tokens)
    if ends_so and object_of and verb and all(map(is_syllable, object_of + verb)):
        yield Found("order", start, f"{line[:start]}{verb} {object_of}{mark}", verb)


def pairs_of(domains: Mapping[str, Sequence[str]], words: Words) -> list[Pair]:
    """Pairs of lines by domain, at most `MOST` a kind; the same for the same lines, words and Kiwi."""
    from kiwipiepy import Kiwi

    lines = [(name, line) for name, some in domains.items() for line in some if SHORTEST <= len(line) <= LONGEST]
    analysed = Kiwi(num_workers=1).tokenize((line for _, line in lines), normalize_coda=False)
    by_kind: dict[str, list[Pair]] = defaultdict(list)
    for (source, line), tokens in zip(lines, analysed, strict=True):
        for one in found_in(line, tokens):
            wrong, right = words.counts[word_at(one.bad, one.at)], words.counts[word_at(line, one.at)]
            if one.kind != "order" and 20 * wrong > right > 0:
                continue  # a word of its own
            frequency = words.noun(one.stem) if one.noun else words.verb(one.stem)
            by_kind[one.kind].append(Pair(one.kind, line, one.bad, one.at, one.stem, frequency, source))
    return [pair for kind in sorted(by_kind) for pair in chosen(by_kind[kind])]


def word_at(line: str, at: int) -> str:
    """The word around a place, without marks at its ends.

    Examples
    --------
    >>> word_at("그 (나무는) 크다", 5)
    '나무는'
    """
    end = line.find(" ", at)
    return line[line.rfind(" ", 0, at) + 1 : end if end >= 0 else None].strip(EDGES)


def chosen(pairs: Sequence[Pair]) -> list[Pair]:
    """At most so many of a kind, by class of frequency and stem, and one of a line, in an order that is drawn."""
    lines, stems, classes = set[str](), Counter[str](), Counter[int]()
    kept: list[Pair] = []
    for k in np.random.default_rng(0).permutation(len(pairs)).tolist():
        pair = pairs[k]
        at = class_of(pair.frequency)
        if pair.good in lines or stems[pair.stem] >= MOST_OF_STEM or classes[at] >= MOST_OF_CLASS or len(kept) >= MOST:
            continue
        lines.add(pair.good)
        stems[pair.stem] += 1
        classes[at] += 1
        kept.append(pair)
    return kept


def prompts_of(domains: Mapping[str, Sequence[str]], count: int = 600) -> list[tuple[str, int, str]]:
    """Lines with a place inside a word between two syllables, and their domains."""
    lines = [(name, line) for name, some in domains.items() for line in some if 30 <= len(line) <= LONGEST]
    random = np.random.default_rng(1)
    found = []
    for k in random.permutation(len(lines)).tolist():
        name, line = lines[k]
        at = [i for i in range(10, len(line) - 10) if is_syllable(line[i - 1]) and is_syllable(line[i])]
        if at and len(found) < count:
            found.append((line, int(random.choice(at)), name))
    return found


def write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """A JSON object a line."""
    rows = (json.dumps(asdict(pair), ensure_ascii=False) for pair in pairs)
    write_file(path, "".join(f"{row}\n" for row in rows).encode())


def read_pairs(path: Path) -> list[Pair]:
    """What `write_pairs` wrote."""
    return [Pair(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
