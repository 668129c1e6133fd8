"""The runs: each goes on from its last checkpoint, and gives the same losses however often it was stopped."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from eval.study.data import Prepared, Stream
from eval.study.model import Llama, device, token_bits
from eval.study.sizes import ARMS, DECAY, REFERENCE, SWEEP, SWEEP_SEED, WARM, Cell, Shape, Size
from koktok.files import write_file

OFTEN = 60.0
"""Seconds between checkpoints."""


def loss_of(model: Llama, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Nats a token."""
    return functional.cross_entropy(model(ids).flatten(0, 1).float(), targets)


@cache
def compiled() -> Any:
    """`loss_of`, compiled once for each shape."""
    torch._dynamo.config.cache_size_limit = 64  # eleven vocabularies in one process
    return torch.compile(loss_of, dynamic=False)


class OutOfTimeError(Exception):
    """The minutes that were given are over; a checkpoint was written."""


@dataclass
class State:
    """A model in training."""

    model: Llama
    optimizer: torch.optim.AdamW
    step: int = 0
    losses: list[float] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """All that decides how it goes on."""
        held = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        held |= {"losses": self.losses, "random": torch.get_rng_state()}
        if device() == "cuda":
            held["cuda"] = torch.cuda.get_rng_state()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, lambda place: torch.save(held, place))

    def load(self, path: Path) -> None:
        """Go on from there."""
        held = torch.load(path, map_location=device(), weights_only=True)
        self.model.load_state_dict(held["model"])
        self.optimizer.load_state_dict(held["optimizer"])
        self.step, self.losses = held["step"], held["losses"]
        torch.set_rng_state(held["random"].cpu())
        if "cuda" in held:
            torch.cuda.set_rng_state(held["cuda"].cpu())


class Runs:
    """All cells of a size in a work folder."""

    def __init__(self, size: Size, work: Path, *, seconds: float = math.inf, compiled: bool = False) -> None:
        self.size, self.work, self.compiled = size, work, compiled
        self.until = time.monotonic() + seconds
        if device() == "cuda":  # of held-out text; training reads in bf16
            torch.set_float32_matmul_precision("high")
        self._kept: tuple[str, Prepared] | None = None

    # ── which cells there are ─────────────────────────────────────────────────────────────────────────────────────────

    def prepared(self, name: str) -> Prepared:
        """The data of a tokenizer; the last one stays in memory."""
        if self._kept is None or self._kept[0] != name:
            self._kept = (name, Prepared(self.work, name))
        return self._kept[1]

    def steps(self, cell: Cell) -> int:
        """How many a cell takes."""
        reference = Prepared(self.work, REFERENCE).shape(self.size)
        return self.prepared(cell.tokenizer).shape(self.size).steps(self.size, cell.arm, reference)

    def fork(self, cell: Cell) -> int:
        """The step from which on its rate falls."""
        return math.floor(self.steps(cell) * (1 - DECAY))

    def sweep(self, name: str) -> list[Cell]:
        """The runs that choose a rate."""
        return [Cell(name, SWEEP, SWEEP_SEED, rate) for rate in self.size.rates]

    def rate(self, name: str) -> float | None:
        """The rate that won; None where a run of the sweep is missing."""
        found = [self.done(cell) for cell in self.sweep(name)]
        ran = [row for row in found if row is not None and "why" not in row]
        if any(row is None for row in found) or not ran:
            return None
        return float(min(ran, key=lambda row: row["dev"])["cell"]["rate"])

    def cells(self, name: str, seed: int) -> list[Cell]:
        """The runs of a seed, the shorter arm first, so that the longer one finds its trunk; none without a rate."""
        rate = self.rate(name)
        if rate is None:
            return []
        arms = ARMS[:1] if name == REFERENCE else ARMS
        found = sorted((Cell(name, arm, seed, rate) for arm in arms), key=self.steps)
        if name == REFERENCE and not seed:
            found.append(Cell(name, "bytes", seed, rate, again=1))
        return found

    def place(self, cell: Cell) -> Path:
        """Its folder."""
        return self.work / "cells" / cell.key

    def done(self, cell: Cell) -> dict[str, Any] | None:
        """What a finished cell found."""
        path = self.place(cell) / "done.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def all(self, names: Sequence[str], seeds: Sequence[int]) -> Iterator[Cell]:
        """Sweeps first, then seed by seed."""
        for name in names:
            yield from self.sweep(name)
        for seed in seeds:
            for name in names:
                yield from self.cells(name, seed)

    # ── a cell ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, cell: Cell) -> dict[str, Any]:
        """Train, ask the held-out text, write down; what was finished is read."""
        if (found := self.done(cell)) is not None:
            return found
        begun, data = time.process_time(), self.prepared(cell.tokenizer)
        shape = data.shape(self.size)
        state = self.trained(cell, data, shape)
        place = self.place(cell)
        what: dict[str, Any] = {"cell": asdict(cell), "steps": state.step, "device": device()}
        what |= {"tokens": state.step * self.size.batch * shape.context, "bytes": round(state.step * shape.step_bytes)}
        what |= {"flops": state.step * shape.flops}
        write_file(place / "losses.jsonl", "".join(f"{json.dumps(loss)}\n" for loss in state.losses).encode())
        if math.isfinite(sum(state.losses)):
            what["dev"] = self.bits(state.model, data, "dev", shape)[0].sum() / data.shared["dev_bytes"]
            if cell.arm != SWEEP:
                bits, ends = self.bits(state.model, data, "test", shape)
                unknown = np.array(data.about["unknown_bits"])
                what["bits"] = (np.add.reduceat(bits, ends[:-1]) + unknown).tolist()
                write_file(place / "model.pt", lambda path: torch.save(state.model.state_dict(), path))
        else:
            what["why"] = "its loss was not finite"
        what["seconds"] = time.process_time() - begun
        write_file(place / "done.json", json.dumps(what).encode())
        (place / "state.pt").unlink(missing_ok=True)
        if all(self.done(other) for other in self.siblings(cell)):
            shutil.rmtree(self.trunk(cell, 0).parent, ignore_errors=True)
        return what

    def bits(self, model: Llama, data: Prepared, name: str, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """Bits of each token of held-out lines, and where the lines end."""
        lists = data.ids[name]
        stream = torch.from_numpy(np.concatenate([[data.end], lists.flat.astype(np.int64)]))  # behind an end
        model.eval()
        return token_bits(model, stream, shape.context), lists.ends

    def trained(self, cell: Cell, data: Prepared, shape: Shape) -> State:
        """From the nearest checkpoint to the last step."""
        total, fork = self.steps(cell), self.fork(cell)
        warm = max(1, round(WARM * shape.steps(self.size, "bytes", shape)))
        torch.manual_seed(cell.seed)
        model = Llama(self.size, shape.vocabulary).to(device())
        options = {"betas": (0.9, 0.95), "weight_decay": 0.1, "fused": True}
        state = State(model, torch.optim.AdamW(model.parameters(), cell.rate, **options))
        if (best := self.nearest(cell)) is not None:
            state.load(best)
        forks = self.forks(cell)
        stream = Stream(data.ids["train"], cell.seed)
        loss = compiled() if self.compiled else loss_of
        saved, count = time.monotonic(), self.size.batch * shape.context
        waiting: list[torch.Tensor] = []
        model.train()
        while state.step < total:
            if state.step in forks:
                self.kept(state, waiting).save(self.trunk(cell, state.step))
            rate = cell.rate * min((state.step + 1) / warm, 1.0, (total - state.step) / (total - fork))
            for group in state.optimizer.param_groups:
                group["lr"] = rate
            ids = torch.from_numpy(stream.take(state.step * count, count + 1).astype(np.int64)).to(device())
            waiting.append(self.one(state, loss, ids[:-1].view(-1, shape.context), ids[1:]))
            state.step += 1
            now = time.monotonic()
            if now > self.until or now - saved > OFTEN:
                self.kept(state, waiting).save(self.place(cell) / "state.pt")
                saved = now
                if now > self.until:
                    raise OutOfTimeError
        return self.kept(state, waiting)

    @staticmethod
    def one(state: State, loss: Any, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """One step; its loss in nats a token."""
        with torch.autocast("cuda", torch.bfloat16) if device() == "cuda" else nullcontext():
            found: torch.Tensor = loss(state.model, ids, targets)
        found.backward()
        torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
        state.optimizer.step()
        state.optimizer.zero_grad()
        return found.detach()

    @staticmethod
    def kept(state: State, waiting: list[torch.Tensor]) -> State:
        """The losses as numbers: asked for seldom, since a GPU waits for it."""
        state.losses += torch.stack(waiting).tolist() if waiting else []
        waiting.clear()
        return state

    # ── checkpoints ───────────────────────────────────────────────────────────────────────────────────────────────────

    def forks(self, cell: Cell) -> set[int]:
        """Steps at which a sibling that is longer will want to go on; they are the siblings' forks that lie on the way."""
        if cell.arm == SWEEP or cell.tokenizer == REFERENCE:
            return set()
        mine = self.fork(cell)
        return {mine} if any(self.fork(other) > mine for other in self.siblings(cell)) else set()

    def siblings(self, cell: Cell) -> list[Cell]:
        """The other arm."""
        return [Cell(**{**asdict(cell), "arm": arm}) for arm in ARMS if arm != cell.arm]

    def trunk(self, cell: Cell, step: int) -> Path:
        """Where the state before the rate falls is kept."""
        return self.work / "trunks" / cell.trunk / f"{step}.pt"

    def nearest(self, cell: Cell) -> Path | None:
        """The checkpoint that is farthest on the way."""
        own = self.place(cell) / "state.pt"
        if own.exists():
            return own
        if cell.arm == SWEEP:
            return None
        before = [
            path for path in (self.work / "trunks" / cell.trunk).glob("*.pt") if int(path.stem) <= self.fork(cell)
        ]
        return max(before, key=lambda path: int(path.stem), default=None)


def train(runs: Runs, names: Sequence[str], seeds: Sequence[int]) -> bool:
    """All cells, as far as the time reaches; whether it reached.

    A tokenizer that was not made is left out here, and told in the report.
    """
    there = []
    for name in names:
        try:
            Prepared(runs.work, name)
            there.append(name)
        except FileNotFoundError as error:
            print(f"{name}: not run: {error}", file=sys.stderr)
    try:
        for cell in runs.all(there, seeds):
            if runs.done(cell) is None:
                if time.monotonic() > runs.until:
                    return False
                found = runs.run(cell)
                told = f"{found['dev']:.4f} bits a byte" if "dev" in found else found["why"]
                print(
                    f"{cell.key}: {found['steps']:,} steps, {told}, {found['seconds']:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    except OutOfTimeError:
        return False
    return True
