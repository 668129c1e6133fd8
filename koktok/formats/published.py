"""What a file of ranks does not hold: by the name of its vocabulary, the pattern and the special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koktok.text.patterns import PUBLISHED, TIKTOKEN


@dataclass(frozen=True, slots=True)
class RanksPattern:
    """A pattern, and the special tokens of its vocabulary with their ids."""

    regex: str
    specials: Mapping[str, int] = field(default_factory=dict)


VOCABULARIES: Final[Mapping[str, RanksPattern]] = {
    "gpt2": RanksPattern(TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "p50k_base": RanksPattern(TIKTOKEN["gpt2"], {"<|endoftext|>": 50256}),
    "cl100k_base": RanksPattern(
        TIKTOKEN["cl100k"],
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": RanksPattern(PUBLISHED["o200k"], {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    "llama3": RanksPattern(PUBLISHED["llama3"]),
    "llama4": RanksPattern(PUBLISHED["o200k"]),
    "qwen2": RanksPattern(PUBLISHED["qwen2"]),
    "qwen3.5": RanksPattern(PUBLISHED["qwen3.5"]),
}
"""As tiktoken and the models' authors give them."""


def published(name: str) -> RanksPattern | None:
    """What belongs to the ranks of that name, with or without tiktoken's "_base"; None where there is none.

    Examples
    --------
    >>> published("cl100k") is published("cl100k_base"), published("nothing")
    (True, None)
    """
    return VOCABULARIES.get(name) or VOCABULARIES.get(f"{name}_base")
