"""`full`: every trainable peer on the same text at the same size, and every published vocabulary as it is.

DATA is a folder with `text/` (lines, plain or gzipped), `gold/` and, where there are any, `tokenizers/` (a folder a vocabulary),
`english/` (a file a domain) and `code/`.
Training text and held-out blocks are those of `eval.texts`.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from eval.suites import Suite, kiwi_gold
from eval.suites.quick import MINI
from eval.texts import CAP, split
from koktok.foreign import package_names
from koktok.metrics.gold import GoldCorpus, read_gold
from koktok.metrics.gold.spans import read_spans
from koktok.report.benchmark import GOLDS as BENCHMARK_GOLDS
from koktok.report.benchmark import SPANS, code_of, english_of
from koktok.report.measure import Entry, showcase

__all__ = ["GOLDS", "suite"]

HANBERT = Entry(
    "package:hanbert-54k", why="its segmenter is a closed binary, and without it the pieces are not matched"
)

GOLDS = (*BENCHMARK_GOLDS, "klue-dp-dev.part80.tsv")
"""Those of the benchmark, and one that a folder of one's own may hold."""


def suite(data: Path, *, size: int, limit: int | None, sample: int, draw: int = 0) -> Suite:
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
        held=held,
        golds=golds,
        spans=[read_spans(data / "gold" / name) for name in SPANS if (data / "gold" / name).exists()],
        published=[*published(data / "tokenizers"), HANBERT],
        shown=showcase([], 8, 0, [ours]),
        remarks=(
            f"Rows with a name like “SentencePiece …”, “HF …”, “Kiwi …” and “koktok …” are trained here on the same {len(train):,} lines "
            f"({eojeols:,} eojeols of {len(held)} texts, at most {cap:,} of each) at {size:,} ids, SentencePiece with identity normalization. "
            "The texts below are blocks held out from the same files: in-domain for these rows, not for the published vocabularies, "
            "which keep their own size and normalization.",
            "Sentences shown are of corpora/mini, with Kiwi's boundaries.",
        ),
        sample=sample,
        english=english_of((data / "english").glob("*")),
        code=code_of((data / "code").glob("*")),
    )


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
    found = [path for path in sorted(folder.glob("*")) if not path.name.startswith("fetched.")]
    names = [path.name if path.is_dir() else path.name.split(".")[0] for path in found]
    here = [Entry(str(path), shown=f"tokenizers/{name}") for path, name in zip(found, names, strict=True)]
    return [*here, *(Entry(f"package:{name}") for name in package_names())]
