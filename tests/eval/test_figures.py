"""eval/figures: the tables of docs/figures.md are those of the reports that are kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from eval.figures import COLUMNS, ROWS, main

REPORTS = [ROOT / "eval" / "reports" / f"2026-11-26-bench-ko{part}.json.xz" for part in ("", "-koktok")]


def test_the_pages_have_the_figures_of_the_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "figures.md"]
    copies = [Path(shutil.copy(page, tmp_path)) for page in pages]
    monkeypatch.setattr("sys.argv", ["eval.figures", *map(str, [*REPORTS, *copies])])
    main()
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert [copy.read_text(encoding="utf-8") for copy in copies] == texts, "run `python -m eval.figures`"
    assert {*ROWS} == {*COLUMNS} == {*re.findall(r"<!-- eval\.figures\.(\w+) -->", "".join(texts))}
