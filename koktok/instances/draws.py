"""Random numbers as a function of (seed, epoch, ids, use), by `numpy.random.Philox`, whose stream numpy promises to keep (law 14).

A counter-based generator (Salmon et al. 2011) computes its numbers from a key and a counter alone, so they do not depend on the order of
documents, the worker, the shard or the machine. Compiled code gets them drawn, and takes as many as it needs.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.model.tokens import running


def digests(ids: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 bits of hash for each run of ids, which identify a document or an instance."""
    flat = ids.astype("<i4").tobytes()
    hashed = (blake2b(flat[4 * a : 4 * b], digest_size=8).digest() for a, b in pairwise(offsets.tolist()))
    return np.frombuffer(b"".join(hashed), "<u8").astype(np.uint64)


def uniforms(
    seed: int, epoch: int, keys: NDArray[np.uint64], use: int, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """So many numbers from 0 to below 1 for each key, flat with their offsets.

    Examples
    --------
    >>> drawn, offsets = uniforms(7, 0, np.array([3, 5], np.uint64), 1, np.array([2, 1]))
    >>> offsets.tolist(), drawn[2] == uniforms(7, 0, np.array([5], np.uint64), 1, np.array([1]))[0][0]
    ([0, 2, 3], np.True_)
    """
    offsets = running(sizes)
    raw = np.empty(int(offsets[-1]), np.uint64)
    stream = np.random.Philox(key=np.array([seed, epoch], np.uint64))
    state: Any = stream.state
    state["buffer_pos"] = 4  # nothing is left over
    for k, (begin, end) in enumerate(pairwise(offsets.tolist())):
        state["state"]["counter"][:] = 0, keys[k], use, 0
        stream.state = state
        raw[begin:end] = stream.random_raw(end - begin)
    drawn: NDArray[np.float64] = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return drawn, offsets.astype(np.int64)


def shuffled(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The numbers below `n` in random order."""
    return np.argsort(np.random.Philox(key=np.array([seed, epoch], np.uint64)).random_raw(n), kind="stable")
