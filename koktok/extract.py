r"""Markdown, HTML and JSON to lines of prose, for the corpora that `koktok.fetch` brings.

The aim is text to learn words from, not a faithful rendering: marks go, words stay, and a line holds one paragraph,
item or cell. Cells stand on lines of their own, because a word and its neighbour in a table row are no phrase.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import IO, Any

from koktok.errors import CorpusError

__all__ = ["FORMATS", "has_hangul", "prose"]

FORMATS = ("txt", "md", "json", "html")

_HANGUL = re.compile("[가-힣]")
_BREAK = re.compile(r"\r\n?|\n")


def has_hangul(line: str) -> bool:
    """Return whether the line holds a precomposed Hangul syllable (한글 음절).

    Examples
    --------
    >>> has_hangul("V1 API를"), has_hangul("ㅋㅋ")
    (True, False)
    """
    return _HANGUL.search(line) is not None


def prose(stream: IO[bytes], form: str, *, encoding: str = "utf-8", name: str = "text") -> Iterator[str]:
    r"""Yield the lines of prose of one document, stripped, without empty ones.

    Parameters
    ----------
    stream : binary file
        The document; plain text is read line by line, the other forms whole.
    form : {"txt", "md", "json", "html"}
        What it is.
    encoding : str
        Its encoding.
    name : str
        What an error calls it.

    Raises
    ------
    CorpusError
        Bytes that are not in the encoding, or no JSON.

    Examples
    --------
    >>> import io
    >>> list(prose(io.BytesIO("# 제목\n**굵은** [글](http://a.b)".encode()), "md"))
    ['제목', '굵은 글']
    """
    try:
        if form == "txt":
            lines: Iterator[str] = (raw.decode(encoding) for raw in stream)
        else:
            lines = _READERS[form](stream.read().decode(encoding))
        for text in lines:
            for line in _BREAK.split(text):
                if stripped := line.removeprefix("\ufeff").strip():
                    yield stripped
    except (UnicodeDecodeError, LookupError) as error:
        raise CorpusError(f"`{name}` is not in {encoding}: {error}", hint='encoding = "cp949" in the recipe') from error
    except ValueError as error:
        raise CorpusError(f"`{name}` is no {form}: {error}", hint="see the key `format` of the recipe") from error


_FRONT = re.compile(r"\A\ufeff?---\s*\n.*?\n(?:---|\.\.\.)\s*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}$")
_TABLE_RULE = re.compile(r"[\s|:-]+$")
_DEFINITION = re.compile(r"\s{0,3}\[[^\]]+\]:\s")
_HEAD = re.compile(r"\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?)?")
_INLINE = [
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"<br\s*/?>", re.IGNORECASE), "\n"),
    (re.compile(r"</?[A-Za-z][^<>\n]*>"), ""),
    (re.compile(r"<https?://[^>\s]*>"), ""),
    (re.compile(r"!?\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]"), r"\1"),  # Obsidian: [[target|text]]
    (re.compile(r"!\[([^\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"), r"\1"),  # before links: images stand in them
    (re.compile(r"\[([^\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"), r"\1"),
    (re.compile(r"\[([^\]\n]+)\]\[[^\]\n]*\]"), r"\1"),
    (re.compile(r"\*\*|__|~~|`"), ""),
]


def _markdown(text: str) -> Iterator[str]:
    text = _FRONT.sub("", _BREAK.sub("\n", text), count=1)
    for pattern, new in _INLINE[:1]:
        text = pattern.sub(new, text)
    for line in text.split("\n"):
        if _FENCE.match(line) or _RULE.match(line) or _DEFINITION.match(line):
            continue
        cells = [line]
        if line.lstrip().startswith("|"):
            cells = [] if _TABLE_RULE.match(line) else re.split(r"(?<!\\)\|", line)
        for cell in cells:
            plain = _HEAD.sub("", cell, count=1)
            for pattern, new in _INLINE[1:]:
                plain = pattern.sub(new, plain)
            yield html.unescape(plain)


def _json(text: str) -> Iterator[str]:
    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            if has_hangul(value):
                yield value
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from strings(inner)

    return strings(json.loads(text))


class _Blocks(HTMLParser):
    """Collects the text of block elements; white space folds as a browser folds it."""

    SKIP = frozenset({"head", "script", "style", "template", "noscript", "nav", "aside", "footer", "svg", "math"})
    # fmt: off
    INLINE = frozenset({
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
        "img", "input", "ins", "kbd", "label", "mark", "output", "q", "rp", "rt", "ruby", "s", "samp", "small",
        "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    })
    # fmt: on

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.parts: list[str] = []
        self.skipped = 0
        self.kept = 0

    def close_block(self) -> None:
        text = "".join(self.parts)
        self.lines += [" ".join(line.split()) for line in (text.split("\n") if self.kept else [text])]
        self.parts = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        # `</head>` may be left out, `<body>` then ends it.
        self.skipped = 0 if tag == "body" else self.skipped + (tag in self.SKIP)
        if tag not in self.INLINE:
            self.close_block()
        self.kept += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.skipped = max(0, self.skipped - (tag in self.SKIP))
        if tag not in self.INLINE:
            self.close_block()
        self.kept = max(0, self.kept - (tag == "pre"))

    def handle_startendtag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag not in self.INLINE:
            self.close_block()

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.parts.append(data)


def _html(text: str) -> Iterator[str]:
    parser = _Blocks()
    parser.feed(text)
    parser.close()
    parser.close_block()
    return iter(parser.lines)


_READERS = {"md": _markdown, "json": _json, "html": _html}
