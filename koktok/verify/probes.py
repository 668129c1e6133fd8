"""Lines that have broken tokenizers: checked besides the user's text, because a fault need not show on ordinary lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

__all__ = ["TRICKY", "around_specials", "tricky_lines"]

TRICKY = (
    "",
    " ",
    "   ",
    "  앞뒤로  두 칸씩  ",
    "\t탭\t하나\n새 줄\r\n\n끝",
    "1,234.56원 2026년 11월 21일 010-0000-0000 3½개",
    "ㅋㅋㅋㅋ ㅠㅠ ㅇㅇ ㄳ ㄹㅇ ㅎㅏㄴㄱㅡㄹ",
    "㈜가나 ①② ㎏ ㎡ … ‥ ™ ﬁ ﬂ Ａ１！ ﾡﾤ ￦",
    "“따옴표” ‘작은’ — – − ‐ ･ ·",
    "▁가▁ Ġ나Ċ ##다 <0xE2><0x96><0x81> <0x0A> �",
    "漢字 金金 樂樂 カナ かな зима ελ ไทย العربية",
    "👩\u200d👩\u200d👧 🇰🇷 👍🏽 1️⃣ ❤️ 🏴\U000e0067\U000e0062\U000e007f ☺",
    "나랏〮말〯ᄊᆞ미 듀ᇰ귁에 달아 ᄒᆞᆫ글 ᅀᅡᆷ 훈민져ᇰᅙᅳᆷ",
    "\u200b가\u200b나\ufeff다\u00ad라\u2060마\u00a0바\u3000사\u2009아\x85자\u2028차",
    "e\u0301 é a\u0323\u0307 \u1e69 가\u0301 각\u302e \u1112\u1161\u11ab \u1100\u1100\u1161 \u11ab\u1161",
    "\x00\x01\x1f\x7f\ufffd\U000e0001\U0010fffd",
    "https://example.com/가?a=1&b=%EA%B0%80#끝 me@example.com def f(x): return x+1",
    "가각갂갃간갅갆갇갈갉힣힢 뷁 쀍 똠 햏",
    "할 수 있을 것 같다. 그런데 할수있을것같다고?",
    "ㅋ" * 300,
    "가나다라마바사" * 40,
    "a" * 300 + " " * 100 + "1" * 100,
)
"""Our own lines, one for each way that something has gone wrong."""


def tricky_lines() -> list[str]:
    """`TRICKY`, and the same lines decomposed (NFD), as file names of macOS have them.

    Examples
    --------
    >>> len(tricky_lines()) > len(TRICKY)
    True
    """
    return list(dict.fromkeys((*TRICKY, *(unicodedata.normalize("NFD", line) for line in TRICKY))))


def around_specials(specials: Iterable[str]) -> list[str]:
    """Texts that spell special tokens and byte pieces: alone, inside a word, between spaces, twice, and all in a row.

    Examples
    --------
    >>> around_specials(["</s>"])[:4]
    ['</s>', '가</s>나', ' </s> 나', '</s></s>']
    """
    spelled = [*specials, *(f"<0x{byte:02X}>" for byte in range(256))]
    texts = [text for token in spelled for text in (token, f"가{token}나", f" {token} 나", f"{token}{token}")]
    return [*texts, "".join(spelled[:32]), " ".join(spelled[:32])]
