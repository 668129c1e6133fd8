"""Korean words of the page: units, the standing of a gold corpus, and the notes of adapters.

Names, signatures and the reason why a row did not run are not translated; a note without a translation is shown in English.
"""

from __future__ import annotations

import re
from typing import Final

KOREAN: Final = {
    "Korean tokenizers": "한국어 토크나이저 비교",
    "human": "사람",
    "silver": "자동",
    "other": "기타",
    "share": "비율",
    "ratio": "비",
    "%": "%",
    "MB/s": "MB/초",
    "bits/char": "비트/글자",
    "bits/token": "비트/토큰",
    "borders/eojeol": "경계/어절",
    "bytes/token": "바이트/토큰",
    "chars/token": "글자/토큰",
    "cuts/char": "분할/글자",
    "cuts/eojeol": "분할/어절",
    "tokens/byte": "토큰/바이트",
    "tokens/char": "토큰/글자",
    "tokens/eojeol": "토큰/어절",
    "tokens/morpheme": "토큰/형태소",
    "tokens/word": "토큰/단어",
}
"""The default title, the standing of a gold corpus, the last kind of border, and the units of the measures."""

_NOTES: Final = (
    (r"spaces are no tokens", "공백은 토큰이 되지 않음"),
    (r"spaces are tokens", "공백도 토큰"),
    (r"cuts from a file", "파일에 적힌 분할"),
    (r"one token (?:an|for each) eojeol", "어절마다 토큰 하나"),
    (r"one token (?:a|for each) character", "글자마다 토큰 하나"),
    (r"analyser at run time", "실행할 때 형태소 분석기를 씀"),
    (r"analyser at run time, an eojeol at a time", "실행할 때 형태소 분석기를 어절마다 씀"),
    (
        r"restored forms are (?:laid on|aligned to) the text, spaces are no tokens",
        "복원된 형태를 본문에 맞춤, 공백은 토큰이 되지 않음",
    ),
    (r"Kiwi at run time", "실행할 때 Kiwi를 씀"),
    (
        r"surface morphemes, a fused syllable stays whole, spaces are no tokens",
        "표면형 형태소, 융합된 음절은 나누지 않음, 공백은 토큰이 되지 않음",
    ),
    (r"morphemes are restored forms, spaces are no tokens", "형태소는 원형으로 복원됨, 공백은 토큰이 되지 않음"),
    (
        r"WordPiece: spaces are lost, and a word with an unknown character is one unknown token",
        "WordPiece: 공백은 사라지고, 모르는 글자가 든 어절은 통째로 미등록 토큰",
    ),
    (r"input NFKD( \(conjoining jamo\))?", "입력을 NFKD(첫가끝 자모)로 바꿈"),
    (r"drops repeated spaces", "거듭된 공백을 하나로 줄임"),
    (r"normalizes by (.*)", r"\1로 정규화함"),
    (r"a (.*) vocabulary does not keep every text", r"\1 어휘는 일부 글자를 되살리지 못함"),
)
"""Notes, or their parts between semicolons, of the adapters in `koktok.adapters`."""

_UNITS: Final = {
    "document": "문서 {}개",
    "domain": "분야 {}개",
    "block of 50 lines": "50줄 묶음 {}개",
    "block of 50 sentences": "50문장 묶음 {}개",
}


def korean_note(note: str) -> str:
    """Translate a note of an adapter; a part without a translation is returned unchanged.

    Examples
    --------
    >>> korean_note("one token a character; spaces are no tokens")
    '글자마다 토큰 하나; 공백은 토큰이 되지 않음'
    >>> korean_note("normalizes by nmt_nfkc"), korean_note("somebody's own")
    ('nmt_nfkc로 정규화함', "somebody's own")
    """
    parts = []
    for part in note.split("; "):
        known = (re.sub(pattern, korean, part) for pattern, korean in _NOTES if re.fullmatch(pattern, part))
        parts.append(next(known, part))
    return "; ".join(parts)


def korean_units(units: str) -> str:
    """Translate the units of `koktok.report.rows.units_of`.

    Examples
    --------
    >>> korean_units("466 blocks of 50 lines (the text); 9 documents (kaist-dev)")
    '50줄 묶음 466개(본문); 문서 9개(kaist-dev)'
    >>> korean_units("1 block of 50 lines (the text)")
    '50줄 묶음 1개(본문)'
    """
    parts = []
    for part in units.split("; "):
        matched = re.fullmatch(r"(?:([\d,]+) )?(.*?)(?: \((.*)\))?", part)
        number, name, where = matched.groups() if matched else (None, part, None)
        one = name if number == "1" else name.replace("s", "", 1)
        if name == "blocks of lines":
            parts.append("줄 묶음")
        elif number and one in _UNITS:
            place = "" if not where else f"({'본문' if where == 'the text' else where})"
            parts.append(_UNITS[one].format(number) + place)
        else:
            parts.append(part)
    return "; ".join(parts)
