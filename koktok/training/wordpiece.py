"""WordPiece: merge the pair whose parts attract each other most (Schuster and Nakajima 2012).

BPE takes the most frequent pair; WordPiece divides its count by what its parts would give by chance,
freq(ab) / (freq(a) · freq(b)), so a rare pair whose parts occur together only beats a frequent one of frequent parts.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numba import njit

from koktok.model.vocab import BYTE_CHARS, MARK, Vocab, spell, unspell
from koktok.training.job import Job, Learnt
from koktok.training.pairs import PairCounter

_REPORT = 256  # merges between two calls of on_progress


@njit(cache=True)
def _before(spelling, a, b):
    """-1, 0 or 1: the order of two symbols as strings."""
    for k in range(spelling.shape[1]):
        if spelling[a, k] != spelling[b, k]:
            return -1 if spelling[a, k] < spelling[b, k] else 1
    return 0


@njit(cache=True)
def _best(pairs, active, symbols, length, spelling, lowest, longest):
    """The pair with the highest score, of equal ones the smaller strings; and how many pairs stay in the running."""
    lefts, rights, count = pairs[0], pairs[1], pairs[2]
    best, best_score, kept = -1, 0.0, 0
    for pair in active:
        left, right = lefts[pair], rights[pair]
        if count[pair] < lowest or length[left] + length[right] > longest:
            continue  # counts of old pairs only fall: out for ever
        active[kept] = pair
        kept += 1
        # Equal fractions give equal quotients while the product is under 2 ** 53: IEEE division rounds correctly.
        score = count[pair] / (symbols[left] * symbols[right])
        if best >= 0 and score == best_score:
            order = _before(spelling, left, lefts[best])
            if order < 0 or (order == 0 and _before(spelling, right, rights[best]) < 0):
                best = pair
        elif score > best_score:
            best, best_score = pair, score
    return best, best_score, kept


class _Picker:
    """The pair with the highest score; it follows the counts of symbols."""

    def __init__(self, counter: PairCounter, names: list[str], room: int, lowest: int, longest: int) -> None:
        self._counter, self._names, self._lowest, self._longest = counter, names, lowest, longest
        size, known = len(names) + room, counter.symbol >= 0
        self._symbols = np.zeros(size)
        np.add.at(self._symbols, counter.symbol[known], counter.weight[known])
        self._length = np.ones(size, dtype=np.int32)
        self._spelling = np.full((size, longest + len(MARK)), -1, dtype=np.int32)  # -1: a prefix comes first
        for symbol, name in enumerate(names):
            self._spelling[symbol, : len(name)] = [ord(char) for char in name]
        self._active = np.arange(counter.n_pairs, dtype=np.int32)

    def best(self) -> tuple[int, float] | None:
        tables = self._symbols, self._length, self._spelling
        pair, score, kept = _best(self._counter.pairs, self._active, *tables, self._lowest, self._longest)
        self._active = self._active[:kept]
        return (int(pair), float(score)) if pair >= 0 else None

    def merge(self, pair: int, piece: str) -> None:
        counter, symbol = self._counter, len(self._names)
        parts, known = [counter.left[pair], counter.right[pair]], counter.n_pairs
        self._names.append(piece)
        self._spelling[symbol, : len(piece)] = [ord(char) for char in piece]
        self._length[symbol] = self._length[parts].sum()
        self._symbols[symbol] = counter.merge(pair, symbol)
        np.subtract.at(self._symbols, parts, self._symbols[symbol])  # ㅋㅋ takes two of the same
        fresh = np.arange(known, counter.n_pairs, dtype=np.int32)
        self._active = np.concatenate([self._active, fresh[counter.count[known:] >= self._lowest]])


def _words(job: Job) -> dict[str, int]:
    """Words as run time reads them, cut at a `guard` and without leading spaces unless they are bytes, with counts."""
    guarded = Vocab.plain(job.kind, (), specials=job.specials).guarded
    found: Counter[str] = Counter()
    for whole, n in sorted(zip(job.counts.words, job.counts.n.tolist(), strict=True)):
        for word in guarded(whole):
            found[spell(word) if job.spelled else word.lstrip(" ")] += n
    found.pop("", None)
    return found


FLOORS = (5, 3, 2, 1)
"""Occurrences that a pair needs to be merged: the score favours rare pairs, so as many as the text allows."""


def train_wordpiece(job: Job) -> Learnt:
    """Train a WordPiece vocabulary, with the highest floor that leaves enough pairs.

    Examples
    --------
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> counts = SegmentedCounts.from_marked({"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5})
    >>> train_wordpiece(Job(counts, 11, "wordpiece", ["[UNK]"])).vocab.pieces[7:]
    ('##gs', '##ug', '##ugs')
    """
    for floor in FLOORS:
        learnt = trained(job, min_count=floor)
        if learnt.vocab.size == job.vocab_size:
            break
    return learnt


def trained(job: Job, *, min_count: int = 5) -> Learnt:
    """Merge pairs that occur `min_count` times, by their score; ties by string."""
    words, letters, spelled = _words(job), job.letters(), job.spelled
    counter = PairCounter([*words], [*words.values()], letters, heads=True)
    # Symbols are the letters inside words, the same letters at the head of words, then the joined pieces.
    names = [MARK + char for char in letters] + letters
    standing = set(counter.symbol.tolist())
    always = set(BYTE_CHARS) if spelled else set(job.required)
    bare = sorted(name for i, name in enumerate(names) if i in standing or name[-1] in always)
    room = job.room(len(bare))
    pick = _Picker(counter, names, room, min_count, job.max_length)
    merges: list[tuple[str, str]] = []
    scores, refused = dict[str, float](), 0
    while len(scores) < room and (found := pick.best()) is not None:
        pair, score = found
        left, right = names[counter.left[pair]], names[counter.right[pair]]
        piece = left + right.removeprefix(MARK)
        # A head may not look like a continued piece, nor any piece like a special token.
        clash = piece in job.specials or (piece.startswith(MARK) and not left.startswith(MARK))
        text = piece.removeprefix(MARK)
        if clash or (job.crosses and job.crosses(unspell(text) if spelled else text)):
            refused += 1
            counter.count[pair] = 0
            continue
        pick.merge(pair, piece)
        merges.append((left, right))
        scores[piece] = score
        if len(scores) % _REPORT == 0 or len(scores) == room:
            job.on_progress(len(scores), room)
    first, last = (next(iter(values), 0.0) for values in (scores.values(), reversed(scores.values())))
    log = {"wanted": room, "merges": len(scores), "first_score": first, "last_score": last, "refused": refused}
    vocab = Vocab.plain(job.kind, [*bare, *scores], specials=job.specials)
    return Learnt(vocab, {"stages": [{**log, "tokens": counter.tokens}]}, tuple(merges))
