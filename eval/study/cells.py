"""The cells of the size `cpu` (PLAN.md, part 3): what is run in which order, the name of each, and where finished ones lie."""

from __future__ import annotations

import json
import lzma
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from eval.peers import digest_of
from eval.study.rows import FIRST, ROWS
from eval.study.sizes import SWEEP_SEED, Size
from koktok.files import write_file

FORMULA: Final = 1
"""Raised where a figure changes: the name of a cell has this number in it."""
WARM, FALL = 40, 0.2
"""Steps of warm-up; the part of a branch in which the rate falls to 0."""
LAST: Final = "1"
"""The mark at the end of a run."""
KEPT: Final = Path(__file__).parents[1] / "reports" / "study-cpu"
"""Cells that came with the repository."""


@dataclass(frozen=True)
class Cell:
    """One run: `part` is `sweep`, `short` (up to the first mark) or `whole`."""

    row: str
    part: str
    seed: int
    rate: float


@dataclass(frozen=True)
class Turn:
    """A step of a run: which step of the text it reads, the factor of its rate, whether a branch begins with it, and whose end it is."""

    text: int
    factor: float
    begins: bool = False
    mark: float | None = None


def turns(steps: int, marks: Sequence[float]) -> list[Turn]:
    """A trunk at a constant rate, and for every mark a branch off it that ends there at a rate of 0.

    Examples
    --------
    >>> [(turn.text, turn.begins, turn.mark) for turn in turns(5, (0.6, 1.0))]
    [(0, False, None), (1, False, None), (2, True, 0.6), (2, False, None), (3, False, None), (4, True, 1.0)]
    """
    found, at = [], 0
    for mark in marks:
        end = round(mark * steps)
        fall = max(1, round(FALL * end))
        for k in range(at, end):
            factor = min(1.0, (k + 1) / WARM) * min(1.0, (end - k) / fall)
            found.append(Turn(k, factor, k == end - fall, mark if k == end - 1 else None))
        at = end - fall
    return found


class Cells:
    """The cells of a work folder, and those that came with the repository."""

    def __init__(self, size: Size, work: Path, kept: Path = KEPT) -> None:
        self.size, self.work, self.kept = size, work, kept

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What figures are of, with the rows of the work folder and those of the repository's cells, if both are of the same text."""
        found: dict[str, Any] = {}
        for place in (self.kept / "asked.json", self.work / "data" / "asked.json"):
            if place.exists():
                read = json.loads(place.read_text(encoding="utf-8"))
                rows = found.get("rows", {}) if found | {"rows": None} == read | {"rows": None} else {}
                found = read | {"rows": rows | read["rows"]}
        if not found:
            sys.exit(f"`{self.work}` has no data; first: python -m eval.study prepare --size cpu --work {self.work}")
        return found

    def is_here(self, row: str) -> bool:
        """Whether the row can be run in this work folder."""
        return (self.work / "data" / row / "ids.npz").exists()

    def keep(self) -> None:
        """Put finished cells, and what their figures are of, with those of the repository."""
        place = self.kept / "asked.json"
        before = json.loads(place.read_text(encoding="utf-8"))["rows"] if place.exists() else {}
        rows = self.asked["rows"]
        if other := [row for row in before if before[row]["arrays"] != rows.get(row, {}).get("arrays")]:
            print(
                f"other vocabularies or texts than the cells that were kept, which no longer count: {', '.join(other)}",
                file=sys.stderr,
            )
        write_file(place, json.dumps(self.asked, ensure_ascii=False).encode())
        for file in sorted((self.work / "cells").glob("*.json.xz")):
            write_file(self.kept / file.name, file.read_bytes())

    def name(self, cell: Cell) -> str:
        """The name of a cell's file: a digest of all that decides it."""
        of_size = [getattr(self.size, name) for name in ("layers", "width", "context", "batch", "bytes_read", "marks")]
        of_run = [cell.part, cell.seed, cell.rate, *([self.size.sweep] if cell.part == "sweep" else [])]
        of_row = [self.asked["text"], self.asked["rows"][cell.row]["arrays"]]
        return digest_of([json.dumps([FORMULA, WARM, FALL, of_size, of_row, of_run])])

    def done(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell; the short run is the beginning of the whole one."""
        if cell.row not in self.asked["rows"]:
            return None
        for folder in (self.work / "cells", self.kept):
            file = folder / f"{self.name(cell)}.json.xz"
            if file.exists():
                found: dict[str, Any] = json.loads(lzma.decompress(file.read_bytes()))
                return found
        return self.done(replace(cell, part="whole")) if cell.part == "short" else None

    def swept(self, row: str) -> str:
        """The row whose sweep decides the rate of a row."""
        return ROWS[row].like or row

    def rate(self, row: str) -> float | None:
        """The best rate of the sweep, when all its runs are done."""
        cells = [self.done(Cell(self.swept(row), "sweep", SWEEP_SEED, rate)) for rate in self.size.rates]
        bits = {found["rate"]: found["marks"][LAST]["dev"] for found in cells if found}
        return (
            min(bits, key=lambda rate: (not math.isfinite(bits[rate]), bits[rate])) if len(bits) == len(cells) else None
        )

    def cells(self, rows: str, seeds: int, part: str) -> Iterator[Cell]:
        """What is not done and can be run, in the order of the plan."""
        known = [row for row in ROWS if self.is_here(row) and re.search(rows, row)]
        runs = [(row, 0) for row in known]
        for some in ([row for row in known if row in FIRST], [row for row in known if row not in FIRST]):
            runs += [(row, seed) for seed in range(1, seeds) for row in some if not ROWS[row].tried]
        for row, seed in runs:
            rate = self.rate(row)
            sweep = [Cell(self.swept(row), "sweep", SWEEP_SEED, one) for one in self.size.rates]
            cells = sweep if rate is None else [Cell(row, "short" if ROWS[row].tried else part, seed, rate)]
            yield from (cell for cell in cells if self.is_here(cell.row) and self.done(cell) is None)
