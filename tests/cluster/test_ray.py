"""The recipe for Ray Data in the guide, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT
from test_spark import folder, lines  # noqa: F401 - fixtures

from koktok import load

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_the_recipe(folder: Path, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    ray = pytest.importorskip("ray", reason="pip install 'ray[data]'")
    guide = (ROOT / "docs" / "guides" / "cluster.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", guide.partition("## Ray Data")[2], re.S)[0]
    (tmp_path / "wiki.parquet").mkdir()
    for i in range(3):
        pl.DataFrame({"text": lines[i::3]}).write_parquet(tmp_path / "wiki.parquet" / f"{i}.parquet")
    (tmp_path / "my-tokenizer").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        exec(code, {"__name__": "recipe"})
    finally:
        ray.shutdown()
    found = pl.read_parquet(tmp_path / "ids" / "*.parquet")
    expected = {text: ids.tolist() for text, ids in zip(lines, load(folder).encode_ids(lines), strict=True)}
    assert len(found) == len(lines)
    assert all(ids == expected[text] for text, ids in found.select("text", "ids").iter_rows())
