"""Encoders: a small BERT for each tokenizer, masked on the study's text and tuned on its labelled texts."""

from __future__ import annotations

import copy
import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from eval.study.data import Prepared, Stream
from eval.study.model import device
from eval.study.sizes import HOW, Size
from eval.study.train import Runs
from koktok.files import write_file

MASKED = 0.15
RATE = 1e-3
"""Of every tokenizer: no rate is swept, which PLAN.md says."""
EPOCHS = 3


def blanked(ids: np.ndarray, mask: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ids with 15 % of them chosen, of which 8 in 10 become the mask and 1 in 10 any id (BERT), and which were chosen."""
    chosen = random.random(ids.shape) < MASKED
    how = random.random(ids.shape)
    found = np.where(chosen & (how < 0.8), mask, ids)
    return np.where(chosen & (how >= 0.9), random.integers(0, mask, ids.shape), found), chosen


class Model:
    """A BERT and its masked head, whose rows are the embeddings."""

    def __init__(self, vocabulary: int, pad: int, seed: int, size: Size, positions: int) -> None:
        import transformers

        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=vocabulary, hidden_size=size.width, num_hidden_layers=size.layers,
            num_attention_heads=size.width // 32, intermediate_size=4 * size.width, max_position_embeddings=positions,
            pad_token_id=pad, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        self.device, self.pad, self.width = device(), pad, size.width
        self.bert = transformers.BertModel(config, add_pooling_layer=False).to(self.device)
        self.transform = nn.Sequential(nn.Linear(self.width, self.width), nn.GELU(), nn.LayerNorm(self.width)).to(
            self.device
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary, device=self.device))

    def hidden(self, ids: np.ndarray) -> Tensor:
        """Return the hidden states of rows of ids."""
        rows = torch.from_numpy(ids).to(self.device)
        states: Tensor = self.bert(input_ids=rows, attention_mask=(rows != self.pad).long()).last_hidden_state
        return states

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the scores of all ids for hidden states."""
        scores: Tensor = self.transform(hidden) @ self.bert.embeddings.word_embeddings.weight.T + self.bias
        return scores

    def parts(self) -> list[nn.Parameter]:
        """Return all parameters."""
        return [*self.bert.parameters(), *self.transform.parameters(), self.bias]


def optimizer_of(parameters: Sequence[nn.Parameter], rate: float, steps: int) -> tuple[Any, Any]:
    """AdamW whose rate rises for a tenth of the steps and falls to 0."""
    optimizer = torch.optim.AdamW(parameters, rate, weight_decay=0.01)
    warm = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    return optimizer, schedule


def padded(rows: Sequence[Sequence[int]], fill: int) -> np.ndarray:
    """Return rows of ids as one array."""
    found = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, ids in zip(found, rows, strict=True):
        row[: len(ids)] = ids
    return found


def mean_of(states: Tensor, rows: Sequence[tuple[list[int], int]]) -> Tensor:
    """Return the mean over the tokens of each row."""
    sizes = torch.tensor([len(ids) for ids, _ in rows], device=states.device)
    there = torch.arange(states.shape[1], device=states.device) < sizes[:, None]
    return (states * there[..., None]).sum(1) / sizes[:, None]


def tuned(model: Model, rows: Sequence[tuple[list[int], int]], classes: int, *, seed: int) -> tuple[Model, nn.Linear]:
    """Train a copy of the model and a head on labelled rows."""
    torch.manual_seed(seed)
    mine = copy.copy(model)
    mine.bert = copy.deepcopy(model.bert)
    head = nn.Linear(model.width, classes).to(model.device)
    optimizer, schedule = optimizer_of(
        [*mine.bert.parameters(), *head.parameters()], 5e-4, EPOCHS * math.ceil(len(rows) / 32)
    )
    order = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        by_length = sorted(order.permutation(len(rows)).tolist(), key=lambda i: len(rows[i][0]))
        batches = [by_length[i : i + 32] for i in range(0, len(rows), 32)]
        for k in order.permutation(len(batches)):
            some = [rows[i] for i in batches[k]]
            target = torch.tensor([label for _, label in some], device=mine.device)
            states = head(mine.hidden(padded([ids for ids, _ in some], mine.pad)))
            functional.cross_entropy(mean_of(states, some), target).backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
    return mine, head


def pretrained(runs: Runs, data: Prepared, seed: int) -> Model:
    """A model that has read the text of the equal-bytes arm."""
    shape, size = data.shape(runs.size), runs.size
    mask, pad = shape.vocabulary, shape.vocabulary + 1
    model, stream = Model(pad + 1, pad, seed, size, max(512, shape.context)), Stream(data.ids["train"], seed)
    steps, count = shape.steps(size, "bytes", shape), size.batch * shape.context
    optimizer, schedule = optimizer_of(model.parts(), RATE, steps)
    random = np.random.default_rng([seed, 1])
    for step in range(steps):
        ids = stream.take(step * count, count).astype(np.int64).reshape(-1, shape.context)
        blank, chosen = blanked(ids, mask, random)
        targets = torch.from_numpy(ids[chosen]).to(model.device)
        if not len(targets):
            continue
        hidden = model.hidden(blank)[torch.from_numpy(chosen).to(model.device)]
        functional.cross_entropy(model.logits(hidden), targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parts(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return model


def scores(model: Model, data: Prepared, seed: int) -> dict[str, float]:
    """The share of labelled texts that is right, by task and by how they are asked."""
    found = {}
    for task in (task for task in data.shared["answers"] if task != "prompts"):
        labels = data.shared["answers"][task]
        rows = [(ids.tolist(), label) for ids, label in zip(data.ids[f"{task}-train"], labels, strict=False)]
        mine, head = tuned(model, rows, max(labels) + 1, seed=seed)
        for how in HOW:
            asked = [
                (ids.tolist(), label) for ids, label in zip(data.ids[f"{task}-{how}"], labels[len(rows) :], strict=True)
            ]
            right = 0
            with torch.no_grad():
                for some in (asked[i : i + 100] for i in range(0, len(asked), 100)):
                    logits = mean_of(head(mine.hidden(padded([ids for ids, _ in some], mine.pad))), some)
                    right += sum(a == b for a, (_, b) in zip(logits.argmax(-1).tolist(), some, strict=True))
            found[f"{task}, {how}"] = right / len(asked)
    return found


def encoders(runs: Runs, names: Sequence[str], seeds: Sequence[int]) -> bool:
    """All of them, seed by seed, as far as the time reaches; whether it reached. One that is finished is kept."""
    for seed in seeds:
        for name in names:
            path = runs.work / "encoders" / f"{name}-{seed}.json"
            if path.exists():
                continue
            if time.monotonic() > runs.until:
                return False
            try:
                data = runs.prepared(name)
            except FileNotFoundError as error:
                print(f"{name}: not run: {error}", file=sys.stderr)
                continue
            found = scores(pretrained(runs, data, seed), data, seed)
            write_file(path, json.dumps(found).encode())
            print(f"{name}, seed {seed}: {found}", file=sys.stderr, flush=True)
    return True


def of_encoders(runs: Runs, name: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """What the finished ones found."""
    paths = [runs.work / "encoders" / f"{name}-{seed}.json" for seed in seeds]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
