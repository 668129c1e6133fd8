"""Instances in the terminal: coloured pieces, with their masks and labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from koktok.errors import visible
from koktok.instances.masking import IGNORED
from koktok.instances.write import manifest_of, record_batches

Token = tuple[str, str]
"""A piece and its part: text, special, mask (with its label in brackets), random (with its label after `←`), kept."""


def rows_of(folder: str | Path, n: int) -> Iterator[dict[str, Any]]:
    """Yield the first `n` rows of a folder of instances."""
    for shard in manifest_of(folder)["shards"]:
        for batch in record_batches(folder, shard):
            for row in batch.slice(0, n).to_pylist():
                yield row
                n -= 1
            if n <= 0:
                return


def tokens_of_row(folder: str | Path, row: dict[str, Any]) -> list[Token]:
    """Return the pieces of a row, each with its part; spaces are shown as ▁."""
    manifest = manifest_of(folder)
    names = json.loads((Path(folder) / "tokens.json").read_text(encoding="utf-8"))
    special, mask = set(manifest["specials"]), manifest["roles"].get("mask_token")
    labels = row.get("labels") or []
    target: list[int] = []
    if len(labels) != len(row["input_ids"]) or manifest["plan"]["kind"] in ("lm", "t5"):
        target = labels if manifest["plan"]["kind"] == "t5" else []
        labels = [IGNORED] * len(row["input_ids"])

    def name(i: int) -> str:
        return visible(names[i].replace(" ", "▁"))

    found: list[Token] = []
    for i, label in zip(row["input_ids"], labels, strict=True):
        if label == IGNORED:
            found.append((name(i), "special" if i in special else "text"))
        elif i == mask:
            found.append((f"[{name(label)}]", "mask"))
        elif i == label:
            found.append((f"{name(i)}=", "kept"))
        else:
            found.append((f"{name(i)}←{name(label)}", "random"))
    return (
        found + [("→", "special")] * bool(target) + [(name(i), "special" if i in special else "mask") for i in target]
    )
