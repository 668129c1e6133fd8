"""Korean words of the page: units, and the standing of a gold corpus.

Names, signatures and the reason why a row did not run are not translated; a note brings its Korean along.
"""

from __future__ import annotations

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
    "boundaries/eojeol": "경계/어절",
    "bytes/token": "바이트/토큰",
    "chars/token": "글자/토큰",
    "cuts/char": "나눈 자리/글자",
    "cuts/eojeol": "나눈 자리/어절",
    "tokens/byte": "토큰/바이트",
    "tokens/char": "토큰/글자",
    "tokens/eojeol": "토큰/어절",
    "tokens/morpheme": "토큰/형태소",
    "tokens/word": "토큰/단어",
}
"""The default title, the standing of a gold corpus, the last kind of border, and the units of the measures."""

_UNITS: Final = {
    "document": "문서 {}개",
    "domain": "분야 {}개",
    "block of 50 lines": "50줄 묶음 {}개",
    "block of 50 sentences": "50문장 묶음 {}개",
    "block of 50 texts": "텍스트 50개 묶음 {}개",
}


def korean_units(units: str) -> str:
    """A number of units.

    Examples
    --------
    >>> korean_units("466 blocks of 50 lines"), korean_units("1 domain")
    ('50줄 묶음 466개', '분야 1개')
    """
    number, _, name = units.partition(" ")
    return _UNITS[name if number == "1" else name.replace("s", "", 1)].format(number)
