"""What several verbs share: the types of their options, and paths to sources and lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from koktok.errors import UsageError, visible

if TYPE_CHECKING:
    from koktok.text.records import Errors, ReadReport
    from koktok.text.sources import Source

SHOWN = 5
"""How many places a warning names."""

Paths = Annotated[
    list[str],
    typer.Argument(help="Files, folders, globs, `corpus:NAME`, or `-` for standard input.", show_default=False),
]
Field = Annotated[
    str | None,
    typer.Option(help="Field or column with the text (JSON lines, tables); `meta.text` for a nested field."),
]


def _folder_of(path: Any) -> Any:
    """The folder of a tokenizer, or of each of some, behind what was typed."""
    from koktok.tokenizer.ready import folder_of

    return [*map(folder_of, path)] if isinstance(path, list | tuple) else path and folder_of(path)


Folder = Annotated[
    Path,
    typer.Argument(help="Folder of a trained tokenizer, or `koktok:NAME`.", show_default=False, callback=_folder_of),
]
Folders = Annotated[
    list[Path] | None, typer.Argument(help="More tokenizers to compare with.", show_default=False, callback=_folder_of)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only data and errors: no progress, notes or table.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier output of koktok.")]
RecipeFile = Annotated[Path | None, typer.Option(help="Start from this koktok.toml or trained folder.")]

MOST_THREADS = 1024
"""More than any machine has cores; every analyser's thread is a process."""

T = TypeVar("T")


class Grouped(TyperCommand):
    """A command with groups of options in its `--help`, by their `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the groups, in the order in which their first options come."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            heading = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
            if record is not None:
                groups.setdefault(heading or "Options", []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def pairs(
    option: str,
    items: Iterable[str] | None,
    value: Callable[[str], T],
    *,
    expected: str,
    example: str,
    names: Collection[str] = (),
) -> dict[str, T]:
    """The NAME=VALUE words of an option, by name; the last "=" divides, for tokens and files may hold others.

    Examples
    --------
    >>> pairs("--special", ["<|a|>=7", "<=>=8"], whole_number, expected="TOKEN=ID", example="<|a|>=7")
    {'<|a|>': 7, '<=>': 8}
    >>> pairs("--special", ["<|a|>:7"], whole_number, expected="TOKEN=ID", example="'<|a|>=7'")
    Traceback (most recent call last):
        ...
    koktok.errors.UsageError: expected `--special` with TOKEN=ID, got `<|a|>:7`
    hint: special='<|a|>=7'
    """
    values: dict[str, T] = {}
    for item in items or ():
        name, equals, word = item.rpartition("=")
        try:
            if not equals or not name or (names and name not in names):
                raise ValueError(item)
            parsed = value(word)
        except ValueError:
            raise UsageError(f"expected `{option}` with {expected}, got `{item}`", hint=f"{option} {example}") from None
        if name in values:
            raise UsageError(f"`{option}` names `{name}` twice", hint=f"{option} {item}, once")
        values[name] = parsed
    return values


def fraction(word: str) -> float:
    """A number from 0 to 1; else ValueError."""
    number = float(word)
    if not 0 <= number <= 1:
        raise ValueError(word)
    return number


def whole_number(word: str) -> int:
    """A whole number from 0, in ASCII digits; else ValueError."""
    if not (word.isascii() and word.isdecimal()):
        raise ValueError(word)
    return int(word)


def size_of(text: str) -> int:
    """How many ids, as people type it: 32000, 32,000 or 32k.

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
        size = -1.0
    if not (0 <= size < 1e12) or size != int(size):
        raise typer.BadParameter(f"expected a number of ids, such as 32000 or 32k, got `{text}`")
    return int(size)


def sources_of(paths: list[str], field: str | None, weights: list[str], *, quiet: bool) -> list[Source]:
    """A source per path, corpora fetched with progress, names made distinct, weights by name."""
    from koktok.corpora.fetch import fetch
    from koktok.corpora.paths import as_source
    from koktok.progress import ConsoleProgress
    from koktok.text.names import distinct
    from koktok.text.sources import MOST_WEIGHT, check_field

    def weight(word: str) -> float:
        number = float(word)
        if not 0 < number <= MOST_WEIGHT:
            raise ValueError(word)
        return number

    sources: list[Source] = []
    for path in paths:
        if path.startswith("corpus:"):
            with ConsoleProgress(quiet=quiet) as progress:
                fetch(path.removeprefix("corpus:").removesuffix("/held-out"), on_progress=progress)
        sources.append(as_source(path, field=field))
        tell_skipped(sources[-1])
    check_field(sources)
    names = distinct([source.name for source in sources])
    weights_by_name = pairs(
        "--weight",
        weights,
        weight,
        expected=f"NAME=W with a number above 0 (at most {MOST_WEIGHT:,.0f}) and one of the names {', '.join(names)}",
        example=f"{names[0]}=2",
        names=names,
    )
    return [
        replace(source, name=name, weight=weights_by_name.get(name, source.weight))
        for source, name in zip(sources, names, strict=True)
    ]


def lines_of_paths(
    paths: list[str] | None,
    field: str | None,
    *,
    aligned: bool = False,
    may_be_empty: bool = False,
    quiet: bool = False,
) -> Iterator[str]:
    """Yield the lines of files or of standard input, and warn of unreadable lines at the end.

    `aligned` is for verbs that print a line for each line or record, as filters do: they get whole records, an unreadable one is
    read as an empty one, so that the numbers of the others do not change, and empty input is no error.
    """
    from koktok.corpora.paths import as_source
    from koktok.text.records import ReadReport
    from koktok.text.sources import check_field, read

    report = ReadReport()
    source = as_source(*(paths or ["-"]), field=field, name="text")
    check_field([source])
    if not quiet:
        tell_skipped(source)
    errors: Errors = "empty" if aligned else "skip"
    for block in read(source, errors=errors, report=report, may_be_empty=aligned or may_be_empty):
        yield from block.documents() if aligned else block.lines()
    if not quiet:
        tell_left_out(report, "read as empty, so that line numbers stay" if aligned else "left out")


def tell_skipped(source: Source) -> None:
    """Warn of files in a folder that are not read."""
    for what in source.skipped[:SHOWN]:
        print(f"warning: not read: {visible(what)}", file=sys.stderr)
    if more := len(source.skipped[SHOWN:]):
        print(f"warning: and {more:,} more that are not read", file=sys.stderr)


def tell_left_out(report: ReadReport, became: str = "left out") -> None:
    """Warn of lines that are not UTF-8 and of records without text, with the places of the first ones."""
    if report.bad_lines:
        print(f"warning: {visible(report.left_out).replace('left out', became, 1)}", file=sys.stderr)


def batches(lines: Iterator[str], size: int = 1000) -> Iterator[list[str]]:
    """Lines in lists of `size`, the last one shorter."""
    from itertools import islice

    while batch := list(islice(lines, size)):
        yield batch


def list_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal, tab-separated lines into a file or pipe."""
    from koktok.progress import print_line, table

    if sys.stdout.isatty():
        table("", columns, rows)
        return
    for row in rows:
        print_line("\t".join(row))
