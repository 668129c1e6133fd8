"""The default trainer: pieces chosen under the cost, scores by the semi-CRF, exported as plain Unigram.

This file adds: the dials put together. `lam`, `mu` and `nu` say what a token, a split morpheme and a swallowed boundary
cost; `PRESETS` are three named points of them; one run trains many points and sizes from one table of candidates.
Reading order: lattice, candidates, selection, crf, here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.errors import UsageError, VocabSizeError
from koktok.segment.segmented import SegmentedCounts
from koktok.train import scores as crf
from koktok.train.candidates import CandidatePolicy, Candidates, mine
from koktok.train.lattice import Dials, Lattice, NodeCosts, charge, node_costs
from koktok.train.prune import Round, select
from koktok.train.superwords import SuperwordPolicy, eojeol_counts
from koktok.train.unigram_log import describe
from koktok.train.unigram_reserve import by_script, check_reserve, floors_of
from koktok.vocab import Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PRESETS", "Point", "Trained", "train_unigram", "train_unigrams"]

SUPERWORDS = SuperwordPolicy()

FLOORS = (7, 5, 3, 2)
"""Where `min_count` goes when it leaves too few candidates."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Point:
    """One setting of the dials.

    Parameters
    ----------
    name : str
        What results are called by.
    lam, mu : float
        Cost of a token, and of a cut inside a morpheme.
    nu : float or mapping
        Cost of a swallowed boundary: one number (times the trust in each kind of boundary), or a number by kind with
        `rest` for those not named. A kind with 0 is no boundary at all.
    rarity : float
        How much more the boundaries of rare words weigh (see `Dials`).
    min_count, max_length, aligned
        Which substrings may become pieces (see `CandidatePolicy`).
    per_id : float
        Candidates that each id wants: where `min_count` leaves fewer, it is lowered along `FLOORS`.
    sharp : float
        The scores are trained on costs times this: high, and only the cheapest path is a good one.
    damping : float
        A word with n occurrences weighs n ** damping while scores are trained.
    epochs : int
        Passes over the words while scores are trained.
    """

    name: str
    lam: float = 1.0
    mu: float = 0.5
    nu: float | Mapping[str, float] = 0.38
    rarity: float = 0.2
    min_count: int = 10
    max_length: int = 12
    aligned: bool = True
    per_id: float = 0.0
    sharp: float = 3.0
    damping: float = 0.5
    epochs: int = crf.EPOCHS

    @property
    def dials(self) -> Dials:
        """The costs."""
        return Dials.of(self.lam, self.mu, self.nu, self.rarity)

    def sharpened(self) -> Dials:
        """The costs that scores are trained on."""
        dials = self.dials
        times = self.sharp / dials.lam
        return Dials(dials.lam * times, dials.mu * times, tuple(nu * times for nu in dials.nu), dials.rarity)


PRESETS: dict[str, Point] = {
    # Tuned on the train part of the Kaist treebank and on tokens of the held-out lines that eval/ reports (not on its dev and
    # test parts), vocabulary 32,000; figures in eval/LOG.md. Rarity is what makes the
    # dial smooth: at 1.05 times SentencePiece's tokens F is .711 with rarity 0 (nu .95) and .750 with .3 (nu .3); .1 and
    # .5 lie under the curve of .2, .3 on it. Rarer candidates (min_count 5) help where cuts are never sold (aligned F
    # +.0035, same tokens) and cost `short` .2 % tokens.
    # Candidates an id: at 64,000 `short` has .943 / F .531 with min_count 5 (3.4 an id) and .951 / .511 with 10 (1.8); at 32,000
    # 10 leaves 3.6 and is best. With 2.1 MB and 16,000 ids 10 leaves 1.3 (1.994 tokens, F .589), 5 leaves 2.5 (1.932, .600), 3
    # leaves 4.5 (1.946, .601); `aligned`: 5 gives 2.246, .842, and 3 gives 2.267, .853.
    "short": Point("short", mu=0.5, nu=0.2, rarity=0.2, per_id=2.25),
    "balanced": Point("balanced", mu=0.5, nu=0.38, rarity=0.2, per_id=2.25),
    # No cut is worth a token here, so rarity has nothing to say; rarer candidates keep rare stems whole.
    "aligned": Point("aligned", mu=2.0, nu=2.0, rarity=0.0, min_count=5, per_id=3.0),
}
"""Fewest tokens; the default; truest cuts."""


@dataclass(frozen=True)
class Trained:
    """What a training gives.

    Parameters
    ----------
    vocab : Vocab
    log : dict
        What was done, in plain values that JSON can write; `seconds` in it is the only part that is not reproducible.
    """

    vocab: Vocab
    log: dict[str, Any] = field(repr=False)


def train_unigram(
    counts: SegmentedCounts,
    *,
    vocab_size: int,
    preset: str = "balanced",
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
    on_progress: Progress | None = None,
) -> Trained:
    """Train one vocabulary.

    A pure function of the counts and the options; `threads` changes nothing but the time (law 5).

    Parameters
    ----------
    counts : SegmentedCounts
        Distinct words with their cuts.
    vocab_size : int
        All ids: 256 bytes, pieces and specials.
    preset : "short", "balanced" or "aligned"
        Where the dials that are None stand.
    lam, mu, nu, rarity, min_count, max_length, aligned
        See `Point`; a `min_count` that is named is not lowered.
    required : collection of str
        Characters that must be pieces.
    coverage : float
        Besides them, the most frequent characters up to this share of the text; 0 for none.
    specials : sequence of str
        Special and reserved tokens.
    crosses : callable, optional
        True for strings that no piece may be, because the pattern of the tokenizer would cut them.
    runs : SegmentedCounts, optional
        Runs of eojeols (see `superword.segment_runs`). With them the trainer works on the runs in place of the words,
        and pieces may cross the spaces inside them.
    superwords : SuperwordPolicy
        Which pieces may, and what share of the pieces at most.
    run_documents : ndarray of uint64, optional
        Documents that hold each run, for the floor of documents.
    reserve : mapping of str to float, optional
        How scripts ("hangul", "latin", "other", see `script_of`) share the vocabulary: at least so much of all pieces,
        single characters counted, belongs to each; what is left goes where the cost says. Without it, all of it does.
    seed : int
        Of the order in which scores are trained.
    threads : int, optional
        All cores by default.
    on_progress : callable, optional
        Called with (stage, steps done, steps in all).

    Raises
    ------
    VocabSizeError
        When the size is under the alphabet, bytes and specials, or over all candidates.
    UsageError
        For an unknown preset, impossible dials, or a `reserve` that does not fit.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    >>> vocab = train_unigram(counts, vocab_size=267, preset="aligned", min_count=2).vocab
    >>> [piece for piece in vocab.pieces if len(piece) > 1]
    [' 학교', '에서', ' 집', ' 학', '학교']
    """
    if preset not in PRESETS:
        raise UsageError(f"the preset `{preset}` is not known", hint=f"--preset {' | '.join(PRESETS)}")
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
    point = replace(PRESETS[preset], **{key: value for key, value in given.items() if value is not None})
    trained = train_unigrams(
        counts,
        points=[point],
        vocab_sizes=[vocab_size],
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
    on_progress: Progress | None = None,
) -> dict[tuple[str, int], Trained]:
    """Train every point at every size; the candidates are found once, and smaller sizes start from larger ones.

    The larger sizes in a run have a small influence on the smaller ones: a size trained alone may differ in a few pieces.

    Returns
    -------
    dict of (point name, size) to Trained

    Raises
    ------
    VocabSizeError, UsageError
        As `train_unigram`.
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
    steps = len(points) * len(vocab_sizes)
    results: dict[tuple[str, int], Trained] = {}
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        pending = []
        for done, point in enumerate(points):
            if on_progress:
                on_progress("select", done, len(points))
            found = mined[point.max_length, point.aligned]
            floors = {size: _lowered(point, found, size).min_count for size in vocab_sizes}
            for floor in sorted(set(floors.values())):  # sizes of one floor are chosen one out of the other
                sizes = [size for size in vocab_sizes if floors[size] == floor]
                lowered = replace(point, min_count=floor)
                run = _Run(text, found, lowered, tuple(specials), seed, superwords.share, reserve or {})
                pending += [(point, size, run, alive) for size, alive in run.select(sizes, pool).items()]
        clock = time.perf_counter()
        fitted = pool.map(lambda job: job[2].fit(job[3]), pending)  # a fit is one thread's work
        for done, ((point, size, run, alive), score) in enumerate(zip(pending, fitted, strict=True), start=1):
            results[point.name, size] = run.finish(size, alive, score)
            if on_progress:
                on_progress("scores", done, steps)
        seconds["scores"] = time.perf_counter() - clock
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


class _Run:
    """One point on its way: which candidates it may use, what they cost, and what became of them."""

    def __init__(
        self,
        counts: SegmentedCounts,
        candidates: Candidates,
        point: Point,
        specials: tuple[str, ...],
        seed: int,
        share: float,
        reserve: Mapping[str, float],
    ) -> None:
        self.counts, self.candidates, self.point, self.specials, self.seed = counts, candidates, point, specials, seed
        self.share, self.reserve = share, reserve
        self.frequency = eojeol_counts(counts)
        self.allowed = candidates.n >= point.min_count
        self.allowed[: candidates.n_chars] = True
        self.lattice = candidates.lattice.only(self.allowed)
        self.costs: NodeCosts = node_costs(counts, self.lattice, point.dials, self.frequency)
        self.price = point.lam * candidates.tokens
        self.rounds: list[Round] = []
        self.seconds = 0.0

    def select(self, vocab_sizes: Sequence[int], pool: ThreadPoolExecutor) -> dict[int, NDArray[np.bool_]]:
        clock = time.perf_counter()
        found = self.candidates
        n_required = int(found.required.sum())
        beside = 256 + len(self.specials)
        longer = self.allowed[found.n_chars :]
        across = int((longer & found.superword[found.n_chars :]).sum())
        for size in vocab_sizes:
            most = min(across, int((size - beside) * self.share)) if across else 0
            _check_size(size, beside + n_required, beside + n_required + int(longer.sum()) - across + most)
        fixed = np.zeros(len(found.pieces), dtype=bool)
        fixed[: found.n_chars] = True
        # Characters without a piece are in the lattice as bytes; they take no slot.
        more = found.n_chars - n_required - beside
        chosen = select(
            self.lattice,
            self.costs,
            self.price,
            fixed,
            [size + more for size in vocab_sizes],
            pool,
            self.rounds.append,
            among=self.allowed,
            limited={size + more: (found.superword, int((size - beside) * self.share)) for size in vocab_sizes},
            floors={size + more: floors_of(found, self.reserve, size - beside) for size in vocab_sizes},
        )
        self.seconds = time.perf_counter() - clock
        return {size: chosen[size + more] for size in vocab_sizes}

    def fit(self, alive: NDArray[np.bool_]) -> tuple[Lattice, NDArray[np.float64]]:
        lattice = self.lattice.only(alive)
        with ThreadPoolExecutor(1) as alone:
            _, uses, _ = charge(lattice, self.costs, self.price, alone)
        start = np.log(np.maximum(uses, 0.5) / max(uses.sum(), 1.0))
        sharpened = self.point.sharpened()
        score = crf.fit(
            lattice,
            node_costs(self.counts, lattice, sharpened, self.frequency),
            sharpened.lam * self.candidates.tokens,
            start,
            damping=self.counts.stands * self.counts.own**self.point.damping,
            epochs=self.point.epochs,
            seed=self.seed,
        )
        return lattice, score

    def finish(self, size: int, alive: NDArray[np.bool_], fitted: tuple[Lattice, NDArray[np.float64]]) -> Trained:
        lattice, score = fitted
        kept = alive.copy()
        kept[: self.candidates.n_chars] &= self.candidates.required
        pieces = self.candidates.pieces
        vocab = Vocab.unigram(
            {pieces[i]: float(score[i]) for i in np.flatnonzero(kept).tolist()}, specials=self.specials
        )
        log = {
            "trainer": "unigram",
            "point": asdict(self.point),
            "vocab_size": size,
            "candidates": int(self.allowed.sum()),
            "required": int(self.candidates.required.sum()),
            "pieces_by_script": by_script(vocab.pieces),
            "rounds": [asdict(entry) for entry in self.rounds],
            **describe(self.counts, lattice, score, vocab, self.candidates.tokens),
            "seconds": {"select": self.seconds},
        }
        return Trained(vocab, log)


def _check_size(size: int, smallest: int, largest: int) -> None:
    if size < smallest:
        raise VocabSizeError(
            f"a vocabulary of {size:,} is too small: bytes, special tokens and the required characters alone "
            f"take {smallest:,}",
            hint=f"--vocab-size {smallest} or more",
        )
    if size > largest:
        raise VocabSizeError(
            f"a vocabulary of {size:,} is too large: this text has candidates for at most {largest:,}",
            hint=f"--vocab-size {largest}",
        )
