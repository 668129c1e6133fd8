"""Runtimes of other people: what they answer is told, and what they cannot do is no failure."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import koktok

from eval.runtimes import results
from koktok.verification import Verification, runtimes
from koktok.verification.probes import tricky_lines
from koktok.verification.runtimes import RUNTIMES, runtime_results


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


STAND_INS = {
    "tokie": """
        import tokenizers
        class Tokenizer:
            def __init__(self, file): self.made = tokenizers.Tokenizer.from_file(file)
            from_json = classmethod(lambda cls, file: cls(file))
            encode_batch = lambda self, lines, **options: self.made.encode_batch(lines, **options)""",
    "snaptokens": """
        class Tokenizer:
            from_file = classmethod(lambda cls, file: cls())
            encode_batch = lambda self, lines, **options: [[1] for line in lines]""",
    "fastokens": """
        raise ImportError("built for another machine")""",
}
"""Packages under the names of runtimes: one that gives our ids, one that gives others, and one that fails."""


@pytest.fixture
def shown(
    trained: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, list[str]]]:
    """What `koktok verify --runtimes` prints of each; the proof itself has tests of its own, and takes seconds."""
    monkeypatch.setattr(
        sys.modules["koktok.verification"], "verify", lambda folder, _lines, **_options: Verification(str(folder))
    )
    slow = ("transformers", "tiktoken", "gigatoken", "kitoken")  # to import, where they are installed
    monkeypatch.setattr(runtimes, "RUNTIMES", RUNTIMES | dict.fromkeys(slow, ""))
    text = tmp_path / "text.txt"
    text.write_text("학교에서는 책을 읽습니다.\n셋째 줄\n", encoding="utf-8")

    def rows(**recipe: object) -> dict[str, list[str]]:
        done = koktok("verify", trained(**recipe), text, "--runtimes", "--limit", 1, "-q")
        assert done.returncode == 0, done.stderr
        cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in done.stdout.splitlines()]
        return {row[0]: row[1:] for row in cells if row and row[0] in RUNTIMES}

    return rows


def test_the_command_says_of_every_runtime_what_it_does(
    shown: Callable[..., dict[str, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked for where koktok is installed, and none of them makes the folder fail."""
    for name, code in STAND_INS.items():
        about = tmp_path / f"{name}-7.0.dist-info" / "METADATA"
        about.parent.mkdir()
        about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 7.0\n", encoding="utf-8")
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = shown()
    assert set(found) == set(RUNTIMES)
    looked = found["tokenizers"][2].split()[-1]
    assert int(looked) > 10, "hostile lines are asked besides"
    assert found["tokenizers"][1:] == ["same ids", f"0 of {looked}"]
    assert found["snaptokens"][:3] == ["7.0", "differs", f"{looked} of {looked}"]
    assert found["fastokens"] == ["7.0", "refused", "0 of 0", "ImportError: built for another machine"]
    assert found["tokie"] == ["7.0", "same ids", f"0 of {looked}"]


@pytest.mark.slow
@pytest.mark.network
def test_the_command_finds_a_runtime_that_was_just_installed(
    shown: Callable[..., dict[str, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "site"), "tokie"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no package index is reachable: {done.stderr.strip()[-200:]}")
    monkeypatch.syspath_prepend(tmp_path / "site")
    recipe = {"train": {"model": "bpe-bytes", "vocab_size": 900}, "pretokenize": {"pattern": "gpt2"}}
    version, outcome, *_ = shown(**recipe)["tokie"]
    assert (version[0].isdigit(), outcome) == (True, "same ids")


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
