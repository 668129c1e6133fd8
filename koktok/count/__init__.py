"""Lines to counts; reading order: lines, counts, rows, table, engine, shards, files, prepared.

`Counts` is what later stages see. `lines` counts what is in memory; `shards` counts files of any size on all cores: text
in shards of 16 MiB, each shard a hash table in compiled code (`table`), its sorted rows (`rows`) kept in memory or on
disk, and all of them summed by an `engine`. `files` keeps counts as Parquet.
"""

from koktok.count.counts import Counts, Dropped
from koktok.count.lines import WordCounter, count_words, words_of

__all__ = ["Counts", "Dropped", "WordCounter", "count_words", "words_of"]
