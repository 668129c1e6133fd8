"""Runtimes of other people: what they answer is a row, and what they cannot do is no failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eval import runtime_sources
from eval.runtime_sources import RUNTIMES, runtime_results
from eval.runtimes import results
from koktok.verification.probes import tricky_lines


def test_same_other_refused_and_not_there(trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trained()
    made = {
        "tokenizers": RUNTIMES["tokenizers"],
        "numpy": "\n        rows = [[1] for line in lines]",
        "polars": "\n        raise ValueError('not mine')",
        "pytest": "\n        import os\n        os._exit(3)",
        "no-such-runtime": "",
    }
    monkeypatch.setattr(runtime_sources, "RUNTIMES", made)
    found = runtime_results(folder, ["학교에서는 책을 읽습니다.", *tricky_lines()], names=made)
    assert [result.outcome for result in found] == ["same ids", "differs", "refused", "refused", "not installed"]
    assert found[0].looked > 10
    assert found[0].wrong == 0
    assert found[1].wrong == found[1].looked
    assert found[2].said == "ValueError: not mine"
    assert "ended with 3" in found[3].said


@pytest.mark.network
@pytest.mark.parametrize("pattern", ["gpt2", "llama3", "qwen2", "o200k", "cl100k"])
def test_fast_runtimes_load_published_patterns(
    pattern: str, trained: Callable[..., Path], mini: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A small version of `python -m eval.runtimes`, whose environments are made once."""
    folder = trained(train={"model": "bpe-bytes", "vocab_size": 900}, pretokenize={"pattern": pattern})
    names = {"gigatoken", "snaptokens", "fastokens", "kitoken", "tiktoken", "@huggingface/tokenizers", "js-tiktoken"}
    try:
        found = results(folder, [*mini, *tricky_lines()], tmp_path_factory.getbasetemp() / "runtimes", names)
    except SystemExit as error:
        pytest.skip(str(error))
    assert {result.runtime: result.outcome for result in found} == dict.fromkeys(names, "same ids")
