"""Documents for a causal language model: chunks of the stream, or best fit.

*Chunks* join all documents of a shard, an end token after each, and cut the stream every `length` tokens. *Best fit* (Ding et
al. 2024, "Fewer truncations improve language modeling") cuts only documents longer than an instance, and puts every piece, the
longest first, where it leaves the least room: few documents are cut, and instances have a little padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from koktok.instances.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from koktok.instances.packing import PackedShard


def chunks_layout(shard: PackedShard, length: int) -> Layout:
    """Cut the stream of documents, with an end token after each, every `length` tokens.

    A segment ends with its document or with the instance; an empty segment is an end token alone.

    Examples
    --------
    >>> from koktok.instances.packing import PackedShard
    >>> none = np.zeros(0)
    >>> shard = PackedShard(np.arange(9), none, np.array([0, 3, 4, 9]), none, none, none)
    >>> layout = chunks_layout(shard, 4)
    >>> layout.starts.tolist(), layout.begins.tolist(), layout.ends.tolist()
    ([0, 1, 3, 4], [0, 3, 4, 6], [3, 4, 6, 9])
    """
    most = len(shard.documents) + (len(shard.ids) + len(shard.documents)) // length + 2
    starts, begins, ends = np.zeros(most + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int32)
    closed = np.zeros(most, np.bool_)
    n, used = _chunks(shard.documents, length, starts, begins, ends, closed)
    return Layout(starts[: n + 1].copy(), begins[:used].copy(), ends[:used].copy(), closed=closed[:used].copy())


@njit(nogil=True, cache=True)
def _chunks(documents, length, starts, begins, ends, closed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    n, used, left = 0, 0, length
    for document in range(len(documents) - 1):
        at, end = documents[document], documents[document + 1]
        if at == end:
            continue
        while True:
            take = min(end - at, left)
            begins[used], ends[used] = at, at + take
            used += 1
            at += take
            left -= take
            if at == end and left:  # there is room for its end token
                closed[used - 1] = True
                left -= 1
                at += 1
            if left == 0:
                n += 1
                starts[n] = used
                left = length
            if at > end:
                break
    if left < length:
        n += 1
        starts[n] = used
    return n, used


def best_fit_layout(shard: PackedShard, length: int) -> Layout:
    """Put documents, with an end token after each, where they leave the least room; longer ones are cut before.

    Examples
    --------
    >>> from koktok.instances.packing import PackedShard
    >>> none = np.zeros(0)
    >>> shard = PackedShard(np.arange(12), none, np.array([0, 3, 5, 6, 12]), none, none, none)
    >>> layout = best_fit_layout(shard, 5)
    >>> layout.starts.tolist(), layout.begins.tolist(), layout.ends.tolist()
    ([0, 1, 2, 4, 5], [6, 0, 3, 5, 11], [11, 3, 5, 6, 12])
    """
    sizes = np.diff(shard.documents)
    pieces = -(-(sizes + 1) // length) * (sizes > 0)
    firsts = np.repeat(np.cumsum(pieces) - pieces, pieces)
    begins = np.repeat(shard.documents[:-1], pieces) + (np.arange(pieces.sum()) - firsts) * length
    ends = np.minimum(begins + length, np.repeat(shard.documents[1:], pieces))
    room = np.repeat(shard.documents[1:] + 1, pieces)
    cost = np.minimum(begins + length, room) - begins
    order = np.argsort(-cost, kind="stable")
    bins = np.empty(len(order), np.int64)
    n = int(_fit(cost[order], length, bins)) if len(order) else 0
    inside = np.argsort(bins, kind="stable")
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(bins, minlength=n))])
    chosen: NDArray[np.int64] = order[inside]
    closed = begins + length >= room
    return Layout(starts, begins[chosen].astype(np.int32), ends[chosen].astype(np.int32), closed=closed[chosen])


@njit(nogil=True, cache=True)
def _fit(costs, length, bins):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Choose the bin of every piece; open bins are in one linked list for each size of the room left, the last one first."""
    head, behind, n = np.full(length + 1, -1), np.full(len(costs), -1), 0
    for k in range(len(costs)):
        left = costs[k]
        while left <= length and head[left] < 0:
            left += 1
        if left <= length:
            found = head[left]
            head[left] = behind[found]
        else:
            found, left = n, length
            n += 1
        bins[k] = found
        left -= costs[k]
        behind[found] = head[left]
        head[left] = found
    return n
