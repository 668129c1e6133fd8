"""Instances for other trainers, read back by their libraries; statistics."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import MINI, koktok
from samples import files_of, lexicon, rows_of, styled, text_ids

from koktok.errors import UsageError
from koktok.instances import Masking, Packed, Plan, write_instances, write_packed
from koktok.instances.exporting import to_megatron
from koktok.instances.instance_statistics import statistics_of, tables_of
from koktok.instances.masking import IGNORED
from koktok.text.sources import Source


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
    pytest.importorskip("megatron.core", reason="megatron-core is not installed")
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


def test_megatron_documents_require_an_end_token(packed: Packed, tmp_path: Path) -> None:
    if "eos_token" not in packed.manifest["roles"]:
        with pytest.raises(UsageError, match=r"(?s)requires the eos_token.*--style gpt"):
            to_megatron(packed, tmp_path / "out", documents=True)
    to_megatron(packed, tmp_path / "one")
    to_megatron(packed, tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_statistics(pairs: Path, packed: Packed) -> None:
    found, rows = statistics_of(pairs), rows_of(pairs)
    assert found.total("instances") == len(rows)
    assert found.total("tokens") == sum(len(row["input_ids"]) for row in rows)
    assert found.total("masked") == sum(label != IGNORED for row in rows for label in row["labels"])
    assert found.padding == pytest.approx(1 - sum(len(row["input_ids"]) for row in rows) / (64 * len(rows)))
    assert int(found.lengths.sum()) == len(rows)
    text = Counter(i for row in rows for i in text_ids(row) if i not in packed.manifest["specials"])
    assert {i: n for i, n in enumerate(found.uses.tolist()) if n} == text
    assert found.total("unlike") == sum(row["next_sentence_label"] for row in rows)
    for _, columns, table in tables_of(found):
        assert all(len(row) == len(columns) for row in table)


def test_the_verb_prints_a_folder_and_writes_for_megatron(pairs: Path, packed: Packed, tmp_path: Path) -> None:
    shown = koktok("instances", pairs, env={"COLUMNS": "80"})
    assert shown.returncode == 0, shown.stderr
    assert all(title in shown.stdout for title in ("Instances", "Lengths", "Epochs"))
    assert max(map(len, shown.stdout.split("\n"))) <= 80
    tokenizer = styled("unigram").save(tmp_path / "bert")
    done = koktok("instances", tokenizer, packed.folder, "--to", "megatron", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert f" in {tmp_path / 'out'}" in done.stderr
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".bin", ".idx", ".json"}
    assert koktok("instances", tmp_path).returncode
    assert koktok("instances", tokenizer, packed.folder).returncode
