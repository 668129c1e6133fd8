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
from itertools import chain, islice
from operator import getitem
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from koktok.errors import InputError
from koktok.files import FETCH_LFS, LFS_POINTER
from koktok.progress import Done
from koktok.text.blocks import Block
from koktok.text.kinds import STDIN, TO_UTF8, FileKind, Place, best_field, kind_of
from koktok.text.unpack import CHUNK, damage, unpack

if TYPE_CHECKING:
    import polars as pl

Errors = Literal["skip", "empty", "replace", "error"]

_MAX_LINE = 1 << 26  # A longer "line" is a file without line breaks, and would have to be held whole.
_BATCH = 1000
PLACES = 20  # bad ones that a report keeps
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    ended: bool = False
    """Whether the last text file ends with a line break."""

    @property
    def left_out(self) -> str:
        """What was left out and where: lines that are not UTF-8, records without text; '' for nothing."""
        if not self.bad_lines:
            return ""
        more = ", …" if self.bad_lines > len(self.bad_places) else ""
        lines = f"{self.bad_lines:,} line{'s' * (self.bad_lines > 1)} without readable text"
        return f"{lines} left out: {', '.join(self.bad_places)}{more}"

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
class _File(Place):
    """The file being read, and the policy for its bad text."""

    errors: Errors
    report: ReadReport
    progress: ByteProgress
    bad_bytes: int = 0
    ended: bool = False

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


def records(
    path: Path, field: str | None, errors: Errors, report: ReadReport, progress: ByteProgress
) -> Iterator[Block]:
    """Yield the texts of one file in blocks, none of them empty."""
    file = _File(path, errors, report, progress)
    begun, empty = progress.done, True
    report.files += 1
    try:
        if path == STDIN and sys.stdin is None:  # `<&-`
            raise file.refuse("is closed; expected text", "koktok ... FILE, or < FILE")
        opened: Any = nullcontext(cast("Any", sys.stdin).buffer) if path == STDIN else path.open("rb", CHUNK)
        with opened as raw:
            if path != STDIN and raw.peek(len(LFS_POINTER)).startswith(LFS_POINTER):
                raise file.refuse("is a Git LFS pointer, not the file", FETCH_LFS)
            start = raw.tell() if raw.seekable() else None
            stream = unpack(raw, path.suffix.lower())
            head = stream.read(CHUNK)
            kind = kind_of(path, head, field, lines=errors == "empty")
            for block in _PARSERS[kind](file, _lines(file, raw, stream, head, start), field):
                if block.data:
                    empty = False
                    yield block
    except damage() as error:
        raise file.refuse(f"is damaged or cut off: {error}", f"{file.give('cat')} > /dev/null") from error
    except OSError as error:
        raise file.refuse(f"cannot be read: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}") from error
    report.ended = kind == "text" and file.ended
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
    """Return the text of a record; None where it is null."""
    wanted = "text" if field is None else field
    if not isinstance(record, Mapping):
        raise InputError(f'{place} is a `{type(record).__name__}`; expected a record with the field "{wanted}"')
    value = record.get(wanted)
    if isinstance(value, str | bytes) or (wanted in record and _is_hole(value)):
        return _plain(value)
    outer, _, inner = wanted.partition(".")
    if wanted not in record and inner and isinstance(record.get(outer), Mapping):
        return pick(record[outer], inner, f'{place}, in "{outer}",')
    if outer.endswith("[]") and isinstance(items := record.get(outer[:-2]), list):
        return _joined(items, inner, f'{place}, in "{outer}",')
    hint = f"--field {shlex.quote(name)}" if (name := best_field(record)) else ""
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


def text_in(item: Any, field: str | None, place: str, *, known: bool) -> str | None:
    """Return the text of an item of Python: a string, UTF-8, a hole, or a record, as `picked`."""
    return _plain(item) if isinstance(item, str | bytes) or _is_hole(item) else picked(item, field, place, known=known)


def _is_hole(value: Any) -> bool:
    """Whether a value says that there is none: None, NaN, and those of pandas."""
    return value is None or value != value if isinstance(value, float | None) else type(value).__name__ in _HOLES


_HOLES = ("NAType", "NaTType")


def _plain(value: Any) -> str | None:
    """Return a string, bytes as one, None for a hole; bytes that are not UTF-8 are surrogates."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def has_surrogates(text: str) -> bool:
    """Whether a text cannot be written as UTF-8."""
    return _SURROGATE.search(text) is not None


def picked(record: Any, field: str | None, place: str, *, known: bool) -> str | None:
    """As `pick`, None also where the field is missing or holds no text, if it is `known` to hold text in a record before."""
    try:
        return pick(record, field, place)
    except InputError:
        if known and isinstance(record, Mapping):
            return None
        raise


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


def _table(file: _File, rows: Iterator[tuple[int, list[str]]], field: str | None) -> Iterator[Block]:
    header: list[str] = []
    texts: list[str] = []
    for line, row in rows:
        if not header:
            header = row
            if (field or "text") not in header:  # the rows below say which column has text
                some = [text for _, text in islice(rows, 20) if len(text) == len(header)] or [header]
                columns = {name: "\n".join(texts) for name, *texts in zip(header, *some, strict=True)}
                pick(columns, field, f"`{file.path}`, the header,")
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
            some = table.head(20).collect().to_dicts()
            name = best_field({"": some}).removeprefix("[].")
            hint = f"--field {shlex.quote(name)}" if name else ""
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
    return Block.of([kept for at, text in enumerate(decoded, first) for kept in file.keep(text, at)], first)


_PARSERS: dict[FileKind, Callable[[_File, Iterable[Block], str | None], Iterator[Block]]] = {
    "text": _text,
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
}


def _lines(file: _File, raw: IO[bytes], stream: IO[bytes], head: bytes, start: int | None) -> Iterator[Block]:
    """Yield the lines of a file as blocks, with Unix ends; they may hold bytes that are not UTF-8."""
    progress = file.progress
    rest: list[bytes] = []  # of a line whose end is in a later chunk
    begun = progress.done
    number, size, first = 1, 0, True
    for chunk in chain([head] if head else [], iter(lambda: stream.read(CHUNK), b""), [None]):
        cut = 0
        if chunk is not None:
            progress.add(len(chunk) if start is None else begun + raw.tell() - start - progress.done)
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
            file.ended = whole.endswith(b"\n")
            lines = Block(whole if whole.endswith(b"\n") else whole + b"\n", first=number)
            yield lines
            number += lines.n_lines
    if file.bad_bytes > 0.3 * size:
        raise file.refuse(f"is not text: {file.bad_bytes} of its {size} bytes are not UTF-8", file.through(TO_UTF8))


def _decoded(lines: Block) -> tuple[str, bool]:
    """Return the text, and whether all of it is UTF-8; other bytes become surrogates."""
    try:
        return lines.data.decode(), True
    except UnicodeDecodeError:
        return lines.data.decode("utf-8", "surrogateescape"), False
