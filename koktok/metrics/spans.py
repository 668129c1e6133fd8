"""Spans that tokens can express: both ends are borders of tokens, so that a model over tokens can point at exactly this text."""

from __future__ import annotations

import numpy as np

from koktok.metrics.gold.spans import SpanCorpus
from koktok.metrics.page import Page
from koktok.metrics.statistics import Table, Units
from koktok.protocol.tokenizer import Tokenizer


class SpanPage:
    """A corpus of spans as flat arrays, made once for all tokenizers."""

    def __init__(self, corpus: SpanCorpus) -> None:
        self.corpus = corpus
        self.page = page = Page(corpus.texts)
        rows = [(at, *span) for at, spans in enumerate(corpus.spans) for span in spans]
        self.lines, starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        self.starts, self.ends = starts + page.line_starts[self.lines], ends + page.line_starts[self.lines]
        self.units = Units.by(corpus.documents, "documents", "texts")


def span_table(tokenizer: Tokenizer, spans: SpanPage) -> Table:
    """Count the spans of each text, and those whose ends are borders of tokens; spaces at the edges of a token do not count."""
    page, rows = spans.page, tokenizer.encode_lines(spans.page.lines)
    places = np.arange(len(page.codes))
    solid = np.flatnonzero(~page.space)
    first = np.append(solid, len(places))[np.searchsorted(solid, rows.starts)]  # the next character that is no space
    last = np.append(0, solid + 1)[np.searchsorted(solid, rows.ends)]  # behind the one before the end
    begun, ended = np.zeros((2, len(places) + 1), dtype=bool)
    held = first < last
    begun[first[held]] = ended[last[held]] = True
    expressed = begun[spans.starts] & ended[spans.ends]
    return Table(
        {"spans": page.by_line(spans.lines), "expressed": page.by_line(spans.lines, expressed)}, spans.units.of
    )
