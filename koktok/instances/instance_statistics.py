"""Figures of a folder of instances, to check before training; a batch is in memory at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from koktok.instances.masking import IGNORED
from koktok.instances.token_facts import TokenFacts
from koktok.instances.write import manifest_of, record_batches

BINS = 8
"""Bins of the lengths."""


@dataclass
class Epoch:
    """The counts of an epoch."""

    instances: int = 0
    tokens: int = 0
    specials: int = 0
    masked: int = 0
    as_mask: int = 0
    as_random: int = 0
    unlike: int = 0
    targets: int = 0


@dataclass
class InstanceStatistics:
    """The figures of a folder."""

    manifest: dict[str, Any]
    epochs: list[Epoch]
    uses: np.ndarray[Any, np.dtype[np.int64]]
    ordinary: int
    lengths: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @property
    def padding(self) -> float:
        """The share of padding if every instance is padded to the length."""
        places = sum(epoch.instances for epoch in self.epochs) * int(self.manifest["plan"]["length"])
        return 1 - sum(epoch.tokens for epoch in self.epochs) / places if places else 0.0


def statistics_of(folder: str | Path) -> InstanceStatistics:
    """Count the instances of a folder."""
    manifest = manifest_of(folder)
    facts = TokenFacts.of_manifest(manifest)
    epochs = [Epoch() for _ in range(manifest["epochs"])]
    figures = InstanceStatistics(manifest, epochs, np.zeros(len(facts.special), np.int64), int(facts.ordinary.sum()))
    for shard in manifest["shards"]:
        for batch in record_batches(folder, shard):
            _count(batch, facts, figures, epochs[shard["epoch"]])
    return figures


def _count(batch: Any, facts: TokenFacts, figures: InstanceStatistics, epoch: Epoch) -> None:
    ids = batch.column("input_ids").values.to_numpy()
    sizes = np.diff(batch.column("input_ids").offsets.to_numpy().astype(np.int64))
    plan, names = figures.manifest["plan"], batch.schema.names
    figures.lengths += np.bincount(np.minimum((sizes - 1) * BINS // plan["length"], BINS - 1), minlength=BINS)
    epoch.instances += len(sizes)
    epoch.tokens += len(ids)
    if "next_sentence_label" in names:
        epoch.unlike += int(batch.column("next_sentence_label").to_numpy().sum())
    text = ids
    if plan["kind"] == "t5":
        targets = batch.column("labels").values.to_numpy()
        epoch.targets += len(targets)
        figures.uses += np.bincount(targets[~facts.special[targets]], minlength=len(figures.uses))
    elif plan["kind"] != "lm" and "labels" in names:
        labels = batch.column("labels").values.to_numpy()
        masked = labels != IGNORED
        as_mask = masked & (ids == facts.roles.get("mask_token", -1))
        text = np.where(masked, labels, ids)
        epoch.masked += int(masked.sum())
        epoch.as_mask += int(as_mask.sum())
        epoch.as_random += int((masked & ~as_mask & (ids != labels)).sum())
    special = facts.special[text]
    epoch.specials += int(special.sum())
    figures.uses += np.bincount(text[~special], minlength=len(figures.uses))


Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows of a printed table."""


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "–"


def tables_of(figures: InstanceStatistics) -> list[Table]:
    """Return the figures as tables."""
    plan, text, epochs = figures.manifest["plan"], figures.manifest.get("text", {}), figures.epochs
    total, tokens = sum(e.instances for e in epochs), sum(e.tokens for e in epochs)
    rows = [
        ["kind", plan["kind"]],
        ["instances", f"{total:,}"],
        ["epochs", f"{len(epochs):,}"],
        ["documents of the text", f"{text.get('n_documents', 0):,}"],
        ["tokens of the text", f"{text.get('n_tokens', 0):,}"],
        ["tokens of an instance, mean", f"{tokens / max(1, total):.1f}"],
        ["longest allowed", f"{plan['length']:,}"],
        ["padding, to that length", f"{100 * figures.padding:.1f} %"],
        ["ordinary pieces", f"{figures.ordinary:,}"],
        ["of them in the text", _share(int((figures.uses > 0).sum()), figures.ordinary)],
    ]
    tables: list[Table] = [("Instances", ["", "figure"], rows)]
    if any(e.masked for e in epochs):
        rows = [
            [
                str(i),
                _share(e.masked, e.tokens - e.specials),
                _share(e.as_mask, e.masked),
                _share(e.as_random, e.masked),
                _share(e.masked - e.as_mask - e.as_random, e.masked),
            ]
            for i, e in enumerate(epochs)
        ]
        tables.append(("Masking", ["epoch", "masked", "as mask", "random", "kept"], rows))
    if plan["kind"] == "bert":
        rows = [[str(i), _share(e.unlike, e.instances)] for i, e in enumerate(epochs)]
        name = "exchanged" if plan["pairs"] == "order" else "second text of another document"
        tables.append(("Pairs", ["epoch", name], rows))
    if plan["kind"] == "t5":
        rows = [[str(i), f"{e.targets / max(1, e.instances):.1f}"] for i, e in enumerate(epochs)]
        tables.append(("Targets", ["epoch", "tokens, mean"], rows))
    step = plan["length"] / BINS
    rows = [
        [f"{round(i * step) + 1}–{round((i + 1) * step)}", f"{n:,}", _share(n, total)]
        for i, n in enumerate(figures.lengths.tolist())
    ]
    tables.append(("Lengths", ["tokens", "instances", "share"], rows))
    return tables
