"""`KoktokCollator`: rows to padded tensors, masked while they are read, by the function that masks them on a disk.

Masking for transformers' Trainer. Rows of `koktok instances` bring their marks, and every unit can be masked.
Rows of ids alone, as a tokenizer gives them, are masked by token or by eojeol: where an eojeol begins is told by the space
that its first piece holds, or by the `##` that it lacks. (`DataCollatorForLanguageModeling(whole_word_mask=True)` looks
for gaps between offsets, and for pieces that hold their space there are none unless offsets are trimmed: it takes a
sentence for one word.)

The chance of a row is that of (seed, epoch, its ids), so that workers, batches and their order change nothing; an epoch is
counted by a data set that `Trainer` calls (`Instances.set_epoch`), or by `KoktokCollator.callback`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.errors import InputError, UsageError
from koktok.foreign.open import load
from koktok.instances.borders import EOJEOL, MORPHEME, SPECIAL, SYMBOL, is_symbol, surfaces
from koktok.instances.masking import IGNORED, Masking
from koktok.instances.packing import Packed, facts_of
from koktok.instances.write import manifest_of
from koktok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray


class KoktokCollator:
    """Rows to a batch of tensors.

    Examples
    --------
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.vocab import Vocab
    >>> tokenizer = Tokenizer(Recipe(), Vocab.bpe("가나 ", [" 가"], specials=["<pad>", "<mask>"]))
    >>> collator = KoktokCollator(tokenizer, Masking("eojeol", rate=0.3), seed=1)
    >>> collator.mask_id, collator.pad_id
    (261, 260)
    >>> batch = collator([{"input_ids": tokenizer.encode("가나 가").ids}])  # doctest: +SKIP
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
        facts, self._tables = _facts(source)
        plan = facts.get("plan", {})
        if masking is None and plan:
            from koktok.instances.plan import Plan

            masking = Plan.of(plan).masking
        self.masking = masking or Masking()
        self.masking.check_cuts(facts.get("cuts", ""))
        self.seed = plan.get("seed", 0) if seed is None else seed
        self.epoch = epoch
        self.multiple, self.length = pad_to_multiple_of, length
        roles = facts["roles"]
        if missing := [role for role in ("mask_token", "pad_token") if role not in roles]:
            raise UsageError(
                f"masking wants a {missing[0]}, and the tokenizer has none",
                hint="koktok export TOKENIZER --to hf --style bert -o FOLDER, and FOLDER in its place",
            )
        self.mask_id, self.pad_id = roles["mask_token"], roles["pad_token"]
        ordinary = np.ones(facts["vocab_size"], np.bool_)
        for first, last in facts["excluded"]:
            ordinary[first:last] = False
        self._ordinary = np.flatnonzero(ordinary)
        self._special = np.zeros(facts["vocab_size"], np.bool_)
        self._special[facts["specials"]] = True

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Tensors: `input_ids`, `attention_mask`, `labels`, `token_type_ids` where rows have them, and single values."""
        import torch

        if not rows or "input_ids" not in rows[0]:
            raise InputError("rows with `input_ids` were wanted", hint="KoktokCollator(FOLDER)([{'input_ids': [...]}])")
        sizes = np.array([len(row["input_ids"]) for row in rows], np.int64)
        width = self.length or -(-int(sizes.max(initial=1)) // self.multiple) * self.multiple
        if sizes.max(initial=0) > width:
            raise InputError(f"a row of {sizes.max()} tokens came, longer than {width}", hint=f"length={sizes.max()}")
        flat = np.concatenate([np.asarray(row["input_ids"], np.int32) for row in rows])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        lists: dict[str, NDArray[Any]]
        if "labels" in rows[0]:
            lists = {"input_ids": flat, "labels": np.concatenate([np.asarray(row["labels"], np.int32) for row in rows])}
        else:
            read, labels = self.masking.apply(
                flat,
                self._marks(rows, flat),
                offsets,
                mask_id=self.mask_id,
                ordinary=self._ordinary,
                seed=self.seed,
                epoch=self.epoch,
            )
            lists = {"input_ids": read, "labels": labels}
        for name in ("token_type_ids", "position_ids", "document_ids"):
            if name in rows[0]:
                lists[name] = np.concatenate([np.asarray(row[name], np.int64) for row in rows])
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

    def _marks(self, rows: Sequence[Mapping[str, Any]], ids: NDArray[np.int32]) -> NDArray[np.uint8]:
        if "marks" in rows[0]:
            return np.concatenate([np.asarray(row["marks"], np.uint8) for row in rows])
        if self.masking.unit not in ("token", "eojeol"):
            raise UsageError(
                f"rows without `marks` do not say where a {self.masking.unit} ends",
                hint="koktok instances TOKENIZER TEXT --kind mlm --dynamic --out FOLDER; or Masking('eojeol')",
            )
        if self._tables is None:
            raise UsageError("rows without `marks` want the tokenizer", hint="KoktokCollator(TOKENIZER)")
        opens, symbols, blank = self._tables
        marks = np.where(opens[ids], EOJEOL | MORPHEME, 0).astype(np.uint8)
        behind = np.concatenate([[False], blank[ids][:-1]])
        marks[behind] &= 0xFC
        marks |= symbols[ids]
        marks[self._special[ids]] = SPECIAL
        return marks


def _facts(source: Any) -> tuple[dict[str, Any], Any]:
    """What is to be known of a tokenizer, and what its ids write."""
    if isinstance(source, str | Path):
        if (Path(source) / "manifest.json").is_file():
            return manifest_of(source), None
        source = load(source)
    if isinstance(source, Packed):
        return source.manifest, None
    if isinstance(source, Tokenizer):
        written = surfaces(source)
        marked = source.vocab.kind == "wordpiece" or any(token.startswith("##") for token in source.vocab.tokens)
        tokens: Sequence[str] = source.vocab.tokens
        return facts_of(source), _tables(written, tokens if marked else None)
    if not hasattr(source, "convert_ids_to_tokens"):
        raise UsageError(
            f"a {type(source).__name__} came where a folder or a tokenizer was wanted", hint="KoktokCollator(FOLDER)"
        )
    tokens = source.convert_ids_to_tokens(list(range(len(source))))
    # Behind a letter: a decoder may take the first space of a text away.
    letter = source("a", add_special_tokens=False)["input_ids"]
    head = source.decode(letter, clean_up_tokenization_spaces=False)

    def written_by(i: int) -> str:
        return str(source.decode([*letter, i], clean_up_tokenization_spaces=False)).removeprefix(head)

    special = {*source.all_special_ids, *(i for i, token in source.added_tokens_decoder.items() if token.special)}
    marked = any(token.startswith("##") for token in tokens)
    written = [
        "" if i in special else token.removeprefix("##") if marked else written_by(i) for i, token in enumerate(tokens)
    ]
    roles = {role: getattr(source, f"{role}_id") for role in ("mask_token", "pad_token")}
    spare = [i for i, token in enumerate(tokens) if token.startswith(("[unused", "<unused", "<0x")) or i in special]
    facts = {
        "roles": {role: i for role, i in roles.items() if i is not None},
        "vocab_size": len(tokens),
        "specials": sorted(special),
        "excluded": [[i, i + 1] for i in spare],
    }
    return facts, _tables(written, tokens if marked else None)


def _tables(written: Sequence[str], marked: Sequence[str] | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """By id: whether a token begins an eojeol, the mark of punctuation, and whether it is white space."""
    if marked is None:
        opens = np.array([text[:1].isspace() for text in written])
    else:
        opens = np.array(
            [bool(text) and not token.startswith("##") for text, token in zip(written, marked, strict=True)]
        )
    symbols = np.array([SYMBOL * is_symbol(text) for text in written], np.uint8)
    return opens, symbols, np.array([bool(text) and not text.strip() for text in written])
