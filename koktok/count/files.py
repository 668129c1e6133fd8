"""Counts on disk: one Parquet file a table, with what was counted in its metadata.

This file adds: the count file (extra `parquet`). Columns `word` (string, by code point), `n`, `documents` and `held` (64
bits, unsigned); `held` are the occurrences in lines that were held out, so that a training from a count file measures
itself as a training from the text does. Runs for superwords stand in a second file beside it, NAME.runs.parquet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from koktok.count.counts import Dropped
from koktok.count.rows import Rows
from koktok.errors import InputError, MissingExtraError

__all__ = ["FORMAT", "About", "Counted", "about", "read_counts", "runs_file", "write_counts"]

FORMAT = 1
"""Version of the file; a newer one is refused, an older one is read for ever."""

_KEY = b"koktok.counts"
_GROUP = 1 << 20  # rows that are written and read at once
_NOTHING = Dropped()
_COLUMNS = ("word", "n", "documents", "held")


@dataclass(frozen=True)
class Counted:
    """One source in a count file.

    Parameters
    ----------
    name : str
    digest : str
        SHA-256 of its lines.
    lines : int
    holdout : float
        Share of its lines that was held out.
    """

    name: str
    digest: str
    lines: int
    holdout: float = 0.0


@dataclass(frozen=True)
class About:
    """What a count file says of itself.

    Parameters
    ----------
    kind : "words" or "runs"
    sources : tuple of Counted
        By name.
    min_count : int
        Words that came less often were left out.
    dropped : Dropped
        What that was.
    """

    kind: Literal["words", "runs"]
    sources: tuple[Counted, ...]
    min_count: int = 1
    dropped: Dropped = _NOTHING

    def __add__(self, other: About) -> About:
        """What the merged file says.

        Raises
        ------
        InputError
            When both hold the same source, or one holds words and the other runs.
        """
        if self.kind != other.kind:
            raise InputError(f"one file counts {self.kind} and one {other.kind}; they cannot be merged")
        twice = {(s.name, s.digest) for s in self.sources} & {(s.name, s.digest) for s in other.sources}
        if twice:
            raise InputError(f"the source `{min(twice)[0]}` is in two of the files; its words would count twice")
        return About(
            self.kind,
            tuple(sorted(self.sources + other.sources, key=lambda source: (source.name, source.digest))),
            max(self.min_count, other.min_count),
            Dropped(
                self.dropped.words + other.dropped.words,
                self.dropped.n + other.dropped.n,
                self.dropped.of + other.dropped.of,
            ),
        )


def runs_file(file: Path) -> Path:
    """Where the runs of a count file lie.

    Examples
    --------
    >>> runs_file(Path("counts.parquet")).name
    'counts.runs.parquet'
    """
    return file.with_name(f"{file.stem}.runs{file.suffix}")


def write_counts(file: Path, parts: Iterable[Rows], about: About, *, min_count: int = 1) -> Dropped:
    """Write rows that come in order, part by part; words below `min_count` are left out, and the file says how many.

    Returns
    -------
    Dropped
        What was left out.

    Raises
    ------
    MissingExtraError
        When pyarrow is not installed.
    InputError
        When the file cannot be written.
    """
    pa, pq = _arrow()
    schema = pa.schema([("word", pa.string()), *((name, pa.uint64()) for name in _COLUMNS[1:])])
    partial = file.with_name(f".{file.name}.{os.getpid()}.part")
    words = gone = of = 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
            for group in _grouped(parts):
                rare = group.n < min_count
                of += int(group.n.sum())
                words += int((rare & (group.n > 0)).sum())
                gone += int(group.n[rare].sum())
                n = np.where(rare, np.uint64(0), group.n)
                kept = replace(group, n=n, documents=np.where(rare, np.uint64(0), group.documents))
                kept = kept.where((n > 0) | (kept.held > 0))
                writer.write_table(_table(kept, schema, pa), row_group_size=_GROUP)
            found = about.dropped
            dropped = Dropped(found.words + words, found.n + gone, max(found.of, of + found.n))
            shown = replace(about, min_count=max(min_count, about.min_count), dropped=dropped)
            text = json.dumps({"format": FORMAT, "koktok": version("koktok"), **asdict(shown)}, ensure_ascii=False)
            writer.add_key_value_metadata({_KEY.decode(): text})
        partial.replace(file)
    except OSError as error:
        raise InputError(f"the count file `{file}` cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return Dropped(words, gone, of)


def _grouped(parts: Iterable[Rows]) -> Iterator[Rows]:
    """Parts of any size as groups of one size, so that the file does not tell who summed."""
    waiting: list[Rows] = []
    held = 0
    for part in parts:
        waiting.append(part)
        held += len(part)
        while held >= _GROUP:
            whole = Rows.joined(waiting)
            yield whole.part(0, _GROUP)
            waiting, held = [whole.part(_GROUP, held)], held - _GROUP
    if held:
        yield Rows.joined(waiting)


def _table(rows: Rows, schema: Any, pa: Any) -> Any:
    offsets = np.ascontiguousarray(rows.offsets - rows.offsets[0], np.int32)
    data = rows.data[rows.offsets[0] : rows.offsets[-1]]
    words = pa.Array.from_buffers(pa.string(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    columns = (np.ascontiguousarray(column) for column in (rows.n, rows.documents, rows.held))
    return pa.Table.from_arrays([words, *map(pa.array, columns)], schema=schema)


def about(file: Path) -> About | None:
    """What a count file says of itself; None where it is some other file.

    Raises
    ------
    InputError
        When a newer koktok wrote it.
    """
    if file.suffix != ".parquet" or not file.is_file():
        return None
    _, pq = _arrow()
    try:
        found = (pq.read_metadata(file).metadata or {}).get(_KEY)
    except (OSError, ValueError):  # no Parquet: whoever reads it as text will say so
        return None
    if found is None:
        return None
    values = json.loads(found)
    if values["format"] > FORMAT:
        raise InputError(
            f"the count file `{file}` has format {values['format']}; this koktok reads up to {FORMAT}",
            hint="pip install -U koktok",
        )
    sources = tuple(Counted(**source) for source in values["sources"])
    return About(values["kind"], sources, values["min_count"], Dropped(**values["dropped"]))


def read_counts(files: Sequence[Path]) -> list[Rows]:
    """The rows of count files, each sorted and distinct.

    Raises
    ------
    InputError
        When a file is damaged.
    """
    pa, pq = _arrow()
    found = []
    for file in files:
        try:
            table = pq.ParquetFile(file)
            parts = [_rows(table.read_row_group(i, columns=list(_COLUMNS)), pa) for i in range(table.num_row_groups)]
        except (OSError, ValueError) as error:
            raise InputError(f"the count file `{file}` is damaged: {error}") from error
        found.append(Rows.joined(parts) if parts else Rows.of({}))
    return found


def _rows(table: Any, pa: Any) -> Rows:
    words = table.column(0).combine_chunks().cast(pa.large_string())
    words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
    _, offsets, data = words.buffers()
    places = np.frombuffer(offsets, np.int64)[words.offset : words.offset + len(words) + 1]
    values = [table.column(i).to_numpy().astype(np.uint64) for i in (1, 2, 3)]
    return Rows(np.frombuffer(data or b"", np.uint8), places, *values)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    return pa, pq
