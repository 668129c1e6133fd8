"""Cuts against the boundaries of gold morphemes.

A cut counts between two Hangul syllables of one eojeol. A boundary inside a syllable (했 = 하 + 었) has no legal cut; M10a leaves
it out, and in M10b it is an unavoidable miss. A cut beside such a syllable (해|요 for 하 + 아요) is neither right nor wrong. Every
figure is reported with the trivial row (one token for each syllable) and the arithmetic bound F1 ≤ 2·min(c, g)/(c + g).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np

from koktok.metrics.gold import FUNCTIONAL, GOLD_BOUNDARIES, GoldCorpus
from koktok.metrics.page import Page, PageTokens
from koktok.metrics.registry import ratio
from koktok.metrics.statistics import Table, Units
from koktok.model.tokens import Ints, running
from koktok.protocol.tokenizer import Tokenizer

SHARED: Final = ("functional_hits", "functional_cuts", "functional_borders")
STEMS: Final = [GOLD_BOUNDARIES.index(kind) for kind in ("N|J", "V|E", "XS|E", "VCP|E")]


class GoldPage:
    """A gold corpus as flat arrays, made once for all tokenizers."""

    def __init__(self, gold: GoldCorpus) -> None:
        self.gold = gold
        self.page = page = Page([sentence.text for sentence in gold.sentences])
        size = len(page.codes) + 1
        self.kinds = np.full(size, -1, dtype=np.int8)
        outer = np.zeros(size, dtype=bool)
        self.scored = np.ones(size, dtype=bool)
        neutral = np.zeros(size, dtype=bool)
        spans, shared = [], []
        for k, sentence in enumerate(gold.sentences):
            at = int(page.line_starts[k])
            for cut in sentence.cuts:
                self.kinds[at + cut.at] = GOLD_BOUNDARIES.index(cut.kind)
            for start, end in sentence.masked:
                self.scored[at + start : at + end + 1] = False
            neutral[[at + place for place in sentence.neutral]] = True
            outer[[at + place for place in sentence.outer]] = True
            last = -1  # the morpheme before that left a trace
            for morpheme in sentence.morphemes:
                spans.append((at + morpheme.start, at + morpheme.end, k))
                # Two morphemes in one syllable: neither can be a token by itself.
                overlaps = last >= 0 and at + morpheme.start < spans[last][1] and morpheme.end > morpheme.start
                shared.append(overlaps or morpheme.end == morpheme.start)
                if overlaps:
                    shared[last] = True
                if morpheme.end > morpheme.start:
                    last = len(spans) - 1
        self.fused = np.array([len(sentence.fused) for sentence in gold.sentences], dtype=np.int64)
        self.starts, self.ends, self.lines_of = np.array(spans, dtype=np.int64).reshape(-1, 3).T
        self.alone = ~np.array(shared, dtype=bool)
        self.inner = page.inner & self.scored & ~neutral
        self.gaps = page.gaps & self.scored & ~neutral
        self.borders = (self.kinds >= 0) & self.inner
        self.all_borders = self.borders | (outer & self.gaps)
        self.functional = self.borders & (self.kinds < len(FUNCTIONAL))
        documents = np.unique([sentence.document for sentence in gold.sentences], return_inverse=True)[1]
        self.units = Units.by(documents, "documents", "sentences")
        middle = page.eojeol_starts + (page.eojeol_ends - page.eojeol_starts) // 2
        self.eojeols = self.scored[np.minimum(middle, size - 1)]  # eojeols without a masked word in their middle


def boundary_table(tokenizer: Tokenizer, gold: GoldPage) -> tuple[Table, PageTokens]:
    """Counts of each sentence of a gold corpus."""
    page = gold.page
    tokens = PageTokens(page, tokenizer.encode_lines(page.lines))
    cuts = tokens.cuts & gold.inner
    hits = cuts & gold.borders
    # Segments end at the edges of eojeols too, so that a piece across a space is two.
    edges = tokens.cuts.copy()
    edges[page.eojeol_starts] = edges[page.eojeol_ends] = True
    before = running(edges)
    exact = gold.alone & (gold.ends > gold.starts) & edges[gold.starts] & edges[gold.ends]
    exact &= before[np.maximum(gold.ends, gold.starts + 1)] - before[np.minimum(gold.starts + 1, len(edges))] == 0
    starts, ends = page.eojeol_starts[gold.eojeols], page.eojeol_ends[gold.eojeols]
    lines = page.eojeol_lines[gold.eojeols]
    wrong = running(cuts ^ gold.borders)
    places = {
        "hits": hits,
        "cuts": cuts,
        "borders": gold.borders,
        "places": gold.inner,
        "gap_hits": tokens.cuts & gold.all_borders,
        "gap_cuts": tokens.cuts & gold.gaps,
        "gap_borders": gold.all_borders,
        "hidden": gold.borders & tokens.crossed,
        "functional_hits": hits & gold.functional,
        "functional_cuts": cuts & ~(gold.borders & ~gold.functional),
        "functional_borders": gold.functional,
    }
    for k, _ in enumerate(GOLD_BOUNDARIES):
        places[f"borders_{k}"] = kind = gold.borders & (gold.kinds == k)
        places[f"hits_{k}"] = kind & cuts
    columns: dict[str, Ints] = {name: page.per_line(mask[:-1]) for name, mask in places.items()} | {
        "fused": gold.fused,
        "eojeols": page.by_line(lines),
        "tokens": tokens.per_line_of(gold.scored[np.minimum(tokens.rows.starts, len(page.codes))]),
        "morphemes": page.by_line(gold.lines_of),
        "intact": page.by_line(gold.lines_of, exact),
        "segments": page.by_line(lines, before[ends] - before[starts]),
        "perfect": page.by_line(lines, wrong[ends] == wrong[starts]),
    }
    return Table(columns | _first_boundaries(tokens, gold), gold.units.of), tokens


def _first_boundaries(tokens: PageTokens, gold: GoldPage) -> dict[str, Ints]:
    """For MorphScore: in each eojeol the first boundary before a particle or an ending, and whether it is cut."""
    page = gold.page
    places = np.flatnonzero(gold.borders & np.isin(gold.kinds, STEMS))
    eojeol, first = np.unique(np.searchsorted(page.eojeol_starts, places, side="right") - 1, return_index=True)
    line, cut = page.eojeol_lines[eojeol], tokens.cuts[places[first]]
    several = tokens.over(page.eojeol_starts[eojeol], page.eojeol_ends[eojeol]) > 1
    return {
        "stems": page.by_line(line),
        "stems_cut": page.by_line(line, cut),
        "stems_several": page.by_line(line, several),
        "stems_several_cut": page.by_line(line, cut & several),
    }


def by_type(tokens: PageTokens, gold: GoldPage) -> float:
    """Boundary F1 averaged over distinct eojeols, each over all its occurrences."""
    page, cuts = gold.page, tokens.cuts & gold.inner
    hits, made_cuts, borders = (np.append(0, np.cumsum(m)) for m in (cuts & gold.borders, cuts, gold.borders))
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    text, (starts, ends) = "".join(page.lines), (side[gold.eojeols] for side in (page.eojeol_starts, page.eojeol_ends))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        total = sums[text[start:end]]
        total[0] += 2 * int(hits[end] - hits[start])
        total[1] += int(made_cuts[end] - made_cuts[start] + borders[end] - borders[start])
    scores = [above / below for above, below in sums.values() if below]
    return float(np.mean(scores)) if scores else float("nan")


def trivial_rows(gold: GoldPage) -> dict[str, float]:
    """Reference figures of a gold corpus: one token for each syllable, and the recall without jamo."""
    borders, places, fused = int(gold.borders.sum()), int(gold.inner.sum()), int(gold.fused.sum())
    eojeols = int(gold.eojeols.sum())
    return {
        "borders_per_eojeol": float(ratio(borders, eojeols)),
        "coverage": gold.gold.coverage,
        "fused_per_eojeol": float(ratio(fused, eojeols)),
        "reachable_recall": float(ratio(borders, borders + fused)),
        "syllables_f1": float(ratio(2 * borders, places + borders)),
        "syllables_precision": float(ratio(borders, places)),
    }


def golds_table(tables: list[Table]) -> Table:
    """The functional counts of several gold corpora in one table, for the mean over them; each is resampled by itself."""
    rows = [len(table) for table in tables]
    columns = {}
    for k, table in enumerate(tables):
        for name in SHARED:
            parts: list[Any] = [np.zeros(n, dtype=np.int64) for n in rows]
            parts[k] = table.columns[name]
            columns[f"{name}_{k}"] = np.concatenate(parts)
    shift = np.cumsum([0, *(int(table.units.max(initial=-1)) + 1 for table in tables)])
    units = [table.units + at for table, at in zip(tables, shift.tolist(), strict=False)]
    return Table(columns, np.concatenate(units), np.repeat(np.arange(len(tables)), rows))
