"""eval/figures: the tables of docs/figures.md are those of the reports that are kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import ROOT

from eval.figures import COLUMNS, ROWS, main

REPORTS = [ROOT / "eval" / "reports" / f"2026-11-26-bench-ko{part}.json.xz" for part in ("", "-koktok")]


def test_the_page_has_the_figures_of_the_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "figures.md"
    copy = Path(shutil.copy(page, tmp_path))
    monkeypatch.setattr("sys.argv", ["eval.figures", *map(str, REPORTS), str(copy)])
    main()
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), "run `python -m eval.figures`"
    assert {*ROWS} == {*COLUMNS}
