"""The default trainer: scores for the pieces that `selection.py` chooses, exported as plain Unigram.

`UnigramSelection.fit` trains scores with which the decoder cuts as the cheapest segmentations do, by the semi-CRF of `scores.py`;
`finished` replaces the pieces that no word uses then (law 15).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from koktok.model.vocab import Vocab
from koktok.training import scores as crf
from koktok.training.alphabet import check_size
from koktok.training.job import Job, Learnt
from koktok.training.lattice import Lattice, cheapest, decode
from koktok.training.prune import Choice
from koktok.training.selection import Selection, Trial, point_of, train_points
from koktok.training.unigram_point import Point

RETRAIN = 2
"""Passes over the words where scores were trained before, for pieces that are nearly the same."""

PROHIBITIVE = 1000.0
"""Factor of `nu` with which no piece swallows a boundary that it need not."""


@dataclass(frozen=True, eq=False)
class Scored(Trial):
    """Pieces with scores, and how often a decoder uses each."""

    score: NDArray[np.float64]
    uses: NDArray[np.int64]


class UnigramSelection(Selection[Scored]):
    """The training of one point as a Unigram."""

    def room(self) -> int:
        """The number of ids that bytes, special tokens and required characters leave."""
        return self.job.vocab_size - 256 - len(self.job.specials) - int(self.candidates.required.sum())

    def check(self) -> None:
        """Refuse a vocabulary size that the candidates cannot have."""
        candidates, share = self.candidates, self.job.superwords.share
        beside = 256 + len(self.job.specials)
        longer = self.allowed[candidates.n_chars :]
        across = int((longer & candidates.superword[candidates.n_chars :]).sum())
        inside = beside + int(candidates.required.sum()) + int(longer.sum()) - across
        largest = inside + across
        while largest > inside and largest > inside + int((largest - beside) * share):
            largest -= 1  # of a smaller vocabulary fewer pieces may cross spaces
        check_size(self.job.vocab_size, beside + candidates.n_required, largest, "candidates")

    def fit(self, choice: Choice, alive: NDArray[np.bool_], factors: dict[str, float], before: Scored | None) -> Scored:
        """Train the scores of these pieces."""
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

    def uses(self, trial: Scored) -> NDArray[Any]:
        """How often each piece of two characters or more is used in the text."""
        longer = trial.alive.copy()
        longer[: self.candidates.n_chars] = False
        return trial.uses[longer]

    def _vocab(self, alive: NDArray[np.bool_], score: NDArray[np.float64]) -> Vocab:
        kept = alive.copy()
        kept[: self.candidates.n_chars] &= self.candidates.required
        pieces = self.candidates.pieces
        scores = {pieces[i]: float(score[i]) for i in np.flatnonzero(kept).tolist()}
        vocab = Vocab.unigram(scores, specials=tuple(self.job.specials))
        if not self.job.strings:
            return vocab
        return Vocab.unigram(spelling_themselves(vocab, self.job.strings, also=" "), specials=vocab.specials)

    def _decoded(
        self, alive: NDArray[np.bool_], factors: dict[str, float], score: NDArray[np.float64], lattice: Lattice
    ) -> Scored:
        """What the tokenizer does: it decodes with the scores of the vocabulary, which are rounded."""
        vocab = self._vocab(alive, score)
        table = dict(zip(vocab.pieces, vocab.scores, strict=True))
        rounded = self.candidates.tokens * vocab.byte_score  # of characters without a piece, which are bytes
        for i in np.flatnonzero(alive).tolist():
            rounded[i] = table.get(self.candidates.pieces[i], rounded[i])
        cut, uses = decode(lattice, rounded, self.pool)
        return Scored(alive, factors, vocab, cut, self.tokens_of(uses), score, uses)

    # ── pieces that no word uses ──────────────────────────────────────────────────────────────────────────────────

    def finished(self, trial: Scored) -> Learnt:
        """The vocabulary without pieces that no word uses."""
        trial, replaced = self._without_unused(trial)
        log = {"trainer": "unigram", "dead_pieces_replaced": replaced, **self.outcome(trial)}
        return Learnt(trial.vocab, log)

    def _without_unused(self, trial: Scored) -> tuple[Scored, int]:
        """The same with the next best pieces in place of those that no word uses; and how many there were.

        Training the scores again would only leave other pieces unused, so all other scores stay. A free place goes to the
        piece that saves most where it replaces the tokens of the decoder, and swallows no boundary, because those that are
        kept are as many as they should be; where nothing saves anything, to what swallows least, which are rare words.
        Unused pieces stay where no other piece could be used, and then for their own text at least: such a piece is often a
        frequent one (었습니다), which swallows its boundary in every word.
        """
        choice = self.choice({kind: factor * PROHIBITIVE for kind, factor in trial.factors.items()})
        dead = np.zeros_like(self.fixed)
        while (unused := trial.alive & ~self.fixed & (trial.uses == 0)).any():
            dead |= unused
            alive = choice.refill(trial.alive & ~unused, dead, trial.cut)
            new = alive & ~trial.alive
            trial = self._raised(trial, alive, new if new.any() else unused)
            if not new.any():
                return trial, int((dead & ~alive).sum())
        return trial, int(dead.sum())

    def _raised(self, trial: Scored, alive: NDArray[np.bool_], which: NDArray[np.bool_]) -> Scored:
        """Other pieces with the old scores, those of `which` high enough that their own text is spelled with them."""
        score = np.where(trial.alive, trial.score, np.log(0.5 / max(trial.uses.sum(), 1.0)))
        places = np.flatnonzero(which & ~self.fixed).tolist()
        names = [self.candidates.pieces[i] for i in places]
        raised = spelling_themselves(self._vocab(alive, score), names)
        score[places] = [raised[name] for name in names]
        return self._decoded(alive, trial.factors, score, self.lattice.only(alive, self.pool))


def spelling_themselves(vocab: Vocab, pieces: Iterable[str], *, also: str = "") -> dict[str, float]:
    """Scores with which these pieces of a vocabulary are used for their own text at least; the others keep theirs.

    Short pieces come first, so that one pass is enough; of equal sums the decoder takes the longest last piece. Numbers are
    used behind `also`, too, unless both are one piece.

    Examples
    --------
    >>> spelling_themselves(Vocab.unigram({"가": -1.0, "나": -1.0, "가나": -3.0}), ["가나"])["가나"]
    -2.0
    >>> digits = Vocab.unigram({" ": -4.0, "1": -3.0, "2": -3.0, " 1": -5.0, "12": -9.0})
    >>> spelling_themselves(digits, ["12"])["12"], spelling_themselves(digits, ["12"], also=" ")["12"]
    (-6.0, -4.0)
    """
    scores = dict(zip(vocab.pieces, vocab.scores, strict=True))
    for piece in sorted(pieces, key=len):
        for before in {"", also if piece.isdecimal() and also in scores else ""}:
            text = before + piece
            best = [0.0]
            for end in range(1, len(text) + 1):
                last = end == len(text)
                starts = (start for start in range(end) if not (last and start in (0, len(before))))
                sums = (best[start] + scores[text[start:end]] for start in starts if text[start:end] in scores)
                best.append(max(sums, default=-math.inf))
            scores[piece] = max(scores[piece], best[-1] - (scores[before] if before else 0.0))
    return scores


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
    point = point_of(job)
    return train_unigrams(job, [point])[point.name]


def train_unigrams(job: Job, points: Sequence[Point]) -> dict[str, Learnt]:
    """Train every point, see `train_points`."""
    seconds = {"compile": crf.warm_up()}
    trained = train_points(UnigramSelection, job, points)
    for learnt in trained.values():
        learnt.log["seconds"] = {**seconds, **learnt.log["seconds"]}
    return trained
