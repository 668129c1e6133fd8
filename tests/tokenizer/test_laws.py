"""Laws 4, 6 and 7 for every kind and every way to cut: text comes back, all engines agree, offsets are places of the text.

One table of recipes, one check of a text, one of ids. The engines are `Tokenizer` one text at a time, compiled in bulk, as a
stream, and the libraries that load the files: tokenizers, sentencepiece and tiktoken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
import sentencepiece
import tokenizers
from conftest import MODELS
from hypothesis import given
from hypothesis import strategies as st
from strategies import korean_text

from koktok import Tokenizer, hangul, load
from koktok.formats.limits import unsupported_reason
from koktok.formats.tiktoken import ranks_of
from koktok.model.encoding import BLANK
from koktok.model.vocab import MARK, spell
from koktok.text.normalize import Folds, Normalizer
from koktok.text.prefix import without_prefix
from koktok.verification.probes import tricky_lines

FOLDS = ("fullwidth", "spaces", "quotes", "dashes", "lone_jamo")
RECIPES: dict[str, dict[str, Any]] = {
    **MODELS,
    "scripts": {"pretokenize": {"split": "scripts", "digits": "single"}},
    "free digits": {"pretokenize": {"digits": "free"}},
    "digits by threes": {"pretokenize": {"digits": "three"}},
    "bytes, digits by threes": {**MODELS["bpe-bytes"], "pretokenize": {"digits": "three"}},
    "no prefix": {"pretokenize": {"prefix_space": False}},
    "folds": {"normalize": {**dict.fromkeys(FOLDS, True), "repeats": 2}},
    "superwords": {"train": {"superwords": 0.2}},
    "superwords bpe": {"train": {"superwords": 0.2, "model": "bpe"}},
    "jamo": {"jamo": True, "train": {"vocab_size": 1500}},
    "jamo bpe-bytes": {"jamo": True, "train": {"model": "bpe-bytes", "vocab_size": 1500}},
    "jamo wordpiece": {"jamo": True, "train": {"model": "wordpiece", "vocab_size": 1500}},
    "fallback": {"jamo": "fallback"},
    "fallback bpe": {"jamo": "fallback", "train": {"model": "bpe"}},
    "fallback wordpiece": {"jamo": "fallback", "train": {"model": "wordpiece", "vocab_size": 4000}},
    "fallback syllable": {"jamo": "fallback", "train": {"model": "syllable", "vocab_size": 1800}},
    "prefixed bytes": {**MODELS["bpe-bytes"], "pretokenize": {"prefix_space": True}},
    "published bytes": {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "llama3"}},
    "superbpe": {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "superbpe"}},
    "superbpe, superwords": {
        "train": {"model": "bpe-bytes", "superwords": 0.3},
        "pretokenize": {"pattern": "superbpe"},
    },
    "exaone-moe, superwords": {
        "train": {"model": "bpe-bytes", "superwords": 0.3},
        "pretokenize": {"pattern": "exaone-moe"},
    },
    "scripts bytes": {**MODELS["bpe-bytes"], "pretokenize": {"split": "scripts", "digits": "single"}},
    "superword bytes": {"train": {"superwords": 0.2, "model": "bpe-bytes"}},
    **{
        f"trimmed {model}": {**MODELS[model], "special": {"style": "roberta"}}
        for model in ("unigram", "bpe", "bpe-bytes", "wordpiece-bytes")
    },
    "trimmed, no prefix": {"special": {"style": "roberta"}, "pretokenize": {"prefix_space": False}},
}
FIRST = ["", "", " ", "  ", "\t", "\n", "\u200b", "\u0301", "쀍", "\u1100", "3", ".", "Ġ", "\u3000 "]
TEXT = st.builds("{}{}".format, st.sampled_from(FIRST), korean_text())


class Engines:
    """One trained folder in every library that loads it."""

    def __init__(self, folder: Path) -> None:
        self.ours = ours = load(folder)
        self.hf = self.spm = self.tiktoken = None
        if (folder / "tokenizer.json").exists():
            self.hf = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self.hf.encode_special_tokens = True  # text that spells a special token is text
        if (folder / "tokenizer.model").exists():
            self.spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        if not unsupported_reason("tiktoken", ours.vocab, ours.pattern, jamo=ours.recipe.spelled) and not ours.prefix:
            self.tiktoken = ranks_of(ours.vocab, ours.pattern).encoding()


@pytest.fixture(scope="module", params=RECIPES)
def engines(request: pytest.FixtureRequest, trained: Callable[..., Path]) -> Engines:
    return Engines(trained(**RECIPES[request.param]))


def decoded(ours: Tokenizer, normal: str) -> str | None:
    """What law 4 says comes back; None where a word is read as a continued one, as in Hugging Face."""
    kind, unknown_id = ours.vocab.kind, ours.vocab.unknown_id
    if ours.lossless:
        return normal
    words = [part for word in ours.pattern.pretokenize(ours.normalizer(normal)) for part in ours.vocab.guarded(word)]
    unknown = ours.vocab.tokens[unknown_id]
    if kind == "word":
        return "".join(unknown if unknown_id in ours.model.encode(word)[0] else word for word in words)
    if any(word.lstrip(" ").startswith(MARK) for word in words):
        return None
    if kind == "wordpiece-bytes":
        return normal
    known = [unknown if unknown_id in ours.model.encode(word)[0] else word.strip(" ") for word in words]
    return hangul.join(" ".join(filter(None, known))) if ours.recipe.jamo else " ".join(filter(None, known))


def check_text(engines: Engines, text: str) -> None:
    """All laws for a text and for its normal form."""
    ours, hf = engines.ours, engines.hf
    if ours.vocab.kind.startswith("wordpiece"):
        text = text[:500]  # Hugging Face tries every length at every place of a word
    normal = ours.normalize(text)
    wanted = decoded(ours, normal)
    for line in (text, normal):
        encoding = ours.encode(line)
        ids = encoding.ids
        if hf is not None:
            assert hf.encode(line, add_special_tokens=False).ids == ids
        check_offsets(ours, line, encoding)
        stream = ours.stream()
        for back in (ours.decode(ids), "".join([*map(stream.push, ids), stream.finish()])):
            assert wanted is None or back == wanted
    reached = set(ids) & set(ours.vocab.special_ids.values())
    assert reached <= ({ours.vocab.unknown_id} if ours.vocab.kind in ("word", "wordpiece") else set())
    many = ours.encode_ids([normal, "", text])
    assert [row.tolist() for row in many][:2] == [ids, []]
    assert many[2].tolist() == ours.encode(text).ids
    assert ours.decode_ids(many)[:2] == ours.decode_batch([ids, []]) == [ours.decode(ids), ""]
    if hf is not None:
        assert hf.decode(ids, skip_special_tokens=False) == ours.decode(ids)
        check_offsets_of_the_library(engines, normal)
    if engines.spm is not None and "\0" not in normal and not normal.startswith(" "):  # it has no mark for such a space
        assert engines.spm.encode(normal) == ids
        assert without_prefix(engines.spm.decode(ids), ours.prefix) == normal
    if engines.tiktoken is not None:
        assert engines.tiktoken.encode_ordinary(normal) == ids
        assert engines.tiktoken.decode(ids) == normal


def check_offsets(ours: Tokenizer, text: str, encoding: Any) -> None:
    """Law 7: in order, inside the text, and what a token covers is what it spells."""
    trimmed, vocab, offsets = ours.style.trim_offsets, ours.vocab, encoding.offsets
    assert len(encoding.ids) == len(encoding.pieces) == len(offsets) == len(encoding)
    assert all(0 <= a <= b <= len(text) and (a < b or trimmed) for a, b in offsets)
    assert all(a <= c and b <= d for (a, b), (c, d) in pairwise(offsets))
    if ours.normalize(text) != text or ours.recipe.jamo:
        return
    if trimmed:
        kept = {at for a, b in offsets for at in range(a, b)}
        assert all(char in BLANK for at, char in enumerate(text) if at not in kept)
        spelled = [text[a:b] for i, (a, b) in zip(encoding.ids, offsets, strict=True) if i >= vocab.n_bytes]
        assert all(part == part.strip(" ") for part in spelled)
        return
    for i, piece, (a, b) in zip(encoding.ids, encoding.pieces, offsets, strict=True):
        bare = piece.removeprefix(MARK) if vocab.kind.startswith("wordpiece") else piece
        if vocab.bytewise:
            assert bare in spell(text[a:b]) or text[a : a + 2] == MARK or (ours.prefix and a == 0)
        elif i < vocab.n_bytes:
            assert b - a == 1
        elif piece not in vocab.specials:
            first = a == 0 and ours.prefix  # the space before the first word has no place of its own
            assert text[a:b] in (bare, piece) or (first and piece in (" ", f" {text[a:b]}"))


def check_offsets_of_the_library(engines: Engines, normal: str) -> None:
    """As ours, but for the bytes of neighbouring unknown characters, which share one span there, and for a first space."""
    ours = engines.ours
    if ours.recipe.jamo or ours.recipe.normalize.lone_jamo or engines.hf is None:
        return  # there offsets drift behind Replace nodes that touch old Hangul and jamo
    one, two = ours.encode(normal), engines.hf.encode(normal, add_special_tokens=False)
    for i, (a, b), (c, d) in zip(one.ids, one.offsets, two.offsets, strict=True):
        loose = i < ours.vocab.n_bytes or (ours.prefix and c == 0 and normal[:1].isspace())
        assert (a, b) == (c, d) or (loose and c <= a <= b <= d) or (a == b and c == d), (normal, i)


@given(text=TEXT)
def test_any_text(engines: Engines, text: str) -> None:
    check_text(engines, text)


def test_real_and_tricky_lines(engines: Engines, mini: list[str]) -> None:
    for line in [*tricky_lines(), *mini[:: 18 if engines.ours.recipe.jamo else 6]]:  # jamo take the library 5 ms a line
        check_text(engines, line)


def test_texts_that_begin_with_what_normalization_changes(engines: Engines) -> None:
    """Every character that is dropped, composed or moved, and up to four spaces behind it."""
    ours = engines.ours
    n = 2 if ours.recipe.jamo else 5  # a decoder of jamo has ten thousand nodes
    texts = [f"{char}{' ' * spaces}{rest}" for char in changed() for spaces in range(n) for rest in ("가", "")]
    rows = [ours.encode(text).ids for text in texts]
    assert [row.tolist() for row in ours.encode_ids(texts)] == rows
    if engines.hf is not None:
        assert [row.ids for row in engines.hf.encode_batch_fast(texts, add_special_tokens=False)] == rows
    if ours.lossless:
        normal = [ours.normalize(text) for text in texts]
        assert ours.decode_batch(rows) == normal
        assert [ours.decode(row) for row in rows] == normal
        if engines.hf is not None and not ours.recipe.jamo:
            assert engines.hf.decode_batch(rows, skip_special_tokens=False) == normal


@cache
def changed() -> list[str]:
    dropped = [char for char in Normalizer(Folds(**dict.fromkeys(FOLDS, True))).sources if len(char) == 1]
    composed = [
        char
        for char in map(chr, range(0x300, 0x30000))
        if unicodedata.combining(char) or (unicodedata.decomposition(char) and normalize("NFC", char) != char)
    ]
    return [*dropped, *composed, *map(chr, range(0x1100, 0x1200)), "\u200b\u200b", "\ufeff\u200b", "\u200b\u0301"]


@given(st.data())
def test_any_ids(engines: Engines, data: st.DataObject) -> None:
    """Ids that no text has, broken bytes among them, decode alike everywhere; a stream holds back as little as it can."""
    ours, vocab = engines.ours, engines.ours.vocab
    jamo = [i for i, token in enumerate(vocab.tokens) if len(token) == 1 and "\u1100" <= token <= "\u11ff"]
    often = (sorted(vocab.fragment_ids), jamo, list(vocab.special_ids.values()))
    some = st.one_of(st.integers(0, vocab.size - 1), *(st.sampled_from(ids) for ids in often if ids))
    ids = data.draw(st.lists(some, max_size=14))
    for skip in (False, True):
        text = ours.decode(ids, skip_special_tokens=skip)
        stream = ours.stream(skip_special_tokens=skip)
        for _ in range(2):  # the second time it is as new
            assert "".join([*map(stream.push, ids), stream.finish()]) == text
        if engines.hf is not None:
            assert engines.hf.decode(ids, skip_special_tokens=skip) == text
    if engines.tiktoken is not None:
        assert engines.tiktoken.decode(ids) == ours.decode(ids)
    stream, out = ours.stream(), ""
    for n, i in enumerate(ids, start=1):
        out += stream.push(i)
        run = next((k for k, j in enumerate(reversed(ids[:n])) if j >= vocab.n_bytes), n)
        assert len(out) >= len(ours.decode(ids[: n - run])) - 2  # the two or three jamo of an open syllable


def test_special_tokens_are_read_when_asked(engines: Engines) -> None:
    ours, hf = engines.ours, engines.hf
    text = "가{}나 {}".format(*ours.vocab.specials[-2:])
    allowed = ours.encode(text, allowed_special="all")
    assert set(allowed.ids) >= {ours.vocab.special_ids[token] for token in ours.vocab.specials[-2:]}
    assert ours.encode_ids([text], allowed_special="all")[0].tolist() == allowed.ids
    if hf is not None:
        hf.encode_special_tokens = False
        try:
            assert hf.encode(text, add_special_tokens=False).ids == allowed.ids
        finally:
            hf.encode_special_tokens = True
    if engines.tiktoken is not None:
        assert engines.tiktoken.encode(text, allowed_special="all") == allowed.ids


def test_the_vocabulary_is_that_of_the_library(engines: Engines) -> None:
    ours = engines.ours
    table = ours.get_vocab()
    assert len(ours) == ours.vocab_size == len(table) == ours.vocab.size
    assert [ours.id_to_token(i) for i in range(len(ours))] == list(table)
    assert [ours.token_to_id(token) for token in table] == list(range(len(ours)))
    assert (ours.token_to_id("이런 말은 없다"), ours.id_to_token(-1), ours.id_to_token(len(ours))) == (None, None, None)
    assert engines.hf is None or engines.hf.get_vocab() == table
    assert engines.spm is None or engines.spm.get_piece_size() == len(table)


def test_saved_and_loaded_is_the_same(engines: Engines, tmp_path: Path) -> None:
    one = engines.ours.save(tmp_path / "one")
    two = load(one).save(tmp_path / "two")
    assert load(two) == engines.ours
    assert {file.name: file.read_bytes() for file in one.iterdir()} == {
        file.name: file.read_bytes() for file in two.iterdir()
    }
