"""Analyses as a file: words that were analysed elsewhere, for a training on this machine.

The lexicon, a Parquet file with the columns `word` (by code point) and `row` (`koktok.segment.serialized`), and the
analyser's signature in its metadata. The cache (`koktok.segment.cache`) is one machine's own and grows; a lexicon is whole,
travels, and has the same bytes wherever it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from koktok.errors import AnalyserError, InputError
from koktok.files import checked, path_of, write_file
from koktok.segment import Segmenter
from koktok.segment.serialized import serialized_rows

if TYPE_CHECKING:
    import polars as pl


FORMAT = 1
"""Version of the file; a newer one is refused, an older one is read for ever."""

_KEY = "koktok.lexicon"
_AGAIN = "koktok.cluster.segment.segment_to_file"
_GROUP = 1 << 17  # rows that are written and read at once
_PART = 1 << 16  # words that are analysed at once


@dataclass(frozen=True)
class _Metadata:
    """The metadata of a lexicon."""

    format: int
    signature: str
    quarantined: dict[str, str]


@dataclass(frozen=True)
class Lexicon:
    """A lexicon on disk."""

    file: Path
    signature: str
    quarantined: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, file: str | Path) -> Lexicon:
        """The lexicon at a path."""
        import polars as pl

        metadata = _metadata(path_of(file, "a lexicon"))
        if metadata is None:
            raise InputError(f"`{file}` is not a lexicon, or damaged", hint=_AGAIN)
        found = checked(_Metadata, metadata, f"the lexicon `{file}`", hint=_AGAIN)
        if found.format > FORMAT:
            raise InputError(
                f"the lexicon `{file}` has format {found.format}; this koktok reads up to {FORMAT}",
                hint="pip install -U koktok",
            )
        types = pl.read_parquet_schema(file)
        if wrong := [name for name in ("word", "row") if types.get(name) != pl.String]:
            got = types.get(wrong[0], "no such column")
            raise InputError(
                f"the column `{wrong[0]}` of the lexicon `{file}`: expected String, got {got}", hint=_AGAIN
            )
        return cls(Path(file), found.signature, found.quarantined)

    def check(self, signature: str) -> None:
        """Refuse the lexicon of another analyser."""
        if self.signature != signature:
            raise AnalyserError(
                f"the lexicon `{self.file}` was made by {self.signature}; installed is {signature}",
                hint="leave the lexicon out, or install that version",
            )

    @property
    def frame(self) -> pl.LazyFrame:
        """Its table: `word` and `row`."""
        import polars as pl

        return pl.scan_parquet(self.file, glob=False).select("word", "row")

    def rows(self) -> Iterator[tuple[str, str]]:
        """Each word with its row."""
        for part in self.frame.collect_batches():
            yield from part.iter_rows()


def _metadata(file: Path) -> str | None:
    import polars as pl

    try:
        return pl.read_parquet_metadata(file).get(_KEY)
    except (OSError, pl.exceptions.PolarsError):  # no Parquet
        return None


def write_lexicon(
    file: Path,
    parts: Iterable[pl.DataFrame],
    signature: str,
    quarantined: Mapping[str, str],
    *,
    force: bool = False,
) -> Lexicon:
    """Write tables of `word` and `row` that come in order, part by part."""
    import polars as pl
    from polars.io.plugins import register_io_source

    schema = {"word": pl.String, "row": pl.String}

    def metadata(_context: object) -> dict[str, str]:
        shown = {
            "format": FORMAT,
            "koktok": version("koktok"),
            "signature": signature,
            "quarantined": dict(sorted(quarantined.items())),
        }
        return {_KEY: json.dumps(shown, ensure_ascii=False)}

    def write(fresh: Path) -> None:
        table = register_io_source(lambda *_pushed_down: iter(parts), schema=schema, validate_schema=True)
        table.sink_parquet(fresh, compression="zstd", row_group_size=_GROUP, metadata=metadata)

    write_file(file, write, ours=lambda there: _metadata(there) is not None, force=force, what="lexicon")
    return Lexicon.open(file)


def analyses(words: Iterable[str], segmenter: Segmenter) -> Iterator[pl.DataFrame]:
    """The table of a lexicon, in parts, for `write_lexicon`."""
    import polars as pl

    stream = iter(words)
    while some := list(islice(stream, _PART)):
        yield pl.DataFrame({"word": some, "row": list(serialized_rows(segmenter, some))})
