"""Folders in JavaScript: `@huggingface/tokenizers` and transformers.js give the ids that Python gives, and js-tiktoken reads
the exported pattern.

Two differences are those libraries' own, and the card of a folder names them: Unigram has no byte fallback there, and jamo is
not for them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import javascript
import pytest
from conftest import MODELS
from typer.testing import CliRunner

from koktok import load
from koktok.cli import app
from koktok.verification.probes import TRICKY

KINDS: dict[str, dict[str, Any]] = {
    **{
        kind: MODELS[kind]
        for kind in (
            "unigram",
            "bpe",
            "syllable",
        )  # CharDelimiterSplit, which words and parts of characters want, is unknown there
    },
    "bpe-bytes": {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "llama3"}},
    "roberta": {"special": {"style": "roberta"}},
    "roberta bpe-bytes": {
        **MODELS["bpe-bytes"],
        "pretokenize": {"pattern": "llama3"},
        "special": {"style": "roberta"},
    },
}

pytestmark = pytest.mark.network


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return javascript.install(tmp_path_factory.mktemp("javascript"))


@pytest.fixture(scope="session")
def lines(mini: list[str]) -> list[str]:
    """What breaks tokenizers, and two thousand lines."""
    found = [line for line in (*TRICKY, *mini, *(line[len(line) // 2 :] for line in mini)) if "\x00" not in line]
    assert len(found) > 2000
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["tokenizers", "transformers"])
def test_the_same_ids_in_javascript(
    kind: str, library: str, home: Path, trained: Callable[..., Path], lines: list[str], tmp_path: Path
) -> None:
    folder = trained(**KINDS[kind])
    tokenizer = load(folder)
    if tokenizer.vocab.kind == "unigram":  # there is no byte fallback for it in JavaScript
        fragments = set(tokenizer.vocab.fragment_ids)
        given = [line for line in lines if not set(tokenizer.encode(line).ids) & fragments]
        assert len(given) > len(lines) // 2
        lines = given
    if tokenizer.prefix:  # JavaScript puts the space also where normalization drops the first character
        lines = [line for line in lines if next(iter(tokenizer.normalizer.align(line).starts), 0) == 0]
    rows = javascript.rows_of(home, library, folder, lines, tmp_path)
    other = [line for line, (ids, _) in zip(lines, rows, strict=True) if ids != tokenizer.encode(line).ids]
    assert not other, other[:5]
    if tokenizer.lossless:
        assert [text for _, text in rows] == [tokenizer.normalize(line) for line in lines]


@pytest.mark.parametrize("library", ["tokenizers", "transformers"])
def test_what_is_unknown_in_javascript_is_a_replacement_character(
    library: str, home: Path, trained: Callable[..., Path], tmp_path: Path
) -> None:
    """A Unigram has no byte fallback there, and an unknown character must not become the NUL of the byte 0."""
    rows = javascript.rows_of(home, library, trained(), ["가 😀 나", "뷁\U000e0041"], tmp_path)
    assert [text for _, text in rows] == ["가 \ufffd 나", "\ufffd"]


@pytest.mark.parametrize("digits", ["single", "three", "free"])
@pytest.mark.parametrize("split", ["eojeol", "scripts"])
def test_js_tiktoken_reads_the_exported_pattern(
    split: str, digits: str, home: Path, trained: Callable[..., Path], lines: list[str], tmp_path: Path
) -> None:
    folder = trained(**MODELS["bpe-bytes"], pretokenize={"split": split, "digits": digits})
    tokenizer, out = load(folder), tmp_path / "ranks"
    assert not CliRunner().invoke(app, ["export", str(folder), "--to", "tiktoken", "-o", str(out)]).exit_code
    normal = [tokenizer.normalize(line) for line in lines]
    rows = javascript.rows_of(home, "js-tiktoken", out, normal, tmp_path)
    other = [line for line, (ids, _) in zip(normal, rows, strict=True) if ids != tokenizer.encode(line).ids]
    assert not other, other[:5]
    assert [text for _, text in rows] == normal
