"""transformers' Trainer, with rows that are masked while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import MINI
from samples import lexicon, styled

from koktok.instances import Instances, KoktokCollator, Masking, Packed, Plan, write_instances, write_packed
from koktok.text.sources import Source

PLAN = Plan(kind="mlm", length=64, seed=3, across=True, masking=Masking(unit="morpheme"))
STEPS = 40


class Seen:
    """A collator that keeps the labels it gave."""

    def __init__(self, collator: KoktokCollator) -> None:
        self.collator, self.labels = collator, list[Any]()

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        batch = self.collator(rows)
        self.labels.append(tuple(sorted(map(tuple, batch["labels"].tolist()))))
        return batch


def losses(rows: Any, collator: Any, out: Path, callbacks: list[Any], *, workers: int = 0) -> list[float]:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=styled("unigram").vocab.size, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    arguments = transformers.TrainingArguments(
        str(out), max_steps=STEPS, per_device_train_batch_size=16, logging_steps=STEPS // 4, report_to=[], use_cpu=True,
        remove_unused_columns=False, learning_rate=1e-2, seed=1, disable_tqdm=True, save_strategy="no",
        dataloader_num_workers=workers,
    )  # fmt: skip
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, data_collator=collator, callbacks=callbacks)
    trainer.train()
    return [told["loss"] for told in trainer.state.log_history if "loss" in told]


@pytest.mark.slow
def test_the_trainer_masks_every_epoch_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("accelerate")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    packed = write_packed(styled("unigram"), Source.of(MINI), tmp_path / "packed", lexicon=lexicon())
    write_instances(packed, PLAN, tmp_path / "rows", masked=False)
    rows = datasets.load_dataset(str(tmp_path / "rows"), split="train", cache_dir=str(tmp_path / "cache"))
    seen = Seen(KoktokCollator(tmp_path / "rows"))
    found = losses(rows.select(range(16)), seen, tmp_path / "out", [seen.collator.callback])  # a step is an epoch
    assert found[-1] < found[0]
    assert seen.collator.epoch == STEPS - 1
    assert len({*seen.labels}) == STEPS
    # Two processes that read ahead give the same tensors as none.
    one, two = (
        losses(rows, KoktokCollator(tmp_path / "rows"), tmp_path / "out", [], workers=workers) for workers in (0, 2)
    )
    assert one == two
    # So does the data set that needs no folder of rows.
    made = Instances(Packed.open(tmp_path / "packed"), PLAN)
    assert losses(made, KoktokCollator(tmp_path / "rows"), tmp_path / "out", [])[-1] < one[0] - 0.5
