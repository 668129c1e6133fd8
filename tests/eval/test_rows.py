"""Rows of the benchmark alone: lists of units, Kiwi's SwTokenizer, models behind MeCab."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from eval.rows import Adapted, marked_morphemes, open_row
from koktok.errors import ArtifactError
from koktok.foreign.trivial import OpenVocabulary


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


def test_plain_lists_of_jamo(tmp_path: Path) -> None:
    path = tmp_path / "tok.vocab"
    path.write_text("\n".join(["[UNK]\t-1", "▁\t9", *(f"{c}\t1" for c in "난ᄀ")]), "utf-8")
    row = open_row(str(path)).encode_lines(["난 가"])
    assert row.ids.tolist() == [2, 3, 4, 1, 5, 3]
    assert row.spans.tolist() == [[0, 1], [0, 1], [0, 1], [1, 2], [2, 3], [2, 3]]


def test_mecab_is_asked_for_and_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "m.model"
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["나 는 ▃ 집 에 ▃ 간다"] * 20), model_writer=file, vocab_size=16,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    assert "▃" in "".join(sentencepiece.SentencePieceProcessor(model_file=str(path)).id_to_piece(list(range(10))))
    model = open_row(str(path))
    assert not isinstance(model, Adapted)
    assert model.encode_lines(["나는 간다"]).ids.size
    pytest.importorskip("mecab")
    assert isinstance(open_row(f"sp:{path}#mecab"), Adapted)


def test_segmented_input_maps_back_to_the_line() -> None:
    inner = OpenVocabulary(
        "x", "x", lambda lines: [[(k, k + 1) for k in range(len(line))] for line in lines], digest=""
    )
    cut = marked_morphemes(lambda _: [(0, 2), (2, 3), (5, 6)], "▃")
    row = Adapted(inner, cut, note="segmented").encode_lines(["학교에  간"])
    # 학 교 space 에 space ▃ space 간: spaces that were put in have no width
    assert row.spans.tolist() == [[0, 1], [1, 2], [2, 2], [2, 3], [3, 3], [3, 5], [5, 5], [5, 6]]


@pytest.mark.slow
def test_shared_vocabularies_open_or_say_why(shared_text: Path, mini: list[str]) -> None:
    opened = 0
    for folder in sorted((shared_text.parent / "tokenizers").iterdir()):
        subject = open_row(str(folder))
        rows = subject.encode_lines(mini[:50])
        spans = np.stack([rows.starts, rows.ends], axis=1)
        assert (spans[:, 0] <= spans[:, 1]).all()
        assert rows.ends.max() <= rows.line_starts[-1]
        opened += 1
    assert opened > 20
