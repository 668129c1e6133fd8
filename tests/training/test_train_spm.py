"""SentencePiece under our cuts: canonical, deterministic, inside morphemes, and clear about sizes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from reference.trainers import train_spm

from koktok.errors import VocabSizeError
from koktok.segment.segmented import SegmentedCounts
from koktok.training.spm import DELIMITER

WORDS = SegmentedCounts.from_marked(
    {
        " 학교|에서|는": 30,
        " 학교|에": 20,
        "학교|를": 10,
        " 집|에서|는": 15,
        " 집|에": 9,
        "  집": 3,
        " 사람|이": 12,
        " 사람|은": 13,
        " 먹|었|다": 14,
        " 갔|다": 22,
    }
)
LETTERS = sorted({char for word in WORDS.words for char in word})


@pytest.mark.parametrize(("model", "more"), [("unigram", 2), ("bpe", 8)])
def test_pieces_stay_inside_morphemes(model: str, more: int) -> None:
    size = 256 + len(LETTERS) + more
    vocab = train_spm(WORDS, model=model, vocab_size=size, alphabet=LETTERS)  # type: ignore[arg-type]
    assert vocab.kind == model
    assert set(LETTERS) < set(vocab.pieces)
    inside = {part[a:b] for i in range(len(WORDS)) for part in WORDS.pieces(i) for a in range(9) for b in range(10)}
    assert set(vocab.pieces) <= inside
    assert " 학" in "".join(vocab.pieces)


@pytest.mark.parametrize(("model", "more"), [("unigram", 8), ("bpe", 14)])
def test_pieces_across_morphemes_fill_the_rest_when_asked_for_more(model: str, more: int) -> None:
    size = 256 + len(LETTERS) + more
    vocab = train_spm(WORDS, model=model, vocab_size=size, alphabet=LETTERS)  # type: ignore[arg-type]
    assert vocab.size == size
    inside = {part for i in range(len(WORDS)) for part in WORDS.pieces(i)}
    assert any(all(piece not in part for part in inside) for piece in vocab.pieces)


def test_too_large_names_the_largest_and_that_one_works() -> None:
    with pytest.raises(
        VocabSizeError, match=r"too few distinct pieces .* of 5,000; at most \d+ are possible"
    ) as caught:
        train_spm(WORDS, model="unigram", vocab_size=5000, alphabet=LETTERS, specials=("<unk>",))
    most = int(caught.value.hint.split()[-1])
    assert train_spm(WORDS, model="unigram", vocab_size=most, alphabet=LETTERS, specials=("<unk>",)).size == most


def test_words_that_spell_a_special_token_or_hold_odd_characters_are_left_out() -> None:
    odd = SegmentedCounts.from_marked({" </s></s>": 50, "▁▁": 50, "\t\t": 50, "가나": 50, " 가나": 40, "뷁뷁": 50})
    letters = [*" 가나</s>\t▁"[:-1]]
    vocab = train_spm(odd, model="bpe", vocab_size=256 + 8 + 1 + 2, alphabet=letters, specials=("</s>",))
    assert [piece for piece in vocab.pieces if len(piece) > 1] == ["가나", " 가나"]
    assert DELIMITER not in "".join(vocab.pieces)


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_the_same_bytes_in_any_process(model: str) -> None:
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/training']\n"
        "from test_train_spm import WORDS, LETTERS\n"
        "from koktok.training.spm import train_spm; from koktok.training.job import Job\n"
        f"job = Job(WORDS, 256 + len(LETTERS) + 9, {model!r}, alphabet=set(LETTERS), max_length=16)\n"
        "print(train_spm(job).vocab.digest())"
    )
    from conftest import ROOT

    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
