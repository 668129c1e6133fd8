"""The notebooks of docs/ run from top to bottom, as a reader runs them, and print what is kept in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from conftest import PATIENCE, ROOT
from jupyter_client.manager import KernelManager

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One that has koktok and Kiwi loaded after the first notebook."""
    manager = KernelManager(kernel_name="python3")
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, kernel: KernelManager) -> None:
    notebook = nbformat.read(path, as_version=4)
    kept = [_printed(cell) for cell in notebook.cells]
    nothing = nbformat.v4.new_code_cell("%reset -f")  # no name of the notebook before
    notebook.cells.insert(0, nothing)
    client = nbclient.NotebookClient(notebook, km=kernel, startup_timeout=PATIENCE // 1000)
    client.execute()
    client.kc.stop_channels()
    notebook.cells.remove(nothing)
    assert [_printed(cell) for cell in notebook.cells] == kept
    assert any(kept), "a notebook shows something"


def _printed(cell: Any) -> str:
    """What a cell printed, without warnings of the libraries."""
    outputs = [found for found in cell.get("outputs", []) if found.get("name") != "stderr"]
    return "".join(found.get("text") or found["data"]["text/plain"] for found in outputs)
