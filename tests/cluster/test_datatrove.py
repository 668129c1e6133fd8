"""The steps of datatrove, in its own executor, beside its own tokenizer and beside one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.tokens import DocumentTokenizer
from test_spark import folder, koktok, lines  # noqa: F401 - fixtures

from koktok import load
from koktok.cluster.datatrove import KoktokCounter, KoktokTokenizer
from koktok.count.count_files import CountFile, runs_file
from koktok.errors import UsageError


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
        options = options | {"eos_token": next(iter(load(folder).vocab.special_ids))}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    run(tmp_path / "a", [KoktokTokenizer(str(ours), folder, **options)], lines, tasks=2)
    run(tmp_path / "b", [DocumentTokenizer(str(theirs), str(folder / "tokenizer.json"), **options)], lines, tasks=2)
    assert files_of(ours) == files_of(theirs)
    assert len(files_of(ours)) == 6
    with pytest.raises(UsageError, match="not a special token"):
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
        assert CountFile.open(file(one)).frame.collect().equals(CountFile.open(file(many)).frame.collect())
    assert len(ranks) == 3


def test_a_file_that_is_no_count_is_not_written_over(lines: list[str], tmp_path: Path) -> None:  # noqa: F811
    theirs = tmp_path / "counts" / "00000.parquet"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    with pytest.raises(UsageError, match=r"`00000\.parquet` in .* is not a count"):
        run(tmp_path / "a", [KoktokCounter(str(theirs.parent))], lines)
    assert theirs.read_text() == "mine"
    theirs.unlink()
    for again in ("b", "c"):
        run(tmp_path / again, [KoktokCounter(str(theirs.parent))], lines)
