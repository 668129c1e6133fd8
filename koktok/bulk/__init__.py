"""The same ids for gigabytes: the table of distinct words, flat arrays, compiled models, threads.

`Tokenizer.encode` explains one text; this package encodes and decodes many. The reading order: `marks` (which cuts are
safe), `texts` (UTF-16), `units` (cutting), `table` (what was solved), `trie`, `symbols` and the solvers `viterbi`, `merges`,
`longest`, then `encoder`, which puts them together, and `decoder`.
"""

from __future__ import annotations

from koktok.bulk.arrays import TokenArray
from koktok.bulk.decoder import Decoder
from koktok.bulk.encoder import Encoder

__all__ = ["Decoder", "Encoder", "TokenArray"]
