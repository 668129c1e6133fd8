"""All tokens of a folder: the ids and roles that `AutoTokenizer` has, from every file, before an extension and after it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from tiny_bases import LINES, Suffixes, byte_level, sentencepiece_model
from tokenizers import Tokenizer as Fast
from tokenizers import models, pre_tokenizers

from koktok import load
from koktok.count.counting import read
from koktok.errors import ArtifactError
from koktok.extension import extension_files as write
from koktok.extension import learn
from koktok.extension.base_text import prepare
from koktok.extension.base_tokenizer import Base, open_base
from koktok.runtimes.huggingface.added_tokens import ROLES, files_beside, folder_tokens

Saying = Mapping[str, Any]
"""Contents of the JSON files beside a vocabulary, by name; "SIZE" is the first id after it."""

CONFIG: list[dict[str, Any]] = [
    {"pad_token": "[PAD]"},
    {"pad_token": {"content": "[PAD]", "lstrip": True, "__type": "AddedToken"}, "eos_token": "<|end|>"},
    {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>", "cls_token": "<s>"},
    {"additional_special_tokens": ["<a>", "<b>"]},
    {"additional_special_tokens": ["<a>", "<b>"], "eos_token": "<b>", "pad_token": None},
    {"extra_special_tokens": {"image_token": "<image>", "boi_token": "<boi>"}, "pad_token": "<pad>"},
    {"added_tokens_decoder": {"SIZE": {"content": "<|im_start|>", "special": True}, "SIZE+1": {"content": "<tool>"}}},
    {"added_tokens_decoder": {"SIZE": {"content": "<|im_start|>"}}, "eos_token": "<|im_start|>", "pad_token": "<pad>"},
    {"eos_token": "a", "pad_token": "<pad>"},
]
SAYINGS: list[Saying] = [
    {},
    *({"tokenizer_config": config} for config in CONFIG),
    {"added_tokens": {"<one>": "SIZE", "<two>": "SIZE+1"}, "special_tokens_map": {"pad_token": "<two>"}},
    {"added_tokens": {"<one>": "SIZE"}, "special_tokens_map": {"additional_special_tokens": ["<three>"]}},
    {"special_tokens_map": {"pad_token": "[PAD]", "eos_token": {"content": "<|end|>", "lstrip": False}}},
    {"tokenizer_config": {"pad_token": "<x>"}, "special_tokens_map": {"pad_token": "<y>"}},
    {"tokenizer_config": CONFIG[6], "special_tokens_map": {"pad_token": "<y>"}, "added_tokens": {"<z>": "SIZE"}},
]
ONLY_5: list[Saying] = [
    {"tokenizer_config": {"extra_special_tokens": ["<e>", "<f>"], "pad_token": "<f>"}},
    {"tokenizer_config": {"image_token": "<image>", "extra_special_tokens": ["<a>"][:0]}},
]
"""What transformers 4 does not read."""


def said(folder: Path, saying: Saying, size: int, kind: str) -> Path:
    """Write the files beside a vocabulary."""
    config = {"tokenizer_class": kind, **saying.get("tokenizer_config", {})}
    for name, content in {**saying, "tokenizer_config": config}.items():
        text = json.dumps(content).replace('"SIZE+1"', f'"{size + 1}"').replace('"SIZE"', f'"{size}"')
        if name == "added_tokens":
            text = text.replace(f'"{size + 1}"', str(size + 1)).replace(f'"{size}"', str(size))
        (folder / f"{name}.json").write_text(text)
    return folder


def written(form: str, folder: Path) -> tuple[int, str]:
    """Write a vocabulary; its size, and the class of transformers."""
    folder.mkdir(parents=True)
    if form == "model":
        Path(sentencepiece_model(folder, "bpe")).rename(folder / "tokenizer.model")
        return load(folder / "tokenizer.model").vocab.size, "LlamaTokenizer"
    made = byte_level()
    if form == "tokenizer.json":
        made.save(str(folder / "tokenizer.json"))
        return 421, "PreTrainedTokenizerFast"
    if form == "unigram":
        rows = [
            ("<unk>", 0.0),
            ("a", -1.0),
            ("▁", -2.0),
            *((char, -3.0) for char in sorted(set("".join(LINES[:60])) - {"a"})),
        ]
        fast = Fast(models.Unigram(rows, unk_id=0))
        fast.pre_tokenizer = pre_tokenizers.Metaspace()
        fast.save(str(folder / "tokenizer.json"))
        return len(rows), "PreTrainedTokenizerFast"
    made.model.save(str(folder))
    (folder / "vocab.json").write_text(json.dumps({**made.get_vocab(with_added_tokens=False), "<|endoftext|>": 420}))
    return 421, "GPT2Tokenizer"


FORMS = ("tokenizer.json", "unigram", "model", "vocab.json")


def asked(folder: Path) -> dict[str, Any]:
    """What `AutoTokenizer` has."""
    auto = transformers.AutoTokenizer.from_pretrained(str(folder))
    roles = {role: token for role, token in auto.special_tokens_map.items() if role in ROLES}
    return {"size": len(auto), "tokens": auto.get_vocab(), "roles": roles}


def ours(folder: Path) -> dict[str, Any]:
    """The same, as koktok reads it."""
    base, vocab = open_base(str(folder)), load(folder).vocab
    assert vocab.size == base.size
    assert set(vocab.special_ids.items()) >= {(token, base.tokens.index(token)) for token in base.folder.roles.values()}
    tokens = {token: i for i, token in enumerate(base.tokens) if token}
    return {"size": base.size, "tokens": tokens, "roles": dict(base.folder.roles)}


def lost_by_5(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """transformers 5.24 loses these tokens, and 4.57 has them: beside a .model their ids stay theirs."""
    more = {token: i for token, i in found["tokens"].items() if token not in before["tokens"]}
    assert sorted(more.values()) == [*range(before["size"], found["size"])]
    return {**before, "size": found["size"], "tokens": {**before["tokens"], **more}}


def extended(base: Base, folder: Path) -> Path:
    text = prepare(base, read(LINES[::8], holdout=0.1), Suffixes())
    found = learn.learn(base, text, learn.ExtendOptions(add=8), None)
    folder.mkdir()
    for name, data in write.files_of(write.extended(base, found, 8)).items():
        (folder / name).write_bytes(data)
    return folder


def check(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Roles and their ids are unchanged, and so is every token; eight ids are new."""
    assert after["roles"] == before["roles"]
    assert {token: after["tokens"].get(token) for token in before["tokens"]} == before["tokens"]
    assert after["size"] == before["size"] + 8


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("saying", [*SAYINGS, *ONLY_5], ids=str)
def test_a_folder_has_the_tokens_of_auto_tokenizer_before_and_after(form: str, saying: Saying, tmp_path: Path) -> None:
    size, kind = written(form, tmp_path / "base")
    folder = said(tmp_path / "base", saying, size, kind)
    before = asked(folder)
    found = ours(folder)
    if form == "model" and "additional_special_tokens" in saying.get("special_tokens_map", {}):
        before = lost_by_5(before, found)
    assert found == before
    if form == "tokenizer.json" or saying in SAYINGS[::5]:  # what an extension writes does not ask where it was read
        check(before, asked(extended(open_base(str(folder)), tmp_path / "new")))


@given(data=st.data())
def test_any_saying_beside_a_tokenizer_json(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tokens of any file and order, among them pieces and added tokens: the same ids, or a refusal by name."""
    tokens = st.sampled_from(["[PAD]", "<s>", "</s>", "<|end|>", "a", "<x>", "<y>"])
    lists = st.lists(tokens, max_size=3, unique=True)
    config = data.draw(st.dictionaries(st.sampled_from(ROLES), st.none() | tokens, max_size=4))
    if data.draw(st.booleans()):
        config["additional_special_tokens"] = data.draw(lists)
    if data.draw(st.booleans()):
        ids = data.draw(st.lists(st.integers(419, 423), max_size=3, unique=True))
        rows = zip(ids, data.draw(lists), strict=False)
        flags = data.draw(st.booleans())
        config["added_tokens_decoder"] = {str(i): {"content": token, "special": flags} for i, token in rows}
    saying: dict[str, Any] = {"tokenizer_config": config}
    if data.draw(st.booleans()):
        saying["special_tokens_map"] = data.draw(st.dictionaries(st.sampled_from(ROLES), tokens, max_size=3))
    if data.draw(st.booleans()):
        saying["added_tokens"] = dict(zip(data.draw(lists), data.draw(st.permutations(range(420, 424))), strict=False))
    folder = tmp_path_factory.mktemp("any") / "base"
    size, kind = written("tokenizer.json", folder)
    said(folder, saying, size, kind)
    placed = folder_tokens(files_beside(folder / "tokenizer.json"), "it", {})
    ids = {row["content"]: row["id"] for row in placed.listed}
    if len(asked(folder)["tokens"].items() & ids.items()) < len(ids):
        with pytest.raises(ArtifactError, match="AutoTokenizer would give"):
            ours(folder)
    else:
        assert ours(folder) == asked(folder)


@pytest.mark.parametrize("saying", SAYINGS, ids=str)
def test_a_vocab_txt_has_the_tokens_of_auto_tokenizer(saying: Saying, tmp_path: Path) -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "a", "학교", "##에", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    folder = said(tmp_path, saying, len(pieces), "BertTokenizer")
    if "unk_token" in saying.get("tokenizer_config", {}):
        with pytest.raises(ArtifactError, match="expected the piece <unk>"):
            load(folder)
        return
    tokenizer, before = load(folder), asked(folder)
    assert dict(tokenizer.vocab.token_ids) == before["tokens"]
    assert {role: tokenizer.roles[role] for role in before["roles"]} == before["roles"]


ASK = """
import json, sys
from transformers import AutoTokenizer
answers = []
for folder in json.load(open(sys.argv[1])):
    auto = AutoTokenizer.from_pretrained(folder)
    roles = {role: token for role, token in auto.special_tokens_map.items() if isinstance(token, str)}
    answers.append({"size": len(auto), "tokens": auto.get_vocab(), "roles": roles})
print(json.dumps(answers))
"""


@pytest.mark.network
@pytest.mark.parametrize("form", FORMS)
def test_the_same_law_in_transformers_4(form: str, python4: Path, tmp_path: Path) -> None:
    pairs: list[tuple[Path, Path]] = []
    for k, saying in enumerate(SAYINGS):
        size, kind = written(form, tmp_path / f"base{k}")
        folder = said(tmp_path / f"base{k}", saying, size, kind)
        pairs.append((folder, extended(open_base(str(folder)), tmp_path / f"new{k}")))
    (tmp_path / "folders.json").write_text(json.dumps([str(folder) for pair in pairs for folder in pair]))
    done = subprocess.run(
        [python4, "-c", ASK, tmp_path / "folders.json"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    answers = [
        {**answer, "roles": {r: t for r, t in answer["roles"].items() if r in ROLES}}
        for answer in json.loads(done.stdout)
    ]
    for (folder, _), before, after in zip(pairs, answers[::2], answers[1::2], strict=True):
        assert ours(folder) == before, folder
        check(before, after)
