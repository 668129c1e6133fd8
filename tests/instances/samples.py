"""What the tests of this room share: vocabularies of every kind, an analyser, and a text."""

from __future__ import annotations

import lzma
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from conftest import ROOT

from koktok import Tokenizer, load
from koktok.instances.masking import IGNORED
from koktok.instances.word_cuts import WordCuts
from koktok.segment import Morpheme, Policy
from koktok.tokenizer.restyle import restyle

KINDS = (
    "unigram",
    "superwords",
    "bpe",
    "bpe-bytes",
    "wordpiece",
    "wordpiece-bytes",
    "jamo-unigram",
    "fallback-unigram",
)
TEXT = """국수 한 그릇이 식었다. 그는 집에 갔다가 돌아왔습니다!
"왜 웃니?" 하고 물었다.

학교에서는 책을 읽습니다. API는 3개월 동안 좋았다.
emoji 👍🏽 그리고 漢字와 글.
"""


@lru_cache
def unpacked(kind: str) -> Path:
    """A saved vocabulary."""
    folder = Path(tempfile.mkdtemp(prefix="koktok-kinds-")) / kind
    shutil.copytree(ROOT / "tests" / "folders" / kind, folder)
    for packed in folder.glob("*.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    (folder / "golden.json").unlink()
    return folder


@lru_cache
def styled(kind: str, style: str = "bert") -> Tokenizer:
    """A vocabulary with the special tokens of a style."""
    return restyle(load(unpacked(kind)), style)


class Syllables:
    """An analyser that cuts behind every second syllable; every second piece is a particle."""

    def signature(self) -> str:
        return "syllables"

    def analyse(self, words: Iterable[str]) -> Iterator[tuple[Morpheme, ...]]:
        for word in words:
            yield tuple(
                Morpheme(i, min(i + 2, len(word)), "JX" if i // 2 % 2 else "NNG", word[i : i + 2])
                for i in range(0, len(word), 2)
            )


def lexicon(segmenter: Any = None) -> WordCuts:
    return WordCuts(segmenter or Syllables(), Policy.parse("morphemes"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.arrow"))
    return [row for file in files for row in pa.ipc.open_file(file).read_all().to_pylist()]


def text_ids(row: dict[str, Any]) -> list[int]:
    """The ids of the text of an instance, before masking."""
    return [i if label == IGNORED else label for i, label in zip(row["input_ids"], row["labels"], strict=True)]
