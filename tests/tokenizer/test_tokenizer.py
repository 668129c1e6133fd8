"""`Tokenizer`: lossless, with offsets into the raw text, safe with special tokens, and saved for ever."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import MODELS

from koktok import Recipe, Tokenizer
from koktok.errors import ArtifactError, InputError, UsageError, VocabSizeError
from koktok.model.vocab import Vocab
from koktok.pipeline.train import train
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.tokenizer import TrainedTokenizer
from koktok.tokenizer.open import load

Trained = Callable[..., Path]


def test_a_kind_of_tokenizer_defines_ten_methods() -> None:
    """Everything else of the protocol is made of them."""
    of_bulk = {"bulk_encoder", "bulk_decoder", "encode_lines"}
    assert (
        Tokenizer.__abstractmethods__
        == {"digest", "save", "export", "normalize", "encode", "decode", "token_bytes"} | of_bulk
    )


@pytest.mark.parametrize(
    ("folds", "raw", "expected"),
    [
        ({}, "\u1112\u1161\u11ab\u1100\u1173\u11af", [("한글", 0, 6)]),  # NFD: one piece, six letters
        ({}, "한\u200b글은", [("한글", 0, 3), ("은", 3, 4)]),  # what is dropped inside a piece belongs to it
        ({}, "\ufeff한글\u200b", [("한글", 1, 3)]),  # and to none at the edges
        ({"fullwidth": True}, "Ａ１", [("A", 0, 1), ("1", 1, 2)]),
        ({"compatibility": True}, "ﬁ", [("f", 0, 1), ("i", 0, 1)]),  # a ligature is one letter of the text
        ({"compatibility": True}, "㈜한", [("(", 0, 1), ("주", 0, 1), (")", 0, 1), ("한", 1, 2)]),
        ({"repeats": 2}, "ㅋㅋㅋㅋ한", [("ㅋ", 2, 3), ("ㅋ", 3, 4), ("한", 4, 5)]),
        ({"spaces": True}, "한\u3000글", [("한", 0, 1), (" ", 1, 2), ("글", 2, 3)]),
        (
            {},
            "한👍🏽",
            [("한", 0, 1), *[(byte, 1, 2) for byte in "👍".encode()], *[(byte, 2, 3) for byte in "🏽".encode()]],
        ),
        ({}, "e\u0301", [("é", 0, 2)]),
        ({}, "e\u0323\u0301", [("ẹ", 0, 3), *[(byte, 0, 3) for byte in "\u0301".encode()]]),  # made together, one span
    ],
)
def test_offsets_of_text_that_normalization_changes(folds: dict, raw: str, expected: list) -> None:
    """Item by item: code points of what the caller passed; Hugging Face's are wrong on the first."""
    pieces = ["한글", *"한글은A1fi(주)ㅋ é한ẹ"]
    vocab = Vocab.unigram({piece: -8.0 + len(piece) for piece in dict.fromkeys(pieces)})
    encoding = TrainedTokenizer(Recipe().changed(normalize=folds, prefix_space=False), vocab).encode(raw)
    seen = [i if i < 256 else piece for i, piece in zip(encoding.ids, encoding.pieces, strict=True)]
    assert [(token, *span) for token, span in zip(seen, encoding.offsets, strict=True)] == expected


def test_a_vocabulary_of_ours_alone_is_saved_and_damage_is_seen(trained: Trained, tmp_path: Path) -> None:
    """No library runs an n-gram vocabulary as we do, so nothing is there for one to load."""
    folder = tmp_path / "tokenizer"
    shutil.copytree(trained(**MODELS["ngram"]), folder)
    assert {file.name for file in folder.iterdir()} == {"koktok.sha256", "koktok.toml", "probe.json", "vocab.json"}
    content = json.loads((folder / "vocab.json").read_text())
    for change, message in (
        ({"pieces": content["pieces"][:-1]}, "was changed: its digest differs from that in koktok.toml"),
        ({"pieces": 3}, "vocab.json is damaged"),
        ({"specials": content["pieces"][:1]}, "spells a special token"),
    ):
        (folder / "vocab.json").write_text(json.dumps(content | change))
        with pytest.raises(ArtifactError, match=message):
            load(folder)


@pytest.mark.parametrize("model", ["wordpiece", "wordpiece-bytes", "word", "bpe-bytes"])
def test_text_cannot_reach_a_special_token_that_it_was_trained_on(model: str) -> None:
    specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    lines = [f"{special} 나는{special} 집에 {special}" for special in specials] * 30
    values = {"model": model, "vocab_size": 5000, "specials": specials, "required": "none"}
    recipe = Recipe().changed(train=values, segment={"segmenter": "whitespace"}, holdout=0.0)
    try:
        tokenizer = train(lines, recipe).tokenizer
    except VocabSizeError as error:
        tokenizer = train(lines, recipe, vocab_size=int(error.hint.split()[1].strip(","))).tokenizer
    text = " ".join(specials) + "".join(specials)
    reached = set(tokenizer.encode(text).ids) & set(tokenizer.vocab.special_ids.values())
    assert reached <= ({tokenizer.vocab.unknown_id} if model == "word" else set())
    assert len(tokenizer.encode("[CLS] 나는", allowed_special="all").ids) > 1
    assert tokenizer.encode("[CLS]", allowed_special="all").ids == [tokenizer.vocab.special_ids["[CLS]"]]


# ── copies, pickles, equality ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("recipe", [{}, MODELS["bpe-bytes"], MODELS["wordpiece"], {"jamo": "fallback"}], ids=str)
def test_a_used_tokenizer_can_be_copied_and_sent(recipe: dict, trained: Trained, mini: list[str]) -> None:
    """Spawned workers, data loaders and `datasets.map` pickle their tokenizers, used or not."""
    tokenizer = load(trained(**recipe))
    fresh = pickle.dumps(tokenizer)
    lines = mini[:40]
    ids = tokenizer.encode_ids(lines)
    tokenizer.decode_ids(ids)
    tokenizer.decode_batch([[1]])
    tokenizer.encode(lines[0])
    tokenizer.encode("가", add_special_tokens=True)
    assert pickle.dumps(tokenizer) == fresh  # so that caches keyed by the bytes are met again
    for other in (pickle.loads(fresh), copy.copy(tokenizer), copy.deepcopy(tokenizer)):
        assert other == tokenizer
        assert hash(other) == hash(tokenizer)
        assert other.signature == tokenizer.signature
        assert other.recipe == tokenizer.recipe
        assert other.encode_ids(lines) == ids
        assert [other.encode(line) for line in lines[:5]] == [tokenizer.encode(line) for line in lines[:5]]


def test_pickles_are_the_same_in_any_process(trained: Trained) -> None:
    code = (
        "import pickle, hashlib; from koktok import load\n"
        f"print(hashlib.sha256(pickle.dumps(load({str(trained())!r}))).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_tokenizers_are_equal_by_content(trained: Trained, tmp_path: Path) -> None:
    one, again, bpe = (load(trained(**MODELS[name])) for name in ("unigram", "unigram", "bpe"))
    assert one == again
    assert len({one, again, bpe}) == 2
    assert one != bpe
    assert one != one.vocab
    shown = TrainedTokenizer(one.recipe.changed(holdout=0.3, train={"lam": 2.0}), one.vocab, {"koktok": "none"})
    assert shown == one  # how it was made is no content
    for changes in (
        {"normalize": {"quotes": True}},
        {"pretokenize": {"digits": "free"}},
        {"special": {"template": "bos"}},
        {"train": {"superwords": 0.0 if one.recipe.train.superwords else 0.1}},
    ):
        assert TrainedTokenizer(one.recipe.changed(**changes), one.vocab) != one


def test_imported_tokenizers_are_copied_too(trained: Trained, tmp_path: Path) -> None:
    folder = trained()
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["dropout"] = None  # no node of ours
    (tmp_path / "tokenizer.json").write_text(json.dumps(content | {"decoder": None}), encoding="utf-8")
    ranks = "".join(f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    (tmp_path / "a.tiktoken").write_text(ranks, encoding="utf-8")
    other = ModelProto((folder / "tokenizer.model").read_bytes())
    other.normalizer_spec.name = "of another"
    (tmp_path / "a.model").write_bytes(other.serialized())
    found = set()
    for name, options in (("tokenizer.json", {}), ("a.tiktoken", {"pattern": "gpt2"}), ("a.model", {})):
        tokenizer = load(tmp_path / name, **options)
        assert isinstance(tokenizer, LibraryTokenizer)
        fresh = pickle.dumps(tokenizer)
        ids = tokenizer.encode_ids(["나는 집에 간다"])
        tokenizer.decode_ids(ids)
        assert pickle.dumps(tokenizer) == fresh
        for same in (pickle.loads(fresh), copy.deepcopy(tokenizer)):
            assert same == tokenizer
            assert same.encode_ids(["나는 집에 간다"]) == ids
            assert pickle.loads(pickle.dumps(same.vocab)).digest() == tokenizer.vocab.digest()
        found |= {tokenizer, load(folder)}
    assert len(found) == 4


def test_imported_tokenizers_have_roles_and_a_template(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n학교\n##에\n", encoding="utf-8")
    tokenizer = load(tmp_path)
    assert tokenizer.roles["cls_token"] == "[CLS]"
    assert tokenizer.encode_batch(["학교에"], add_special_tokens=True)[0].pieces == ["[CLS]", "학교", "##에", "[SEP]"]


# --- as people type it ------------------------------------------------------------------------------------------------


def test_ids_of_special_tokens_are_those_of_transformers(trained: Trained) -> None:
    from transformers import PreTrainedTokenizerFast

    for recipe in ({}, MODELS["wordpiece"], {"special": {"style": "gpt"}}, {"special": {"style": "roberta"}}):
        ours = load(trained(**recipe))
        theirs = PreTrainedTokenizerFast.from_pretrained(trained(**recipe))
        for role in ("unk", "pad", "bos", "eos"):
            assert getattr(ours, f"{role}_id") == getattr(theirs, f"{role}_token_id"), role
    assert TrainedTokenizer(Recipe(), Vocab.bpe("가", [])).eos_id is None


def test_a_call_is_that_of_transformers(trained: Trained) -> None:
    from transformers import PreTrainedTokenizerFast

    folder = trained(special={"style": "roberta"})
    ours, theirs = load(folder), PreTrainedTokenizerFast.from_pretrained(folder)
    texts = ["나는 학교에 간다.", "</s>가\u200b나", ""]
    for text in (texts, *texts):
        found, expected = ours(text), theirs(text, split_special_tokens=True)
        assert isinstance(found, Mapping)  # which `datasets.Dataset.map` wants of a function
        assert found == {name: expected[name] for name in ("input_ids", "attention_mask")}
        assert found.input_ids == found["input_ids"]
    assert ours(texts[0], add_special_tokens=False).input_ids == ours.encode(texts[0]).ids
    with pytest.raises(AttributeError, match="a batch has input_ids, attention_mask, and"):
        _ = ours(texts).offsets
    with pytest.raises(
        UsageError, match=r"`return_tensors` is not an option of .*\nhint: .*AutoTokenizer.from_pretrained"
    ):
        ours("가", return_tensors="pt")
    with pytest.raises(InputError, match=r"expected one .str. in .encode., got int"):
        ours([3])  # type: ignore[list-item]


def test_load_is_the_one_door(trained: Trained, tmp_path: Path) -> None:
    folder = trained()
    expected = load(folder)
    assert isinstance(expected, TrainedTokenizer)
    assert TrainedTokenizer.load(folder / "tokenizer.json") == expected
    assert not {"load", "from_pretrained", "from_file"} & {*dir(Tokenizer)}
    shutil.copy(folder / "tokenizer.json", tmp_path)
    for place, hint in ((tmp_path, r"koktok.load\(.*tokenizer.json"), (tmp_path / "tokenizer.json", "koktok import")):
        with pytest.raises(ArtifactError, match=rf"there is no koktok.toml in it\nhint: {hint}"):
            TrainedTokenizer.load(place)
    with pytest.raises(
        UsageError, match=r"there is no file, folder or tokenizer `klue/bert-base`.*\nhint: hf download klue/bert-base "
    ):
        load("klue/bert-base")
    assert load(tmp_path) != expected
    assert load(tmp_path).encode("나는 학교에").ids == expected.encode("나는 학교에").ids
