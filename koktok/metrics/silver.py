"""Tokens and boundary F1 of any tokenizer on counted text, against the cuts of an analyser: silver, not gold.

This file adds: a yardstick that needs no treebank, so that it stands at the end of every training. People draw borders a
little otherwise than an analyser, and F1 near 1 says that a vocabulary repeats the analyser, not that it is right.
Distinct texts are measured once, by what `koktok.metrics` calls a cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from koktok.errors import InputError
from koktok.foreign.base import ForeignTokenizer, Rows
from koktok.metrics.tokens import Page, Tokens
from koktok.segment.segmented import Kind, SegmentedCounts


@dataclass(frozen=True)
class SilverFigures:
    """What one tokenizer does with the text.

    Parameters
    ----------
    tokens_per_eojeol : float
        Fertility, micro.
    precision, recall, f1 : float
        Of the cuts between two Hangul syllables, micro; 0 where there is nothing to divide by.
    f1_all : float
        The same over all gaps inside an eojeol: beside punctuation, digits and letters too.
    recalls : mapping of str to float
        By kind of boundary, over all gaps; kinds that the text does not have are left out.
    unknown, byte_fallback : float
        Share of the tokens.
    """

    tokens_per_eojeol: float
    precision: float
    recall: float
    f1: float
    f1_all: float
    recalls: Mapping[str, float] = field(default_factory=dict)
    unknown: float = 0.0
    byte_fallback: float = 0.0


@dataclass(frozen=True)
class SilverRow:
    """A tokenizer in a table.

    Parameters
    ----------
    size : int or None
        Ids in the vocabulary.
    """

    name: str
    size: int | None
    figures: SilverFigures


class Silver:
    """Distinct texts with counts and an analyser's cuts, prepared once for all tokenizers.

    Parameters
    ----------
    held : SegmentedCounts
        Words, pretokens or sentences; leading spaces belong to them.
    eojeols : float
        Running whitespace words that they come from; counted here by default.

    Raises
    ------
    InputError
        When there is nothing to measure on.

    Examples
    --------
    >>> from koktok.foreign import open_spec
    >>> silver = Silver(SegmentedCounts.from_marked({" 집|에서|.": 3, "에서": 1}))
    >>> found = silver.figures(open_spec("syllables"))
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
        self._all = np.zeros(size, dtype=bool)
        if size > 1:
            self._all[1:-1] = ~page.space[1:] & ~page.space[:-1]
            self._all[page.line_starts] = False
        self._kind[~self._all] = -1

    @property
    def borders(self) -> float:
        """The analyser's cuts between two syllables, running."""
        return float(self._weight[(self._kind >= 0) & self.page.inner].sum())

    @property
    def places(self) -> float:
        """Places between two syllables, running."""
        return float(self._weight[self.page.inner].sum())

    def figures(self, tokenizer: ForeignTokenizer) -> SilverFigures:
        """The row of a tokenizer."""
        return self.score(tokenizer.encode(self.texts), unknown=tokenizer.unknown_ids, bytes_=tokenizer.byte_ids)

    def score(
        self, rows: Rows, *, unknown: frozenset[int] = frozenset(), bytes_: frozenset[int] = frozenset()
    ) -> SilverFigures:
        """The row of whoever made these tokens of `texts`."""
        cuts = Tokens(self.page, rows).cuts
        n = np.diff(rows.indptr)
        tokens = float((n * self.n).sum())
        of_token = np.repeat(self.n, n)

        def share(ids: frozenset[int]) -> float:
            return float(of_token[np.isin(rows.ids, list(ids))].sum()) / max(tokens, 1.0) if ids else 0.0

        precision, recall, f1 = self._f1(cuts, self.page.inner)
        there = self._kind >= 0
        asked = np.bincount(self._kind[there], weights=self._weight[there], minlength=len(Kind))
        there &= cuts
        met = np.bincount(self._kind[there], weights=self._weight[there], minlength=len(Kind))
        return SilverFigures(
            tokens_per_eojeol=tokens / self.eojeols,
            precision=precision,
            recall=recall,
            f1=f1,
            f1_all=self._f1(cuts, self._all)[2],
            recalls={kind.label: float(met[kind] / asked[kind]) for kind in Kind if asked[kind]},
            unknown=share(unknown),
            byte_fallback=share(bytes_),
        )

    def _f1(self, cuts: np.ndarray, where: np.ndarray) -> tuple[float, float, float]:
        there = where & (self._kind >= 0)
        made, gold = float(self._weight[cuts & where].sum()), float(self._weight[there].sum())
        hits = float(self._weight[cuts & there].sum())
        return hits / made if made else 0.0, hits / gold if gold else 0.0, 2 * hits / (made + gold) if hits else 0.0
