"""Text to counted words; reading order: counts, counting, shards, count_files, prepared.

In: sources of text, or lines. Out: `Counts`, distinct words with how often they occur, which is all that later stages see.
"""

from koktok.count.counts import Counts, Dropped, count_words, words_of

__all__ = ["Counts", "Dropped", "count_words", "words_of"]
