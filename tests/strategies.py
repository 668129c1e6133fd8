"""Hypothesis strategies for Korean text: every kind of string that has broken a tokenizer, by name.

Each is a function that gives a strategy of str without lone surrogates; `korean_text` mixes them all.
"""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

LEADS = "".join(map(chr, range(0x1100, 0x1113)))
VOWELS = "".join(map(chr, range(0x1161, 0x1176)))
FINALS = "".join(map(chr, range(0x11A8, 0x11C3)))
OLD_LEADS = "\u1113\u1121\u113c\u1140\u114c\u1159\u115f\ua960\ua97c"
OLD_VOWELS = "\u1160\u1176\u119e\u11a1\u11a2\u11a7\ud7b0\ud7c6"
OLD_FINALS = "\u11c3\u11d9\u11eb\u11f0\u11f9\u11ff\ud7cb\ud7fb"
TONE_MARKS = "\u302e\u302f"
SPACES = " \t\u00a0\u1680\u2002\u2003\u2009\u200a\u202f\u205f\u3000\x0b\x0c\x85\u2028\u2029"
ZERO_WIDTH = "\u00ad\u200b\u200e\u200f\u202a\u202e\u2060\u2064\u2066\u2069\ufeff"
# Characters that NFC maps to one other, or that compose in ways that surprise.
SINGLETONS = "\u1fef\u2000\u2001\u212a\u212b\u2126\u037e\u0387\u0340\u0344\u2329\u0f73\u0958\ufb1d\U0001d15e\u1ffd"
MARKS = "\u0300\u0301\u0316\u0323\u0327\u0338\u0345\u3099\u309a\u302e\u302f\u1dfa\u0c3c\u20e3\ufe0f\U00016ff0\U0001d165"
EMOJI = (
    "😀",
    "❤️",
    "👍🏽",
    "👨\u200d👩\u200d👧\u200d👦",
    "🏳️\u200d🌈",
    "🇰🇷",
    "1️⃣",
    "🏴\U000e0067\U000e0062\U000e007f",
    "☺",
)
SPECIALS = ("</s>", "<s>", "<unk>", "[UNK]", "<|endoftext|>", "<0xE2>", "▁", "▁가", "Ġ", "##", "<pad>", "Ċ", "�")
# A nasty alphabet for laws about neighbours: each character meets each other.
NASTY = (
    LEADS[:3]
    + VOWELS[:3]
    + FINALS[:3]
    + OLD_LEADS
    + OLD_VOWELS
    + OLD_FINALS
    + "가각갔힣ㅋㅎㅠㄳㆍ㈜㉠①½㎏㎡ﬁ…‼！～Ａ１；ﾡﾤￂﾠ"
    "金\uf90aA1 a.?!~^-\"'<=>‘“′″–—−"
    + SPACES
    + ZERO_WIDTH
    + SINGLETONS
    + MARKS
    + "\r\n\u200c\u200d\U00011935\U00011930\U00011938"
)


def syllables(*, min_size: int = 0, max_size: int = 12) -> SearchStrategy[str]:
    """Runs of modern syllables, any of the 11,172."""
    return st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=min_size, max_size=max_size)


def compat_jamo() -> SearchStrategy[str]:
    """ㅋㅋㅋ, ㅠㅠ, ㄳ: typed jamo, often in runs of one."""
    one = st.characters(min_codepoint=0x3131, max_codepoint=0x318E)
    runs = st.builds(lambda c, n: c * n, st.sampled_from("ㅋㅎㅠㅜㄷㅇ"), st.integers(1, 9))
    return st.one_of(runs, st.text(one, max_size=6))


def conjoining_jamo() -> SearchStrategy[str]:
    """Modern conjoining jamo in any order: some compose, some do not."""
    return st.text(st.sampled_from(LEADS + VOWELS + FINALS), max_size=8)


def nfd_text() -> SearchStrategy[str]:
    """Decomposed text, as macOS file names have it."""
    return st.one_of(syllables(), st.text(max_size=8)).map(lambda s: unicodedata.normalize("NFD", s))


def old_hangul() -> SearchStrategy[str]:
    """Old syllables (ᄒᆞᆫ) with tone marks, and old jamo in no order at all."""
    syllable = st.builds(
        lambda lead, vowel, final, tone: lead + vowel + final + tone,
        st.sampled_from(LEADS + OLD_LEADS),
        st.sampled_from(VOWELS + OLD_VOWELS),
        st.sampled_from(["", *FINALS, *OLD_FINALS]),
        st.sampled_from(["", *TONE_MARKS]),
    )
    loose = st.text(st.sampled_from(LEADS[:4] + VOWELS[:4] + FINALS[:4] + OLD_LEADS + OLD_VOWELS + OLD_FINALS + "가각"))
    return st.one_of(st.lists(syllable, max_size=4).map("".join), loose)


def hanja() -> SearchStrategy[str]:
    """Unified ideographs of three planes, and compatibility ideographs that NFC unifies."""
    return st.text(
        st.one_of(
            st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
            st.characters(min_codepoint=0xF900, max_codepoint=0xFA6D),
            st.characters(min_codepoint=0x20000, max_codepoint=0x2A6D0),
            st.characters(min_codepoint=0x2F800, max_codepoint=0x2FA1D),
        ),
        max_size=6,
    )


def emoji() -> SearchStrategy[str]:
    """Emoji with joiners, skin tones, variation selectors, flags and key caps, whole and torn."""
    return st.one_of(
        st.lists(st.sampled_from(EMOJI), max_size=4).map("".join), st.text(st.sampled_from("".join(EMOJI)), max_size=8)
    )


def whitespace() -> SearchStrategy[str]:
    """Spaces, runs of spaces, tabs, newlines, and every Unicode space."""
    return st.one_of(st.text(st.sampled_from(" \n"), max_size=5), st.text(st.sampled_from(SPACES + "\r\n"), max_size=5))


def specials() -> SearchStrategy[str]:
    """Text that looks like a special token, a byte piece or a word marker."""
    return st.sampled_from(SPECIALS)


def digits() -> SearchStrategy[str]:
    """Numbers: short, long, grouped, full-width."""
    ascii_digits = st.text(st.sampled_from("0123456789"), min_size=1, max_size=40)
    return st.one_of(
        ascii_digits,
        st.integers(0, 10**9).map("{:,}".format),
        st.text(st.sampled_from("0１２9"), min_size=1, max_size=5),
    )


def latin() -> SearchStrategy[str]:
    """English, accents composed and not, units."""
    return st.text(st.sampled_from("abzAZ'-.éﬁŁ\u0301\u0308%°"), max_size=8)


def nasty() -> SearchStrategy[str]:
    """Any neighbours out of `NASTY`."""
    return st.text(st.sampled_from(NASTY), max_size=12)


def any_text() -> SearchStrategy[str]:
    """Any str that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def long_words() -> SearchStrategy[str]:
    """One unit repeated up to thousands of times, as logs and comments do."""
    return st.builds(
        lambda unit, n: unit * n,
        st.sampled_from(["ㅋ", "하", "가나다", "1", "a", ".", " ", "\u0301"]),
        st.integers(0, 3000),
    )


def eojeols() -> SearchStrategy[str]:
    """Plain sentences: words of syllables with endings and punctuation."""
    word = st.builds(
        str.__add__, syllables(min_size=1, max_size=5), st.sampled_from(["", ".", ",", "?!", "…", ")", "1"])
    )
    return st.lists(word, max_size=6).map(" ".join)


def korean_text() -> SearchStrategy[str]:
    """Everything above, mixed; the empty string too. One text of five is a long word: more of them would take most of the time."""
    parts = st.one_of(
        syllables(), compat_jamo(), conjoining_jamo(), nfd_text(), old_hangul(), hanja(), emoji(), whitespace(),
        specials(), digits(), latin(), nasty(), any_text(), eojeols(),
    )  # fmt: skip
    return st.one_of(*(st.lists(parts, max_size=6).map("".join) for _ in range(4)), long_words())
