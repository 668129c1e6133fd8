"""What several verbs share: the types of their options, and paths to sources and lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from koktok.errors import UsageError, visible

if TYPE_CHECKING:
    from koktok.text.sources import Errors, ReadReport, Source

TOLD = 5
"""How many places a warning names."""

Paths = Annotated[
    list[str],
    typer.Argument(help="Files, folders, globs, `corpus:NAME`, or `-` for standard input.", show_default=False),
]
Field = Annotated[str | None, typer.Option(help="Field or column that holds the text (JSON lines, tables).")]
Folder = Annotated[Path, typer.Argument(help="Folder of a trained tokenizer.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
RecipeFile = Annotated[Path | None, typer.Option(help="koktok.toml, or a trained folder, to start from.")]


def size_of(text: str) -> int:
    """How many ids, as people type it: 32000, 32,000 or 32k.

    Raises
    ------
    UsageError
        When it is no whole number above 0.

    Examples
    --------
    >>> size_of("32k"), size_of("32_000"), size_of("1.5k")
    (32000, 32000, 1500)
    """
    plain = text.strip().lower().replace(",", "").replace("_", "")
    times = 1000 if plain.endswith("k") else 1
    try:
        size = float(plain.removesuffix("k")) * times
    except ValueError:
        size = 0.0
    if not (0 < size < 1e12) or size != int(size):
        raise UsageError(f"`{text}` came where a number of ids was wanted", hint="--vocab-size 32000, or 32k")
    return int(size)


def sources_of(paths: list[str], field: str | None, weights: list[str], *, quiet: bool) -> list[Source]:
    """A source per path, corpora fetched with progress, names made distinct, weights by name."""
    from koktok.progress import Talk
    from koktok.text.corpora import fetch
    from koktok.text.sources import Source

    sources: list[Source] = []
    for path in paths:
        if path.startswith("corpus:"):
            with Talk(quiet=quiet) as talk:
                fetch(path.removeprefix("corpus:"), on_progress=talk)
        source = Source.of(path, field=field)
        tell_skipped(source)
        same = sum(other.name.split("#")[0] == source.name for other in sources)
        name = f"{source.name}#{same + 1}" if same else source.name
        sources.append(replace(source, name=name))
    by_name = {source.name: i for i, source in enumerate(sources)}
    for item in weights:
        name, _, number = item.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if name not in by_name or not 0 < value < float("inf"):
            raise UsageError(
                f"`--weight {item}` wants NAME=W with a number above 0 and one of the names {', '.join(by_name)}",
                hint=f"--weight {next(iter(by_name))}=2",
            )
        sources[by_name[name]] = replace(sources[by_name[name]], weight=value)
    return sources


def lines_of_paths(
    paths: list[str] | None,
    field: str | None,
    *,
    aligned: bool = False,
    may_be_empty: bool = False,
    quiet: bool = False,
) -> Iterator[str]:
    """Lines of files, or of standard input; what could not be decoded is told at the end.

    `aligned` is for verbs that give a line for a line, as a filter in a pipeline does: a line that cannot be decoded
    comes as an empty one, so that the numbers of the others stay, and no line at all gives none.
    """
    from koktok.text.sources import ReadReport, Source, read_lines

    report = ReadReport()
    source = Source.of(*(paths or ["-"]), field=field, name="text")
    if not quiet:
        tell_skipped(source)
    errors: Errors = "empty" if aligned else "skip"
    yield from read_lines(source, errors=errors, report=report, may_be_empty=aligned or may_be_empty)
    if report.bad_lines and not quiet:
        tell_bad_lines(report, "read as empty, so that line numbers stay" if aligned else "left out")


def tell_skipped(source: Source) -> None:
    """Say what lies below a folder and cannot be read."""
    for what in source.skipped[:TOLD]:
        print(f"warning: not read: {visible(what)}", file=sys.stderr)
    if more := len(source.skipped[TOLD:]):
        print(f"warning: and {more:,} more that cannot be read", file=sys.stderr)


def tell_bad_lines(report: ReadReport, became: str) -> None:
    """Say what became of the lines that are not UTF-8, and where the first of them stand."""
    from koktok.progress import counted

    more = ", …" if report.bad_lines > len(report.bad_places) else ""
    places = ", ".join(report.bad_places)
    print(f"warning: {counted(report.bad_lines, 'undecodable line')} {became}: {places}{more}", file=sys.stderr)


def batches(lines: Iterator[str], size: int = 1000) -> Iterator[list[str]]:
    """Lines in lists of `size`, the last one shorter."""
    from itertools import islice

    while batch := list(islice(lines, size)):
        yield batch
