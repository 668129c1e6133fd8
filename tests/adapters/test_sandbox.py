"""Foreign definitions that end, stall or fill a process: tried in a child, and told as one error with its reason."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from koktok import load
from koktok.adapters import LibraryTokenizer, sandbox
from koktok.adapters.huggingface_adapter import HuggingFace
from koktok.adapters.sandbox import check
from koktok.adapters.tiktoken_adapter import Tiktoken
from koktok.errors import ArtifactError, InputError, KoktokError
from koktok.files.sentencepiece_model import ModelProto

Trained = Callable[..., Path]
RANKS = {bytes([byte]): byte for byte in range(256)}
GROWING = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 50}

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a pattern in exponential time": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}},
        "PanicException: .*retry-limit-in-match over",
    ),
    "a garbled table of characters": (
        {
            "normalizer": {
                "type": "Precompiled",
                "precompiled_charsmap": base64.b64encode(b"garbage" * 20).decode("ascii"),
            }
        },
        r"tokenizers ends the whole process \(SIGABRT\): memory allocation of \d+ bytes failed",
    ),
    "rules that make a gigabyte of a letter": (
        {"normalizer": {"type": "Sequence", "normalizers": [GROWING] * 6}},
        r"tokenizers ends the whole process \(SIGABRT\): memory allocation",
    ),
    "a decoder of Kiwi's, by name": ({"decoder": "Kiwi"}, "has Kiwi's own format"),
    "a row whose piece is a list": (
        {"model": {"type": "Unigram", "unk_id": 0, "vocab": [[["a"], 1]]}},
        "expected a piece and its score in each row of the vocabulary",
    ),
    "a normalizer that is a word": ({"normalizer": "NFC"}, "cannot read this tokenizer.json"),
    "an added token far away": (
        {"added_tokens": [{"id": 2**31, "content": "<x>", "special": False}]},
        "cannot read this tokenizer.json",
    ),
    "an id far away": (
        {"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 4_000_000_000}, "unk_token": "a"}},
        "gives the id 4000000000 in a vocabulary of 2 pieces",
    ),
}


def definition(trained: Trained, **nodes: Any) -> str:
    """A tokenizer.json of ours with other nodes."""
    content = json.loads((trained() / "tokenizer.json").read_text(encoding="utf-8"))
    return json.dumps(content | nodes, ensure_ascii=False)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on memory are Linux's")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_definition_is_an_error_with_its_reason(
    name: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MEMORY", 768 << 20)  # a quarter of the time that 2 GB take to fill
    nodes, reason = HOSTILE[name]
    file = tmp_path / "tokenizer.json"
    file.write_text(definition(trained, **nodes), encoding="utf-8")
    with pytest.raises(ArtifactError, match=reason):
        load(file)


@pytest.mark.parametrize("node", ["normalizer", "pre_tokenizer"])
@pytest.mark.parametrize("value", [["NFC"], {}, {"type": "Sequence", "normalizers": 3}])
def test_nodes_of_another_shape_are_no_traceback(node: str, value: Any, trained: Trained, tmp_path: Path) -> None:
    """The library reads older layouts, which are not ours."""
    file = tmp_path / "tokenizer.json"
    file.write_text(definition(trained, **{node: value}), encoding="utf-8")
    with suppress(ArtifactError):  # what the library refuses
        assert isinstance(load(file), LibraryTokenizer)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on memory are Linux's")
def test_an_imported_folder_is_checked_on_loading(trained: Trained, tmp_path: Path) -> None:
    """Its digest is right, and says nothing of what the library does with it."""
    text = definition(trained, **HOSTILE["a garbled table of characters"][0])
    tokenizer = HuggingFace(definition(trained))
    tokenizer.text = text
    tokenizer.save(tmp_path / "folder")
    with pytest.raises(ArtifactError, match="ends the whole process"):
        load(tmp_path / "folder")


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


@pytest.mark.parametrize("rank", [3 * 10**8, 10**9, 2**63])
def test_a_rank_far_away_is_refused_at_once(rank: int, tmp_path: Path) -> None:
    file = tmp_path / "a.tiktoken"
    rows = [*RANKS.items(), (b"ab", rank)]
    file.write_text("".join(f"{base64.b64encode(piece).decode()} {i}\n" for piece, i in rows), encoding="utf-8")
    begun = time.process_time()
    for attempt in (lambda: load(file, pattern="gpt2"), lambda: load(f"tiktoken:{file}#gpt2")):
        with pytest.raises(KoktokError, match=f"gives the id {rank} in a vocabulary of 25"):
            attempt()
    with pytest.raises(ArtifactError, match="gives the id 999999999"):
        load(_ranks(tmp_path), pattern="gpt2", specials={"<x>": 999_999_999})
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("pattern", ["x*", "(?=a)"])
def test_a_pattern_that_matches_nothing_is_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="tiktoken fails: PanicException"):
        load(_ranks(tmp_path), pattern=pattern)


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


def test_a_panic_while_encoding_is_an_error_of_ours(trained: Trained) -> None:
    """The check cannot know every text; a panic of Rust is no `Exception`."""
    nodes, _ = HOSTILE["a pattern in exponential time"]
    nodes["pre_tokenizer"]["pattern"]["Regex"] = "(ㅁ+)+$"
    adapter = HuggingFace(definition(trained, **nodes), proven=True)
    assert adapter.read("가")[0]
    with pytest.raises(InputError, match=r"the library tokenizers fails on this text: PanicException"):
        adapter.read(f"{'ㅁ' * 60}!")
    ranks = Tiktoken(import_ranks("x*"), proven=True)
    with pytest.raises(InputError, match="the library tiktoken fails on this text: PanicException"):
        ranks.read("가나")


def import_ranks(pattern: str) -> Any:
    from koktok.formats.tiktoken import Ranks

    return Ranks("hostile", pattern, RANKS, {})


def test_a_definition_that_passed_is_not_checked_again(
    trained: Trained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path))
    children = []
    real = subprocess.run

    def counted(*words: Any, **options: Any) -> Any:
        children.append(words)
        return real(*words, **options)

    monkeypatch.setattr(sandbox.subprocess, "run", counted)
    text = definition(trained)
    for _ in range(3):
        check("tokenizers", text, where="here")
    assert len(children) == 1
    assert children[0][0][1] == "-P"
    with pytest.raises(ArtifactError):  # what failed is tried each time
        check("tiktoken", "x*", RANKS, {}, where="here")
    with pytest.raises(ArtifactError):
        check("tiktoken", "x*", RANKS, {}, where="here")
    assert len(children) == 3
    monkeypatch.setattr(sandbox, "_VERSION", 2)
    check("tokenizers", text, where="here")
    assert len(children) == 4


def test_a_read_only_cache_is_no_error(trained: Trained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "file"))
    check("tokenizers", definition(trained), where="here")


def test_the_child_imports_nothing_from_the_working_directory(
    trained: Trained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("tokenizers", "typing", "json", "koktok"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend("")
    check("tokenizers", definition(trained), where="here")
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on time are Linux's")
def test_a_child_that_does_not_finish_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "child.py"
    slow.write_text(
        "import marshal, sys, resource\n"
        "*_, seconds = marshal.load(sys.stdin.buffer)\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))\n"
        "while True: pass\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("KOKTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sandbox, "__file__", str(tmp_path / "sandbox.py"))
    monkeypatch.setattr(sandbox, "SECONDS", 1)
    with pytest.raises(ArtifactError, match=r"does not finish in [14] s"):
        check("tokenizers", "{}", where="here")
    slow.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="does not finish in 4 s"):
        check("tokenizers", "{}", where="here")
