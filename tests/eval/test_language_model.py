"""eval/language_model.py: every token is counted once, every tokenizer reads the same text; with PyTorch, a tiny run."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MINI, ROOT

from eval.language_model import Row, bits, cut_at, read, table


def test_a_text_is_cut_behind_the_line_that_fills_it() -> None:
    lines = ["가나", "다", "라마바"]  # 3, 2 and 4 characters with the ends of lines
    assert [cut_at(lines, n) for n in (1, 3, 4, 5, 6, 9, 100)] == [1, 1, 2, 2, 3, 3, 3]


def test_held_out_lines_are_in_no_training_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"줄 {i % 1900}\n" for i in range(2000)), encoding="utf-8")
    kept, held = read([str(tmp_path / "a.txt")], 0.3, 10_000)
    assert held
    assert not set(kept) & set(held)
    assert len(set(held)) == len(held)


def test_rows_of_seeds_become_one_line() -> None:
    rows = [Row("a", "equal text", seed, 10, 100, 200, 1.0, 0.5, 2.0 + seed, 3.0) for seed in (0, 1)]
    assert list(table(rows))[2:] == ["| equal text | a | 10 | 200 | 1.00 | 0.5000 | 2.5000 ± 0.7071 | 3 |"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("length", [1, 7, 8, 9, 12, 13, 40, 100])
def test_every_token_is_predicted_once(length: int) -> None:
    """A model that knows nothing gives log2 of the vocabulary's size for each token, the end too."""
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

    class Uniform(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, ids: object) -> argparse.Namespace:
            assert ids.shape[1] <= 8  # type: ignore[attr-defined]
            return argparse.Namespace(logits=torch.zeros(*ids.shape, 32))  # type: ignore[attr-defined]

    found = bits(Uniform(), [[5] * (length - 1)], 0, 8)
    assert math.isclose(found, 5 * length, rel_tol=1e-5)


@pytest.mark.slow
def test_a_tiny_run(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    pytest.importorskip("datasets", reason="the extra `train` is not installed")
    small = "--size 2300 --characters 9000 --held 2000 --share 0.1 --width 64 --layers 1 --context 32 --batch 4"
    done = subprocess.run(
        [sys.executable, "-m", "eval.language_model", *map(str, sorted(MINI.glob("*.txt"))), *small.split(),
         "--json", str(tmp_path / "rows.json")],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert {row["protocol"] for row in rows} == {"equal text", "equal compute"}
    assert len({row["steps"] for row in rows if row["protocol"] == "equal compute"}) == 1
    assert len({row["characters"] for row in rows if row["protocol"] == "equal text"}) == 1
    assert all(3 < row["bits_per_character"] < 12 for row in rows)
