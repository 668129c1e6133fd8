"""A space before the first word: lossless, the same in every format, and words given apart get the ids of the running text."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from llama_cpp import llama_cpp_ids
from strategies import korean_text
from tokenizers import Tokenizer as Library
from transformers import AutoTokenizer

import koktok
from koktok import Recipe, Tokenizer, train
from koktok.errors import RecipeError
from koktok.formats import gguf, tiktoken
from koktok.formats.limits import limitations
from koktok.formats.styles import restyle
from koktok.verification import verify

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"train": {"model": "bpe"}},
    "bpe-bytes": {"train": {"model": "bpe-bytes"}},
    "jamo": {"jamo": True},
}
FIRST = ["", " ", "  ", "\t", "\n", "\u200b", "\u0301", "쀍", "\u1100", "3", "."]
TEXT = st.builds("{}{}".format, st.sampled_from(FIRST), korean_text())


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Path:
    changes = KINDS[request.param]
    train = {"vocab_size": 2300, **changes.get("train", {})}
    return trained(**{**changes, "train": train, "pretokenize": {"prefix_space": True}})


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.load(folder)


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return Library.from_file(str(folder / "tokenizer.json"))


@given(text=TEXT)
def test_every_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    """Law 4, and the same by the gigabyte and one by one."""
    normal, ids = tokenizer.normalize(text), tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == normal
    assert bool(ids) == bool(normal)
    tokens = tokenizer.encode_ids([text, "", text])
    assert [row.tolist() for row in tokens] == [ids, [], ids]
    assert tokenizer.decode_ids(tokens) == tokenizer.decode_batch([ids, [], ids]) == [normal, "", normal]
    stream = tokenizer.stream()
    for _ in range(2):  # the second time it is as new
        assert "".join(map(stream.push, ids)) + stream.finish() == normal


@given(text=TEXT)
def test_other_libraries_give_the_same_ids(tokenizer: Tokenizer, library: Library, folder: Path, text: str) -> None:
    """Law 6."""
    library.encode_special_tokens = True
    ours, theirs = tokenizer.encode(text), library.encode(text, add_special_tokens=False)
    assert ours.ids == theirs.ids
    assert library.decode(ours.ids, skip_special_tokens=False) == tokenizer.decode(ours.ids)
    if (folder / "tokenizer.model").exists():
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        normal = tokenizer.normalizer(text)
        if tokenizer.prefix == "each" or not normal.startswith(" "):  # which SentencePiece has no mark for
            assert processor.encode(normal) == tokenizer.encode(normal).ids


@given(text=TEXT)
def test_offsets_are_places_of_the_raw_text(tokenizer: Tokenizer, text: str) -> None:
    """Law 7: half-open, in order; the space has the place of the character behind it, and the rest is as without it."""
    offsets = tokenizer.encode(text).offsets
    assert all(0 <= start < end <= len(text) for start, end in offsets)
    assert offsets == sorted(offsets)
    if tokenizer.normalizer(text) == text and not tokenizer.vocab.bytewise:
        known = [(piece, text[a:b]) for piece, (a, b) in zip(tokenizer.encode(text).pieces, offsets, strict=True)]
        spelled = [pair for pair in known if not pair[0].startswith("<0x")]
        assert all(piece == part or i == 0 for i, (piece, part) in enumerate(spelled))
        if known and known[0][0] not in (" ", "<0x20>"):
            assert known[0][0] == " " + known[0][1]


@pytest.mark.parametrize("style", ["plain", "bert", "llama"])
def test_texts_with_special_and_added_tokens_in_their_midst_stay_exact(
    trained: Callable[..., Path], style: str
) -> None:
    """No space is put behind a special token or one that a user adds, and every text comes back."""
    changes = {"special": {"style": style, "trim_offsets": False}, "pretokenize": {"prefix_space": True}}
    folder = trained(train={"vocab_size": 2300}, **changes)
    tokenizer, auto = Tokenizer.load(folder), AutoTokenizer.from_pretrained(str(folder))
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


def test_folders_of_format_1_have_a_space_before_every_part(trained: Callable[..., Path], tmp_path: Path) -> None:
    folder = trained(train={"vocab_size": 2300}, pretokenize={"prefix_space": True})
    now = Tokenizer.load(folder)
    before = Tokenizer(now.recipe.changed(format=1), now.vocab)
    library = Library.from_file(str(before.save(tmp_path / "before") / "tokenizer.json"))
    again = Tokenizer.load(tmp_path / "before")
    assert (now.prefix, before.prefix, again.prefix) == ("first", "each", "each")
    for text in ("집", " 집", "집<mask>에", "<s> 집"):
        ids = again.encode(text, allowed_special="all").ids
        assert ids == library.encode(text, add_special_tokens=False).ids
        assert again.encode_ids([text], allowed_special="all")[0].tolist() == ids
    assert now.encode("집<mask>에", allowed_special="all").ids != before.encode("집<mask>에", allowed_special="all").ids


@given(
    words=st.lists(korean_text().flatmap(lambda text: st.sampled_from(text.split() or ["가"])), min_size=1, max_size=8)
)
def test_words_given_apart_get_the_ids_of_the_running_text(
    folder: Path, tokenizer: Tokenizer, words: list[str]
) -> None:
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


def test_named_entities_are_aligned(folder: Path) -> None:
    """As run_ner.py does it: labels of words to the first token of each."""
    words, labels = ["서울에", "사는", "김연아가", "학교에서", "책을", "읽습니다."], [1, 0, 2, 0, 0, 0]
    found = _auto(folder)(words, is_split_into_words=True, return_offsets_mapping=True)
    ids = found.word_ids()
    first = [ids.index(i) for i in range(len(words))]
    aligned = [labels[word] if at in first else -100 for at, word in enumerate(ids) if word is not None]
    assert [label for label in aligned if label != -100] == labels
    for word, text in enumerate(words):
        spans = [span for span, i in zip(found["offset_mapping"], ids, strict=True) if i == word]
        assert spans[0][0] == 0
        assert spans[-1][1] == len(text)
        assert "".join(dict.fromkeys(text[a:b] for a, b in spans if b > a)).startswith(text[0])


def test_an_answer_is_found_where_it_stands(folder: Path) -> None:
    """As run_qa.py does it: from characters of the context to tokens and back, for the first word, too."""
    question, context = "누가 책을 읽습니까?", "학생이 학교에서 책을 읽습니다."
    found = _auto(folder)(question, context, return_offsets_mapping=True)
    for answer in ("학생이", "학교에서", "읽습니다"):
        begin = context.index(answer)
        inside = [
            span
            for span, part in zip(found["offset_mapping"], found.sequence_ids(), strict=True)
            if part == 1 and span[0] < begin + len(answer) and span[1] > begin
        ]
        assert context[inside[0][0] : inside[-1][1]].strip(" .") == answer


def test_special_tokens_inside_a_text_are_as_in_the_library(trained: Callable[..., Path]) -> None:
    folder = trained(train={"vocab_size": 2300}, special={"style": "roberta"})
    tokenizer, library = Tokenizer.load(folder), Library.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.prefix
    for text in ("나는 <mask>에 간다.", "<mask>", "</s> 집", "집</s>", "<s>나<s> 너", "\u200b<mask>\u200b집"):
        ids = tokenizer.encode(text, allowed_special="all").ids
        assert ids == library.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode_ids([text], allowed_special="all")[0].tolist() == ids
        assert tokenizer.decode(ids) == library.decode(ids, skip_special_tokens=False)


def test_the_model_and_the_style_decide_by_default() -> None:
    def on(**changes: Any) -> bool:
        return Recipe().changed(**changes).pretokenize.prefix_space

    styles = ("plain", "gpt", "llama", "bert", "roberta", "t5")
    assert all(on(special={"style": style}) for style in styles)
    assert [on(model="bpe-bytes", style=style) for style in styles] == [False] * 3 + [True] * 3
    assert not any(on(model=model) for model in ("wordpiece", "wordpiece-bytes", "word", "ngram", "morpheme"))
    assert Recipe(train={"model": "bpe"}).pretokenize.prefix_space
    assert not Recipe(train={"model": "bpe-bytes"}).pretokenize.prefix_space
    assert not Recipe.from_toml("[recipe]\nformat = 1").pretokenize.prefix_space
    assert not on(special={"style": "bert"}, pretokenize={"prefix_space": False})
    assert not on(special={"style": "bert"}, train={"model": "wordpiece"})
    bert = Recipe().changed(model="bpe-bytes", style="bert")
    assert bert.changed(train={"vocab_size": 8000}).pretokenize.prefix_space
    assert not bert.changed(special={"style": "gpt"}).pretokenize.prefix_space
    assert Recipe.from_toml(bert.to_toml()) == bert
    with pytest.raises(RecipeError, match="reads whole words"):
        Recipe().changed(train={"model": "wordpiece"}, pretokenize={"prefix_space": True})


def test_another_style_changes_no_ids(trained: Callable[..., Path]) -> None:
    plain = Tokenizer.load(trained(train={"vocab_size": 2300, "model": "bpe-bytes"}))
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


def test_files_alone_are_known_again(tokenizer: Tokenizer, folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer.model"):
        if (folder / name).exists() and not tokenizer.recipe.jamo:
            again = koktok.load(folder / name)
            assert again.encode("집에 간다. 집에").ids == tokenizer.encode("집에 간다. 집에").ids
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    other = tokenizer.recipe.changed(pretokenize={"prefix_space": False})
    assert Tokenizer(other, tokenizer.vocab) != tokenizer


def test_gguf_says_so(trained: Callable[..., Path], tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(trained(train={"vocab_size": 2300, "model": "bpe"}, pretokenize={"prefix_space": True}))
    table = gguf.table_of(tokenizer.vocab, tokenizer.pattern, tokenizer.normalizer, prefix=tokenizer.prefix)
    assert table.add_space_prefix
    assert "space before the first word" in "\n".join(gguf.notes(table))
    file = gguf.write(table, tmp_path / "a.gguf")
    assert gguf.read(file).add_space_prefix
    lines = ["집에 간다.", " 집에", "학교에서 책을 읽는다."]
    assert llama_cpp_ids(file, lines) == [tokenizer.encode(line).ids for line in lines]


def test_the_card_says_what_words_given_apart_become() -> None:
    notes = {on: "\n".join(limitations("unigram", superwords=False, jamo=False, prefix=on)) for on in (False, True)}
    assert "do not use `is_split_into_words=True`" in notes[False]
    assert "gives the ids of the running text" in notes[True]
    assert len(set(itertools.chain(notes.values()))) == 2


@pytest.mark.parametrize("kind", ["unigram", "bpe-bytes"])
def test_verify_knows_what_each_format_does_with_the_space(
    kind: str, trained: Callable[..., Path], tmp_path: Path, mini: list[str]
) -> None:
    folder = trained(train={"model": kind}, pretokenize={"prefix_space": True})
    ours, exports = Tokenizer.load(folder), []
    if kind == "bpe-bytes":
        pytest.importorskip("tiktoken", reason="the extra `tiktoken` is not installed")
        exports = [tmp_path]
        for name, text in tiktoken.files(tiktoken.ranks_of(ours.vocab, ours.pattern, "mine")).items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    report = verify(folder, mini[::25], exports=exports)
    assert [finding.check for finding in report.findings if finding.outcome == "fail"] == []
    assert report.passed
