"""Vocabularies of simple tokenizers: the most frequent words, characters, n-grams or morphemes.

Each is a list sorted by count; they go through the same `Tokenizer` as everything else, so
that the evaluation can show what subwords gain over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from koktok.errors import UsageError, VocabSizeError
from koktok.segment.segmented import SegmentedCounts
from koktok.vocab import BYTE_PIECES, FORBIDDEN, Vocab

SimpleKind = Literal["word", "syllable", "jamo", "ngram", "morpheme"]

KINDS: tuple[SimpleKind, ...] = ("word", "syllable", "jamo", "ngram", "morpheme")
"""What `train_simple` can make."""


def train_simple(
    counts: SegmentedCounts,
    kind: SimpleKind,
    *,
    vocab_size: int,
    specials: Sequence[str] = (),
    characters: Iterable[str] | None = None,
    required: Iterable[str] = (),
    n: int = 2,
    min_count: int = 1,
    crosses: Callable[[str], bool] | None = None,
    allow_fewer: bool = False,
) -> Vocab:
    """A vocabulary of the most frequent units; ties by string.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3})
    >>> train_simple(counts, "morpheme", vocab_size=256 + 6 + 2).pieces
    (' ', '교', '서', '에', '집', '학', '에서', ' 학교')
    >>> train_simple(counts, "word", vocab_size=3, specials=["[UNK]"]).pieces
    (' 학교에서', ' 집에서')
    """
    if kind not in KINDS:
        raise UsageError(f"kind = {kind!r}; wanted one of {', '.join(KINDS)}")
    if kind == "ngram" and n < 2:
        raise UsageError(f"n = {n}; wanted at least 2 (an n-gram of 1 is a syllable)")
    seen = {char for word in counts.words for char in word} if characters is None else set(characters)
    bytes_ = 0 if kind == "word" else len(BYTE_PIECES)
    alphabet: set[str] = set()
    if kind != "word":
        alphabet = (set(required) if kind in ("syllable", "jamo") else seen | set(required)) - {FORBIDDEN}
        seen |= alphabet
    taken = {*specials, *BYTE_PIECES[:bytes_], *alphabet}  # text may not reach the ids of the first two
    units: Counter[str] = Counter()
    for i, (word, count) in enumerate(zip(counts.words, counts.n.tolist(), strict=True)):
        for unit in _units(counts, i, word, kind, n):
            units[unit] += count
    room = vocab_size - bytes_ - len(alphabet) - len(specials)
    if room < 0:
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and alphabet, bytes and special tokens alone take {vocab_size - room:,}",
            hint=f"--vocab-size {vocab_size - room} or more",
        )
    found = [
        unit
        for unit, count in sorted(units.items(), key=lambda item: (-item[1], item[0]))
        if count >= min_count
        and unit not in taken
        and FORBIDDEN not in unit
        and (kind == "word" or seen.issuperset(unit))
        and not (crosses and crosses(unit))
    ][:room]
    if len(found) < room and not allow_fewer:
        reached = vocab_size - room + len(found)
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and the text gives only {reached:,} ({kind} units that stand {min_count} "
            "times or more)",
            hint=f"--vocab-size {reached}",
        )
    return Vocab.plain(kind, [*sorted(alphabet), *found], specials=specials)


def _units(counts: SegmentedCounts, i: int, word: str, kind: SimpleKind, n: int) -> Iterable[str]:
    if kind == "word":
        return (word,)
    if kind == "morpheme":
        return counts.pieces(i)
    if kind == "ngram":
        return [word[a : a + size] for size in range(2, n + 1) for a in range(len(word) - size + 1)]
    return word
