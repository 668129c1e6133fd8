"""Figures of a folder of instances, to check before training; a batch is in memory at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.instances.masking import IGNORED
from koktok.instances.token_facts import TokenFacts
from koktok.instances.write import manifest_of, record_batches

BINS = 8
"""Bins of the lengths."""


@dataclass
class InstanceStatistics:
    """The counts of each epoch, the uses of each id, and the lengths of the instances."""

    manifest: dict[str, Any]
    facts: TokenFacts
    epochs: list[Counter[str]]
    uses: NDArray[np.int64]
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def total(self, name: str) -> int:
        """Return a count of all epochs."""
        return sum(epoch[name] for epoch in self.epochs)

    @property
    def padding(self) -> float:
        """The share of padding if every instance is padded to the length."""
        return 1 - self.total("tokens") / max(1, self.total("instances") * int(self.manifest["plan"]["length"]))


def statistics_of(folder: str | Path) -> InstanceStatistics:
    """Count the instances of a folder."""
    manifest = manifest_of(folder)
    facts = TokenFacts.of_manifest(manifest)
    epochs = [Counter[str]() for _ in range(manifest["epochs"])]
    figures = InstanceStatistics(manifest, facts, epochs, np.zeros(len(facts.special), np.int64))
    for shard in manifest["shards"]:
        for batch in record_batches(folder, shard):
            epochs[shard["epoch"]].update(_count(batch, figures))
    return figures


def _count(batch: Any, figures: InstanceStatistics) -> dict[str, int]:
    plan, facts, columns = figures.manifest["plan"], figures.facts, set(batch.schema.names)
    text = ids = batch.column("input_ids").values.to_numpy()
    sizes = np.diff(batch.column("input_ids").offsets.to_numpy().astype(np.int64))
    figures.lengths += np.bincount(np.minimum((sizes - 1) * BINS // plan["length"], BINS - 1), minlength=BINS)
    counts = {"instances": len(sizes), "tokens": len(ids)}
    if "next_sentence_label" in columns:
        counts["unlike"] = int(batch.column("next_sentence_label").to_numpy().sum())
    if "labels" in columns:
        labels = batch.column("labels").values.to_numpy()
        masked = labels != IGNORED
        as_mask = masked & (ids == facts.roles.get("mask_token", -1))
        text = np.where(masked, labels, ids)
        random = masked & ~as_mask & (ids != labels)
        counts |= {"masked": int(masked.sum()), "as mask": int(as_mask.sum()), "random": int(random.sum())}
    special = facts.special[text]
    figures.uses += np.bincount(text[~special], minlength=len(figures.uses))
    return counts | {"specials": int(special.sum())}


Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows of a printed table."""


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "–"


def tables_of(figures: InstanceStatistics) -> list[Table]:
    """Return the figures as tables."""
    plan, text, epochs = figures.manifest["plan"], figures.manifest.get("text", {}), figures.epochs
    total, ordinary = figures.total("instances"), int(figures.facts.ordinary.sum())
    rows = [
        ["kind", plan["kind"]],
        ["instances", f"{total:,}"],
        ["epochs", f"{len(epochs):,}"],
        ["documents of the text", f"{text.get('n_documents', 0):,}"],
        ["tokens of the text", f"{text.get('n_tokens', 0):,}"],
        ["tokens of an instance, mean", f"{figures.total('tokens') / max(1, total):.1f}"],
        ["longest allowed", f"{plan['length']:,}"],
        ["padding, to that length", f"{100 * figures.padding:.1f} %"],
        ["ordinary pieces", f"{ordinary:,}"],
        ["of them in the text", _share(int((figures.uses > 0).sum()), ordinary)],
    ]
    columns = ["epoch"]
    by_epoch = [[str(i)] for i in range(len(epochs))]

    def add(column: str, cells: list[str]) -> None:
        columns.append(column)
        for row, cell in zip(by_epoch, cells, strict=True):
            row.append(cell)

    if figures.total("masked"):
        add("masked", [_share(e["masked"], e["tokens"] - e["specials"]) for e in epochs])
        for name in ("as mask", "random"):
            add(name, [_share(e[name], e["masked"]) for e in epochs])
    if plan["kind"] == "bert":
        add(
            "exchanged" if plan["pairs"] == "order" else "of two documents",
            [_share(e["unlike"], e["instances"]) for e in epochs],
        )
    step = plan["length"] / BINS
    lengths = [
        [f"{round(i * step) + 1}–{round((i + 1) * step)}", f"{n:,}", _share(n, total)]
        for i, n in enumerate(figures.lengths.tolist())
    ]
    tables = [("Instances", ["", "figure"], rows), ("Lengths", ["tokens", "instances", "share"], lengths)]
    return [*tables, ("Epochs", columns, by_epoch)] if len(columns) > 1 else tables
