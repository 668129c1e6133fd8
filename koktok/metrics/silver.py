"""Tokens and boundary F1 of any tokenizer on counted text, against the cuts of an analyser: silver, not gold.

It needs no treebank, so it stands at the end of every training. F1 near 1 says that a vocabulary repeats the analyser, not
that it is right. Distinct texts are measured once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from koktok.errors import InputError
from koktok.metrics.borders import border_share
from koktok.metrics.page import Page, PageTokens
from koktok.model.tokens import Tokens
from koktok.protocol.tokenizer import Tokenizer
from koktok.recipe import SCRIPTS
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.training.scripts import script_of


@dataclass(frozen=True)
class SilverFigures:
    """The figures of one tokenizer.

    Fertility; precision, recall and F1 of the cuts between two Hangul syllables (micro; 0 where there is nothing to divide by);
    F1 over all gaps inside an eojeol; recall by kind of boundary that the text has; tokens per byte of the texts of each script;
    shares of the tokens; the metric `borders`.
    """

    tokens_per_eojeol: float
    precision: float
    recall: float
    f1: float
    f1_all: float
    recalls: Mapping[str, float] = field(default_factory=dict)
    per_byte: Mapping[str, float] = field(default_factory=dict)
    unknown: float = 0.0
    byte_fallback: float = 0.0
    borders: float = float("nan")


@dataclass(frozen=True)
class SilverRow:
    """A tokenizer in a table."""

    name: str
    size: int | None
    figures: SilverFigures


class Silver:
    """Distinct texts (words or sentences, with their leading spaces) with counts and an analyser's cuts.

    `eojeols` are the running words that they come from, counted here by default. An InputError when there are none.

    >>> from koktok.tokenizer.open import load
    >>> found = Silver(SegmentedCounts.from_marked({" 집|에서|.": 3, "에서": 1})).figures(load("syllables"))
    >>> found.tokens_per_eojeol, found.precision, found.recall, found.f1
    (3.5, 0.42857142857142855, 1.0, 0.6)
    """

    def __init__(self, held: SegmentedCounts, eojeols: float | None = None) -> None:
        if not held.total or (eojeols is not None and eojeols <= 0):
            raise InputError(f"there is nothing to measure on: {held.total:,} words", hint="--holdout 0.1")
        self.texts: Sequence[str] = held.words
        self.n = held.n.astype(np.float64)
        page = self.page = Page(held.words)
        self._weight = np.append(np.repeat(self.n, np.diff(page.line_starts)), 0.0)
        self.eojeols = eojeols or float(self._weight[page.eojeol_starts].sum())
        size = len(page.codes) + 1
        self._kind = np.full(size, -1, dtype=np.int64)
        self._kind[np.repeat(page.line_starts[:-1], np.diff(held.start)) + held.offset] = held.kind
        self._kind[~page.gaps] = -1

    @property
    def boundaries(self) -> float:
        """The analyser's cuts between two syllables, running."""
        return float(self._weight[(self._kind >= 0) & self.page.inner].sum())

    @property
    def places(self) -> float:
        """Places between two syllables, running."""
        return float(self._weight[self.page.inner].sum())

    @cached_property
    def bytes_by_script(self) -> Mapping[str, float]:
        """Running bytes of the texts of each script that there is: Hangul where a text has any, else Latin, else other."""
        return self._by_script(np.array([len(text.encode()) for text in self.texts]))

    @cached_property
    def lines(self) -> Sequence[str]:
        """The texts that have a space inside; where all are words, each with the next one behind a space."""
        inside = [text for text in self.texts if " " in text.lstrip(" ")]
        return inside or [f"{text} {behind.lstrip(' ')}" for text, behind in pairwise(self.texts)]

    @cached_property
    def _scripts(self) -> np.ndarray:
        return np.array([SCRIPTS.index(script_of(text)) for text in self.texts])

    def _by_script(self, values: np.ndarray) -> dict[str, float]:
        sums = np.bincount(self._scripts, weights=values * self.n, minlength=len(SCRIPTS))
        return {SCRIPTS[i]: float(sums[i]) for i in np.unique(self._scripts).tolist()}

    def figures(self, tokenizer: Tokenizer, bytes_: frozenset[int] | None = None) -> SilverFigures:
        """The row of a tokenizer; `bytes_` are its ids that count as bytes."""
        rows = tokenizer.encode_lines(self.texts)
        found = self.score(rows, unknown=tokenizer.unknown_ids, bytes_=tokenizer.byte_ids if bytes_ is None else bytes_)
        return replace(found, borders=border_share(tokenizer, self.lines))

    def score(
        self, rows: Tokens, *, unknown: frozenset[int] = frozenset(), bytes_: frozenset[int] = frozenset()
    ) -> SilverFigures:
        """The figures of these tokens of `texts`."""
        cuts, n = PageTokens(self.page, rows).cuts, np.diff(rows.indptr)
        tokens, of_token = float((n * self.n).sum()), np.repeat(self.n, n)

        def share(ids: frozenset[int]) -> float:
            return float(of_token[np.isin(rows.ids, list(ids))].sum()) / max(tokens, 1.0) if ids else 0.0

        def by_kind(there: np.ndarray) -> np.ndarray:
            return np.bincount(self._kind[there], weights=self._weight[there], minlength=len(BoundaryKind))

        precision, recall, f1 = self._f1(cuts, self.page.inner)
        asked, met = by_kind(self._kind >= 0), by_kind((self._kind >= 0) & cuts)
        return SilverFigures(
            tokens_per_eojeol=tokens / self.eojeols,
            precision=precision,
            recall=recall,
            f1=f1,
            f1_all=self._f1(cuts, self.page.gaps)[2],
            recalls={kind.label: float(met[kind] / asked[kind]) for kind in BoundaryKind if asked[kind]},
            per_byte={script: of / self.bytes_by_script[script] for script, of in self._by_script(n).items()},
            unknown=share(unknown),
            byte_fallback=share(bytes_),
        )

    def _f1(self, cuts: np.ndarray, where: np.ndarray) -> tuple[float, float, float]:
        there = where & (self._kind >= 0)
        made_cuts, gold, hits = (float(self._weight[mask].sum()) for mask in (cuts & where, there, cuts & there))
        return (
            hits / made_cuts if made_cuts else 0.0,
            hits / gold if gold else 0.0,
            2 * hits / (made_cuts + gold) if hits else 0.0,
        )
