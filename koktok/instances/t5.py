"""Span corruption of T5 (Raffel et al. 2020): a chosen span becomes a sentinel in the input and follows it in the target.

Neighbouring chosen units are one span; the sentinels `<extra_id_0>`, `<extra_id_1>`, ... rise along the text, and the target ends
with the end token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def corrupt(
    ids: NDArray[Any], chosen: NDArray[np.int32], offsets: NDArray[np.int64], *, sentinels: NDArray[np.int32], end: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return inputs and targets, each flat with its offsets.

    Examples
    --------
    >>> ids, chosen = np.array([5, 6, 7, 8, 9]), np.array([0, 1, 1, 0, 2], np.int32)
    >>> inputs, _, targets, _ = corrupt(ids, chosen, np.array([0, 5]), sentinels=np.array([90, 91], np.int32), end=1)
    >>> inputs.tolist(), targets.tolist()
    ([5, 90, 8, 91], [90, 6, 7, 91, 9, 1])
    """
    n = len(offsets) - 1
    inputs, targets = np.empty(len(ids), np.int32), np.empty(2 * len(ids) + n, np.int32)
    input_offsets, target_offsets = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    _corrupt(ids, chosen, offsets, sentinels, end, inputs, input_offsets, targets, target_offsets)
    return inputs[: input_offsets[-1]], input_offsets, targets[: target_offsets[-1]], target_offsets


@njit(nogil=True, cache=True)
def _corrupt(  # type: ignore[no-untyped-def]
    ids, chosen, offsets, sentinels, end, inputs, input_offsets, targets, target_offsets
):  # pragma: no cover - compiled
    a, b = 0, 0
    for k in range(len(offsets) - 1):
        spans, inside = 0, False
        for i in range(offsets[k], offsets[k + 1]):
            if chosen[i] == 0 or (not inside and spans == len(sentinels)):
                inputs[a] = ids[i]
                a += 1
                inside = False
                continue
            if not inside:
                inputs[a] = targets[b] = sentinels[spans]
                a += 1
                b += 1
                spans += 1
                inside = True
            targets[b] = ids[i]
            b += 1
        targets[b] = end
        b += 1
        input_offsets[k + 1], target_offsets[k + 1] = a, b
