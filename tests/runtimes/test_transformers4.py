"""transformers 4.57 in a virtual environment of its own: folders of every kind and style load there without any code of ours."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MODELS
from transformers import AutoTokenizer

from koktok import load
from koktok.model.special import STYLES
from koktok.text.patterns import ACROSS_SPACES
from koktok.tokenizer.restyle import restyle
from koktok.verification.probes import tricky_lines

CHECK = """
import json, sys, pathlib
from transformers import AutoTokenizer, __version__
auto = AutoTokenizer.from_pretrained(sys.argv[1])
lines = json.load(open(sys.argv[2], encoding="utf-8"))
talk = [{"role": "user", "content": "안녕"}]
out = pathlib.Path(sys.argv[3])
auto.save_pretrained(str(out))
again = AutoTokenizer.from_pretrained(str(out))
ids = [auto(line, split_special_tokens=True, add_special_tokens=False)["input_ids"] for line in lines]
pair = auto("누가 책을 읽습니까?", "학생이 학교에서 책을 읽습니다.", return_offsets_mapping=True)
tagged = auto("서울에 사는 김연아가 책을 읽습니다.".split(), is_split_into_words=True, return_offsets_mapping=True)
print(json.dumps({
    "version": __version__,
    "class": type(auto).__name__,
    "size": len(auto),
    "roles": {name: value for name, value in auto.special_tokens_map.items() if isinstance(value, str)},
    "ids": ids,
    "framed": [auto(line)["input_ids"] for line in lines],
    "again": again(lines)["input_ids"],
    "texts": [auto.decode(row) for row in ids],
    "types": auto("가", "나", return_token_type_ids=True)["token_type_ids"],
    "side": auto.padding_side,
    "longest": auto.model_max_length,
    "chat": auto.apply_chat_template(talk, tokenize=False) if auto.chat_template else "",
    "apart": auto(lines[0].split(), is_split_into_words=True, add_special_tokens=False)["input_ids"],
    "pair": [pair["offset_mapping"], pair.sequence_ids()],
    "tagged": [tagged["offset_mapping"], tagged.word_ids()],
    "same": (out / "tokenizer.json").read_bytes() == pathlib.Path(sys.argv[1], "tokenizer.json").read_bytes(),
}))
"""


def ask(python: Path, folder: Path, lines: list[str], tmp: Path) -> dict[str, Any]:
    (tmp / "lines.json").write_text(json.dumps(lines), encoding="utf-8")
    words = [folder, tmp / "lines.json", tmp / "out"]
    env = {**os.environ, "HF_HOME": str(tmp / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([python, "-c", CHECK, *words], capture_output=True, text=True, check=True, env=env)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["version"].startswith("4.57")
    return answer


def _answers_and_names_are_where_version_5_has_them(folder: Path, found: dict[str, Any]) -> None:
    """Extraction and tagging; what they must be there, tests/tokenizer says, with trimmed offsets and without."""
    here = AutoTokenizer.from_pretrained(str(folder))
    pair = here("누가 책을 읽습니까?", "학생이 학교에서 책을 읽습니다.", return_offsets_mapping=True)
    tagged = here(
        ["서울에", "사는", "김연아가", "책을", "읽습니다."], is_split_into_words=True, return_offsets_mapping=True
    )
    for name, kept, ids in (("pair", pair, pair.sequence_ids()), ("tagged", tagged, tagged.word_ids())):
        assert found[name] == [[list(span) for span in kept["offset_mapping"]], ids]


@pytest.mark.network
@pytest.mark.parametrize("superwords", [0.0, 0.3])
@pytest.mark.parametrize("pattern", ACROSS_SPACES)
def test_patterns_across_spaces_give_the_same_ids_in_version_4(
    pattern: str, superwords: float, python4: Path, trained: Callable[..., Path], mini: list[str], tmp_path: Path
) -> None:
    folder = trained(train={"model": "bpe-bytes", "superwords": superwords}, pretokenize={"pattern": pattern})
    lines = [*mini, *tricky_lines(), "1234567 12½34567 １２３４"]
    ours, here = load(folder), AutoTokenizer.from_pretrained(str(folder))
    rows = [ours.encode(line).ids for line in lines]
    assert here(lines, split_special_tokens=True, add_special_tokens=False)["input_ids"] == rows
    assert ask(python4, folder, lines, tmp_path)["ids"] == rows


@pytest.mark.network
@pytest.mark.parametrize("model", ["unigram", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word"])
@pytest.mark.parametrize("style", STYLES)
def test_the_folder_loads_in_version_4(
    model: str, style: Any, python4: Path, trained: Callable[..., Path], mini: list[str], tmp_path: Path
) -> None:
    chat = {"gpt": "chatml", "llama": "llama-3"}.get(style)
    ours = restyle(load(trained(**MODELS[model])), style, chat_template=chat, pad_to_multiple=64)
    injected = [f"나는  {token}나" for token in ours.vocab.specials]
    lines = [*injected, *mini[::3], "", "  두  칸 "]
    found = ask(python4, ours.save(tmp_path / "tokenizer"), lines, tmp_path)
    assert found["class"] == "PreTrainedTokenizerFast"
    assert found["size"] == ours.vocab.size
    assert found["roles"] == dict(ours.style.roles)
    assert found["ids"] == [ours.encode(line).ids for line in lines]
    split = {i for row in found["ids"][: len(injected)] for i in row}
    unknown = {"[UNK]", "<unk>"} if model in ("wordpiece", "word") else set()
    assert not split & {i for token, i in ours.vocab.special_ids.items() if token not in unknown}
    framed = [ours.encode(line, add_special_tokens=True, allowed_special="all").ids for line in lines]
    assert found["framed"] == found["again"] == framed
    assert found["texts"] == [ours.decode(row) for row in found["ids"]]
    assert set(found["types"]) == {kind for _, kind in ours.style.around(pair=True)}
    assert (found["side"], found["longest"]) == (ours.style.padding_side, ours.style.model_max_length)
    assert bool(found["chat"]) == bool(chat)
    _answers_and_names_are_where_version_5_has_them(tmp_path / "tokenizer", found)
    assert found["same"]


@pytest.mark.network
@pytest.mark.parametrize("model", ["unigram", "bpe", "bpe-bytes"])
def test_words_given_apart_in_version_4(
    model: str, python4: Path, trained: Callable[..., Path], mini: list[str], tmp_path: Path
) -> None:
    folder = trained(pretokenize={"prefix_space": True}, **MODELS[model])
    ours, lines = load(folder), [line for line in mini if line.split()][::3]
    found = ask(python4, folder, lines, tmp_path)
    assert found["apart"] == ours.encode(" ".join(lines[0].split())).ids
    assert found["ids"] == [ours.encode(line).ids for line in lines]
    assert found["texts"] == [ours.decode(row) for row in found["ids"]]
