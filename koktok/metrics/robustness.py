"""The same text, slightly other: without spaces, with typing errors, decomposed; and the same word in other places."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from koktok.hangul import LEADS, VOWELS, compose, is_syllable, letters_of
from koktok.metrics.page import Page, PageTokens, Text
from koktok.metrics.statistics import Table
from koktok.protocol.tokenizer import Tokenizer

Edit = tuple[str, list[int]]
"""The new line, and for each of its characters the place in the old line that it came unchanged from, or −1."""

CONTEXTS: Final = ("", "그 ", "(", "“")
"""Contexts before a word: the start of a line, another word, a bracket, a quotation mark."""

KEYS: Final = ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔ", "ㅁㄴㅇㄹㅎㅗㅓㅏㅣ", "ㅋㅌㅊㅍㅠㅜㅡ")


def _no_spaces(line: str, _: np.random.Generator) -> Edit:
    places = [k for k, char in enumerate(line) if not char.isspace()]
    return "".join(line[k] for k in places), places


def _spaced(line: str, lost: Callable[[int], bool], put: Callable[[int], bool]) -> Edit:
    """Some spaces lost, and one put between some pairs of syllables."""
    text, where = [], []
    for k, char in enumerate(line):
        if char == " " and lost(k):
            continue
        text.append(char)
        where.append(k)
        if k + 1 < len(line) and is_syllable(char) and is_syllable(line[k + 1]) and put(k):
            text.append(" ")
            where.append(-1)
    return "".join(text), where


def _all_spaces(line: str, _: np.random.Generator) -> Edit:
    return _spaced(line, lambda _: False, lambda _: True)


def _some_spaces(line: str, rng: np.random.Generator) -> Edit:
    draws = rng.random(len(line))
    return _spaced(line, lambda k: draws[k] < 0.2, lambda k: draws[k] < 0.06)


def _per_syllable(change: Callable[[str, np.random.Generator], str], share: float) -> Callable[..., Edit]:
    """Syllables replaced by what `change` makes of them, each with this probability."""

    def edit(line: str, rng: np.random.Generator) -> Edit:
        text, where = [], []
        for k, (char, draw) in enumerate(zip(line, rng.random(len(line)), strict=True)):
            new = change(char, rng) if is_syllable(char) and draw < share else char
            text.append(new)
            where += [k if new == char else -1] * len(new)
        return "".join(text), where

    return edit


def _typo(char: str, rng: np.random.Generator) -> str:
    """One letter of the syllable becomes its neighbour on the keyboard."""
    lead, vowel, tail = letters_of(char)
    if rng.random() < 0.5:
        lead = LEADS.find(_neighbour(LEADS[lead], LEADS, rng))
    else:
        vowel = VOWELS.find(_neighbour(VOWELS[vowel], VOWELS, rng))
    return compose(lead, vowel, tail)


def _neighbour(letter: str, allowed: str, rng: np.random.Generator) -> str:
    for row in KEYS:
        if (at := row.find(letter)) >= 0:
            near = [row[k] for k in (at - 1, at + 1) if 0 <= k < len(row) and row[k] in allowed]
            return near[int(rng.integers(len(near)))] if near else letter
    return letter


def _drop(char: str, _: np.random.Generator) -> str:
    """The final consonant is left out; a syllable without one stays."""
    lead, vowel, _tail = letters_of(char)
    return compose(lead, vowel)


HOMOPHONES: Final = dict(zip("되돼됐왜외웬않낫데대에의", "돼되됬외왜왠안낳대데의에", strict=True))


def _homophone(char: str, _: np.random.Generator) -> str:
    return HOMOPHONES.get(char, char)


def _laughter(line: str, _: np.random.Generator) -> Edit:
    """Runs of ㅋ, ㅎ, ㅠ, ㅜ become five letters longer; a line without any gets ㅋㅋㅋㅋㅋ at its end."""
    text, where = [], []
    for k, char in enumerate(line):
        text.append(char)
        where.append(k)
        if char in "ㅋㅎㅠㅜ" and (k + 1 == len(line) or line[k + 1] != char):
            text += [char] * 5
            where += [-1] * 5
    if len(text) == len(line):
        text += "ㅋㅋㅋㅋㅋ"
        where += [-1] * 5
    return "".join(text), where


def _nfd(line: str, _: np.random.Generator) -> Edit:
    text, where = [], []
    for k, char in enumerate(line):
        parts = unicodedata.normalize("NFD", char)
        text.append(parts)
        where += [k] + [-2] * (len(parts) - 1)  # −2: goes with the character before
    return "".join(text), where


def _fullwidth(line: str, _: np.random.Generator) -> Edit:
    """ASCII as East Asian input methods also write it."""
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in line)
    return wide, [k if new == old else -1 for k, (new, old) in enumerate(zip(wide, line, strict=True))]


LOOKALIKES: Final = dict(
    zip("대머멍댕명띵귀커유윾비네왕앟광팡과파며띠", "머대댕멍띵명커귀윾유네비앟왕팡광파과띠며", strict=True)
)
"""Syllables that are written for one another for fun (야민정음): 대 and 머, 명 and 띵."""


def _lookalike(char: str, _: np.random.Generator) -> str:
    return LOOKALIKES.get(char, char)


HANJA: Final = {
    "대한민국": "大韓民國", "대통령": "大統領", "한국": "韓國", "미국": "美國", "중국": "中國", "일본": "日本", "북한": "北韓",
    "정부": "政府", "국회": "國會", "국민": "國民", "사회": "社會", "경제": "經濟", "정치": "政治", "문화": "文化", "역사": "歷史",
    "학교": "學校", "교육": "敎育", "대학": "大學", "학생": "學生", "선생": "先生", "연구": "硏究", "과학": "科學", "문제": "問題",
    "시간": "時間", "생활": "生活", "세계": "世界", "시대": "時代", "전쟁": "戰爭", "평화": "平和", "자유": "自由",
    "회사": "會社", "사실": "事實", "시작": "始作", "필요": "必要", "관계": "關係", "이유": "理由", "방법": "方法", "결과": "結果",
}  # fmt: skip
"""Words that mixed script writes in hanja."""


def _hanja(line: str, _: np.random.Generator) -> Edit:
    mixed = _WORDS_OF_HANJA.sub(lambda match: HANJA[match[0]], line)
    return mixed, [k if new == old else -1 for k, (new, old) in enumerate(zip(mixed, line, strict=True))]


_WORDS_OF_HANJA: Final = re.compile("|".join(sorted(HANJA, key=len, reverse=True)))
_ROMAN: Final = (
    ("g", "kk", "n", "d", "tt", "r", "m", "b", "pp", "s", "ss", "", "j", "jj", "ch", "k", "t", "p", "h"),
    ("a", "ae", "ya", "yae", "eo", "e", "yeo", "ye", "o", "wa", "wae", "oe", "yo", "u", "wo", "we", "wi", "yu", "eu", "ui", "i"),
    ("", "k", "k", "k", "n", "n", "n", "t", "l", "k", "m", "l", "l", "l", "p", "l", "m", "p", "p", "t", "t", "ng", "t", "t", "k", "t", "p", "t"),
)  # fmt: skip
"""Revised Romanization of leads, vowels and tails."""


def _romanised(line: str, rng: np.random.Generator) -> Edit:
    """A tenth of the eojeols letter by letter in Revised Romanization, without its assimilations."""
    text, where, at = [], [], 0
    for word in re.split(r"(\s+)", line):
        chosen = rng.random() < 0.1
        for k, char in enumerate(word, start=at):
            new = char
            if is_syllable(char) and chosen:
                new = "".join(names[i] for names, i in zip(_ROMAN, letters_of(char), strict=True))
            text.append(new)
            where += [k if new == char else -1] * len(new)
        at += len(word)
    return "".join(text), where


PERTURBATIONS: Final[dict[str, Callable[[str, np.random.Generator], Edit]]] = {
    "all_spaces": _all_spaces,
    "drop": _per_syllable(_drop, 0.1),
    "homophone": _per_syllable(_homophone, 1.0),
    "laughter": _laughter,
    "nfd": _nfd,
    "no_spaces": _no_spaces,
    "some_spaces": _some_spaces,
    "typo": _per_syllable(_typo, 0.1),
    "fullwidth": _fullwidth,
    "hanja": _hanja,
    "lookalike": _per_syllable(_lookalike, 1.0),
    "romanised": _romanised,
}
"""Ways to change a line; the place in the list seeds the draws, so new ones go to the end."""


def noise(tokenizer: Tokenizer, text: Text, *, seed: int = 0) -> Table:
    """Counts of each line, before and after each perturbation; cuts compared where both neighbours are unchanged."""
    page = Page(text.lines)
    tokens = PageTokens(page, tokenizer.encode_lines(text.lines))
    columns = {
        "tokens": tokens.per_line,
        "eojeols": page.eojeols,
        "byte_tokens": tokens.per_line_of(np.isin(tokens.rows.ids, list(tokenizer.byte_ids))),
    }
    for number, (name, edit) in enumerate(PERTURBATIONS.items()):
        rng = np.random.default_rng([seed, number])
        edits = [edit(line, rng) for line in text.lines]
        lines = [line for line, _ in edits]
        after_page = Page(lines)
        after = PageTokens(after_page, tokenizer.encode_lines(lines))
        old = np.array([k for _, where in edits for k in where], dtype=np.int64)
        old = np.where(old >= 0, old + np.repeat(page.line_starts[:-1], np.diff(after_page.line_starts)), old)
        starts = np.flatnonzero(old >= 0)  # new places of unchanged characters
        before, after_place = old[starts[:-1]], old[starts[1:]]
        joined = (after_place == before + 1) & (old[starts[1:] - 1] != -1) & page.inner[after_place]
        places, old_places = starts[1:][joined], after_place[joined]
        a, b = tokens.cuts[old_places], after.cuts[places]
        line = np.searchsorted(page.line_starts, old_places, side="right") - 1

        def of(mask: Any, line: Any = line) -> Any:
            return np.bincount(line, weights=mask, minlength=len(page)).astype(np.int64)

        columns[f"{name}_tokens"] = after.per_line
        columns[f"{name}_bytes"] = after.per_line_of(np.isin(after.rows.ids, list(tokenizer.byte_ids)))
        columns[f"{name}_both"], columns[f"{name}_cuts"] = of(a & b), of(a) + of(b)
    return Table(columns, text.units.of)


def contexts(tokenizer: Tokenizer, text: Text, *, words: int = 2000, seed: int = 0) -> Table:
    """For distinct eojeols of Hangul: whether the cuts inside differ between `CONTEXTS`; a row a word."""
    forms = sorted(
        {word for line in text.lines for word in line.split() if len(word) > 1 and all(map(is_syllable, word))}
    )
    rng = np.random.default_rng(seed)
    if len(forms) > words:
        forms = [forms[k] for k in np.sort(rng.choice(len(forms), size=words, replace=False))]
    inside = []
    for context in CONTEXTS:
        lines = [context + form for form in forms]
        page = Page(lines)
        cuts = PageTokens(page, tokenizer.encode_lines(lines)).cuts
        starts = page.line_starts
        inside.append([cuts[starts[k] + len(context) + 1 : starts[k + 1]].tobytes() for k in range(len(forms))])
    differ = np.array([len(set(row)) > 1 for row in zip(*inside, strict=True)], dtype=np.int64)
    alike = np.array([row[0] == row[1] for row in zip(*inside, strict=True)], dtype=np.int64)
    quoted = np.array([len(set(row)) > 1 for row in zip(*inside[1:], strict=True)], dtype=np.int64)
    size = np.arange(len(forms), dtype=np.int64)
    each = np.ones(len(forms), dtype=np.int64)
    return Table({"words": each, "differ": differ, "differ_inside": quoted, "alike_at_start": alike}, size)
