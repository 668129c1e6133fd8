"""`koktok export` and `koktok import`, as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import conftest

from koktok import load
from koktok.runtimes import LibraryTokenizer

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
    line = load(trained()).normalize(mini[0])
    assert load(tmp_path / "back").encode(line).ids == load(trained()).encode(line).ids


def test_tiktoken_there_and_back(trained: Trained, tmp_path: Path, mini: list[str]) -> None:
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
    line = load(folder).normalize(mini[0])
    assert load(tmp_path / "back").encode(line) == load(folder).encode(line)
    code, _, err = koktok("export", tmp_path / "back", "--to", "hf", "--out", tmp_path / "hf")
    assert "note: 26 of 26 hard texts get the same ids as from the source" in err
    code, _, err = koktok("export", tmp_path / "back", "--to", "tiktoken", "--name", "mine", "--out", tmp_path / "t2")
    assert (tmp_path / "t2" / "mine.tiktoken").read_bytes() == (tmp_path / "t" / "mine.tiktoken").read_bytes()


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
    assert "kept as it is, run by tokenizers; 7 ids" in err
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
