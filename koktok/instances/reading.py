"""Raw text to documents of sentences: where a document ends, and where a sentence ends.

For a model that reads more than a sentence, text is not a run of lines: what stands before a
sentence is its context, and what stands in another document is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from koktok.errors import UsageError
from koktok.progress import Done
from koktok.text.records import ReadReport
from koktok.text.sources import Source, read_batches

By = Literal["auto", "lines", "blank", "field", "file"]
"""What a document is: a line, what stands between empty lines, the text field of a record (of JSON, of a table), a file; or, for
`auto`, a field where records have fields, and in plain text what stands between empty lines where there are any in the
first megabyte, else a line."""

_SNIFFED = 1 << 20
"""Characters of a plain text that are looked at for an empty line."""

Sentences = Literal["newline", "kiwi"]
"""What a sentence is: a line, or what Kiwi's splitter finds in one."""

_BATCH, _LETTERS = 4096, 1 << 21  # sentences that are handed on together, or letters where those are long
_RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_PACKED = (".gz", ".zst", ".xz", ".bz2")


class SplitDocument(NamedTuple):
    """Sentences that follow one another."""

    source: int
    sentences: list[str]


def read(
    sources: Sequence[Source],
    *,
    by: By = "auto",
    sentences: Sentences = "newline",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
) -> Iterator[SplitDocument]:
    r"""Yield the documents of sources, in their order; empty ones are none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("하나.\n둘.\n\n셋.\n", encoding="utf-8")
    >>> [document.sentences for document in read([Source.of(path)])]
    [['하나.', '둘.'], ['셋.']]
    """
    for value, kind, option in ((by, By, "documents"), (sentences, Sentences, "sentences")):
        if value not in get_args(kind):
            raise UsageError(f"`{value}` is no way to end {option}", hint=f"--{option} {' | '.join(get_args(kind))}")
    split = _splitter(sentences)
    for number, source, path, batches in _files(sources, report or ReadReport(), on_progress):
        way, records = _way(by, source, path.name, batches)
        for lines in _documents(chain.from_iterable(records), way):
            if found := split(lines):
                yield SplitDocument(number, found)


def running(
    sources: Sequence[Source],
    *,
    by: By = "auto",
    sentences: Sentences = "newline",
    between: str = " ",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
) -> Iterator[tuple[int, list[str]]]:
    r"""The same documents as they stand in the running text, in batches, each with the number of its source.

    A sentence that follows another has `between` before it (a space; nothing, for a tokenizer that puts a space before every text),
    and behind each document stands an empty text. The other parameters and errors are those of `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("하나.\n둘.\n\n셋.\n", encoding="utf-8")
    >>> list(running([Source.of(path)]))
    [(0, ['하나.', ' 둘.', '', '셋.', ''])]
    """
    if sentences != "newline":
        batch: list[str] = []
        last = size = 0
        for number, found in read(sources, by=by, sentences=sentences, report=report, on_progress=on_progress):
            if batch and (number != last or len(batch) >= _BATCH or size >= _LETTERS):
                yield last, batch
                batch, size = [], 0
            last = number
            batch.append(found[0])
            batch += [f"{between}{sentence}" for sentence in found[1:]]
            batch.append("")
            size += sum(map(len, found))
        if batch:
            yield last, batch
        return
    # What most texts are, a line a sentence, is read without an object for each document.
    for number, source, path, batches in _files(sources, report or ReadReport(), on_progress):
        way, records = _way(by, source, path.name, batches)
        texts: list[str] = []
        before, begun, size = "", False, 0
        for lines in records:
            size += sum(map(len, lines))
            for record in lines:
                for line in record.split("\n") if "\n" in record else (record,):
                    if text := line.strip():
                        texts.append(before + text)
                        before, begun = between, True
                    if begun and (way == "lines" or (way == "blank" and not text)):
                        texts.append("")
                        before, begun = "", False
                if way == "field" and begun:
                    texts.append("")
                    before, begun = "", False
            if len(texts) >= _BATCH or size >= _LETTERS:
                yield number, texts
                texts, size = [], 0
        if begun:
            texts.append("")
        if texts:
            yield number, texts


def _files(
    sources: Sequence[Source], report: ReadReport, on_progress: Done | None
) -> Iterator[tuple[int, Source, Path, Iterator[list[str]]]]:
    """Every file with the number of its source, its source, and its records in batches."""
    done = 0
    for number, source in enumerate(sources):
        for path in source.paths:
            one = ReadReport()
            base = done

            def tell(read: int, total: int | None, base: int = base) -> None:
                if on_progress:
                    on_progress(base + read, None if total is None else base + total)

            alone = Source(source.name, (path,), field=source.field)
            yield number, source, path, read_batches(alone, report=one, may_be_empty=True, on_progress=tell)
            done += one.bytes
            report.files += 1
            report.bytes += one.bytes
            report.lines += one.lines
            report.bad_lines += one.bad_lines
            report.bad_places += one.bad_places


def _way(by: By, source: Source, name: str, records: Iterator[list[str]]) -> tuple[By, Iterator[list[str]]]:
    """What ends a document of a file, and the same records again."""
    if by != "auto":
        return by, records
    plain = name.lower()
    for suffix in _PACKED:
        plain = plain.removesuffix(suffix)
    if source.field or plain.endswith(_RECORDS):
        return "field", records
    seen: list[list[str]] = []
    size, begun, gap, parted = 0, False, False, False
    for batch in records:
        seen.append(batch)
        for line in batch:
            size += len(line)
            if line.strip():
                begun, parted = True, parted or gap
            else:
                gap = begun  # at the end of a file it parts nothing
        if parted or size >= _SNIFFED:
            break
    return "blank" if parted else "lines", chain(seen, records)


def _documents(records: Iterable[str], by: By) -> Iterator[list[str]]:
    if by == "field":
        yield from (record.split("\n") for record in records)
        return
    lines: list[str] = []
    for record in records:
        for line in record.split("\n"):
            if by == "lines":
                yield [line]
            elif line.strip() or by == "file":
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def _splitter(sentences: Sentences) -> Callable[[list[str]], list[str]]:
    """Lines to sentences, stripped, none of them empty."""
    if sentences == "newline":
        return lambda lines: [text for line in lines if (text := line.strip())]
    from koktok.segment.kiwi import KiwiSegmenter

    kiwi = KiwiSegmenter(threads=1)
    return lambda lines: [text for line in lines if line.strip() for text in kiwi.sentences(line)]
