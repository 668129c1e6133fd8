"""Definitions that no library can use: an error of koktok with the library's reason, and no traceback."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from koktok import load
from koktok.errors import ArtifactError, InputError, KoktokError
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.sentencepiece.message import ModelProto

Trained = Callable[..., Path]
RANKS = {bytes([byte]): byte for byte in range(256)}


def definition(trained: Trained, **nodes: Any) -> str:
    """A tokenizer.json of ours with other nodes."""
    content = json.loads((trained() / "tokenizer.json").read_text(encoding="utf-8"))
    return json.dumps(content | nodes, ensure_ascii=False)


@pytest.mark.parametrize("node", ["normalizer", "pre_tokenizer"])
@pytest.mark.parametrize("value", [["NFC"], {}, {"type": "Sequence", "normalizers": 3}])
def test_nodes_of_another_shape_are_no_traceback(node: str, value: Any, trained: Trained, tmp_path: Path) -> None:
    """The library reads older layouts, which are not ours."""
    file = tmp_path / "tokenizer.json"
    file.write_text(definition(trained, **{node: value}), encoding="utf-8")
    with suppress(ArtifactError):  # what the library refuses
        assert isinstance(load(file), LibraryTokenizer)


@pytest.mark.parametrize("depth", [3_000, 200_000])
def test_json_nested_deep_is_no_traceback(depth: int, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": {"vocab": {}}, "x": ' + "[" * depth + "]" * depth + "}", encoding="utf-8")
    with pytest.raises(ArtifactError, match="nested too deep"):
        load(file)
    with pytest.raises(KoktokError):
        load(f"hf:{file}")
    (tmp_path / "tokenizer_config.json").write_text("[" * depth, encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("[UNK]\n나라\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="nested too deep"):
        load(tmp_path / "vocab.txt")


def test_a_text_that_the_pattern_does_not_match_is_an_error(tmp_path: Path) -> None:
    tokenizer = load(_ranks(tmp_path), pattern="[a-z]+")
    assert tokenizer.encode("abc").offsets == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(InputError, match="does not match a part of this text"):
        tokenizer.encode("abc 가")


def _ranks(folder: Path) -> Path:
    file = folder / "ok.tiktoken"
    file.write_text("".join(f"{base64.b64encode(p).decode()} {i}\n" for p, i in RANKS.items()), encoding="utf-8")
    return file


def test_a_garbled_sentencepiece_model_is_an_error(trained: Trained, tmp_path: Path) -> None:
    model = ModelProto((trained() / "tokenizer.model").read_bytes())
    model.normalizer_spec.precompiled_charsmap = b"\xff\xff\xff\x7f" + b"garbage" * 300
    (tmp_path / "m.model").write_bytes(model.serialized())
    for attempt in (lambda: load(tmp_path / "m.model"), lambda: load(f"sp:{tmp_path / 'm.model'}")):
        with pytest.raises(KoktokError, match="Trie data size"):
            attempt()


def test_a_panic_while_encoding_is_an_error_of_koktok(trained: Trained, tmp_path: Path) -> None:
    """A panic of Rust is no `Exception`."""
    slow = {"type": "Split", "pattern": {"Regex": "(ㅁ+)+$"}, "behavior": "Isolated", "invert": False}
    adapter = HuggingFace(definition(trained, pre_tokenizer=slow))
    assert adapter.read("가")[0]
    with pytest.raises(InputError, match=r"the library tokenizers fails on this text: PanicException"):
        adapter.read(f"{'ㅁ' * 60}!")
    with pytest.raises(InputError, match="the library tiktoken fails on this text: PanicException"):
        load(_ranks(tmp_path), pattern="x*").encode("가나")
