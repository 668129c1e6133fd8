"""The default trainer: pieces chosen under the cost, scores by the semi-CRF, exported as plain Unigram.

Candidates are found once, and each setting (a `Point`) goes over the sizes, the largest first. A target (so many
boundaries kept, so many tokens) is met by turning `nu`. Pieces that were chosen under one `nu` are nearly those of another,
and swapping some of them is as good as choosing all anew (the cost is the same to four digits), so a trial takes a round of
swaps. Trials look at the cheapest segmentations first, which need no scores; scores come last, and a few more trials at what
the decoder does with them. What no word of the text uses, once there are scores, gives its place to the next best (law 15).
Reading order: lattice, candidates, prune, scores, unigram_point, here.
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

from koktok.errors import UsageError
from koktok.training import scores as crf
from koktok.training.alphabet import check_size
from koktok.training.candidates import CandidatePolicy, Candidates, mine
from koktok.training.job import Job, Learnt
from koktok.training.lattice import Lattice, cheapest, decode, node_costs
from koktok.training.log import describe
from koktok.training.prune import Choice, Round
from koktok.training.scripts import by_script, floors_of
from koktok.training.superwords import eojeol_counts
from koktok.training.targets import Boundaries, Targets
from koktok.training.unigram_point import GROUPS, Point, chosen, priced
from koktok.vocab import Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray


FLOORS = (7, 5, 3, 2)
"""Where `min_count` goes when it leaves too few candidates."""

NEAR = 0.003
"""A trial is near enough at this distance from its target, a third of what is promised."""

FAR = 0.01
"""What is promised: a result that is further from its target is told to be the best possible."""

TRIALS, MORE_TRIALS = 8, 5
"""At the cheapest segmentations, and with scores; two to four and one or two are usual."""

RETRAIN = 2
"""Passes over the words where scores were trained before, for pieces that are nearly the same."""

SWAP = 0.05
"""Share of the vocabulary that a trial may swap."""

PROHIBITIVE = 1000.0
"""Times `nu` where no boundary is for sale."""


def train_unigram(job: Job) -> Learnt:
    """Train the setting that the recipe names.

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


def train_unigrams(
    job: Job, points: Sequence[Point], sizes: Sequence[int], *, seed: int = 0
) -> dict[tuple[str, int], Learnt]:
    """Train every point at every size; the candidates are found once, and smaller sizes start from larger ones.

    The larger sizes in a run have a small influence on the smaller ones: a size trained alone may differ in a few pieces.
    """
    names = [point.name for point in points]
    if not points or not sizes or len(set(names)) != len(names):
        raise UsageError(f"expected points of distinct names and sizes, got {names} and {list(sizes)}")
    seconds: dict[str, float] = {"compile": crf.warm_up()}
    clock = time.perf_counter()
    groups = sorted({(point.max_length, point.aligned) for point in points})
    mined = {
        group: _mined(job, [point for point in points if (point.max_length, point.aligned) == group], max(sizes))
        for group in groups
    }
    seconds["candidates"] = time.perf_counter() - clock
    done = itertools.count(1)
    steps = len(points) * len(sizes)

    def run(point: Point, pool: ThreadPoolExecutor) -> dict[tuple[str, int], Learnt]:
        """The point at every size; sizes of one floor are chosen one out of the other."""
        found = mined[point.max_length, point.aligned]
        floors = {size: _floor(point, found, size) for size in sizes}
        trained = {}
        for floor in sorted(set(floors.values())):
            here = Run(job, found, replace(point, min_count=floor), pool, seed=seed)
            of_floor = sorted({size for size in sizes if floors[size] == floor}, reverse=True)
            here.check(of_floor)
            alive = None
            for size in of_floor:
                alive, trained[point.name, size] = here.train(size, alive)
                if steps > 1:
                    job.on_progress(next(done), steps)
        return trained

    n = job.threads or os.cpu_count() or 1
    # Some steps of a point are one thread's work, so several points at once keep all of them busy.
    with ThreadPoolExecutor(n) as pool, ThreadPoolExecutor(min(n, len(points))) as runs_of_points:
        found = list(runs_of_points.map(lambda point: run(point, pool), points))
    results = {key: trained for part in found for key, trained in part.items()}
    for trained in results.values():
        trained.log["seconds"] = {**seconds, **trained.log["seconds"]}
    return results


def _floors(highest: int) -> list[int]:
    """How often a candidate must stand: as the point says, and less where that leaves fewer candidates than it asks for."""
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
        found = mine(job.text, policy, job.letters(), job.run_documents)
        if len(found.pieces) - found.n_chars >= wanted:
            break
    return found


def _floor(point: Point, found: Candidates, size: int) -> int:
    """The highest floor that leaves the point enough candidates, or the lowest that was looked for."""
    n = found.n[found.n_chars :]
    enough = (floor for floor in _floors(point.min_count) if (n >= floor).sum() >= point.per_id * size)
    lowest = max(2, int(n.min(initial=2))) if point.per_id else point.min_count
    return next(enough, min(lowest, point.min_count))


# ── One point on its way ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Pieces, the factor of `nu` that they were chosen under, the scores that came of it, and what the decoder does."""

    alive: NDArray[np.bool_]
    times: dict[str, float]
    lattice: Lattice
    score: NDArray[np.float64]
    vocab: Vocab
    cut: NDArray[np.bool_]
    uses: NDArray[np.int64]


class Run:
    """One point on its way: which candidates it may use, what they cost, and what became of them."""

    def __init__(self, job: Job, candidates: Candidates, point: Point, pool: ThreadPoolExecutor, *, seed: int) -> None:
        self.counts = counts = job.text
        self.candidates, self.point, self.pool, self.seed = candidates, point, pool, seed
        self.specials = tuple(job.specials)
        self.eojeols = job.counts.total if job.eojeols is None else job.eojeols
        self.share, self.reserve = job.superwords.share, job.options.reserve_script
        self.frequency = eojeol_counts(counts)
        self.allowed = candidates.n >= point.min_count
        self.allowed[: candidates.n_chars] = True
        self.lattice = candidates.lattice.only(self.allowed)
        self.fixed = np.zeros(len(candidates.pieces), dtype=bool)
        self.fixed[: candidates.n_chars] = True
        self.price = point.lam * candidates.tokens * candidates.worth
        self.boundaries = Boundaries(counts, candidates.lattice.node)
        self.rounds: list[Round] = []

    def check(self, sizes: list[int]) -> None:
        """Refuse sizes that these candidates cannot have."""
        found = self.candidates
        beside = 256 + len(self.specials)
        n_required = int(found.required.sum())
        longer = self.allowed[found.n_chars :]
        across = int((longer & found.superword[found.n_chars :]).sum())
        inside = beside + n_required + int(longer.sum()) - across
        largest = inside + across
        while largest > inside and largest > inside + int((largest - beside) * self.share):
            largest -= 1  # of a smaller vocabulary fewer pieces may cross spaces
        # A smaller size may ask for fewer characters, and then has fewer candidates: the way between is safe.
        hint = f"--vocab-size {(beside + n_required + largest) // 2}, or more text"
        for size in sizes:
            check_size(size, beside + n_required, largest, "candidates", hint)

    def train(self, size: int, alive: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.bool_], Learnt]:
        """Pieces and scores at one size; `alive` are those of a larger size to start from."""
        clock = time.perf_counter()
        self.rounds = []
        alive = self.allowed | self.fixed if alive is None else alive
        targets = self._targets()
        times = targets.begin()
        choice = self._choice(size, targets.factors(times))
        alive = choice.prune(alive)
        if targets.wants:
            times, alive = self._search_pieces(size, alive, targets)
        else:
            alive = choice.refine(alive)
        chosen = time.perf_counter()
        found = self._search_scores(size, alive, times, targets)
        found, buried = self._without_dead(size, found)
        seconds = {"select": chosen - clock, "scores": time.perf_counter() - chosen}
        log = {
            "trainer": "unigram",
            "point": asdict(self.point),
            "dials": self._outcome(found),
            "vocab_size": size,
            "candidates": int(self.allowed.sum()),
            "required": int(self.candidates.required.sum()),
            "dead_pieces_replaced": buried,
            "pieces_by_script": by_script(found.vocab.pieces),
            "rounds": [asdict(entry) for entry in self.rounds],
            **describe(self.counts, found.vocab, self.lattice.node, found.cut, self._tokens(found.uses)),
            "seconds": seconds,
        }
        return found.alive, Learnt(found.vocab, log)

    # ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _targets(self, before: Targets | None = None) -> Targets:
        point = self.point
        wants: Mapping[Any, float] = point.keep or {} if point.tokens is None else {"tokens": point.tokens}
        return Targets(wants, near=NEAR, at_least=point.at_least, before=before)

    def _values(self, cut: NDArray[np.bool_], uses: NDArray[np.int64]) -> dict[str, float]:
        """What these segmentations make of each target."""
        if self.point.tokens is not None:
            return {"tokens": self._tokens(uses) / max(self.eojeols, 1e-9)}
        return {name: self.boundaries.kept(cut, name) for name in self.point.keep or ()}

    def _choice(self, size: int, factors: Mapping[str, float]) -> Choice:
        """The selection for a size, with `nu` so many times what the point says."""
        found = self.candidates
        pieces = size - 256 - len(self.specials)
        # Characters without a piece are in the lattice as bytes; they take no place.
        return Choice(
            pieces + found.n_chars - int(found.required.sum()),
            self.lattice,
            node_costs(self.counts, self.lattice, self.point.weights(factors), self.frequency),
            self.price,
            self.fixed,
            (found.superword, int(pieces * self.share)) if found.superword.any() else None,
            self.pool,
            self.rounds,
            floors_of(found, self.reserve, pieces),
        )

    def _tokens(self, uses: NDArray[np.int64]) -> float:
        return float((uses * self.candidates.tokens).sum())

    def _outcome(self, found: _Fitted) -> dict[str, Any]:
        """The weights that were found, their boundaries, and whether the targets are met."""
        point, targets = self.point, self._targets()
        outcome: dict[str, Any] = {
            "lam": point.lam,
            "mu": point.mu,
            "nu": {kind: round(price * found.times.get(kind, 1.0), 6) for kind, price in priced(point.nu).items()},
            "rarity": point.rarity,
            **{name: self.boundaries.kept(found.cut, name) for name in GROUPS},
            "f1": self.boundaries.f1(found.cut),
            "tokens_per_eojeol": self._tokens(found.uses) / max(self.eojeols, 1e-9),
        }
        if targets.wants:
            values = self._values(found.cut, found.uses)
            worst = targets.worst(values)
            outcome |= {"target": worst, "asked": targets.wants[worst], "met": targets.missed(values) <= FAR}
        return outcome

    def _search_pieces(
        self, size: int, alive: NDArray[np.bool_], targets: Targets
    ) -> tuple[dict[str, float], NDArray[np.bool_]]:
        """The factors of `nu` with which the cheapest segmentations meet the targets, and the pieces under them."""
        coming: dict[str, float] | None = targets.begin()
        for _ in range(TRIALS):
            if coming is None:
                break
            times = coming
            choice = self._choice(size, targets.factors(times))
            _, alive = choice.swap(alive, SWAP)
            cut, uses = cheapest(self.lattice.only(alive), choice.costs, self.price, self.pool)
            coming = targets.after(times, self._values(cut, uses))
        return times, self._choice(size, targets.factors(times)).refine(alive)

    def _search_scores(self, size: int, alive: NDArray[np.bool_], times: dict[str, float], targets: Targets) -> _Fitted:
        """Scores with which the decoder meets the targets, or comes nearest to them."""
        targets = self._targets(before=targets)
        best: tuple[float, _Fitted] | None = None
        coming: dict[str, float] | None = times
        found: _Fitted | None = None
        for trial in range(MORE_TRIALS if targets.wants else 1):
            if coming is None:
                break
            times = coming
            factors = targets.factors(times)
            choice = self._choice(size, factors)
            alive = choice.swap(alive, SWAP)[1] if trial else alive
            found = self._fit(choice, alive, factors, found)
            values = self._values(found.cut, found.uses)
            missed = targets.missed(values, times)
            if best is None or missed < best[0]:
                best = missed, found
            coming = targets.after(times, values) if targets.wants else None
        assert best is not None, "there is at least one trial"
        return best[1]

    def _fit(
        self, choice: Choice, alive: NDArray[np.bool_], times: dict[str, float], before: _Fitted | None = None
    ) -> _Fitted:
        """Scores of these pieces; quicker where scores of nearly the same pieces are there."""
        lattice = self.lattice.only(alive)
        _, uses = cheapest(lattice, choice.costs, self.price, self.pool)
        start = np.log(np.maximum(uses, 0.5) / max(uses.sum(), 1.0))
        score = crf.fit(
            lattice,
            node_costs(self.counts, lattice, self.point.sharpened(times), self.frequency),
            self.point.sharp * self.candidates.tokens,
            start,
            damping=self.counts.stands * self.counts.own**self.point.damping,
            epochs=self.point.epochs if before is None else min(RETRAIN, self.point.epochs),
            resume=None if before is None else np.where(before.alive, before.score, start),
            seed=self.seed,
        )
        return self._decoded(alive, times, lattice, score)

    def _decoded(
        self, alive: NDArray[np.bool_], times: dict[str, float], lattice: Lattice, score: NDArray[np.float64]
    ) -> _Fitted:
        """What the tokenizer will do: with the scores of the vocabulary, which are rounded."""
        pieces = self.candidates.pieces
        kept = alive.copy()
        kept[: self.candidates.n_chars] &= self.candidates.required
        places = np.flatnonzero(kept).tolist()
        vocab = Vocab.unigram({pieces[i]: float(score[i]) for i in places}, specials=self.specials)
        table = dict(zip(vocab.pieces, vocab.scores, strict=True))
        rounded = self.candidates.tokens * vocab.byte_score  # of characters without a piece, which stand alone
        rounded[places] = [table[pieces[i]] for i in places]
        return _Fitted(alive, times, lattice, score, vocab, *decode(lattice, rounded))

    def _without_dead(self, size: int, found: _Fitted) -> tuple[_Fitted, int]:
        """The same without pieces that no word uses, the next best in their places; and how many there were.

        Training the scores again would only make other pieces dead, so those of the others stay. A free place goes to what
        saves most where it takes the place of the tokens that stand there now, and swallows no boundary, for those that are
        kept are as many as they should be; where nothing saves anything, to what swallows least, which are rare words. Dead
        pieces stay where nothing else could be used, and then for the text that they spell at least: such a piece is often
        a frequent one (었습니다), which swallows its boundary in every word.
        """
        choice = self._choice(size, {kind: factor * PROHIBITIVE for kind, factor in found.times.items()})
        dead = np.zeros_like(self.fixed)
        while (here := found.alive & ~self.fixed & (found.uses == 0)).any():
            dead |= here
            alive = choice.refill(found.alive & ~here, dead, found.cut)
            new = alive & ~found.alive
            found = self._raised(found, alive, new if new.any() else here)
            if not new.any():
                return found, int((dead & ~alive).sum())
        return found, int(dead.sum())

    def _raised(self, found: _Fitted, alive: NDArray[np.bool_], which: NDArray[np.bool_]) -> _Fitted:
        """Other pieces with the old scores, those of `which` high enough that their own text is spelled with them."""
        score = np.where(found.alive, found.score, np.log(0.5 / max(found.uses.sum(), 1.0)))
        plain = self._decoded(alive, found.times, self.lattice.only(alive), score)
        pieces = self.candidates.pieces
        names = {i: pieces[i] for i in np.flatnonzero(which & ~self.fixed).tolist()}
        raised = spelling_themselves(plain.vocab, names.values())
        for i, piece in names.items():
            score[i] = raised[piece]
        return self._decoded(alive, found.times, plain.lattice, score)


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
