"""What the command line shows: progress on stderr, tables, coloured pieces. stdout is data, stderr is talk."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

__all__ = ["Talk", "coloured", "counted", "stderr", "stdout"]

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


def coloured(pieces: Iterable[str]) -> Text:
    """Pieces side by side, each on its own background, a leading space shown as a dot below the line.

    Where the stream has no colours the borders would vanish, so a `|` stands between pieces then.
    """
    from rich.text import Text

    text = Text()
    plain = stdout().color_system is None
    for i, piece in enumerate(pieces):
        if plain and i:
            text.append("|")
        text.append(piece.replace(" ", "·"), style="" if plain else PALETTE[i % len(PALETTE)])
    return text


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
                TextColumn("{task.description:<10}"),
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
            self._console.print(message, markup=False)

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

    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        shown.add_column(column, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    stdout().print(shown)
