"""What lies in a folder of instances, in figures: what a person checks before a machine reads it for a week.

Counts over all shards, a batch at a time, so that memory does not grow with the text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from koktok.instances.masking import IGNORED
from koktok.instances.write import manifest_of, record_batches

BINS = 8
"""Parts of the length in the histogram."""

LONG = 6
"""Words of so many tokens and more are told together."""


@dataclass
class Epoch:
    """Counts of an epoch."""

    instances: int = 0
    tokens: int = 0
    specials: int = 0
    masked: int = 0
    as_mask: int = 0
    as_random: int = 0
    words: int = 0
    whole: int = 0
    partly: int = 0
    unlike: int = 0
    targets: int = 0


@dataclass
class InstanceStatistics:
    """Figures of a folder."""

    manifest: dict[str, Any]
    epochs: list[Epoch] = field(default_factory=list)
    lengths: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    by_tokens: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros((LONG, 2), np.int64))
    uses: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.zeros(0, np.int64))
    ordinary: int = 0

    @property
    def padding(self) -> float:
        """Share of the places that are padding where every instance is padded to the length."""
        places = sum(epoch.instances for epoch in self.epochs) * int(self.manifest["plan"]["length"])
        return 1 - sum(epoch.tokens for epoch in self.epochs) / places if places else 0.0

    @property
    def used(self) -> float:
        """Share of the ordinary pieces that the text uses."""
        return int((self.uses > 0).sum()) / self.ordinary if self.ordinary else 0.0

    def share_of_most(self, n: int) -> float:
        """Share of the tokens that the `n` most frequent ids make."""
        total = int(self.uses.sum())
        return int(np.sort(self.uses)[::-1][:n].sum()) / total if total else 0.0


def statistics_of(folder: str | Path) -> InstanceStatistics:
    """Count what lies in a folder of instances."""
    manifest = manifest_of(folder)
    names = json.loads((Path(folder) / "tokens.json").read_text(encoding="utf-8"))
    tables = _Tables(manifest, names)
    found = InstanceStatistics(manifest, [Epoch() for _ in range(manifest["epochs"])])
    found.uses = np.zeros(manifest["vocab_size"], np.int64)
    found.ordinary = int(tables.ordinary.sum())
    for shard in manifest["shards"]:
        for batch in record_batches(folder, shard):
            _count(batch, tables, found, found.epochs[shard["epoch"]])
    return found


class _Tables:
    """By id: whether it is special, ordinary, and whether it begins a whitespace word."""

    def __init__(self, manifest: dict[str, Any], names: list[str]) -> None:
        marked = any(name.startswith("##") for name in names)
        self.special = np.zeros(manifest["vocab_size"], np.bool_)
        self.special[manifest["specials"]] = True
        self.ordinary = np.ones(manifest["vocab_size"], np.bool_)
        for first, last in manifest["excluded"]:
            self.ordinary[first:last] = False
        self.opens = np.array([not name.startswith("##") if marked else name[:1].isspace() for name in names])
        self.mask = manifest["roles"].get("mask_token", -1)
        self.kind = manifest["plan"]["kind"]


def _count(batch: Any, tables: _Tables, found: InstanceStatistics, epoch: Epoch) -> None:
    offsets = batch.column("input_ids").offsets.to_numpy().astype(np.int64)
    ids = batch.column("input_ids").values.to_numpy()
    sizes = np.diff(offsets)
    length = found.manifest["plan"]["length"]
    found.lengths += np.bincount(np.minimum((sizes - 1) * BINS // length, BINS - 1), minlength=BINS)
    epoch.instances += len(sizes)
    epoch.tokens += len(ids)
    names = batch.schema.names
    if "next_sentence_label" in names:
        epoch.unlike += int(batch.column("next_sentence_label").to_numpy().sum())
    labels = np.full(len(ids), IGNORED, np.int32)
    if tables.kind == "t5":
        targets = batch.column("labels").values.to_numpy()
        epoch.targets += len(targets)
        found.uses += np.bincount(targets[~tables.special[targets]], minlength=len(found.uses))
    elif tables.kind != "lm" and "labels" in names:
        labels = batch.column("labels").values.to_numpy()
    masked = labels != IGNORED
    text = np.where(masked, labels, ids)
    special = tables.special[text]
    epoch.specials += int(special.sum())
    found.uses += np.bincount(text[~special], minlength=len(found.uses))
    epoch.masked += int(masked.sum())
    as_mask = masked & (ids == tables.mask)
    epoch.as_mask += int(as_mask.sum())
    epoch.as_random += int((masked & ~as_mask & (ids != labels)).sum())
    # A word begins where its piece says so, and behind a special token.
    plain = np.flatnonzero(~special)
    if not len(plain):
        return
    behind = np.append(True, special[:-1])
    behind[offsets[:-1][sizes > 0]] = True
    begins = (tables.opens[text] | behind)[plain]
    begins[0] = True
    word = np.cumsum(begins) - 1
    tokens, chosen = np.bincount(word), np.bincount(word, weights=masked[plain]).astype(np.int64)
    epoch.words += len(tokens)
    epoch.whole += int((chosen == tokens).sum())
    epoch.partly += int(((chosen > 0) & (chosen < tokens)).sum())
    row = np.minimum(tokens, LONG) - 1
    found.by_tokens[:, 0] += np.bincount(row, minlength=LONG)
    found.by_tokens[:, 1] += np.bincount(row[chosen == tokens], minlength=LONG)


Table = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows, as they are printed."""


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "–"


def tables_of(found: InstanceStatistics) -> list[Table]:
    """The figures as tables."""
    plan, text = found.manifest["plan"], found.manifest.get("text", {})
    total = sum(epoch.instances for epoch in found.epochs)
    tokens = sum(epoch.tokens for epoch in found.epochs)
    rows = [
        ["kind", plan["kind"]],
        ["instances", f"{total:,}"],
        ["epochs", f"{len(found.epochs):,}"],
        ["documents of the text", f"{text.get('n_documents', 0):,}"],
        ["tokens of the text", f"{text.get('n_tokens', 0):,}"],
        ["tokens of an instance, mean", f"{tokens / max(1, total):.1f}"],
        ["longest allowed", f"{plan['length']:,}"],
        ["padding, to that length", f"{100 * found.padding:.1f} %"],
    ]
    tables: list[Table] = [("Instances", ["", "figure"], rows)]
    if any(epoch.masked for epoch in found.epochs):
        tables += _masking(found)
    if plan["kind"] == "bert":
        rows = [[str(i), _share(epoch.unlike, epoch.instances)] for i, epoch in enumerate(found.epochs)]
        name = "exchanged" if plan["pairs"] == "order" else "second text of another document"
        tables.append(("Pairs", ["epoch", name], rows))
    if plan["kind"] == "t5":
        rows = [[str(i), f"{e.targets / max(1, e.instances):.1f}"] for i, e in enumerate(found.epochs)]
        tables.append(("Targets", ["epoch", "tokens, mean"], rows))
    step = plan["length"] / len(found.lengths)
    rows = [
        [f"{round(i * step) + 1}–{round((i + 1) * step)}", f"{n:,}", _share(n, total)]
        for i, n in enumerate(found.lengths.tolist())
    ]
    tables.append(("Lengths", ["tokens", "instances", "share"], rows))
    rows = [
        ["ordinary pieces that the text uses", f"{100 * found.used:.1f} %"],
        ["ordinary pieces", f"{found.ordinary:,}"],
        *([f"tokens of the {n:,} most frequent", f"{100 * found.share_of_most(n):.1f} %"] for n in (10, 100, 1000)),
    ]
    tables.append(("Vocabulary", ["", "figure"], rows))
    return tables


def _masking(found: InstanceStatistics) -> list[Table]:
    columns = ["epoch", "masked", "as mask", "random", "kept", "whole words", "in part", "words each"]
    rows = [
        [
            str(i),
            _share(e.masked, e.tokens - e.specials),
            _share(e.as_mask, e.masked),
            _share(e.as_random, e.masked),
            _share(e.masked - e.as_mask - e.as_random, e.masked),
            _share(e.whole, e.words),
            _share(e.partly, e.words),
            f"{(e.whole + e.partly) / max(1, e.instances):.1f}",
        ]
        for i, e in enumerate(found.epochs)
    ]
    words = [
        [f"{n + 1}{'+' if n + 1 == len(found.by_tokens) else ''}", f"{all_:,}", _share(whole, all_)]
        for n, (all_, whole) in enumerate(found.by_tokens.tolist())
    ]
    return [
        ("Masking", columns, rows),
        ("Whitespace words by their tokens", ["tokens", "words", "masked whole"], words),
    ]
