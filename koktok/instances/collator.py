"""`KoktokCollator`: rows to padded tensors, masked while they are read by the function that masks them on a disk.

Rows of `koktok instances --dynamic` have marks, and every unit can be masked. Rows of ids alone are masked by token or by
eojeol (`koktok.instances.token_facts`). (`DataCollatorForLanguageModeling(whole_word_mask=True)` looks for gaps between
offsets; pieces that hold their space have none unless offsets are trimmed, so it takes a sentence for one word.)

Random numbers are a function of (seed, epoch, the ids of the row), so workers, batches and their order change nothing. Epochs are
counted by a data set that `Trainer` calls (`Instances.set_epoch`), or by `KoktokCollator.callback`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.errors import InputError, UsageError
from koktok.instances.masking import IGNORED, Masking
from koktok.instances.packing import Packed
from koktok.instances.plan import Plan
from koktok.instances.token_facts import TokenFacts
from koktok.instances.write import manifest_of
from koktok.model.tokens import running
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load


class KoktokCollator:
    """A collator of rows to a batch of tensors.

    Examples
    --------
    >>> from koktok import Recipe
    >>> from koktok.tokenizer import TrainedTokenizer
    >>> from koktok.model.vocab import Vocab
    >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.bpe("가나 ", [" 가"], specials=["<pad>", "<mask>"]))
    >>> collator = KoktokCollator(tokenizer, Masking(rate=0.3), seed=1)
    >>> collator.mask_id, collator.pad_id
    (261, 260)
    """

    def __init__(
        self,
        source: Any,
        masking: Masking | None = None,
        *,
        seed: int | None = None,
        epoch: int = 0,
        pad_to_multiple_of: int = 1,
        length: int | None = None,
    ) -> None:
        self._facts, manifest = _facts_of(source)
        plan = manifest.get("plan", {})
        if masking is None and plan:
            masking = Plan(**plan).masking
        self.masking = masking or Masking()
        self.masking.check_cuts(manifest.get("cuts", ""))
        self.seed = plan.get("seed", 0) if seed is None else seed
        self.epoch = epoch
        self.multiple, self.length = pad_to_multiple_of, length
        roles = self._facts.roles
        if missing := [role for role in ("mask_token", "pad_token") if role not in roles]:
            raise UsageError(
                f"masking requires the {missing[0]}, and the tokenizer has none",
                hint="koktok export TOKENIZER --to hf --style bert -o FOLDER, and FOLDER in its place",
            )
        self.mask_id, self.pad_id = roles["mask_token"], roles["pad_token"]
        self._ordinary = np.flatnonzero(self._facts.ordinary)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return tensors: `input_ids`, `attention_mask`, `labels`, `token_type_ids` where rows have them, and single values."""
        import torch

        if not rows or "input_ids" not in rows[0]:
            raise InputError("expected rows with `input_ids`", hint="KoktokCollator(FOLDER)([{'input_ids': [...]}])")
        sizes = np.array([len(row["input_ids"]) for row in rows], np.int64)
        width = self.length or -(-int(sizes.max(initial=1)) // self.multiple) * self.multiple
        if sizes.max(initial=0) > width:
            raise InputError(
                f"expected rows of at most {width} tokens, got one of {sizes.max()}", hint=f"length={sizes.max()}"
            )
        flat = np.concatenate([np.asarray(row["input_ids"], np.int32) for row in rows])
        offsets = running(sizes)
        lists: dict[str, NDArray[Any]]
        if "labels" in rows[0]:
            lists = {"input_ids": flat, "labels": np.concatenate([np.asarray(row["labels"], np.int32) for row in rows])}
        else:
            read, labels = self.masking.apply(
                flat,
                self._marks(rows, flat, offsets),
                offsets,
                mask_id=self.mask_id,
                ordinary=self._ordinary,
                seed=self.seed,
                epoch=self.epoch,
            )
            lists = {"input_ids": read, "labels": labels}
        if "token_type_ids" in rows[0]:
            lists["token_type_ids"] = np.concatenate([np.asarray(row["token_type_ids"], np.int64) for row in rows])
        lists["attention_mask"] = np.ones(len(flat), np.int64)
        fill = {"input_ids": self.pad_id, "labels": IGNORED}
        there = np.arange(width) < sizes[:, None]
        batch = {}
        for name, values in lists.items():
            padded = np.full((len(rows), width), fill.get(name, 0), np.int64)
            padded[there] = values
            batch[name] = torch.from_numpy(padded)
        for name, value in rows[0].items():
            if name not in lists and name != "marks" and isinstance(value, int | np.integer):
                batch[name] = torch.tensor([int(row[name]) for row in rows])
        return batch

    @property
    def callback(self) -> Any:
        """A callback for transformers' Trainer that counts the epochs of this collator."""
        from transformers import TrainerCallback

        collator = self

        class Epochs(TrainerCallback):  # type: ignore[misc]
            def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
                collator.epoch = round(state.epoch or 0)

        return Epochs()

    def _marks(
        self, rows: Sequence[Mapping[str, Any]], ids: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        if "marks" in rows[0]:
            return np.concatenate([np.asarray(row["marks"], np.uint8) for row in rows])
        if self.masking.unit not in ("token", "eojeol"):
            raise UsageError(
                f"--mask {self.masking.unit} requires rows with `marks`",
                hint="koktok instances TOKENIZER TEXT --kind mlm --dynamic --out FOLDER; or Masking(unit='eojeol')",
            )
        if not self._facts.written:
            raise UsageError("rows without `marks` require the tokenizer", hint="KoktokCollator(TOKENIZER)")
        return self._facts.marks(ids, offsets)


def _facts_of(source: Any) -> tuple[TokenFacts, dict[str, Any]]:
    """Return the facts of the ids, and the manifest of a folder of instances."""
    if isinstance(source, str | Path):
        if (Path(source) / "manifest.json").is_file():
            manifest = manifest_of(source)
            return TokenFacts.of_manifest(manifest), manifest
        source = load(source)
    if isinstance(source, Packed):
        return TokenFacts.of_manifest(source.manifest), source.manifest
    if isinstance(source, TrainedTokenizer):
        return TokenFacts.of(source), {}
    if hasattr(source, "convert_ids_to_tokens"):
        return TokenFacts.of_transformers(source), {}
    raise UsageError(f"expected a folder or a tokenizer, got {type(source).__name__}", hint="KoktokCollator(FOLDER)")
