"""Random numbers as a function of (seed, epoch, document, use): the counter-based generator Philox.

Philox 4x64 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") computes its numbers from a key and a counter
alone, so they do not depend on the order of documents, the worker, the shard or the machine (law 14). The raw numbers are
those of `numpy.random.Philox`, whose stream numpy promises to keep. Bounded numbers and permutations are computed here,
because numpy may change its own methods.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STATE = 11
"""Words of a stream: key (2), counter (4), block (4), used words of the block (1)."""

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _ZERO, _FOUR = np.uint64(1), np.uint64(0), np.uint64(4)
_FACTOR = np.uint64(0x9FB21C651E98DF25)
_UNIT, _TO_53_BITS = np.float64(1 / (1 << 53)), np.uint64(11)
_ROUNDS = 10
_HALVES = 4  # rounds of the permutation: with four it is as good as a random one (Luby and Rackoff 1988)


@njit(nogil=True, cache=True)
def set_stream(state, seed, epoch, document, use):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Begin another stream in the same state."""
    state[0], state[1] = seed, epoch
    state[2], state[3], state[4], state[5] = _ZERO, document, use, _ZERO
    state[10] = _FOUR


@njit(nogil=True, cache=True)
def _high(a, b):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The upper 64 bits of a product."""
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF)


@njit(nogil=True, cache=True)
def next_64(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The next number of a stream, 64 bits."""
    if state[10] == _FOUR:
        state[2] += _ONE  # no stream is long enough for a carry
        c0, c1, c2, c3 = state[2], state[3], state[4], state[5]
        k0, k1 = state[0], state[1]
        for _ in range(_ROUNDS):
            high0, low0, high1, low1 = _high(_M0, c0), _M0 * c0, _high(_M1, c2), _M1 * c2
            c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
            k0, k1 = k0 + _W0, k1 + _W1
        state[6], state[7], state[8], state[9] = c0, c1, c2, c3
        state[10] = _ZERO
    number = state[np.uint64(6) + state[10]]
    state[10] += _ONE
    return number


@njit(nogil=True, cache=True)
def chance(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A number from 0 to below 1."""
    return np.float64(next_64(state) >> _TO_53_BITS) * _UNIT


@njit(nogil=True, cache=True)
def randint(state, n):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """An integer from 0 to `n` - 1, uniform up to n / 2**64."""
    return np.int64(_high(next_64(state), np.uint64(n)))


@njit(nogil=True, cache=True)
def digest_of(ids):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """64 bits of hash of a run of ids, which identify a document or an instance."""
    hashed = np.uint64(len(ids)) * _W0
    for i in ids:
        hashed = (hashed ^ np.uint64(i)) * _FACTOR
        hashed ^= hashed >> _HALF
    return (hashed * _W1) ^ (hashed >> np.uint64(29))


@njit(nogil=True, cache=True)
def _round(half, bits, turn, seed, epoch):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    hashed = (np.uint64(half) + np.uint64(turn + 1) * _W0) ^ (seed * _M0) ^ (epoch * _M1)
    for _ in range(3):
        hashed = (hashed ^ (hashed >> _HALF)) * _FACTOR
    return np.int64((hashed >> _HALF) & ((_ONE << np.uint64(bits)) - _ONE))


@njit(nogil=True, cache=True)
def permute(i, n, seed, epoch):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The place of the `i`-th of `n` items before the shuffle of (seed, epoch), without a stored permutation.

    A Feistel network over the least even number of bits that holds `n`; a result of `n` or more goes through it again.
    """
    bits = 1
    while (1 << (2 * bits)) < n:
        bits += 1
    mask = (1 << bits) - 1
    while True:
        left, right = i >> bits, i & mask
        for turn in range(_HALVES):
            left, right = right, left ^ _round(right, bits, turn, np.uint64(seed), np.uint64(epoch))
        i = (left << bits) | right
        if i < n:
            return i
