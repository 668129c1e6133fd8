"""Output of the command line: data, tables and coloured pieces on stdout, progress and notes on stderr.

Text may contain control sequences (colours, titles, the clipboard), which are spelled out on a terminal; into a file or pipe data is
written unchanged.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from koktok.errors import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = [
    "SPACE",
    "ConsoleProgress",
    "Done",
    "OnProgress",
    "counted",
    "print_line",
    "print_pieces",
    "print_record",
    "print_text",
    "silent",
    "stderr",
    "stdout",
    "table",
    "write_utf8",
]

OnProgress = Callable[[str, int, int | None], None]
"""Progress of a run: the stage's name, the amount done, and the total (None if unknown)."""

Done = Callable[[int, int | None], None]
"""Progress of one stage: the amount done, and the total."""


def silent(_stage: str, _done: int, _total: int | None) -> None:
    """Report no progress."""


SPACE = "▁"
"""The sign for a space inside a piece, as in SentencePiece."""

PALETTE = ("black on #f6c177", "black on #9ccfd8", "black on #ebbcba", "black on #a3be8c", "black on #c4a7e7")
"""Five light backgrounds that differ in brightness as well, so that colour-blind readers can distinguish neighbours."""


def counted(n: int, noun: str) -> str:
    """A number with its noun, which is plural for any number but one."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def stderr() -> Console:
    """The console for progress and notes; colours only on a terminal, and not under NO_COLOR."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def stdout() -> Console:
    """The console for data; into a file or pipe a table has its full width."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


def write_utf8() -> None:
    r"""Make standard output accept any character.

    Into a file or pipe it is UTF-8 on every system, as koktok reads nothing else and no other encoding has all of Korean (Korean
    Windows has CP949). A terminal keeps its encoding, as does `PYTHONIOENCODING`, with ``\uXXXX`` for missing characters and a note
    on stderr.
    """
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper):
        return
    if codecs.lookup(out.encoding).name == "utf-8":
        out.reconfigure(errors="surrogateescape")  # a path that is not UTF-8 comes out as it came in
    elif out.isatty() or os.environ.get("PYTHONIOENCODING", "").split(":")[0]:
        codecs.register_error("koktok", _lacking())
        out.reconfigure(errors="koktok")
    else:
        out.reconfigure(encoding="utf-8", errors="surrogateescape")


def _lacking() -> Callable[[UnicodeError], tuple[str | bytes, int]]:
    encodings: list[str] = []

    def handle(error: UnicodeError) -> tuple[str | bytes, int]:
        if isinstance(error, UnicodeEncodeError) and not encodings:
            encodings.append(error.encoding)
            print(
                f"note: standard output is in {error.encoding}; what that lacks is written as \\uXXXX\n"
                "hint: PYTHONIOENCODING=utf-8, or > FILE",
                file=sys.stderr,
            )
        return codecs.backslashreplace_errors(error)

    return handle


def print_line(text: str = "") -> None:
    """Print a line of data; on a terminal its control characters are spelled out."""
    print(visible(text) if sys.stdout.isatty() else text)


def print_record(text: str) -> None:
    r"""Print a text as one line of data: its line breaks are written as ``\n`` and ``\r``, as in JSON."""
    print_line(in_one_line(text))


def in_one_line(text: str) -> str:
    r"""Write the line breaks of a text as ``\n`` and ``\r``; a ``\r`` inside a line of a file is one of its characters.

    Examples
    --------
    >>> in_one_line("가\r\n나")
    '가\\r\\n나'
    """
    return text.replace("\r\n", "\\r\\n").replace("\n", "\\n")


def print_text(text: str) -> None:
    """Print sentences on stdout, wrapped between words on a terminal."""
    stdout().print(visible(text) if sys.stdout.isatty() else text, markup=False, soft_wrap=not sys.stdout.isatty())


def print_pieces(pieces: Iterable[str]) -> None:
    """Print pieces side by side, a `|` between them and `▁` for a space; colours on a terminal."""
    shown = [in_one_line(piece.replace(" ", SPACE)) for piece in pieces]
    if not sys.stdout.isatty():
        print("|".join(shown))
        return
    from rich.text import Text

    text = Text()
    for i, piece in enumerate(shown):
        text.append("|" if i else "")
        text.append(visible(piece), style=PALETTE[i % len(PALETTE)])
    stdout().print(text)


class ConsoleProgress:
    """Progress of a long run, as one bar a stage on a terminal, or as one line a finished stage elsewhere.

    Use it as a context manager; `progress(stage, done, total)` is the callback that the library takes.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = stderr()
        self._bars: Progress | None = None
        self._tasks: dict[str, int] = {}
        self._stage = ""
        self._begun = time.perf_counter()

    def __enter__(self) -> ConsoleProgress:
        if not self._quiet and self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
            from rich.progress import TimeRemainingColumn as Left

            columns = (
                TextColumn("{task.description:<10}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                Left(),
            )
            self._bars = Progress(*columns, console=self._console)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(failed=kind is not None)
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is."""
        if self._quiet:
            return
        if stage != self._stage:
            self._close()
            self._stage, self._begun = stage, time.perf_counter()
        if self._bars is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

    def note(self, message: str) -> None:
        """Print a note."""
        if not self._quiet:
            self._console.print(visible(message), markup=False)

    def _close(self, *, failed: bool = False) -> None:
        if not self._stage or self._quiet:
            return
        if self._bars is not None:
            task = self._tasks.get(self._stage)
            if task is not None and not failed:
                known = self._bars.tasks[task].total
                self._bars.update(task, total=known or 1, completed=known or 1)  # type: ignore[arg-type]
        elif not failed:
            seconds = time.perf_counter() - self._begun
            if seconds >= 0.05:
                print(f"{self._stage}: {seconds:.1f} s", file=sys.stderr, flush=True)
        self._stage = ""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a small table on stdout; the first column and words are aligned to the left, figures to the right.

    On a narrow terminal headings have several lines and words are folded, or each cell has a line; in a file or pipe a table has its
    full width.
    """
    from rich.table import Table
    from rich.text import Text

    terminal, console = sys.stdout.isatty(), stdout()
    shown = [[visible(cell) if terminal else cell for cell in row] for row in rows]
    words = [any(any(map(str.isalpha, row[i])) for row in shown) for i in range(len(columns))]

    def made(heads: Sequence[str]) -> Table:
        lined = Table(title=Text(visible(title)), title_justify="left", box=None, pad_edge=False)
        for i, head in enumerate(heads):  # cells as they are: a string would be read as markup
            left = i == 0 or all(any(map(str.isalpha, row[i])) for row in shown)
            lined.add_column(Text(head), justify="left" if left else "right", overflow="fold", no_wrap=not words[i])
        for row in shown:
            lined.add_row(*map(Text, row))
        return lined

    heads = [*map(visible, columns)]
    width = console.measure(made(heads), options=console.options.update(max_width=10_000))
    if not terminal:
        console.width = max(console.width, width.maximum)
    elif width.maximum > console.width:
        lines = [head.replace("/", "/\n").replace(" ", "\n") for head in heads]
        heads = [head if left else line for head, line, left in zip(heads, lines, words, strict=True)]
        width = console.measure(made(heads), options=console.options.update(max_width=10_000))
    if width.minimum <= console.width:
        console.print(made(heads))
        return
    console.print(Text(visible(title)))
    for row in shown:
        cells = Table(box=None, pad_edge=False, show_header=False)
        for head, cell in zip(columns, row, strict=True):
            cells.add_row(Text(visible(head)), Text(cell, overflow="fold"))
        console.print(cells)
