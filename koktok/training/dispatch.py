"""The call of the trainer that a recipe names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from koktok.training.alphabet import check_size
from koktok.training.baselines import train_simple
from koktok.training.bpe import train_bpe
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
