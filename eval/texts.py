"""Text to train on and text held out, from a folder of lines: the same parts for every table of this folder."""

from __future__ import annotations

import gzip
import hashlib
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from koktok.corpora.fetch import fetch, texts
from koktok.files import cache_dir
from koktok.metrics.gold.spans import read_spans
from koktok.report.benchmark import LEFT_OUT, SPANS, head

CAP, BLOCK, HELD = 110_000, 50, 10
"""Eojeols that are read of each file, so that no domain drowns the others; lines of a block; one block of ten is held out."""


BESIDE = ("gold-ko", "vocabularies-ko", "open-en", "code")
"""Corpora that a corpus is measured with."""

GOLDS = "ko_kaist-ud-dev.conllu,ko_ksl-ud-dev.conllu"
"""Files of gold/ whose morphemes people annotated."""


def data_of(given: str, mirror: str | None = None) -> Path:
    """The folder DATA that a command was given, or the one that is made of ``corpus:NAME``.

    Of a corpus: links to its texts, with what its recipe holds out beside them, to the files of gold-ko, to the vocabularies of
    vocabularies-ko, to the English that open-en holds out, and to code; all are fetched where they are not there yet, from `mirror` as
    `koktok corpus fetch` does.
    """
    if not given.startswith("corpus:"):
        return Path(given)
    name = given.removeprefix("corpus:")
    for other in (name, *BESIDE):
        fetch(other, mirror=mirror)
    home = fetch(name)
    folder = cache_dir() / "eval" / home.name
    for place, files in {
        "text": [*texts(name), *texts(f"{name}/held-out")],
        "gold": sorted(fetch("gold-ko").iterdir()),
        "tokenizers": sorted(fetch("vocabularies-ko").iterdir()),
        "english": texts("open-en/held-out"),
        "code": sorted(fetch("code").glob("*.py")),
    }.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for file in files:
            link, there = folder / place / file.name, file.resolve()
            if link.is_symlink() and link.readlink() == there:
                continue  # another evaluation may be reading it
            link.unlink(missing_ok=True)
            link.symlink_to(there)
    return folder


def split(folder: Path, cap: int = CAP, draw: int = 0) -> tuple[list[str], dict[str, list[str]]]:
    """Training lines, and held-out lines by file, as `parts` has them."""
    train, held = parts(folder, cap, draw)
    return [line for lines in train.values() for line in lines], held


def size_of(line: str) -> int:
    """Bytes, the line feed counted."""
    return len(line.encode()) + 1


def runs(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Neighbouring lines of so many bytes or more; the last run may have fewer."""
    run: list[str] = []
    held = 0
    for line in lines:
        run.append(line)
        held += size_of(line)
        if held >= size:
            yield run
            run, held = [], 0
    if run:
        yield run


def parts(folder: Path, cap: int = CAP, draw: int = 0) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Training lines and held-out lines by file: at most `cap` eojeols a file.

    Texts with marked spans (`marked_texts`) are left out. Held out is what the corpus's recipe holds out (a tenth of the cap),
    or else blocks of lines by hash. Draw 0 trains on the beginning of each file; every other one on blocks of 50 lines in an
    order of its own, up to the cap. A file that is smaller than the cap is in all draws.
    """
    paths = sorted(path for path in folder.glob("*.txt*") if path.name.split(".")[0].replace("_", "-") not in LEFT_OUT)
    if not paths:
        sys.exit(f"eval: `{folder}` holds no text; give the folder that holds text/ and gold/")
    train: dict[str, list[str]] = {}
    held: dict[str, list[str]] = {}
    marked = marked_texts(folder.parent / "gold")
    apart = {path.name.split(".")[0] for path in paths if ".held-out." in path.name}
    for path in paths:
        name, seen = path.name.split(".")[0], 0
        if ".held-out." in path.name:
            held[name] = head(path, cap // HELD)
            continue
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
            for i, raw in drawn(file, name, draw):
                line = unicodedata.normalize("NFC", raw.rstrip("\n"))
                seen += len(line.split())
                if seen > cap:
                    break
                if not line.strip() or bare(line) in marked:
                    continue
                if name in apart:
                    train.setdefault(name, []).append(line)
                else:
                    digest = hashlib.sha256(f"{name}:{i // BLOCK}".encode()).hexdigest()
                    (held if int(digest, 16) % HELD == 0 else train).setdefault(name, []).append(line)
    return train, held


def marked_texts(gold: Path) -> set[str]:
    """The texts with marked spans in DATA/gold, without their spaces: no row may have been trained on one of them."""
    corpora = [read_spans(gold / name) for name in SPANS if (gold / name).exists()]
    return {bare(text) for corpus in corpora for text in corpus.texts}


def bare(line: str) -> str:
    """A line without white space; sources differ in it."""
    return "".join(line.split())


def drawn(lines: Iterable[str], name: str, draw: int) -> Iterable[tuple[int, str]]:
    """The numbered lines of a file in the order of a draw: as they are, or blocks by hash."""
    if not draw:
        return enumerate(lines)
    whole = list(enumerate(lines))
    starts = range(0, len(whole), BLOCK)
    order = sorted(starts, key=lambda at: hashlib.sha256(f"{draw}:{name}:{at}".encode()).digest())
    return (line for at in order for line in whole[at : at + BLOCK])


def base_lines(folder: Path) -> list[str]:
    """All lines of DATA/text but those held out, blocks of 50 in an order chosen by hash: every part is like the whole."""
    blocks: list[tuple[bytes, list[str]]] = []
    paths = [path for path in sorted((folder / "text").glob("*.txt*")) if ".held-out." not in path.name]
    if not paths:
        sys.exit(f"eval: `{folder / 'text'}` holds no text; give the folder that holds text/ and gold/")
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\n") for line in file if line.strip()]
        blocks += [
            (hashlib.sha256(f"{path.name}:{i}".encode()).digest(), lines[i : i + 50]) for i in range(0, len(lines), 50)
        ]
    return [line for _, block in sorted(blocks, key=lambda pair: pair[0]) for line in block]
