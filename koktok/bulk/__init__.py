"""The same ids for gigabytes: the table of distinct words, flat arrays, compiled models, threads.

In go texts, and what a tokenizer is made of (vocabulary, normalizer, pattern); out come flat ids, and texts again. `encode`
explains one text, this room does many. The reading order: `texts` (UTF-16), `units` (which cuts are safe, and cutting),
`table` (what was solved), `trie`, `solvers` and `chains` (BPE), `known_patterns`, then `encoder`, which puts them
together, `mapped` (files), `decoder`, and `shards` on a disk.
"""

from __future__ import annotations

from koktok.bulk.decoder import Decoder
from koktok.bulk.encoder import Encoder
from koktok.tokenizer.tokens import Tokens

__all__ = ["Decoder", "Encoder", "Tokens"]
