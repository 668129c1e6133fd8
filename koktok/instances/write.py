"""Instances in files: Arrow files that `datasets.load_dataset` opens, written shard by shard by any number of workers.

A shard holds the instances of one epoch from a number on. `README.md` has the configuration of the Hub's data sets,
`manifest.json` the origin of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from koktok.bulk.encoder import workers_of
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import MANIFEST, Product, checked, read_manifest, write_folder, write_manifest, written
from koktok.instances.packing import Packed, arrow
from koktok.instances.plan import InstanceBatch, Instances, Plan
from koktok.progress import OnProgress
from koktok.recipe import Options

LAYOUT = 2
"""Version of the folder."""

INSTANCES: Final = Product("instances.sha256", "folder of instances", frozenset({MANIFEST, "tokens.json", "README.md"}))

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

    `options` are those of `WriteOptions`; the files are the same for any number of workers. A folder that has these instances
    already stays unchanged.
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
    if (there := written(out, INSTANCES, run, force=force)) is not None:
        return there
    text = {key: packed.manifest[key] for key in ("n_documents", "n_tokens", "sources")}
    manifest = {**run, "n_instances": [], "text": text, "shards": []}

    def fill(folder: Path) -> None:
        counts, shards = manifest["n_instances"], manifest["shards"]
        for epoch in range(epochs):
            instances.set_epoch(epoch)
            counts.append(len(instances))
            jobs = [
                {"name": f"shard-{len(shards) + k:05d}", "epoch": epoch, "first": first}
                | {"instances": min(shard_instances, counts[-1] - first)}
                for k, first in enumerate(range(0, counts[-1], shard_instances))
            ]

            def work(shard: dict[str, Any]) -> dict[str, Any]:
                last = shard["first"] + shard["instances"]
                _write_shard(folder / f"{shard['name']}.arrow", instances, shard["first"], last)
                return shard

            with ThreadPoolExecutor(workers_of(workers)) as pool:
                for shard in pool.map(work, jobs):
                    shards.append(shard)
                    if on_progress:
                        done = sum(counts[:-1]) + shard["first"] + shard["instances"]
                        on_progress("instances", done, counts[-1] * epochs)
        if not shards:
            raise InputError("the text holds nothing to make an instance of", hint="wc FILES")
        (folder / "tokens.json").write_bytes((packed.folder / "tokens.json").read_bytes())
        (folder / "README.md").write_text(_CARD, encoding="utf-8")
        write_manifest(folder, manifest)

    write_folder(out, fill, INSTANCES, force=force)
    return manifest


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
