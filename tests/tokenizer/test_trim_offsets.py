"""Offsets without the white space at the edges of tokens: ids stay, Hugging Face's offsets are ours, and its own collator
masks whole eojeols."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from koktok import Recipe, Tokenizer, load
from koktok.tokenizer.restyle import restyle

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "no prefix": {"pretokenize": {"prefix_space": False}},
    "bpe-bytes": {"train": {"model": "bpe-bytes"}},
}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Path:
    return trained(**KINDS[request.param], special={"style": "roberta"})


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    found = load(folder)
    assert found.style.trim_offsets
    return found


@pytest.fixture(scope="module")
def auto(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(str(folder))


def test_a_text_after_a_special_token_keeps_its_offsets(tokenizer: Tokenizer) -> None:
    """Hugging Face leaves nothing of the first token there, where a space goes before it."""
    text = "나는 <mask>에 간다."
    found = tokenizer.encode(text, allowed_special="all", add_special_tokens=True)
    behind = found.offsets[found.pieces.index("<mask>") + 1 :]
    assert next(text[a:b] for a, b in behind if a < b)[0] == "에"
    start, end = found.offsets[found.pieces.index("<mask>")]
    assert text[start:end] == "<mask>"


def test_the_collator_of_transformers_masks_whole_eojeols(tokenizer: Tokenizer, auto: Any, mini: list[str]) -> None:
    from transformers import DataCollatorForLanguageModeling

    collator = DataCollatorForLanguageModeling(
        auto,
        mlm_probability=0.3,
        whole_word_mask=True,
        mask_replace_prob=1.0,
        random_replace_prob=0.0,
        return_tensors="np",
        seed=1,
    )
    masked = whole = 0
    for line in mini[::8]:
        text = " ".join(line.split())
        row = auto(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        labels = collator([row])["labels"][0][1:-1]
        ours = tokenizer.encode(text)
        assert ours.ids == row["input_ids"][1:-1]
        eojeols: dict[int, set[bool]] = {}
        in_bytes = set()  # bytes of a character count as words there
        for i, (_, end), label in zip(ours.ids, ours.offsets, labels, strict=True):
            eojeol = text[:end].count(" ")
            eojeols.setdefault(eojeol, set()).add(label != -100)
            if _is_part_of_a_character(tokenizer.vocab.token_bytes[i]) or i < tokenizer.vocab.n_bytes:
                in_bytes.add(eojeol)
        alike = [found for eojeol, found in eojeols.items() if eojeol not in in_bytes]
        assert all(len(found) == 1 for found in alike), text
        masked += sum(found == {True} for found in alike)
        whole += len(alike)
    assert whole > 250
    assert 0.2 < masked / whole < 0.4


def _is_part_of_a_character(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


def test_without_it_a_sentence_is_one_word(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """The reason for the option."""
    text = "나는 나는 나는 나는"
    for trim, gaps in ((True, 3), (False, 0)):
        auto = AutoTokenizer.from_pretrained(str(restyle(tokenizer, trim_offsets=trim).save(tmp_path / str(trim))))
        spans = auto(text, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        assert sum(a[1] < b[0] for a, b in pairwise(spans)) == gaps


def test_answers_and_names_have_no_leading_space(auto: Any) -> None:
    """SQuAD and NER, as run_qa.py and run_ner.py do it: nothing has to be stripped."""
    question, context = "누가 책을 읽습니까?", "학생이 학교에서 책을 읽습니다."
    found = auto(question, context, return_offsets_mapping=True)
    for answer in ("학생이", "학교에서", "책을"):
        begin = context.index(answer)
        inside = [
            span
            for span, part in zip(found["offset_mapping"], found.sequence_ids(), strict=True)
            if part == 1 and span[0] < begin + len(answer) and span[1] > begin
        ]
        assert context[inside[0][0] : inside[-1][1]] == answer
    words = context.split()
    apart = auto(words, is_split_into_words=True, return_offsets_mapping=True)
    for word, text in enumerate(words):
        spans = [span for span, i in zip(apart["offset_mapping"], apart.word_ids(), strict=True) if i == word]
        assert (min(a for a, _ in spans), max(b for _, b in spans)) == (0, len(text))


def test_the_default_of_the_style() -> None:
    def on(**changes: Any) -> bool:
        return Recipe().changed(**changes).special.trim_offsets

    styles = ("plain", "gpt", "llama", "t5", "bert", "roberta")
    assert [on(special={"style": style}) for style in styles] == [False] * 4 + [True] * 2
    assert not on(special={"style": "bert"}, train={"model": "wordpiece"})
    assert not on(special={"style": "bert", "trim_offsets": False})
    bert = Recipe().changed(special={"style": "bert"})
    assert not bert.changed(special={"style": "gpt"}).special.trim_offsets
    assert bert.changed(train={"vocab_size": 8000}).special.trim_offsets
    assert Recipe.from_toml('[recipe.special]\nstyle = "bert"').special.trim_offsets
