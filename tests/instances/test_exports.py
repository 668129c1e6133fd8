"""Instances for other trainers, read back by their libraries; statistics."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import MINI
from samples import lexicon, styled
from typer.testing import CliRunner

from koktok.cli import app
from koktok.errors import UsageError
from koktok.instances import Masking, Packed, Plan, write_instances, write_packed
from koktok.instances.exporting import to_megatron
from koktok.instances.instance_statistics import statistics_of, tables_of
from koktok.instances.masking import IGNORED
from koktok.text.sources import Source

runner = CliRunner()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    out = tmp_path_factory.mktemp("packed") / "packed"
    return write_packed(styled("unigram"), Source.of(MINI, name="mini"), out, lexicon=lexicon(), shard_tokens=9000)


@pytest.fixture(scope="module")
def pairs(packed: Packed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pairs") / "pairs"
    plan = Plan(kind="bert", length=64, seed=3, masking=Masking(max_predictions_per_seq=10))
    write_instances(packed, plan, out, epochs=2, shard_instances=300)
    return out


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("*.arrow")) for row in pa.ipc.open_file(path).read_all().to_pylist()]


READER = """
import sys, json
from megatron.core.datasets.indexed_dataset import IndexedDataset
found = []
for prefix in sys.argv[1:]:
    data = IndexedDataset(prefix)
    edges = data.document_indices.tolist()
    found.append([[data[i].tolist() for i in range(a, b)] for a, b in zip(edges[:-1], edges[1:])])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_megatron_reads_it(packed: Packed, tmp_path: Path) -> None:
    import json

    pytest.importorskip("importlib.metadata").version("megatron-core") if _has("megatron-core") else pytest.skip(
        "megatron-core is not installed"
    )
    gpt = write_packed(
        styled("unigram", "gpt"), Source.of(MINI), tmp_path / "gpt", lexicon=lexicon(), shard_tokens=9000
    )
    to_megatron(packed, tmp_path / "sentences")
    to_megatron(gpt, tmp_path / "documents", documents=True)
    for made, name in ((packed, "sentences"), (gpt, "documents")):
        prefixes = [str(tmp_path / name / shard["name"]) for shard in made.manifest["shards"]]
        done = subprocess.run([sys.executable, "-c", READER, *prefixes], capture_output=True, text=True, check=True)
        for k, documents in enumerate(json.loads(done.stdout.splitlines()[-1])):
            shard = made.shard(k)
            assert len(documents) == len(shard.documents) - 1
            for d, sequences in enumerate(documents):
                begin, end = int(shard.documents[d]), int(shard.documents[d + 1])
                if name == "documents":
                    assert sequences == [[*shard.ids[begin:end].tolist(), made.manifest["roles"]["eos_token"]]]
                    continue
                ends = shard.ends[shard.sentences[d] : shard.sentences[d + 1]].tolist()
                assert sequences == [shard.ids[a:b].tolist() for a, b in zip([begin, *ends], ends, strict=False)]


def _has(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def test_megatron_documents_require_an_end_token(packed: Packed, tmp_path: Path) -> None:
    if "eos_token" not in packed.manifest["roles"]:
        with pytest.raises(UsageError, match=r"(?s)requires the eos_token.*--style gpt"):
            to_megatron(packed, tmp_path / "out", documents=True)
    to_megatron(packed, tmp_path / "one")
    to_megatron(packed, tmp_path / "two")
    assert {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()
    }


def test_statistics(pairs: Path, packed: Packed) -> None:
    found, rows = statistics_of(pairs), rows_of(pairs)
    assert found.total("instances") == len(rows)
    assert found.total("tokens") == sum(len(row["input_ids"]) for row in rows)
    masked = sum(label != IGNORED for row in rows for label in row["labels"])
    assert found.total("masked") == masked
    assert found.padding == pytest.approx(1 - sum(len(row["input_ids"]) for row in rows) / (64 * len(rows)))
    assert int(found.lengths.sum()) == len(rows)
    specials = set(packed.manifest["specials"])
    text = Counter(
        i if label == IGNORED else label
        for row in rows
        for i, label in zip(row["input_ids"], row["labels"], strict=True)
    )
    assert {i: n for i, n in enumerate(found.uses.tolist()) if n} == {
        i: n for i, n in text.items() if i not in specials
    }
    assert found.total("unlike") == sum(row["next_sentence_label"] for row in rows)
    for _, columns, table in tables_of(found):
        assert all(len(row) == len(columns) for row in table)


def test_the_verb_prints_a_folder_and_writes_for_megatron(pairs: Path, packed: Packed, tmp_path: Path) -> None:
    shown = runner.invoke(app, ["instances", str(pairs)], env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    assert all(title in shown.stdout for title in ("Instances", "Lengths", "Epochs"))
    assert max(map(len, shown.stdout.split("\n"))) <= 80
    tokenizer = str(styled("unigram").save(tmp_path / "bert"))
    words = ["instances", tokenizer, str(packed.folder), "--to", "megatron", "-o", str(tmp_path / "out")]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert f" in {tmp_path / 'out'}" in done.stderr
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".bin", ".idx", ".json"}
    assert runner.invoke(app, ["instances", str(tmp_path)]).exit_code
    assert runner.invoke(app, ["instances", tokenizer, str(packed.folder)]).exit_code
