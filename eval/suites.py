"""The suites `quick` and `full`: what is trained, on what text, and what it is measured on.

`quick` runs everything on corpora/mini, without network, in less than a minute; its vocabularies from 80 kB of text prove that
everything works, not that a tokenizer is good. `full` trains every peer on the same text at the same size and measures every
published vocabulary. DATA is a folder with `text/` (lines, plain or gzipped), `gold/` and, if there are any, `tokenizers/` (a folder
for each vocabulary), `english/` (a file for each domain) and `code/`; training text and held-out blocks are those of `eval.texts`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.texts import CAP, split
from koktok.metrics import Settings, Text
from koktok.metrics.gold import GoldCorpus, read_gold
from koktok.metrics.gold.spans import read_spans
from koktok.report.benchmark import GOLDS as BENCHMARK_GOLDS
from koktok.report.benchmark import SPANS, code_of, english_of
from koktok.report.measure import Entry, ReportMaterial, showcase
from koktok.runtimes import package_names

MINI = Path(__file__).resolve().parents[1] / "corpora" / "mini"
QUICK_SIZE = 2300
QUICK_BLOCK, QUICK_HELD = 5, 4
"""Blocks of five lines; one of four is held out by hash."""

GOLDS = (*BENCHMARK_GOLDS, "klue-dp-dev.part80.tsv")
"""Those of the benchmark, and one that a user's folder may have."""

TRIVIAL = tuple(map(Entry, ("syllables", "eojeols", "bytes", "kiwi", "mecab-ko")))
HANBERT = Entry(
    "package:hanbert-54k", why="its segmenter is a closed binary, and without it the pieces are not matched"
)


@dataclass(frozen=True)
class Suite:
    """One comparison: `train` are the lines for every peer, none of which is measured; `beside` are measured unchanged."""

    title: str
    train: Sequence[str]
    size: int
    material: ReportMaterial
    beside: Sequence[Entry]
    remarks: Sequence[str]
    settings: Settings


def quick() -> Suite:
    train: list[str] = []
    held: dict[str, list[str]] = {}
    for path in sorted(MINI.glob("*.txt")):
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            digest = hashlib.sha256(f"{path.stem}:{i // QUICK_BLOCK}".encode()).hexdigest()
            (train if int(digest, 16) % QUICK_HELD else held.setdefault(path.stem, [])).append(line)
    modern = [line for name, lines in held.items() if name not in ("oldhangul", "codemixed") for line in lines]
    gold = kiwi_gold("mini, by Kiwi", modern)
    return Suite(
        title=f"koktok eval quick: {QUICK_SIZE:,} ids on corpora/mini",
        train=train,
        size=QUICK_SIZE,
        material=ReportMaterial(text=Text.of(held), golds=[gold], shown=showcase([], 6, 0, [gold])),
        beside=TRIVIAL,
        remarks=(
            "Three quarters of corpora/mini (80 kB) are trained on and the rest is measured: the figures show that everything runs, "
            "not that a tokenizer is good.",
            "The boundaries are Kiwi's own (silver). koktok's rows and two of the peers were trained with Kiwi.",
        ),
        settings=Settings(extended=True, sample=100, resamples=200),
    )


def full(data: Path, *, size: int, limit: int | None, sample: int, draw: int = 0) -> Suite:
    cap = min(limit or CAP, CAP)
    train, held = split(data / "text", cap, draw)
    golds = [read_gold(data / "gold" / name) for name in GOLDS if (data / "gold" / name).exists()]
    if not golds:
        sys.exit(f"eval: `{data / 'gold'}` has none of {', '.join(GOLDS)}")
    if limit:
        golds = [_first(gold, limit) for gold in golds]
    modern = [p.read_text(encoding="utf-8").splitlines() for p in sorted(MINI.glob("*.txt")) if p.stem != "oldhangul"]
    ours = kiwi_gold("corpora/mini, by Kiwi", [line for lines in modern for line in lines])
    eojeols = sum(len(line.split()) for line in train)
    return Suite(
        title=f"koktok eval full: {size:,} ids trained on {eojeols:,} eojeols, and published vocabularies as they are"
        + f" (draw {draw} of the training text)" * bool(draw),
        train=train,
        size=size,
        material=ReportMaterial(
            text=Text.of(held),
            golds=golds,
            spans=[read_spans(data / "gold" / name) for name in SPANS if (data / "gold" / name).exists()],
            english=english_of((data / "english").glob("*")),
            code=code_of((data / "code").glob("*")),
            shown=showcase([], 8, 0, [ours]),
        ),
        beside=[*TRIVIAL, *published(data / "tokenizers"), HANBERT],
        remarks=(
            f"Rows with a name like “SentencePiece …”, “HF …”, “Kiwi …” and “koktok …” are trained here on the same {len(train):,} lines "
            f"({eojeols:,} eojeols of {len(held)} texts, at most {cap:,} of each) at {size:,} ids, SentencePiece with identity normalization. "
            "The texts below are blocks held out from the same files: in-domain for these rows, not for the published vocabularies, "
            "which keep their own size and normalization.",
            "Sentences shown are of corpora/mini, with Kiwi's boundaries.",
        ),
        settings=Settings(extended=True, sample=sample),
    )


def kiwi_gold(name: str, lines: Sequence[str]) -> GoldCorpus:
    """Kiwi's boundaries in lines without gold: silver, of the analyser that koktok learnt from."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi(load_multi_dict=False)
    sentences = []
    for line, tokens in zip(lines, kiwi.tokenize(iter(lines)), strict=True):
        words, at = [], 0
        for form in line.split():
            start = line.index(form, at)
            at = start + len(form)
            inside = [token for token in tokens if start <= token.start < at]
            words.append((form, [t.form for t in inside], [t.tag for t in inside], start > 0))
        sentences.append(words)
    return GoldCorpus.of(name, sentences, human=False)


def _first(gold: GoldCorpus, limit: int) -> GoldCorpus:
    """The first sentences, for runs at a reduced size; the digest says that it is a part."""
    kept, words = [], 0
    for sentence in gold.sentences:
        words += len(sentence.text.split())
        if words > limit:
            break
        kept.append(sentence)
    digest = hashlib.sha256(f"{gold.digest}:{limit}".encode()).hexdigest()[:16]
    return GoldCorpus(f"{gold.name}, first {limit:,} words", gold.human, kept, words, gold.skipped, digest)


def published(folder: Path) -> list[Entry]:
    """The vocabularies of a folder, and those of installed packages."""
    paths = [path for path in sorted(folder.glob("*")) if not path.name.startswith("fetched.")]
    names = [path.name if path.is_dir() else path.name.split(".")[0] for path in paths]
    entries = [Entry(str(path), shown=f"tokenizers/{name}") for path, name in zip(paths, names, strict=True)]
    return [*entries, *(Entry(f"package:{name}") for name in package_names())]
