"""Instances in files: Arrow files that `datasets.load_dataset` opens, written shard by shard by any number of workers.

A shard holds the instances of one epoch from a number on; a killed run resumes with the first unfinished shard. `README.md` has the
configuration of the Hub's data sets, `manifest.json` the origin of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from koktok.bulk.encoder import workers_of
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import Checkpoint, checked, read_manifest, resumable
from koktok.instances.packing import Packed, arrow
from koktok.instances.plan import InstanceBatch, Instances, Plan
from koktok.progress import OnProgress
from koktok.recipe import Options

LAYOUT = 2
"""Version of the folder."""

SHARD_INSTANCES = 1 << 16
"""Some 270 MB of instances of 512 tokens with their labels."""

_BATCH = 1 << 12  # instances of a record batch

_CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: shard-*.arrow
---

# Training instances, made by koktok

`datasets.load_dataset("this-folder")`. manifest.json has their origin and settings.
"""


class WriteOptions(Options):
    """Settings of a folder of instances."""

    epochs: Annotated[int, Field(ge=1)] = 1
    """Number of epochs; each is shuffled, paired and masked differently."""
    shard_instances: Annotated[int, Field(ge=1)] = SHARD_INSTANCES
    """Instances per file."""


def write_instances(
    packed: Packed,
    plan: Plan,
    out: str | Path,
    *,
    masked: bool = True,
    workers: int | None = None,
    on_progress: OnProgress | None = None,
    force: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Write the instances of all epochs into a folder, or without `masked` one epoch with `marks` for `KoktokCollator`.

    A stopped run resumes. `options` are those of `WriteOptions`; the files are the same for any number of workers.
    """
    arrow()
    settings = WriteOptions(**options)
    epochs, shard_instances = settings.epochs, settings.shard_instances
    if not masked and epochs > 1:
        raise UsageError(
            "--dynamic writes one epoch, because only masks differ between epochs", hint="leave out --epochs"
        )
    run = {
        "instances": LAYOUT,
        "plan": plan.model_dump(mode="json"),
        "epochs": epochs,
        "masked": masked,
        "shard_instances": shard_instances,
        "packed": packed.digest(),
        **{
            key: packed.manifest[key]
            for key in ("tokenizer", "kind", "vocab_size", "roles", "specials", "excluded", "cuts")
        },
        "koktok": version("koktok"),
    }
    instances = Instances(packed, plan, masked=masked)

    def make(notes: Checkpoint) -> dict[str, Any]:
        at, counts = 0, []
        for epoch in range(epochs):
            instances.set_epoch(epoch)
            n = len(instances)
            counts.append(n)
            jobs = range(0, n, shard_instances)
            begun = [(at + k, first) for k, first in enumerate(jobs) if at + k >= len(notes.parts)]
            at += len(jobs)

            def work(job: tuple[int, int], n: int = n, epoch: int = epoch) -> dict[str, Any]:
                number, first = job
                name = f"shard-{number:05d}"
                last = min(first + shard_instances, n)
                _write_shard(notes.folder / f"{name}.arrow", instances, first, last)
                return {"name": name, "epoch": epoch, "first": first, "instances": last - first}

            with ThreadPoolExecutor(workers_of(workers)) as pool:
                for note in pool.map(work, begun):
                    notes.add(note, [f"{note['name']}.arrow"])
                    if on_progress:
                        on_progress("instances", sum(counts[:-1]) + note["first"] + note["instances"], n * epochs)
        if not notes.parts:
            raise InputError("the text holds nothing to make an instance of", hint="wc FILES")
        (notes.folder / "tokens.json").write_bytes((packed.folder / "tokens.json").read_bytes())
        (notes.folder / "README.md").write_text(_CARD, encoding="utf-8")
        text = {key: packed.manifest[key] for key in ("n_documents", "n_tokens", "sources")}
        return {"n_instances": counts, "text": text}

    return resumable(out, run, make, force=force)


_MOST_IDS = 1 << 24
"""Maximum number of ids of a vocabulary."""


@dataclass(frozen=True)
class _Plan:
    kind: str
    length: int


@dataclass(frozen=True)
class _Shard:
    epoch: int
    instances: int


@dataclass(frozen=True)
class _Manifest:
    """The checked keys of a manifest."""

    plan: _Plan
    epochs: int
    masked: bool
    vocab_size: int
    roles: dict[str, int]
    specials: list[int]
    excluded: list[tuple[int, int]]
    n_instances: list[int]
    shards: list[_Shard]


def manifest_of(folder: str | Path) -> dict[str, Any]:
    """Read the manifest of a folder of instances."""
    hint = "koktok instances TOKENIZER TEXT --out FOLDER"
    manifest = read_manifest(folder, "instances", LAYOUT, wrong="holds no instances", hint=hint)
    checked_manifest = checked(_Manifest, json.dumps(manifest), f"the manifest of `{folder}`", hint)
    size, ids = (
        checked_manifest.vocab_size,
        [
            *checked_manifest.roles.values(),
            *checked_manifest.specials,
            *(i for span in checked_manifest.excluded for i in span),
        ],
    )
    if not 0 < size <= _MOST_IDS or not all(0 <= i <= size for i in ids) or checked_manifest.plan.length < 1:
        raise ArtifactError(
            f"the manifest of `{folder}` has {size:,} ids; expected at most {_MOST_IDS:,}, and its own ids below",
            hint=hint,
        )
    if not all(
        0 <= shard.epoch < checked_manifest.epochs <= len(checked_manifest.n_instances)
        for shard in checked_manifest.shards
    ):
        raise ArtifactError(
            f"the manifest of `{folder}` has a shard of another epoch than its {checked_manifest.epochs}", hint=hint
        )
    return manifest


def record_batches(folder: str | Path, shard: dict[str, Any]) -> Iterator[Any]:
    """Map the record batches of a shard of instances."""
    pa = arrow()
    path = Path(folder) / f"{shard['name']}.arrow"
    try:
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    except (OSError, pa.ArrowInvalid) as error:
        raise ArtifactError(f"`{path}` is damaged: {error}", hint="koktok instances TOKENIZER TEXT ...") from error


def _write_shard(path: Path, instances: Instances, first: int, last: int) -> None:
    pa = arrow()
    writer = None
    with pa.OSFile(str(path), "wb") as file:
        for begin in range(first, last, _BATCH):
            batch = _record_batch(instances.batch(range(begin, min(begin + _BATCH, last))))
            writer = writer or pa.ipc.new_file(file, batch.schema)
            writer.write_batch(batch)
        if writer:
            writer.close()


def _record_batch(batch: InstanceBatch) -> Any:
    pa = arrow()
    offsets = pa.array(batch.offsets.astype(np.int32))
    lists = {name: pa.ListArray.from_arrays(offsets, pa.array(flat)) for name, flat in batch.lists.items()}
    columns = lists | {name: pa.array(column) for name, column in batch.values.items()}
    return pa.record_batch(list(columns.values()), list(columns))
