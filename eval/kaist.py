"""Human morphemes of the UD Kaist treebank as cuts of its surface, for `eval.trainers`.

This is the alignment that the trainers were tuned with, by edit distance of jamo; `koktok.gold` has another, by rules, and
sets 0.4 % of the cuts otherwise.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def is_syllable(char: str) -> bool:
    return "가" <= char <= "힣"


def sentences(path: Path) -> Iterator[tuple[str, set[int]]]:
    """Text and cuts of every sentence of a Kaist treebank file; full morphemes stand in OrigLemma."""
    text, cuts, space = "", set(), False
    for line in path.read_text(encoding="utf-8").splitlines():
        row = line.split("\t")
        if not line:
            if text:
                yield text, {p for p in cuts if 0 < p < len(text) and is_syllable(text[p - 1]) and is_syllable(text[p])}
            text, cuts, space = "", set(), False
        elif row[0].isdigit():
            misc = dict(pair.split("=", 1) for pair in row[9].split("|") if "=" in pair)
            text += " " if space and text else ""
            form = unicodedata.normalize("NFC", row[1])
            lemma = unicodedata.normalize("NFC", misc.get("OrigLemma", row[2]))
            cuts |= {len(text), *(len(text) + p for p in surface_cuts(form, lemma.split("+")))}
            text += form
            space = misc.get("SpaceAfter") != "No"


LEADS, TAILS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ", "ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"


def letters(text: str) -> list[tuple[str, str, int]]:
    """Class (L, V, T or O), letter and syllable of every jamo."""
    found = []
    for i, char in enumerate(text):
        code = ord(char) - 0xAC00
        if 0 <= code < 11172:
            found += [("L", LEADS[code // 588], i), ("V", str(code // 28 % 21), i)]
            found += [("T", TAILS[code % 28 - 1], i)] if code % 28 else []
        elif char in TAILS:
            found.append(("T", char, i))
        else:
            found.append(("O", char, i))
    return found


def surface_cuts(form: str, morphemes: list[str]) -> set[int]:
    """Where underlying morphemes part on the surface, by jamo edit distance."""
    morphemes = [m for m in morphemes if m]
    if "".join(morphemes) == form:
        return set(np.cumsum([len(m) for m in morphemes])[:-1].tolist())
    above = letters(form)
    below = [(kind, letter, k) for k, m in enumerate(morphemes) for kind, letter, _ in letters(m)]

    def change(a: tuple[str, str, int], b: tuple[str, str, int]) -> float:
        if a[0] == b[0]:
            return 0.0 if a[1] == b[1] else 0.6 if a[0] in "LVT" else 1.5
        return 0.8 if {a[0], b[0]} == {"L", "T"} and a[1] == b[1] else 1.5

    cost = np.zeros((len(above) + 1, len(below) + 1))
    cost[:, 0], cost[0, :] = range(len(above) + 1), range(len(below) + 1)
    for i, a in enumerate(above, start=1):
        for j, b in enumerate(below, start=1):
            cost[i, j] = min(cost[i - 1, j - 1] + change(a, b), cost[i - 1, j] + 1, cost[i, j - 1] + 1)
    i, j = len(above), len(below)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    while i and j:
        if np.isclose(cost[i, j], cost[i - 1, j - 1] + change(above[i - 1], below[j - 1])):
            i, j = i - 1, j - 1
            first[below[j][2]] = above[i][2]
            last.setdefault(below[j][2], above[i][2])
        elif np.isclose(cost[i, j], cost[i - 1, j] + 1):
            i -= 1
        else:
            j -= 1
    cuts = set()
    for k in range(len(morphemes) - 1):
        left = [last[m] for m in last if m <= k]
        right = [first[m] for m in first if m > k]
        if left and right and max(left) < min(right):
            cuts.add(min(right))
    return cuts
