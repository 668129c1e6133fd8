"""Megatron's `.bin` and `.idx` of a packed folder (megatron/core/datasets/indexed_dataset.py).

Megatron masks by itself. Its BERT and T5 data sets read a sentence as a sequence; its GPT data set reads a document with its end
token. Each shard becomes one pair of files, so a killed run resumes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from koktok.errors import UsageError
from koktok.files import Checkpoint, resumable
from koktok.instances.packing import Packed
from koktok.model.tokens import Tokens
from koktok.token_files import write_megatron


def to_megatron(packed: Packed, out: str | Path, *, documents: bool = False, force: bool = False) -> dict[str, Any]:
    """Write a packed folder as Megatron's files, one pair for each shard, and return the manifest."""
    end = packed.manifest["roles"].get("eos_token")
    if documents and end is None:
        raise UsageError(
            "--kind lm requires the eos_token, and the tokenizer has none",
            hint="koktok export TOKENIZER --to hf --style gpt -o FOLDER, and FOLDER in its place",
        )
    dtype = np.dtype(np.uint16 if packed.manifest["vocab_size"] <= 1 << 16 else np.int32)
    run = {"megatron": 1, "sequences": "documents" if documents else "sentences", "packed": packed.digest()}

    def make(notes: Checkpoint) -> dict[str, Any]:
        for i in range(len(notes.parts), len(packed)):
            shard, note = packed.shard(i), packed.manifest["shards"][i]
            if documents:
                at = shard.documents[1:]
                tokens = Tokens(
                    np.insert(shard.ids, at, end).astype(dtype), shard.documents + np.arange(len(shard.documents))
                )
                edges = np.arange(len(tokens) + 1)
            else:
                ends = np.concatenate([np.zeros(1, np.int64), shard.ends])
                tokens, edges = Tokens(shard.ids.astype(dtype), ends), shard.sentences
            write_megatron(notes.folder / note["name"], tokens, edges)
            names = [f"{note['name']}.{suffix}" for suffix in ("bin", "idx")]
            notes.add({"name": note["name"], "sequences": len(tokens)}, names)
        return {"n_sequences": sum(part["sequences"] for part in notes.parts)}

    return resumable(out, run, make, force=force)
