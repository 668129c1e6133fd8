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
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any

from koktok.errors import InputError, UsageError, did_you_mean
from koktok.files import own_names, path_of
from koktok.progress import Done
from koktok.text.blocks import Block
from koktok.text.kinds import EXTENSIONS, STDIN, is_count, is_read, kind_at, suffix_of
from koktok.text.prefetch import read_files
from koktok.text.records import PLACES, ByteProgress, Errors, ReadReport, has_surrogates, text_in

log = logging.getLogger(__name__)

_ITEMS = 256  # of a Python object, in a block


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

        A folder means every file below it with a known extension, or that holds JSON lines, sorted, without hidden ones and
        without what koktok wrote; a glob its matches; ``-`` standard input. What is left out is in `skipped`.
        """
        wrong = [path for path in paths if not isinstance(path, str | os.PathLike) or not str(path)]
        if wrong:
            raise InputError(f"expected a path, got {wrong[0]!r}", hint="Source.of('text.txt', 'more.jsonl')")
        skipped: list[str] = []
        files = dict.fromkeys(file for path in paths for file in _files_at(os.fspath(path), skipped))
        return cls(name or name_of(map(str, paths)), tuple(files), weight, field, tuple(skipped))


def name_of(paths: Iterable[str]) -> str:
    """Return the name of a source: the stems of its paths."""

    def one(path: str) -> str:
        named = Path(path) if Path(path).name.strip(".") else Path(path).resolve()  # `.`, `..`
        return named.name.split(".")[0] or named.name or "text"

    return "+".join(dict.fromkeys("stdin" if path == "-" else one(path) for path in paths))


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
        if _is_output(path):
            raise InputError(f"the output goes to `{path}`, which is to be read", hint="name another file behind >")
        return [path]
    if glob.has_magic(asked):
        # `Path.glob` takes no absolute pattern. An empty file is no error here: Spark leaves many.
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=lambda match: match.parts)  # noqa: PTH207
        own = {parent: own_names(parent) for parent in dict.fromkeys(match.parent for match in matches)}
        here = [match for match in matches if (names := own[match.parent]) is not None and match.name not in names]
        if ours := len(matches) - len(here):
            skipped.append(f"{ours:,} of the files `{asked}`, which koktok wrote")
        if not (files := [match for match in here if _is_there(match, skipped) and match.is_file()]):
            raise InputError(f"no file matches `{asked}`", hint=f"ls {shlex.quote(str(path.parent))}")
        return files
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise InputError(
        f"there is no file or folder `{asked}`",
        hint=did_you_mean(path.name, siblings, str(path.parent / "{}"))
        or (
            f"echo {shlex.quote(asked)} | koktok …, for a text itself"
            if " " in asked
            else f"ls {shlex.quote(str(path.parent))}"
        ),
    )


def _folder(folder: Path, skipped: list[str]) -> list[Path]:
    files: list[Path] = []
    counted: list[Path] = []
    refused: list[OSError] = []
    others: Counter[str] = Counter()
    for root, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        own = own_names(Path(root))
        if own is None:
            skipped.append(f"`{root}`, which koktok wrote")
            folders.clear()
            continue
        if ours := own & {*names}:
            skipped.append(f"{len(ours):,} files of `{root}`, which koktok wrote")
        for name in names:
            if name.startswith(".") or name in own or not _is_there(path := Path(root, name), skipped):
                continue
            if path.is_file() and is_read(path):
                (counted if suffix_of(path) == ".parquet" and is_count(path) else files).append(path)
            else:
                others[suffix_of(path) or path.suffix or "without an ending"] += 1
    skipped += [f"`{error.filename}`: {error.strerror}" for error in refused]
    if others:
        told = ", ".join(f"{n:,} {ending}" for ending, n in others.most_common(6)) + ", …" * (len(others) > 6)
        skipped.append(f"of `{folder}`: {told}")
    if files and counted:
        skipped.append(f"{len(counted):,} count files of `{folder}`, which koktok wrote")
    if not (files := files or counted):
        why = f"; not read: {'; '.join(skipped[:3])}" if skipped else ""
        raise InputError(
            f"the folder `{folder}` holds no file that koktok reads ({' '.join(EXTENSIONS)}){why}",
            hint=f"ls {shlex.quote(str(folder))}",
        )
    return sorted(files, key=lambda file: file.relative_to(folder).parts)


@dataclass(frozen=True)
class Items:
    """An iterable of records, with the field that holds their text."""

    items: Any
    field: str


def check_field(sources: Iterable[Source]) -> None:
    """Refuse a field that is named for files of which none has fields; InputError."""
    with_field = [source for source in sources if source.field is not None]
    paths = [path for source in with_field for path in source.paths]
    if paths and all(kind_at(path, field) == "text" and path.is_file() for path, field in _fields(with_field)):
        shown = ", ".join(f"`{path}`" for path in paths[:3]) + ", …" * (len(paths) > 3)
        raise InputError(
            f"the field `{with_field[0].field}` has no effect: {shown} {'is' if len(paths) == 1 else 'are'} plain text",
            hint="leave out --field, or name JSON lines .jsonl and tables .csv, .tsv or .parquet",
        )


def _fields(sources: Iterable[Source]) -> Iterator[tuple[Path, str | None]]:
    for source in sources:
        yield from ((path, source.field) for path in source.paths)


def _is_there(path: Path, skipped: list[str]) -> bool:
    """Whether a path exists, and is not where the output goes; the target of a link may be missing."""
    try:
        why = ", where the output goes" if _is_output(path) else ""
    except OSError as error:
        why = f": {error.strerror}"
    if why:
        skipped.append(f"`{path}`{why}")
    return not why


def _is_output(path: Path) -> bool:
    """Whether a file is the standard output, which grows as long as it is read."""
    found = path.stat()
    with suppress(OSError):
        return S_ISREG(found.st_mode) and os.path.samestat(found, os.fstat(1))
    return False


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
    if isinstance(text, Items):
        text, field = text.items, text.field
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
                "%d lines without readable text in `%s`, the first at %s",
                broken,
                source.name,
                ", ".join(report.bad_places[:1]),
            )
        nothing = report.lines == begun and source is sources[-1] and not may_be_empty
        if report.lines == lines and (broken or nothing):
            paths = ", ".join(f"`{path}`" for path in source.paths[:3])
            state = f"has no line of valid UTF-8 ({broken:,} invalid lines)" if broken else "is empty"
            hint = "" if source.paths[0] == STDIN else f"head {shlex.quote(str(source.paths[0]))}"
            raise InputError(f"the source `{source.name}` ({paths}) {state}", hint=hint)
        report.digests[source.name] = digest.hexdigest()


def _read_items(items: Iterable[Any], field: str | None, name: str, report: ReadReport) -> Generator[Block, None, None]:
    """Yield the texts of strings, bytes and records, and of lists of them; a hole, or what is not UTF-8, is left out and counted."""
    digest = hashlib.sha256()
    each = enumerate(_flat(items), 1)
    number, known = 1, False
    while some := list(islice(each, _ITEMS)):
        if number == 1 and field is not None and isinstance(some[0][1], str | bytes):
            raise InputError(
                f"the field `{field}` has no effect: item 1 is a text, not a record", hint="leave out field"
            )
        texts = []
        for at, item in some:
            text = text_in(item, field, f"item {at}", known=known)
            known = known or text is not None
            if text is not None and not has_surrogates(text):
                texts.append(text)
                continue
            report.bad_lines += 1
            if len(report.bad_places) < PLACES:
                report.bad_places.append(f"item {at}")
        block = Block.of(texts, number)
        digest.update(block.data)
        report.lines += block.n_lines
        number += len(some)
        if texts:
            yield block
    report.digests[name] = digest.hexdigest()


def _flat(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items, those of lists and arrays among them one by one: a batch of texts is its texts."""
    for item in items:
        listed = None if isinstance(item, str | bytes) else getattr(item, "tolist", getattr(item, "to_list", None))
        value = listed() if listed else item.as_py() if hasattr(item, "as_py") else item  # of Arrow
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
