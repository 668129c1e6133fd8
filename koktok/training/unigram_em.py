"""Classic Unigram (Kudo 2018, arXiv:1804.10959), as SentencePiece trains it: EM with likelihood as the cost.

Candidates and lattice are those of the default trainer, so that a difference in the
result is a difference of the cost. The steps follow SentencePiece's unigram_model_trainer.cc: two rounds of EM with the
digamma step (a sparse Dirichlet prior, Liang & Klein 2009), then the quarter of the pieces goes whose loss is least.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.model.vocab import Vocab
from koktok.training.alphabet import check_size
from koktok.training.candidates import CandidatePolicy, Candidates, mine
from koktok.training.job import Job, Learnt
from koktok.training.lattice import Lattice, decode, longest_word
from koktok.training.log import describe

SHRINK = 0.75
"""Share of the pieces that stays in a round of pruning; SentencePiece's shrinking_factor."""

SUB_ITERATIONS = 2
"""Rounds of EM before each pruning; SentencePiece's num_sub_iterations."""

LEAST = 0.5
"""A piece that is expected less often is dropped; SentencePiece's kExpectedFrequencyThreshold."""

MARGIN = 1.1
"""Pruning stops at this multiple of the size; the rest goes by score, as in SentencePiece."""


def digamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Derivative of log Γ, by its asymptotic series from 7 on."""
    x = np.array(x, dtype=np.float64)
    result = np.zeros_like(x)
    while (small := x < 7).any():
        result[small] -= 1 / x[small]
        x[small] += 1
    x -= 0.5
    square = 1 / x**2
    return result + np.log(x) + square * (1 / 24 - square * (7 / 960 - square * (31 / 8064 - square * 127 / 30720)))


def train_unigram_em(job: Job) -> Learnt:
    """Train one vocabulary by EM.

    Examples
    --------
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> counts = SegmentedCounts.from_marked({" 학교|에": 30, " 학교|에서": 20, " 집|에서": 10})
    >>> [p for p in train_unigram_em(Job(counts, 264)).vocab.pieces if len(p) > 1]
    [' 학교에', '에서']
    """
    counts, vocab_size, specials = job.counts, job.vocab_size, job.specials
    # SentencePiece seeds from the distinct words, each taken once: a seed occurs in two of them.
    policy = CandidatePolicy(
        min_count=2,
        max_length=job.max_length,
        aligned=False,
        coverage=job.coverage,
        crosses=job.crosses,
        min_words=2,
        closed=False,
    )
    candidates = mine(counts, policy, job.letters())
    n_required = int(candidates.required.sum())
    beside = 256 + len(specials)
    check_size(
        vocab_size, beside + n_required, beside + n_required + len(candidates.pieces) - candidates.n_chars, "candidates"
    )
    size = vocab_size - beside + candidates.n_chars - n_required  # characters written as bytes stay in the lattice
    inside = _pieces_as_words(candidates)
    lengths = np.fromiter(map(len, candidates.pieces), dtype=np.float64, count=len(candidates.pieces))
    alive = np.ones(len(candidates.pieces), dtype=bool)
    alive[: candidates.n_chars] = True
    # SentencePiece seeds the scores with log(n * length).
    weight = candidates.n * np.where(lengths > 1, lengths, 1.0)
    score = np.log(np.maximum(weight, LEAST)) - np.log(max(weight.sum(), 1.0))
    rounds = []
    with ThreadPoolExecutor(job.threads or os.cpu_count() or 1) as pool:
        while True:
            lattice = candidates.lattice.only(alive, pool)
            for _ in range(SUB_ITERATIONS):
                loss, expected = expectation(lattice, score, pool)
                alive[candidates.n_chars :] &= expected[candidates.n_chars :] >= LEAST
                score = _maximised(expected, alive, candidates.n_chars)
                lattice = lattice.only(alive, pool)
                rounds.append({"step": "em", "pieces": int(alive.sum()), "objective": loss})
            if int(alive.sum()) <= size * MARGIN:
                break
            alive = _pruned(lattice, inside, score, alive, candidates.n_chars, int(size * MARGIN), pool)
        longer = np.flatnonzero(alive[candidates.n_chars :]) + candidates.n_chars
        order = longer[np.argsort(-score[longer], kind="stable")]
        kept = np.zeros(len(score), dtype=bool)
        kept[: candidates.n_chars] = True
        kept[order[: size - candidates.n_chars]] = True
        lattice = candidates.lattice.only(kept, pool)
        kept[: candidates.n_chars] &= candidates.required
        vocab = Vocab.unigram(
            {candidates.pieces[i]: float(score[i]) for i in np.flatnonzero(kept).tolist()}, specials=specials
        )
        cut, uses = decode(lattice, np.where(candidates.tokens > 1, candidates.tokens * vocab.byte_score, score), pool)
    log = {
        "trainer": "unigram-em",
        "vocab_size": vocab_size,
        "candidates": len(candidates.pieces),
        "required": n_required,
        "rounds": rounds,
        **describe(counts, vocab, lattice.node, cut, float((uses * candidates.tokens).sum())),
    }
    return Learnt(vocab, log)


def expectation(
    lattice: Lattice, score: NDArray[np.float64], pool: ThreadPoolExecutor
) -> tuple[float, NDArray[np.float64]]:
    """Minus the log likelihood of the text, and how often each piece is expected."""

    def part(span: tuple[int, int]) -> tuple[float, NDArray[np.float64]]:
        expected = np.zeros(len(score))
        return _expectation(*span, *lattice.arrays, score, expected), expected

    loss, total = 0.0, np.zeros(len(score))
    for more, expected in pool.map(part, lattice.shards):
        loss += more
        total += expected
    return loss, total


def _maximised(expected: NDArray[np.float64], alive: NDArray[np.bool_], n_chars: int) -> NDArray[np.float64]:
    """The digamma step: it lowers rare pieces more than the logarithm of their share would."""
    n = np.where(alive, np.maximum(expected, LEAST), LEAST)
    total = n[alive].sum()
    score = digamma(n) - digamma(np.array([total]))[0]
    # Characters that the text hardly uses must stay possible, yet never be preferred.
    score[:n_chars] = np.maximum(score[:n_chars], digamma(np.array([LEAST]))[0] - np.log(total))
    return np.asarray(score)


def _pieces_as_words(candidates: Candidates) -> Lattice:
    """A lattice in which every candidate is a word: what would be read in its place."""
    index = {piece: i for i, piece in enumerate(candidates.pieces)}
    arc: list[int] = [0]
    length: list[int] = []
    piece: list[int] = []
    for text in candidates.pieces:
        arc.append(len(length))
        for end in range(1, len(text) + 1):
            for start in range(end - 1, -1, -1):
                i = index.get(text[start:end])
                if i is not None:
                    length.append(end - start)
                    piece.append(i)
            arc.append(len(length))
    sizes = np.fromiter((len(text) + 1 for text in candidates.pieces), dtype=np.int64, count=len(candidates.pieces))
    return Lattice(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.asarray(arc, dtype=np.int64),
        np.asarray(length, dtype=np.uint8),
        np.asarray(piece, dtype=np.int32),
        np.ones(len(candidates.pieces)),
    )


def _pruned(
    lattice: Lattice,
    inside: Lattice,
    score: NDArray[np.float64],
    alive: NDArray[np.bool_],
    n_chars: int,
    least: int,
    pool: ThreadPoolExecutor,
) -> NDArray[np.bool_]:
    """Drop the pieces whose loss is least, as SentencePiece's PruneSentencePieces."""
    _, uses = decode(lattice, score, pool)
    freq = uses.astype(np.float64)
    loss = np.full(len(score), -np.inf)
    _losses(*inside.arrays[:4], score, alive, freq, n_chars, loss)
    kept = np.zeros(len(score), dtype=bool)
    kept[:n_chars] = True
    wanted = max(least, int(SHRINK * alive.sum())) - n_chars
    order = np.argsort(-loss, kind="stable")
    order = order[(loss[order] > -np.inf)][:wanted]
    kept[order] = True
    return kept


@njit(nogil=True, cache=True)
def _expectation(lo, hi, node, arc, length, piece, weight, score, expected):
    size = longest_word(lo, hi, node)
    ahead, behind = np.empty(size), np.empty(size)
    loss = 0.0
    for w in range(lo, hi):
        base, end = node[w], node[w + 1]
        if end - base < 2:
            continue
        ahead[0] = 0.0
        for v in range(base + 1, end):
            top = -np.inf
            for e in range(arc[v], arc[v + 1]):
                top = max(top, ahead[v - length[e] - base] + score[piece[e]])
            total = 0.0
            for e in range(arc[v], arc[v + 1]):
                total += np.exp(ahead[v - length[e] - base] + score[piece[e]] - top)
            ahead[v - base] = top + np.log(total)
        likelihood = ahead[end - 1 - base]
        loss -= weight[w] * likelihood
        # `behind` holds exp(log backward + log forward - likelihood): the share of the paths through a node.
        for k in range(end - base):
            behind[k] = 0.0
        behind[end - 1 - base] = 1.0
        for v in range(end - 1, base, -1):
            for e in range(arc[v], arc[v + 1]):
                u = v - length[e] - base
                share = behind[v - base] * np.exp(ahead[u] + score[piece[e]] - ahead[v - base])
                expected[piece[e]] += weight[w] * share
                behind[u] += share
    return loss


@njit(nogil=True, cache=True)
def _losses(node, arc, length, piece, score, alive, freq, n_chars, loss):
    ahead, best = np.empty(300), np.empty(300, np.int64)
    total = 0.0
    for i in range(len(freq)):
        total += freq[i]
    for i in range(n_chars, len(score)):
        if not alive[i] or freq[i] == 0:
            continue
        base, end = node[i], node[i + 1]
        ahead[0] = 0.0
        for v in range(base + 1, end):
            ahead[v - base] = -np.inf
            for e in range(arc[v], arc[v + 1]):
                if piece[e] == i or not alive[piece[e]]:
                    continue
                s = ahead[v - length[e] - base] + score[piece[e]]
                if s > ahead[v - base]:
                    ahead[v - base] = s
                    best[v - base] = e
        if ahead[end - 1 - base] > score[i]:
            continue  # its own string is read in another way: it is never used
        n, parts = 0, 0.0
        v = end - 1
        while v > base:
            e = best[v - base]
            parts += np.log(freq[piece[e]] + freq[i])
            n += 1
            v -= length[e]
        without = parts - n * np.log(total + freq[i] * (n - 1))
        loss[i] = freq[i] / total * (np.log(freq[i]) - np.log(total) - without)
