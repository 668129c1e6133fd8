"""The best sums of one choice from each of many lists: n-best segmentations of pretokens to n-best of the whole text.

This file adds: laziness. Two sorted lists of n have n² sums and their n best are found by looking at about 2n of them: a
sum can be next only when the one above it or the one to its left has been taken (Huang and Chiang 2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from koktok.errors import UsageError

__all__ = ["best_choices"]


def best_choices(lists: Iterable[Sequence[float]], n: int) -> list[tuple[tuple[int, ...], float]]:
    """The `n` highest sums of one number from each list, best first; fewer when there are not so many.

    Parameters
    ----------
    lists : iterable of sequence of float
        Each falling, none empty.
    n : int
        At least 1.

    Returns
    -------
    list of (tuple of int, float)
        Which number of each list, and the sum; equal sums in the order of their places in the lists.

    Raises
    ------
    UsageError
        When `n` is less than 1.

    Examples
    --------
    >>> best_choices([[-1.0, -4.0], [-2.0, -3.0]], 3)
    [((0, 0), -3.0), ((0, 1), -4.0), ((1, 0), -6.0)]
    """
    if n < 1:
        raise UsageError(f"n = {n}; wanted at least 1")
    sums, ways = [0.0], list[list[tuple[int, int]]]()  # ways[k][i]: which sum before, which number of list k
    for scores in lists:
        heap = [(-(sums[0] + scores[0]), 0, 0)]
        seen, taken = {(0, 0)}, list[tuple[float, tuple[int, int]]]()
        while heap and len(taken) < n:
            cost, before, here = heappop(heap)
            taken.append((-cost, (before, here)))
            for b, h in ((before, here + 1), (before + 1, here)):
                if b < len(sums) and h < len(scores) and (b, h) not in seen:
                    seen.add((b, h))
                    heappush(heap, (-(sums[b] + scores[h]), b, h))
        sums = [total for total, _ in taken]
        ways.append([way for _, way in taken])
    found = []
    for rank, total in enumerate(sums):
        choice, at = [], rank
        for steps in reversed(ways):
            at, here = steps[at]
            choice.append(here)
        found.append((tuple(reversed(choice)), total))
    return found
