"""`Blocklist`: pieces that a vocabulary may not hold: a user's words, and strings that look like personal data.

One matching function for two uses. Training checks every candidate with it (so that an abusive word or a
telephone number never becomes a piece; the text itself is still spelled, with smaller pieces), and `koktok doctor` checks
every piece of a finished vocabulary. Both see plain text: callers undo byte spellings, `##` and `▁` before.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import read_bounded
from koktok.hangul import SYLLABLE
from koktok.text.normalize import normalized

_MOST_LIST: Final = 1 << 24  # bytes of a list
_MOST_LINE: Final = 1000  # characters of an entry
_DAY: Final = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_NAMES: Final = "김이박최정강조윤장임한오서신권황안송류홍"
PERSONAL: Final[dict[str, str]] = {
    "email": r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{2,}@[A-Za-z0-9-]{2,}",
    # Mobile numbers from the eighth digit on, also without separators; others only with separators and an area code,
    # because bare runs of nine digits are more often amounts.
    "telephone": r"(?<!\d)(?:(?:\+82[-. ]?|0)1[016789][-. )]?\d{3,4}[-. ]?\d{1,4}"
    r"|(?:\+82[-. ]?|0)(?:2|[3-6][1-5]|70|50\d?)[-. )]{1,2}\d{3,4}[-. ]\d{4})(?!\d)",
    # Resident registration number (주민등록번호): date of birth, a digit for century and sex, six more (or masked).
    "registration": rf"(?<!\d)\d\d{_DAY}(?:[- ][1-8][\d*]{{0,6}}|[1-8]\d{{6}})(?!\d)",
    # A Korean name followed by a number: 홍길동1977. Words of three syllables match too (이미지01), so it is a hint.
    "name_number": rf"(?<![{SYLLABLE}])[{_NAMES}][{SYLLABLE}]{{2}}[씨님]?[_-]?\d{{2,}}",
}
"""Patterns of personal data by name; they are matched against the NFKC form, so that fullwidth digits count as digits."""

PERSONAL_DEFAULT: Final = ("email", "registration", "telephone")
"""The patterns precise enough to refuse a piece unasked; `name_number` is for an audit that a person reads."""

_HOSTS: Final = "com|net|org|co\\.kr|go\\.kr|or\\.kr|kr"

JUNK: Final[dict[str, re.Pattern[str]]] = {
    # https:// and the ends of host names; the names themselves are words as good as others.
    "address": re.compile(
        rf"https?:|www\.|\.(?:{_HOSTS})(?![A-Za-z])|(?<![A-Za-z])(?:{_HOSTS})/|\.(?:html?|php|aspx?|nhn)\?",
        re.IGNORECASE,
    ),
    # Left over from pages whose text was extracted. Tags stay: code and documents are written with them.
    "entity": re.compile(r"&(?:nbsp|lt|gt|amp|quot|#\d)|(?<![A-Za-z])(?:nbsp|quot|amp);"),
    # ㅋㅋㅋㅋ is a word of its own in Korean comments; more of the same are spent ids. Indentation is made of spaces alone:
    # with the word behind it, every depth would take an id of its own.
    "run": re.compile(r"(\S)\1{4,}|^(?! *\Z).*? {5}", re.DOTALL),
    # `...`, ` ---` and ㅋㅋㅋ, but not 습니다... or ***의, of which there are as many as words.
    "glued_run": re.compile(r"^(?! *+(.)\1+$).*?([^\w\s]|[_\u3131-\u3163])\2\2", re.DOTALL),
    "repeats": re.compile(r"(\S.{1,3}?)\1{3,}"),
}
"""Patterns of frequent strings that deserve no piece: web addresses, HTML entities, runs of five and more (of spaces:
with other text), runs of three or four signs or jamo beside anything else, repetitions."""

ADDRESS: Final = rf"(?i:(?:https?|ftp)(?::|%3a)//|www\.[a-z0-9-]|[a-z0-9.-]+\.(?:{_HOSTS}|io|me|be|is|jp|cn|de|uk)/)"
"""Where an address begins in a word, for polars; what follows is not text to learn pieces from."""


_SYLLABLES: Final = re.compile(" *[가-힣]*")
"""No pattern of personal data matches these, which nine pieces in ten are."""

_SHORT: Final = 5
"""Characters with a space before them that hold no junk where they are such syllables."""


class Blocklist:
    """Words and patterns that no piece may hold.

    A line of a list is one of: a word (a piece that contains it is refused, in any letter case), `=word` (only the piece that
    is that word, with or without a space before it), `!word` (an innocent word that contains a refused one: 시발점), `/regex/`,
    and `# comment`.

    Examples
    --------
    >>> blocked = Blocklist(["멍청", "!멍청이꽃", "=바보", "/ㅅ+ㅂ/"], personal=["telephone"])
    >>> blocked.refuses(" 멍청하다"), blocked.refuses(" 멍청이꽃"), blocked.refuses(" 바보"), blocked.refuses("바보상자")
    ('blocked word 멍청', None, 'blocked word 바보', None)
    >>> blocked.refuses("ㅅㅅㅂ"), blocked.refuses("010-0000-0000"), blocked.refuses(" 학교")
    ('blocked pattern /ㅅ+ㅂ/', 'personal data: telephone', None)
    >>> [Blocklist(junk=JUNK).refuses(piece) for piece in ("ㅋㅋㅋㅋ", "ㅋㅋㅋㅋㅋ", "-=-=-=-=", " https:", "    ")]
    [None, 'junk: run', 'junk: repeats', 'junk: address', None]
    >>> [Blocklist(junk=JUNK).refuses(piece) for piece in (" ...", "다...", "==", "!==", "&nbsp;", "</div>")]
    [None, 'junk: glued_run', None, None, 'junk: entity', None]
    >>> [Blocklist(junk=JUNK).refuses(spaces + "return") for spaces in (" " * 4, " " * 5)]
    [None, 'junk: run']
    """

    def __init__(self, lines: Iterable[str] = (), personal: Iterable[str] = (), junk: Iterable[str] = ()) -> None:
        if isinstance(lines, str):
            raise InputError("expected lines, got one `str`", hint="Blocklist([word])")
        self.lines = tuple(sorted({kept for line in lines if (kept := _tidy(line)) and not kept.startswith("#")}))
        self.personal = tuple(sorted(set(personal)))
        self.junk = tuple(sorted(set(junk)))
        if strange := sorted(set(self.junk) - set(JUNK)):
            raise UsageError(f"unknown kind of junk {strange[0]!r}; expected one of {', '.join(JUNK)}")
        unknown = sorted(set(self.personal) - set(PERSONAL))
        if unknown:
            raise UsageError(
                f"unknown kind of personal data {unknown[0]!r}; expected one of {', '.join(PERSONAL)}",
                hint=f"personal={list(PERSONAL_DEFAULT)}",
            )
        marked = {mark: [line[1:].strip() for line in self.lines if line[0] == mark] for mark in "=!"}
        patterns = [line[1:-1] for line in self.lines if _is_pattern(line)]
        words = [line for line in self.lines if line[0] not in "=!" and not _is_pattern(line)]
        self._exact = frozenset(filter(None, marked["="]))
        self._innocent = _any_of(marked["!"])
        self._words = _any_of(words)
        self._patterns = [(pattern, _compiled(pattern)) for pattern in patterns]
        self._personal = [(name, re.compile(PERSONAL[name])) for name in self.personal]

    def __repr__(self) -> str:
        return f"Blocklist({len(self.lines)} lines, personal={list(self.personal)})"

    def __bool__(self) -> bool:
        return bool(self.lines or self.personal or self.junk)

    @classmethod
    def load(cls, path: str | Path, personal: Iterable[str] = ()) -> Blocklist:
        """The blocklist of a UTF-8 file, a line an entry."""
        try:
            text = read_bounded(Path(path), _MOST_LIST, "a blocklist").decode("utf-8-sig")
        except (ArtifactError, UnicodeDecodeError) as error:
            raise InputError(
                f"the blocklist `{path}` cannot be read as UTF-8 text: {error}", hint="a word a line, # for comments"
            ) from error
        lines = text.splitlines()
        if long := [number for number, line in enumerate(lines, start=1) if len(line) > _MOST_LINE]:
            raise InputError(
                f"line {long[0]} of the blocklist `{path}` has {len(lines[long[0] - 1]):,} characters; expected at most {_MOST_LINE:,}",
                hint="a word a line, # for comments",
            )
        return cls(lines, personal)

    def refuses(self, piece: str) -> str | None:
        """The reason for which a piece is refused, or None."""
        if self.lines:
            folded = _fold(piece)
            if folded.strip() in self._exact:
                return f"blocked word {folded.strip()}"
            rest = self._innocent.sub("\0", folded) if self._innocent else folded
            if self._words and (found := self._words.search(rest)):
                return f"blocked word {found[0]}"
            for text, pattern in self._patterns:
                if pattern.search(rest):
                    return f"blocked pattern /{text}/"
        plain = _SYLLABLES.fullmatch(piece) is not None
        if plain and len(piece) <= _SHORT:
            return None
        if self._personal and not plain:
            wide = normalized("NFKC", piece)
            for name, pattern in self._personal:
                if pattern.search(wide):
                    return f"personal data: {name}"
        return next((f"junk: {name}" for name in self.junk if JUNK[name].search(piece)), None)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over everything that decides an answer, the patterns included."""
        content: list[object] = [self.lines, [(name, PERSONAL[name]) for name in self.personal]]
        content += [[(name, JUNK[name].pattern) for name in self.junk]] if self.junk else []
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]


def _fold(text: str) -> str:
    return normalized("NFC", text).casefold()


def _tidy(line: str) -> str:
    line = normalized("NFC", line).strip()
    return line if _is_pattern(line) else line.casefold()  # folding `\S` would make it `\s`


def _is_pattern(line: str) -> bool:
    return len(line) > 2 and line[0] == line[-1] == "/"


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    # The longest first, so that the reason names the whole word.
    found = sorted({word for word in words if word}, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, found))) if found else None


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"the blocklist's pattern `/{pattern}/` is not a regular expression: {error}") from error
