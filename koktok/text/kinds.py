r"""What a file is: text, JSON lines, a table, or nothing that koktok reads; and the lines to type where it is not read.

The name without the packing decides, and the first bytes: `a.json.zst`, `wiki_00` and a file of a cache without an ending are
records where they begin with one. Nothing is read as text that is something else.
"""

from __future__ import annotations

import codecs
import json
import re
import shlex
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Literal

from koktok.errors import InputError
from koktok.files import FETCH_LFS, LFS_POINTER
from koktok.hangul import count_syllables
from koktok.text.unpack import CHUNK, PACKED, damage, unpack

FileKind = Literal["text", "jsonl", "csv", "tsv", "parquet"]

STDIN = Path("-")
NAMES: dict[str, FileKind] = {
    ".txt": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
EXTENSIONS = (*NAMES, *(name + packed for name, kind in NAMES.items() if kind != "parquet" for packed in PACKED))
"""Endings of the files that koktok reads in a folder."""

_MARKUP = re.compile(rb"\s*<(?:!doctype html|html\b|\?xml\b|mediawiki\b|doc id=)", re.IGNORECASE)
_PAGES = {".html": "html", ".htm": "html", ".xml": "mediawiki"}
"""Endings of marked-up text, and what pandoc calls it."""
_CAT = {".gz": "zcat", ".zst": "zstdcat", ".xz": "xzcat", ".bz2": "bzcat"}
_ICONV = "iconv -f cp949 -t utf-8"
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def plain_name(path: Path) -> str:
    """Return the name of a file without that of its packing."""
    return path.stem if path.suffix.lower() in PACKED else path.name


def suffix_of(path: Path) -> str:
    """Return the ending of that name, in small letters."""
    return Path(plain_name(path)).suffix.lower()


@dataclass
class Place:
    """A file in messages: its name, and lines for a shell."""

    path: Path

    def refuse(self, what: str, hint: str, line: int | None = None) -> InputError:
        """Return the error that the file is or has something."""
        name = "standard input" if self.path == STDIN else f"`{self.path}`"
        return InputError(f"{name}{'' if line is None else f', line {line}'} {what}", hint=hint)

    def through(self, command: str, ending: str = "") -> str:
        """Return the line that gives this file, unpacked, to a command and keeps the result beside it."""
        name, suffix = Path(plain_name(self.path)), suffix_of(self.path) or ".txt"
        out = self.path.with_name(f"{name.stem}.utf8{suffix}" if not ending else f"{name.stem}{ending}")
        return f"{self.give(command)} > {shlex.quote(str(out))}"

    def give(self, command: str) -> str:
        """Return the line that gives this file, unpacked, to a command."""
        cat, path = _CAT.get(self.path.suffix.lower()), shlex.quote(str(self.path))
        return f"{cat} {path} | {command}" if cat else f"{command} {path}"

    def line(self, number: int) -> str:
        """Return the line that shows a line of it."""
        return self.give(f"sed -n {number}p")


def kind_of(path: Path, head: bytes, field: str | None, *, lines: bool = False) -> FileKind:
    """Return what a file is whose first bytes, unpacked, are these; InputError if koktok does not read it.

    With `field` records are wanted. With `lines` a stream and a text are lines whatever they begin with: a filter is run on them.

    Examples
    --------
    >>> kind_of(Path("c4.json.gz"), b'{"text": "a"}', None), kind_of(Path("wiki_00"), b'{"text": "a"}', None)
    ('jsonl', 'jsonl')
    >>> kind_of(Path("a.csv"), b"text", None), kind_of(Path("a.md"), b"{a}", None)
    ('csv', 'text')
    """
    place, suffix = Place(path), suffix_of(path)
    named = NAMES.get(suffix)
    if head.startswith(b"PAR1"):
        if path.suffix.lower() in PACKED or path == STDIN:
            raise place.refuse("is Parquet, which cannot be read as a stream", place.through("cat", ".parquet"))
        return "parquet"
    if named == "parquet":
        return "parquet"
    if head.startswith(LFS_POINTER):
        raise place.refuse("is a Git LFS pointer, not the file", FETCH_LFS)
    if suffix in _PAGES or (named is None and _MARKUP.match(head)):
        what = suffix if suffix in _PAGES else "marked-up text"
        form = _PAGES.get(suffix, "html")
        raise place.refuse(
            f"is {what}; expected text or JSON lines", place.through(f"pandoc -f {form} -t plain --wrap=none", ".txt")
        )
    _check_encoding(place, head)
    if named in ("csv", "tsv"):
        return named
    start = head.removeprefix(codecs.BOM_UTF8).lstrip(b" \t")
    has_records = named == "jsonl" or suffix == ".json" or field is not None
    record, stream = _begins_with_record(start), path == STDIN or (path.exists() and not path.is_file())
    if re.match(rb"\s*\[\s*[{\[]", start) and (has_records or not lines):
        raise place.refuse("is a JSON array; expected JSON lines", place.through("jq -c '.[]'", ".jsonl"))
    if suffix == ".json" and start.strip() and not record:
        raise place.refuse("is one JSON document; expected JSON lines", place.through(_jq(start), ".jsonl"))
    if has_records and (record or named == "jsonl" or stream):
        return "jsonl"
    if record and named is None and not stream:
        return "jsonl"
    if record and not lines:
        name = shlex.quote(str(path))
        raise place.refuse(
            "begins with a record of JSON; expected text",
            f"--field text, or (echo; cat {name}) > lines.txt for lines of text",
        )
    return "text"


def kind_at(path: Path, field: str | None, *, lines: bool = False) -> FileKind:
    """Return what a file on a disk is; a pipe is not read for it."""
    return kind_of(path, head_of(path) if path.is_file() else b"", field, lines=lines)


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked."""
    try:
        with path.open("rb") as raw:
            first = raw.peek(len(LFS_POINTER))
            return first if first.startswith(LFS_POINTER) else unpack(raw, path.suffix.lower()).read(CHUNK)
    except (OSError, *damage()):  # type: ignore[misc]
        return b""  # whoever reads it says so


def is_read(path: Path) -> bool:
    """Whether a file in a folder is read: by its ending, or as records where the ending says nothing of text."""
    if path.name.lower().endswith(EXTENSIONS):
        return True
    if suffix_of(path) not in ("", ".json"):
        return False
    try:
        return kind_at(path, None) in ("jsonl", "parquet")
    except InputError:
        return False


COUNTS: Final = "koktok.counts"
"""What the metadata of a count file has, which is Parquet."""


def counts_in(file: Path | IO[bytes]) -> str | None:
    """What a count file says of itself; None of another file."""
    import polars as pl

    try:
        return pl.read_parquet_metadata(file).get(COUNTS)
    except (OSError, pl.exceptions.PolarsError):  # no Parquet
        return None


def is_count(file: Path | IO[bytes]) -> bool:
    """Whether `koktok count` wrote a file."""
    return counts_in(file) is not None


def _begins_with_record(start: bytes) -> bool:
    """Whether the first line is a JSON object, as far as it can be seen."""
    if not start.startswith(b"{"):
        return False
    line, whole, _ = start.partition(b"\n")
    if not whole and len(start) >= CHUNK // 2:  # a line of a whole file, or of a long document
        return re.match(rb'\{\s*"', start) is not None
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _jq(start: bytes) -> str:
    """Return the command that makes JSON lines of a document: of its first list of records, if there is one, else one line."""
    text = start.decode("utf-8", "replace")
    lists = re.search(r'"(\w+)"\s*:\s*\[\s*\{', text)
    outside = lists is not None and text[: lists.start()].count("{") - text[: lists.start()].count("}") == 1
    return f"jq -c '.{lists[1]}[]'" if lists is not None and outside else "jq -c ."


def best_field(record: Any) -> str:
    """Return the name of the field of a record that holds most text, Hangul first, then letters; '' if none does.

    Examples
    --------
    >>> best_field({"id": "9976970", "user": "a_1", "review": "Good."})
    'review'
    >>> best_field({"id": "NWRW18.1", "document": [{"id": "1", "paragraph": [{"id": "1.1", "form": "비가 온다."}]}]})
    'document[].paragraph[].form'
    """
    amounts: dict[str, tuple[int, ...]] = {}
    for name, text in _texts_in(record, 4):
        found = count_syllables(text[:1000]), sum(map(str.isalpha, text[:1000])), len(text)
        amounts[name] = tuple(map(sum, zip(amounts.get(name, (0, 0, 0)), found, strict=True)))
    return max(amounts, key=lambda name: amounts[name], default="")


_SAYERS = ("role", "from")
"""Fields of a turn of a chat that say who speaks."""


def _texts_in(record: Any, depth: int, before: str = "") -> Any:
    """Yield the names of fields that hold text, with the text; of lists the first records."""
    for key, value in record.items() if isinstance(record, dict) else ():
        name = f"{before}{key}"
        if isinstance(value, str) and not (before.endswith("[].") and key in _SAYERS):
            yield name, value
        elif isinstance(value, dict) and depth > 1:
            yield from _texts_in(value, depth - 1, f"{name}.")
        elif isinstance(value, list) and depth > 1:
            for item in islice(value, 50):
                if isinstance(item, str):
                    yield f"{name}[]", item
                else:
                    yield from _texts_in(item, depth - 1, f"{name}[].")


def _check_encoding(place: Place, head: bytes) -> None:
    """Refuse a file whose first bytes are no UTF-8 text, at once and not after an hour."""
    path = shlex.quote(str(place.path))
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise place.refuse("is UTF-16; expected UTF-8", place.through("iconv -f utf-16 -t utf-8"))
    if b"\0" in head[:8192]:
        raise place.refuse("is binary; expected text in UTF-8", f"file {path}")
    bad = len(_SURROGATE.findall(head.decode("utf-8", "surrogateescape")))
    foreign = len(head.translate(None, bytes(range(128))))
    # Two bytes a syllable: half of all bytes beyond ASCII being Hangul in CP949 is no accident, where the rest is text, too.
    # Of random bytes a third of the pairs is in no table of CP949.
    korean = head.decode("cp949", "replace")
    broken = korean.count("\ufffd") + len(_CONTROL.findall(korean))
    if 2 * bad > foreign and 4 * count_syllables(korean) > foreign > 20 * (broken - 1):
        raise place.refuse("looks like EUC-KR or CP949; expected UTF-8", place.through(_ICONV))
    if bad > 0.3 * len(head):
        raise place.refuse(f"is binary: {bad} of its first {len(head)} bytes are not UTF-8", f"file {path}")


TO_UTF8 = _ICONV
"""The command for a file that turns out to be in the other encoding of Korean."""
