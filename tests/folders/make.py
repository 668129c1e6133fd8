"""Makes the folders that must load for ever, from corpora/mini: `python tests/folders/make.py` writes them beside this file.

Run it once for a format. A folder that is there is not written again: it stands for all the folders that users have.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from koktok import Recipe, Tokenizer, load
from koktok.errors import VocabSizeError
from koktok.pipeline.train import train as train_tokenizer

HERE = Path(__file__).resolve().parent
MINI = HERE.parent.parent / "corpora" / "mini"
READ_BY_LOAD = ("koktok.toml", "tokenizer.json", "vocab.json")
LARGE = 10_000
"""Larger files are packed: the decoder of jamo alone is ten thousand nodes, and they are read by tests only."""

RECIPES: dict[str, dict[str, Any]] = {
    "unigram": {},
    "superwords": {"train": {"superwords": 0.2}, "pretokenize": {"split": "scripts"}},
    "folds": {
        "normalize": {
            "fullwidth": True,
            "spaces": True,
            "quotes": True,
            "dashes": True,
            "repeats": 2,
            "lone_jamo": True,
        },
        "pretokenize": {"prefix_space": False},
    },
    "jamo-unigram": {"jamo": True, "special": {"style": "roberta", "trim_offsets": False}},
    "fallback-unigram": {"jamo": "fallback"},
    "bpe": {"train": {"model": "bpe"}, "special": {"style": "t5"}},
    "bpe-bytes": {
        "train": {"model": "bpe-bytes"},
        "special": {"style": "llama", "chat_template": "llama-3", "pad_to_multiple": 64},
    },
    "wordpiece": {"train": {"model": "wordpiece"}, "special": {"style": "bert"}},
    "wordpiece-bytes": {"train": {"model": "wordpiece-bytes", "reserved": 3}},
    "word": {"train": {"model": "word"}},
    "syllable": {"train": {"model": "syllable"}, "special": {"style": "roberta", "trim_offsets": False}},
    "jamo": {"train": {"model": "jamo"}},
    "ngram": {"train": {"model": "ngram"}},
    "morpheme": {"train": {"model": "morpheme"}, "special": {"style": "gpt", "chat_template": "chatml"}},
}
"""Every kind, style and way of spelling."""

TEXTS = (
    "",
    "국수 한 그릇이 식었다.",
    "그는  집에 갔다가 돌아왔습니다!  ",
    "\t값은 1,234,567원(VAT 별도)\n끝",
    "ㅋㅋㅋㅋ ㅠㅠ ㅎㅏㄴㄱㅡㄹ ㈜가나 ①",
    "\u1112\u1161\u11ab\u1100\u1173\u11af\u200b과 \ufeff한글",
    "漢字와 emoji 👍🏽 그리고 e\u0301té",
    "“따옴표”―３０％ Ａ１",
    "▁밑줄▁ ##표 <0x0A> </s>[SEP]<|endoftext|>",
    "훈민져ᇰᅙᅳᆷ 나랏〮말〯",
    " 집<mask> 앞</s>뒤",
)
"""Our own lines, a trap in each."""


def golden(tokenizer: Tokenizer) -> dict[str, Any]:
    """What a folder must give for ever."""
    rows = []
    for text in TEXTS:
        encoding = tokenizer.encode(text)
        rows.append(
            {
                "text": text,
                "ids": encoding.ids,
                "offsets": encoding.offsets,
                "decoded": tokenizer.decode(encoding.ids),
                "special": tokenizer.encode(text, allowed_special="all").ids,
                "around": tokenizer.encode(text, add_special_tokens=True).ids,
            }
        )
    return {
        "kind": tokenizer.vocab.kind,
        "size": tokenizer.vocab.size,
        "digest": tokenizer.vocab.digest(),
        "lossless": tokenizer.lossless,
        "texts": json.loads(json.dumps(rows)),
    }


def train(name: str) -> Tokenizer:
    """A small tokenizer of a recipe; where the size does not fit, of the size that the error names."""
    lines = [line for file in ("essay", "dialogue") for line in (MINI / f"{file}.txt").read_text("utf-8").splitlines()]
    recipe = Recipe().changed(**RECIPES[name], holdout=0.0)
    recipe = recipe.changed(train={"vocab_size": 1000, "required": "none", "character_coverage": 0.9})
    try:
        return train_tokenizer(lines, recipe).tokenizer
    except VocabSizeError as error:
        return train_tokenizer(lines, recipe, vocab_size=int(error.hint.split()[1].strip(","))).tokenizer


def main() -> None:
    """Write what is not there."""
    for name in RECIPES:
        target = HERE / name
        if target.exists():
            print(f"{target.name} is there and stays", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as temporary:
            saved = train(name).save(Path(temporary, name))
            target.mkdir()
            for file in READ_BY_LOAD:
                if not (saved / file).exists():
                    continue
                data = (saved / file).read_bytes()
                if len(data) > LARGE:
                    (target / f"{file}.xz").write_bytes(lzma.compress(data, preset=9))
                else:
                    shutil.copy(saved / file, target)
            content = golden(load(saved))
        rows = "".join(f"{json.dumps(row, ensure_ascii=True)},\n" for row in content.pop("texts")).rstrip(",\n")
        head = json.dumps(content, ensure_ascii=True)[:-1]
        (target / "golden.json").write_text(f'{head}, "texts": [\n{rows}\n]}}\n', encoding="utf-8")
        print(f"{target.name}: {sum(file.stat().st_size for file in target.iterdir()):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
