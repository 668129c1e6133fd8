"""What the command line shows: progress on stderr, tables, coloured pieces. stdout is data, stderr is talk.

Text that is shown is somebody's, and may hold what a terminal obeys (colours, titles, the clipboard). On a terminal such
characters are spelled out; into a file or pipe data goes as it is.
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
    from rich.text import Text

__all__ = ["Talk", "counted", "print_line", "print_pieces", "stderr", "stdout", "write_utf8"]

PALETTE = ("black on #f6c177", "black on #9ccfd8", "black on #ebbcba", "black on #a3be8c", "black on #c4a7e7")
"""Five light backgrounds that differ in brightness as well, so that neighbours stay apart for colour-blind readers."""


def counted(n: int, noun: str) -> str:
    """A number with its noun, which is plural for any number but one.

    Examples
    --------
    >>> counted(1, "line"), counted(2000, "line"), counted(0, "line")
    ('1 line', '2,000 lines', '0 lines')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def stderr() -> Console:
    """The console for talk; colours only on a terminal, and not under NO_COLOR."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def stdout() -> Console:
    """The console for data; into a file or pipe a table is as wide as it wants to be."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


def write_utf8() -> None:
    r"""Let standard output take any character.

    Into a file or pipe it is UTF-8, whatever the system's own encoding is (CP949 on Korean Windows): koktok reads UTF-8 and
    nothing else, and no other encoding holds all of Korean. A terminal, and whoever sets `PYTHONIOENCODING`, gets that
    encoding, with ``\uXXXX`` for what it lacks and one line on stderr that says so.
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
    told: list[str] = []

    def handle(error: UnicodeError) -> tuple[str | bytes, int]:
        if isinstance(error, UnicodeEncodeError) and not told:
            told.append(error.encoding)
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


def print_pieces(pieces: Iterable[str]) -> None:
    """Print pieces side by side, a `|` between them and a dot below the line for a space; colours on a terminal."""
    shown = [piece.replace(" ", "·") for piece in pieces]
    if not sys.stdout.isatty():
        print("|".join(shown))
        return
    from rich.text import Text

    text = Text()
    for i, piece in enumerate(shown):
        text.append("|" if i else "")
        text.append(visible(piece), style=PALETTE[i % len(PALETTE)])
    stdout().print(text)


class Talk:
    """Progress of a long run, as one bar a stage on a terminal, or as one line a finished stage elsewhere.

    Use it as a context manager; `talk(stage, done, total)` is the callback that the library takes.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = stderr()
        self._bars: Progress | None = None
        self._tasks: dict[str, int] = {}
        self._stage = ""
        self._begun = time.perf_counter()

    def __enter__(self) -> Talk:
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
        """Tell how far a stage is."""
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
        """Say one thing."""
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
            print(f"{self._stage}: {seconds:.1f} s", file=sys.stderr, flush=True)
        self._stage = ""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A small table on stdout; the first column to the left, figures to the right."""
    from rich.table import Table
    from rich.text import Text

    def cell(text: str) -> Text:  # as it is: a string would be read as markup, and `[/b]` in a text be an error
        return Text(visible(text) if sys.stdout.isatty() else text)

    shown = Table(title=cell(title), title_justify="left", box=None, pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        shown.add_column(cell(column), justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*map(cell, row))
    stdout().print(shown)
