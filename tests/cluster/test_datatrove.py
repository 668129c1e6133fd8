"""The steps of datatrove, in its own executor, beside its own tokenizer and beside one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_spark import koktok
from test_spark_source import folder, lines  # noqa: F401 - fixtures

pytest.importorskip("datatrove", reason="pip install 'koktok[datatrove]'")
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.tokens import DocumentTokenizer

from koktok import Tokenizer
from koktok.cluster.datatrove import KoktokCounter, KoktokInstances, KoktokTokenizer
from koktok.count.count_files import read_counts, runs_file
from koktok.errors import UsageError
from koktok.instances import Masking, Plan


def run(base: Path, steps: list[Any], texts: list[str], tasks: int = 1) -> None:
    """A pipeline over documents that are dealt out to the ranks."""

    def read(_data: Any, rank: int, world_size: int) -> Any:
        return (Document(text=text, id=str(i)) for i, text in enumerate(texts) if i % world_size == rank)

    LocalPipelineExecutor(pipeline=[read, *steps], tasks=tasks, workers=1, logging_dir=str(base / "logs")).run()


def files_of(base: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in base.iterdir()}


@pytest.mark.parametrize(
    "options",
    [
        {"eos_token": "<s>", "seed": 0},
        pytest.param({"shuffle_documents": False}, marks=pytest.mark.slow),
        pytest.param({"seed": 3}, marks=pytest.mark.slow),
    ],
)
def test_the_files_are_those_of_datatrove(
    folder: Path,  # noqa: F811
    lines: list[str],  # noqa: F811
    tmp_path: Path,
    options: dict[str, Any],
) -> None:
    if "eos_token" in options:
        options = options | {"eos_token": next(iter(Tokenizer.load(folder).vocab.special_ids))}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    run(tmp_path / "a", [KoktokTokenizer(str(ours), folder, **options)], lines, tasks=2)
    run(tmp_path / "b", [DocumentTokenizer(str(theirs), str(folder / "tokenizer.json"), **options)], lines, tasks=2)
    assert files_of(ours) == files_of(theirs)
    assert len(files_of(ours)) == 6
    with pytest.raises(UsageError, match="no special token"):
        KoktokTokenizer(str(ours), folder, eos_token="<none>")
    with pytest.raises(UsageError, match="masks"):
        KoktokTokenizer(str(ours), folder, save_loss_metadata=True)


def test_the_counts_are_those_of_one_machine(lines: list[str], tmp_path: Path) -> None:  # noqa: F811
    text, one, many = tmp_path / "text.txt", tmp_path / "one.parquet", tmp_path / "many.parquet"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    koktok("count", text, "--holdout-by", "documents", "--holdout", 0.3, "--runs", "-o", one, "-q")
    run(tmp_path, [KoktokCounter(str(tmp_path / "counts"), holdout=0.3, runs=True)], lines, tasks=3)
    ranks = sorted(file for file in (tmp_path / "counts").glob("*.parquet") if ".runs" not in file.name)
    koktok("count", "merge", *ranks, "-o", many, "-q")
    for file in (lambda path: path, runs_file):
        assert read_counts(file(one)).collect().equals(read_counts(file(many)).collect())
    assert len(ranks) == 3


@pytest.mark.slow
def test_the_instances_are_those_of_one_machine(
    folder: Path,  # noqa: F811
    lines: list[str],  # noqa: F811
    tmp_path: Path,
) -> None:
    bert = tmp_path / "bert"
    koktok("export", folder, "--to", "hf", "--style", "bert", "-o", bert, "-q")
    plan = Plan(length=64, seed=7, masking=Masking("eojeol", 0.15, 2))
    texts = [*lines, "", " \n "]
    step = KoktokInstances(str(tmp_path / "made"), bert, plan, segmenter="whitespace", epochs=2)
    run(tmp_path, [step], texts, tasks=3)
    for rank in range(3):
        text, one = tmp_path / str(rank) / "documents.jsonl", tmp_path / f"one-{rank}"
        text.parent.mkdir()
        own = [{"text": text} for i, text in enumerate(texts) if i % 3 == rank and text.strip()]
        text.write_text("".join(f"{json.dumps(record)}\n" for record in own), encoding="utf-8")
        given = ["--length", 64, "--seed", 7, "--mask", "eojeol", "--epochs", 2, "--segmenter", "whitespace", "-q"]
        koktok("instances", bert, text, "--out", one, *given)
        assert files_of(tmp_path / "made" / f"{rank:05d}") == files_of(one)
    run(tmp_path / "none", [KoktokInstances(str(tmp_path / "empty"), bert, plan)], ["", " "])
    assert not (tmp_path / "empty" / "00000").exists()
    with pytest.raises(UsageError, match="`epoch` is not known"):
        KoktokInstances(str(tmp_path / "made"), bert, epoch=2)
