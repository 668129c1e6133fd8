r"""Markdown, HTML, JSON, tables, notebooks and translations to lines of prose, for the corpora of `koktok.corpora.fetch`.

The aim is text to learn words from, not a faithful rendering: marks are removed, words stay, and a line holds one paragraph,
item or cell. Every cell has a line, because neighbours in a table row are no phrase.

Reading takes linear time in hostile pages: an end that is missing (of a comment, a tag, a bracket) is searched for once.
Python's own HTML parser takes quadratic time there before 3.13.6.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from koktok.errors import CorpusError, MissingExtraError
from koktok.hangul import has_syllable

FORMATS = ("txt", "code", "md", "json", "jsonl", "html", "csv", "tsv", "ipynb", "po")

_BREAK = re.compile(r"\r\n?|\n")


def prose(
    stream: IO[bytes], form: str, *, encoding: str = "utf-8", name: str = "text", fields: Sequence[str] = ()
) -> Iterator[str]:
    r"""Yield the lines of prose of one document, stripped, without empty ones; lines of code keep their indentation.

    Examples
    --------
    >>> import io
    >>> list(prose(io.BytesIO("# 제목\n**굵은** [글](http://a.b)".encode()), "md"))
    ['제목', '굵은 글']
    """
    try:
        if form in ("txt", "code"):
            lines: Iterator[str] = (raw.decode(encoding) for raw in stream)
        else:
            lines = _READERS[form](stream.read().decode(encoding), fields)
        for text in lines:
            for line in _BREAK.split(text):
                if stripped := line.removeprefix("\ufeff").strip():
                    yield line.removeprefix("\ufeff").rstrip() if form == "code" else stripped
    except (UnicodeDecodeError, LookupError) as error:
        raise CorpusError(f"`{name}` is not in {encoding}: {error}", hint='encoding = "cp949" in the recipe') from error
    except (ValueError, RecursionError, OSError, csv.Error) as error:  # JSON nested deeper than Python's stack; polib's
        raise CorpusError(f"`{name}` is not {form}: {error}", hint="see the key `format` of the recipe") from error


_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$")
_TABLE_RULE = re.compile(r"[\s|:-]+$")
_DEFINITION = re.compile(r"\s{0,3}\[[^\]]+\]:\s")
_HEAD = re.compile(r"\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?)?")
# A bracket in none of them may hold another opening one: from each of many the end of the line would be looked for.
_TARGET = r"\([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+)*+\)"
_INLINE = [
    (re.compile(r"<br\s*/?>", re.IGNORECASE), "\n"),
    (re.compile(r"</?[A-Za-z][^<>\n]*>"), ""),
    (re.compile(r"!?\[\[(?:[^\[\]|\n]*\|)?([^\[\]\n]*)\]\]"), r"\1"),  # Obsidian: [[target|text]]
    (re.compile(rf"!\[([^\[\]\n]*)\]{_TARGET}"), r"\1"),  # before links: images stand in them
    (re.compile(rf"\[([^\[\]\n]*)\]{_TARGET}"), r"\1"),
    (re.compile(r"\[([^\[\]\n]+)\]\[[^\[\]\n]*\]"), r"\1"),
    (re.compile(r"\*\*|__|~~|`"), ""),
]


def _markdown(text: str, _: Sequence[str] = ()) -> Iterator[str]:
    lines = _BREAK.sub("\n", text).split("\n")
    for line in _without_comments("\n".join(lines[_front_matter(lines) :])).split("\n"):
        if _FENCE.match(line) or _RULE.match(line) or _DEFINITION.match(line):
            continue
        cells = [line]
        if line.lstrip().startswith("|"):
            cells = [] if _TABLE_RULE.match(line) else re.split(r"(?<!\\)\|", line)
        for cell in cells:
            plain = _HEAD.sub("", cell, count=1)
            for pattern, new in _INLINE:
                plain = pattern.sub(new, plain)
            yield html.unescape(plain)


def _without_comments(text: str) -> str:
    parts, at = [], 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        parts.append(text[at:begin])
        at = end + 3
    return "".join([*parts, text[at:]])


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of YAML between two rules at the beginning."""
    if lines[0].removeprefix("\ufeff").rstrip() != "---":
        return 0
    return next((i for i, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)


def _json(text: str, fields: Sequence[str]) -> Iterator[str]:
    # With each value, whether it is under a key that is wanted.
    waiting: list[tuple[Any, bool]] = [(json.loads(text), not fields)]
    while waiting:
        value, wanted = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed([(part, wanted or key in fields) for key, part in value.items()])
        elif isinstance(value, list):
            waiting += [(part, wanted) for part in reversed(value)]
        elif wanted and isinstance(value, str) and has_syllable(value):
            yield value


def _json_lines(text: str, fields: Sequence[str]) -> Iterator[str]:
    for line in text.split("\n"):
        if line.strip():
            yield from _json(line, fields)


def _csv(text: str, fields: Sequence[str]) -> Iterator[str]:
    return _cells(csv.reader(io.StringIO(text, newline="")), fields)


def _tsv(text: str, fields: Sequence[str]) -> Iterator[str]:
    # No quotes: the tables of the field hold words in them, and closing ones are missing.
    return _cells((line.split("\t") for line in _BREAK.split(text) if line), fields)


def _cells(rows: Iterator[list[str]], fields: Sequence[str]) -> Iterator[str]:
    named = any(not field.isdecimal() for field in fields)
    if named:
        head = [name.removeprefix("\ufeff") for name in next(rows, [])]
        if missing := [field for field in fields if field not in head]:
            raise ValueError(f"it has no column {missing[0]!r}, but {', '.join(head)[:200]}")
        columns = [head.index(field) for field in fields]
    else:
        columns = [int(field) - 1 for field in fields]
    for row in rows:
        yield from (row[at] for at in columns if at < len(row)) if fields else row


def _notebook(text: str, _: Sequence[str]) -> Iterator[str]:
    notebook = json.loads(text)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("it has no cells")  # noqa: TRY004 - one kind of error for all that is not a notebook
    for cell in notebook["cells"]:
        if isinstance(cell, dict) and cell.get("cell_type") == "markdown":
            yield from _markdown("".join(map(str, cell.get("source", ()))))


def _translation(text: str, _: Sequence[str]) -> Iterator[str]:
    try:
        import polib  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("polib", "po") from None
    for entry in polib.pofile(text):
        if entry.translated() and not entry.obsolete:  # finished, and not only guessed ("fuzzy")
            yield _ROLE.sub(r"\1", entry.msgstr)


# reStructuredText, as the translations of Python's documentation have it: :role:`text <target>`, ``code``, `link <at>`_.
_ROLE = re.compile(r"(?::[A-Za-z][\w:+.-]{0,80}:)?`{1,2}[~!]?([^`<>]*?)(?:\s*<[^<>`]*>)?`{1,2}_{0,2}")


# What begins a comment, another declaration or bogus comment, or a tag; the name ends where the standard ends it.
_MARK = re.compile(r"<(?:(!--)|([!?]|/(?![A-Za-z]))|(/?)([A-Za-z][^\s/>]*))")
# To the end of a tag: a `>` in a quoted value does not end it. Possessive, so that what fails, fails once.
_TAG_END = re.compile(r"""(?:[^>"'=]++|=\s*+(?:"[^"]*"|'[^']*')?|["'])*+>""")
_RAW_END = {name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE) for name in ("script", "style")}


def _html(text: str, _: Sequence[str]) -> Iterator[str]:
    """Split HTML into text and tags as the standard does; an unclosed tag reaches to the end."""
    blocks, at = _Blocks(), 0
    while mark := _MARK.search(text, at):
        comment, bogus, closing, name = mark.groups()
        blocks.text(text[at : mark.start()])
        if comment:
            at = _behind("-->", text, mark.start() + 2)  # `<!-->` is a whole one
        elif bogus:
            at = _behind(">", text, mark.start())
        elif tag := _TAG_END.match(text, mark.end()):
            at, lone, name = tag.end(), tag[0].endswith("/>"), name.lower()
            blocks.tag(name, closing=bool(closing), lone=lone)
            if name in _RAW_END and not closing and not lone:
                raw = _RAW_END[name].search(text, at)
                at = raw.start() if raw else len(text)
        else:
            at = len(text)
    blocks.text(text[at:])
    blocks.close()
    return iter(blocks.lines)


def _behind(end: str, text: str, at: int) -> int:
    found = text.find(end, at)
    return len(text) if found < 0 else found + len(end)


class _Blocks:
    """A collector of the text of block elements; white space collapses as in a browser."""

    SKIP = frozenset({"head", "script", "style", "template", "noscript", "nav", "aside", "footer", "svg", "math"})
    # fmt: off
    INLINE = frozenset({
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
        "img", "input", "ins", "kbd", "label", "mark", "output", "q", "rp", "rt", "ruby", "s", "samp", "small",
        "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    })
    # fmt: on

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.skipped = 0
        self.kept = 0

    def close(self) -> None:
        text = "".join(self.parts)
        self.lines += [" ".join(line.split()) for line in (text.split("\n") if self.kept else [text])]
        self.parts = []

    def tag(self, name: str, *, closing: bool, lone: bool) -> None:
        if name not in self.INLINE:
            self.close()
        if closing:
            self.skipped = max(0, self.skipped - (name in self.SKIP))
            self.kept = max(0, self.kept - (name == "pre"))
        elif not lone:
            # `</head>` may be left out, `<body>` then ends it.
            self.skipped = 0 if name == "body" else self.skipped + (name in self.SKIP)
            self.kept += name == "pre"

    def text(self, text: str) -> None:
        if not self.skipped:
            self.parts.append(html.unescape(text))


_READERS: dict[str, Callable[[str, Sequence[str]], Iterator[str]]] = {
    "md": _markdown,
    "json": _json,
    "jsonl": _json_lines,
    "html": _html,
    "csv": _csv,
    "tsv": _tsv,
    "ipynb": _notebook,
    "po": _translation,
}
