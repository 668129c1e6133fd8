"""Underlying morphemes to the surface: where a cut is legal, and where two morphemes share one syllable.

Gold lemmas are restored forms (하+았+다 for 했다), and a tokenizer cuts surface text, so each border between morphemes is
either an edge between two syllables or lies inside one (*fused*: no token can respect it unless it is made of jamo).
The two strings of letters are aligned at least cost. Beside equal letters, substitution, insertion and deletion there
are the contractions of Korean orthography (보+아 → 봐, 돕+아 → 도와, 모르+아 → 몰라), which know which syllable belongs to
both sides; edit distance alone would put a cut before the wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from koktok.hangul import COMPATIBILITY, LEADS, TAILS, VOWELS, is_syllable, letters_of
from koktok.segment.policy import Morpheme

ARAE_A: Final = "ㆍ"
"""The old vowel that Jeju still has, as in ᄒᆞ-; its syllables are written in conjoining jamo."""

CONJOINING: Final = {
    jamo: ("LVT"[(k >= len(LEADS)) + (k >= len(LEADS + VOWELS))], letter)
    for k, (jamo, letter) in enumerate(COMPATIBILITY.items())
} | {"\u119e": ("V", ARAE_A), "\u11dd": ("T", "ㅁ")}  # ㅁㅅ of Jeju's ending -어ᇝ- leaves its ㅁ
"""Conjoining jamo: Kiwi's files write a lone final consonant so, and every syllable with arae-a is a sequence of them."""

Letter = tuple[str, str]
"""Class (L lead, V vowel, T final, O anything else) and letter."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How morphemes lie on a word."""

    spans: tuple[tuple[int, int], ...]
    cuts: tuple[tuple[int, int], ...]
    fused: tuple[tuple[int, int], ...]
    cost: float


def _l(text: str) -> tuple[Letter, ...]:
    """Letters from a shorthand: a capital class before each letter."""
    return tuple((text[k], text[k + 1]) for k in range(0, len(text), 2))


MERGED: Final = (
    "ㅏㅏㅏ ㅓㅓㅓ ㅗㅏㅘ ㅜㅓㅝ ㅣㅓㅕ ㅚㅓㅙ ㅡㅓㅓ ㅡㅏㅏ ㅏㅕㅐ ㅏㅓㅐ ㅏㅏㅐ ㅐㅓㅐ ㅔㅓㅔ ㅕㅓㅕ ㅣㅓㅓ ㅜㅓㅓ ㅓㅓㅔ "
    "ㅓㅣㅔ ㅏㅣㅐ ㅗㅣㅚ ㅜㅣㅟ ㅑㅣㅒ ㅐㅏㅐ ㅓㅏㅓ ㅜㅏㅘ ㅓㅓㅐ ㅑㅏㅒ ㅞㅓㅞ ㅟㅓㅕ ㅣㅏㅕ ㅡㅣㅢ ㅏㅓㅏ "
    "ㅣㅔㅔ ㅣㅐㅐ ㅡㅡㅡ ㅏㅡㅏ ㅓㅡㅓ ㅗㅡㅗ ㅜㅡㅜ ㅣㅡㅣ "
    "ㅏㅢㅐ ㅓㅢㅔ ㅏㅓㅔ ㆍㅓㅔ ㆍㅓㅐ ㆍㅕㅔ ㆍㅡㅏ"
)
"""Two vowels with an empty lead between them, and the one vowel that they become: 가+아 가, 보+아 봐, 하+여 해, 되+어 돼, 나+의 내,
ᄒᆞ+엇 헷. After a vowel that ends in ㅣ the copula leaves no trace (문제+이+다 문제|다) rather than a part in that syllable."""


def _contractions() -> dict[tuple[Letter, ...], list[tuple[tuple[Letter, ...], float]]]:
    """Underlying letters to the surface letters that replace them, with a cost."""
    found: dict[tuple[Letter, ...], list[tuple[tuple[Letter, ...], float]]] = {}

    def rule(below: str, above: str, cost: float = 0.3) -> None:
        found.setdefault(_l(below), []).append((_l(above), cost))

    for triple in MERGED.split():
        a, b, both = list(triple)
        rule(f"V{a}LㅇV{b}", f"V{both}")
    # ㅂ: 돕+아 도와, 가깝+어 가까워, 가깝+으면 가까우면, 가깝+ㄴ 가까운.
    for pair in ("ㅏㅘ", "ㅓㅝ", "ㅏㅝ", "ㅓㅘ", "ㅡㅜ"):
        vowel, both = list(pair)
        rule(f"TㅂLㅇV{vowel}", f"LㅇV{both}")
    rule("Tㅂ", "LㅇVㅜ", 0.5)
    rule("Tㅂ", "LㅇVㅗ", 0.9)
    # 르: 모르+아 몰라, 흐르+어 흘러; 러: 푸르+어 푸르러.
    rule("LㄹVㅡ", "TㄹLㄹ", 0.1)
    for vowel in "ㅏㅓ":
        rule(f"LㅇV{vowel}", f"LㄹV{vowel}", 0.4)
    # ㅎ: 그렇+어 그래, 하얗+아 하얘, 그렇+ㄴ 그런, 그렇+었 그랬.
    for triple in ("ㅓㅓㅐ", "ㅏㅏㅐ", "ㅑㅏㅒ", "ㅕㅓㅖ", "ㅏㅓㅐ", "ㅓㅓㅔ", "ㅓㅏㅐ"):
        a, b, both = list(triple)
        rule(f"V{a}TㅎLㅇV{b}", f"V{both}")
    for a in "ㅏㅓㅑㅕ":
        rule(f"V{a}TㅎLㅇVㅡ", f"V{a}")
    for triple in ("ㅗㅏㅘ", "ㅗㅓㅘ"):  # 놓+아 놔, 놓+었 놨
        a, b, both = list(triple)
        rule(f"V{a}TㅎLㅇV{b}", f"V{both}")
    # ㅅ, ㄷ, ㄹ: 짓+어 지어, 듣+어 들어, 살+는 사는, 만들+ㄴ 만든.
    rule("Tㅅ", "", 0.5)
    rule("Tㅎ", "", 0.5)
    rule("Tㄹ", "", 0.5)
    rule("Tㄷ", "Tㄹ", 0.3)
    rule("TㄹTㄴ", "Tㄴ")
    rule("TㄹTㄹ", "Tㄹ")
    rule("TㄹTㅂ", "Tㅂ")
    rule("TㄹLㅇVㅡTㄴ", "Tㄴ", 0.4)
    rule("TㄹLㅇVㅡTㄹ", "Tㄹ", 0.4)
    rule("TㄹLㅇ", "Lㄹ", 0.4)  # written over: 들+어 드러
    for vowel in "ㅏㅓ":
        rule(f"VㅏTㄹLㅇV{vowel}", "Vㅏ", 0.4)  # 말+아라 마라
    # The helping vowel and the copula leave no trace: 가+은 간, 학교+이+다 학교다; a stem in 으 loses it whole: 모으+아 모아.
    rule("LㅇVㅡ", "", 0.25)
    rule("LㅇVㅣ", "", 0.6)
    # … and is written where the gold has the bare consonant: 짓+ㄴ 지은, 같+ㄴ 같은.
    for final in "ㄴㄹㅁㅂ":
        rule(f"T{final}", f"LㅇVㅡT{final}", 0.9)
    # 것 contracts: 것+이 게, 것+은 건, 것+을 걸; 하+지 치.
    rule("TㅅLㅇVㅣ", "Vㅣ", 0.7)
    rule("VㅓTㅅLㅇVㅣ", "Vㅔ", 0.3)
    rule("TㅅLㅇVㅡTㄴ", "Tㄴ", 0.3)
    rule("TㅅLㅇVㅡTㄹ", "Tㄹ", 0.3)
    rule("TㅅLㅇVㅣTㅂ", "Tㅂ", 0.3)
    rule("LㅎVㅏLㅈ", "Lㅊ", 0.3)
    rule("LㅎVㅏLㄱ", "Lㅋ", 0.3)
    rule("LㅎVㅏLㄷ", "Lㅌ", 0.3)
    rule("LㅈVㅣLㅇVㅏTㄶ", "LㅈVㅏTㄶ", 0.3)
    return found


CONTRACTIONS: Final = _contractions()
LONGEST: Final = max(map(len, CONTRACTIONS))
TOLERATED: Final = 0.5
"""Above this cost per letter the lemma is of another word; the caller leaves the word out."""


def letters(text: str) -> list[Letter]:
    """Every syllable as its letters; lone consonants count as finals, as in ㄴ다 and ㅂ니다."""
    found: list[Letter] = []
    for char in text:
        if is_syllable(char):
            lead, vowel, tail = letters_of(char)
            found += [("L", LEADS[lead]), ("V", VOWELS[vowel])]
            if tail:
                found.append(("T", TAILS[tail]))
        else:
            letter = ("T" if char in TAILS else "V" if char in VOWELS or char == ARAE_A else "O", char)
            found.append(CONJOINING.get(char, letter))
    return found


def _change(a: Letter, b: Letter) -> float:
    if a == b:
        return 0.0
    if a[0] == b[0]:
        return 1.5 if a[0] == "O" else 0.6
    return 0.8 if {a[0], b[0]} == {"L", "T"} and a[1] == b[1] else 1.5


@lru_cache(maxsize=1 << 16)
def _owners(above: tuple[Letter, ...], below: tuple[Letter, ...]) -> tuple[tuple[tuple[int, int], ...], float]:
    """For each step of the best alignment that writes surface letters: how many it writes, how many it reads."""
    rows, columns = len(above) + 1, len(below) + 1
    cost = [[float("inf")] * columns for _ in range(rows)]
    back: list[list[tuple[int, int]]] = [[(0, 0)] * columns for _ in range(rows)]
    cost[0][0] = 0.0
    known = [
        [
            (len(written), size, written, price)
            for size in range(1, min(LONGEST, len(below) - j) + 1)
            for written, price in CONTRACTIONS.get(below[j : j + size], ())
        ]
        for j in range(columns)
    ]
    for i in range(rows):
        for j in range(columns):
            reached = cost[i][j]
            if reached == float("inf"):
                continue

            def offer(di: int, dj: int, price: float, reached: float = reached, i: int = i, j: int = j) -> None:
                if reached + price < cost[i + di][j + dj] - 1e-9:
                    cost[i + di][j + dj] = reached + price
                    back[i + di][j + dj] = (di, dj)

            if i + 1 < rows and j + 1 < columns:
                offer(1, 1, _change(above[i], below[j]))
            if i + 1 < rows:
                offer(1, 0, 1.0)
            if j + 1 < columns:
                offer(0, 1, 1.0)
            for length, size, written, price in known[j]:
                if above[i : i + length] == written:
                    offer(length, size, price)
    steps = []
    i, j = rows - 1, columns - 1
    while i or j:
        di, dj = back[i][j]
        steps.append((di, dj))
        i, j = i - di, j - dj
    return tuple(reversed(steps)), cost[-1][-1]


def surface_cuts(form: str, morphemes: Sequence[str]) -> Alignment:
    """Lay morphemes on a word.

    Examples
    --------
    >>> surface_cuts("먹었다", ["먹", "었", "다"]).cuts
    ((1, 0), (2, 1))
    >>> found = surface_cuts("했다", ["하", "았", "다"])
    >>> found.cuts, found.fused, found.spans
    (((1, 1),), ((0, 0),), ((0, 1), (0, 1), (1, 2)))
    """
    if "".join(morphemes) == form:
        ends = [0]
        for morpheme in morphemes:
            ends.append(ends[-1] + len(morpheme))
        return _borders([*pairwise(ends)], form, 0.0)
    above, where = [], []
    for at, char in enumerate(form):
        these = letters(char)
        above += these
        where += [at] * len(these)
    below, owner = [], []
    for k, morpheme in enumerate(morphemes):
        these = letters(morpheme)
        below += these
        owner += [k] * len(these)
    # Equal beginnings need no table, but the last syllable of them may be half of a contraction.
    same = 0
    while same < min(len(above), len(below)) and above[same] == below[same]:
        same += 1
    keep = where[same] if same < len(where) else len(form)
    head = max(
        (k for k in range(same + 1) if k == 0 or (k < len(where) and where[k] < keep and above[k][0] in "LO")),
        default=0,
    )
    steps, cost = _owners(tuple(above[head:]), tuple(below[head:]))
    owned: list[set[int]] = [set() for _ in form]
    for k in range(head):
        owned[where[k]].add(owner[k])
    i = j = head
    free: list[int] = []
    for di, dj in steps:
        readers = set(owner[j : j + dj])
        if di and not readers:
            free += where[i : i + di]
        for at in where[i : i + di]:
            owned[at] |= readers
        i, j = i + di, j + dj
    for at in free:  # a letter from nowhere goes with the morphemes of its syllable, or else with the one before
        if not owned[at]:
            owned[at] = {max(owned[at - 1])} if at and owned[at - 1] else {0}
    spans = []
    for k in range(len(morphemes)):
        mine = [at for at, who in enumerate(owned) if k in who]
        spans.append((min(mine), max(mine) + 1) if mine else None)
    return _borders(spans, form, cost / max(len(above), len(below), 1))


def laid(word: str, pairs: Sequence[tuple[str, str]]) -> tuple[Morpheme, ...]:
    """Forms and tags of an analyser that restores forms, as morphemes with their spans; none where they do not fit the word.

    Examples
    --------
    >>> [(m.start, m.end, m.form) for m in laid("했다", [("하", "VV"), ("았", "EP"), ("다", "EF")])]
    [(0, 1, '하'), (0, 1, '았'), (1, 2, '다')]
    >>> laid("했다", [("학교", "NNG"), ("에서", "JKB")])
    ()
    """
    forms = [form for form, _ in pairs]
    if not forms or not all(forms):
        return ()
    found = surface_cuts(word, forms)
    if found.cost > TOLERATED:
        return ()
    return tuple(Morpheme(a, b, tag, form) for (form, tag), (a, b) in zip(pairs, found.spans, strict=True))


def _borders(spans: Sequence[tuple[int, int] | None], form: str, cost: float) -> Alignment:
    """Edges and fused borders between neighbours; a morpheme without a trace is put where the one before it ends."""
    size = len(form)
    placed: list[tuple[int, int]] = []
    for span in spans:
        end = placed[-1][1] if placed else 0
        placed.append(span or (end, end))
    cuts: dict[int, int] = {}
    fused = []
    for k in range(len(placed) - 1):
        left = max(end for _, end in placed[: k + 1])
        right = min((start for start, end in placed[k + 1 :] if end > start), default=size)
        if left <= right:
            if 0 < right < size and "\u1160" <= form[right] <= "\u11ff":  # inside a syllable of conjoining jamo: ᄒᆞ+ᆫ
                fused.append((max(at for at in range(right) if not "\u1160" <= form[at] <= "\u11ff"), k))
            elif 0 < right < size:
                cuts.setdefault(right, k)
        else:
            fused.append((right, k))
    return Alignment(tuple(placed), tuple(sorted(cuts.items())), tuple(fused), cost)
