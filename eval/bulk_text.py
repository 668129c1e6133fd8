"""Text and tokenizers for `eval.bulk`, made from a folder of text, so that anybody can repeat its figures.

Blocks of 50 lines go to one of two sides by the hash of their place (`koktok.text.documents.is_held`): what is measured on was
not trained on. Where there is too little text for both, half of it is measured on, and then the rest too, which is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from koktok.files import write_file
from koktok.pipeline import train
from koktok.recipe import Recipe
from koktok.text.documents import HELD_TOGETHER, is_held
from koktok.text.sources import Source, read

TRAINED = 25.0
"""Megabytes to train on: so much reaches a vocabulary of 32,000, and more only takes longer."""


KINDS: dict[str, dict[str, Any]] = {
    "unigram": {"train": {"model": "unigram"}},
    "bpe-bytes": {"train": {"model": "bpe-bytes"}},
    "bpe-bytes-gpt2": {"train": {"model": "bpe-bytes"}, "pretokenize": {"pattern": "gpt2"}},
}
"""The last one runs in gigatoken, which knows no other pattern better."""


def made_from(folder: Path, cache: Path, size: int, megabytes: float) -> tuple[list[str], str, str]:
    """Folders of a tokenizer of each of `KINDS`, the file of the text to measure on, and a sentence about it."""
    sources = [Source.of(path) for path in Source.of(folder).paths]
    total = sum(n_bytes(lines_of(source)) for source in sources) / 1e6
    share = min(megabytes / total, 0.5) if total else 0.5
    held = list(side(sources, share, held=True))
    rest = list(side(sources, share, held=False))
    of_rest = n_bytes(rest) / 1e6
    # Spread over all files, as the text to measure on is.
    share = min(TRAINED / of_rest, 1.0)
    train = [line for i, line in enumerate(rest) if is_held(i // HELD_TOGETHER, share, "train")]
    missing = megabytes * 1e6 - n_bytes(held)
    more = list(first(rest, missing))
    text = "".join(f"{line}\n" for line in [*held, *more]).encode()
    lesson = "".join(f"{line}\n" for line in train).encode()
    cache.mkdir(parents=True, exist_ok=True)
    names = {name: cache / f"{name}-{hashlib.sha256(lesson).hexdigest()[:12]}.txt" for name in ("train",)}
    names["test"] = cache / f"test-{hashlib.sha256(text).hexdigest()[:12]}.txt"
    write_file(names["train"], lesson)
    write_file(names["test"], text)
    folders = [str(tokenizer_of(names["train"], cache, size, kind)) for kind in KINDS]
    told = f"trained on {len(lesson) / 1e6:.1f} MB of `{folder.name}`, measured on {n_bytes(held) / 1e6:.1f} MB of other blocks"
    if more:
        told += f" and {n_bytes(more) / 1e6:.1f} MB of those that were open to training"
    return folders, str(names["test"]), told


def side(sources: Iterable[Source], share: float, *, held: bool) -> Iterator[str]:
    for source in sources:
        for i, line in enumerate(lines_of(source)):
            if is_held(i // HELD_TOGETHER, share, source.name) == held:
                yield line


def lines_of(source: Source) -> Iterator[str]:
    return (line for block in read(source) for line in block.lines())


def n_bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def first(lines: Iterable[str], wanted: float) -> Iterator[str]:
    for line in lines:
        if wanted <= 0:
            return
        wanted -= len(line.encode()) + 1
        yield line


def tokenizer_of(text: Path, cache: Path, size: int, kind: str) -> Path:
    """Trained once for the same text; delete the folder to train again."""
    folder = cache / f"{kind}-{size}-{text.stem.removeprefix('train-')}"
    if not folder.exists():
        values = KINDS[kind] | {"holdout": 0.0}
        values["train"] = values["train"] | {"vocab_size": size}
        train([Source.of(text)], Recipe().changed(**values), cache=cache / "analyses").tokenizer.save(folder)
    return folder
