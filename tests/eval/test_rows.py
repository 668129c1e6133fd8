"""Rows of the benchmark alone: lists of characters, Kiwi's SwTokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.rows import open_row
from koktok.errors import ArtifactError


@pytest.mark.parametrize("content", ['{"broken": 1}', '{"cut short": ', ""])
def test_a_broken_vocabulary_of_kiwi_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content, "utf-8")
    with pytest.raises(ArtifactError, match=r"a\."):
        open_row(f"kiwi-sw:{tmp_path / 'a.json'}")


def test_other_references_are_those_of_koktok() -> None:
    assert open_row("syllables").encode_lines(["가 나"]).ids.tolist() == [0, 1]


def test_a_list_of_characters_is_no_wordpiece(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(["[PAD]", "[UNK]", "나", "는", "학"]), "utf-8")
    assert open_row(str(vocab)).encode_lines(["나는 뷁"]).ids.tolist() == [2, 3, 1]


def test_a_character_is_its_bytes_and_a_list_without_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n▁\n나", "utf-8")
    row = open_row(f"plain:{vocab}")
    assert row.encode_lines(["나 x"]).spans.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert [row.token_bytes(i) for i in range(4)] == [None, None, b" ", "나".encode()]
    vocab.write_text("나\n는", "utf-8")
    with pytest.raises(ArtifactError, match="has none of"):
        open_row(f"plain:{vocab}")
