"""One rule for every verb that writes: another result is replaced with `--force` alone, the same one may be written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MINI
from test_files import state
from typer.testing import CliRunner

from koktok.cli import app
from koktok.errors import UsageError

Trained = Callable[..., Path]
NEWS = MINI / "news.txt"
NGRAM = ("--model", "ngram", "--segmenter", "whitespace", "--no-compare", "-q")
VERBS: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "train": (("train", MINI, *NGRAM, "--vocab-size", 2300, "--log", "{out}.json"), ("--vocab-size", 2310)),
    "export hf": (("export", "{uni}", "--to", "hf", "--style", "bert"), ("--style", "roberta")),
    "export tiktoken": (("export", "{bytes}", "--to", "tiktoken"), ("--name", "other")),
    "export spm": (("export", "{uni}", "--to", "spm"), ("--user-defined", "<s>")),
    "export gguf": (("export", "{uni}", "--to", "gguf", "-q"), ("--name", "other")),
    "import": (("import", "{uni}/tokenizer.json"), ()),
    "report": (("report", "{uni}", "--text", NEWS, "--resamples", 0, "-q"), ("--sentences", 3)),
    "encode": (("encode", "{uni}", MINI, "--format", "npy"), ("--shard-tokens", 900)),
    "count": (("count", MINI, "-q"), ("--min-count", 2)),
    "playground": (("playground", "{uni}", "--words", 1, "-q"), ("--title", "other")),
    "vocabulary get": (("vocabulary", "get", "ko-16k"), ()),
    "extend": (("extend", "{bytes}", NEWS, "--add", 20, "-q"), ("--add", 21)),
    "extend --prune": (("extend", "{bytes}", NEWS, "--prune", 5, "-q"), ("--prune", 6)),
    "instances": (("instances", "{uni}", NEWS, "--segmenter", "whitespace", "-q"), ("--seed", 3)),
}
OTHERS = {
    "import": ("import", "{bytes}/tokenizer.json"),
    "vocabulary get": ("vocabulary", "get", "ko-32k-bytes"),
}
FILES = {"export spm": "out.model", "export gguf": "out.gguf", "count": "out.parquet", "playground": "out.html"}


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("verb", VERBS)
def test_another_result_is_replaced_with_force_alone(verb: str, trained: Trained, tmp_path: Path) -> None:
    if verb == "export gguf":
        pytest.importorskip("gguf", reason="the extra `gguf` is not installed")
    out = tmp_path / FILES.get(verb, "out")
    places = {"uni": trained(), "bytes": trained(train={"model": "bpe-bytes"}), "out": out}

    def typed(*words: object) -> list[str]:
        return [str(word).format(**places) for word in (*words, "--out", out)]

    first = typed(*VERBS[verb][0])
    other = typed(*OTHERS.get(verb, (*VERBS[verb][0], *VERBS[verb][1])))
    done = run(*first)
    assert done.exit_code == 0, (done.output, done.exception)
    if out.is_dir():
        (out / "mine").write_text("mine")
    before = state(tmp_path)
    done = run(*other)
    assert isinstance(done.exception, UsageError), (done.output, done.exception)
    assert "already exists and holds another" in done.exception.message
    assert "--force" in done.exception.hint
    assert {name: data for name, data in state(tmp_path).items() if ".parts" not in name} == before
    done = run(*first)
    assert done.exit_code == 0, (done.output, done.exception)
    done = run(*other, "--force")
    assert done.exit_code == 0, (done.output, done.exception)
    after = state(tmp_path)
    assert after != before
    if out.is_dir():
        assert after["out/mine"] == b"mine"
    done = run(*other)
    assert done.exit_code == 0, (done.output, done.exception)


def test_the_same_command_on_another_text_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes(NEWS.read_bytes())
    words = ("train", text, *NGRAM, "--vocab-size", 2000, "--out", tmp_path / "out")
    assert run(*words).exit_code == 0
    assert run(*words).exit_code == 0
    before = state(tmp_path / "out")
    text.write_bytes(NEWS.read_bytes() + "한 줄 더\n".encode())

    def train(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    with monkeypatch.context() as patch:
        patch.setattr("koktok.pipeline.road.train", train)
        assert "holds another tokenizer" in str(run(*words).exception)
    assert state(tmp_path / "out") == before
    assert run(*words, "--force").exit_code == 0
    assert state(tmp_path / "out") != before


def test_token_files_of_another_text_are_not_taken_for_these(trained: Trained, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("나는 집에\n", encoding="utf-8")
    words = ("encode", trained(), text, "--format", "npy", "-q", "--out", tmp_path / "out")
    assert run(*words).exit_code == 0
    before = state(tmp_path / "out")
    assert run(*words).exit_code == 0
    assert state(tmp_path / "out") == before
    text.write_text("나는 학교에\n", encoding="utf-8")
    assert "already exists and holds another" in str(run(*words).exception)
    assert state(tmp_path / "out") == before
    assert run(*words, "--force").exit_code == 0
    assert state(tmp_path / "out") != before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
