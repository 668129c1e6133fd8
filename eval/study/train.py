"""The runs of the plan, each kept when it is done: the sweep of rates, decoders, encoders and their tuning."""

from __future__ import annotations

import copy
import json
import lzma
import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from eval.peers import digest_of
from eval.study.data import Ints, Prepared, Stream, folds
from eval.study.model import Transformer, begun, device
from eval.study.sizes import (
    DECAY,
    EPOCHS,
    FOLDS,
    MASKED,
    ROWS,
    SWEEP_SEED,
    TUNING_BATCH,
    WARM,
    Size,
)  # fmt: skip
from koktok.files import write_file

WINDOWS = 16
"""Windows of held-out text that are read at once."""
KEPT: Final = Path(__file__).parents[1] / "reports" / "study-encoders"
"""Whole runs that came with the repository."""


@dataclass(frozen=True)
class Cell:
    """One run: `part` is `sweep`, `tuning` (the rates of tuning, on one fold) or `whole`."""

    kind: str
    row: str
    part: str
    seed: int
    rate: float

    @property
    def key(self) -> str:
        """The name of its file."""
        return "-".join([self.kind, self.row, self.part, str(self.seed), f"{self.rate:g}"])


class Runs:
    """The cells of a size and their results in the work folder, and those that came with the repository."""

    def __init__(self, size: Size, work: Path, kept: Path = KEPT) -> None:
        self.size, self.work, self.kept = size, work, kept

    def done(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell."""
        file = self.work / "cells" / f"{cell.key}.json"
        if file.exists():
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        elif (self.work / "data" / cell.row).exists() and (file := self.place(cell)).exists():
            found = json.loads(lzma.decompress(file.read_bytes()))
        else:
            return None
        return found

    def place(self, cell: Cell) -> Path:
        """Where a result is kept in the repository: its name has a digest of the model, its training, the texts and the vocabulary."""
        data = Prepared(self.work, cell.row)
        names = ("layers", "width", "context", "batch", "bytes_read", "tuned", "tasks", "tuning")
        of_size = [getattr(self.size, name) for name in names]
        of_size += [WARM, DECAY, MASKED, FOLDS, TUNING_BATCH, EPOCHS]
        of_row = [data.shared["text"], data.shared["tuned_bytes"], data.about["digest"]]
        return self.kept / f"{cell.key}-{digest_of([json.dumps([of_size, of_row])])}.json.xz"

    def keep(self) -> None:
        """Put the whole runs of the work folder with those of the repository."""
        for file in sorted((self.work / "cells").glob("*-whole-*.json")):
            found = json.loads(file.read_text(encoding="utf-8"))
            cell = Cell(**{name: found[name] for name in Cell.__dataclass_fields__})
            write_file(self.place(cell), lzma.compress(file.read_bytes()))

    def rate(self, kind: str, row: str) -> float:
        """The best rate of the sweep."""
        if len(self.size.rates) == 1:
            return self.size.rates[0]
        cells = {rate: self.done(Cell(kind, row, "sweep", SWEEP_SEED, rate)) or {} for rate in self.size.rates}
        return min(cells, key=lambda rate: cells[rate].get("loss", math.inf))

    def tuning_rates(self, row: str) -> dict[str, float]:
        """The best rate of tuning by task."""
        if len(self.size.tuning) == 1:
            return dict.fromkeys(self.size.tasks, self.size.tuning[0])
        found = self.done(Cell("encoder", row, "tuning", SWEEP_SEED, self.rate("encoder", row))) or {}
        return {task: max(self.size.tuning, key=lambda rate: found[task][f"{rate:g}"]) for task in self.size.tasks}

    def cells(self, rows: str, seeds: int) -> Iterator[Cell]:
        """In the order of the plan: the sweep, then seed by seed; a rate is asked for when its sweep is done."""
        chosen = [(kind, row) for kind in self.size.kinds for row in ROWS[kind] if re.search(rows, row)]
        for kind, row in chosen:
            for rate in self.size.rates if len(self.size.rates) > 1 else ():
                yield Cell(kind, row, "sweep", SWEEP_SEED, rate)
        for kind, row in chosen:
            if kind == "encoder" and len(self.size.tuning) > 1:
                yield Cell(kind, row, "tuning", SWEEP_SEED, self.rate(kind, row))
        for seed in range(seeds):
            for kind, row in chosen:
                yield Cell(kind, row, "whole", seed, self.rate(kind, row))

    def run(self, cell: Cell) -> dict[str, Any]:
        """Train, ask and keep."""
        begun = time.monotonic()
        data = Prepared(self.work, cell.row)
        found: dict[str, Any] = asdict(cell)
        model = self.pretrained(cell, data)
        loss = held_loss(model, self.size, data, "dev", cell)
        if not math.isfinite(float(loss.sum())):
            found["why"] = "its loss was not finite"
        elif cell.part == "sweep":
            found["loss"] = float(loss.mean())
        elif cell.kind == "decoder":
            bits = held_loss(model, self.size, data, "test", cell)
            ends = data.lists["test"].ends[:-1]
            found["bits"] = (np.add.reduceat(bits, ends) + np.array(data.about["unknown_bits"])).tolist()
        elif cell.part == "tuning":
            for task in self.size.tasks:
                found[task] = {
                    f"{rate:g}": self.tuned(model, data, task, cell.seed, rate, 1)[1] for rate in self.size.tuning
                }
        else:
            rates = self.tuning_rates(cell.row)
            found |= {task: self.tuned(model, data, task, cell.seed, rates[task], FOLDS)[0] for task in self.size.tasks}
        found["seconds"] = time.monotonic() - begun
        write_file(self.work / "cells" / f"{cell.key}.json", json.dumps(found).encode())
        return found

    def pretrained(self, cell: Cell, data: Prepared) -> Transformer:
        """A model that has read its text."""
        size, per_token = self.size, data.about["bytes_per_token"]
        torch.manual_seed(cell.seed)
        model = begun(size, data, causal=cell.kind == "decoder")
        steps = size.steps(per_token, size.sweep if cell.part == "sweep" else 1.0)
        context = size.tokens(per_token)
        stream, random = Stream(data.lists["train"], cell.seed), np.random.default_rng([cell.seed, 1])
        for step in optimized(model, cell.rate, steps):
            ids = stream.take(step * size.batch * context, size.batch * context + 1)
            with step_of(model):
                lost(model, data, ids, context, cell.kind, random).mean().backward()
        return model

    def tuned(self, model: Transformer, data: Prepared, task: str, seed: int, rate: float, asked: int) -> tuple[list[Any], float]:  # fmt: skip
        """What a copy of the model and a head answer to each text, and the share of tokens or answers that are right."""
        examples = Examples(data, task)
        answers: list[Any] = [None] * len(examples)
        right: list[float] = []
        groups = data.shared["articles"] if task == "answers" else range(len(examples))
        for train, test in folds(list(groups), seed, FOLDS)[:asked]:
            torch.manual_seed(seed)
            copied = copy.deepcopy(model)
            head = nn.Linear(self.size.width, examples.classes).to(device())
            both = nn.ModuleList([copied, head])
            random = np.random.default_rng(seed)
            order = [batch for _ in range(EPOCHS[task]) for batch in examples.batches(random.permutation(train))]
            for step in optimized(both, rate, len(order)):
                with step_of(both):
                    examples.loss(head(copied(*examples.padded(order[step]))), order[step]).backward()
            with torch.no_grad():
                for batch in examples.batches(test):
                    scores = head(copied(*examples.padded(batch))).float().cpu()
                    for k, row in zip(batch, scores, strict=True):
                        answers[k] = examples.answer(int(k), row.numpy())
                        right.append(examples.right(int(k), answers[k]))
        return answers, float(np.mean(right))


def optimized(model: nn.Module, rate: float, steps: int) -> Iterator[int]:
    """Steps, each followed by one of AdamW; the rate rises, stays, and falls to 0."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    warm, fall = max(1, round(WARM * steps)), max(1, round(DECAY * steps))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / warm, 1.0, (steps - step) / fall)
        yield step
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def step_of(model: nn.Module) -> Any:
    """The precision of a step."""
    model.train()
    return torch.autocast("cuda", torch.bfloat16) if device() == "cuda" else nullcontext()


def lost(model: Transformer, data: Prepared, ids: Ints, context: int, kind: str, random: np.random.Generator) -> Tensor:
    """Nats of the tokens that are asked: of a decoder each but the first, of an encoder the masked ones."""
    if kind == "decoder":
        rows, targets = torch.from_numpy(ids[:-1]).view(-1, context), torch.from_numpy(ids[1:])
        hidden = model(rows.to(device())).flatten(0, 1)
        return functional.cross_entropy(model.scores(hidden).float(), targets.to(device()), reduction="none")
    blank, chosen = blanked(ids[:-1], data.end + 1, random)
    hidden = model(torch.from_numpy(blank).view(-1, context).to(device())).flatten(0, 1)
    masked = torch.from_numpy(np.flatnonzero(chosen)).to(device())
    targets = torch.from_numpy(ids[:-1][chosen]).to(device())
    return functional.cross_entropy(model.scores(hidden[masked]).float(), targets, reduction="none")


def blanked(ids: Ints, mask: int, random: np.random.Generator) -> tuple[Ints, np.ndarray]:
    """Ids with 15 % of them chosen, of which 8 in 10 become the mask and 1 in 10 any id (BERT), and which were chosen."""
    chosen = random.random(ids.shape) < MASKED
    chosen.flat[0] |= not chosen.any()
    how = random.random(ids.shape)
    found = np.where(chosen & (how < 0.8), mask, ids)
    return np.where(chosen & (how >= 0.9), random.integers(0, mask, ids.shape), found), chosen


def held_loss(model: Transformer, size: Size, data: Prepared, name: str, cell: Cell) -> np.ndarray:
    """Of a decoder the bits of each held-out token, with half a context before it at least; of an encoder those of masked ones."""
    flat = data.lists[name].flat.astype(np.int64)
    context = size.tokens(data.about["bytes_per_token"])
    model.eval()
    with torch.no_grad():
        if cell.kind == "decoder":
            return token_bits(model, np.concatenate([[data.end], flat]), context)
        random = np.random.default_rng(0)
        whole = flat[: max(1, len(flat) // context) * context]
        rows = [np.append(part, 0) for part in np.array_split(whole, max(1, len(whole) // context))]
        nats = [lost(model, data, row, len(row) - 1, "encoder", random).cpu().numpy() for row in rows]
        return np.concatenate(nats) / math.log(2)


def token_bits(model: Any, stream: Ints, context: int) -> np.ndarray:
    """Bits of all tokens of a stream but the first, each predicted once."""
    bits, windows = np.zeros(len(stream) - 1), [*windows_of(len(stream), context)]
    for k in range(0, len(windows), WINDOWS):
        some = windows[k : k + WINDOWS]
        longest = max(stop - start for start, _, stop in some)
        ids = torch.tensor(np.stack([np.pad(stream[a:c], (0, longest - (c - a))) for a, _, c in some])).to(device())
        scores = model.scores(model(ids[:, :-1])).float().flatten(0, 1)
        losses = functional.cross_entropy(scores, ids[:, 1:].flatten(), reduction="none").view(len(some), -1)
        for row, (start, first, stop) in zip(losses.double().cpu().numpy(), some, strict=True):
            bits[first - 1 : stop - 1] = row[first - start - 1 : stop - start - 1] / math.log(2)
    return bits


def windows_of(length: int, context: int) -> Iterator[tuple[int, int, int]]:
    """Windows over a text: where each begins, the first place that it predicts, and where it stops; half a context is seen before it.

    Examples
    --------
    >>> [*windows_of(11, 4)]
    [(0, 1, 5), (3, 5, 8), (6, 8, 11)]
    """
    at = 1
    while at < length:
        start = max(0, at - context // 2)
        stop = min(start + context + 1, length)
        yield start, at, stop
        at = stop


class Examples:
    """The texts of a task: sentences with labels of their tokens, or questions before paragraphs with the tokens of the answer."""

    def __init__(self, data: Prepared, task: str) -> None:
        lists, self.task = data.lists, task
        self.ids = [row.tolist() for row in lists[f"{task}-ids"]]
        self.labels = [row.tolist() for row in lists[f"{task}-labels"]]
        self.before = (
            [row.tolist() for row in lists["questions"]] if task == "answers" else [[data.end]] * len(self.ids)
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def classes(self) -> int:
        """What a head scores: outside, and beginning and inside of each type; or first and last."""
        return 2 if self.task == "answers" else 1 + 2 * ((max(map(max, self.labels)) + 1) // 2)

    def batches(self, order: Ints) -> list[Ints]:
        """Texts of like length together, in an order of their own."""
        near = np.array(sorted(order.tolist(), key=lambda k: (len(self.ids[k]) + len(self.before[k])) // 16))
        some = [near[k : k + TUNING_BATCH] for k in range(0, len(near), TUNING_BATCH)]
        return [some[k] for k in np.random.default_rng(len(some)).permutation(len(some))]

    def padded(self, batch: Ints) -> tuple[Tensor, Tensor]:
        """Rows of ids, and their lengths."""
        rows = [self.before[k] + self.ids[k] for k in batch.tolist()]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        return ids.to(device()), torch.tensor(list(map(len, rows))).to(device())

    def loss(self, scores: Tensor, batch: Ints) -> Tensor:
        """Cross entropy of the labels, or of the first and the last token of the answer."""
        total = torch.zeros((), device=scores.device)
        for k, row in zip(batch.tolist(), scores.float(), strict=True):
            mine = row[len(self.before[k]) : len(self.before[k]) + len(self.ids[k])]
            if self.task == "entities":
                total = total + functional.cross_entropy(mine, torch.tensor(self.labels[k], device=mine.device))
            else:
                ends = torch.tensor(self.answer_of(k), device=mine.device)
                total = total + functional.cross_entropy(mine.T, ends)
        return total / len(batch)

    def answer_of(self, k: int) -> list[int]:
        """The first and the last token that touch the answer."""
        touched = [i for i, label in enumerate(self.labels[k]) if label]
        return [touched[0], touched[-1]]

    def answer(self, k: int, scores: np.ndarray) -> list[int]:
        """Labels, or the first and the last token of the best span."""
        mine = scores[len(self.before[k]) : len(self.before[k]) + len(self.ids[k])]
        if self.task == "entities":
            return [int(label) for label in mine.argmax(axis=1)]
        best = np.maximum.accumulate(mine[::-1, 1])[::-1]  # of the ends from here on
        first = int((mine[:, 0] + best).argmax())
        return [first, first + int(mine[first:, 1].argmax())]

    def right(self, k: int, answer: Sequence[int]) -> float:
        """The share of right tokens that are in entities, or whether the answer is right."""
        if self.task == "answers":
            return float(list(answer) == self.answer_of(k))
        pairs = [(a, b) for a, b in zip(answer, self.labels[k], strict=True) if a or b]
        return float(np.mean([a == b for a, b in pairs])) if pairs else 1.0


def train(size: Size, work: Path, rows: str, seeds: int, seconds: float) -> bool:
    """All cells, as far as the time reaches; whether it reached."""
    runs, until = Runs(size, work), time.monotonic() + seconds
    for cell in runs.cells(rows, seeds):
        if runs.done(cell) is None:
            if time.monotonic() > until:
                return False
            found = runs.run(cell)
            print(f"{cell.key}: {found.get('why', 'done')}, {found['seconds']:.0f} s", file=sys.stderr, flush=True)
    return True
