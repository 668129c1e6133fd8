"""Runtimes of other people: what they answer is told, and what they cannot do is no failure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from koktok.verify import runtimes
from koktok.verify.probes import tricky_lines
from koktok.verify.runtimes import RUNTIMES, runtime_results


def test_same_other_refused_and_not_there(trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trained()
    made = {
        "tokenizers": RUNTIMES["tokenizers"],
        "numpy": "\n        rows = [[1] for line in lines]",
        "polars": "\n        raise ValueError('not mine')",
        "pytest": "\n        import os\n        os._exit(3)",
        "no-such-runtime": "",
    }
    monkeypatch.setattr(runtimes, "RUNTIMES", made)
    found = runtime_results(folder, ["학교에서는 책을 읽습니다.", *tricky_lines()], names=made)
    assert [result.outcome for result in found] == ["same ids", "differs", "refused", "refused", "not installed"]
    assert found[0].looked > 10
    assert found[0].wrong == 0
    assert found[1].wrong == found[1].looked
    assert found[2].said == "ValueError: not mine"
    assert "ended with 3" in found[3].said


@pytest.mark.network
@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "qwen2", "o200k"])
def test_fast_runtimes_load_published_patterns(
    pattern: str, trained: Callable[..., Path], mini: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.getbasetemp() / "runtimes"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not home.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
        command = [str(python), "-m", "pip", "install", "-q", "gigatoken", "snaptokens", "fastokens", "kitoken"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        if done.returncode:
            pytest.skip(f"pip could not install the runtimes: {done.stderr.strip()[-200:]}")
    folder = trained(train={"model": "bpe-bytes", "vocab_size": 900}, pretokenize={"pattern": pattern})
    names = ("gigatoken", "snaptokens", "fastokens", "kitoken")
    found = runtime_results(folder, mini, names=names, python=str(python))
    assert {result.runtime: result.outcome for result in found} == dict.fromkeys(names, "same ids")
