"""Training instances on Spark: every partition gives what one machine gives of its documents, each exactly once."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from test_spark import koktok, once, spark  # noqa: F401 - a fixture
from test_spark_source import folder, lines  # noqa: F401 - fixtures

from koktok.errors import UsageError
from koktok.foreign import load
from koktok.instances import Masking, Plan
from koktok.instances.write import manifest_of

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark", reason="pip install 'koktok[spark]'")
from koktok.cluster.training_data import write_part, write_to_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore::ResourceWarning"
    ),
]


@pytest.mark.parametrize("kill", [False, True])
def test_every_partition_gives_what_one_machine_gives(
    spark: Any,  # noqa: F811
    folder: Path,  # noqa: F811
    lines: list[str],  # noqa: F811
    tmp_path: Path,
    kill: bool,
) -> None:
    from pyspark.sql import functions as f

    bert, out = tmp_path / "bert", tmp_path / "out" / "made"
    koktok("export", folder, "--to", "hf", "--style", "bert", "-o", bert, "-q")
    plan = Plan(length=64, seed=3, masking=Masking("eojeol"))
    table = spark.createDataFrame([(line,) for line in [*lines, None]], "text string").repartition(3).persist()
    owned = table.select(f.spark_partition_id(), "text").toArrow().to_pylist()
    marks = tmp_path / "marks"
    marks.mkdir()
    failing = table.mapInArrow(once(marks, kill), table.schema)
    made = write_to_folder(failing, bert, plan, out, segmenter="whitespace")
    assert len(list(marks.iterdir())) == 3
    table.unpersist()
    expected = []
    for part in range(3):
        texts = [text for number, text in map(dict.values, owned) if number == part and text is not None]
        one = write_part(texts, load(bert), plan, tmp_path / f"one-{part}", segmenter="whitespace")
        assert one is not None
        expected += [file["sha256"] for shard in one["shards"] for file in shard["files"].values()]
    shards = [(out / f"{shard['name']}.arrow").read_bytes() for shard in made["shards"]]
    assert [sha256(data).hexdigest() for data in shards] == expected
    assert made == manifest_of(out)
    assert sum(made["n_instances"]) == sum(shard["instances"] for shard in made["shards"])
    listed = {f"{shard['name']}.arrow" for shard in made["shards"]}
    assert {file.name for file in out.iterdir()} == listed | {"manifest.json", "README.md", "tokens.json"}
    assert [entry.name for entry in out.parent.iterdir()] == ["made"]
    with pytest.raises(UsageError, match="already exists and holds another"):
        write_to_folder(failing, bert, plan, out, segmenter="whitespace")
