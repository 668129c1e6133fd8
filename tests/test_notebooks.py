"""The notebooks of docs/ run from top to bottom, as a reader runs them, and print what is kept in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from conftest import PATIENCE, ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    kept = [_printed(cell) for cell in notebook.cells]
    nbclient.NotebookClient(notebook, kernel_name="python3", startup_timeout=PATIENCE // 1000).execute()
    assert [_printed(cell) for cell in notebook.cells] == kept
    assert any(kept), "a notebook shows something"


def _printed(cell: Any) -> str:
    """What a cell printed, without warnings of the libraries."""
    outputs = [found for found in cell.get("outputs", []) if found.get("name") != "stderr"]
    return "".join(found.get("text") or found["data"]["text/plain"] for found in outputs)
