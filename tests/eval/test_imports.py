"""Every module of eval/ is imported: a name that moved is seen without running the experiment."""

from __future__ import annotations

import importlib

import pytest
from conftest import ROOT

MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "eval").rglob("*.py")
    if not file.name.startswith("__")
)
EXTRAS = ("torch", "transformers", "datasets", "gguf", "sklearn")


@pytest.mark.parametrize("name", MODULES)
def test_it_is_imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"not run: {error.name} is not installed")
