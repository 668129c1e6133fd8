"""Counts on disk: one Parquet file a table, with what was counted in its metadata.

Columns `word` (string, by code point), `n` and `held` (64 bits, unsigned); `held` are the
occurrences in lines that were held out, so that a training from a count file measures itself as a training from the text
does. Runs for superwords are in a second file beside it, NAME.runs.parquet, with one more column, `documents`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from koktok.count.counts import Dropped
from koktok.errors import InputError
from koktok.files import checked, write_file
from koktok.text.kinds import COUNTS, counts_in, is_count

if TYPE_CHECKING:
    import polars as pl


FORMAT = 2
"""Version of the file; another one is refused."""

_AGAIN = "koktok count TEXT ... -o counts.parquet"
_GROUP = 1 << 20  # rows that are written and read at once
_MOST = 1 << 53
"""Words of a count; above it sums would be no whole numbers any more."""
_NOTHING = Dropped()


@dataclass(frozen=True)
class _Written:
    """The version of a file."""

    format: int


@dataclass(frozen=True)
class Counted:
    """One source in a count file."""

    name: str
    digest: str
    lines: int
    holdout: float = 0.0


@dataclass(frozen=True)
class About:
    """The metadata of a count file."""

    kind: Literal["words", "runs"]
    sources: tuple[Counted, ...]
    min_count: int = 1
    dropped: Dropped = _NOTHING

    def __add__(self, other: About) -> About:
        """Return the metadata of the merged file."""
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
    """Return the path of the runs beside a count file."""
    return file.with_name(f"{file.stem}.runs{file.suffix}")


def write_counts(
    file: Path, parts: Iterable[pl.DataFrame], about: About, *, min_count: int = 1, force: bool = False
) -> Dropped:
    """Write tables that come in order, part by part, without words below `min_count`; returns how many those are."""
    import polars as pl
    from polars.io.plugins import register_io_source

    columns = _columns(about.kind)
    words = gone = of = 0

    def kept(*_pushed_down: object) -> Iterator[pl.DataFrame]:
        nonlocal words, gone, of
        for part in parts:
            rare = part.filter((pl.col("n") > 0) & (pl.col("n") < min_count))
            of += int(part["n"].sum())
            words += len(rare)
            gone += int(rare["n"].sum())
            numbers = [
                pl.when(pl.col("n") >= min_count).then(name).otherwise(0).cast(pl.UInt64).alias(name)
                for name in columns[1:-1]
            ]
            yield part.select("word", *numbers, "held").filter((pl.col("n") > 0) | (pl.col("held") > 0))

    def metadata(_context: object) -> dict[str, str]:  # asked for when all parts are written
        before = about.dropped
        dropped = Dropped(before.words + words, before.n + gone, max(before.of, of + before.n))
        shown = replace(about, min_count=max(min_count, about.min_count), dropped=dropped)
        return {
            COUNTS: json.dumps({"format": FORMAT, "koktok": version("koktok"), **asdict(shown)}, ensure_ascii=False)
        }

    schema = dict.fromkeys(columns, pl.UInt64) | {"word": pl.String}

    def write(fresh: Path) -> None:
        table = register_io_source(kept, schema=schema, validate_schema=True)
        table.sink_parquet(fresh, compression="zstd", row_group_size=_GROUP, metadata=metadata)

    write_file(file, write, ours=is_count, force=force, what="count")
    return Dropped(words, gone, of)


def _columns(kind: Literal["words", "runs"]) -> list[str]:
    return ["word", "n", *(["documents"] if kind == "runs" else []), "held"]


@dataclass(frozen=True)
class CountFile:
    """A count file: its metadata and its table."""

    path: Path
    about: About

    @classmethod
    def at(cls, path: Path) -> CountFile | None:
        """Open a count file; None for any other file, and InputError for one that is damaged or newer."""
        if path.suffix != ".parquet" or not path.is_file() or (metadata := counts_in(path)) is None:
            return None
        what = f"the count file `{path}`"
        written = checked(_Written, metadata, what, hint=_AGAIN).format
        if written != FORMAT:
            raise InputError(f"{what} has format {written}; this koktok reads {FORMAT}", hint="koktok count TEXT again")
        return cls(path, checked(About, metadata, what, hint=_AGAIN))

    @classmethod
    def open(cls, path: Path) -> CountFile:
        """Open a count file, or raise InputError."""
        if (file := cls.at(path)) is None:
            raise InputError(f"`{path}` is not a count file, or damaged", hint=_AGAIN)
        return file

    @cached_property
    def frame(self) -> pl.LazyFrame:
        """The table: `word`, `n`, `held`, and `documents` if it holds runs."""
        import polars as pl

        table, columns = pl.scan_parquet(self.path, glob=False), _columns(self.about.kind)
        try:
            types = table.collect_schema()
            expected = {name: pl.String if name == "word" else pl.UInt64 for name in columns}
            if wrong := [name for name in columns if types.get(name) != expected[name]]:
                got = types.get(wrong[0], "no such column")
                raise InputError(
                    f"the column `{wrong[0]}` of the count file `{self.path}`: expected {expected[wrong[0]]}, got {got}",
                    hint=_AGAIN,
                )
            sums = table.select(pl.max_horizontal(pl.col(columns[1:]).cast(pl.Float64).sum())).collect()
        except pl.exceptions.PolarsError as error:
            raise InputError(f"the count file `{self.path}` is damaged: {error}", hint=_AGAIN) from error
        if int(sums.item()) > _MOST:
            raise InputError(f"the count file `{self.path}` counts more than {_MOST:,} words", hint=_AGAIN)
        return table.select(columns)

    def every(self, step: int) -> tuple[int, pl.Series]:
        """The number of rows, and every so many-th word; InputError if words are not in code-point order, each once."""
        import polars as pl

        rows, last, found = 0, None, [pl.Series("word", [], pl.String)]
        try:
            while len(words := self.frame.select("word").slice(rows, _GROUP).collect()["word"]):
                ordered = bool((words[1:] > words[:-1]).all()) and (last is None or words[0] > last)
                if words.null_count() or not ordered:
                    raise InputError(
                        f"the words of the count file `{self.path}` are not in order: expected each once, by code point",
                        hint=_AGAIN,
                    )
                found.append(words.gather_every(step, -rows % step) + "")  # a copy, see `counts.copied`
                rows, last = rows + len(words), words[-1]
        except pl.exceptions.PolarsError as error:
            raise InputError(f"the count file `{self.path}` is damaged: {error}", hint=_AGAIN) from error
        return rows, pl.concat(found)
