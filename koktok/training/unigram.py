"""The default trainer: pieces chosen under the cost, scores by the semi-CRF, exported as plain Unigram.

`Run.train` is the algorithm: prune the candidates down to the size, swap some pieces for better ones, train scores with which
the decoder cuts as the cheapest segmentations do, and replace the pieces that no word uses then (law 15).

A target (so many boundaries kept, so many tokens) is met by scaling `nu`. Pieces chosen under one `nu` are nearly those of
another, and swapping some of them is as good as choosing all anew (the cost is the same to four digits), so a trial takes a round
of swaps. The first trials look at the cheapest segmentations, which need no scores; a few more look at what the decoder does.

Reading order: lattice, candidates, prune, scores, unigram_point, targets, here.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.model.vocab import Vocab
from koktok.training import scores as crf
from koktok.training.alphabet import check_size
from koktok.training.candidates import CandidatePolicy, Candidates, mine
from koktok.training.job import Job, Learnt
from koktok.training.lattice import Lattice, NodePrices, cheapest, decode, nu_by_kind
from koktok.training.log import describe
from koktok.training.prune import Choice, Round
from koktok.training.scripts import by_script, floors_of
from koktok.training.superwords import eojeol_counts
from koktok.training.targets import FAR, NEAR, TRIALS, Boundaries, Targets
from koktok.training.unigram_point import Point, chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray


SCORE_TRIALS = 5
"""Trials with scores at most; one or two are usual."""

RETRAIN = 2
"""Passes over the words where scores were trained before, for pieces that are nearly the same."""

SWAP = 0.05
"""Share of the vocabulary that a trial may swap."""

PROHIBITIVE = 1000.0
"""Factor of `nu` with which no piece swallows a boundary that it need not."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Pieces, the factors of `nu` that they were chosen under, their scores, and what the decoder does with these."""

    alive: NDArray[np.bool_]
    factors: dict[str, float]
    score: NDArray[np.float64]
    vocab: Vocab
    cut: NDArray[np.bool_]
    uses: NDArray[np.int64]


class Run:
    """The training of one point: which candidates it may use, and what they cost."""

    def __init__(self, job: Job, candidates: Candidates, point: Point, pool: ThreadPoolExecutor) -> None:
        self.job, self.counts = job, job.text
        self.candidates, self.point, self.pool = candidates, point, pool
        self.fixed = np.zeros(len(candidates.pieces), dtype=bool)
        self.fixed[: candidates.n_chars] = True
        self.allowed = self.fixed | (candidates.n >= point.min_count)
        self.lattice = candidates.lattice.only(self.allowed, pool)
        self.prices = NodePrices(self.counts, self.lattice.node, eojeol_counts(self.counts))
        self.price = point.lam * candidates.tokens * candidates.price
        self.boundaries = Boundaries(self.counts, candidates.lattice.node)
        self.rounds: list[Round] = []

    def train(self, size: int, alive: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.bool_], Learnt]:
        """Pieces and scores at one size; `alive` are the pieces of a larger size to start from."""
        clock = time.perf_counter()
        self.rounds = []
        targets = self._targets()
        alive = self._choice(size, targets.factors(targets.begin())).prune(self.allowed if alive is None else alive)
        times, alive = self._search_pieces(size, alive, targets)
        selected = time.perf_counter()
        trial = self._search_scores(size, alive, times, targets)
        trial, replaced = self._without_unused(size, trial)
        seconds = {"select": selected - clock, "scores": time.perf_counter() - selected}
        log = {
            "trainer": "unigram",
            "point": asdict(self.point),
            "dials": self._outcome(trial),
            "vocab_size": size,
            "candidates": int(self.allowed.sum()),
            "required": int(self.candidates.required.sum()),
            "dead_pieces_replaced": replaced,
            "pieces_by_script": by_script(trial.vocab.pieces),
            "rounds": [asdict(entry) for entry in self.rounds],
            **describe(self.counts, trial.vocab, self.lattice.node, trial.cut, self._tokens(trial.uses)),
            "seconds": seconds,
        }
        return trial.alive, Learnt(trial.vocab, log)

    # ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _choice(self, size: int, factors: Mapping[str, float]) -> Choice:
        """The selection for a size, with the `nu` of the point times these factors."""
        candidates = self.candidates
        pieces = size - 256 - len(self.job.specials)
        # Characters without a piece are in the lattice as bytes; they take no place.
        return Choice(
            pieces + candidates.n_chars - int(candidates.required.sum()),
            self.lattice,
            self.prices.costs(self.point.weights(factors)),
            self.price,
            self.fixed,
            (candidates.superword, int(pieces * self.job.superwords.share)) if candidates.superword.any() else None,
            self.pool,
            self.rounds,
            floors_of(candidates, self.job.options.reserve_script, pieces),
        )

    def _search_pieces(
        self, size: int, alive: NDArray[np.bool_], targets: Targets
    ) -> tuple[dict[str, float], NDArray[np.bool_]]:
        """The factors of `nu` with which the cheapest segmentations meet the targets, and the pieces under them."""
        times = targets.begin()
        coming = times if targets.wants else None
        for _ in range(TRIALS):
            if coming is None:
                break
            times = coming
            choice = self._choice(size, targets.factors(times))
            _, alive = choice.swap(alive, SWAP)
            coming = targets.after(
                times,
                self._figures(*cheapest(self.lattice.only(alive, self.pool), choice.costs, self.price, self.pool)),
            )
        return times, self._choice(size, targets.factors(times)).refine(alive)

    # ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _search_scores(self, size: int, alive: NDArray[np.bool_], times: dict[str, float], targets: Targets) -> Trial:
        """Scores with which the decoder meets the targets, or comes nearest to them."""
        targets = self._targets(before=targets)
        best: tuple[float, Trial] | None = None
        trial: Trial | None = None
        coming: dict[str, float] | None = times
        for _ in range(SCORE_TRIALS):
            if coming is None:
                break
            factors = targets.factors(coming)
            choice = self._choice(size, factors)
            if trial is not None:
                _, alive = choice.swap(alive, SWAP)
            trial = self._fit(choice, alive, factors, trial)
            figures = self._figures(trial.cut, trial.uses)
            missed = targets.missed(figures, coming)
            if best is None or missed < best[0]:
                best = missed, trial
            coming = targets.after(coming, figures)
        assert best is not None, "there is at least one trial"
        return best[1]

    def _fit(self, choice: Choice, alive: NDArray[np.bool_], factors: dict[str, float], before: Trial | None) -> Trial:
        """Train the scores of these pieces; quicker where nearly the same pieces have scores."""
        lattice, point = self.lattice.only(alive, self.pool), self.point
        _, uses = cheapest(lattice, choice.costs, self.price, self.pool)
        start = np.log(np.maximum(uses, 0.5) / max(uses.sum(), 1.0))
        score = crf.fit(
            lattice,
            self.prices.costs(point.sharpened(factors)),
            point.sharp * self.candidates.tokens,
            start,
            damping=self.counts.represents * self.counts.own**point.damping,
            epochs=point.epochs if before is None else min(RETRAIN, point.epochs),
            resume=None if before is None else np.where(before.alive, before.score, start),
            pool=self.pool,
        )
        return self._decoded(alive, factors, score, lattice)

    def _vocab(self, alive: NDArray[np.bool_], score: NDArray[np.float64]) -> Vocab:
        kept = alive.copy()
        kept[: self.candidates.n_chars] &= self.candidates.required
        pieces = self.candidates.pieces
        scores = {pieces[i]: float(score[i]) for i in np.flatnonzero(kept).tolist()}
        return Vocab.unigram(scores, specials=tuple(self.job.specials))

    def _decoded(
        self, alive: NDArray[np.bool_], factors: dict[str, float], score: NDArray[np.float64], lattice: Lattice
    ) -> Trial:
        """What the tokenizer does: it decodes with the scores of the vocabulary, which are rounded."""
        vocab = self._vocab(alive, score)
        table = dict(zip(vocab.pieces, vocab.scores, strict=True))
        rounded = self.candidates.tokens * vocab.byte_score  # of characters without a piece, which are bytes
        for i in np.flatnonzero(alive).tolist():
            rounded[i] = table.get(self.candidates.pieces[i], rounded[i])
        return Trial(alive, factors, score, vocab, *decode(lattice, rounded, self.pool))

    # ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _targets(self, before: Targets | None = None) -> Targets:
        return Targets(self.point.wants, near=NEAR, at_least=self.point.at_least, before=before)

    def _tokens(self, uses: NDArray[np.int64]) -> float:
        return float((uses * self.candidates.tokens).sum())

    def _figures(self, cut: NDArray[np.bool_], uses: NDArray[np.int64]) -> dict[str, float]:
        """Boundaries kept, and tokens per eojeol, of these segmentations."""
        return {**self.boundaries.figures(cut), "tokens_per_eojeol": self._tokens(uses) / self.job.n_eojeols}

    def _outcome(self, trial: Trial) -> dict[str, Any]:
        """The final weights, their figures, and whether the targets are met."""
        point, targets, figures = self.point, self._targets(), self._figures(trial.cut, trial.uses)
        nu = {kind: round(price * trial.factors.get(kind, 1.0), 6) for kind, price in nu_by_kind(point.nu).items()}
        outcome: dict[str, Any] = {"lam": point.lam, "mu": point.mu, "nu": nu, "rarity": point.rarity, **figures}
        if targets.wants:
            worst = targets.worst(figures)
            outcome |= {
                "target": point.shown(worst),
                "asked": targets.wants[worst],
                "met": targets.missed(figures) <= FAR,
            }
        return outcome

    # ── pieces that no word uses ──────────────────────────────────────────────────────────────────────────────────

    def _without_unused(self, size: int, trial: Trial) -> tuple[Trial, int]:
        """The same with the next best pieces in place of those that no word uses; and how many there were.

        Training the scores again would only leave other pieces unused, so all other scores stay. A free place goes to the
        piece that saves most where it replaces the tokens of the decoder, and swallows no boundary, because those that are
        kept are as many as they should be; where nothing saves anything, to what swallows least, which are rare words.
        Unused pieces stay where no other piece could be used, and then for their own text at least: such a piece is often a
        frequent one (었습니다), which swallows its boundary in every word.
        """
        choice = self._choice(size, {kind: factor * PROHIBITIVE for kind, factor in trial.factors.items()})
        dead = np.zeros_like(self.fixed)
        while (unused := trial.alive & ~self.fixed & (trial.uses == 0)).any():
            dead |= unused
            alive = choice.refill(trial.alive & ~unused, dead, trial.cut)
            new = alive & ~trial.alive
            trial = self._raised(trial, alive, new if new.any() else unused)
            if not new.any():
                return trial, int((dead & ~alive).sum())
        return trial, int(dead.sum())

    def _raised(self, trial: Trial, alive: NDArray[np.bool_], which: NDArray[np.bool_]) -> Trial:
        """Other pieces with the old scores, those of `which` high enough that their own text is spelled with them."""
        score = np.where(trial.alive, trial.score, np.log(0.5 / max(trial.uses.sum(), 1.0)))
        places = np.flatnonzero(which & ~self.fixed).tolist()
        names = [self.candidates.pieces[i] for i in places]
        raised = spelling_themselves(self._vocab(alive, score), names)
        score[places] = [raised[name] for name in names]
        return self._decoded(alive, trial.factors, score, self.lattice.only(alive, self.pool))


def spelling_themselves(vocab: Vocab, pieces: Iterable[str]) -> dict[str, float]:
    """Scores with which these pieces of a vocabulary are used for their own text at least; the others keep theirs.

    Short pieces come first, so that one pass is enough; of equal sums the decoder takes the longest last piece.

    Examples
    --------
    >>> spelling_themselves(Vocab.unigram({"가": -1.0, "나": -1.0, "가나": -3.0}), ["가나"])["가나"]
    -2.0
    """
    scores = dict(zip(vocab.pieces, vocab.scores, strict=True))
    for piece in sorted(pieces, key=len):
        best = [0.0]
        for end in range(1, len(piece) + 1):
            starts = (start for start in range(end) if end - start < len(piece))
            sums = (best[start] + scores[piece[start:end]] for start in starts if piece[start:end] in scores)
            best.append(max(sums, default=-math.inf))
        scores[piece] = max(scores[piece], best[-1])
    return scores


# ── points and sizes ──────────────────────────────────────────────────────────────────────────────────────────────────


def train_unigram(job: Job) -> Learnt:
    """Train the point that the recipe names.

    A pure function of the job; `threads` changes nothing but the time (law 5).

    Examples
    --------
    >>> from koktok.recipe import TrainRecipe
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    >>> vocab = train_unigram(Job(counts, 265, options=TrainRecipe(preset="aligned"))).vocab
    >>> [piece for piece in vocab.pieces if len(piece) > 1]
    [' 학교', '에서', ' 집']
    """
    options = job.options
    point = chosen(
        options.preset,
        keep=options.keep,
        tokens=options.tokens_per_eojeol,
        nu=options.nu,
        lam=options.lam,
        mu=options.mu,
        max_length=job.max_length,
    )
    return train_unigrams(job, [point], [job.vocab_size])[point.name, job.vocab_size]


def train_unigrams(job: Job, points: Sequence[Point], sizes: Sequence[int]) -> dict[tuple[str, int], Learnt]:
    """Train every point at every size, the largest first; points share candidates, and smaller sizes start from larger ones.

    The larger sizes in a run have a small influence on the smaller ones: a size trained alone may differ in a few pieces.
    """
    seconds: dict[str, float] = {"compile": crf.warm_up()}
    clock = time.perf_counter()
    points = [replace(point, min_count=max(point.min_count, int(job.n_eojeols / RARE))) for point in points]
    mined: dict[tuple[int, bool], Candidates] = {}
    for (length, aligned), group in itertools.groupby(sorted(points, key=_source), key=_source):
        mined[length, aligned] = _mined(job, [*group], max(sizes))
    seconds["candidates"] = time.perf_counter() - clock
    done = itertools.count(1)
    steps = len(points) * len(sizes)

    def train(point: Point, pool: ThreadPoolExecutor) -> dict[tuple[str, int], Learnt]:
        """The point at every size; sizes of one floor are chosen one out of the other."""
        candidates = mined[_source(point)]
        floors = {size: _floor(point, candidates, size) for size in sizes}
        trained = {}
        for floor in sorted(set(floors.values())):
            run = Run(job, candidates, replace(point, min_count=floor), pool)
            of_floor = sorted({size for size in sizes if floors[size] == floor}, reverse=True)
            check_sizes(run, of_floor)
            alive = None
            for size in of_floor:
                alive, trained[point.name, size] = run.train(size, alive)
                if steps > 1:
                    job.on_progress(next(done), steps)
        return trained

    n = job.threads or os.cpu_count() or 1
    # Some steps of a point are one thread's work, so several points at once keep all of them busy.
    with ThreadPoolExecutor(n) as pool, ThreadPoolExecutor(min(n, len(points))) as runs_of_points:
        parts = list(runs_of_points.map(lambda point: train(point, pool), points))
    results = {key: learnt for part in parts for key, learnt in part.items()}
    for learnt in results.values():
        learnt.log["seconds"] = {**seconds, **learnt.log["seconds"]}
    return results


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


def _mined(job: Job, points: Sequence[Point], size: int) -> Candidates:
    """Candidates over the highest floor that leaves enough of them for the largest size."""
    wanted = max(point.per_id for point in points) * size
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
        candidates = mine(job.text, policy, job.letters(), job.run_documents)
        if len(candidates.pieces) - candidates.n_chars >= wanted:
            break
    return candidates


def _floor(point: Point, candidates: Candidates, size: int) -> int:
    """The highest floor that leaves the point enough candidates, or the lowest that was looked for."""
    n = candidates.n[candidates.n_chars :]
    enough = (floor for floor in _floors(point.min_count) if (n >= floor).sum() >= point.per_id * size)
    lowest = max(2, int(n.min(initial=2))) if point.per_id else point.min_count
    return next(enough, min(lowest, point.min_count))


def check_sizes(run: Run, sizes: Sequence[int]) -> None:
    """Refuse sizes that the candidates of a run cannot have."""
    candidates, share = run.candidates, run.job.superwords.share
    beside = 256 + len(run.job.specials)
    n_required = int(candidates.required.sum())
    longer = run.allowed[candidates.n_chars :]
    across = int((longer & candidates.superword[candidates.n_chars :]).sum())
    inside = beside + n_required + int(longer.sum()) - across
    largest = inside + across
    while largest > inside and largest > inside + int((largest - beside) * share):
        largest -= 1  # of a smaller vocabulary fewer pieces may cross spaces
    # A smaller size may ask for fewer characters, and then has fewer candidates: the way between is safe.
    hint = f"--vocab-size {(beside + n_required + largest) // 2}, or more text"
    for size in sizes:
        check_size(size, beside + n_required, largest, "candidates", hint)
