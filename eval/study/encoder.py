"""Encoders: a small BERT for each tokenizer, masked on the study's text and tuned on its labelled texts."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from eval.masking import Model, mean_of, optimizer_of, padded, tuned
from eval.study.data import Prepared, Stream
from eval.study.sizes import HOW
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


def pretrained(runs: Runs, data: Prepared, seed: int) -> Model:
    """A model that has read the text of the equal-bytes arm."""
    shape, size = data.shape(runs.size), runs.size
    mask, pad = shape.vocabulary, shape.vocabulary + 1
    given = argparse.Namespace(width=size.width, layers=size.layers, positions=max(512, shape.context))
    model, stream = Model(pad + 1, pad, seed, given), Stream(data.ids["train"], seed)
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
        mine, head = tuned(model, rows, max(labels) + 1, whole=True, seed=seed, epochs=EPOCHS)
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
