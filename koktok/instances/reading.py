"""Raw text to documents of sentences: where a document ends, cleaning, and where a sentence ends.

This file adds: the document. For a model that reads more than a sentence, text is not a run of lines: what stands before a
sentence is its context, and what stands in another document is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from koktok.errors import UsageError
from koktok.text.sources import Progress, ReadReport, Source, read_documents

__all__ = ["By", "Sentences", "SplitDocument", "read", "splitter"]

By = Literal["auto", "blank", "file", "record"]
"""Where a document ends: at an empty line, with its file, with its record (a line of text, of JSON, of a table), or, for
`auto`, with a record where records have fields, else at an empty line."""

Sentences = Literal["newline", "kiwi"]
"""What a sentence is: a line, or what Kiwi's splitter finds in one."""

_RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_PACKED = (".gz", ".zst", ".xz", ".bz2")


class SplitDocument(NamedTuple):
    """Sentences that follow one another.

    Parameters
    ----------
    source : int
        Number of the source.
    sentences : list of str
        None of them empty.
    """

    source: int
    sentences: list[str]


def read(
    sources: Sequence[Source],
    *,
    by: By = "auto",
    sentences: Sentences = "newline",
    report: ReadReport | None = None,
    on_progress: Progress | None = None,
) -> Iterator[SplitDocument]:
    r"""Yield the documents of sources, in their order; empty ones are none.

    Parameters
    ----------
    sources : sequence of Source
    by : {"auto", "blank", "file", "record"}
    sentences : {"newline", "kiwi"}
    report : ReadReport, optional
        Filled in while reading.
    on_progress : callable, optional
        As in `koktok.text.sources.read_lines`.

    Raises
    ------
    UsageError
        For any other way to end a document or a sentence.
    InputError
        As `koktok.text.sources.read_documents`.

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
    split = splitter(sentences)
    report = report or ReadReport()
    done = 0
    for number, source in enumerate(sources):
        for path in source.paths:
            one = ReadReport()
            base = done

            def tell(read: int, total: int | None, base: int = base) -> None:
                if on_progress:
                    on_progress(base + read, None if total is None else base + total)

            records = read_documents(
                Source(source.name, (path,), field=source.field), report=one, may_be_empty=True, on_progress=tell
            )
            for lines in _documents(records, _way(by, source, path.name)):
                found = [part for line in lines for part in split(line)]
                if found:
                    yield SplitDocument(number, found)
            done += one.bytes
            report.files += 1
            report.bytes += one.bytes
            report.lines += one.lines
            report.bad_lines += one.bad_lines
            report.bad_places += one.bad_places


def _way(by: By, source: Source, name: str) -> By:
    if by != "auto":
        return by
    plain = name.lower()
    for suffix in _PACKED:
        plain = plain.removesuffix(suffix)
    return "record" if source.field or plain.endswith(_RECORDS) else "blank"


def _documents(records: Iterable[str], by: By) -> Iterator[list[str]]:
    if by == "record":
        yield from (record.split("\n") for record in records)
        return
    lines: list[str] = []
    for record in records:
        for line in record.split("\n"):
            if line.strip() or by == "file":
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def splitter(sentences: Sentences) -> Callable[[str], list[str]]:
    """A line to its sentences, stripped, none of them empty.

    Examples
    --------
    >>> splitter("newline")(" 학교에 갔다. 책을 읽었다. ")
    ['학교에 갔다. 책을 읽었다.']
    """
    if sentences == "newline":
        return lambda line: [text] if (text := line.strip()) else []
    from koktok.segment.kiwi import KiwiSegmenter

    kiwi = KiwiSegmenter(threads=1)
    return lambda line: kiwi.sentences(line) if line.strip() else []
