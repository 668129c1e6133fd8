"""The default trainer: pieces chosen under the cost, scores by the semi-CRF, exported as plain Unigram.

The parts put together. One run trains many points and sizes from one table of candidates.
Reading order: lattice, candidates, selection, crf, unigram_point, unigram_search, here.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koktok.errors import UsageError
from koktok.progress import Tell
from koktok.segment.segmented import SegmentedCounts
from koktok.training import scores as crf
from koktok.training.candidates import CandidatePolicy, Candidates, mine
from koktok.training.superwords import SuperwordPolicy
from koktok.training.unigram_point import PRESETS, Point
from koktok.training.unigram_reserve import check_reserve
from koktok.training.unigram_search import Run, Trained

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SUPERWORDS = SuperwordPolicy()

FLOORS = (7, 5, 3, 2)
"""Where `min_count` goes when it leaves too few candidates."""


def train_unigram(
    counts: SegmentedCounts,
    *,
    vocab_size: int,
    preset: str = "balanced",
    keep: float | None = None,
    tokens: float | None = None,
    eojeols: float | None = None,
    lam: float | None = None,
    mu: float | None = None,
    nu: float | Mapping[str, float] | None = None,
    rarity: float | None = None,
    min_count: int | None = None,
    max_length: int | None = None,
    aligned: bool | None = None,
    required: Collection[str] = (),
    coverage: float = 0.9995,
    specials: Sequence[str] = (),
    crosses: Callable[[str], bool] | None = None,
    runs: SegmentedCounts | None = None,
    superwords: SuperwordPolicy = SUPERWORDS,
    run_documents: NDArray[np.uint64] | None = None,
    reserve: Mapping[str, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Tell | None = None,
) -> Trained:
    """Train one vocabulary.

    A pure function of the counts and the options; `threads` changes nothing but the time (law 5).

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    >>> vocab = train_unigram(counts, vocab_size=265, preset="aligned", min_count=2).vocab
    >>> [piece for piece in vocab.pieces if len(piece) > 1]
    [' 학교', '에서', ' 집']
    """
    if preset not in PRESETS:
        raise UsageError(f"the preset `{preset}` is not known", hint=f"--preset {' | '.join(PRESETS)}")
    if nu is not None and (keep is not None or tokens is not None):
        raise UsageError("a target finds `nu` by itself, and both came", hint="leave one of them out")
    given: dict[str, Any] = {
        "lam": lam,
        "mu": mu,
        "nu": nu,
        "rarity": rarity,
        "min_count": min_count,
        "per_id": None if min_count is None else 0.0,  # who names a floor gets that floor
        "max_length": max_length,
        "aligned": aligned,
    }
    point = PRESETS[preset]
    if (keep, tokens, nu) != (None, None, None):
        point = point.aimed(keep=keep, tokens=tokens)
    point = replace(point, **{key: value for key, value in given.items() if value is not None})
    trained = train_unigrams(
        counts,
        points=[point],
        vocab_sizes=[vocab_size],
        eojeols=eojeols,
        required=required,
        coverage=coverage,
        specials=specials,
        crosses=crosses,
        runs=runs,
        superwords=superwords,
        run_documents=run_documents,
        reserve=reserve,
        seed=seed,
        threads=threads,
        on_progress=on_progress,
    )
    return trained[point.name, vocab_size]


def train_unigrams(
    counts: SegmentedCounts,
    *,
    points: Sequence[Point] = tuple(PRESETS.values()),
    vocab_sizes: Sequence[int],
    eojeols: float | None = None,
    required: Collection[str] = (),
    coverage: float = 0.9995,
    specials: Sequence[str] = (),
    crosses: Callable[[str], bool] | None = None,
    runs: SegmentedCounts | None = None,
    superwords: SuperwordPolicy = SUPERWORDS,
    run_documents: NDArray[np.uint64] | None = None,
    reserve: Mapping[str, float] | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Tell | None = None,
) -> dict[tuple[str, int], Trained]:
    """Train every point at every size; the candidates are found once, and smaller sizes start from larger ones.

    The larger sizes in a run have a small influence on the smaller ones: a size trained alone may differ in a few pieces.
    """
    names = [point.name for point in points]
    if not points or not vocab_sizes or len(set(names)) != len(names):
        raise UsageError(f"training wants points of distinct names and sizes; {names} and {list(vocab_sizes)} came")
    check_reserve(reserve or {})
    seconds: dict[str, float] = {"compile": crf.warm_up()}
    clock = time.perf_counter()
    text = counts if runs is None else runs
    groups = {(point.max_length, point.aligned) for point in points}
    mined = {}
    for group in sorted(groups):
        here = [point for point in points if (point.max_length, point.aligned) == group]
        wanted = max(point.per_id for point in here) * max(vocab_sizes)
        for floor in _floors(min(point.min_count for point in here)):
            policy = CandidatePolicy(
                min_count=floor,
                max_length=group[0],
                aligned=group[1],
                coverage=coverage,
                crosses=crosses,
                superwords=None if runs is None else superwords,
            )
            mined[group] = mine(text, policy, required, None if runs is None else run_documents)
            if len(mined[group].pieces) - mined[group].n_chars >= wanted:
                break
    seconds["candidates"] = time.perf_counter() - clock
    done = itertools.count(1)
    steps = len(points) * len(vocab_sizes)

    def run(point: Point, pool: ThreadPoolExecutor) -> dict[tuple[str, int], Trained]:
        """The point at every size; sizes of one floor are chosen one out of the other."""
        found = mined[point.max_length, point.aligned]
        floors = {size: _lowered(point, found, size).min_count for size in vocab_sizes}
        trained = {}
        for floor in sorted(set(floors.values())):
            here = Run(
                text,
                found,
                replace(point, min_count=floor),
                pool,
                specials=tuple(specials),
                eojeols=counts.total if eojeols is None else eojeols,
                seed=seed,
                share=superwords.share,
                reserve=reserve or {},
            )
            sizes = sorted({size for size in vocab_sizes if floors[size] == floor}, reverse=True)
            here.check(sizes)
            alive = None
            for size in sizes:
                alive, trained[point.name, size] = here.train(size, alive)
                if on_progress:
                    on_progress("train", next(done), steps)
        return trained

    n = threads or os.cpu_count() or 1
    # Some steps of a point are one thread's work, so several points at once keep all of them busy.
    with ThreadPoolExecutor(n) as pool, ThreadPoolExecutor(min(n, len(points))) as runs_of_points:
        found = list(runs_of_points.map(lambda point: run(point, pool), points))
    results = {key: trained for part in found for key, trained in part.items()}
    for trained in results.values():
        trained.log["seconds"] = {**seconds, **trained.log["seconds"]}
    return results


def _floors(highest: int) -> list[int]:
    return [highest, *(floor for floor in FLOORS if floor < highest)]


def _lowered(point: Point, found: Candidates, size: int) -> Point:
    """The point with the highest floor that leaves it enough candidates, or the lowest that was looked for."""
    n = found.n[found.n_chars :]
    enough = (floor for floor in _floors(point.min_count) if (n >= floor).sum() >= point.per_id * size)
    lowest = max(2, int(n.min(initial=2))) if point.per_id else point.min_count
    return replace(point, min_count=next(enough, min(lowest, point.min_count)))
