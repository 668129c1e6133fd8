"""probe.json: sixty lines of text and their ids, to check any runtime without koktok.

The digest is that of the compact JSON `{"ids": …, "lines": …}` in UTF-8. If the ids of a runtime in place of `ids` have the same
digest, the runtime gives the same ids. No line holds a line break or spells a special token.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from koktok.errors import ArtifactError
from koktok.files import read_bounded

PROBE: Final = "probe.json"

_LINES = (
    *("학교에서는 책을 읽습니다.", "한국어는 교착어이다.", "할 수 있을 것 같다. 그런데 할수있을것같다고?", "갔다가 왔어요, 했더니 됐습니다!"),
    *("가각갂갃간갅갆갇갈갉힣힢 뷁 쀍 똠 햏", "똠방각하와 펲시콜라를 샀대요", "아버지가방에들어가신다", "값어치 없는 닭의 앎과 삶"),
    *("서울특별시 종로구 세종대로 209", "그는 “정말?” 하고 물었다", "읽다·쓰다·말하다", "이것은—저것은… 그것은?"),
    *("ㅋㅋㅋㅋ ㅠㅠ ㅇㅇ ㄳ ㄹㅇ", "ㅎㅏㄴㄱㅡㄹ ㅏㅑㅓㅕ", "ㅋ" * 60, "아아아아아아아 ㅋㅋㅎㅎ ㅜㅜㅜ"),
    *("\u1112\u1161\u11ab\u1100\u1173\u11af", "\u1100\u1100\u1161 \u11ab\u1161 \u1161\u11a8", "ﾡﾤ ￦ Ａ１！"),
    *("나랏〮말〯ᄊᆞ미 듀ᇰ귁에 달아", "ᄒᆞᆫ글 ᅀᅡᆷ 훈민져ᇰᅙᅳᆷ", "문ᄍᆞᆼ와로 서르 ᄉᆞᄆᆞᆺ디 아니ᄒᆞᆯᄊᆡ"),
    *("漢字와 金金 樂樂", "大韓民國憲法 第1條", "北京에서 東京까지", "國 國 羅 羅"),
    *("😀 👍🏽 ❤️ ☺ 좋아요", "👩\u200d👩\u200d👧 가족 👨\u200d💻", "🇰🇷 1️⃣ 🏳️\u200d🌈", "🏴\U000e0067\U000e0062\U000e007f 깃발"),
    *("Hello, World! Don't stop.", "naïve façade Ångström", "GPU 8개로 LLM을 fine-tuning했다", "iPhone15를 USB-C로 충전"),
    *("def f(x): return x + 1", "if (a != b) { c += d[i]; }", "カナ かな 한글 漢字 abc", "зима ελ ไทย العربية שלום"),
    *(" 앞에 빈칸", "뒤에 빈칸 ", "두  칸   세 칸    네 칸", "표\t안의\t글", " ", "가\u00a0나\u3000다\u2009라", "가\u200b나\u00ad다\ufeff라"),
    *("https://example.com/가?a=1&b=%EA%B0%80#끝", "me@example.com 으로 보내세요", "www.example.co.kr/~user_name", "#해시태그 @이름 100%"),
    *("1,234.56원 2026년 11월 21일", "010-0000-0000", "3½개 ① ㈜회사 ㎏ ㎡ ™", "1234567890123456789012345"),
    *("제1조 제2항 제3호", "서울→부산 x² ≤ 3√2", "오후 3:05~4:10", "▁가▁ Ġ나Ċ ##다", "…‥ “” ‘’ — – − ‐ ･", "a" * 40 + " " * 8 + "1" * 8),
)  # fmt: skip
LINES: Final = (*_LINES, unicodedata.normalize("NFD", "각국의 값진 옷을 입었다. 파일이름.txt"))
"""Hangul, jamo, old Hangul, hanja, emoji, mixed scripts, spaces, URLs, numbers, and decomposed text."""


def probe_json(ids: Callable[[Sequence[str]], Sequence[Sequence[int]]]) -> str:
    """probe.json of a tokenizer; `ids` encodes lines without added special tokens."""
    content = {"ids": [list(map(int, row)) for row in ids(LINES)], "lines": list(LINES)}
    return _json({**content, "sha256": hashlib.sha256(_json(content).encode()).hexdigest()}) + "\n"


def read_probe(folder: Path) -> tuple[list[str], list[list[int]]]:
    """The lines and ids of a folder's probe.json."""
    file, hint = folder / PROBE, "save the tokenizer again"
    data = read_bounded(file, hint=hint)
    try:
        content = json.loads(data)
        lines, ids, digest = (content.pop(name) for name in ("lines", "ids", "sha256"))
        rows = [
            (line, row) for line, row in zip(lines, ids, strict=True) if isinstance(line, str) and isinstance(row, list)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"`{file}` cannot be read: {type(error).__name__}: {error}", hint=hint) from error
    actual = hashlib.sha256(_json({"ids": ids, "lines": lines}).encode("utf-8", "surrogatepass")).hexdigest()
    if actual != digest or len(rows) != len(lines):
        raise ArtifactError(f"`{file}`: expected the SHA-256 {digest}, got {actual}", hint=hint)
    return lines, ids


def _json(content: dict[str, object]) -> str:
    """Compact JSON with its keys in order, as `JSON.stringify` and `jq --compact-output` write it."""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
