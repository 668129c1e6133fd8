"""Laws of pretokenize.py: a partition, told by neighbours, by whitespace words, and the same in every engine."""

from __future__ import annotations

import functools
import itertools
import json
import re
from typing import get_args

import pytest
import strategies as ks
from hypothesis import given
from hypothesis import strategies as st

from koktok.text import pretokenize
from koktok.text.pretokenize import CLASSES, REST, Digits, Pattern, Split, words

CHOICES = itertools.product(get_args(Split), get_args(Digits), (False, True))
PATTERNS = [Pattern(*choice) for choice in CHOICES]
ALL = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# One character a class, none of them ASCII where a class has others: ranges are what could go wrong.
SAMPLES = {"newline": "\n", "space": " ", "blank": "\u3000", "hangul": "가", "latin": "é", "digit": "７", "han": "字",
           "kana": "か", "other": "я", "accent": "\u0301", "selector": "\ufe0f", "joiner": "\u200d", "terminator": "…",
           REST: "「"}  # fmt: skip


def patterns() -> st.SearchStrategy[Pattern]:
    return st.sampled_from(PATTERNS)


def hf(pattern: Pattern):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    blank = json.loads(Tokenizer(BPE()).to_str())
    blank["pre_tokenizer"] = pattern.to_hf()
    splitter = Tokenizer.from_str(json.dumps(blank)).pre_tokenizer
    return lambda text: [piece for piece, _ in splitter.pre_tokenize_str(text)]


@functools.cache
def classes() -> dict[str, str]:
    """Each code point's class, found by the classes' own ranges; two classes for one would show as a difference."""
    text = "".join(ALL)
    found = [(c, name) for name in [*CLASSES, REST] for c in re.findall(pretokenize._class({name}), text)]
    assert len(found) == len(text)
    return dict(found)


def class_of(char: str) -> str:
    return classes()[char]


@functools.cache
def edges() -> list[str]:
    """Both ends of every run of code points of one class."""
    runs = [list(run) for _, run in itertools.groupby(ALL, key=class_of)]
    return [c for run in runs for c in (run[0], run[-1])]


# --- laws ---------------------------------------------------------------------------------------------------------


@given(patterns(), ks.korean_text())
def test_pretokens_partition_the_text(pattern, text):
    pieces = pattern.pretokenize(text)
    assert "".join(pieces) == text
    assert all(pieces)
    assert pattern.cuts(text) == list(itertools.accumulate(map(len, pieces)))[:-1]


@given(patterns(), ks.korean_text())
def test_pretokens_are_those_of_the_words(pattern, text):
    assert "".join(words(text)) == text
    if not pattern.superwords:
        assert pattern.pretokenize(text) == [piece for word in words(text) for piece in pattern.pretokenize(word)]


@given(st.sampled_from([pattern for pattern in PATTERNS if pattern.bigram]), ks.korean_text())
def test_a_cut_is_told_by_its_neighbours(pattern, text):
    pairs = enumerate(itertools.pairwise(text), start=1)
    assert pattern.cuts(text) == [i for i, (a, b) in pairs if pretokenize._cut(class_of(a), class_of(b), pattern)]


@given(st.sampled_from(get_args(Split)), st.booleans(), ks.korean_text())
def test_digits_by_threes_are_single_digits_joined_from_the_left(split, superwords, text):
    """As the patterns of GPT-4 and Llama 3 have them, but with the space before the first digit."""
    joined: list[str] = []
    for part in Pattern(split, "single", superwords).pretokenize(text):
        before = re.search(r"[0-9０-９]+\Z", joined[-1]) if joined else None
        if re.match(r"[0-9０-９]", part) and before and len(before[0]) < 3:
            joined[-1] += part
        else:
            joined.append(part)
    assert Pattern(split, "three", superwords).pretokenize(text) == joined


@given(ks.korean_text())
def test_free_digits_are_runs_without_signs(text):
    """Letters stay beside digits, as without a rule for digits."""
    cuts = {*Pattern(digits="free").cuts(text)}
    for at in range(1, len(text)):
        classes = {class_of(text[at - 1]), class_of(text[at])}
        if classes in ({"digit"}, {"digit", "hangul"}, {"digit", "latin"}):
            assert at not in cuts
        if classes == {"digit", REST}:
            assert at in cuts


@given(patterns(), ks.korean_text())
def test_a_pretoken_pretokenizes_to_itself_and_never_crosses(pattern, text):
    for piece in pattern.pretokenize(text):
        assert pattern.pretokenize(piece) == [piece]
        assert not pattern.crosses(piece)


@given(st.sampled_from(PATTERNS), ks.korean_text())
def test_crosses_is_an_inner_cut(pattern, text):
    assert pattern.crosses(text) == bool(pattern.cuts(text))


# --- every engine -------------------------------------------------------------------------------------------------


@given(patterns(), ks.korean_text())
def test_same_in_tokenizers_and_regex(pattern, text):
    import regex

    wanted = pattern.pretokenize(text)
    assert hf(pattern)(text) == wanted
    assert regex.findall(pattern.regex, text) == wanted


@pytest.mark.parametrize("pattern", PATTERNS, ids=Pattern.signature)
def test_same_in_tokenizers_beside_every_class(pattern):
    """The ends of all ranges, alone and on both sides of a sample of every class."""
    theirs = hf(pattern)
    for sample in SAMPLES.values():
        text = sample + sample.join(edges()) + sample + "\n".join(edges())
        assert theirs(text) == pattern.pretokenize(text)


@pytest.mark.parametrize("name", ["space", "hangul", "accent"])
def test_same_in_tokenizers_on_every_code_point(name):
    """All code points, on both sides of some samples, for the pattern that tells all classes apart."""
    sample = SAMPLES[name]
    pattern = Pattern("scripts", "single", superwords=True)
    theirs = hf(pattern)
    text = sample.join(ALL)
    # Planes 2 and up hold two ranges, whose ends the test above has seen; they would only take time.
    text = text[: text.index("\U00020000")]
    for i in range(0, len(text), 20_000):
        chunk = text[i : i + 20_000]
        assert theirs(chunk) == pattern.pretokenize(chunk)


def test_same_in_tiktoken():
    """The engine of tiktoken (fancy-regex) reads the very same string."""
    import tiktoken

    text = "나는  학교에\t12345 갔다. ❤️사랑 <a>ABC漢字\n \n…" * 3
    ranks = {bytes([b]): b for b in range(256)}
    for pattern in PATTERNS:
        # A piece that is one rank proves that nothing cut it; that all of them are proves the same cuts.
        pieces = dict.fromkeys(p.encode() for p in pattern.pretokenize(text) if len(p.encode()) > 1)
        encoding = tiktoken.Encoding(
            "koktok",
            pat_str=pattern.regex,
            mergeable_ranks=ranks | {p: 256 + i for i, p in enumerate(pieces)},
            special_tokens={},
        )
        assert [encoding.decode_bytes([i]).decode() for i in encoding.encode_ordinary(text)] == pattern.pretokenize(
            text
        )


def test_classes_are_disjoint_and_samples_right():
    assert {name: class_of(char) for name, char in SAMPLES.items()} == {name: name for name in SAMPLES}
    assert set(CLASSES) | {REST} == set(SAMPLES)


def test_every_python_space_is_a_space_here():
    assert {class_of(c) for c in ALL if c.isspace()} == {"newline", "space", "blank"}
    assert all(c.isspace() for c in ALL if class_of(c) in {"newline", "space", "blank"})


# --- golden -------------------------------------------------------------------------------------------------------

GOLDEN = [
    (Pattern(), "나는 학교에 간다.", "나는| 학교에| 간다."),
    (Pattern(), "  두 칸  빈칸 ", "  두| 칸|  빈칸| "),
    (Pattern(), "가 \n\n 나\r\n다", "가| |\n\n| 나|\r\n|다"),
    (Pattern(), "가\t\t나\u00a0다 \t라", "가|\t\t|나|\u00a0|다| |\t|라"),
    (Pattern(), '그는.ㅋㅋㅋ "그는" (을)', '그는.ㅋㅋㅋ| "그는"| (을)'),
    (Pattern(digits="single"), "제12회 2024년", "제|1|2|회| 2|0|2|4|년"),
    (Pattern("scripts"), '그는.ㅋㅋㅋ "그는" (을)', '그는|.|ㅋㅋㅋ| "|그는|"| (|을|)'),
    (Pattern("scripts"), "한글ABC漢字かなカナ12Ω！", "한글|ABC|漢字|かなカナ|12|Ω|！"),
    (Pattern("scripts"), "1,234.5원 ３％", "1|,|234|.|5|원| ３|％"),
    (Pattern("scripts"), "나〮랏말〯ᄊᆞ미", "나〮랏말〯ᄊᆞ미"),
    (Pattern("scripts"), "사랑❤️해 👨‍👩‍👧가족", "사랑|❤️|해| 👨‍👩‍👧|가족"),
    (Pattern("scripts"), "1️⃣번 cafe\u0301s", "1️⃣|번| cafe\u0301s"),
    (Pattern("scripts"), "नमस्ते می‌خواهم", "नमस्ते| می‌خواهم"),
    (Pattern(superwords=True), "할 수 있다. 그 말…  끝?! 네\n다음", "할 수 있다.| 그 말…|  끝?!| 네|\n|다음"),
    (Pattern(superwords=True), "3.14와 v1.2 ", "3|.|14와 v1|.|2 "),
    (Pattern(), "제12회 1,234,500원(약 3%)", "제12회| 1|,|234|,|500원(약| 3|%)"),
    (Pattern(digits="three"), "제12회 1234567원 1,500", "제|12|회| 123|456|7|원| 1|,|500"),
    (Pattern(digits="three", superwords=True), "값 1234 원. 1️⃣234", "값 123|4 원.| 1️⃣|234"),
    (Pattern("scripts", superwords=True), "할 수 있는 A형, 또", "할 수 있는 A|형|, 또"),
    (Pattern(), "", ""),
]


def test_golden_words():
    assert words(" 나는  학교에\t가\r\n\n간다 ") == [" 나는", "  학교에\t가", "\r\n\n", "간다", " "]
    assert words("") == []


@pytest.mark.parametrize(("pattern", "text", "wanted"), GOLDEN)
def test_golden(pattern, text, wanted):
    assert "|".join(pattern.pretokenize(text)) == wanted
    assert "|".join(hf(pattern)(text)) == wanted


# --- edges --------------------------------------------------------------------------------------------------------


def test_signature_and_regex_tell_patterns_apart():
    assert len({p.signature() for p in PATTERNS}) == len({p.regex for p in PATTERNS}) == len(PATTERNS)
