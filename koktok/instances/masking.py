"""Masking: which units of an instance a model has to predict, and what replaces them.

Every unit of an instance is chosen with the same probability, independent of its length: a number of units by the rate is drawn without
replacement, rounded up or down at random so that the mean is exact. BERT's own code takes words in random order and skips
those that no longer fit, so it masks long words less often than short ones.

Random numbers are a function of (seed, epoch, the ids of the instance): an instance is masked alike on a disk and while
reading, and differently in every epoch.

========== ============================================================================================================
unit       what is masked together
========== ============================================================================================================
token      a token
eojeol     a whitespace word (어절), punctuation apart
morpheme   a morpheme of the packed layer; boundaries inside a token are ignored
stem       a morpheme that is no particle, ending, copula or punctuation; those are never masked
span       a run of 1 to 10 morphemes, geometric with p = .2 (SpanBERT's whole words: an English word is a Korean morpheme)
========== ============================================================================================================
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pydantic import Field, model_validator

from koktok.errors import UsageError
from koktok.instances.draws import digests, uniforms
from koktok.instances.token_facts import ENDING, EOJEOL, MORPHEME, SPECIAL, SYMBOL
from koktok.recipe import Options
from koktok.segment import Whitespace

Rate = Annotated[float, Field(gt=0, lt=1)]
Unit = Literal["token", "eojeol", "morpheme", "stem", "span"]

IGNORED = -100
"""The label of a token without a loss, as in torch."""

USE = 1
"""The use of the random numbers, see `koktok.instances.draws`; the next one is for what replaces the chosen units."""

LONGEST_SPAN, SPAN_STOPS = 10, 0.2
"""SpanBERT (Joshi et al. 2020): a span ends with this probability after each word; 3.8 words on average."""

_TOKEN, _EOJEOL, _MORPHEME, _STEM, _SPAN = range(5)


class Masking(Options):
    """How instances are masked.

    Examples
    --------
    >>> Masking(rate=(0.3, 0.15), epochs=4).rate_of(1)
    0.25
    >>> Masking(unit="syllable")
    Traceback (most recent call last):
        ...
    koktok.errors.UsageError: `unit`: expected 'token', 'eojeol', 'morpheme', 'stem' or 'span', got 'syllable'
    hint: unit = 'eojeol'
    """

    unit: Unit = "eojeol"
    """Unit of masking."""
    rate: Rate | tuple[Rate, Rate] = 0.15
    """Share of the units that are chosen, special tokens apart; or that of the first epoch and of the last."""
    epochs: Annotated[int, Field(ge=1)] = 1
    """Number of epochs, for a rate that changes."""
    mask_prob: Annotated[float, Field(ge=0)] = 0.8
    """Share of the chosen units that are replaced by the mask token."""
    random_prob: Annotated[float, Field(ge=0)] = 0.1
    """Share of the chosen units that are replaced by random ordinary pieces; the others stay."""
    max_predictions_per_seq: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of chosen tokens per instance."""

    @model_validator(mode="after")
    def _shares(self) -> Masking:
        if self.mask_prob + self.random_prob > 1:
            raise UsageError(
                f"expected shares of at most 1 together, got {self.mask_prob} and {self.random_prob}",
                hint="--mask-prob 0.8 --random-prob 0.1",
            )
        return self

    def check_cuts(self, cuts: str) -> None:
        """Raise an error if the unit requires morphemes and the text was packed without an analyser."""
        if self.of_morphemes and cuts.startswith(Whitespace().signature()):
            raise UsageError(
                f"--mask {self.unit} requires morphemes, and the text was packed without an analyser",
                hint="koktok instances TOKENIZER TEXT --mask morpheme --out FOLDER; or --mask eojeol",
            )

    @property
    def of_morphemes(self) -> bool:
        """Whether the unit consists of morphemes."""
        return self.unit in ("morpheme", "stem", "span")

    def rate_of(self, epoch: int) -> float:
        """Return the rate of an epoch, counted from 0; after the last one it stays."""
        if not isinstance(self.rate, tuple):
            return self.rate
        first, last = self.rate
        return first + (last - first) * min(1.0, epoch / max(1, self.epochs - 1))

    def choose(
        self, ids: NDArray[Any], marks: NDArray[np.uint8], offsets: NDArray[np.int64], *, seed: int, epoch: int
    ) -> NDArray[np.int32]:
        """Return for every token the number of its unit among the chosen units of its instance, from 1, or 0.

        Examples
        --------
        >>> ids, marks = np.arange(8), np.array([3, 0, 3, 4, 3, 0, 3, 0], np.uint8)
        >>> Masking(rate=0.5).choose(ids, marks, np.array([0, 8]), seed=0, epoch=0).tolist()
        [0, 0, 1, 1, 2, 2, 0, 0]
        """
        chosen = np.zeros(len(ids), np.int32)
        _choose(
            marks, offsets, get_args(Unit).index(self.unit), self.rate_of(epoch),
            self.max_predictions_per_seq or (1 << 40),
            *uniforms(seed, epoch, digests(ids, offsets), USE, 2 * np.diff(offsets) + 1), chosen,
        )  # fmt: skip
        return chosen

    def apply(
        self,
        ids: NDArray[Any],
        marks: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        *,
        mask_id: int,
        ordinary: NDArray[np.int64],
        seed: int,
        epoch: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ids that a model reads, and the labels that it predicts: the ids themselves where chosen, else -100."""
        chosen = self.choose(ids, marks, offsets, seed=seed, epoch=epoch)
        read, labels = ids.astype(np.int32), np.full(len(ids), IGNORED, np.int32)
        _replace(
            ids, offsets, chosen, self.mask_prob, self.random_prob, mask_id, ordinary,
            *uniforms(seed, epoch, digests(ids, offsets), USE + 1, 2 * np.diff(offsets)), read, labels,
        )  # fmt: skip
        return read, labels


@njit(nogil=True, cache=True)
def _units(marks, begin, end, unit, drawn, at, firsts, lengths, kinds):
    """Find the units of an instance: the first token of each, its number of tokens, and its kind (0 stem, 1 ending, 2 symbol).

    Returns their number, and the place behind the numbers that were taken from `at` on.
    """
    n, left, apart, symbol = 0, 0, True, False
    for i in range(begin, end):
        mark = marks[i]
        if mark == SPECIAL:
            apart = True
            continue
        other = (mark & SYMBOL != 0) != symbol
        symbol = mark & SYMBOL != 0
        if unit == _TOKEN:
            new = True
        elif unit == _EOJEOL:
            new = apart or other or mark & EOJEOL != 0
        else:
            new = apart or other or mark & (EOJEOL | MORPHEME) != 0
            if unit == _SPAN and new:
                left -= 1
                new = apart or left <= 0
                if new:
                    left = 1
                    longer = 1 - SPAN_STOPS  # the probability of a span of more than `left`
                    while left < LONGEST_SPAN and drawn[at] < longer:
                        left += 1
                        longer *= 1 - SPAN_STOPS
                    at += 1
        if new:
            firsts[n], lengths[n], kinds[n] = i, 0, 2 if symbol else 1 if mark & ENDING else 0
            n += 1
        lengths[n - 1] += 1
        apart = False
    return n, at


@njit(nogil=True, cache=True)
def _choose(marks, offsets, unit, rate, most, drawn, places, chosen):
    longest = 1
    for k in range(len(offsets) - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    firsts, lengths, kinds = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    order, taken = np.empty(longest, np.int64), np.empty(longest, np.bool_)
    for k in range(len(offsets) - 1):
        begin, end = offsets[k], offsets[k + 1]
        n, at = _units(marks, begin, end, unit, drawn, places[k], firsts, lengths, kinds)
        total, open_tokens, n_open = 0, 0, 0
        for u in range(n):
            taken[u] = False
            total += lengths[u]
            if unit != _STEM or kinds[u] == 0:
                order[n_open] = u
                open_tokens += lengths[u]
                n_open += 1
        if n_open == 0:
            continue
        # The rate is a share of all tokens, also where only stems are open. Of 50 units 15 % is 7.5: 7 or 8 are drawn at random.
        left, room = np.int64(min(1.0, rate * total / open_tokens) * n_open + drawn[at]), most
        for i in range(n_open):
            if i >= left:
                break
            other = i + np.int64(drawn[at + 1 + i] * (n_open - i))
            order[i], order[other] = order[other], order[i]
            if lengths[order[i]] <= room:
                taken[order[i]] = True
                room -= lengths[order[i]]
        number = 0
        for u in range(n):
            if taken[u]:
                number += 1
                i, size = firsts[u], lengths[u]
                while size:
                    chosen[i] = number
                    i += 1
                    size -= 1


@njit(nogil=True, cache=True)
def _replace(ids, offsets, chosen, mask_prob, random_prob, mask_id, ordinary, drawn, places, read, labels):
    for k in range(len(offsets) - 1):
        begin, end = offsets[k], offsets[k + 1]
        at = places[k]
        before, what = 0, 0.0
        for i in range(begin, end):
            if chosen[i] == 0:
                continue
            if chosen[i] != before:
                before, what = chosen[i], drawn[at]
                at += 1
            labels[i] = ids[i]
            if what < mask_prob:
                read[i] = mask_id
            elif what < mask_prob + random_prob:
                read[i] = ordinary[np.int64(drawn[at] * len(ordinary))]
                at += 1
