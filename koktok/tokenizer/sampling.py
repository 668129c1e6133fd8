"""Other segmentations than the best: which models can be sampled, with which keyword, and n-best of a whole text.

The error that names the way out, and laziness. Unigram gives segmentations a probability and is sharpened
by `alpha`; BPE and WordPiece have none and drop joins or matches; the baselines have one segmentation only. Of two sorted
lists of n there are n² sums, and their n best are found by looking at about 2n of them: a sum can be next only when the
one above it or the one to its left has been taken (Huang and Chiang 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from koktok.errors import UsageError
from koktok.tokenizer.model import Encoded, Model

if TYPE_CHECKING:
    import numpy as np


def sampler_for(
    model: Model,
    *,
    alpha: float | None,
    dropout: float | None,
    seed_or_rng: int | np.random.Generator,
    n_best: int | None = None,
) -> Callable[[str], Encoded]:
    """A function of one pretoken that draws a segmentation."""
    import numpy as np

    kind = model.vocab.kind
    wanted = model.drawn_by
    if wanted is None:
        raise UsageError(f"a {kind} tokenizer has one segmentation of a text only", hint="tokenizer.encode(text)")
    way_out = f"tokenizer.sample(text, {wanted}=0.1, seed_or_rng=0)"
    given = {"alpha": alpha, "dropout": dropout, "n_best": n_best}
    taken = ("alpha", "n_best") if wanted == "alpha" else ("dropout",)
    for name, value in given.items():
        if value is not None and name not in taken:
            raise UsageError(f"`{name}` is not for a {kind} tokenizer, whose samples take `{wanted}`", hint=way_out)
    if given[wanted] is None:
        raise UsageError(f"samples of a {kind} tokenizer want `{wanted}`", hint=way_out)
    for name, value in given.items():
        number = int if name == "n_best" else int | float
        if value is not None and (isinstance(value, bool) or not isinstance(value, number)):
            whole = "a whole number" if name == "n_best" else "a number"
            raise UsageError(f"{name} = {value!r}; wanted {whole}", hint=way_out)
    try:
        rng = np.random.default_rng(seed_or_rng)
    except (TypeError, ValueError) as error:
        raise UsageError(f"seed_or_rng = {seed_or_rng!r}: {error}", hint=way_out) from None
    options = {name: given[name] for name in taken}
    return lambda pretoken: model.sample(pretoken, rng=rng, **options)  # type: ignore[attr-defined]


def n_best_of(model: Model) -> Callable[[str, int], list[tuple[Encoded, float]]]:
    """The function that gives the n best segmentations of a pretoken."""
    if model.drawn_by != "alpha":
        raise UsageError(
            f"a {model.vocab.kind} tokenizer gives segmentations no score, so none is the second best",
            hint="koktok train --model unigram",
        )
    return model.n_best  # type: ignore[attr-defined, no-any-return]


def best_choices(lists: Iterable[Sequence[float]], n: int) -> list[tuple[tuple[int, ...], float]]:
    """The `n` highest sums of one number from each list, best first; fewer when there are not so many.

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
