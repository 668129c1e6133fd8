"""Raw text to documents of sentences.

A model that reads more than a sentence needs documents: the sentence before another one is its context only within a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from koktok.progress import Done
from koktok.text.kinds import kind_at
from koktok.text.records import ReadReport
from koktok.text.sources import Source
from koktok.text.sources import read as read_blocks

By = Literal["auto", "lines", "blank", "field", "file"]
"""What a document is: a line, the lines between two empty lines, the text field of a record (of JSON, of a table), a file. `auto` is
a field where records have fields, and in plain text the lines between empty lines if the first megabyte has any, else a line."""

_SNIFFED = 1 << 20
"""Characters of a plain text that are searched for an empty line."""

Sentences = Literal["newline", "kiwi"]
"""What a sentence is: a line, or a part of it that Kiwi's splitter finds."""

_BATCH, _LETTERS = 4096, 1 << 21  # sentences of a batch, or letters if sentences are long


def read(
    sources: Sequence[Source],
    *,
    by: By = "auto",
    sentences: Sentences = "newline",
    between: str = " ",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the sentences of all documents in batches, each batch with the number of its source.

    An empty text ends each document. A sentence that follows another has `between` before it: a space, or nothing for a tokenizer that
    puts a space before every text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("하나.\n둘.\n\n셋.\n", encoding="utf-8")
    >>> list(read([Source.of(path)]))
    [(0, ['하나.', ' 둘.', '', '셋.', ''])]
    """
    split = _splitter(sentences)
    for number, source, path, batches in _files(sources, report or ReadReport(), on_progress):
        way, records = _way(by, source, path, batches)
        texts: list[str] = []
        before, begun, size = "", False, 0
        for lines in records:
            size += sum(map(len, lines))
            for record in lines:
                for line in record.split("\n") if "\n" in record else (record,):
                    if text := line.strip():
                        for sentence in split(text) if split else (text,):
                            texts.append(before + sentence)
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
    """Yield every file with the number of its source, its source, and its records in batches."""
    done = 0
    for number, source in enumerate(sources):
        for path in source.paths:
            one = ReadReport()
            base = done

            def report_read(read: int, total: int | None, base: int = base) -> None:
                if on_progress:
                    on_progress(base + read, None if total is None else base + total)

            alone = Source(source.name, (path,), field=source.field)
            blocks = read_blocks(alone, report=one, may_be_empty=True, on_progress=report_read)
            yield number, source, path, (block.documents() for block in blocks)
            done += one.bytes
            report.add(one)


def _way(by: By, source: Source, path: Path, records: Iterator[list[str]]) -> tuple[By, Iterator[list[str]]]:
    """Return what a document of a file is, and the same records."""
    if by != "auto":
        return by, records
    if kind_at(path, source.field) != "text":
        return "field", records
    seen: list[list[str]] = []
    size, begun, gap, separated = 0, False, False, False
    for batch in records:
        seen.append(batch)
        for line in batch:
            size += len(line)
            if line.strip():
                begun, separated = True, separated or gap
            else:
                gap = begun  # at the end of a file it separates nothing
        if separated or size >= _SNIFFED:
            break
    return "blank" if separated else "lines", chain(seen, records)


def _splitter(sentences: Sentences) -> Callable[[str], list[str]] | None:
    """Return the function that splits a line into sentences; None where a line is one."""
    if sentences == "newline":
        return None
    from koktok.segment.kiwi import KiwiSegmenter

    return KiwiSegmenter(threads=1).sentences
