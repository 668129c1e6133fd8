"""The records of one file: unpacked, decoded, parsed, as blocks with their line numbers.

Lines are cut as bytes, some 256 KiB at a time, and only a block that is not UTF-8 is looked at line by line.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from koktok.errors import InputError
from koktok.files import FETCH_LFS, LFS_POINTER
from koktok.hangul import count_syllables
from koktok.progress import Done
from koktok.text.blocks import Block
from koktok.text.unpack import CHUNK, PACKED, damage, unpack

if TYPE_CHECKING:
    import polars as pl

Errors = Literal["skip", "empty", "replace", "error"]

STDIN = Path("-")
_TEXT = (".txt", ".md", ".jsonl", ".ndjson", ".csv", ".tsv")
_CAT = {".gz": "zcat", ".zst": "zstdcat", ".xz": "xzcat", ".bz2": "bzcat"}
EXTENSIONS = (*_TEXT, ".parquet", *(text + packed for text in _TEXT for packed in PACKED))
_MAX_LINE = 1 << 26  # A longer "line" is a file without line breaks, and would have to be held whole.
_BATCH = 1000
PLACES = 20  # bad ones that a report keeps
_ICONV = "iconv -f cp949 -t utf-8"
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass
class ReadReport:
    """Statistics of reading, filled in by a reading function."""

    files: int = 0
    bytes: int = 0
    lines: int = 0
    empty_files: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    bad_bytes: int = 0
    bad_lines: int = 0
    bad_places: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)

    def add(self, file: ReadReport) -> None:
        """Add the report of one more file."""
        self.files += file.files
        self.bytes += file.bytes
        self.lines += file.lines
        self.empty_files += file.empty_files
        self.bad_bytes += file.bad_bytes
        self.bad_lines += file.bad_lines
        self.bad_places += file.bad_places[: max(0, PLACES - len(self.bad_places))]


class ByteProgress:
    """Bytes read from disk, reported every 256 KiB and at the end of each file; the total is None if one is a pipe.

    Examples
    --------
    >>> ByteProgress([STDIN], print).end(STDIN, 0)
    0 None
    """

    def __init__(self, files: Sequence[Path], on_progress: Done | None) -> None:
        self.on_progress = on_progress or (lambda *_: None)
        self.sizes = {file: _size(file) for file in files}
        self.total = None if None in self.sizes.values() else sum(self.sizes[file] or 0 for file in files)
        self.done = self.reported = 0

    def add(self, count: int) -> None:
        """Count bytes that were read just now."""
        self.done += count
        if self.done - self.reported >= CHUNK and (self.total is None or self.done < self.total):
            self.reported = self.done
            self.on_progress(self.done, self.total)

    def end(self, file: Path, begun: int) -> None:
        """Count a file as read: columns of a table that were not needed too, a footer that was read twice once."""
        self.done = self.done if (size := self.sizes[file]) is None else begun + size
        self.reported = self.done
        self.on_progress(self.done, self.total)


def _size(file: Path) -> int | None:
    if file == STDIN or not file.exists():
        return None if file == STDIN else 0
    info = file.stat()
    return info.st_size if stat.S_ISREG(info.st_mode) else None


@dataclass
class _File:
    """The file being read, and the policy for its bad text."""

    path: Path
    errors: Errors
    report: ReadReport
    progress: ByteProgress
    bad_bytes: int = 0

    def refuse(self, what: str, hint: str, line: int | None = None) -> InputError:
        name = "standard input" if self.path == STDIN else f"`{self.path}`"
        return InputError(f"{name}{'' if line is None else f', line {line}'} {what}", hint=hint)

    def keep(self, text: str | None, line: int) -> list[str]:
        """Return the text where it is good, and what the policy leaves of it where not."""
        if text is not None and not _SURROGATE.search(text):
            return [text]
        self.bad_bytes += (count := len(_SURROGATE.findall(text or "?")) or 1)
        self.report.bad_bytes += count
        self.report.bad_lines += 1
        if len(self.report.bad_places) < PLACES:
            self.report.bad_places.append(f"{self.path}:{line}")
        if self.errors == "error":
            what = "has no text" if text is None else f"holds {count} bytes that are not UTF-8"
            raise self.refuse(what, "errors='skip' leaves such lines out and counts them", line)
        kept = {"skip": [], "empty": [""], "replace": [_SURROGATE.sub("\ufffd", text)] if text is not None else []}
        return kept[self.errors]

    def text_of(self, record: Any, field: str | None, line: int, *, known: bool) -> tuple[bool, list[str]]:
        """Return what the policy leaves of a record, and whether the field is known to hold text."""
        text = picked(record, field, f"`{self.path}`, line {line}", known=known)
        return known or text is not None, self.keep(text, line)

    def shell(self, command: str) -> str:
        """Return the command line that gives this file to `command`, unpacked."""
        cat, path = _CAT.get(self.path.suffix.lower()), shlex.quote(str(self.path))
        return f"{f'{cat} {path} | {command}' if cat else f'{command} {path}'} > {path}.utf8.txt"

    def unpack(self, target: str) -> str:
        """Return the command line that unpacks this file."""
        return f"{_CAT.get(self.path.suffix.lower(), 'cat')} {shlex.quote(str(self.path))} > {target}"

    def line(self, number: int) -> str:
        """Return the command line that shows a line of it."""
        return f"sed -n {number}p {shlex.quote(str(self.path))}"


def records(
    path: Path, field: str | None, errors: Errors, report: ReadReport, progress: ByteProgress
) -> Iterator[Block]:
    """Yield the texts of one file in blocks, none of them empty."""
    file = _File(path, errors, report, progress)
    begun, empty = progress.done, True
    report.files += 1
    suffix = (Path(path.stem) if path.suffix.lower() in PACKED else path).suffix.lower()
    if path == STDIN and field is not None:
        suffix = ".jsonl"
    parse = _PARSERS.get(suffix, _text)
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb", CHUNK) as raw:
            for block in parse(file, _lines(file, raw), field):
                if block.data:
                    empty = False
                    yield block
    except damage() as error:
        raise file.refuse(f"is damaged or cut off: {error}", file.unpack("/dev/null")) from error
    except OSError as error:
        raise file.refuse(f"cannot be read: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}") from error
    progress.end(path, begun)
    report.bytes += progress.done - begun
    if empty and not file.bad_bytes:
        report.empty_files.append(str(path))


def block_of(
    values: Sequence[bytes | None],
    kind: Literal["text", "jsonl", "column"],
    field: str | None,
    report: ReadReport,
    name: str,
) -> Block:
    """Parse records that others have read, by the rules for those of a file; bad ones are left out."""
    file = _File(Path(name), "skip", report, ByteProgress([], None))
    if kind == "column":
        return _column(file, 1, values)
    lines = Block(b"".join([(value or b"") + b"\n" for value in values]).replace(b"\r\n", b"\n"))
    return next((_jsonl if kind == "jsonl" else _text)(file, [lines], field))


def is_plain(path: Path) -> bool:
    """Whether, by its name, every line of a file is a text: neither packed nor records."""
    return path != STDIN and path.suffix.lower() not in (*PACKED, *_PARSERS)


def _text(file: _File, blocks: Iterable[Block], _field: str | None) -> Iterator[Block]:
    """Yield the lines that are UTF-8, and what the policy leaves of the others."""
    for lines in blocks:
        try:
            lines.data.decode()
        except UnicodeDecodeError:
            each = enumerate(_decoded(lines)[0][:-1].split("\n"), lines.first)
            yield Block.of([part for at, line in each for part in file.keep(line, at)], lines.first)
        else:
            yield lines


def _jsonl(file: _File, blocks: Iterable[Block], field: str | None) -> Iterator[Block]:
    decode, wanted, known = json.JSONDecoder().raw_decode, field or "text", False
    path = wanted.split(".")
    nothing: tuple[Any, int] = (None, -1)
    for lines in blocks:
        texts: list[str] = []
        text, sound = _decoded(lines)
        for at, line in enumerate(text[:-1].split("\n"), lines.first):
            try:
                # Without a backslash there is nothing to unescape, trim or suspect; all else goes the long way.
                record, end = decode(line) if sound and "\\" not in line else nothing
                if end == len(line):
                    value = record[wanted] if len(path) == 1 or wanted in record else reduce(getitem, path, record)
                    if type(value) is str:
                        texts.append(value)
                        continue
            except (ValueError, TypeError, KeyError, RecursionError):
                pass
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise file.refuse(f"is not JSON: {error}", file.line(at), at) from error
                known, kept = file.text_of(record, field, at, known=known or bool(texts))
                texts += kept
        known = known or bool(texts)
        yield Block.of(texts, lines.first)


def pick(record: Any, field: str | None, place: str) -> str | None:
    """Return the text of a record, without a final newline; None where it is null."""
    wanted = "text" if field is None else field
    if not isinstance(record, Mapping):
        raise InputError(f'{place} is a `{type(record).__name__}`; expected a record with the field "{wanted}"')
    value = record.get(wanted)
    if isinstance(value, str) or (value is None and wanted in record):
        return _trimmed(value)
    outer, _, inner = wanted.partition(".")
    if wanted not in record and inner and isinstance(record.get(outer), Mapping):
        return pick(record[outer], inner, f'{place}, in "{outer}",')
    if outer.endswith("[]") and isinstance(items := record.get(outer[:-2]), list):
        return _joined(items, inner, f'{place}, in "{outer}",')
    hint = next((f"--field {shlex.quote(name)}" for name in _texts_in(record)), "")
    if wanted not in record:
        keys = ", ".join(f'"{key}"' for key in record)
        raise InputError(f'{place} has no field "{wanted}"; it has: {keys}', hint=hint)
    raise InputError(f'{place}: the field "{wanted}" is a `{type(value).__name__}`; expected text', hint=hint)


def _joined(items: list[Any], field: str, place: str) -> str | None:
    """Return the texts of the records, or strings, of a list in lines; those without text are left out, unless all are."""
    records = items if field else [{"": item} for item in items]
    texts = [picked(one, field or "", place, known=True) for one in records if isinstance(one, Mapping)]
    found = [text for text in texts if text is not None]
    if items and not found:
        pick(records[0], field or "", place)  # raises, unless it is null
    return "\n".join(found) if found else None


def picked(record: Any, field: str | None, place: str, *, known: bool) -> str | None:
    """As `pick`, None also where the field is missing or holds no text, if it is `known` to hold text in a record before."""
    try:
        return pick(record, field, place)
    except InputError:
        if known and isinstance(record, Mapping):
            return None
        raise


def _texts_in(record: Mapping[Any, Any], depth: int = 3) -> Iterator[str]:
    """Names of fields that hold text, those of inner records last."""
    yield from (str(key) for key, value in record.items() if isinstance(value, str))
    for key, value in record.items():
        if isinstance(value, Mapping) and depth > 1:
            yield from (f"{key}.{name}" for name in _texts_in(value, depth - 1))
        if isinstance(value, list) and value and isinstance(value[0], Mapping) and depth > 1:
            names = [name for name in _texts_in(value[0], 1) if name not in _ROLES]
            yield from (f"{key}[].{name}" for name in names)


_ROLES = ("role", "from")
"""Fields of a turn of a chat that say who speaks."""


def _trimmed(text: str | None) -> str | None:
    return None if text is None else text.replace("\r\n", "\n").removesuffix("\n")


def _csv(file: _File, blocks: Iterable[Block], field: str | None) -> Iterator[Block]:
    # The library's limit of 128 KiB for a field is one for the whole process; a document is often longer.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE))
    rows = csv.reader((f"{line}\n" for _, line in _numbered(blocks)), strict=True)
    try:
        yield from _table(file, ((rows.line_num, row) for row in rows), field)
    except csv.Error as error:
        raise file.refuse(f"is not CSV: {error}", file.line(rows.line_num), rows.line_num) from error


def _tsv(file: _File, blocks: Iterable[Block], field: str | None) -> Iterator[Block]:
    # TSV has no quotes by its registration, and NSMC, the best known Korean one, is full of unbalanced ones.
    yield from _table(file, ((at, line.split("\t")) for at, line in _numbered(blocks)), field)


def _numbered(blocks: Iterable[Block]) -> Iterator[tuple[int, str]]:
    for lines in blocks:
        yield from enumerate(_decoded(lines)[0][:-1].split("\n"), lines.first)


def _table(file: _File, rows: Iterable[tuple[int, list[str]]], field: str | None) -> Iterator[Block]:
    header: list[str] = []
    texts: list[str] = []
    for line, row in rows:
        if not header:
            header = row
            pick(dict.fromkeys(header, ""), field, f"`{file.path}`, the header,")
        elif len(row) == len(header):
            texts += file.keep(pick(dict(zip(header, row, strict=True)), field, ""), line)
        elif row not in ([], [""]):
            what = f"has {len(row)} columns; the header has {len(header)}"
            raise file.refuse(what, file.line(line), line)
        if len(texts) >= _BATCH:
            yield Block.of(texts)
            texts = []
    yield Block.of(texts)


def _parquet(file: _File, _blocks: Iterable[Block], field: str | None) -> Iterator[Block]:
    import polars as pl

    wanted = field or "text"
    try:
        table = pl.scan_parquet(file.path, glob=False)
        types = table.collect_schema()
        text = (pl.String, pl.Binary, pl.Categorical)
        column, kind = pl.col(wanted), cast("Any", types.get(wanted))
        if kind is None:  # `meta.text` is a field of the column `meta`
            outer, *inner = wanted.replace("[]", ".[]").split(".")
            column, kind = _inside(pl.col(outer), types.get(outer), inner)
        if kind not in text:
            shown = ", ".join(f'"{name}" ({kind})' for name, kind in types.items())
            hint = next((f"--field {shlex.quote(name)}" for name, kind in types.items() if kind in text), "")
            raise file.refuse(f'has no column of text "{wanted}"; it has: {shown}', hint)
        share = (file.progress.sizes[file.path] or 0) / (table.select(pl.len()).collect().item() or 1)
        column = column if kind == pl.Binary else column.cast(pl.String).cast(pl.Binary)
        line = 1
        for batch in table.select(column).collect_batches(chunk_size=_BATCH, maintain_order=True):
            values = batch.to_series().to_list()
            yield _column(file, line, values)
            line += len(values)
            file.progress.add(int(share * len(values)))
    except pl.exceptions.PolarsError as error:
        raise file.refuse(f"is damaged or no Parquet: {error}", f"ls -l {shlex.quote(str(file.path))}") from error


def _inside(column: pl.Expr, kind: Any, names: Sequence[str]) -> tuple[pl.Expr, Any]:
    """Return a field of a column and its type, None if there is none; the texts of a list, `[]`, are joined to lines."""
    import polars as pl

    if not names:
        return column, kind
    name, *inner = names
    if name == "[]" and isinstance(kind, pl.List):
        field, kind = _inside(pl.element(), kind.inner, inner)
        return column.list.eval(field.cast(pl.String)).list.join("\n"), kind
    fields = {field.name: field.dtype for field in kind.fields} if isinstance(kind, pl.Struct) else {}
    return _inside(column.struct.field(name), fields.get(name), inner) if name in fields else (column, None)


def _column(file: _File, first: int, values: Iterable[bytes | None]) -> Block:
    decoded = [None if value is None else value.decode("utf-8", "surrogateescape") for value in values]
    return Block.of([kept for at, text in enumerate(decoded, first) for kept in file.keep(_trimmed(text), at)], first)


_PARSERS: dict[str, Callable[[_File, Iterable[Block], str | None], Iterator[Block]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}


def _lines(file: _File, raw: IO[bytes]) -> Iterator[Block]:
    """Yield the lines of a file as blocks, with Unix ends; they may hold bytes that are not UTF-8."""
    stream, progress = unpack(raw, file.path.suffix.lower()), file.progress
    rest: list[bytes] = []  # of a line whose end is in a later chunk
    begun, start = progress.done, raw.tell() if raw.seekable() else None
    number, size, first = 1, 0, True
    for chunk in chain(iter(lambda: stream.read(CHUNK), b""), [None]):
        cut = 0
        if chunk is not None:
            progress.add(len(chunk) if start is None else begun + raw.tell() - start - progress.done)
            if first:
                _sniff(file, chunk)
            data = chunk.removeprefix(codecs.BOM_UTF8) if first else chunk
            first, cut = False, data.rfind(b"\n") + 1
            rest.append(data[:cut] if cut else data)
        if sum(map(len, rest)) > _MAX_LINE:
            raise file.refuse(
                f"has a line of more than {_MAX_LINE >> 20} MiB", f"fold -s {shlex.quote(str(file.path))} > folded.txt"
            )
        if cut or (chunk is None and any(rest)):
            whole = b"".join(rest)
            rest = [data[cut:]] if cut else []
            size += len(whole)
            if b"\r" in whole:
                whole = whole.replace(b"\r\n", b"\n").removesuffix(b"\r")
            lines = Block(whole if whole.endswith(b"\n") else whole + b"\n", first=number)
            yield lines
            number += lines.n_lines
    if file.bad_bytes > 0.3 * size:
        raise file.refuse(f"is not text: {file.bad_bytes} of its {size} bytes are not UTF-8", file.shell(_ICONV))


def _decoded(lines: Block) -> tuple[str, bool]:
    """Return the text, and whether all of it is UTF-8; other bytes become surrogates."""
    try:
        return lines.data.decode(), True
    except UnicodeDecodeError:
        return lines.data.decode("utf-8", "surrogateescape"), False


def _sniff(file: _File, head: bytes) -> None:
    """Refuse a file whose first bytes are no UTF-8 text, at once and not after an hour."""
    if head.startswith(LFS_POINTER):
        raise file.refuse("is a Git LFS pointer, not the file", FETCH_LFS)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise file.refuse("is UTF-16; expected UTF-8", file.shell("iconv -f utf-16 -t utf-8"))
    if b"\0" in head[:8192]:
        raise file.refuse("is binary; expected text in UTF-8", f"file {shlex.quote(str(file.path))}")
    bad = len(_SURROGATE.findall(head.decode("utf-8", "surrogateescape")))
    foreign = len(head.translate(None, bytes(range(128))))
    # Two bytes a syllable: half of all bytes beyond ASCII being Hangul in CP949 is no accident, where the rest is text, too.
    # Of random bytes a third of the pairs is in no table of CP949.
    korean = head.decode("cp949", "replace")
    broken = korean.count("\ufffd") + len(_CONTROL.findall(korean))
    if 2 * bad > foreign and 4 * count_syllables(korean) > foreign > 20 * (broken - 1):
        raise file.refuse("looks like EUC-KR or CP949; expected UTF-8", file.shell(_ICONV))
    if bad > 0.3 * len(head):
        raise file.refuse(
            f"is binary: {bad} of its first {len(head)} bytes are not UTF-8", f"file {shlex.quote(str(file.path))}"
        )
