"""The decoders of the size `cpu` (PLAN.md, part 3): cells that can be stopped anywhere, and are found on every machine."""

from __future__ import annotations

import copy
import json
import lzma
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock, Timeout

from eval.kneser_ney import UNKNOWN_BITS
from eval.machine import processor
from eval.peers import digest_of
from eval.study.asked import COLUMNS
from eval.study.data import Lists, Prepared, Stream
from eval.study.model import MeanNats, Transformer, device, nats
from eval.study.rows import FIRST, ROWS
from eval.study.sizes import SWEEP_SEED, Size
from eval.study.train import windows_of
from koktok.files import write_file

FORMULA: Final = 1
"""Raised where a figure changes: the name of a cell has this number in it."""
WARM, FALL = 40, 0.2
"""Steps of warm-up; the part of a branch in which the rate falls to 0."""
KEEP: Final = 120.0
"""Seconds after which a cell in progress is kept once more."""
TOKENS: Final = 4096
"""Tokens of lines that are asked at once."""
LAST: Final = "1"
"""The mark at the end of a run."""
LOSSES: Final = 20
"""Steps whose mean loss is kept."""
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


class Run:
    """A cell in progress: a model, its optimizer, and how far it is."""

    def __init__(self, size: Size, data: Prepared, cell: Cell) -> None:
        self.size, self.data, self.cell = size, data, cell
        vocabulary, per_token = data.about["vocabulary"], data.about["bytes_per_token"]
        torch.manual_seed(cell.seed)
        self.model = Transformer(size, rounded(vocabulary), causal=True, shares=shares(data, vocabulary)).to(device())
        matrices = [weight for weight in self.model.blocks.parameters() if weight.dim() > 1]
        others = [self.model.embedding.weight, *(w for w in self.model.parameters() if w.dim() == 1)]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, cell.rate, betas=(0.9, 0.95), fused=True)
        self.context = size.tokens(per_token)
        self.steps = size.steps(per_token, size.sweep if cell.part == "sweep" else 1.0)
        marks = {"sweep": (1.0,), "short": size.marks[:1], "whole": size.marks}[cell.part]
        self.turns = turns(self.steps, marks)
        self.at, self.seconds = 0, 0.0
        self.trunk: dict[str, Any] | None = None
        self.marks: dict[str, Any] = {}
        self.losses: list[float] = []
        self.stream = Stream(data.lists["train"], cell.seed)

    def state(self) -> dict[str, Any]:
        """Model and optimizer."""
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def back(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def keep(self, place: Path) -> None:
        """All that the run needs to go on."""
        fresh = place.with_suffix(".tmp")
        names = ("at", "seconds", "trunk", "marks", "losses")
        torch.save(self.state() | {name: getattr(self, name) for name in names}, fresh)
        fresh.replace(place)

    def go_on(self, place: Path) -> None:
        """From where it was kept."""
        found = torch.load(place, weights_only=False)
        self.back({name: found.pop(name) for name in ("model", "optimizer")})
        self.__dict__.update(found)

    def to_the_end(self, place: Path, until: float) -> bool:
        """Take the remaining turns; whether the time reached."""
        kept = time.monotonic()
        clock, before = time.process_time(), self.seconds
        while self.at < len(self.turns):
            self.take(self.turns[self.at])
            self.at += 1
            self.seconds = before + time.process_time() - clock
            if time.monotonic() > min(until, kept + KEEP) and self.at < len(self.turns):
                self.keep(place)
                kept = time.monotonic()
                if kept > until:
                    return False
        return True

    def take(self, turn: Turn) -> None:
        """One step, and the figures at a mark, after which the run is on its trunk again."""
        if turn.begins:
            self.trunk = copy.deepcopy(self.state())
        ids = torch.from_numpy(
            self.stream.take(turn.text * self.size.batch * self.context, self.size.batch * self.context + 1)
        )
        ids = ids.to(device())
        for group in self.optimizer.param_groups:
            group["lr"] = self.cell.rate * turn.factor
        self.model.train()
        hidden = self.model(ids[:-1].view(self.size.batch, self.context)).flatten(0, 1)
        loss = MeanNats.apply(hidden, self.model.embedding.weight, self.model.shares, ids[1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(round(float(loss.detach()), 4))
        if turn.mark is not None:
            self.marks[f"{turn.mark:.3g}"] = self.chosen_by() if self.cell.part == "sweep" else self.figures()
            if self.at + 1 < len(self.turns) and self.trunk is not None:
                self.back(self.trunk)
            self.trunk = None

    def chosen_by(self) -> dict[str, Any]:
        """Bits of the lines that choose."""
        return {"dev": float(self.bits("dev").sum())}

    def figures(self) -> dict[str, Any]:
        """Bits of what is asked, by unit and column, and of each pair and prompt."""
        lists, units = self.data.lists, np.array(self.data.lists["units"].flat, dtype=np.int64)
        bits = self.bits("test") + UNKNOWN_BITS * lists["unknown"].flat
        places = units.repeat(np.diff(lists["test"].ends)) * COLUMNS + lists["columns"].flat
        sums = np.bincount(places, bits, (int(units.max()) + 1) * COLUMNS).reshape(-1, COLUMNS)
        good, bad, whole, cut = (self.line_bits(name) for name in ("good", "bad", "prompts", "cut"))
        return {
            "flops": self.size.flops("decoder", self.data.about["vocabulary"], self.data.about["bytes_per_token"])
            * (self.turns[self.at].text + 1) * self.size.batch * self.context,
            "bits": sums.round(2).tolist(),
            "pairs": (bad - good).round(2).tolist(),
            "prompts": np.stack([whole, cut], axis=1).round(2).tolist(),
        }  # fmt: skip

    def line_bits(self, name: str) -> npt.NDArray[np.float64]:
        """Bits of each line; 0 of one that could not be encoded."""
        sums = np.concatenate([[0.0], np.cumsum(self.bits(name))])
        return np.diff(sums[self.data.lists[name].ends])

    def bits(self, name: str) -> npt.NDArray[np.float64]:
        """Bits of each token of each line, which is asked by itself."""
        self.model.eval()
        with torch.no_grad():
            return bits_of(self.model, self.data.lists[name], self.data.end, self.context)


def rounded(vocabulary: int) -> int:
    """Ids in whole cache lines: matrix products of 32,001 columns take a tenth longer; those added have no probability."""
    return -(-vocabulary // 64) * 64


def shares(data: Prepared, vocabulary: int) -> torch.Tensor:
    """The logarithms of the shares of the ids in the training text."""
    counts = np.bincount(data.lists["train"].flat, minlength=vocabulary) + 0.3
    found = torch.full((rounded(vocabulary),), -math.inf)
    found[:vocabulary] = torch.from_numpy(np.log(counts / counts.sum())).float()
    return found


def bits_of(model: Transformer, rows: Lists, end: int, context: int) -> npt.NDArray[np.float64]:
    """Bits of each token of each row behind the end of a line, long rows window by window; rows of like length are asked at once."""
    found = np.zeros(len(rows.flat))
    texts = [np.concatenate([[end], row]).astype(np.int64) for row in rows]
    jobs = [(b - a, k, a, first, b) for k, text in enumerate(texts) for a, first, b in windows_of(len(text), context)]
    jobs.sort()
    while jobs:
        longest = jobs[-1][0]
        some, jobs = jobs[-max(1, TOKENS // longest) :], jobs[: -max(1, TOKENS // longest)]
        ids = np.zeros((len(some), longest), dtype=np.int64)
        asked = np.zeros((len(some), longest - 1), dtype=bool)
        for row, (length, k, a, first, b) in enumerate(some):
            ids[row, :length] = texts[k][a:b]
            asked[row, first - a - 1 : length - 1] = True
        sent, wanted = torch.from_numpy(ids).to(device()), torch.from_numpy(asked).to(device())
        hidden = model(sent[:, :-1])[wanted]
        each = nats(
            hidden, model.embedding.weight, model.shares, sent[:, 1:][wanted]
        ).double().cpu().numpy() / math.log(2)
        at = 0
        for _, k, _, first, b in some:
            begin = int(rows.ends[k]) + first - 1
            found[begin : begin + b - first] = each[at : at + b - first]
            at += b - first
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
            runs += [(row, seed) for seed in range(1, seeds) for row in some]
        for row, seed in runs:
            rate = self.rate(row)
            sweep = [Cell(self.swept(row), "sweep", SWEEP_SEED, one) for one in self.size.rates]
            cells = sweep if rate is None else [Cell(row, part, seed, rate)]
            yield from (cell for cell in cells if self.is_here(cell.row) and self.done(cell) is None)

    def run(self, cell: Cell, until: float) -> dict[str, Any] | None:
        """Train from where it was kept, ask, and keep; None where the time ended."""
        name = self.name(cell)
        place, result = self.work / "cells" / f"{name}.part", self.work / "cells" / f"{name}.json.xz"
        run = Run(self.size, Prepared(self.work, cell.row), cell)
        if place.exists():
            run.go_on(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not run.to_the_end(place, until):
            return None
        means = [round(float(np.mean(run.losses[k : k + LOSSES])), 4) for k in range(0, len(run.losses), LOSSES)]
        found = asdict(cell) | {
            "steps": run.steps, "tokens": run.steps * self.size.batch * run.context, "marks": run.marks, "losses": means,
            "seconds": round(run.seconds, 1), "threads": torch.get_num_threads(), "processor": processor(), "torch": torch.__version__,
        }  # fmt: skip
        write_file(result, lzma.compress(json.dumps(found).encode()))
        place.unlink(missing_ok=True)
        return found


def train(size: Size, work: Path, rows: str, seeds: int, seconds: float, part: str, threads: int) -> bool:
    """All cells, as far as the time reaches; whether it reached. Several processes may share a work folder."""
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    until = time.monotonic() + seconds
    while (cell := _next(Cells(size, work), rows, seeds, part)) is not None:
        cells = Cells(size, work)
        with cell[1]:
            found = cells.run(cell[0], until) if cells.done(cell[0]) is None else {"seconds": 0}
        if found is None:
            return False
        print(f"{cell[0]}: {found['seconds']:.0f} s", file=sys.stderr, flush=True)
    return True


def _next(cells: Cells, rows: str, seeds: int, part: str) -> tuple[Cell, FileLock] | None:
    """The first cell that no other process is at, and its lock."""
    for cell in cells.cells(rows, seeds, part):
        place = cells.work / "cells" / f"{cells.name(cell)}.lock"
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        return cell, lock
    return None
