"""The guide's commands and programs, as they are written, from raw pages to a model whose loss falls."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MINI, ROOT

GUIDE = (ROOT / "docs" / "guides" / "instances.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", GUIDE, re.S)


def pages(folder: Path) -> None:
    """The mini corpus as pages of the web: ten lines a page, one of them twice, and one in English."""
    lines = [
        line for path in sorted(MINI.rglob("*.txt")) for line in path.read_text(encoding="utf-8").split("\n") if line
    ]
    records = [{"text": "\n".join([*lines[i : i + 10], f"a{i}@b.com"])} for i in range(0, len(lines), 10)]
    records += [records[0], {"text": "A page in English, which is to be left out. " * 5}]
    (folder / "crawl").mkdir()
    for k in range(2):
        part = "\n".join(json.dumps(record, ensure_ascii=False) for record in records[k::2])
        (folder / "crawl" / f"{k}.jsonl").write_text(part + "\n", encoding="utf-8")
    (folder / "news.txt").write_text("\n".join(lines[:200]) + "\n", encoding="utf-8")


def test_the_recipe_for_cleaning(tmp_path: Path) -> None:
    """Near-duplicates and pages without Hangul go, addresses are replaced."""
    for name in ("datatrove", "orjson"):
        pytest.importorskip(name)
    pages(tmp_path)
    (recipe,) = (text for language, text in BLOCKS if language == "python" and "datatrove" in text)
    subprocess.run([sys.executable, "-c", recipe], cwd=tmp_path, capture_output=True, check=True)

    def read(folder: str) -> list[str]:
        files = sorted((tmp_path / folder).glob("*.jsonl"))
        return [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").splitlines()]

    crawled, clean = read("crawl"), read("clean")
    assert len(clean) == len(crawled) - 2 == len(set(crawled)) - 1
    assert not any("@b.com" in text or "English, which" in text for text in clean)
