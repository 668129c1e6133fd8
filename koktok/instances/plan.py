"""A plan, and the instances that it makes of a packed folder.

Instance i of an epoch is a function of the packed text, the plan and the epoch: the shuffle of (seed, epoch) picks the
instance, the layout has the places of its tokens, and masking draws random numbers from (seed, epoch, its ids). The same
call makes instances for a disk and while reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from koktok.errors import UsageError
from koktok.instances.bert import check_pairs, pairs_layout
from koktok.instances.draws import shuffled
from koktok.instances.layout import Frame, Gathered, Layout, gather, sentences_layout
from koktok.instances.masking import Masking
from koktok.instances.packing import Packed, PackedShard
from koktok.model.tokens import running
from koktok.recipe import Options

InstanceKind = Literal["mlm", "bert"]
STYLE = "koktok export TOKENIZER --to hf --style bert -o FOLDER, and FOLDER in its place"


REQUIRED: dict[InstanceKind, list[str]] = {
    "mlm": ["mask_token"],
    "bert": ["cls_token", "sep_token", "mask_token"],
}
"""The special tokens that each kind requires."""


class Plan(Options):
    """Settings of training instances."""

    kind: InstanceKind = "mlm"
    """Kind of the instances."""
    length: Annotated[int, Field(ge=8, le=1 << 20)] = 512
    """Maximum number of tokens in an instance, special tokens included."""
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """Seed of all random numbers."""
    masking: Masking = Masking()
    """What is masked, and how."""
    across: bool = False
    """mlm: continue with the next document, after a separator."""
    pairs: Literal["next", "order"] = "next"
    """bert: in half of the cases the second text is from another document, or the two are exchanged."""
    short_seq_prob: Annotated[float, Field(ge=0, le=1)] = 0.1
    """bert: share of the pairs that are shorter."""


@dataclass(frozen=True, slots=True, eq=False)
class InstanceBatch:
    """Some instances: flat lists with their offsets, and single values."""

    offsets: NDArray[np.int64]
    lists: dict[str, NDArray[Any]]
    values: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for k in range(len(self)):
            part = slice(self.offsets[k], self.offsets[k + 1])
            row: dict[str, Any] = {name: flat[part] for name, flat in self.lists.items()}
            yield row | {name: column[k].item() for name, column in self.values.items()}


class Instances(Sequence[dict[str, Any]]):
    """The instances of an epoch, a sequence that torch takes as a data set."""

    def __init__(self, packed: Packed, plan: Plan, epoch: int = 0, *, masked: bool = True) -> None:
        self.packed, self.plan, self.masked = packed, plan, masked
        self.roles: dict[str, int] = packed.manifest["roles"]
        required = REQUIRED[plan.kind]
        if missing := [role for role in required if role not in self.roles]:
            raise UsageError(
                f"--kind {plan.kind} requires the {missing[0]}, and the tokenizer has none",
                hint=STYLE,
            )
        plan.masking.check_cuts(packed.manifest["cuts"])
        self.frame = Frame.of(packed.manifest["pair" if plan.kind == "bert" else "single"])
        separator = self.roles.get("sep_token", packed.manifest.get("end"))
        if not self.frame.between and separator is not None:
            self.frame = replace(self.frame, between=(separator,))
        self._shards: dict[int, PackedShard] = {}
        if plan.kind == "bert":
            shards = map(packed.shard, range(len(packed)))
            check_pairs(shards, order=plan.pairs == "order", full=packed.manifest["shard_tokens"])
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Go to another epoch, counted from 0; transformers' Trainer and accelerate call it."""
        self.epoch = epoch
        self._layouts = [self._layout(self._shard(i)) for i in range(len(self.packed))]
        self._ends = np.cumsum([len(layout) for layout in self._layouts])
        self._order = shuffled(len(self), self.plan.seed, epoch)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_shards": {}}  # another process maps them again

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, i: int) -> dict[str, Any]:  # type: ignore[override]
        """Return instance `i`: lists and single values by name."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"instance {i} of {len(self)}")
        return next(iter(self.batch([i % len(self)])))

    def __getitems__(self, which: list[int]) -> list[dict[str, Any]]:
        """Return several instances; torch's loader calls it."""
        return list(self.batch(which))

    def batch(self, which: Sequence[int]) -> InstanceBatch:
        """Return instances by their numbers, in that order."""
        rows = self._order[np.fromiter(which, np.int64, len(which))]
        shards = np.searchsorted(self._ends, rows, side="right")
        firsts = np.concatenate([np.zeros(1, np.int64), self._ends])
        parts: list[Gathered] = []
        labels: list[NDArray[np.int8]] = []
        order = np.argsort(shards, kind="stable")
        for shard in np.unique(shards):
            mine = rows[shards == shard] - firsts[shard]
            parts.append(gather(self._shard(int(shard)), self._layouts[shard], mine, self.frame))
            if (column := self._layouts[shard].labels) is not None:
                labels.append(column[mine])
        gathered = _in_order(parts, order)
        values: dict[str, NDArray[Any]] = {}
        if labels:
            values["next_sentence_label"] = np.concatenate(labels)[np.argsort(order, kind="stable")].astype(np.int64)
        return InstanceBatch(gathered.offsets, self._lists(gathered), values)

    def _shard(self, i: int) -> PackedShard:
        if i not in self._shards:
            self._shards[i] = self.packed.shard(i)
        return self._shards[i]

    def _layout(self, shard: PackedShard) -> Layout:
        plan = self.plan
        if plan.kind == "bert":
            room = plan.length - self.frame.size(2)
            return pairs_layout(
                shard,
                room,
                seed=plan.seed,
                epoch=self.epoch,
                order=plan.pairs == "order",
                short_seq_prob=plan.short_seq_prob,
            )
        room = plan.length - self.frame.size(1)
        return sentences_layout(shard, room, across=self.plan.across, between=len(self.frame.between))

    def _lists(self, gathered: Gathered) -> dict[str, NDArray[Any]]:
        types = {"token_type_ids": gathered.kinds} if self.frame.kinds[1] else {}
        if not self.masked:
            return {"input_ids": gathered.ids, **types, "marks": gathered.marks}
        read, labels = self.plan.masking.apply(
            gathered.ids,
            gathered.marks,
            gathered.offsets,
            mask_id=self.roles["mask_token"],
            ordinary=self.packed.ordinary,
            seed=self.plan.seed,
            epoch=self.epoch,
        )
        return {"input_ids": read, **types, "labels": labels}


def _in_order(parts: list[Gathered], order: NDArray[np.int64]) -> Gathered:
    """Return instances that were gathered shard by shard in the order of the request."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    begins = running(sizes)[:-1]
    back = np.argsort(order, kind="stable")
    offsets = running(sizes[back])
    at = np.repeat(begins[back] - offsets[:-1], sizes[back]) + np.arange(offsets[-1])
    ids, marks, kinds = (
        np.concatenate([getattr(part, name) for part in parts])[at] for name in ("ids", "marks", "kinds")
    )
    return Gathered(ids, marks, kinds, offsets)
