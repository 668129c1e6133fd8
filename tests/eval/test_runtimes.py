"""Runtimes of other people: what they answer is a row, and what they cannot do is no failure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from eval import runtimes
from eval.runtimes import RUNTIMES, Case, in_python, results
from koktok.verification.probes import tricky_lines


def test_same_other_refused_and_not_there(trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "tokenizers": RUNTIMES["tokenizers"],
        "numpy": "\n        rows = [[1] for line in lines]",
        "polars": "\n        raise ValueError('not mine')",
        "pytest": "\n        import os\n        os._exit(3)",
        "no-such-runtime": "",
    }
    monkeypatch.setattr(runtimes, "RUNTIMES", sources)
    case = Case(trained(), ["학교에서는 책을 읽습니다.", *tricky_lines()])
    found = [case.compare(name, partial(in_python, name, Path(sys.executable))) for name in sources]
    assert [result.outcome for result in found] == ["same ids", "differs", "refused", "refused", "refused"]
    assert found[0].checked > 10
    assert found[0].differing == 0
    assert found[1].differing == found[1].checked
    assert found[2].example == "ValueError: not mine"
    assert found[2].version
    assert "ended with 3" in found[3].example
    assert "No package metadata" in found[4].example


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
