"""The choice of pieces: one for every model, under the cost of `lattice.py`, with targets.

`Selection.train` is the algorithm: prune the candidates down to the size, swap some for better ones until the cheapest
segmentations meet the targets, and let the model learn to segment as these do (`fit`): a Unigram learns scores, a BPE merges.
What the model does then, without an analyser, is what counts; where it misses a target, the next trial aims beside it.

A target (so many boundaries kept, so many tokens) is met by scaling `nu`. Pieces chosen under one `nu` are nearly those of
another, and swapping some of them is as good as choosing all anew (the cost is the same to four digits), so a trial takes a round
of swaps. The first trials look at the cheapest segmentations, which no model has to learn; a few more look at the model.

Reading order: lattice, candidates, prune, unigram_point, targets, here; then unigram, or bpe.
"""

from __future__ import annotations

import itertools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from koktok.model.vocab import Vocab
from koktok.training.candidates import CandidatePolicy, Candidates, mine
from koktok.training.job import BYTES_PER_CHARACTER, Job, Learnt
from koktok.training.lattice import NodePrices, cheapest, nu_by_kind
from koktok.training.log import describe, texts_of
from koktok.training.prune import Choice, Round
from koktok.training.scripts import by_script, floors_of
from koktok.training.superwords import eojeol_counts
from koktok.training.targets import FAR, NEAR, TRIALS, Boundaries, Targets
from koktok.training.unigram_point import Point, chosen

MODEL_TRIALS = 5
"""Trials with a model at most; one or two are usual."""

SEEN = 5
"""A piece that is used less often than this is counted as rare: nobody learns much of a word from four examples."""

SWAP = 0.05
"""Share of the vocabulary that a trial may swap."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Pieces, the factors of `nu` that they were chosen under, and how a model that learnt from them segments."""

    alive: NDArray[np.bool_]
    factors: dict[str, float]
    vocab: Vocab
    cut: NDArray[np.bool_]
    tokens: float


T = TypeVar("T", bound=Trial)


class Selection(ABC, Generic[T]):
    """The training of one point: which candidates it may use, and what they cost."""

    def __init__(self, job: Job, candidates: Candidates, point: Point, pool: ThreadPoolExecutor) -> None:
        self.job, self.counts = job, job.text
        self.candidates, self.point, self.pool = candidates, point, pool
        self.fixed = np.zeros(len(candidates.pieces), dtype=bool)
        self.fixed[: candidates.n_chars] = True
        self.fixed |= candidates.strings
        self.allowed = self.fixed | (candidates.n >= point.min_count)
        self.lattice = candidates.lattice.only(self.allowed, pool)
        self.prices = NodePrices(self.counts, self.lattice.node, eojeol_counts(self.counts))
        self.price = point.lam * candidates.tokens * candidates.price
        self.boundaries = Boundaries(self.counts, candidates.lattice.node)
        self.rounds: list[Round] = []

    # ── what a model adds ─────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def room(self) -> int:
        """The number of ids for pieces of two characters or more."""

    @abstractmethod
    def fit(self, choice: Choice, alive: NDArray[np.bool_], factors: dict[str, float], before: T | None) -> T:
        """Train the model to segment as these pieces do at least cost; quicker where a trial with nearly the same ones is known."""

    @abstractmethod
    def uses(self, trial: T) -> NDArray[Any]:
        """How often each piece of two characters or more is used in the text."""

    @abstractmethod
    def finished(self, trial: T) -> Learnt:
        """The result of the last trial, with a log of what is the model's own."""

    def check(self) -> None:
        """Refuse a vocabulary size that the candidates cannot have, before any work; a model that needs no candidates refuses none."""

    # ── the algorithm ─────────────────────────────────────────────────────────────────────────────────────────────

    def train(self) -> Learnt:
        """The result."""
        self.check()
        clock = time.perf_counter()
        self.rounds = []
        targets = self._targets()
        alive = self.choice(targets.factors(targets.begin())).prune(self.allowed)
        times, alive = self._search_pieces(alive, targets)
        selected = time.perf_counter()
        learnt = self.finished(self._search_model(alive, times, targets))
        seconds = {"select": selected - clock, "scores": time.perf_counter() - selected}
        log = {
            "point": asdict(self.point),
            "vocab_size": self.job.vocab_size,
            "candidates": int(self.allowed.sum()),
            "required": self.candidates.n_required,
            "pieces_by_script": by_script(texts_of(learnt.vocab)),
            "rounds": [asdict(entry) for entry in self.rounds],
            **learnt.log,
            "seconds": seconds,
        }
        return replace(learnt, log=log)

    def choice(self, factors: Mapping[str, float]) -> Choice:
        """The selection with the `nu` of the point times these factors."""
        candidates, room = self.candidates, self.room()
        # Characters without a piece are in the lattice as bytes; they take no place.
        pieces = room + int(candidates.required.sum())
        return Choice(
            room + candidates.n_chars,
            self.lattice,
            self.prices.costs(self.point.weights(factors)),
            self.price,
            self.fixed,
            (candidates.superword, int(pieces * self.job.superwords.share)) if candidates.superword.any() else None,
            self.pool,
            self.rounds,
            floors_of(candidates, self.job.options.reserve_script, pieces),
        )

    def _search_pieces(self, alive: NDArray[np.bool_], targets: Targets) -> tuple[dict[str, float], NDArray[np.bool_]]:
        """The factors of `nu` with which the cheapest segmentations meet the targets, and the pieces under them."""
        times = targets.begin()
        coming = times if targets.wants else None
        for _ in range(TRIALS):
            if coming is None:
                break
            times = coming
            choice = self.choice(targets.factors(times))
            _, alive = choice.swap(alive, SWAP)
            cut, uses = cheapest(self.lattice.only(alive, self.pool), choice.costs, self.price, self.pool)
            coming = targets.after(times, self.figures(cut, self.tokens_of(uses)))
        return times, self.choice(targets.factors(times)).refine(alive)

    def _search_model(self, alive: NDArray[np.bool_], times: dict[str, float], targets: Targets) -> T:
        """A model that meets the targets with the fewest tokens, or comes nearest to them."""
        targets = self._targets(before=targets)
        best: tuple[tuple[float, float], T] | None = None
        trial: T | None = None
        coming: dict[str, float] | None = times
        for _ in range(MODEL_TRIALS):
            if coming is None:
                break
            factors = targets.factors(coming)
            choice = self.choice(factors)
            if trial is not None:
                _, alive = choice.swap(alive, SWAP)
            trial = self.fit(choice, alive, factors, trial)
            figures = self.figures(trial.cut, trial.tokens)
            rank = targets.rank(figures, trial.tokens)
            if best is None or rank < best[0]:
                best = rank, trial
            coming = targets.after(coming, figures)
        assert best is not None, "there is at least one trial"
        return best[1]

    # ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _targets(self, before: Targets | None = None) -> Targets:
        return Targets(self.point.wants, near=NEAR, at_least=self.point.at_least, before=before)

    def tokens_of(self, uses: NDArray[np.int64]) -> float:
        """Running tokens of these uses of pieces."""
        return float((uses * self.candidates.tokens).sum())

    def figures(self, cut: NDArray[np.bool_], tokens: float) -> dict[str, float]:
        """Boundaries kept, and tokens per eojeol, of a segmentation."""
        return {**self.boundaries.figures(cut), "tokens_per_eojeol": tokens / self.job.n_eojeols}

    def outcome(self, trial: T) -> dict[str, Any]:
        """What a log says of a trial: the final weights, their figures, whether the targets are met, and what became of boundaries."""
        point, targets, figures = self.point, self._targets(), self.figures(trial.cut, trial.tokens)
        nu = {kind: round(price * trial.factors.get(kind, 1.0), 6) for kind, price in nu_by_kind(point.nu).items()}
        weights: dict[str, Any] = {"lam": point.lam, "mu": point.mu, "nu": nu, "rarity": point.rarity, **figures}
        if targets.wants:
            worst = targets.worst(figures)
            asked, met = targets.wants[worst], targets.missed(figures) <= FAR
            weights |= {"target": point.shown(worst), "asked": asked, "met": met}
        node = self.lattice.node
        rare = int((self.uses(trial) < SEEN).sum())
        return {
            "outcome": weights,
            "rare_pieces": rare,
            **describe(self.counts, trial.vocab, node, trial.cut, trial.tokens),
        }


# ── points ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def point_of(job: Job) -> Point:
    """The point that the options of a job name."""
    options = job.options
    return chosen(
        options.preset,
        keep=options.keep,
        tokens=options.tokens_per_eojeol,
        nu=options.nu,
        lam=options.lam,
        mu=options.mu,
        max_length=job.max_length // (BYTES_PER_CHARACTER if job.spelled else 1),
    )


def train_points(model: type[Selection[Any]], job: Job, points: Sequence[Point]) -> dict[str, Learnt]:
    """Train every point; they share candidates."""
    clock = time.perf_counter()
    points = [replace(point, min_count=max(point.min_count, int(job.n_eojeols / RARE))) for point in points]
    mined: dict[tuple[int, bool], Candidates] = {}
    for (length, aligned), group in itertools.groupby(sorted(points, key=_source), key=_source):
        mined[length, aligned] = _mined(job, [*group])
    seconds = {"candidates": time.perf_counter() - clock}
    done = itertools.count(1)

    def train(point: Point, pool: ThreadPoolExecutor) -> Learnt:
        candidates = mined[_source(point)]
        floor = _floor(point, candidates, job.vocab_size)
        learnt = model(job, candidates, replace(point, min_count=floor), pool).train()
        if len(points) > 1:
            job.on_progress(next(done), len(points))
        return replace(learnt, log=learnt.log | {"seconds": {**seconds, **learnt.log["seconds"]}})

    n = job.threads or os.cpu_count() or 1
    # Some steps of a point are one thread's work, so several points at once keep all of them busy.
    with ThreadPoolExecutor(n) as pool, ThreadPoolExecutor(min(n, len(points))) as runs_of_points:
        trained = runs_of_points.map(lambda point: train(point, pool), points)
        return {point.name: learnt for point, learnt in zip(points, trained, strict=True)}


RARE = 2_000_000
"""A candidate occurs at least once in so many eojeols, which is more than `min_count` in text of over 200 MB. Of 1 GB this leaves 1.1
million of 7.6 million candidates and 198 of 339 s; the boundaries kept are the same."""

FLOORS = (10, 7, 5, 3, 2)
"""Smaller values of `min_count`, tried in turn where it leaves too few candidates."""


def _source(point: Point) -> tuple[int, bool]:
    """Points with the same have the same candidates."""
    return point.max_length, point.aligned


def _floors(highest: int) -> list[int]:
    return [highest, *(floor for floor in FLOORS if floor < highest)]


def _mined(job: Job, points: Sequence[Point]) -> Candidates:
    """Candidates over the highest floor that leaves enough of them."""
    wanted = max(point.per_id for point in points) * job.vocab_size
    for floor in _floors(min(point.min_count for point in points)):
        policy = CandidatePolicy(
            min_count=floor,
            max_length=points[0].max_length,
            aligned=points[0].aligned,
            coverage=job.coverage,
            crosses=job.crosses,
            superwords=None if job.runs is None else job.superwords,
            price=job.options.price,
        )
        candidates = mine(job.text, policy, job.letters(), job.run_documents, job.strings)
        if len(candidates.pieces) - candidates.n_chars >= wanted:
            break
    return candidates


def _floor(point: Point, candidates: Candidates, size: int) -> int:
    """The highest floor that leaves the point enough candidates, or the lowest that was looked for."""
    n = candidates.n[candidates.n_chars :][~candidates.strings[candidates.n_chars :]]
    enough = (floor for floor in _floors(point.min_count) if (n >= floor).sum() >= point.per_id * size)
    lowest = max(2, int(n.min(initial=2))) if point.per_id else point.min_count
    return next(enough, min(lowest, point.min_count))
