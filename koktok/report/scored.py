"""What a report says of its text, gold morphemes and spans."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

from koktok.metrics import GoldPage, Text
from koktok.metrics.boundaries import trivial_rows
from koktok.metrics.gold import GOLD_BOUNDARIES
from koktok.metrics.spans import SpanPage
from koktok.report.schema import GoldInfo, SpanInfo, TextInfo


def texts_of(text: Text | None) -> list[TextInfo]:
    """Size and digest of each domain of a text."""
    if text is None:
        return []
    by_domain: list[list[str]] = [[] for _ in text.names]
    for line, domain in zip(text.lines, text.domains.tolist(), strict=True):
        by_domain[domain].append(line)
    return [
        TextInfo(
            name=name,
            lines=len(lines),
            eojeols=sum(len(line.split()) for line in lines),
            characters=sum(map(len, lines)),
            bytes=sum(len(line.encode()) for line in lines),
            digest=hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16],
        )
        for name, lines in zip(text.names, by_domain, strict=True)
    ]


def gold_info(page: GoldPage) -> GoldInfo:
    """Size, digest and standing of a gold corpus, and its reference figures."""
    gold, trivial = page.gold, trivial_rows(page)
    held = Counter(cut.kind for sentence in gold.sentences for cut in sentence.cuts)
    return GoldInfo(
        name=gold.name,
        standing=gold.label,
        sentences=len(gold.sentences),
        words=gold.words,
        skipped=sum(gold.skipped.values()),
        digest=gold.digest,
        coverage=gold.coverage,
        syllables_f1=_finite(trivial["syllables_f1"]),
        reachable_recall=_finite(trivial["reachable_recall"]),
        resampled=repr(page.units),
        kinds={kind: held[kind] for kind in GOLD_BOUNDARIES if held[kind]},
    )


def span_info(page: SpanPage) -> SpanInfo:
    """Size and digest of a file of spans."""
    corpus = page.corpus
    return SpanInfo(
        name=corpus.name,
        texts=len(corpus.texts),
        spans=corpus.n_spans,
        skipped=corpus.skipped,
        digest=corpus.digest,
        resampled=repr(page.units),
    )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
