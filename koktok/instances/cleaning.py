r"""Cleaning: named steps from raw pages to text, each counted, with examples of what it took away.

This file adds: what does not reach a model. A step is a name in a list, and what it drops is told in the manifest of the packed
folder and on the page of statistics. The result depends on the text before it and on nothing else, so that a run that was
killed goes on with the same lines.

=========== ===========================================================================================================
step        what it does
=========== ===========================================================================================================
html        tags, scripts, navigation and footers of a page go, entities become characters, blocks become lines
control     control characters, byte order marks, soft hyphens and other marks that nobody sees go; tabs become spaces
personal    a line with an e-mail address, a telephone or a registration number goes (the patterns of the blocklist)
boilerplate a line of copyright, of navigation, of a web address or of nothing but symbols goes
short       a line below so many characters goes, and a document below so many
repeats     a line that is like an earlier one goes, by MinHash over runs of five characters; the last 131,072 lines are known
language    a document goes where less than a share of its letters is Hangul
=========== ===========================================================================================================

The order is that of the table. MinHash (Broder 1997) is datasketch's: 64 permutations, lines of 20 characters and more, white
space, letter case and which digit apart.
"""

from __future__ import annotations

import io
import re
import unicodedata
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from koktok.blocklist import PERSONAL, PERSONAL_DEFAULT
from koktok.errors import MissingExtraError, UsageError
from koktok.text.extract import prose

Step = Literal["html", "control", "personal", "boilerplate", "short", "repeats", "language"]

EXAMPLES, EXAMPLE = 5, 100
"""Examples that are kept of a step, and characters of each."""

WINDOW = 1 << 17
"""Lines that a line is compared with; some 400 MB of MinHash, whatever the length of the text."""

PERMUTATIONS, BANDS, RUN, LEAST = 64, 16, 5, 20
"""16 bands of 4: of lines with similarity .8 one in 4,000 is missed, and what shares a band is compared as a whole."""

_MARKUP = re.compile(
    r"<(?:!--|!doctype|/?[a-zA-Z][a-zA-Z0-9-]*[\s/>])|&(?:[a-zA-Z]{2,8}|#\d{1,7}|#x[0-9a-fA-F]{1,6});", re.I
)
_PAGE = re.compile(r"<(?:!doctype|/?(?:html|head|body|div|table|article|section)\b)", re.I)
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u2060-\u2064\ufeff\ufff9-\ufffc\ufffe\uffff]")
_PERSONAL = {name: re.compile(PERSONAL[name]) for name in PERSONAL_DEFAULT}
_MAY_BE_PERSONAL = re.compile(r"@|\d\d")
_COPYRIGHT = re.compile(
    r"(?:ⓒ|©|\(c\)|copyrights?\b).{0,80}(?:\d{4}|reserved|무단|금지|뉴스|\.com|inc)|all rights reserved"
    r"|무단\s?(?:전재|복제|배포|도용).{0,40}금지|저작권자\s?[(ⓒ©:]|자바스크립트.{0,30}활성화|javascript.{0,30}enable"
    r"|쿠키.{0,20}(?:사용|동의)",
    re.I,
)
_ITEM = (
    "본문 ?바로가기|메뉴 ?바로가기|바로가기|로그인|로그아웃|회원 ?가입|마이 ?페이지|이전 ?글|다음 ?글|이전|다음|목록(?:으로)?|맨 ?위로|"
    "더 ?보기|전체 ?메뉴|전체 ?보기|공유(?:하기)?|인쇄(?:하기)?|스크랩|댓글(?: ?달기)?|답글|좋아요|구독(?:하기)?|글자 ?크기|검색|닫기|열기|"
    "페이스북|트위터|카카오톡|카카오스토리|네이버 ?블로그|밴드|이메일|url ?복사|고객센터|사이트맵|이용약관|개인정보 ?처리방침|홈|"
    "home|login|menu|share|top"
)
_NAVIGATION = re.compile(rf"(?:(?:{_ITEM}|\d{{1,4}})[\s|>»›·/,()\[\]:+-]*)+", re.I)
_PATH = re.compile(r"[^.?!>»›|]{1,20}(?:\s?[>»›|]\s?[^.?!>»›|]{1,20}){2,}")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_WORD = re.compile(r"\w")
_HANGUL = re.compile("[가-힣ㄱ-ㅎㅏ-ㅣ\u1100-\u11ff]+")
_NO_LETTER = re.compile(r"[\W\d_]+")


@dataclass(frozen=True)
class Cleaning:
    """Which steps, and their bounds.

    Parameters
    ----------
    steps : tuple of str
        What is cleaned away before.
    line, document : int
        short: fewest characters of a line and of a document.
    hangul : float
        language: least share of Hangul among the letters of a document.
    alike : float
        repeats: estimated Jaccard similarity from which a line repeats another.

    Raises
    ------
    UsageError
        For an unknown step and for bounds out of range.

    Examples
    --------
    >>> Cleaning.parse("html, short").steps
    ('html', 'short')
    >>> Cleaning.parse("none") is None
    True
    """

    steps: tuple[Step, ...] = get_args(Step)
    line: int = 6
    document: int = 30
    hangul: float = 0.3
    alike: float = 0.8

    def __post_init__(self) -> None:
        if unknown := [step for step in self.steps if step not in get_args(Step)]:
            raise _unknown(unknown[0])
        if self.line < 0 or self.document < 0 or not 0 <= self.hangul <= 1 or not 0 < self.alike <= 1:
            raise UsageError(
                f"line={self.line}, document={self.document}, hangul={self.hangul}, alike={self.alike}; "
                "wanted lengths from 0 and shares from 0 to 1",
                hint="Cleaning(line=6, document=30, hangul=0.3, alike=0.8)",
            )

    @classmethod
    def parse(cls, text: str, **bounds: Any) -> Cleaning | None:
        """`all`, `none`, or names of steps with commas between."""
        names = [name.strip() for name in text.split(",") if name.strip()]
        if names == ["none"] or not names:
            return None
        if names != ["all"] and (unknown := [name for name in names if name not in get_args(Step)]):
            raise _unknown(unknown[0])
        return cls(tuple(step for step in get_args(Step) if names == ["all"] or step in names), **bounds)

    def signature(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {**asdict(self), "steps": list(self.steps)}


def _unknown(step: str) -> UsageError:
    return UsageError(
        f"the cleaning step `{step}` is not known", hint=f"--clean all, none, or some of {','.join(get_args(Step))}"
    )


@dataclass
class _Taken:
    """What a step has taken away so far."""

    lines: int = 0
    documents: int = 0
    characters: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, text: str, characters: int, *, documents: int = 0, lines: int = 1) -> None:
        self.lines += lines
        self.documents += documents
        self.characters += characters
        if len(self.examples) < EXAMPLES and (shown := " ".join(text.split())[:EXAMPLE]) not in self.examples:
            self.examples.append(shown)


class Cleaner:
    r"""Lines of a document to what is left of them; counts what is not.

    Parameters
    ----------
    cleaning : Cleaning

    Raises
    ------
    MissingExtraError
        For `repeats` without datasketch.

    Examples
    --------
    >>> clean = Cleaner(Cleaning(steps=("html", "control", "personal", "boilerplate"), document=0))
    >>> clean(["<p>봄이\ufeff 왔다. &amp;c.</p><script>x()</script>", "문의: a.kim@example.com", "홈 > 뉴스 > 사회"])
    ['봄이 왔다. &c.']
    >>> clean.taken["personal"].examples
    ['문의: •.•••@•••••••.•••']
    """

    def __init__(self, cleaning: Cleaning) -> None:
        self.cleaning = cleaning
        self.taken: dict[str, _Taken] = {step: _Taken() for step in cleaning.steps}
        self.documents = self.lines = self.characters = 0
        if "repeats" in cleaning.steps:
            self._known = _Repeats(cleaning.alike)

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """What is left of a document; nothing where all of it goes."""
        steps = self.cleaning.steps
        self.documents += 1
        self.lines += len(lines)
        self.characters += sum(map(len, lines))
        if "html" in steps:
            lines = self._without_markup(lines)
        kept: list[str] = []
        for line in lines:
            text: str | None = line
            for step in steps:
                if text is not None and step in _OF_LINES:
                    text = _OF_LINES[step](self, text)
            if text:
                kept.append(text)
        whole = "\n".join(kept)
        if "short" in steps and kept and len(whole) < self.cleaning.document:
            self.taken["short"].add(whole, len(whole), documents=1, lines=len(kept))
            return []
        if "language" in steps and kept:
            letters = len(_NO_LETTER.sub("", whole))
            if letters - len(_HANGUL.sub("", _NO_LETTER.sub("", whole))) < self.cleaning.hangul * letters:
                self.taken["language"].add(whole, len(whole), documents=1, lines=len(kept))
                return []
        return kept

    def told(self) -> dict[str, Any]:
        """Counts of all that came, and of what each step took away, with examples."""
        return {
            "documents": self.documents,
            "lines": self.lines,
            "characters": self.characters,
            "steps": {step: asdict(taken) for step, taken in self.taken.items()},
        }

    def _without_markup(self, lines: Sequence[str]) -> Sequence[str]:
        """A page is read as one, for a line of it ends where a block does; elsewhere each line that has a tag or an entity."""
        whole = "\n".join(lines)
        if not _MARKUP.search(whole):
            return lines
        found: list[str] = []
        for text in [whole] if _PAGE.search(whole) else lines:
            if not _MARKUP.search(text):
                found.append(text)
                continue
            left = list(prose(io.BytesIO(text.encode("utf-8", "replace")), "html"))
            size = sum(map(len, left)) + max(0, len(left) - 1)
            self.taken["html"].add(text, max(0, len(text) - size), lines=text.count("\n") + 1)
            found += left
        return found

    def _control(self, line: str) -> str | None:
        if (text := _UNSEEN.sub("", line.replace("\t", " "))) != line:
            self.taken["control"].add(ascii(line[:EXAMPLE]) if len(text) < len(line) else line, len(line) - len(text))
        return text

    def _personal(self, line: str) -> str | None:
        if not _MAY_BE_PERSONAL.search(line) and line.isascii():
            return line
        normal = line if line.isascii() else unicodedata.normalize("NFKC", line)
        if _MAY_BE_PERSONAL.search(normal):
            for pattern in _PERSONAL.values():
                if found := pattern.search(normal):
                    # An example of an address that is nobody's.
                    shown = normal[max(0, found.start() - 20) : found.start()] + _WORD.sub("•", normal[found.start() :])
                    self.taken["personal"].add(shown, len(line))
                    return None
        return line

    def _boilerplate(self, line: str) -> str | None:
        text = line.strip()
        if not text:
            return line
        marked = len(text) <= 200 and (_COPYRIGHT.search(text) or _NAVIGATION.fullmatch(text) or _PATH.fullmatch(text))
        if marked or _ADDRESS.fullmatch(text) or not _WORD.search(text):
            self.taken["boilerplate"].add(text, len(line))
            return None
        return line

    def _short(self, line: str) -> str | None:
        text = line.strip()
        if text and len(text) < self.cleaning.line:
            self.taken["short"].add(text, len(line))
            return None
        return line

    def _repeats(self, line: str) -> str | None:
        if self._known(line):
            self.taken["repeats"].add(line, len(line))
            return None
        return line


_OF_LINES = {
    "control": Cleaner._control,
    "personal": Cleaner._personal,
    "boilerplate": Cleaner._boilerplate,
    "short": Cleaner._short,
    "repeats": Cleaner._repeats,
}


class _Repeats:
    """Whether a line is like one of the last lines."""

    def __init__(self, alike: float) -> None:
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError:
            raise MissingExtraError("datasketch", "clean") from None
        self._alike = alike
        self._empty = MinHash(PERMUTATIONS, seed=1, hashfunc=zlib.crc32, scheme="affine32")
        self._near = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, PERMUTATIONS // BANDS))
        self._last: deque[str] = deque()
        self._of: dict[str, Any] = {}

    def __call__(self, line: str) -> bool:
        text = re.sub(r"\d", "0", "".join(line.split()).casefold())
        if len(text) < LEAST:
            return False
        if text in self._of:
            return True
        mine = self._empty.copy()
        mine.update_batch({text[i : i + RUN].encode("utf-8", "replace") for i in range(len(text) - RUN + 1)})
        if any(mine.jaccard(self._of[other]) >= self._alike for other in self._near.query(mine)):
            return True
        self._near.insert(text, mine)
        self._of[text] = mine
        self._last.append(text)
        if len(self._last) > WINDOW:
            gone = self._last.popleft()
            self._near.remove(gone)
            del self._of[gone]
        return False
