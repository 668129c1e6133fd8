r"""Reading text: files, folders, globs, standard input and Python iterables become blocks.

One block of about 256 KiB is in memory at a time, whatever the size of the file. A line ends at ``\n`` and nowhere else (U+2028,
``\x0b`` and ``\x85`` are characters of a line), so line numbers are those of ``wc`` and ``sed``. Text that is not UTF-8 is never
repaired in silence: a bad line is left out and counted, with its place, in the `ReadReport`; a file that is mostly bad is refused.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import shlex
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from koktok.errors import InputError, UsageError, did_you_mean
from koktok.files import path_of
from koktok.progress import Done
from koktok.text.blocks import Block
from koktok.text.prefetch import read_files
from koktok.text.records import EXTENSIONS, PLACES, STDIN, ByteProgress, Errors, ReadReport, picked

log = logging.getLogger(__name__)

_ITEMS = 256  # of a Python object, in a block

# Read as plain text, these would teach the tokenizer brackets and tags.
_MARKUP = {".json": "jq -c '.[]' {0} > {0}l", ".html": "pandoc -t plain --wrap=none {0} -o {0}.txt"}


MOST_WEIGHT = 1e6
"""Largest weight of a source: counts of a million million words times it still fit 64 bits."""


@dataclass(frozen=True)
class Source:
    """Files that are read, named, weighed and signed together."""

    name: str
    paths: tuple[Path, ...]
    weight: float = 1.0
    field: str | None = None
    skipped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.weight <= MOST_WEIGHT:
            raise UsageError(
                f"the source `{self.name}` has the weight {self.weight}; expected a number above 0, at most {MOST_WEIGHT:,.0f}"
            )

    @classmethod
    def of(
        cls, *paths: str | os.PathLike[str], name: str | None = None, weight: float = 1.0, field: str | None = None
    ) -> Source:
        """Return the source of the files that these paths name, each once, in a fixed order.

        A file is plain text if its extension is unknown; a folder means every file below it with a known extension, sorted,
        without hidden ones; a glob its matches; ``-`` standard input.
        """
        wrong = [path for path in paths if not isinstance(path, str | os.PathLike) or not str(path)]
        if wrong:
            raise InputError(f"expected a path, got {wrong[0]!r}", hint="Source.of('text.txt', 'more.jsonl')")
        skipped: list[str] = []
        files = dict.fromkeys(file for path in paths for file in _files_at(os.fspath(path), skipped))
        return cls(name or name_of(map(str, paths)), tuple(files), weight, field, tuple(skipped))


def name_of(paths: Iterable[str]) -> str:
    """Return the name of a source: the stems of its paths."""
    return "+".join(dict.fromkeys("stdin" if path == "-" else Path(path).name.split(".")[0] for path in paths))


def _files_at(asked: str, skipped: list[str]) -> list[Path]:
    if asked == "-":
        return [STDIN]
    if asked.startswith("corpus:"):
        raise InputError(
            f"expected a file or a folder, got the corpus `{asked}`", hint="koktok.corpora.paths.as_source(...)"
        )
    try:
        path = path_of(asked, "a file or a folder").expanduser()
    except RuntimeError as error:  # `~nobody/text`
        raise InputError(f"there is no file or folder `{asked}`: {error}") from None
    if path.is_dir():
        return _folder(path, skipped)
    if path.exists():
        return [_no_markup(path)]
    if glob.has_magic(asked):
        # `Path.glob` takes no absolute pattern. An empty file is no error here: Spark leaves many.
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=lambda match: match.parts)  # noqa: PTH207
        if not (files := [_no_markup(match) for match in matches if _is_there(match, skipped) and match.is_file()]):
            raise InputError(f"no file matches `{asked}`", hint=f"ls {shlex.quote(str(path.parent))}")
        return files
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise InputError(
        f"there is no file or folder `{asked}`",
        hint=did_you_mean(path.name, siblings, str(path.parent / "{}")) or f"ls {shlex.quote(str(path.parent))}",
    )


def _no_markup(path: Path) -> Path:
    if way := _MARKUP.get(path.suffix.lower()):
        raise InputError(
            f"`{path}` is {path.suffix}; expected text or JSON lines", hint=way.format(shlex.quote(str(path)))
        )
    return path


def _folder(folder: Path, skipped: list[str]) -> list[Path]:
    files = []
    refused: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        known = [name for name in names if not name.startswith(".") and name.lower().endswith(EXTENSIONS)]
        files += [path for name in known if _is_there(path := Path(root, name), skipped)]
    skipped += [f"`{error.filename}`: {error.strerror}" for error in refused]
    if not files:
        why = f"; not read: {skipped[0]}" if skipped else ""
        raise InputError(
            f"the folder `{folder}` holds no file that koktok reads ({' '.join(EXTENSIONS)}){why}",
            hint=f"ls {shlex.quote(str(folder))}",
        )
    return sorted(files, key=lambda file: file.relative_to(folder).parts)


def _is_there(path: Path, skipped: list[str]) -> bool:
    """Whether a path exists; the target of a link may be missing."""
    try:
        path.stat()
    except OSError as error:
        skipped.append(f"`{path}`: {error.strerror}")
        return False
    return True


def read(
    text: Any,
    *,
    errors: Errors = "skip",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
    may_be_empty: bool = False,
    field: str | None = None,
    name: str = "lines",
    threads: int | None = None,
) -> Generator[Block, None, None]:
    r"""Return the documents of sources, of a path, or of an iterable of strings or records, in blocks.

    What is read, its digest and its bad lines go into `report`. With `threads`, files are read ahead.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = path.write_text('{"text": "하나\\n둘"}\n', encoding="utf-8")
    >>> [(block.lines(), block.documents()) for block in read(Source.of(path))]
    [(['하나', '둘'], ['하나\n둘'])]
    >>> [block.documents() for block in read([{"text": "하나"}, "둘"])]
    [['하나', '둘']]
    """
    if isinstance(text, os.PathLike):
        text = Source.of(text, field=field, name=name)
    if isinstance(text, Source):
        text = [text]
    report = report or ReadReport()
    if isinstance(text, list | tuple) and text and all(isinstance(source, Source) for source in text):
        return _read_sources(text, errors, report, on_progress, threads, may_be_empty=may_be_empty)
    if isinstance(text, str | bytes):
        raise InputError(
            f"expected lines, got one `{type(text).__name__}`, whose characters would be the lines",
            hint="[text] for one text, pathlib.Path(name) for a file",
        )
    if isinstance(text, Mapping):
        keys = ", ".join(f'"{key}"' for key in text)
        raise InputError(f"expected lines, got a mapping with the keys {keys}", hint="mapping[key]")
    if hasattr(text, "columns"):
        names = ", ".join(f'"{name}"' for name in getattr(text, "column_names", text.columns))
        raise InputError(
            f"expected lines, got a {type(text).__name__} with the columns {names}",
            hint=f"frame[{(field or 'text')!r}]",
        )
    if not isinstance(text, Iterable) or getattr(text, "ndim", 1) == 0:
        raise InputError(f"expected lines, got a `{type(text).__name__}`", hint='["나는 학생이다."]')
    return _read_items(text, field, name, report)


def _read_sources(
    sources: Sequence[Source],
    errors: Errors,
    report: ReadReport,
    on_progress: Done | None,
    threads: int | None,
    *,
    may_be_empty: bool,
) -> Generator[Block, None, None]:
    names = [source.name for source in sources]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"two sources are named `{twice[0]}`; every digest needs its own name", hint="Source.of(path, name=...)"
        )
    progress = ByteProgress([path for source in sources for path in source.paths], on_progress)
    begun = report.lines
    for source in sources:
        digest = hashlib.sha256()
        report.skipped += source.skipped
        for what in source.skipped:
            log.warning("not read: %s", what)
        lines, bad = report.lines, report.bad_lines
        with closing(read_files(source.paths, source.field, errors, report, progress, threads=threads)) as blocks:
            for block in blocks:
                digest.update(block.data)
                report.lines += block.n_lines
                yield block
        broken = report.bad_lines - bad
        if broken:
            log.warning(
                "%d unreadable lines in `%s`, the first at %s", broken, source.name, ", ".join(report.bad_places[:1])
            )
        nothing = report.lines == begun and source is sources[-1] and not may_be_empty
        if report.lines == lines and (broken or nothing):
            paths = ", ".join(f"`{path}`" for path in source.paths[:3])
            state = f"has no line of valid UTF-8 ({broken:,} invalid lines)" if broken else "is empty"
            hint = "" if source.paths[0] == STDIN else f"head {shlex.quote(str(source.paths[0]))}"
            raise InputError(f"the source `{source.name}` ({paths}) {state}", hint=hint)
        report.digests[source.name] = digest.hexdigest()


def _read_items(items: Iterable[Any], field: str | None, name: str, report: ReadReport) -> Generator[Block, None, None]:
    digest = hashlib.sha256()
    each = iter(items)
    number, known = 1, False
    while some := list(islice(each, _ITEMS)):
        texts = []
        for at, item in enumerate(some, number):
            text = item if isinstance(item, str) else picked(item, field, f"item {at}", known=known)
            known = known or text is not None
            if text is not None:
                texts.append(text.replace("\r\n", "\n"))
                continue
            report.bad_lines += 1
            if len(report.bad_places) < PLACES:
                report.bad_places.append(f"item {at}")
        try:
            block = Block.of(texts, number)
        except UnicodeEncodeError as error:
            at = number + next(i for i, text in enumerate(texts) if not _encodes(text))
            raise InputError(f"item {at} holds a lone surrogate: {error.reason}", hint="text.encode('utf-8')") from None
        digest.update(block.data)
        report.lines += block.n_lines
        number += len(some)
        yield block
    report.digests[name] = digest.hexdigest()


def _encodes(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
