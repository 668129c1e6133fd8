"""Raw text to normal text: a few safe folds, then NFC; idempotent, and the same in every library.

Three decisions carry this file.

* **NFC, never NFKC.** NFKC turns the typed ㅋ (U+314B) into the conjoining ᄏ (U+110F), ㄺ into a *final*, ㈜ into (주), and
  … into three dots; a vocabulary learnt from such text cannot write what people type. What NFKC does well is offered
  here as folds with a switch each, all off but `zero_width`.
* **NFC of Unicode 9.** Python 3.11, 3.12 and 3.13 carry Unicode 14, 15 and 15.1; the crate inside Hugging Face's
  tokenizers (0.23.3) carries Unicode 9. They disagree wherever a younger combining mark or composition takes part
  (measured over all code points: 188 marks up to Unicode 18, one composition of Unicode 13, twenty of Unicode 16).
  Every such code point is listed in `OPAQUE` and treated as what Unicode 9 took it for: an unassigned character that
  nothing moves across. Then all of them agree, and `tests/text/test_normalize.py` notices the day a library moves.
* **One pass reaches the fixed point.** Folds whose source is one character are a single table; no target of the table
  is a source, and NFC gives birth to no source (both are tests). What looks at neighbours (`lone_jamo`, `repeats`)
  comes after NFC and only swaps or drops characters that compose with nothing, so that its result is NFC again.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, Literal

from koktok.errors import InputError
from koktok.hangul import COMPATIBILITY, LEAD, SPLIT, SYLLABLES, TAIL, VOWEL

# Marks and compositions younger than Unicode 9, and whole blocks (Todhri, Tulu-Tigalari, Gurung Khema, Kirat Rai, Dives
# Akuru) whose letters take part in a composition that Unicode 9 did not know.
OPAQUE: Final = (
    "\u05c8\u05c9\u07fd\u0897-\u089f\u08ca-\u08d3\u09fe\u0c3c\u0d3b\u0d3c\u0eba\u1715\u1abf-\u1af0\u1df6-\u1dfa\ua82c"
    "\U000105c0-\U000105ff\U00010d24-\U00010d27\U00010d69-\U00010d6d\U00010eab\U00010eac\U00010ecb-\U00010ecf"
    "\U00010ef0-\U00010efb\U00010efd-\U00010eff\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011070\U0001133b"
    "\U00011380-\U000113ff\U0001145e\U00011839\U0001183a\U00011900-\U0001195f\U000119e0\U00011a34\U00011a47\U00011a99"
    "\U00011d42\U00011d44\U00011d45\U00011d97\U00011f41\U00011f42\U00016100-\U0001613f\U00016d40-\U00016d7f"
    "\U00016ff0\U00016ff1\U0001d127\U0001d128\U0001d250-\U0001d252\U0001d25b\U0001d25c\U0001d25f\U0001d280\U0001d281"
    "\U0001e08f\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef\U0001e4ec-\U0001e4ef\U0001e5ee\U0001e5ef\U0001e6e3"
    "\U0001e6e6\U0001e6ee\U0001e6ef\U0001e6f5"
)
_OPAQUE_CHARS = re.compile(f"([{OPAQUE}]+)")

# Characters of combining class 0 that compose with the character before them: with the marks, all that a segment of NFC
# may go on with. Hangul vowels and finals are the ones that matter here.
_SECONDS = re.compile(
    "[\u1161-\u1175\u11a8-\u11c2\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0cc2\u0cd5\u0cd6\u0d3e\u0d57\u0dcf\u0ddf"
    "\u102e\u1b35\U00011127\U0001133e\U00011357\U000114b0\U000114ba\U000114bd\U000115af]"
)

_SURROGATE = "\ud800-\udfff"

# ZWJ, ZWNJ and the variation selectors stay: emoji, Persian and Indic scripts are written with them.
_ZERO_WIDTH = "\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_DOUBLE_QUOTES = "\u201c-\u201f\u2033"
_SINGLE_QUOTES = "\u2018-\u201b\u2032"
_DASHES = "\u2010-\u2015\u2212"
# Enclosed, squared, fraction, Roman and ligature characters, each folded to what it shows. Not here: superscripts (x²),
# letter-like symbols of mathematics, ™, and … because their plain form means something else or is longer to read; nor
# Japanese words, months and eras in a square, which Korean text does not have and each of which would cost a node in HF.
_COMPATIBILITY = (
    "\u00bc-\u00be\u203c\u2047-\u2049\u2100\u2101\u2103\u2105\u2106\u2109\u2116\u2121\u2150-\u217f\u2189"
    "\u2460-\u24ea\u3200-\u321e\u3220-\u3247\u3250-\u327e\u3280-\u32bf\u32cc-\u32cf\u3371-\u337a\u3380-\u33df\u33ff\ufb00-\ufb06"
)
# What people lengthen to speak louder, and nothing that Markdown, tables or numbers are made of.
_REPEATED = "\u3131-\u318e!.?~\u2026\uff01\uff0e\uff1f\uff5e\u2661\u2665^"

_OLD = "\u1113-\u1160\u1176-\u11a7\u11c3-\u11ff\ua960-\ua97c\ud7b0-\ud7fb"
# A modern jamo is lone where no old jamo (or filler) makes a syllable with it. Each condition looks only at characters
# that stay, so replacing one jamo after the other (tokenizer.json) equals replacing all at once (here). Three leads are as
# many as an old cluster spells out (ᄇᄉᄀ); without that bound a run of leads would take quadratic time.
_LONE = {
    "L": (LEAD, "", f"(?![{LEAD}]{{0,2}}[{_OLD}])"),
    "V": (VOWEL, f"(?<![{_OLD}])", f"(?![{_OLD}])"),
    "T": (TAIL, f"(?<![{_OLD}])(?<![{_OLD}][{VOWEL}])", f"(?![{_OLD}])"),
}


@dataclass(frozen=True, slots=True)
class Folds:
    """Folds before NFC, which always runs: the table `[recipe.normalize]`, and options of `koktok normalize`.

    Examples
    --------
    >>> Folds(repeats=3)
    Folds(zero_width=True, fullwidth=False, ..., repeats=3, compatibility=False, lone_jamo=False)
    """

    zero_width: bool = True
    """Drop soft hyphens, zero-width spaces, byte order marks and direction marks (ZWJ and ZWNJ stay)."""
    fullwidth: bool = False
    """Full-width ASCII to ASCII, ！ to ～."""
    spaces: bool = False
    """No-break, ideographic and other Unicode spaces to a plain space."""
    quotes: bool = False
    """Curly quotes and primes to " and '."""
    dashes: bool = False
    """Hyphens, dashes and the minus sign to '-'."""
    halfwidth_jamo: bool = False
    """Half-width jamo (ﾡ) to compatibility jamo (ㄱ)."""
    repeats: int = 0
    """A run of one character (compatibility jamo, ! . ? ~ ^ … ♡ ♥ and full-width forms) keeps this many; 0 keeps all.
    In SentencePiece and llama.cpp a run of more than `repeats` + 30 keeps more."""
    compatibility: bool = False
    """㈜ to (주), ① to 1, ½ to 1/2, ㎏ to kg. Off because 2½ becomes 21/2."""
    lone_jamo: bool = False
    """Modern conjoining jamo that form no syllable, as an NFKC leaves them (ᄏᄏᄏ), to compatibility jamo (ㅋㅋㅋ).
    SentencePiece and llama.cpp have no such rule and leave such jamo alone; normalize before."""

    __pydantic_config__: ClassVar = {
        "extra": "forbid",
        "use_attribute_docstrings": True,
    }  # a section of the Recipe, too

    def __post_init__(self) -> None:
        if isinstance(self.repeats, bool) or not isinstance(self.repeats, int) or not 0 <= self.repeats <= 1000:
            raise InputError(
                f"`repeats`: expected a whole number of 0 to 1000, got {self.repeats!r}", hint="repeats = 3"
            )


@dataclass(frozen=True, slots=True)
class Aligned:
    """Normal text and where each of its characters came from.

    Law: `starts` and `ends` never go back, and each `starts[i] < ends[i]`; for text that was normal already, character i
    came from [i, i + 1). Characters made together (a letter and its marks) share one span; what was dropped has none.

    Examples
    --------
    >>> aligned = Normalizer().align("가\u200b나")
    >>> aligned.normal, aligned.raw(1, 2)
    ('가나', (2, 3))
    """

    normal: str
    starts: Sequence[int]
    ends: Sequence[int]

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """Half-open span, in the text that the caller passed, of `normal[start:end]`; an empty one stays empty."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        at = self.starts[start] if start < len(self.normal) else (self.ends[-1] if self.normal else 0)
        return at, at


class Normalizer:
    """Normalize text by the given folds, then NFC.

    Law: ``n(n(x)) == n(x)`` for every str, and the result is NFC (of Unicode 9, see the module).

    Examples
    --------
    >>> Normalizer()("\u1112\u1161\u11ab글은 ㅋㅋ㈜")
    '한글은 ㅋㅋ㈜'
    >>> Normalizer(Folds(compatibility=True, repeats=2))("ㅋㅋㅋㅋ㈜")
    'ㅋㅋ(주)'
    """

    __slots__ = ("_repeat", "_table", "_touched", "folds")

    def __init__(self, folds: Folds = Folds()) -> None:
        self.folds = folds
        self._table = _table(folds)
        n = folds.repeats
        self._repeat = re.compile(rf"([{_REPEATED}])(?=\1{{{n}}})") if n else None
        touched = [f"[{_SURROGATE}{''.join(_domain(folds))}{LEAD + VOWEL + TAIL if folds.lone_jamo else ''}]"]
        if self._repeat:
            touched.append(self._repeat.pattern)
        self._touched = re.compile("|".join(touched))

    def __call__(self, text: str) -> str:
        """Give the normal form of `text`."""
        if self._is_normal(text):
            return text
        if self._table:
            text = text.translate(self._table)
        text = nfc(text)
        if self.folds.lone_jamo:
            text = _LONE_JAMO.sub(_compat, text)
        if self._repeat:
            text = self._repeat.sub("", text)
        return text

    def align(self, text: str) -> Aligned:
        """Normalize, with the raw characters from which every normal character came."""
        if self._is_normal(text):
            return Aligned(text, range(len(text)), range(1, len(text) + 1))
        folded: list[str] = []
        at: list[int] = []
        for i, c in enumerate(text):
            new = self._table.get(ord(c), c)
            folded.append(new)
            at.extend([i] * len(new))
        chars: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for i, j, new in _segments("".join(folded)):
            start, end = at[i], at[j - 1] + 1
            # ﬁ + accent: i takes the accent, and with it f, which came from the same raw character.
            k = len(ends)
            while k and ends[k - 1] > start:
                k -= 1
            start = min(start, *starts[k:]) if k < len(starts) else start
            starts[k:] = [start] * (len(starts) - k + len(new))
            ends[k:] = [end] * (len(ends) - k + len(new))
            chars.append(new)
        normal = "".join(chars)
        if self.folds.lone_jamo:
            normal = _LONE_JAMO.sub(_compat, normal)
        if self._repeat:
            gone = {m.start() for m in self._repeat.finditer(normal)}
            kept = [i for i in range(len(normal)) if i not in gone]
            normal, starts, ends = "".join(normal[i] for i in kept), [starts[i] for i in kept], [ends[i] for i in kept]
        return Aligned(normal, starts, ends)

    def changes(self, text: str) -> Counter[tuple[str, str, str]]:
        """Count what would change, as (rule, before, after); the rule "nfc" is NFC's own work."""
        changes: Counter[tuple[str, str, str]] = Counter()
        if self._is_normal(text):
            return changes
        rules = _rules(self.folds)
        changes.update((rules[ord(c)], c, self._table[ord(c)]) for c in text if ord(c) in self._table)
        text = text.translate(self._table)
        changes.update(("nfc", text[i:j], new) for i, j, new in _segments(text) if text[i:j] != new)
        text = nfc(text)
        if self.folds.lone_jamo:
            changes.update(("lone_jamo", m[0], COMPATIBILITY[m[0]]) for m in _LONE_JAMO.finditer(text))
            text = _LONE_JAMO.sub(_compat, text)
        if n := self.folds.repeats:
            runs = re.finditer(rf"([{_REPEATED}])\1{{{n},}}", text)
            changes.update(("repeats", m[0], m[1] * n) for m in runs)
        return changes

    @property
    def sources(self) -> tuple[str, ...]:
        """Characters that a fold changes in any context."""
        return tuple(map(chr, self._table))

    def replacements(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Give regular expressions with their replacements, before NFC and after it, for an engine that knows no folds."""
        before: list[tuple[str, str]] = []
        for name in _SOURCES:
            if getattr(self.folds, name):
                sources: dict[str, list[str]] = {}
                for source, target in _fold(name).items():
                    sources.setdefault(target, []).append(chr(source))
                before += [(f"[{''.join(chars)}]", target) for target, chars in sources.items()]
        after: list[tuple[str, str]] = []
        if self.folds.lone_jamo:
            for chars, left, right in _LONE.values():
                first, last = ord(chars[0]), ord(chars[-1])
                after += [(f"{left}{c}{right}", COMPATIBILITY[c]) for c in map(chr, range(first, last + 1))]
        if self._repeat:
            after.append((self._repeat.pattern, ""))
        return before, after

    def rules(self) -> dict[str, Any]:
        """Give the rules as plain data, for an engine in another language."""
        return {
            "folds": [(chr(source), target) for source, target in self._table.items()],
            "lone": _LONE_JAMO.pattern if self.folds.lone_jamo else "",
            "repeats": self._repeat.pattern if self._repeat else "",
            "whole": None,
        }

    def signature(self) -> str:
        """Give every switch, the Unicode version of NFC, and the version of these rules, as one line."""
        switches_first = sorted(fields(self.folds), key=lambda f: f.name == "repeats")
        values = ((f.name, getattr(self.folds, f.name)) for f in switches_first)
        shown = (f"{k}:{('no', 'yes')[v] if isinstance(v, bool) else str(v)}" for k, v in values)
        return "|".join([*shown, "nfc:9", "v:1"])

    def _is_normal(self, text: Any) -> bool:
        if not isinstance(text, str):
            hint = 'text.decode("utf-8")' if isinstance(text, bytes) else "str(text)"
            raise InputError(f"expected text (str), got a {type(text).__name__}", hint=hint)
        hit = self._touched.search(text)
        if hit is None:
            return _is_nfc(text)
        # Only when something was hit is it worth a second look for what cannot be text at all.
        if bad := _SURROGATES.search(text):
            raise InputError(
                f"expected text that UTF-8 can hold, got a lone surrogate U+{ord(bad[0]):04X} at character {bad.start()}",
                hint='text.encode("utf-8", "replace").decode("utf-8")',
            )
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Normalizer) and self.folds == other.folds

    def __hash__(self) -> int:
        return hash(self.folds)

    def __reduce__(self) -> tuple[type[Normalizer], tuple[Folds]]:
        return Normalizer, (self.folds,)

    def __repr__(self) -> str:
        return f"Normalizer({self.folds!r})"


class JamoNormalizer(Normalizer):
    """A normalizer that also splits syllables into conjoining jamo: all, or those without a piece of their own.

    Without any whole syllable this is `koktok.hangul.split` of normal text. Where some are whole, a rare one becomes its
    open syllable and its tail (뎠 to 뎌 and ㅆ) if the open one is whole, else its jamo. The result is canonically equal to
    NFC, and `koktok.hangul.join` of it is NFC.

    Examples
    --------
    >>> normalizer = JamoNormalizer(Folds(), ["뎌", "가"])
    >>> ascii(normalizer("뎠가각")) == ascii("뎌\u11bb가가\u11a8")
    True
    >>> len(JamoNormalizer()("갔다"))
    5
    """

    __slots__ = ("spelling",)

    def __init__(self, folds: Folds = Folds(), whole: Iterable[str] = ()) -> None:
        super().__init__(folds)
        kept = {ord(piece) for piece in whole if len(piece) == 1} & SPLIT.keys()
        self.spelling: dict[int, str] = {}
        for c, jamo in SPLIT.items():
            opened = c - (c - SYLLABLES[0]) % 28
            if c not in kept:
                self.spelling[c] = chr(opened) + jamo[2] if len(jamo) == 3 and opened in kept else jamo

    @property
    def splits_all(self) -> bool:
        """True where no syllable stays whole."""
        return len(self.spelling) == len(SPLIT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JamoNormalizer) and (self.folds, self.spelling) == (other.folds, other.spelling)

    def __hash__(self) -> int:
        return hash((self.folds, frozenset(self.spelling)))

    def __reduce__(self) -> Any:
        return JamoNormalizer, (self.folds, [chr(c) for c in SPLIT if c not in self.spelling])

    def __repr__(self) -> str:
        return f"JamoNormalizer({self.folds!r}, {len(SPLIT) - len(self.spelling)} whole syllables)"

    def __call__(self, text: str) -> str:
        """Give the normal form of `text`, syllables taken apart."""
        return super().__call__(text).translate(self.spelling)

    def align(self, text: str) -> Aligned:
        """As `Normalizer.align`; the parts of a syllable share its raw characters."""
        whole = super().align(text)
        at = [i for i, c in enumerate(whole.normal) for _ in self.spelling.get(ord(c), c)]
        if len(at) == len(whole.normal):
            return whole
        return Aligned(
            whole.normal.translate(self.spelling), [whole.starts[i] for i in at], [whole.ends[i] for i in at]
        )

    def rules(self) -> dict[str, Any]:
        """Give the rules as plain data, see `Normalizer.rules`."""
        return super().rules() | {"whole": "".join(chr(c) for c in SPLIT if c not in self.spelling)}


def nfc(text: str) -> str:
    """Compose by Unicode 9's NFC, whatever Unicode this Python carries.

    Law: ``nfc(nfc(x)) == nfc(x)``; equal to tokenizers' ``normalizers.NFC()``. See https://unicode.org/reports/tr15/.
    """
    if _is_nfc(text):
        return text
    compose = _composed if _has_long_run(text) else partial(unicodedata.normalize, "NFC")
    if _OPAQUE_CHARS.search(text) is None:
        return compose(text)
    parts = _OPAQUE_CHARS.split(text)
    return "".join(part if i % 2 else compose(part) for i, part in enumerate(parts))


_LONG_RUN = 64
"""Marks in a row that Python may sort: it takes quadratic time. No language writes a tenth of them."""


def _is_nfc(text: str) -> bool:
    """Whether a text is certainly NFC; a long run of marks never is."""
    # Every part of an NFC string is NFC, so "yes" from a younger Unicode is "yes" here.
    return not _has_long_run(text) and unicodedata.is_normalized("NFC", text)


def _has_long_run(text: str) -> bool:
    return len(text) >= 1000 and _runs()[0].search(text) is not None  # in a shorter text it takes no time


@lru_cache(maxsize=1)
def _runs() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Long runs of what NFC puts in another order; of opaque characters, too, and without."""
    last = 0x1F000  # no mark comes after it except Unicode's own tags
    marks = {c for c in range(0x300, last) if unicodedata.combining(unicodedata.normalize("NFD", chr(c))[0])}
    opaque = set(map(ord, _spread(OPAQUE)))
    return (
        re.compile(f"[{ranges(marks | opaque)}]{{{_LONG_RUN},}}+"),
        re.compile(f"[{ranges(marks - opaque)}]{{{_LONG_RUN},}}+"),
    )


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """What `unicodedata.normalize` gives, also for long runs of marks in linear time."""
    return unicodedata.normalize(form, _runs()[0].sub(_in_order, text) if _has_long_run(text) else text)


def _composed(text: str) -> str:
    """NFC of a text without opaque characters."""
    return unicodedata.normalize("NFC", _runs()[1].sub(_in_order, text))


def _in_order(run: re.Match[str]) -> str:
    """Marks in their canonical order, so that Python finds nothing to sort."""
    apart = "".join(unicodedata.normalize("NFD", char) for char in run[0])
    return "".join(sorted(apart, key=unicodedata.combining))


@lru_cache(maxsize=1)
def nfc_tables() -> dict[str, str]:
    """What an NFC of any Unicode from 9 on needs to be that of Unicode 9, as insides of character classes."""
    last = 0x30000  # nothing composes after the plane of rare Han
    candidates = (c for c in range(last) if unicodedata.combining(chr(c)) or unicodedata.decomposition(chr(c)))
    seconds = {c for c in range(last) if _SECONDS.match(chr(c))}
    return {"opaque": OPAQUE, "continues": ranges({c for c in candidates if _continues(chr(c))} | seconds)}


def _segments(text: str) -> Iterator[tuple[int, int, str]]:
    """Cut text where NFC cannot reach across, or changes nothing: (start, end, NFC of the segment)."""
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not _continues(text[end]):
            segment = text[start:end]
            new = nfc(segment)
            if new == segment:
                yield from ((i, i + 1, text[i]) for i in range(start, end))
            else:
                yield start, end, new
            start = end


@lru_cache(maxsize=65536)
def _continues(char: str) -> bool:
    """True where NFC may move or compose this character with those before it."""
    if _OPAQUE_CHARS.match(char):
        return False
    first = unicodedata.normalize("NFD", char)[0]
    return unicodedata.combining(first) != 0 or _SECONDS.match(first) is not None


def _spread(ranges: str) -> Iterator[str]:
    """Characters of a class: "a-cx" to a, b, c, x."""
    for m in re.finditer("(.)(?:-(.))?", ranges):
        yield from map(chr, range(ord(m[1]), ord(m[2] or m[1]) + 1))


def ranges(codes: Iterable[int]) -> str:
    """The inside of a character class that holds the code points."""
    runs: list[list[int]] = []
    for c in sorted(codes):
        if runs and c == runs[-1][1] + 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return "".join(chr(a) if a == b else f"{chr(a)}-{chr(b)}" for a, b in runs)


def _shown(char: str) -> str:
    """What a compatibility character shows: NFKC with the repairs that Korean text needs."""
    if unicodedata.normalize("NFKC", char) == char:
        return char
    plain = unicodedata.normalize("NFKC", char).replace("\u2044", "/").replace("\u2215", "/")
    # ㉠ is ㄱ in a circle; NFKC makes a conjoining ᄀ of it. Squares and cubes of units stay powers: ㎡ is m², not m2.
    plain = "".join(COMPATIBILITY.get(c, c) for c in plain)
    return re.sub("(?<=[ms])[23]$", lambda m: "²³"[int(m[0]) - 2], plain) if char >= "\u3300" else plain


_SOURCES: Final[Mapping[str, tuple[tuple[str, Callable[[str], str]], ...]]] = {
    "zero_width": ((_ZERO_WIDTH, lambda _: ""),),
    "fullwidth": (("\uff01-\uff5e", lambda c: chr(ord(c) - 0xFEE0)),),
    "spaces": ((_SPACES, lambda _: " "),),
    "quotes": ((_DOUBLE_QUOTES, lambda _: '"'), (_SINGLE_QUOTES, lambda _: "'")),
    "dashes": ((_DASHES, lambda _: "-"),),
    "halfwidth_jamo": (
        # Unicode calls them <narrow> forms of the compatibility jamo.
        ("\uffa0-\uffbe\uffc2-\uffc7\uffca-\uffcf\uffd2-\uffd7\uffda-\uffdc",
         lambda c: chr(int(unicodedata.decomposition(c).split()[1], 16))),
    ),
    "compatibility": ((_COMPATIBILITY, _shown),),
}  # fmt: skip


REPEATED: Final = frozenset(_spread(_REPEATED))
"""Characters whose runs `repeats` shortens."""


@lru_cache
def _fold(name: str) -> dict[int, str]:
    pairs = ((c, new(c)) for ranges, new in _SOURCES[name] for c in _spread(ranges))
    return {ord(c): after for c, after in pairs if c != after}


def _table(folds: Folds) -> dict[int, str]:
    return {k: v for name in _SOURCES if getattr(folds, name) for k, v in _fold(name).items()}


def _rules(folds: Folds) -> dict[int, str]:
    return {k: name for name in _SOURCES if getattr(folds, name) for k in _fold(name)}


def _domain(folds: Folds) -> Iterator[str]:
    yield from (ranges for name in _SOURCES if getattr(folds, name) for ranges, _ in _SOURCES[name])


def _compat(match: re.Match[str]) -> str:
    return COMPATIBILITY[match[0]]


_LONE_JAMO = re.compile("|".join(f"{before}[{chars}]{after}" for chars, before, after in _LONE.values()))
_SURROGATES = re.compile(f"[{_SURROGATE}]")
