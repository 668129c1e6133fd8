"""Masking: which units of an instance a model has to guess, and what stands in their place.

Every unit of an instance is chosen with the same probability, whatever its length: so many units are drawn without replacement as
the rate says, rounded up or down by chance so that the mean is right. BERT's own code takes words in random order and passes
over those that no longer fit, so that it masks long words less often than short ones.

The chance of an instance is that of (seed, epoch, the instance's own ids): the same instance is masked alike wherever it
is met, on a disk or while reading, and another way in every epoch.

========== ============================================================================================================
unit       what is masked together
========== ============================================================================================================
token      a token
eojeol     a whitespace word (어절), punctuation apart
morpheme   a morpheme, as the packed layer has it: a border that lies inside a token is none
stem       a morpheme that is no particle, ending, copula or punctuation; those are never masked
span       a run of 1 to 10 morphemes, geometric with p = .2 (SpanBERT's whole words: an English word is a Korean morpheme)
========== ============================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numba import njit

from koktok.errors import UsageError
from koktok.instances.borders import ENDING, EOJEOL, MORPHEME, SPECIAL, SYMBOL
from koktok.instances.philox import STATE, below, digest_of, next_64, set_stream
from koktok.segment import Whitespace

if TYPE_CHECKING:
    from numpy.typing import NDArray


Unit = Literal["token", "eojeol", "morpheme", "stem", "span"]

IGNORED = -100
"""The label of a token that no loss is taken of, as in torch."""

USE = 1
"""What the numbers of masking are drawn for, see `koktok.instances.philox.stream`."""

LONGEST_SPAN, SPAN_STOPS = 10, 0.2
"""SpanBERT (Joshi et al. 2020): spans end with this probability behind each word; 3.8 words on average."""

_TOKEN, _EOJEOL, _MORPHEME, _STEM, _SPAN = range(5)
_UNIT = np.float64(1 / (1 << 53))
_SHIFT = np.uint64(11)


@dataclass(frozen=True)
class Masking:
    """How instances are masked.

    Parameters
    ----------
    unit : {"token", "eojeol", "morpheme", "stem", "span"}
        What is masked together.
    rate : float or (float, float)
        Share of the tokens that are chosen, special tokens apart; or that of the first epoch and of the last.
    epochs : int
        How many there are, for a rate that changes.
    masks : float
        Share of the chosen units that become the mask token.
    randoms : float
        Share of the chosen units that become ordinary pieces by chance; the rest stays.
    most : int, optional
        Most tokens that are chosen of one instance.

    Raises
    ------
    UsageError
        For values out of range.

    Examples
    --------
    >>> Masking(rate=(0.3, 0.15), epochs=4).rate_of(1)
    0.25
    >>> Masking(unit="syllable")
    Traceback (most recent call last):
        ...
    koktok.errors.UsageError: the unit `syllable` is not known
    hint: --mask token | eojeol | morpheme | stem | span
    """

    unit: Unit = "eojeol"
    rate: float | tuple[float, float] = 0.15
    epochs: int = 1
    masks: float = 0.8
    randoms: float = 0.1
    most: int | None = None

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise UsageError(f"the unit `{self.unit}` is not known", hint=f"--mask {' | '.join(get_args(Unit))}")
        rates = self.rate if isinstance(self.rate, tuple) else (self.rate,)
        if not all(0 < rate < 1 for rate in rates) or len(rates) > 2:
            raise UsageError(f"the rate {self.rate} is not between 0 and 1", hint="--rate 0.15, or --rate 0.3:0.15")
        if not (self.masks >= 0 and self.randoms >= 0 and self.masks + self.randoms <= 1):
            raise UsageError(
                f"{self.masks} of masks and {self.randoms} of random pieces are no shares of one whole",
                hint="--masks 0.8 --randoms 0.1",
            )
        if self.most is not None and self.most < 1:
            raise UsageError(f"at most {self.most} predictions is none", hint="--most 20")

    def check_cuts(self, cuts: str) -> None:
        """Refuse units of morphemes for marks that were made without an analyser.

        Raises
        ------
        UsageError
        """
        if self.of_morphemes and cuts.startswith(Whitespace().signature()):
            raise UsageError(
                f"masks of the unit {self.unit} want morphemes, and the text was packed without",
                hint="koktok instances TOKENIZER TEXT --mask morpheme --out FOLDER; or --mask eojeol",
            )

    @property
    def of_morphemes(self) -> bool:
        """Whether a unit is made of morphemes."""
        return self.unit in ("morpheme", "stem", "span")

    def rate_of(self, epoch: int) -> float:
        """The rate of an epoch, from 0; behind the last one it stays."""
        if not isinstance(self.rate, tuple):
            return self.rate
        first, last = self.rate
        return first + (last - first) * min(1.0, epoch / max(1, self.epochs - 1))

    def choose(
        self, ids: NDArray[Any], marks: NDArray[np.uint8], offsets: NDArray[np.int64], *, seed: int, epoch: int
    ) -> NDArray[np.int32]:
        """For every token the number of its unit among the chosen ones of its instance, from 1, or 0.

        Parameters
        ----------
        ids, marks : ndarray, shape (tokens,)
            Of many instances, special tokens among them (`SPECIAL`).
        offsets : ndarray of int64, shape (instances + 1,)
        seed, epoch : int

        Examples
        --------
        >>> ids, marks = np.arange(8), np.array([3, 0, 3, 4, 3, 0, 3, 0], np.uint8)
        >>> Masking(rate=0.5).choose(ids, marks, np.array([0, 8]), seed=0, epoch=0).tolist()
        [1, 1, 2, 2, 0, 0, 0, 0]
        """
        chosen = np.zeros(len(ids), np.int32)
        _choose(
            ids, marks, offsets, get_args(Unit).index(self.unit), self.rate_of(epoch), self.most or (1 << 40),
            np.uint64(seed), np.uint64(epoch), chosen,
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
        """The ids that a model reads, and the labels that it is to find: the ids themselves where chosen, else -100.

        Parameters
        ----------
        ids, marks, offsets, seed, epoch
            As in `choose`.
        mask_id : int
        ordinary : ndarray of int64
            Ids that may stand in place of a token.
        """
        chosen = self.choose(ids, marks, offsets, seed=seed, epoch=epoch)
        read, labels = ids.astype(np.int32), np.full(len(ids), IGNORED, np.int32)
        _replace(
            ids, offsets, chosen, self.masks, self.randoms, mask_id, ordinary, np.uint64(seed), np.uint64(epoch), read, labels
        )  # fmt: skip
        return read, labels


@njit(nogil=True, cache=True)
def _chance(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A number from 0, below 1."""
    return np.float64(next_64(state) >> _SHIFT) * _UNIT


@njit(nogil=True, cache=True)
def _units(marks, begin, end, unit, state, firsts, lengths, kinds):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The units of an instance: where each begins, its tokens, and its kind (0 stem, 1 ending, 2 symbol)."""
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
                    while left < LONGEST_SPAN and _chance(state) >= SPAN_STOPS:
                        left += 1
        if new:
            firsts[n], lengths[n], kinds[n] = i, 0, 2 if symbol else 1 if mark & ENDING else 0
            n += 1
        lengths[n - 1] += 1
        apart = False
    return n


@njit(nogil=True, cache=True)
def _choose(  # type: ignore[no-untyped-def]
    ids, marks, offsets, unit, rate, most, seed, epoch, chosen
):  # pragma: no cover - compiled
    longest = 1
    for k in range(len(offsets) - 1):
        longest = max(longest, offsets[k + 1] - offsets[k])
    state = np.zeros(STATE, np.uint64)
    firsts, lengths, kinds = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    order, taken = np.empty(longest, np.int64), np.empty(longest, np.bool_)
    for k in range(len(offsets) - 1):
        begin, end = offsets[k], offsets[k + 1]
        set_stream(state, seed, epoch, digest_of(ids[begin:end]), np.uint64(USE))
        n = _units(marks, begin, end, unit, state, firsts, lengths, kinds)
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
        # The rate is of all tokens, also where only stems are open. Of 15 % of 50 units are 7 drawn, or 8: either as often as
        # makes 7.5 on average.
        left, room = np.int64(min(1.0, rate * total / open_tokens) * n_open + _chance(state)), most
        for i in range(n_open):
            if i >= left:
                break
            other = i + below(state, n_open - i)
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
def _replace(  # type: ignore[no-untyped-def]
    ids, offsets, chosen, masks, randoms, mask_id, ordinary, seed, epoch, read, labels
):  # pragma: no cover - compiled
    state = np.zeros(STATE, np.uint64)
    for k in range(len(offsets) - 1):
        begin, end = offsets[k], offsets[k + 1]
        set_stream(state, seed, epoch, digest_of(ids[begin:end]), np.uint64(USE + 1))
        before, what = 0, 0.0
        for i in range(begin, end):
            if chosen[i] == 0:
                continue
            if chosen[i] != before:
                before, what = chosen[i], _chance(state)
            labels[i] = ids[i]
            if what < masks:
                read[i] = mask_id
            elif what < masks + randoms:
                read[i] = ordinary[below(state, len(ordinary))]
