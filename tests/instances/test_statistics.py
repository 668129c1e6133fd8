"""Statistics of a folder of instances."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import MINI, koktok, works
from samples import lexicon, rows_of, styled, text_ids

from koktok.instances import Masking, Packed, Plan, write_instances, write_packed
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


def test_the_verb_prints_a_folder(pairs: Path, packed: Packed, tmp_path: Path) -> None:
    shown = works("instances", pairs, env={"COLUMNS": "80"})
    assert all(title in shown.stdout for title in ("Instances", "Lengths", "Epochs"))
    assert max(map(len, shown.stdout.split("\n"))) <= 80
    tokenizer = styled("unigram").save(tmp_path / "bert")
    assert koktok("instances", tmp_path).returncode
    assert koktok("instances", tokenizer, packed.folder).returncode
