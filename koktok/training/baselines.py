"""Vocabularies of simple tokenizers: the most frequent words, characters, n-grams or morphemes.

Each is a list sorted by count; they go through the same `Tokenizer` as everything else, so that the evaluation can show what
subwords gain over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from koktok.errors import UsageError
from koktok.model.vocab import BYTE_PIECES, SPACE_MARK, Vocab
from koktok.training.job import UNLISTED, Job, Learnt


def train_simple(job: Job) -> Learnt:
    """A vocabulary of the most frequent units; ties by string.

    Examples
    --------
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3})
    >>> train_simple(Job(counts, 256 + 6 + 2, "morpheme")).vocab.pieces
    (' ', '교', '서', '에', '집', '학', '에서', ' 학교')
    >>> train_simple(Job(counts, 3, "word", ["[UNK]"])).vocab.pieces
    (' 학교에서', ' 집에서')
    """
    counts, kind, n = job.counts, job.kind, job.options.ngram
    if kind == "ngram" and n < 2:
        raise UsageError(f"expected n-grams of at least 2 syllables, got {n}")
    letters = job.letters()
    alphabet = [] if kind == "word" else sorted(set(job.required) - {SPACE_MARK}) if kind in UNLISTED else letters
    known = {*letters, *alphabet}
    taken = {*job.specials, *(() if kind == "word" else BYTE_PIECES), *alphabet}  # text may not reach the first two
    units: Counter[str] = Counter()
    for i, (word, count) in enumerate(zip(counts.words, counts.n.tolist(), strict=True)):
        for unit in _units(job, i, word):
            units[unit] += count
    room = job.room(len(alphabet))
    found = [
        unit
        for unit, _ in sorted(units.items(), key=lambda item: (-item[1], item[0]))
        if unit not in taken
        and SPACE_MARK not in unit
        and (kind == "word" or known.issuperset(unit))
        and not (job.crosses and job.crosses(unit))
    ][:room]
    return Learnt(Vocab.plain(kind, [*alphabet, *found], specials=job.specials), {})


def _units(job: Job, i: int, word: str) -> Iterable[str]:
    if job.kind == "word":
        return (word,)
    if job.kind == "morpheme":
        return job.counts.pieces(i)
    if job.kind == "ngram":
        return [word[a : a + size] for size in range(2, job.options.ngram + 1) for a in range(len(word) - size + 1)]
    return word
