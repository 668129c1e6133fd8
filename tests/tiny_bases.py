"""Tiny tokenizers of every kind that can be extended, made here, and lines to learn from."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from conftest import MINI
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from koktok.extension.base_tokenizer import Base, base_of_library
from koktok.model.vocab import BYTE_CHARS, BYTE_OF
from koktok.runtimes.tiktoken.adapter import Tiktoken
from koktok.runtimes.tiktoken.ranks import VOCABULARIES, Ranks
from koktok.segment import Morpheme

ENDINGS = ("에서는", "습니다", "에서", "까지", "는", "은", "이", "가", "을", "를", "에", "다", "고")
LINES = [line for file in sorted(MINI.glob("*.txt")) for line in file.read_text(encoding="utf-8").splitlines() if line]
ENGLISH = [
    "The quick brown fox jumps over the lazy dog.",
    "def f(x):\n    return x + 1",
    "你好,世界 😀👍🏽",
    "a  b\t\tc 3.14",
]


class Suffixes:
    """A segmenter that needs no dictionary: what a word ends in is its ending."""

    def signature(self) -> str:
        return "suffixes"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        for word in words:
            end = next((end for end in ENDINGS if word.endswith(end) and len(word) > len(end)), "")
            n = len(word) - len(end)
            yield (Morpheme(0, n, "NNG"), Morpheme(n, len(word), "JKB")) if end else (Morpheme(0, n, "NNG"),)


def byte_level(
    pattern: str = "llama3", *, size: int = 420, specials: tuple[str, ...] = ("<|end|>",)
) -> tokenizers.Tokenizer:
    """Byte-level BPE that has seen much English and little Korean; a test may change what it gets."""
    return tokenizers.Tokenizer.from_str(_byte_level(pattern, size, specials))


@cache
def _byte_level(pattern: str, size: int, specials: tuple[str, ...]) -> str:
    made = tokenizers.Tokenizer(models.BPE())
    split = pre_tokenizers.Split(
        Regex(VOCABULARIES[pattern].regex.replace("++", "+").replace("?+", "?").replace("*+", "*")), "isolated"
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[], initial_alphabet=list(BYTE_CHARS), show_progress=False
    )
    made.train_from_iterator([*ENGLISH * 5, *LINES[:60]], trainer)
    made.add_special_tokens(list(specials))
    return made.to_str()


def saved(made: tokenizers.Tokenizer, folder: Path, **beside: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder)


def ranked(size: int = 400) -> Base:
    """Ranks as tiktoken has them, of the same kind."""
    rows = byte_level(size=size, specials=()).get_vocab()
    # tiktoken's ids are ranks, so a piece stands behind what it is made of: the trainer's order.
    order = sorted(rows, key=rows.__getitem__)
    ranks = {bytes(BYTE_OF[char] for char in piece): i for i, piece in enumerate(order)}
    specials = {"<|end|>": size, "<|pad|>": size + 5}
    return base_of_library("tiny", Tiktoken(Ranks("tiny", VOCABULARIES["llama3"].regex, ranks, specials)))


def sentencepiece_model(folder: Path, kind: str, *, fallback: bool = True) -> str:
    file = folder / "spm.model"
    file.write_bytes(_sentencepiece(kind, fallback))
    return str(file)


@cache
def _sentencepiece(kind: str, fallback: bool) -> bytes:
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*ENGLISH[:1] * 400, *LINES[:30]]),
        model_writer=written,
        model_type=kind,
        vocab_size=600 if fallback else 400,
        byte_fallback=fallback,
        character_coverage=0.98,
        hard_vocab_limit=False,
        user_defined_symbols=[f"<unused{i}>" for i in range(20)],
        normalization_rule_name="identity" if kind == "bpe" else "nmt_nfkc",
        minloglevel=2,
    )
    return written.getvalue()
