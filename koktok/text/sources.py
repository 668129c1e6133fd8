r"""Reading text: files, folders, globs, standard input and Python iterables become lines.

Everything streams: one block of about 256 KiB is in memory at a time, whatever the file's size. A line ends at ``\n``
and nowhere else (U+2028, ``\x0b`` and ``\x85`` are characters of a line), so line numbers here are those of ``wc``
and ``sed``. Text that is not UTF-8 is never repaired in silence: a bad line is left out and counted, with its place,
in the `ReadReport`; a file that is mostly bad is refused.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koktok.errors import InputError, UsageError, did_you_mean
from koktok.progress import Done
from koktok.text.records import EXTENSIONS, STDIN, Batch, ByteProgress, Errors, ReadReport, pick, records

ReadFiles = Callable[[Sequence[Path], str | None, Errors, ReadReport, ByteProgress], Generator[Batch, None, None]]
"""A function that reads the files of a source, in their order."""

log = logging.getLogger(__name__)

BLOCK = 50
"""Lines that are held out together."""

_BATCH = 256  # documents that a Python object gives before they are passed on

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
                f"the source `{self.name}` has the weight {self.weight}; wanted a number above 0, at most {MOST_WEIGHT:,.0f}"
            )

    @classmethod
    def of(
        cls,
        *paths: str | os.PathLike[str],
        name: str | None = None,
        weight: float = 1.0,
        field: str | None = None,
    ) -> Source:
        """Return the source that these paths name, expanded; InputError where one cannot be read.

        Examples
        --------
        >>> Source.of("-").name
        'stdin'
        """
        wrong = [path for path in paths if not isinstance(path, str | os.PathLike) or not str(path)]
        if wrong:
            raise InputError(f"{wrong[0]!r} came where a path was wanted", hint="Source.of('text.txt', 'more.jsonl')")
        files, skipped = _expanded(paths)
        return cls(name or name_of(map(str, paths)), tuple(files), weight, field, tuple(skipped))


def name_of(paths: Iterable[str]) -> str:
    """Return the name of a source: the stems of its paths.

    Examples
    --------
    >>> name_of(["a/news.txt.gz", "-"])
    'news+stdin'
    """
    return "+".join(dict.fromkeys("stdin" if path == "-" else Path(path).name.split(".")[0] for path in paths))


def expand(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that a user's paths name, each once, in a fixed order.

    A file stands for itself (read as plain text where its extension says nothing), a folder for every file with a
    known extension below it, sorted, hidden ones apart; a glob for its matches; ``-`` for standard input. What cannot be
    read below a folder is left out (`Source.skipped` tells of it).

    Examples
    --------
    >>> expand(["-"])
    [PosixPath('-')]
    """
    return _expanded([paths] if isinstance(paths, str | os.PathLike) else paths)[0]


def _expanded(paths: Iterable[str | os.PathLike[str]]) -> tuple[list[Path], list[str]]:
    skipped: list[str] = []
    files = dict.fromkeys(file for path in paths for file in _expand_one(os.fspath(path), skipped))
    return list(files), skipped


def _expand_one(given: str, skipped: list[str]) -> list[Path]:
    if given == "-":
        return [STDIN]
    if given.startswith("corpus:"):
        raise InputError(
            f"expected a file or a folder, got the corpus `{given}`", hint="koktok.corpora.paths.as_source(...)"
        )
    path = Path(given).expanduser()
    if path.is_dir():
        return _folder(path, skipped)
    if path.exists():
        return [_no_markup(path)]
    if glob.has_magic(given):
        # `Path.glob` takes no absolute pattern. An empty file is no error here: Spark leaves many.
        matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=lambda match: match.parts)  # noqa: PTH207
        if not (found := [_no_markup(match) for match in matches if _is_there(match, skipped) and match.is_file()]):
            raise InputError(f"no file matches `{given}`", hint=f"ls {shlex.quote(str(path.parent))}")
        return found
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    raise InputError(
        f"there is no file or folder `{given}`",
        hint=did_you_mean(path.name, siblings, str(path.parent / "{}")) or f"ls {shlex.quote(str(path.parent))}",
    )


def _no_markup(path: Path) -> Path:
    if way := _MARKUP.get(path.suffix.lower()):
        raise InputError(
            f"`{path}` is {path.suffix}; text or JSON lines were wanted", hint=way.format(shlex.quote(str(path)))
        )
    return path


def _folder(folder: Path, skipped: list[str]) -> list[Path]:
    found = []
    refused: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        known = [name for name in names if not name.startswith(".") and name.lower().endswith(EXTENSIONS)]
        found += [path for name in known if _is_there(path := Path(root, name), skipped)]
    skipped += [f"`{error.filename}`: {error.strerror}" for error in refused]
    if not found:
        why = f"; not read: {skipped[0]}" if skipped else ""
        raise InputError(
            f"the folder `{folder}` holds no file that koktok reads ({' '.join(EXTENSIONS)}){why}",
            hint=f"ls {shlex.quote(str(folder))}",
        )
    return sorted(found, key=lambda file: file.relative_to(folder).parts)


def _is_there(path: Path, skipped: list[str]) -> bool:
    """Whether there is a file behind a name; a link may lead nowhere."""
    try:
        path.stat()
    except OSError as error:
        skipped.append(f"`{path}`: {error.strerror}")
        return False
    return True


def read_lines(
    sources: Source | Sequence[Source],
    *,
    errors: Errors = "skip",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
    may_be_empty: bool = False,
) -> Iterator[str]:
    r"""Yield every line of the sources, in order, without its newline.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("나는 학생이다.\n너는?\n", encoding="utf-8")
    >>> report = ReadReport()
    >>> list(read_lines(Source.of(path), report=report)), report.lines
    (['나는 학생이다.', '너는?'], 2)
    """
    for documents in read_batches(
        sources, errors=errors, report=report, on_progress=on_progress, may_be_empty=may_be_empty
    ):
        yield from "\n".join(documents).split("\n")


def read_documents(
    sources: Source | Sequence[Source],
    *,
    errors: Errors = "skip",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
    may_be_empty: bool = False,
) -> Iterator[str]:
    r"""Yield every document: a line of a text file, a record (perhaps of many lines) of a table or of JSON lines.

    Parameters, report and errors are those of `read_lines`, and so is the digest.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = path.write_text('{"text": "하나\\n둘"}\n', encoding="utf-8")
    >>> list(read_documents(Source.of(path))), list(read_lines(Source.of(path)))
    (['하나\n둘'], ['하나', '둘'])
    """
    for documents in read_batches(
        sources, errors=errors, report=report, on_progress=on_progress, may_be_empty=may_be_empty
    ):
        yield from documents


def read_batches(
    sources: Source | Sequence[Source],
    *,
    errors: Errors = "skip",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
    may_be_empty: bool = False,
) -> Iterator[list[str]]:
    """Yield documents in batches of any size, for whoever joins them again at once.

    Parameters, report and errors are those of `read_lines`, and so is the digest.
    """
    for batch in read_blocks(sources, errors=errors, report=report, on_progress=on_progress, may_be_empty=may_be_empty):
        yield batch.decode()[:-1].split("\n") if isinstance(batch, bytes) else batch


def read_blocks(
    sources: Source | Sequence[Source],
    *,
    errors: Errors = "skip",
    report: ReadReport | None = None,
    on_progress: Done | None = None,
    may_be_empty: bool = False,
    files: ReadFiles | None = None,
) -> Generator[Batch, None, None]:
    r"""Yield documents in batches, signing them on the way: strings, or bytes where each is a line of UTF-8.

    Parameters, report and errors are those of `read_lines`; `files` reads one file behind the other where it is not given.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("a\nb\n", encoding="utf-8")
    >>> list(read_blocks(Source.of(path)))
    [b'a\nb\n']
    """
    report = report or ReadReport()
    sources = [sources] if isinstance(sources, Source) else list(sources)
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
        found, bad = report.lines, report.bad_lines
        with closing((files or _in_turn)(source.paths, source.field, errors, report, progress)) as batches:
            for batch in batches:
                data = batch if isinstance(batch, bytes) else ("\n".join(batch) + "\n").encode()
                lines = data.count(b"\n")
                digest.update(data)
                report.lines += lines
                yield data if isinstance(batch, bytes) or lines == len(batch) else batch
        broken = report.bad_lines - bad
        if broken:
            log.warning(
                "%d undecodable lines in `%s`, the first at %s", broken, source.name, ", ".join(report.bad_places[:1])
            )
        nothing = report.lines == begun and source is sources[-1] and not may_be_empty
        if report.lines == found and (broken or nothing):
            paths = ", ".join(f"`{path}`" for path in source.paths[:3])
            state = (
                f"holds no line of UTF-8, and {broken:,} of something else" if broken else "is empty; text was wanted"
            )
            hint = "" if source.paths[0] == STDIN else f"head {shlex.quote(str(source.paths[0]))}"
            raise InputError(f"the source `{source.name}` ({paths}) {state}", hint=hint)
        report.digests[source.name] = digest.hexdigest()


def _in_turn(
    paths: Sequence[Path], field: str | None, errors: Errors, report: ReadReport, progress: ByteProgress
) -> Generator[Batch, None, None]:
    return (batch for path in paths for batch in records(path, field, errors, report, progress))


def lines_of(
    obj: Any, field: str | None = None, *, name: str = "lines", report: ReadReport | None = None
) -> Iterator[str]:
    r"""Yield the lines of a Python object: strings, or mappings with a field, from any iterable, or a path or Source.

    Examples
    --------
    >>> list(lines_of([{"text": "하나\n둘"}, "셋"]))
    ['하나', '둘', '셋']
    """
    batches = item_batches(obj, field, name=name, report=report)
    return (line for documents in batches for line in "\n".join(documents).split("\n"))


def item_batches(
    obj: Any, field: str | None = None, *, name: str = "lines", report: ReadReport | None = None
) -> Iterator[list[str]]:
    r"""Yield the documents of a Python object in batches; parameters and errors are those of `lines_of`.

    Examples
    --------
    >>> list(item_batches([{"text": "하나\n둘"}, "셋"]))
    [['하나\n둘', '셋']]
    """
    if isinstance(obj, Source):
        return read_batches(obj, report=report)
    if isinstance(obj, os.PathLike):
        return read_batches(Source.of(obj, field=field, name=name), report=report)
    if isinstance(obj, str | bytes):
        raise InputError(
            f"a bare `{type(obj).__name__}` came where lines are wanted; its characters would be the lines",
            hint="[text] for one text, pathlib.Path(name) for a file",
        )
    if isinstance(obj, Mapping):
        keys = ", ".join(f'"{key}"' for key in obj)
        raise InputError(f"a mapping came where lines are wanted; its keys: {keys}", hint="lines_of(mapping[key])")
    if not isinstance(obj, Iterable) or getattr(obj, "ndim", 1) == 0:
        raise InputError(f"a `{type(obj).__name__}` came where lines are wanted", hint='lines_of(["나는 학생이다."])')
    return _batches_of_items(obj, field, name, report or ReadReport())


def _looks_like_a_path(line: str) -> bool:
    """Whether somebody who wrote this meant a file: one that is there, or a name that ends as files of text do."""
    if len(line) > 255 or not line or line != line.strip() or "\0" in line:
        return False
    named = " " not in line and (line.lower().endswith(EXTENSIONS) or line.startswith("corpus:"))
    return named or Path(line).is_file()


def _batches_of_items(items: Iterable[Any], field: str | None, name: str, report: ReadReport) -> Iterator[list[str]]:
    digest = hashlib.sha256()
    batch: list[str] = []
    for number, item in enumerate(items, 1):
        text = item if isinstance(item, str) else pick(item, field, f"item {number}")
        if number == 1 and isinstance(item, str) and _looks_like_a_path(item):
            raise InputError(
                f"`{item}` came as a line of text, and is the name of a file", hint=f"pathlib.Path({item!r})"
            )
        text = (text or "").replace("\r\n", "\n")
        try:
            digest.update(f"{text}\n".encode())
        except UnicodeEncodeError as error:
            raise InputError(f"item {number} holds a lone surrogate: {error}", hint="text.encode('utf-8')") from None
        report.lines += 1 + text.count("\n")
        batch.append(text)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
    report.digests[name] = digest.hexdigest()


def held_block(index: int, share: float, key: str) -> bool:
    """True where a block of lines is held out of training.

    Blocks of consecutive lines go to one side together, because neighbours share a topic and often whole sentences.
    The side of a block is a hash of its index and the key, so it is the same in every process; a larger share holds
    out the same blocks and more.

    Examples
    --------
    >>> sum(held_block(i, 0.05, "demo") for i in range(2000))
    106
    """
    side = hashlib.blake2b(f"{key}\0{index}".encode(), digest_size=8).digest()
    return int.from_bytes(side, "big") < int(share * 2**64)
