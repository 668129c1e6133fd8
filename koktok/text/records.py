"""One file's records: unpacked, decoded, parsed, in batches that know their line numbers.

What `koktok.text.sources` adds is which files there are; what a file may be is here. Lines are cut as bytes, decoded a block
at a time, and only a block that is not UTF-8 is looked at line by line.

`Prefetch` reads files for a count: one thread a file, as many files at once as there are threads, so that many .gz files are
unpacked on all cores and a single one is unpacked while its text is counted. What waits is bounded; order, digests,
messages and what the report says are those of one file read behind the other.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import shlex
import stat
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from queue import Full, Queue
from threading import Event
from typing import IO, Any, Literal, cast

from koktok.errors import InputError
from koktok.hangul import count_syllables
from koktok.progress import Done
from koktok.text.unpack import CHUNK, DAMAGE, PACKED, unpacked

Errors = Literal["skip", "empty", "replace", "error"]
Batch = list[str] | bytes
r"""Documents as strings; or, where each is one line of UTF-8, as they lie in the file, each ended by ``\n``."""

STDIN = Path("-")
_TEXT = (".txt", ".md", ".jsonl", ".ndjson", ".csv", ".tsv")
_CAT = {".gz": "zcat", ".zst": "zstdcat", ".xz": "xzcat", ".bz2": "bzcat"}
EXTENSIONS = (*_TEXT, ".parquet", *(text + packed for text in _TEXT for packed in PACKED))
_MAX_LINE = 1 << 26  # A longer "line" is a file without line breaks, and would have to be held whole.
_BATCH = 1000
PLACES = 20  # bad ones that a report keeps
WAITING = 32
"""Batches of a file that wait to be counted; a batch is 256 KiB of text or 1000 rows of a table."""

_POLL_INTERVAL = 0.2  # seconds between two looks of a waiting thread at whether it is still needed
_ICONV = "iconv -f cp949 -t utf-8"
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass
class ReadReport:
    """What was read: pass one to a reading function and look at it when the lines have run out.

    Examples
    --------
    >>> ReadReport().bad_lines
    0
    """

    files: int = 0
    bytes: int = 0
    lines: int = 0
    empty_files: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    bad_bytes: int = 0
    bad_lines: int = 0
    bad_places: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


class ByteProgress:
    """Bytes read from disk, reported every 256 KiB and at each file's end; the total is None where a pipe is among the files.

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
        """Settle a file: columns of a table that were not read count as read, a footer read twice counts once."""
        self.done = self.done if (size := self.sizes[file]) is None else begun + size
        self.reported = self.done
        self.on_progress(self.done, self.total)


def _size(file: Path) -> int | None:
    if file == STDIN or not file.exists():
        return None if file == STDIN else 0
    info = file.stat()
    return info.st_size if stat.S_ISREG(info.st_mode) else None


class _CountedStream(io.RawIOBase):
    """A binary stream that counts what is read from it."""

    def __init__(self, raw: IO[bytes], progress: ByteProgress) -> None:
        self.raw, self.progress = raw, progress

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.raw.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self.raw.seek(offset, whence)

    def tell(self) -> int:
        return self.raw.tell()

    def readinto(self, buffer: Any, /) -> int:
        data = self.raw.read(len(buffer))
        buffer[: len(data)] = data
        self.progress.add(len(data))
        return len(data)


@dataclass
class _File:
    """The file being read, and what becomes of its bad text."""

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
            what = "has null for its text" if text is None else f"holds {count} bytes that are not UTF-8"
            raise self.refuse(what, "errors='skip' leaves such lines out and counts them", line)
        kept = {"skip": [], "empty": [""], "replace": [_SURROGATE.sub("\ufffd", text)] if text is not None else []}
        return kept[self.errors]

    def shell(self, command: str) -> str:
        """Return the command line that gives this file to `command`, unpacked."""
        cat, path = _CAT.get(self.path.suffix.lower()), shlex.quote(str(self.path))
        return f"{f'{cat} {path} | {command}' if cat else f'{command} {path}'} > {path}.utf8.txt"

    def line(self, number: int) -> str:
        """Return the command line that shows a line of it."""
        return f"sed -n {number}p {shlex.quote(str(self.path))}"


def records(
    path: Path, field: str | None, errors: Errors, report: ReadReport, progress: ByteProgress
) -> Iterator[Batch]:
    r"""Yield the texts of one file in batches; never an empty batch. Plain text comes as bytes: nobody needs its strings.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.tsv")
    >>> _ = path.write_text("id\ttext\n1\t나는 학생이다.\n", encoding="utf-8")
    >>> list(records(path, None, "skip", ReadReport(), ByteProgress([path], None)))
    [['나는 학생이다.']]
    """
    file = _File(path, errors, report, progress)
    begun, given = progress.done, False
    report.files += 1
    suffix = (Path(path.stem) if path.suffix.lower() in PACKED else path).suffix.lower()
    if path == STDIN and field is not None:
        suffix = ".jsonl"
    parse = _PARSERS.get(suffix, _plain)
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb", buffering=0) as raw:
            for texts in parse(file, io.BufferedReader(_CountedStream(raw, progress), CHUNK), field):
                if texts:
                    given = True
                    yield texts
    except OSError as error:
        raise file.refuse(f"cannot be read: {error.strerror or error}", f"ls -l {shlex.quote(str(path))}") from error
    progress.end(path, begun)
    report.bytes += progress.done - begun
    if not given and not file.bad_bytes:
        report.empty_files.append(str(path))


def given_records(
    values: Sequence[bytes | None],
    kind: Literal["text", "jsonl", "column"],
    field: str | None,
    report: ReadReport,
    name: str,
) -> Batch:
    r"""The texts of records that others have read, by the rules for those of a file; bad ones are left out.

    Examples
    --------
    >>> report = ReadReport()
    >>> given_records([b"a\r", b"\xff", b"b"], "text", None, report, "lines"), report.bad_lines
    (['a', 'b'], 1)
    """
    file = _File(Path(name), "skip", report, ByteProgress([], None))
    if kind == "column":
        return _column_texts(file, 1, values)
    lines = _decoded(b"\n".join([*(value or b"" for value in values), b""]))
    return _json_texts(file, 1, *lines, field) if kind == "jsonl" else _plain_texts(file, 1, *lines, field)


def is_plain(path: Path) -> bool:
    """True where the name says that every line of the file is a text as it stands: neither packed nor records.

    Examples
    --------
    >>> is_plain(Path("a.txt")), is_plain(Path("a.txt.gz")), is_plain(Path("a.jsonl")), is_plain(STDIN)
    (True, False, False, False)
    """
    return path != STDIN and path.suffix.lower() not in (*PACKED, *_PARSERS)


def _plain(file: _File, raw: IO[bytes], field: str | None) -> Iterator[Batch]:
    return (_plain_texts(file, *lines, field) for lines in _texts(file, raw))


def _plain_texts(file: _File, number: int, text: str, sound: bool, _field: str | None) -> Batch:  # noqa: FBT001
    if sound:
        return text.encode()
    return [kept for at, line in enumerate(text[:-1].split("\n"), number) for kept in file.keep(line, at)]


def _jsonl(file: _File, raw: IO[bytes], field: str | None) -> Iterator[Batch]:
    return (_json_texts(file, *lines, field) for lines in _texts(file, raw))


def _json_texts(file: _File, number: int, block: str, sound: bool, field: str | None) -> Batch:  # noqa: FBT001
    decode, wanted = json.JSONDecoder().raw_decode, field or "text"
    path = wanted.split(".")
    nothing: tuple[Any, int] = (None, -1)
    texts: list[str] = []
    for at, line in enumerate(block[:-1].split("\n"), number):
        try:
            # Without a backslash there is nothing to unescape, trim or suspect; all else goes the long way.
            record, end = decode(line) if sound and "\\" not in line else nothing
            if end == len(line):
                text = record[wanted] if len(path) == 1 or wanted in record else reduce(getitem, path, record)
                if type(text) is str:
                    texts.append(text)
                    continue
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise file.refuse(f"is no JSON: {error}", file.line(at), at) from error
            texts += file.keep(pick(record, field, f"`{file.path}`, line {at}"), at)
    return texts


def pick(record: Any, field: str | None, place: str) -> str | None:
    r"""Return the text of a record, without a final newline; None where it is null.

    Examples
    --------
    >>> pick({"text": "하나\n"}, None, "item 1"), pick({"meta": {"text": "둘"}}, "meta.text", "item 2")
    ('하나', '둘')
    """
    wanted = field or "text"
    if not isinstance(record, Mapping):
        raise InputError(f'{place} is a `{type(record).__name__}`; a record with the field "{wanted}" was wanted')
    value = record.get(wanted)
    if isinstance(value, str) or (value is None and wanted in record):
        return _trimmed(value)
    outer, _, inner = wanted.partition(".")
    if wanted not in record and inner and isinstance(record.get(outer), Mapping):
        return pick(record[outer], inner, f'{place}, in "{outer}",')
    hint = next((f"--field {shlex.quote(name)}" for name in _texts_in(record)), "")
    if wanted not in record:
        keys = ", ".join(f'"{key}"' for key in record)
        raise InputError(f'{place} has no field "{wanted}"; it has: {keys}', hint=hint)
    raise InputError(f'{place}: the field "{wanted}" is a `{type(value).__name__}`; text was wanted', hint=hint)


def _texts_in(record: Mapping[Any, Any], depth: int = 3) -> Iterator[str]:
    """Names of fields that hold text, those of inner records behind."""
    yield from (str(key) for key, value in record.items() if isinstance(value, str))
    for key, value in record.items():
        if isinstance(value, Mapping) and depth > 1:
            yield from (f"{key}.{name}" for name in _texts_in(value, depth - 1))


def _trimmed(text: str | None) -> str | None:
    return None if text is None else text.replace("\r\n", "\n").removesuffix("\n")


def _csv(file: _File, raw: IO[bytes], field: str | None) -> Iterator[Batch]:
    # The library's limit of 128 KiB for a field is one for the whole process; a document is often longer.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_LINE))
    rows = csv.reader((f"{line}\n" for _, text, _ in _texts(file, raw) for line in text[:-1].split("\n")), strict=True)
    try:
        yield from _table(file, ((rows.line_num, row) for row in rows), field)
    except csv.Error as error:
        raise file.refuse(f"is no CSV: {error}", file.line(rows.line_num), rows.line_num) from error


def _tsv(file: _File, raw: IO[bytes], field: str | None) -> Iterator[Batch]:
    # By its registration TSV knows no quotes, and NSMC, the best known one in Korean, is full of loose ones.
    texts = ((number, text[:-1].split("\n")) for number, text, _ in _texts(file, raw))
    yield from _table(file, ((at, line.split("\t")) for n, lines in texts for at, line in enumerate(lines, n)), field)


def _table(file: _File, rows: Iterable[tuple[int, list[str]]], field: str | None) -> Iterator[Batch]:
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
            yield texts
            texts = []
    yield texts


def _parquet(file: _File, _raw: IO[bytes], field: str | None) -> Iterator[Batch]:
    import polars as pl

    wanted = field or "text"
    try:
        table = pl.scan_parquet(file.path, glob=False)
        types = table.collect_schema()
        text = (pl.String, pl.Binary, pl.Categorical)
        column, kind = pl.col(wanted), cast("Any", types.get(wanted))
        if kind is None:  # `meta.text` is a field of the column `meta`
            outer, *inner = wanted.split(".")
            column, kind = pl.col(outer), types.get(outer)
            for name in inner:
                fields = {field.name: field.dtype for field in kind.fields} if isinstance(kind, pl.Struct) else {}
                column, kind = column.struct.field(name), fields.get(name)
        if kind not in text:
            shown = ", ".join(f'"{name}" ({kind})' for name, kind in types.items())
            hint = next((f"--field {shlex.quote(name)}" for name, kind in types.items() if kind in text), "")
            raise file.refuse(f'has no column of text "{wanted}"; it has: {shown}', hint)
        share = (file.progress.sizes[file.path] or 0) / (table.select(pl.len()).collect().item() or 1)
        column = column if kind == pl.Binary else column.cast(pl.String).cast(pl.Binary)
        line = 1
        for batch in table.select(column).collect_batches(chunk_size=_BATCH, maintain_order=True):
            values = batch.to_series().to_list()
            yield _column_texts(file, line, values)
            line += len(values)
            file.progress.add(int(share * len(values)))
    except pl.exceptions.PolarsError as error:
        raise file.refuse(f"is damaged or no Parquet: {error}", f"ls -l {shlex.quote(str(file.path))}") from error


def _column_texts(file: _File, number: int, values: Iterable[bytes | None]) -> list[str]:
    decoded = [None if value is None else value.decode("utf-8", "surrogateescape") for value in values]
    return [kept for at, text in enumerate(decoded, number) for kept in file.keep(_trimmed(text), at)]


_PARSERS: dict[str, Callable[[_File, IO[bytes], str | None], Iterator[Batch]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
}


def _texts(file: _File, raw: IO[bytes]) -> Iterator[tuple[int, str, bool]]:
    """Yield lines, each ended by a newline, with the number of the first and whether all are UTF-8, surrogates if not."""
    number = 1
    size = 0
    for block in _blocks(file, _unpacked(file, raw)):
        size += len(block)
        text, sound = _decoded(block)
        yield number, text, sound
        number += text.count("\n")
    if file.bad_bytes > 0.3 * size:
        raise file.refuse(f"is no text: {file.bad_bytes} of its {size} bytes are not UTF-8", file.shell(_ICONV))


def _decoded(block: bytes) -> tuple[str, bool]:
    """Lines, each ended by a newline, and whether all are UTF-8; where not, with surrogates for the other bytes."""
    try:
        text, sound = block.decode("utf-8"), True
    except UnicodeDecodeError:
        text, sound = block.decode("utf-8", "surrogateescape"), False
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text if text.endswith("\n") else text + "\n", sound


def _blocks(file: _File, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Cut chunks anew so that each ends where a line does."""
    rest: list[bytes] = []
    held = 0
    for index, given in enumerate(chunks):
        chunk = given if index else given.removeprefix(codecs.BOM_UTF8)
        if not index:
            _sniff(file, given)
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, chunk[:cut]])
            rest, held = [], 0
        rest.append(chunk[cut:])
        held += len(chunk) - cut
        if held > _MAX_LINE:
            raise file.refuse(
                f"has a line of more than {_MAX_LINE >> 20} MiB", f"fold -s {shlex.quote(str(file.path))} > folded.txt"
            )
    if held:
        yield b"".join(rest)


def _sniff(file: _File, head: bytes) -> None:
    """Refuse what is no UTF-8 text by its first bytes: better at once than after an hour."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise file.refuse("is UTF-16; UTF-8 was wanted", file.shell("iconv -f utf-16 -t utf-8"))
    if b"\0" in head[:8192]:
        raise file.refuse("is binary; text in UTF-8 was wanted", f"file {shlex.quote(str(file.path))}")
    bad = len(_SURROGATE.findall(head.decode("utf-8", "surrogateescape")))
    foreign = len(head.translate(None, bytes(range(128))))
    # Two bytes a syllable: half of all bytes beyond ASCII being Hangul in CP949 is no accident, where the rest is text, too.
    # Of random bytes a third of the pairs is in no table of CP949.
    korean = head.decode("cp949", "replace")
    broken = korean.count("\ufffd") + len(_CONTROL.findall(korean))
    if 2 * bad > foreign and 4 * count_syllables(korean) > foreign > 20 * (broken - 1):
        raise file.refuse("looks like EUC-KR or CP949; UTF-8 was wanted", file.shell(_ICONV))
    if bad > 0.3 * len(head):
        raise file.refuse(
            f"is binary: {bad} of its first {len(head)} bytes are not UTF-8", f"file {shlex.quote(str(file.path))}"
        )


def _unpacked(file: _File, raw: IO[bytes]) -> Iterator[bytes]:
    packing = file.path.suffix.lower()
    try:
        yield from unpacked(raw, packing)
    except DAMAGE as error:
        raise file.refuse(
            f"is damaged or cut off: {error}", f"{_CAT[packing]} {shlex.quote(str(file.path))} > /dev/null"
        ) from error


@dataclass
class _PrefetchedFile:
    """A file in work: its report so far, and its batches with the bytes that were read by then; None is the end."""

    path: Path
    report: ReadReport = field(default_factory=ReadReport)
    batches: Queue[tuple[Batch, int] | None] = field(default_factory=lambda: Queue(WAITING))
    work: Future[None] | None = None


@dataclass(frozen=True)
class Prefetch:
    r"""Read the files of a source by threads, for `koktok.text.sources.read_blocks`.

    Examples
    --------
    >>> import tempfile
    >>> from koktok.text.sources import Source, read_blocks
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in "ab":
    ...     _ = (folder / f"{name}.txt").write_text(f"{name}\n", encoding="utf-8")
    >>> list(read_blocks(Source.of(folder), files=Prefetch(2)))
    [b'a\n', b'b\n']
    """

    threads: int | None = None

    def __call__(
        self, paths: Sequence[Path], field: str | None, errors: Errors, report: ReadReport, progress: ByteProgress
    ) -> Generator[Batch, None, None]:
        """All batches of all files in order; parameters and errors are those of `koktok.text.records.records`."""
        n = self.threads or os.cpu_count() or 1
        over = Event()

        def give(file: _PrefetchedFile, what: tuple[Batch, int] | None) -> None:
            while not over.is_set():
                with suppress(Full):
                    file.batches.put(what, timeout=_POLL_INTERVAL)
                    break

        def read(file: _PrefetchedFile) -> None:
            own = ByteProgress([file.path], None)
            try:
                for batch in records(file.path, field, errors, file.report, own):
                    give(file, (batch, own.done))
                    if over.is_set():
                        return
            finally:
                give(file, None)

        waiting = deque(paths)
        open_files: deque[_PrefetchedFile] = deque()
        with ThreadPoolExecutor(n, thread_name_prefix="koktok-read") as pool:
            try:
                while waiting or open_files:
                    # What is no regular file may keep a thread waiting for ever; it is read here, in its turn.
                    while waiting and len(open_files) < n and progress.sizes[waiting[0]] is not None:
                        file = _PrefetchedFile(waiting.popleft())
                        file.work = pool.submit(read, file)
                        open_files.append(file)
                    if open_files:
                        yield from _batches_of(open_files[0], report, progress)
                        open_files.popleft()
                    else:
                        yield from records(waiting.popleft(), field, errors, report, progress)
            finally:
                over.set()


def _batches_of(file: _PrefetchedFile, report: ReadReport, progress: ByteProgress) -> Generator[Batch, None, None]:
    """The batches of one file as they come; then its report, also where it ends in an error."""
    assert file.work is not None
    begun = progress.done
    try:
        while (given := file.batches.get()) is not None:
            batch, done = given
            progress.add(begun + done - progress.done)
            yield batch
        file.work.result()
        progress.end(file.path, begun)
    finally:
        read = file.report
        report.files += read.files
        report.bytes += read.bytes
        report.empty_files += read.empty_files
        report.bad_bytes += read.bad_bytes
        report.bad_lines += read.bad_lines
        report.bad_places += read.bad_places[: max(0, PLACES - len(report.bad_places))]
