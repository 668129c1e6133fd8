"""A `Job` (words with cuts, a size, dials) to a `Learnt` (a vocabulary and a log), a file an algorithm.

Reading order: alphabet, job; then `baselines`, `bpe` and `wordpiece` (both on pairs), `spm` (the sentencepiece library); then
the default trainer: lattice, candidates, prune, scores, unigram_point, unigram. A trainer is a pure function of its job.
"""
