"""Whether text comes back: round trips of lines and of a fixed list of difficult strings."""

from __future__ import annotations

import unicodedata
from typing import Final

import numpy as np

from koktok.metrics.page import Text
from koktok.metrics.statistics import Table
from koktok.protocol.tokenizer import Tokenizer
from koktok.text.normalize import normalized

PROBES: Final = (
    ("NFD", unicodedata.normalize("NFD", "한국어는 어렵다")),
    ("compatibility jamo", "ㅋㅋㅋ ㅠㅠ ㄱㄱ ㅇㅋ"),
    ("conjoining jamo", "\u1112\u1161 \u11ab"),
    ("old Hangul", "나랏말\u110a\u119e미 \u1112\u119e\u11ab글"),
    ("Hanja", "大韓民國 憲法"),
    ("compatibility Hanja", "\uf90a \uf9d1"),
    ("emoji", "👨\u200d👩\u200d👧\u200d👦 👍🏽 🇰🇷 🏳️\u200d🌈"),
    ("fullwidth", "ＡＢＣ１２３！？　～"),
    ("compatibility signs", "㈜ ㎏ ㎡ ½ ① … ‼"),
    ("ideographic space", "하늘\u3000바다"),
    ("no-break space", "하늘\u00a0바다"),
    ("zero-width space", "하늘\u200b바다"),
    ("runs of spaces", "하늘   바다  "),
    ("leading space", "  하늘"),
    ("tab", "하늘\t바다"),
    ("newline", "하늘\n바다\r\n산"),
    ("control characters", "하늘\x00\x07바다"),
    ("rare syllables", "뷁 똠 햏 쀍 갃"),
    ("quotes and dashes", "“하늘” ‘바다’ — – ·"),
    ("metaspace", "▁하늘 ▁"),
    ("byte piece", "<0xEA><0xB0><0x80>"),
    ("control token", "</s> [UNK] <|endoftext|>"),
    ("Latin with marks", "café naïve Ünïcödé"),
    ("other scripts", "Привет こんにちは สวัสดี العربية"),
)
"""Category and text; each must come back."""


def round_trip(tokenizer: Tokenizer, text: Text) -> Table | None:
    """Whether each line comes back: exactly, but for normalization, but for runs of white space."""
    if not tokenizer.decodes:
        return None
    same = np.zeros((3, len(text)), dtype=np.int64)
    for part in text.batches():
        lines = text.lines[part]
        rows = tokenizer.encode_lines(lines)
        for k, line in enumerate(lines):
            back = tokenizer.decode(rows[k].tolist())
            same[:, part.start + k] = _same(back, line)
    one = np.ones(len(text), dtype=np.int64)
    columns = {"lines": one, "strict": same[0], "nfc": same[1], "spaces": same[2]}
    return Table(columns, text.units.of)


def _same(back: str, text: str) -> tuple[bool, bool, bool]:
    composed = normalized("NFC", back) == normalized("NFC", text)
    loose = normalized("NFC", " ".join(back.split())) == normalized("NFC", " ".join(text.split()))
    return back == text, composed, loose


def probes(tokenizer: Tokenizer) -> tuple[dict[str, float], dict[str, bool | None]]:
    """Counts over `PROBES`, and which categories came back (up to canonical equivalence)."""
    outcomes: dict[str, bool | None] = {}
    strict = 0
    for name, text in PROBES:
        rows = tokenizer.encode_lines([text])
        back = tokenizer.decode(rows.ids.tolist()) if tokenizer.decodes else None
        outcomes[name] = None if back is None else _same(back, text)[1]
        strict += back == text
    passed = sum(bool(ok) for ok in outcomes.values())
    asked = sum(ok is not None for ok in outcomes.values())
    return {"probes": asked, "probes_nfc": passed, "probes_strict": strict}, outcomes
