"""The call of the trainer that a recipe names, and the check of a vocabulary size before words are analysed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from koktok.count import Counts
from koktok.model.vocab import BYTE_PIECES
from koktok.recipe import Recipe
from koktok.segment.segmented import SegmentedCounts
from koktok.training.alphabet import check_size
from koktok.training.baselines import train_simple
from koktok.training.bpe import train_bpe
from koktok.training.candidates import CandidatePolicy, mine
from koktok.training.job import COUNTED, Job, Learnt
from koktok.training.log import account
from koktok.training.spm import train_spm
from koktok.training.unigram import train_unigram
from koktok.training.unigram_em import train_unigram_em
from koktok.training.wordpiece import train_wordpiece

TRAINERS: Mapping[str, Callable[[Job], Learnt]] = {
    "unigram": train_unigram,
    "bpe": train_bpe,
    "bpe-bytes": train_bpe,
    "wordpiece": train_wordpiece,
    "wordpiece-bytes": train_wordpiece,
    **dict.fromkeys(COUNTED, train_simple),
}
"""The trainer of each kind of vocabulary."""

OTHERS: Mapping[str, Callable[[Job], Learnt]] = {"spm": train_spm, "unigram-em": train_unigram_em}
"""Other trainers of a unigram or BPE vocabulary."""


def train(job: Job) -> Learnt:
    """Train the model that the recipe names."""
    name = "spm" if job.options.backend == "spm" else job.options.model
    learnt = {**TRAINERS, **OTHERS}[name](job)
    check_size(job.vocab_size, 0, learnt.vocab.size, f"pieces for a {name} vocabulary")
    # The default trainer's account is its own: it decodes all words, in compiled code.
    own = {} if "boundaries" in learnt.log else account(job.counts, learnt.vocab)
    return Learnt(learnt.vocab, {"trainer": name, "vocab_size": learnt.vocab.size, **learnt.log, **own})


def check_counts(counts: Counts, recipe: Recipe) -> None:
    """Refuse a vocabulary size that these words cannot give, before they are analysed.

    The largest size is an upper bound: cuts exclude some more pieces (one in ten of a small text), so a training may still
    fail for lack of pieces.
    """
    options = recipe.train
    if options.model not in ("unigram", "unigram-em", "bpe") or recipe.spelled:
        return
    job = Job.of(SegmentedCounts.uncut(counts), recipe, recipe.pattern)
    assert job.alphabet is not None, "these models list one"
    lengths = np.fromiter(map(len, counts.words), dtype=np.int64, count=len(counts))
    whole = int(((lengths > 1) & (lengths <= options.max_piece_length) & (counts.n > 1)).sum())
    if options.model != "unigram" or options.superwords or whole >= options.vocab_size:
        return  # whole words alone are candidates enough
    policy = CandidatePolicy(
        min_count=2, max_length=options.max_piece_length, aligned=False, coverage=1e-9, crosses=job.crosses
    )
    found = mine(job.counts, policy, job.alphabet)
    beside = len(BYTE_PIECES) + len(recipe.special_tokens) + int(found.required.sum())
    largest = beside + len(found.pieces) - found.n_chars
    # Cuts take up to a third of the candidates of a small text: the way between the sizes is safe.
    check_size(options.vocab_size, beside, largest, "candidates", safe=(beside + largest) // 2)
