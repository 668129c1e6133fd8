"""Published patterns: letter for letter, and the same ids in every library that knows them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import regex
from hypothesis import given
from llama_cpp import llama_cpp_ids
from strategies import korean_text

from koktok import load
from koktok.bulk.units import cuts_of
from koktok.metrics.borders import border_share
from koktok.model.vocab import unspell
from koktok.runtimes import gguf
from koktok.text.normalize import Normalizer
from koktok.text.patterns import ACROSS_SPACES, LLAMA_CPP, PUBLISHED, TIKTOKEN, Published, PublishedPattern
from koktok.text.pretokenize import Pattern, words
from koktok.tokenizer import TrainedTokenizer
from koktok.verification.probes import tricky_lines

NAMES = get_args(Published)


def _published(name: str) -> PublishedPattern:
    return PublishedPattern(name=name)


@pytest.fixture(scope="module")
def learnt(trained: Callable[..., Path]) -> Path:
    """A folder that was trained behind a published pattern."""
    return trained(train={"model": "bpe-bytes"})  # llama3 is its default


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, learnt: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pieces behind each pattern."""
    tokenizer = load(learnt)
    recipe = tokenizer.recipe.changed(pretokenize={"pattern": request.param})
    return TrainedTokenizer(recipe, tokenizer.vocab).save(tmp_path_factory.mktemp("published") / request.param)


@given(korean_text())
def test_parts_are_those_of_the_expression(text: str) -> None:
    normal = Normalizer()(text)
    for name in NAMES:
        pattern = PublishedPattern(name=name)
        parts = pattern.pretokenize(normal)
        assert "".join(parts) == normal
        assert [0, *pattern.cuts(normal)] == ([sum(map(len, parts[:i])) for i in range(len(parts))] or [0])
        if normal.isascii() or normal.isalpha():  # of rare characters two engines may have tables of two years
            assert parts == regex.findall(PUBLISHED[name], normal)


def test_tiktokens_spelling_cuts_lines_alike(mini: list[str]) -> None:
    for line in mini:
        assert regex.findall(TIKTOKEN["gpt2"], line) == PublishedPattern(name="gpt2").pretokenize(line)
        assert regex.findall(TIKTOKEN["cl100k"], line) == PublishedPattern(name="cl100k").pretokenize(line)


def test_the_counts_are_cut_by_it(learnt: Path) -> None:
    tokenizer = load(learnt)
    for piece in map(unspell, tokenizer.vocab.pieces):
        if "\ufffd" not in piece and "'" not in piece:
            assert not tokenizer.pattern.crosses(piece), piece


@pytest.mark.parametrize("name", ACROSS_SPACES)
@pytest.mark.parametrize("superwords", [0.0, 0.3])
def test_superwords_are_learnt_only_if_asked_for(
    name: str, superwords: float, trained: Callable[..., Path], mini: list[str]
) -> None:
    tokenizer = load(trained(train={"model": "bpe-bytes", "superwords": superwords}, pretokenize={"pattern": name}))
    pieces = [unspell(piece) for piece in tokenizer.vocab.pieces]
    crossing = [piece for piece in pieces if re.search(r"\S\s", piece)]
    assert bool(crossing) == bool(superwords)
    assert not any(re.search(r"\s[0-9]|[0-9]\s", piece) for piece in pieces)
    assert (border_share(tokenizer, mini) > 0) == bool(superwords)
    assert any(piece.endswith("다.") for piece in pieces) == (name == "superbpe")
    narrow = [tokenizer.encode(line, superwords=False).ids for line in mini]
    assert (narrow == [tokenizer.encode(line).ids for line in mini]) == (not superwords)
    assert not any(" " in tokenizer.decode([i]).lstrip(" ") for row in narrow for i in row)


@given(korean_text())
def test_words_alone_are_cut_as_in_their_text(text: str) -> None:
    """So a vocabulary without pieces across spaces gives the ids that were counted (law 11)."""
    normal = Normalizer()(text)
    for name in ACROSS_SPACES:
        pattern = PublishedPattern(name=name)
        inside = pattern.within_words
        assert inside.pretokenize(normal) == [part for word in words(normal) for part in inside.pretokenize(word)]
        if "\n" not in normal and "\r" not in normal:
            assert {*pattern.cuts(normal)} <= {*inside.cuts(normal)}


@pytest.mark.parametrize("name", ACROSS_SPACES)
def test_llama_cpp_has_it_by_name(name: str, trained: Callable[..., Path]) -> None:
    folder = trained(train={"model": "bpe-bytes", "superwords": 0.3}, pretokenize={"pattern": name})
    own = load(folder)
    table = gguf.table_of(own.definition)
    assert table.pre == name
    assert sum("ends llama.cpp" in note for note in gguf.notes(table)) == 1
    assert load(f"hf:{folder / 'tokenizer.json'}").gguf_vocab().pre == name


def test_steps_are_one_expression() -> None:
    assert PublishedPattern(name="superbpe").to_hf()["pretokenizers"][1]["pattern"] == {"Regex": r"(?=(\d{3})+(?!\d))"}
    text = "½1234567Ⅳ123 1２34５ 12 3456789 12,345"
    assert (
        "|".join(regex.findall(PUBLISHED["superbpe"], text)) == "½1|234|567Ⅳ|123| |1２|34５| |12| |3|456|789| |12|,|345"
    )


@pytest.mark.parametrize("pattern", [Pattern(split="scripts", digits="single"), Pattern(), *map(_published, NAMES)])
def test_javascript_reads_it(pattern: Pattern, mini: list[str]) -> None:
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    lines = [*map(Normalizer(), tricky_lines()), "I'll I'LL we've DON'T ABCdef 1234567890", *mini[::2]]
    script = (
        "const [p, lines] = JSON.parse(require('fs').readFileSync(0, 'utf-8')); const r = new RegExp(p, 'ug');"
        "console.log(JSON.stringify(lines.map((line) => line.match(r) ?? [])))"
    )
    asked = json.dumps([pattern.javascript, lines])
    done = subprocess.run(["node", "-e", script], input=asked, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [pattern.pretokenize(line) for line in lines]


def test_llama_cpp_gives_the_same_ids(folder: Path, mini: list[str], tmp_path: Path) -> None:
    tokenizer = load(folder)
    if tokenizer.pattern.regex not in [expression for expression, _ in LLAMA_CPP]:
        assert "patterns that are built into it" in gguf.refuses(tokenizer.definition)
        return
    table = gguf.table_of(tokenizer.definition)
    lines = [tokenizer.normalize(line) for line in mini[::3]]
    found = llama_cpp_ids(gguf.write(table, tmp_path / "a.gguf"), lines)
    assert found == [tokenizer.encode(line).ids for line in lines]


def test_spaces_behind_words_are_safe_cuts() -> None:
    safe = cuts_of(PublishedPattern(name="o200k"))
    assert safe.any()
    for char in "가a1.!漢カ\u0301":
        for name in NAMES:
            for rest in ("", " ", "\n", " 나", "\n 나"):
                both = PublishedPattern(name=name).within_words.pretokenize(f"나{char} {rest}나")
                assert len(f"나{char}") in [sum(map(len, both[:i])) for i in range(len(both))]
