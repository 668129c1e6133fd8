"""The same ids for gigabytes: the table of distinct words, flat arrays, compiled models, threads.

In: texts, and the parts of a tokenizer (vocabulary, normalizer, pattern). Out: flat ids, and texts again. Reading order: `texts`
(UTF-16), `units` (which cuts are safe, and cutting), `table`, `trie`, an algorithm each in `unigram`, `bpe` and `longest`,
`solvers`, `known_patterns`, then `encoder`, which puts them together, `mapped` (files), and `decoder`.
"""

from __future__ import annotations

from koktok.bulk.decoder import Decoder
from koktok.bulk.encoder import Encoder

__all__ = ["Decoder", "Encoder"]
