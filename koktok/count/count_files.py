"""Counts on disk: one Parquet file a table, with what was counted in its metadata.

Columns `word` (string, by code point), `n` and `held` (64 bits, unsigned); `held` are the
occurrences in lines that were held out, so that a training from a count file measures itself as a training from the text
does. Runs for superwords stand in a second file beside it, NAME.runs.parquet, with a column `documents` more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from koktok.count.counts import Dropped
from koktok.errors import InputError
from koktok.files import checked, write_file

if TYPE_CHECKING:
    import polars as pl


FORMAT = 2
"""Version of the file; a newer one is refused, an older one is read for ever. Files of words of format 1 had `documents`."""

_KEY = "koktok.counts"
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
    """What a count file says of itself."""

    kind: Literal["words", "runs"]
    sources: tuple[Counted, ...]
    min_count: int = 1
    dropped: Dropped = _NOTHING

    def __add__(self, other: About) -> About:
        """What the merged file says."""
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


def write_counts(
    file: Path, parts: Iterable[pl.DataFrame], said: About, *, min_count: int = 1, force: bool = True
) -> Dropped:
    """Write tables that come in order, part by part; words below `min_count` are left out, and the file says how many."""
    import polars as pl
    from polars.io.plugins import register_io_source

    columns = _columns(said.kind)
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
        found = said.dropped
        dropped = Dropped(found.words + words, found.n + gone, max(found.of, of + found.n))
        shown = replace(said, min_count=max(min_count, said.min_count), dropped=dropped)
        return {_KEY: json.dumps({"format": FORMAT, "koktok": version("koktok"), **asdict(shown)}, ensure_ascii=False)}

    schema = dict.fromkeys(columns, pl.UInt64) | {"word": pl.String}

    def write(fresh: Path) -> None:
        table = register_io_source(kept, schema=schema, validate_schema=True)
        table.sink_parquet(fresh, compression="zstd", row_group_size=_GROUP, metadata=metadata)

    write_file(file, write, ours=is_count_file, force=force, what="count")
    return Dropped(words, gone, of)


def is_count_file(file: Path) -> bool:
    """Whether a file is one that `write_counts` wrote."""
    import polars as pl

    try:
        return _KEY in pl.read_parquet_metadata(file)
    except (OSError, pl.exceptions.PolarsError):  # no Parquet
        return False


def _columns(kind: Literal["words", "runs"]) -> list[str]:
    return ["word", "n", *(["documents"] if kind == "runs" else []), "held"]


def about(file: Path) -> About | None:
    """What a count file says of itself; None where it is some other file."""
    if file.suffix != ".parquet" or not file.is_file():
        return None
    import polars as pl

    try:
        found = pl.read_parquet_metadata(file).get(_KEY)
    except (OSError, pl.exceptions.PolarsError):  # no Parquet: whoever reads it as text will say so
        return None
    if found is None:
        return None
    what = f"the count file `{file}`"
    written = checked(_Written, found, what, hint=_AGAIN).format
    if written > FORMAT:
        raise InputError(f"{what} has format {written}; this koktok reads up to {FORMAT}", hint="pip install -U koktok")
    return checked(About, found, what, hint=_AGAIN)


def read_counts(file: Path) -> pl.LazyFrame:
    """The table of a count file: `word`, `n`, `held`, and `documents` where it holds runs."""
    import polars as pl

    said = about(file)
    if said is None:
        raise InputError(f"`{file}` is no count file, or damaged", hint=_AGAIN)
    table, columns = pl.scan_parquet(file, glob=False), _columns(said.kind)
    try:
        types = table.collect_schema()
        wanted = {name: pl.String if name == "word" else pl.UInt64 for name in columns}
        if wrong := [name for name in columns if types.get(name) != wanted[name]]:
            got = types.get(wrong[0], "no such column")
            raise InputError(
                f"the column `{wrong[0]}` of the count file `{file}`: expected {wanted[wrong[0]]}, got {got}",
                hint=_AGAIN,
            )
        if int(table.select(pl.max_horizontal(pl.col(columns[1:]).cast(pl.Float64).sum())).collect().item()) > _MOST:
            raise InputError(f"the count file `{file}` counts more than {_MOST:,} words; expected less", hint=_AGAIN)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"the count file `{file}` is damaged: {error}", hint=_AGAIN) from error
    return table.select(columns)
