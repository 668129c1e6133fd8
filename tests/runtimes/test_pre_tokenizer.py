"""A pattern that decides nothing is not written: with it, without it, and as a separator the ids are the same."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from conftest import MODELS
from hypothesis import given
from hypothesis import strategies as st

from koktok import load
from koktok.model.definition import Definition
from koktok.model.vocab import BYTE_CHARS, Vocab, spell
from koktok.runtimes.huggingface.normalizer import normalizer_node
from koktok.runtimes.huggingface.pre_tokenizer import APART, SEPARATOR, cutting, set_apart
from koktok.runtimes.huggingface.tokenizer_json import tokenizer_json
from koktok.text.normalize import Normalizer
from koktok.text.prefix import CUT_MARK
from koktok.text.pretokenize import Pattern

CHARACTERS = "가나 리\u2028\u3000\u2004\t\n\r12８9a.…[]#<>x0A가 나\u0301\u200d\ufe0f漢①"
"""Of every class, and some that share the bytes at their ends."""

WORDS = ("[PAD]", "[UNK]", "<0x0A>", "<0xEA>", "##가", "1234567", "1" * 29, "\r\n", "가나 리", SEPARATOR)

PATTERNS = [
    Pattern(split=split, digits=digits, superwords=superwords)
    for split, digits, superwords in product(("eojeol", "scripts"), ("free", "single", "three"), (False, True))
]

texts = st.lists(st.sampled_from([*CHARACTERS, *WORDS]), max_size=16).map("".join)


def joined(units: list[str], n: int, chance: random.Random) -> list[str]:
    """So many pieces made by joining neighbours, as BPE makes them."""
    made: list[str] = []
    while len(units) > 1 and len(made) < n:
        at = chance.randrange(len(units) - 1)
        made.append(units[at] + units[at + 1])
        units = [*units[:at], made[-1], *units[at + 2 :]]
    return [*dict.fromkeys(made)]


def vocab_of(kind: str, pattern: Pattern, chance: random.Random) -> Vocab:
    """A vocabulary whose pieces mostly, but not always, lie between the cuts of the pattern."""
    text = "".join(chance.choice([*CHARACTERS, *WORDS]) for _ in range(60)).replace(SEPARATOR, "")
    parts = pattern.pretokenize(text) if chance.random() < 0.8 else [text]
    if kind == "bpe-bytes":
        merged = [p for part in parts if len(spell(part)) > 1 for p in joined([*spell(part)], 4, chance)]
        return Vocab.bpe_bytes([*dict.fromkeys(p for p in merged if p not in BYTE_CHARS)])
    merged = [piece for part in parts if len(part) > 1 for piece in joined([*part], 3, chance)]
    merged = [piece for piece in dict.fromkeys(merged) if len(piece) > 1 and not re.fullmatch("<0x..>", piece)]
    alphabet = {*"".join(merged), *chance.sample(CHARACTERS, 12)}
    if kind == "unigram":
        return Vocab.unigram({piece: -chance.randrange(1, 2000) / 256 for piece in [*alphabet, *merged]})
    if kind == "bpe":
        return Vocab.bpe(alphabet, merged)
    specials = ("[PAD]", "[UNK]")
    if kind == "word":
        return Vocab.plain("word", dict.fromkeys(p for p in parts if p not in specials), specials=specials)
    if kind == "wordpiece":
        bare = [piece.replace(" ", "") for piece in [*alphabet, *merged]]
        pieces = dict.fromkeys(m + piece for piece in bare for m in ("", "##") if piece)
        return Vocab.plain("wordpiece", [p for p in pieces if p not in specials], specials=specials)
    pieces = dict.fromkeys(m + p for p in [*BYTE_CHARS, *map(spell, merged)] for m in ("", "##"))
    return Vocab.plain("wordpiece-bytes", pieces, specials=specials)


def ids_of(vocab: Vocab, pattern: Pattern, *, always_cut: bool) -> Callable[[str], list[int]]:
    content = json.loads(tokenizer_json(Definition(vocab, pattern=pattern)))
    if always_cut:
        behind, content["pre_tokenizer"] = cutting(vocab, pattern, always_cut=True)
        step = normalizer_node(Normalizer())
        nodes = step["normalizers"] if step["type"] == "Sequence" else [step]
        content["normalizer"] = {"type": "Sequence", "normalizers": nodes + behind}
    made = tokenizers.Tokenizer.from_str(json.dumps(content))
    made.encode_special_tokens = True
    return lambda text: list(made.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word"])
@given(seed=st.integers(0, 1 << 32), some=st.lists(texts, min_size=20, max_size=20))
def test_ids_are_those_with_the_pattern(kind: str, seed: int, some: list[str]) -> None:
    chance = random.Random(seed)
    pattern = chance.choice(PATTERNS)
    vocab = vocab_of(kind, pattern, chance)
    with_it, as_written = (ids_of(vocab, pattern, always_cut=always_cut) for always_cut in (True, False))
    for text in some:
        assert as_written(text) == with_it(text), (text, vocab.pieces, pattern, cutting(vocab, pattern))


@given(text=texts)
def test_borders_are_where_the_pattern_cuts(text: str) -> None:
    for pattern in (pattern for pattern in PATTERNS if pattern.bigram):
        assert [m.start() for m in re.finditer(pattern.borders, text)] == pattern.cuts(text)


@pytest.mark.parametrize("piece", ["가 ", "12", "1가", "\n가", "\t\n"])
def test_a_piece_across_a_cut_requires_the_pattern(piece: str) -> None:
    spelled = spell(piece)
    for vocab in (
        Vocab.bpe(piece, [piece]),
        Vocab.unigram(dict.fromkeys([*piece, piece], -1.0)),
        Vocab.bpe_bytes([spelled[:n] for n in range(2, len(spelled) + 1)]),
    ):
        assert set_apart(vocab, Pattern(digits="single")) is None


def test_a_half_character_at_a_cut_is_split_off() -> None:
    vocab = Vocab.bpe_bytes([spell("리")[:2], spell("리"), spell("\u2028")[2:] + spell("리")])
    assert set_apart(vocab, Pattern(digits="free")) == ["\u2028"]
    assert ids_of(vocab, Pattern(), always_cut=False)("\u2028리") == ids_of(vocab, Pattern(), always_cut=True)(
        "\u2028리"
    )
    bare = json.loads(tokenizer_json(Definition(vocab)))
    bare["pre_tokenizer"] = bare["pre_tokenizer"]["pretokenizers"][-1]
    without = tokenizers.Tokenizer.from_str(json.dumps(bare)).encode("\u2028리").ids
    assert without != ids_of(vocab, Pattern(), always_cut=True)("\u2028리")  # so the node is wanted


@pytest.mark.parametrize(
    "recipe",
    [
        MODELS["unigram"],
        MODELS["bpe"],
        MODELS["syllable"],
        {"jamo": True},
        {"train": {"superwords": 0.2}},
        {"pretokenize": {"prefix_space": True}},
        {"pretokenize": {"split": "scripts", "digits": "single"}},
    ],
    ids=str,
)
def test_trained_kinds_need_no_pattern(recipe: dict[str, Any], trained: Callable[..., Path]) -> None:
    folder = trained(**recipe)
    node = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["pre_tokenizer"]
    if load(folder).prefix == "first":
        assert [step["type"] for step in node["pretokenizers"][:2]] == ["Metaspace", "Split"]
        assert node["pretokenizers"][2:] == ([] if "superwords" in recipe.get("train", {}) else [APART])
        assert node["pretokenizers"][1]["pattern"] == {"Regex": CUT_MARK}, "a literal, which every engine runs"
    else:
        assert node is None


@pytest.mark.parametrize("style", ["plain", "bert", "roberta"])
@pytest.mark.parametrize("model", ["unigram", "bpe", "bpe-bytes", "wordpiece"])
def test_word_ids_count_words(model: str, style: str, trained: Callable[..., Path]) -> None:
    folder = trained(**{**MODELS[model], "special": {"style": style}})
    engine = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ("나는 집에 간다", "나는  집에 간다")[
        : 1 if model == "bpe-bytes" else 2
    ]:  # its pattern cuts between two spaces
        words = engine.encode(text, add_special_tokens=False)
        assert list(dict.fromkeys(words.word_ids)) == [0, 1, 2]


def test_a_folder_of_an_earlier_version_loads(trained: Callable[..., Path], tmp_path: Path) -> None:
    """Without the seal, which the earlier version wrote for its own bytes."""
    tokenizer = load(trained(**MODELS["unigram"]))
    tokenizer.save(tmp_path / "old")
    file, mark = tmp_path / "old/tokenizer.json", tmp_path / "old/koktok.toml"
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["pre_tokenizer"]["pretokenizers"].pop() == APART
    file.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    lines = [line for line in mark.read_text(encoding="utf-8").splitlines() if not line.startswith("seal")]
    mark.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "old/koktok.sha256").unlink()
    assert load(tmp_path / "old").encode("나는  집에").ids == tokenizer.encode("나는  집에").ids


def test_no_trained_kind_has_a_pattern_that_tokenizers_1_does_not_run(trained: Callable[..., Path]) -> None:
    kinds = [MODELS[kind] for kind in ("wordpiece", "wordpiece-bytes", "word")]
    own = {**MODELS["bpe-bytes"], "pretokenize": {"pattern": "koktok"}}
    for recipe in (own, *kinds, {"pretokenize": {"split": "scripts", "digits": "single"}}):
        tokenizer = load(trained(**recipe))
        node = json.dumps(cutting(tokenizer.vocab, tokenizer.pattern)[1])
        assert "Regex" not in node
        assert len(node) < 2000


@pytest.mark.parametrize("piece", ["b'ħ", "ħĻħĻa", "áħĻħb"])
def test_bytes_that_are_in_no_character_need_no_pattern(piece: str) -> None:
    assert set_apart(Vocab.bpe_bytes([piece]), Pattern()) == []
