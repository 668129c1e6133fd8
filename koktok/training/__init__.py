"""SegmentedCounts to `Vocab`, a file an algorithm.

Reading order: alphabet; then `bpe` and `wordpiece` (both on joins), `simple`, `spm` (the sentencepiece library); then the
default trainer `unigram`: lattice, candidates, selection, crf. A trainer is a pure function of counts and options.
"""
