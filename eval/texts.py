"""Text to train on and text held out, from a folder of lines: the same parts for every table of this folder."""

from __future__ import annotations

import gzip
import hashlib
import sys
import unicodedata
from pathlib import Path

CAP, BLOCK, HELD = 110_000, 50, 10
"""Eojeols that are read of each file, so that no domain drowns the others; lines of a block; one block of ten is held out."""

LEFT_OUT = ("bible_krv_1961", "news_north_korean")
"""The same sentences stand in bible_modern and news_parallel."""


GOLDS = "ko_kaist-ud-dev.conllu,ko_ksl-ud-dev.conllu"
"""Files of gold/ whose morphemes people annotated."""


def split(folder: Path, cap: int = CAP) -> tuple[list[str], dict[str, list[str]]]:
    """Training lines, and held-out lines by file: at most `cap` eojeols a file, blocks of lines by hash."""
    paths = sorted(path for path in folder.glob("*.txt*") if path.name.split(".")[0] not in LEFT_OUT)
    if not paths:
        sys.exit(f"eval: `{folder}` holds no text; give the folder that holds text/ and gold/")
    train: list[str] = []
    held: dict[str, list[str]] = {}
    for path in paths:
        name, seen = path.name.split(".")[0], 0
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            for i, raw in enumerate(file):
                line = unicodedata.normalize("NFC", raw.rstrip("\n"))
                seen += len(line.split())
                if seen > cap:
                    break
                if line.strip():
                    digest = hashlib.sha256(f"{name}:{i // BLOCK}".encode()).hexdigest()
                    (held.setdefault(name, []) if int(digest, 16) % HELD == 0 else train).append(line)
    return train, held
