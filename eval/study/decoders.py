"""The decoders of the size `cpu` (PLAN.md, part 3): runs that can be stopped anywhere."""

from __future__ import annotations

import copy
import json
import lzma
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from filelock import FileLock, Timeout

from eval.kneser_ney import UNKNOWN_BITS
from eval.machine import processor
from eval.study.asked import COLUMNS
from eval.study.cells import Cell, Cells, Turn, turns
from eval.study.data import Lists, Prepared, Stream
from eval.study.model import MeanNats, Transformer, begun, device, nats
from eval.study.sizes import Size
from eval.study.train import windows_of
from koktok.files import write_file

KEEP: Final = 120.0
"""Seconds after which a cell in progress is kept once more."""
TOKENS: Final = 4096
"""Tokens of lines that are asked at once."""
LOSSES: Final = 20
"""Steps whose mean loss is kept."""


class Run:
    """A cell in progress: a model, its optimizer, and how far it is."""

    def __init__(self, size: Size, data: Prepared, cell: Cell) -> None:
        self.size, self.data, self.cell = size, data, cell
        torch.manual_seed(cell.seed)
        self.model = begun(size, data, causal=True)
        matrices = [weight for weight in self.model.blocks.parameters() if weight.dim() > 1]
        others = [self.model.embedding.weight, *(w for w in self.model.parameters() if w.dim() == 1)]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, cell.rate, betas=(0.9, 0.95), fused=True)
        self.context = size.tokens(data.about["bytes_per_token"])
        self.steps = size.steps(data.about["bytes_per_token"], size.sweep if cell.part == "sweep" else 1.0)
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


def ran(cells: Cells, cell: Cell, until: float) -> dict[str, Any] | None:
    """Train from where it was kept, ask, and keep; None where the time ended."""
    name = cells.name(cell)
    place, result = cells.work / "cells" / f"{name}.part", cells.work / "cells" / f"{name}.json.xz"
    run = Run(cells.size, Prepared(cells.work, cell.row), cell)
    if place.exists():
        run.go_on(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    if not run.to_the_end(place, until):
        return None
    means = [round(float(np.mean(run.losses[k : k + LOSSES])), 4) for k in range(0, len(run.losses), LOSSES)]
    found = asdict(cell) | {
        "steps": run.steps, "tokens": run.steps * cells.size.batch * run.context, "marks": run.marks, "losses": means,
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
            found = ran(cells, cell[0], until) if cells.done(cell[0]) is None else {"seconds": 0}
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
