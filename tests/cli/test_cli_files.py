"""`koktok export` and `koktok import`, as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import conftest
import pytest

from koktok import load
from koktok.adapters import LibraryTokenizer

Trained = Callable[..., Path]


def koktok(*words: object) -> tuple[int, str, str]:
    """Run the command: exit code, stdout, stderr."""
    done = conftest.koktok(*words)
    return done.returncode, done.stdout, done.stderr


def test_spm_there_and_back(trained: Trained, tmp_path: Path, mini: list[str]) -> None:
    code, out, err = koktok("export", trained(), "--to", "spm", "--out", tmp_path / "a.model")
    assert (code, out) == (0, f"{tmp_path / 'a.model'}\n")
    assert "note: not normalized by SentencePiece" in err
    assert (tmp_path / "a.model").read_bytes() == (trained() / "tokenizer.model").read_bytes()
    code, out, err = koktok("import", tmp_path / "a.model", "--out", tmp_path / "back")
    assert (code, out) == (0, f"{tmp_path / 'back'}\n")
    assert "run by sentencepiece; 2,300 ids" in err
    back, ours = load(tmp_path / "back"), load(trained())
    # SentencePiece's space before the first word is no mark where the text begins with a space.
    lines = [line for line in map(ours.normalize, mini[::9]) if not line.startswith(" ")]
    assert [back.encode(line).ids for line in lines] == [ours.encode(line).ids for line in lines]


def test_tiktoken_there_and_back(trained: Trained, tmp_path: Path, mini: list[str]) -> None:
    pytest.importorskip("tiktoken", reason="the extra `tiktoken` is not installed")
    folder = trained(train={"model": "bpe-bytes"})
    code, _, err = koktok("export", folder, "--to", "tiktoken", "--name", "mine", "--out", tmp_path / "t")
    assert code == 0
    assert "no normalizer" in err
    assert sorted(file.name for file in (tmp_path / "t").iterdir()) == [
        "mine.tiktoken",
        "tiktoken.json",
        "tiktoken.sha256",
    ]
    code, _, err = koktok("import", tmp_path / "t", "--out", tmp_path / "back")
    assert code == 0
    assert "run by tiktoken; 2,300 ids\n26 of 26 hard texts come back as they were" in err
    back, ours = load(tmp_path / "back"), load(folder)
    for line in map(ours.normalize, mini[::9]):
        assert (back.encode(line).ids, back.encode(line).offsets) == (ours.encode(line).ids, ours.encode(line).offsets)
    code, _, err = koktok("export", tmp_path / "back", "--to", "hf", "--out", tmp_path / "hf")
    assert "note: 26 of 26 hard texts get the same ids as from the source" in err
    code, _, err = koktok("export", tmp_path / "back", "--to", "tiktoken", "--name", "mine", "--out", tmp_path / "t2")
    assert (tmp_path / "t2" / "mine.tiktoken").read_bytes() == (tmp_path / "t" / "mine.tiktoken").read_bytes()


def test_gguf_says_what_differs(trained: Trained, tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the extra `gguf` is not installed")
    code, _, err = koktok("export", trained(), "--to", "gguf", "--out", tmp_path / "a.gguf")
    assert code == 0
    assert (tmp_path / "a.gguf").read_bytes()[:4] == b"GGUF"
    assert "note: llama.cpp runs it as `t5`" in err
    assert "note: no byte fallback" in err
    folder = trained(train={"model": "bpe-bytes"}, pretokenize={"pattern": "koktok"})
    code, out, err = koktok("export", folder, "--to", "gguf", "--out", tmp_path / "b.gguf")
    assert (code, out) == (1, "")
    assert "patterns that are built into it" in err
    assert "hint: koktok train TEXT --model bpe" in err
    assert not (tmp_path / "b.gguf").exists()


def test_hf_in_another_style(trained: Trained, tmp_path: Path) -> None:
    words = ("--style", "gpt", "--chat-template", "chatml", "--pad-to-multiple", 64)
    assert koktok("export", trained(), "--to", "hf", "--out", tmp_path / "gpt", *words)[0] == 0
    config = json.loads((tmp_path / "gpt" / "tokenizer_config.json").read_text())
    assert config["eos_token"] == "<|im_end|>"
    assert "im_start" in config["chat_template"]
    read = load(tmp_path / "gpt")
    assert read.vocab.size % 64 == 0
    assert read.encode("한국어").ids == load(trained()).encode("한국어").ids


def test_a_vocab_txt(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\n학교\n##에\n")
    code, _, err = koktok("import", tmp_path / "vocab.txt", "--out", tmp_path / "out")
    assert code == 0
    assert "kept as it is, run by tokenizers; 3 ids" in err
    assert isinstance(load(tmp_path / "out"), LibraryTokenizer)
    assert koktok("encode", tmp_path / "out", tmp_path / "vocab.txt")[1].splitlines()[1] == "1"
    for to, message in (("spm", "is not a SentencePiece model"), ("tiktoken", "has no ranks"), ("gguf", "no GGUF")):
        code, _, err = koktok("export", tmp_path / "out", "--to", to, "--out", tmp_path / "x")
        assert code != 0
        assert message in err
    assert not (tmp_path / "x").exists()
    assert (
        "styles are for koktok's own"
        in koktok("export", tmp_path / "out", "--to", "hf", "--style", "bert", "--out", tmp_path / "x")[2]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "spm", "--style", "bert"), "`--style` does nothing with `--to spm`"),
        (("--to", "tiktoken", "--name", "../x"), "`--name ../x` is not a name of a file"),
        (("--to", "hf", "--name", "x"), "`--name` does nothing with `--to hf`"),
        (("--to", "gguf", "--user-defined", "<s>"), "`--user-defined` does nothing with `--to gguf`"),
        (("--to", "spm", "--user-defined", "<x>"), "'<x>' is not a special token"),
        (("--to", "hf", "--style", "no"), "style"),
        (("--to", "no"), "Invalid value"),
    ],
)
def test_words_that_fit_nothing(trained: Trained, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    code, out, err = koktok("export", trained(), *words, "--out", tmp_path / "x")
    assert code != 0
    assert out == ""
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_lost(trained: Trained, tmp_path: Path) -> None:
    """Neither the tokenizer that is exported, nor another one, nor a folder of something else."""
    folder = load(trained()).save(tmp_path / "own")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert "is the tokenizer itself" in koktok("export", folder, "--to", "hf", "--out", folder)[2]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("x")
    for command in (("export", folder, "--to", "hf"), ("import", folder / "tokenizer.json")):
        code, _, err = koktok(*command, "--out", tmp_path / "other")
        assert code == 2
        assert "is not empty" in err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "koktok.toml").write_text("[recipe]\n")
    code, _, err = koktok("export", folder, "--to", "tiktoken", "--out", tmp_path / "mine")
    assert code == 2
    assert "which would be lost" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine", "other", "own"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.model",), "there is no file, folder or tokenizer"),
        (("vocab.txt", "--pattern", "gpt2"), "a pattern and special tokens are for tiktoken ranks"),
        (("vocab.txt", "--special", "x"), "expected `--special` with TOKEN=ID, got `x`"),
        (("cut.json",), "is not JSON"),
    ],
)
def test_imports_that_fail_write_nothing(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\n학교\n")
    (tmp_path / "cut.json").write_text('{"model": {"vocab')
    code, out, err = koktok("import", tmp_path / words[0], *words[1:], "--out", tmp_path / "out")
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cut.json", "vocab.txt"]
