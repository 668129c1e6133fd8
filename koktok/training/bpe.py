"""BPE: join the most frequent pair of neighbours, again and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909).

Joins are learnt in stages, first inside morphemes, then across them; the share of the
vocabulary that each stage gets decides between "aligned" and "short". A stage is plain BPE over words that are cut
where it may not join, and it starts from what run time would make of those words with the pieces so far, because at
run time no cut is known. The last stage, where it is wanted, joins across eojeols (수 있, 는 것), and learns from counted runs.

Counting is incremental: each pair keeps its count and the places where it stood. Only pairs over a falling threshold
wait in the heap, because most pairs are never candidates.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from koktok.count import words_of
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.training.job import Job, Learnt
from koktok.training.pairs import PairCounter
from koktok.training.superwords import crosses_space
from koktok.vocab import BYTE_PIECES, Vocab, spell, unspell

_BATCH = 1 << 14  # pairs that enter the heap at a time; any number gives the same merges
_REPORT = 256  # merges between two calls of on_progress


@dataclass(frozen=True)
class Stage:
    """One stage of the curriculum."""

    name: str
    share: float
    swallows: frozenset[Kind] = frozenset()


ANYWHERE = (Stage("eojeol", 1.0, frozenset(Kind)),)
"""One stage that joins whatever stands in a word."""


def curriculum(share: float) -> tuple[Stage, ...]:
    """Two stages: `share` of the merges inside morphemes, the rest anywhere inside an eojeol."""
    stages = (Stage("morpheme", share), Stage("eojeol", 1 - share, frozenset(Kind)))
    return tuple(stage for stage in stages if stage.share)


class Queue:
    """The most frequent pair first; ties by the key of the pair.

    Holds only pairs with counts of at least a threshold, which falls when they have run out. Counts of old pairs only
    fall (a symbol is born in one join, and all its pairs with it), so an entry is corrected when it comes up.
    """

    def __init__(
        self, counter: PairCounter, key: Callable[[int], Any], fits: Callable[[int], bool], lowest: int
    ) -> None:
        self._counter, self._key, self._fits, self._lowest = counter, key, fits, lowest
        self._heap: list[tuple[int, Any, int]] = []
        self._threshold = 1 << 62

    def push(self, pairs: Iterable[int]) -> None:
        """Offer pairs; those under the threshold are met again when it falls."""
        count = self._counter.count
        for pair in pairs:
            n = int(count[pair])
            if n >= self._threshold and self._fits(pair):
                heapq.heappush(self._heap, (-n, self._key(pair), pair))

    def pop(self) -> int | None:
        """The best pair, or None when no count reaches the lowest."""
        count, heap = self._counter.count, self._heap
        while True:
            while heap:
                negative, key, pair = heap[0]
                n = int(count[pair])
                if n == -negative:
                    heapq.heappop(heap)
                    return pair
                if n >= self._threshold:
                    heapq.heapreplace(heap, (-n, key, pair))
                else:
                    heapq.heappop(heap)
            if self._threshold <= self._lowest:
                return None
            self._lower()

    def _lower(self) -> None:
        count = self._counter.count
        open_ = count[(count >= self._lowest) & (count < self._threshold)]
        ceiling = self._threshold
        self._threshold = self._lowest
        if len(open_) > _BATCH:
            self._threshold = int(np.partition(open_, len(open_) - _BATCH)[len(open_) - _BATCH])
        self.push(np.nonzero((count >= self._threshold) & (count < ceiling))[0].tolist())


def parts_of(
    counts: SegmentedCounts, swallows: Collection[Kind], spell: Callable[[str], str] = str
) -> tuple[list[str], list[int]]:
    """The distinct parts of words between the cuts that may not be swallowed, sorted, with counts.

    Examples
    --------
    >>> parts_of(SegmentedCounts.from_marked({" 집|에": 2, " 산|에": 3}), swallows=())
    ([' 산', ' 집', '에'], [3, 2, 5])
    """
    found: Counter[str] = Counter()
    closed = ~np.isin(counts.kind, [int(kind) for kind in swallows])
    offsets, bounds = counts.offset.tolist(), counts.start.tolist()
    for i, (word, n) in enumerate(zip(counts.words, counts.n.tolist(), strict=True)):
        start = 0
        for k in range(bounds[i], bounds[i + 1]):
            if closed[k]:
                found[word[start : offsets[k]]] += n
                start = offsets[k]
        found[word[start:]] += n
    spelled = sorted((spell(part), n) for part, n in found.items() if part)
    return [part for part, _ in spelled], [n for _, n in spelled]


class Learner:
    """Pieces and merges so far; a stage adds to them."""

    def __init__(self, job: Job) -> None:
        self.letters = job.letters()
        self.pieces = list(self.letters)
        self.merges: list[tuple[str, str]] = []
        self.max_length, self.spelled = job.max_length, job.spelled
        self._symbols: list[tuple[int, int]] = []
        self._crosses = job.crosses
        # A piece that spells a special token or a byte piece would let user text reach its id.
        self._taken = frozenset((*job.specials, *(() if job.spelled else BYTE_PIECES)))

    def key(self, left: int, right: int) -> Any:
        """The order of pairs of one count: by string."""
        return self.pieces[left], self.pieces[right]

    def learn(
        self, counts: SegmentedCounts, stage: Stage, until: int, lowest: int, on_progress: Callable[[int], None]
    ) -> dict[str, Any]:
        """Join until there are `until` merges or no pair stands `lowest` times."""
        rows, n = parts_of(counts, stage.swallows, spell if self.spelled else str)
        counter = PairCounter(rows, n, self.letters)
        self.replay(counter)
        begun = len(self.merges)
        made = self.grow(counter, until, lowest, on_progress)
        return {
            "stage": stage.name,
            "wanted": until - begun,
            "merges": len(self.merges) - begun,
            **made,
            "parts": len(rows),
            "tokens": counter.tokens,
        }

    def replay(self, counter: PairCounter) -> None:
        """What run time makes of the rows with the pieces so far: BPE is its merges, replayed."""
        for symbol, merge in enumerate(self._symbols, start=len(self.letters)):
            known = counter.find(*merge)
            if known >= 0:
                counter.merge(known, symbol)

    def grow(
        self,
        counter: PairCounter,
        until: int,
        lowest: int,
        on_progress: Callable[[int], None],
        refuses: Callable[[int, str], bool] = lambda _pair, _text: False,
    ) -> dict[str, int]:
        """Join until there are `until` merges or no pair stands `lowest` times; `refuses` sees the pair and its text."""
        lefts, rights = counter.left, counter.right
        pieces, length = self.pieces, [len(piece) for piece in self.pieces]

        def fits(pair: int) -> bool:
            return length[int(lefts[pair])] + length[int(rights[pair])] <= self.max_length

        def key(pair: int) -> Any:
            return self.key(int(lefts[pair]), int(rights[pair]))

        queue = Queue(counter, key, fits, lowest)
        first = last = refused = 0
        while len(self.merges) < until and (pair := queue.pop()) is not None:
            left, right = int(lefts[pair]), int(rights[pair])
            piece = pieces[left] + pieces[right]
            text = unspell(piece) if self.spelled else piece
            if piece in self._taken or (self._crosses and self._crosses(text)) or refuses(pair, text):
                refused += 1
                counter.count[pair] = 0
                continue
            last = int(counter.count[pair])
            first = first or last
            known = counter.n_pairs
            counter.merge(pair, len(pieces))
            lefts, rights = counter.left, counter.right
            self.merges.append((pieces[left], pieces[right]))
            self._symbols.append((left, right))
            pieces.append(piece)
            length.append(len(piece))
            queue.push(range(known, counter.n_pairs))
            if len(self.merges) % _REPORT == 0:
                on_progress(len(self.merges))
        on_progress(len(self.merges))
        return {"first_count": first, "last_count": last, "refused": refused}

    def shrink(self, merges: int) -> None:
        """Forget the merges behind so many."""
        del self.merges[merges:], self._symbols[merges:], self.pieces[len(self.letters) + merges :]


# ── across eojeols ────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Merges inside eojeols have lower ranks and are done first at run time, so what a later merge finds in a sentence is the tokens
# of its words, one behind the other. Where the last token of a word and the first of the next hold no cut inside and end where
# a word or a cut does, the gap between them may be joined; a chain is a stretch of tokens with such gaps. BPE over chains
# swallows no cut inside an eojeol, and needs nothing that the other stages do not have.


class Word(NamedTuple):
    """The tokens of a word as the last stage sees them."""

    symbols: tuple[int, ...]
    head: bool
    tail: bool


def tokens_of(learner: Learner, runs: SegmentedCounts, *, inner: bool = False) -> dict[str, Word]:
    """Every distinct word of the runs, as run time cuts it with the pieces so far."""
    cuts: dict[str, list[int]] = {}
    for i, run in enumerate(runs.words):
        at = 0
        offsets = runs.offset[int(runs.start[i]) : int(runs.start[i + 1])].tolist()
        k = 0
        for word in words_of(run):
            end, begin = at + len(word), k
            while k < len(offsets) and offsets[k] < end:
                k += 1
            if word not in cuts:
                cuts[word] = [offset - at for offset in offsets[begin:k]]
            at = end
    rows = sorted(cuts)
    spelled = [spell(word) for word in rows] if learner.spelled else rows
    counter = PairCounter(spelled, [1] * len(rows), learner.letters)
    learner.replay(counter)
    symbol = counter.symbol.tolist()
    found, at = {}, 0
    for word, row in zip(rows, spelled, strict=True):
        ends = [k for k in range(1, len(row)) if symbol[at + k] != -2] + [len(row)]
        symbols = tuple(s for s in symbol[at : at + len(row)] if s != -2)
        at += len(row)
        edges = cuts[word]
        if learner.spelled:
            edges = [len(word[:cut].encode()) for cut in edges]
        whole = inner or not edges
        # The token that ends in ends[0] holds no cut and ends at one (or is the word); likewise the last one.
        head = whole or (ends[0] <= edges[0] and (ends[0] == len(row) or ends[0] in edges))
        start = ends[-2] if len(ends) > 1 else 0
        tail = whole or (start >= edges[-1] and (start == 0 or start in edges))
        if not inner and not edges and len(ends) > 1:
            head = tail = False  # a piece of a morpheme
        found[word] = Word(symbols, head and symbols[0] >= 0, tail and symbols[-1] >= 0)
    return found


def chains_of(runs: SegmentedCounts, words: dict[str, Word], *, inner: bool = False) -> Iterator[tuple[int, list[int]]]:
    """Number of the run, and the symbols of each chain in it that has two or more.

    Examples
    --------
    >>> words = {"그는": Word((5, 6), True, True), " 것": Word((7,), True, True), " 같다": Word((8, 9), True, True)}
    >>> runs = SegmentedCounts.from_marked({"그|는 것 같|다": 1})
    >>> list(chains_of(runs, words))
    [(0, [6, 7, 8])]
    """
    for i, run in enumerate(runs.words):
        chain: list[int] = []
        for text in words_of(run):
            word = words[text]
            if inner:
                for symbol in word.symbols:
                    if symbol >= 0:
                        chain.append(symbol)
                        continue
                    if len(chain) > 1:
                        yield i, chain
                    chain = []
                continue
            if word.head and chain:
                chain.append(word.symbols[0])
                if word.tail and len(word.symbols) == 1:
                    continue
            if len(chain) > 1:
                yield i, chain
            chain = [word.symbols[-1]] if word.tail else []
        if len(chain) > 1:
            yield i, chain


def learn_across(learner: Learner, job: Job, until: int, on_progress: Callable[[int], None]) -> dict[str, Any]:
    """Join across the spaces of runs until there are `until` merges, or none is over the floors of the policy."""
    runs, policy, documents = job.runs, job.superwords, job.run_documents
    assert runs is not None, "superwords are learnt from runs"
    words = tokens_of(learner, runs, inner=policy.inner)
    n = runs.n.tolist()
    rows: list[str] = []
    weight: list[int] = []
    where: list[int] = []
    size: list[int] = []
    for i, chain in chains_of(runs, words, inner=policy.inner):
        rows.append("".join(map(chr, chain)))  # a private alphabet: the symbol is the code point
        weight.append(n[i])
        where.append(i)
        size.append(len(chain))
    counter = PairCounter(rows, weight, [chr(symbol) for symbol in range(len(learner.pieces))])
    run = np.repeat(np.asarray(where, dtype=np.int64), size)
    stands = runs.stands
    held = np.ones(len(runs)) if documents is None else np.asarray(documents, dtype=np.float64)

    def refuses(pair: int, text: str) -> bool:
        if not crosses_space(text):  # inside an eojeol: a step of an inner superword
            return False
        if not policy.looks_right(text):
            return True
        seen = np.unique(run[counter.standing(pair)])
        enough = documents is None or held[seen].sum() >= policy.min_documents
        return stands[seen].sum() < policy.min_runs or not enough

    begun = len(learner.merges)
    made = learner.grow(counter, until, policy.min_count, on_progress, refuses)
    return {
        "stage": "superword",
        "wanted": until - begun,
        "merges": len(learner.merges) - begun,
        **made,
        "parts": len(rows),
        "tokens": counter.tokens,
    }


def train_bpe(job: Job, *, stages: Sequence[Stage] | None = None, min_count: int = 2) -> Learnt:
    """Train a BPE vocabulary, over characters or bytes.

    Counts are 64-bit; Hugging Face counts pairs in 32 bits, so parity ends at two thousand million.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3, " 집|은": 2})
    >>> learnt = train_bpe(Job(counts, 256 + 7 + 3, "bpe"), stages=curriculum(1.0))
    >>> learnt.vocab.pieces[-3:], learnt.merges[0]
    (('에서', ' 집', ' 학'), ('에', '서'))
    """
    stages = curriculum(job.options.share) if stages is None else stages
    learner = Learner(job)
    room = job.room(len(learner.letters))

    def on_progress(done: int) -> None:
        job.on_progress(done, room)

    def learn(until: int) -> list[dict[str, Any]]:
        log: list[dict[str, Any]] = []
        share, begun = 0.0, len(learner.merges)
        for stage in stages:
            share += stage.share
            log.append(learner.learn(job.counts, stage, begun + round(share * (until - begun)), min_count, on_progress))
        return log

    most = wide = 0 if job.runs is None else int(room * job.superwords.share)
    log = learn(room - wide)
    while job.runs is not None:
        inside = len(learner.merges)
        across = learn_across(learner, job, min(inside + most, room), on_progress)
        joined = len(learner.merges) - inside
        if joined < wide and inside == room - wide:
            # Floors left places free: more merges inside eojeols take them, and this stage begins again behind those.
            wide = joined
            learner.shrink(inside)
            log += learn(room - wide)
            continue
        log.append(across)
        break
    pieces = learner.pieces[len(learner.letters) :]
    vocab = (
        Vocab.bpe_bytes(pieces, specials=job.specials)
        if job.spelled
        else Vocab.bpe(learner.letters, pieces, specials=job.specials)
    )
    return Learnt(vocab, {"stages": log}, tuple(learner.merges))
