"""Instances for other trainers: the hdf5 files that NVIDIA's BERT reads, and Megatron's `.bin` and `.idx`.

This file adds: two layouts that others have fixed. Each file is made of one shard, so that a run that was killed goes on.

*hdf5* (NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT): `input_ids`, `input_mask`, `segment_ids`, all padded to
the length of the plan; `masked_lm_positions` and `masked_lm_ids`, padded with 0, which is why position 0 must be a special token;
`next_sentence_labels`, 1 for a random one. For instances of kind `bert` and `mlm` that were written with their masks.

*Megatron* (megatron/core/datasets/indexed_dataset.py): the packed layer, without masks, which Megatron makes itself. A sequence is
a sentence, of documents, as its BERT and T5 data sets want it; for `lm` it is a document closed by the end token, as its GPT data set
wants it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from koktok.bulk.arrays import TokenArray
from koktok.bulk.shards import write_megatron
from koktok.errors import ArtifactError, MissingExtraError, UsageError
from koktok.files import Checkpoint, resumable
from koktok.instances.masking import IGNORED
from koktok.instances.packing import Packed, arrow
from koktok.instances.write import manifest_of

_CHUNK = 1 << 12  # rows of a chunk that is compressed as one


def batches_of(folder: str | Path, shard: dict[str, Any]) -> Iterator[Any]:
    """The record batches of a shard of instances, mapped."""
    pa = arrow()
    path = Path(folder) / f"{shard['name']}.arrow"
    try:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)
    except (OSError, pa.ArrowInvalid) as error:
        raise ArtifactError(f"`{path}` is damaged: {error}", hint="koktok instances TOKENIZER TEXT ...") from error


def to_hdf5(folder: str | Path, out: str | Path, *, force: bool = False) -> dict[str, Any]:
    """Write instances as NVIDIA's hdf5 files, one a shard; returns the manifest.

    Parameters
    ----------
    folder : str or Path
        Of `write_instances`, of kind `bert` or `mlm`, with masks.
    out : str or Path
        A folder that is not there yet, or empty.
    force : bool
        Whether other files that koktok wrote there may be replaced.

    Raises
    ------
    UsageError
        For instances of another kind, or without masks; for a tokenizer that puts nothing before a text.
    MissingExtraError
        Without h5py.
    """
    try:
        import h5py
    except ImportError:
        raise MissingExtraError("h5py", "hdf5") from None
    manifest = manifest_of(folder)
    plan = manifest["plan"]
    if plan["kind"] not in ("bert", "mlm") or not manifest["masked"]:
        raise UsageError(
            f"hdf5 holds masked instances of kind bert or mlm, and `{folder}` holds "
            f"{plan['kind']}{'' if manifest['masked'] else ', without masks'}",
            hint="koktok instances TOKENIZER TEXT --kind bert --most 20 -o FOLDER",
        )
    pad, length = manifest["roles"].get("pad_token"), plan["length"]
    if pad is None:
        raise UsageError("hdf5 wants a padding token", hint="koktok export TOKENIZER --to hf --style bert -o FOLDER")
    batches = (batch for shard in manifest["shards"] for batch in batches_of(folder, shard))
    counts = (int(np.bincount(_masked(batch)[0], minlength=1).max()) for batch in batches)
    most = plan["masking"]["most"] or max(1, *counts)  # a file knows no rows of nothing
    run = {"hdf5": 1, "length": length, "max_predictions_per_seq": most, "instances": _digest(manifest)}

    def make(notes: Checkpoint) -> dict[str, Any]:
        for shard in manifest["shards"][len(notes.parts) :]:
            name = f"{shard['name']}.hdf5"
            with h5py.File(notes.folder / name, "w") as file:
                parts = [_padded(batch, length, most, pad) for batch in batches_of(folder, shard)]
                for key in parts[0]:
                    values = np.concatenate([part[key] for part in parts])
                    file.create_dataset(key, data=values, compression="gzip")
            notes.add({"name": shard["name"], "instances": shard["instances"]}, [name])
        return {"n_instances": sum(part["instances"] for part in notes.parts)}

    return resumable(out, run, make, force=force)


def to_megatron(packed: Packed, out: str | Path, *, documents: bool = False, force: bool = False) -> dict[str, Any]:
    """Write a packed folder as Megatron's files, one pair a shard; returns the manifest.

    Parameters
    ----------
    packed : Packed
    out : str or Path
        A folder that is not there yet, or empty.
    documents : bool
        A sequence is a document with the end token behind it, not a sentence.
    force : bool
        Whether other files that koktok wrote there may be replaced.

    Raises
    ------
    UsageError
        When documents have to be closed and the tokenizer has no end token.
    """
    end = packed.manifest["roles"].get("eos_token")
    if documents and end is None:
        raise UsageError(
            "documents for a causal model want an eos_token, and the tokenizer has none",
            hint="koktok export TOKENIZER --to hf --style gpt -o FOLDER, and FOLDER in its place",
        )
    dtype = np.dtype(np.uint16 if packed.manifest["vocab_size"] <= 1 << 16 else np.int32)
    run = {"megatron": 1, "sequences": "documents" if documents else "sentences", "packed": packed.digest()}

    def make(notes: Checkpoint) -> dict[str, Any]:
        for i in range(len(notes.parts), len(packed)):
            shard, told = packed.shard(i), packed.manifest["shards"][i]
            if documents:
                at = shard.documents[1:]
                tokens = TokenArray(
                    np.insert(shard.ids, at, end).astype(dtype), shard.documents + np.arange(len(shard.documents))
                )
                edges = np.arange(len(tokens) + 1)
            else:
                ends = np.concatenate([np.zeros(1, np.int64), shard.ends])
                tokens, edges = TokenArray(shard.ids.astype(dtype), ends), shard.sentences
            write_megatron(notes.folder / told["name"], tokens, edges)
            names = [f"{told['name']}.{suffix}" for suffix in ("bin", "idx")]
            notes.add({"name": told["name"], "sequences": len(tokens)}, names)
        return {"n_sequences": sum(part["sequences"] for part in notes.parts)}

    return resumable(out, run, make, force=force)


def _digest(manifest: dict[str, Any]) -> str:
    shards = [file["sha256"] for shard in manifest["shards"] for file in shard["files"].values()]
    return json.dumps(shards)


def _flat(batch: Any, name: str) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = batch.column(name).values.to_numpy()
    return values


def _masked(batch: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of every masked token its row, its place in the row, and its label."""
    offsets = batch.column("labels").offsets.to_numpy().astype(np.int64)
    labels = _flat(batch, "labels")
    at = np.flatnonzero(labels != IGNORED)
    row = np.searchsorted(offsets, at, side="right") - 1
    return row, at - offsets[row], labels[at]


def _padded(batch: Any, length: int, most: int, pad: int) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of NVIDIA's files, by name."""
    offsets = batch.column("input_ids").offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    n = len(sizes)
    there = np.arange(length) < sizes[:, None]
    found = {
        "input_ids": np.full((n, length), pad, np.int32),
        "input_mask": there.astype(np.int8),
        "segment_ids": np.zeros((n, length), np.int8),
        "masked_lm_positions": np.zeros((n, most), np.int32),
        "masked_lm_ids": np.zeros((n, most), np.int32),
        "next_sentence_labels": np.zeros(n, np.int8),
    }
    found["input_ids"][there] = _flat(batch, "input_ids")[: offsets[-1]]
    if "token_type_ids" in batch.schema.names:
        found["segment_ids"][there] = _flat(batch, "token_type_ids")[: offsets[-1]]
    if "next_sentence_label" in batch.schema.names:
        found["next_sentence_labels"][:] = batch.column("next_sentence_label").to_numpy()
    row, place, label = _masked(batch)
    if not place.all():
        raise UsageError(
            "the first token of an instance is masked, and NVIDIA's files take position 0 for padding",
            hint="koktok export TOKENIZER --to hf --style bert -o FOLDER",
        )
    column = np.arange(len(row)) - np.searchsorted(row, row)
    found["masked_lm_positions"][row, column] = place
    found["masked_lm_ids"][row, column] = label
    return found
