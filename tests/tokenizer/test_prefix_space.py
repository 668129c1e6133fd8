"""A space before the first word: lossless, the same in every format, and words given apart get the ids of the running text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text
from transformers import AutoTokenizer

from koktok import Recipe, Tokenizer, load, train
from koktok.tokenizer.restyle import restyle

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"train": {"model": "bpe"}},
    "bpe-bytes": {"train": {"model": "bpe-bytes"}},
    "jamo": {"jamo": True},
}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Path:
    changes = KINDS[request.param]
    train = {"vocab_size": 2300, **changes.get("train", {})}
    return trained(**{**changes, "train": train, "pretokenize": {"prefix_space": True}})


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return load(folder)


@pytest.mark.parametrize("style", ["plain", "bert", "llama"])
def test_texts_with_special_and_added_tokens_are_restored(trained: Callable[..., Path], style: str) -> None:
    """No space is put behind a special token or one that a user adds, and every text comes back."""
    changes = {"special": {"style": style, "trim_offsets": False}, "pretokenize": {"prefix_space": True}}
    folder = trained(train={"vocab_size": 2300}, **changes)
    tokenizer, auto = load(folder), AutoTokenizer.from_pretrained(str(folder))
    special = tokenizer.style.specials[-1]
    for text in (
        f"앞{special}뒤",
        f"앞 {special} 뒤",
        f"{special}앞",
        f"{special} 앞",
        f" {special}",
        f"  앞\n {special}\n 뒤",
    ):
        ids = auto(text, add_special_tokens=False)["input_ids"]
        assert ids == tokenizer.encode(text, allowed_special="all").ids
        assert ids == tokenizer.encode_ids([text], allowed_special="all")[0].tolist()
        assert auto.decode(ids) == tokenizer.decode(ids) == text
    auto.add_tokens(["<new>"])
    for text in ("앞<new>뒤", "앞 <new> 뒤", "<new>앞", " <new> 앞<new>"):
        ids = auto(text, add_special_tokens=False)["input_ids"]
        assert ids.count(len(auto) - 1) == text.count("<new>")
        assert auto.decode(ids) == text
        assert "".join(auto.decode([i]) if i == len(auto) - 1 else "" for i in ids) == "<new>" * text.count("<new>")


@given(
    words=st.lists(korean_text().flatmap(lambda text: st.sampled_from(text.split() or ["가"])), min_size=1, max_size=8)
)
def test_split_words_get_the_ids_of_the_running_text(folder: Path, tokenizer: Tokenizer, words: list[str]) -> None:
    words = [word for word in words if tokenizer.normalize(word[:1])] or ["가"]
    if tokenizer.normalize(" ".join(words)) != " ".join(map(tokenizer.normalize, words)):
        return  # what stands beside a word decides what becomes of it (joiners of emoji)
    auto = _auto(folder)
    apart = auto(words, is_split_into_words=True, add_special_tokens=False, split_special_tokens=True)
    assert apart["input_ids"] == tokenizer.encode(" ".join(words)).ids
    assert apart.word_ids() == sorted(apart.word_ids())
    assert set(apart.word_ids()) == set(range(len(words)))


_LOADED: dict[Path, Any] = {}


def _auto(folder: Path) -> Any:
    if folder not in _LOADED:
        _LOADED[folder] = AutoTokenizer.from_pretrained(str(folder))
    return _LOADED[folder]


def test_the_model_and_the_style_decide_by_default() -> None:
    def on(**changes: Any) -> bool:
        return Recipe().changed(**changes).pretokenize.prefix_space

    styles = ("plain", "gpt", "llama", "bert", "roberta", "t5")
    assert all(on(special={"style": style}) for style in styles)
    assert [on(model="bpe-bytes", style=style) for style in styles] == [False] * 3 + [True] * 3
    assert not any(on(model=model) for model in ("wordpiece", "wordpiece-bytes", "word", "ngram", "morpheme"))
    assert Recipe(train={"model": "bpe"}).pretokenize.prefix_space
    assert not Recipe(train={"model": "bpe-bytes"}).pretokenize.prefix_space
    assert not on(special={"style": "bert"}, pretokenize={"prefix_space": False})
    assert not on(special={"style": "bert"}, train={"model": "wordpiece"})
    bert = Recipe().changed(model="bpe-bytes", style="bert")
    assert bert.changed(train={"vocab_size": 8000}).pretokenize.prefix_space
    assert not bert.changed(special={"style": "gpt"}).pretokenize.prefix_space
    assert Recipe.from_toml(bert.to_toml()) == bert


def test_another_style_changes_no_ids(trained: Callable[..., Path]) -> None:
    plain = load(trained(train={"vocab_size": 2300, "model": "bpe-bytes"}))
    bert = restyle(plain, "bert")
    assert not bert.prefix
    assert bert.encode("집에 간다.").ids == plain.encode("집에 간다.").ids
    assert restyle(bert, "gpt").prefix == ""


def test_first_words_are_counted_like_any_other() -> None:
    lines = ["학교에서 책을 읽는다.", "책을 학교에서 읽는다."] * 30
    recipe = Recipe().changed(holdout=0.0, train={"vocab_size": 375, "required": "none"})
    without, with_ = (train(lines, recipe.changed(pretokenize={"prefix_space": on})) for on in (False, True))
    assert all(word.startswith(" ") for word in with_.segmented.words)
    assert with_.segmented.total == without.segmented.total
    first, inside = with_.tokenizer.encode(lines[0]), with_.tokenizer.encode("책을 " + lines[0])
    assert inside.ids[-len(first.ids) :] == first.ids
