"""The suites, a file each: what is trained, on what, and what it is measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from koktok.metrics import Text
from koktok.metrics.gold import GoldCorpus
from koktok.metrics.gold.spans import SpanCorpus
from koktok.report.measure import Entry
from koktok.report.schema import Sentence

__all__ = ["Suite", "kiwi_gold"]


@dataclass(frozen=True)
class Suite:
    """One comparison."""

    title: str
    train: Sequence[str]  # what every peer is trained on
    size: int  # vocabulary size of what is trained here
    held: Mapping[str, Sequence[str]]  # domain to lines; none of them is trained on
    golds: Sequence[GoldCorpus]
    published: Sequence[Entry]  # what is measured as it is, behind the trained rows
    shown: Sequence[Sentence]  # sentences of corpora/mini, for the page
    spans: Sequence[SpanCorpus] = ()
    remarks: Sequence[str] = ()
    extended: bool = True
    sample: int = 500
    resamples: int = 1000
    english: Text | None = None
    code: Text | None = None
    trivial: Sequence[Entry] = field(
        default=(Entry("syllables"), Entry("eojeols"), Entry("bytes"), Entry("kiwi"), Entry("mecab-ko"))
    )


def kiwi_gold(name: str, lines: Sequence[str]) -> GoldCorpus:
    """What Kiwi says of lines that nobody annotated: silver, and its own teacher's view of koktok."""
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
