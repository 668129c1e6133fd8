r"""Normal text to pretokens: one matrix of character classes, written out as one regular expression.

A pretoken is what no piece of a vocabulary reaches across. Whether a cut falls between two neighbours depends on nothing
but the classes of these two: the *bigram rule*. That is a choice with a reason. Hugging Face splits first and segments
each pretoken, while SentencePiece runs its Viterbi over the whole line; the two give the same ids only if "no piece
crosses a cut" can be decided from the piece alone (`Pattern.crosses`), hence from neighbours alone. The one exception are digits
in groups of three: which of them a cut follows depends on where the number begins, so SentencePiece cannot have them.

Classes are explicit ranges of code points, frozen here. `\w`, `\s` and `\p{Han}` are not used: Python's and Oniguruma's
tables differ on thousands of code points and move with each Unicode version. Scripts other than Hangul, Latin, Han and
kana are classified by block, so that an Arabic comma counts as Arabic.

The regular expression is made from the matrix: "take a run of a class, as long as the character after it may go on, then
one run more". Every part is possessive, so that it never looks back: a million spaces take as long as a million words.
It is the same string for Python's `re`, `regex`, Oniguruma (tokenizer.json) and fancy-regex (tiktoken).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from koktok.errors import InputError

Split = Literal["eojeol", "scripts"]
Digits = Literal["free", "single", "three"]

# Order matters nowhere: the classes are disjoint (a test), and "rest" is what none of them has.
CLASSES: Final[dict[str, str]] = {
    "newline": "\\r\\n",
    "space": " ",
    # White space that is neither: its runs are pretokens, so that tables and code keep their own pieces. Beyond ASCII only
    # literal characters will do: Oniguruma takes "\x85" in a class for a byte, not for U+0085.
    "blank": "\\t\\x0b\\x0c\\x1c-\\x1f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    # Tone marks of old Hangul are letters of it: 나〯랏 must not fall apart.
    "hangul": "\u1100-\u11ff\u302e\u302f\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc",
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f"
    "\ua720-\ua7ff\uab30-\uab6f\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "digit": "0-9\uff10-\uff19",
    "han": "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff",
    "kana": "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f",
    "other": "\u0370-\u10ff\u1200-\u167f\u1681-\u1aaf\u1b00-\u1cff\u1f00-\u1fff\u2c00-\u2c5f\u2c80-\u2dff\ua000-\ua71f\ua800-\ua95f"
    "\ua980-\uab2f\uab70-\uabff\ufb07-\ufdff\ufe70-\ufefe\U00010000-\U0001afef\U0001b170-\U0001bfff"
    "\U0001d400-\U0001d7ff\U0001e000-\U0001efff",
    # Marks are never cut from their base. The mark decides what may follow, because the rule looks no further back:
    # after an accent a Latin letter, after an emoji's selector or key cap more symbols, after a joiner anything.
    "accent": "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f",
    "selector": "\u20d0-\u20ff\ufe00-\ufe0f\U000e0001-\U000e007f\U000e0100-\U000e01ef",
    "joiner": "\u200c\u200d",
    "terminator": ".?!\u2026\u3002\uff01\uff1f",
}
REST: Final = "rest"
_APART = {"newline", "blank"}
_MARKS = {"accent": "latin", "selector": REST, "joiner": ""}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to cut text into pretokens.

    Law: ``"".join(p.pretokenize(x)) == x`` for every str; a cut depends on the two characters beside it alone.

    Examples
    --------
    >>> Pattern().pretokenize("나는 학교에 간다.")
    ['나는', ' 학교에', ' 간다.']
    >>> Pattern(split="scripts", digits="single").pretokenize("값은 12원(VAT)")
    ['값은', ' 1', '2', '원', '(', 'VAT', ')']
    >>> Pattern(superwords=True).pretokenize("할 수 있다. 그 말이다.")
    ['할 수 있다.', ' 그 말이다.']
    >>> [Pattern(digits=digits).pretokenize(" 1234,500원")[:4] for digits in ("single", "three", "free")]
    [[' 1', '2', '3', '4'], [' 123', '4', ',', '500'], [' 1234', ',', '500원']]
    """

    split: Split = "eojeol"
    digits: Digits = "free"
    superwords: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (("split", self.split, Split), ("digits", self.digits, Digits)):
            if value not in get_args(known):
                raise InputError(
                    f"`{name}` is {value!r}; expected: one of {', '.join(get_args(known))}",
                    hint=f'{name} = "{get_args(known)[0]}"',
                )

    @property
    def bigram(self) -> bool:
        """True if two neighbours decide every cut, so that SentencePiece can give the same ids."""
        return self.digits != "three"

    @property
    def within_words(self) -> Pattern:
        """The same without superwords: every space cuts."""
        return replace(self, superwords=False)

    @property
    def regex(self) -> str:
        """The pattern as a string whose matches, in order, are the pretokens."""
        return _compile(self.split, self.digits, self.superwords).pattern

    @property
    def borders(self) -> str:
        """A regular expression that matches nothing, wherever a cut falls."""
        names = [*CLASSES, REST]
        before: dict[frozenset[str], set[str]] = {}
        for a in names:
            before.setdefault(frozenset(b for b in names if _cut(a, b, self)), set()).add(a)
        return "|".join(f"(?<={_class(a)})(?={_class({*b})})" for b, a in before.items() if b)

    def pretokenize(self, text: str) -> list[str]:
        """Cut `text`; the parts join back to it exactly."""
        return _compile(self.split, self.digits, self.superwords).findall(text)

    def cuts(self, text: str) -> list[int]:
        """Offsets inside `text` where a pretoken ends and the next begins."""
        matches = _compile(self.split, self.digits, self.superwords).finditer(text)
        return [m.start() for m in matches if m.start()]

    def crosses(self, piece: str) -> bool:
        """True where no pretoken can hold `piece`, so that it must not be in a vocabulary."""
        match = _compile(self.split, self.digits, self.superwords).match(piece)
        return bool(piece) and (match is None or match.end() < len(piece))

    def to_hf(self) -> dict[str, Any]:
        """Give the "pre_tokenizer" node of a tokenizer.json that cuts alike."""
        return {"type": "Split", "pattern": {"Regex": self.regex}, "behavior": "Isolated", "invert": False}

    @property
    def javascript(self) -> str:
        """The pattern for `new RegExp(…, "ug")`, which has no possessive quantifiers; they only save looking back.

        Every repeated run is followed by what the run cannot hold, so that looking back finds no other way.
        """
        return self.regex.replace("++", "+").replace("*+", "*")

    def rules(self) -> dict[str, Any]:
        """Give the pattern as plain data, for an engine in another language."""
        if not self.bigram:
            return {"regex": self.javascript}
        names = [*CLASSES, REST]
        return {
            "classes": _ranges_of_classes(),
            "follows": ["".join("01"[not _cut(a, b, self)] for b in names) for a in names],
        }

    def signature(self) -> str:
        """Give every choice and the version of the classes, as one line."""
        return f"split:{self.split}|digits:{self.digits}|superwords:{'yes' if self.superwords else 'no'}|v:1"


def words(text: str) -> list[str]:
    """Cut text into whitespace words, each with the spaces before it; newlines and trailing spaces are words of their own.

    Law: ``p.pretokenize(x)`` is the concatenation of ``p.pretokenize(w) for w in words(x)``, for every pattern without
    superwords. That is what makes counting words first exact.
    """
    return _WORDS.findall(text)


def _cut(before: str, after: str, pattern: Pattern) -> bool:
    """The matrix: whether a cut falls between a character of class `before` and one of class `after`."""
    if before in _APART or after in _APART:
        return before != after
    if after == "space":
        return before != "space" and (not pattern.superwords or before == "terminator")
    if before == "space":
        return False
    if before == after == "digit":
        return pattern.digits == "single"
    if "digit" in (before, after) and after not in _MARKS and before != "joiner":
        return pattern.digits != "free" or pattern.split == "scripts" or REST in (_script(before), _script(after))
    if pattern.split == "eojeol" or after in _MARKS or before == "joiner":
        return False
    return _script(before) != _script(after)


def _script(name: str) -> str:
    """What a class counts as for the character after it."""
    return REST if name == "terminator" else _MARKS.get(name, name)


@lru_cache
def _ranges_of_classes() -> list[list[int]]:
    """First and last code points of the ranges of each class, in the order of `CLASSES`."""
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    classes = (re.findall(f"[{ranges}]+", everything) for ranges in CLASSES.values())
    return [[ord(char) for run in runs for char in (run[0], run[-1])] for runs in classes]


def _class(names: set[str]) -> str:
    """A character class of these classes, as both Python and Oniguruma read it."""
    if REST in names:
        return f"[^{''.join(ranges for name, ranges in CLASSES.items() if name not in names)}]"
    return f"[{''.join(ranges for name, ranges in CLASSES.items() if name in names)}]"


def _parts(pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yield (a run, what may follow it in the same pretoken), for each set of classes that behave alike."""
    names = [*CLASSES, REST]
    follows = {a: {b for b in names if not _cut(a, b, pattern)} for a in names}
    alone = {"digit"} if pattern.digits in ("single", "three") else set()
    several = "{1,3}" if pattern.digits == "three" else ""
    while names:
        first = names[0]
        alike = {n for n in names if n in follows[n] and follows[n] == follows[first] and not alone & {n, first}} or {
            first
        }
        names = [n for n in names if n not in alike]
        run = _class(alike)
        after = follows[first] - alike
        more = f"(?={_class(after)})" if after else ""
        if alike == alone:
            yield run + several, more
        else:
            yield f"{run}++", more


@lru_cache
def _compile(split: Split, digits: Digits, superwords: bool) -> re.Pattern[str]:  # noqa: FBT001
    pattern = Pattern(split, digits, superwords)
    parts = list(_parts(pattern))
    going_on = "|".join(run + more for run, more in parts if more)
    last = "|".join(dict.fromkeys(run for run, _ in parts))
    return re.compile(f"(?:{going_on})*+(?:{last})")


_WORDS = re.compile(r" *+[^ \r\n]++| ++|[\r\n]++")


@lru_cache(maxsize=4)  # every format asks, and a vocabulary has tens of thousands of pieces
def first_crossing(pieces: tuple[str, ...], pattern: Pattern) -> str:
    """The first piece that no pretoken can hold, or '' if there is none."""
    return next((piece for piece in pieces if pattern.crosses(piece)), "")
