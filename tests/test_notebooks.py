"""The notebooks of docs/ run from top to bottom, as a reader runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="the extra `docs` is not installed")
    nbclient = pytest.importorskip("nbclient", reason="the extra `docs` is not installed")
    pytest.importorskip("ipykernel", reason="the extra `docs` is not installed")
    if "transformers" in path.stem:
        pytest.importorskip("transformers", reason="the extra `transformers` is not installed")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are made by the reader, not kept"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert printed, "a notebook shows something"
