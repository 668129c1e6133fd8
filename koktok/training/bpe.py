"""BPE: join the most frequent pair of neighbours, again and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909).

Joins are learnt in stages, first inside morphemes, then across them; the share of the
vocabulary that each stage gets decides between "aligned" and "short". A stage is plain BPE over words that are cut
where it may not join, and it starts from what run time would make of those words with the pieces so far, because at
run time no cut is known. The last stage, where it is wanted, joins across eojeols (수 있, 는 것), and learns from counted runs.

Over bytes, characters are joined first: a stage sees characters, and `joined_bytes` gives those that are pieces the lowest
ranks. So no piece but a byte or a step to a character ends inside one, and text of such characters holds neither (law 17).

What no word holds at the end, and no other piece is made of, gives its place to the next merge. What only steps to others are
stays, because every runtime makes a piece out of two: 0.7 % of 32,000 ids, and one in ten of them could be gone round.

Counting is incremental: each pair keeps its count and the places where it stood. Only pairs over a falling threshold
wait in the heap, because most pairs are never candidates.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from koktok.count import words_of
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.training.alphabet import joined_bytes
from koktok.training.job import Job, Learnt
from koktok.training.pairs import INSIDE, UNKNOWN, PairCounter
from koktok.training.superwords import crosses_space
from koktok.training.targets import Boundaries, TargetSearch
from koktok.training.unigram import FAR, NEAR, TRIALS
from koktok.training.unigram_point import GROUPS, Point, chosen
from koktok.vocab import BYTE_PIECES, Vocab, spell

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


def parts_of(counts: SegmentedCounts, swallows: Collection[Kind]) -> tuple[list[str], list[int]]:
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
    parts = sorted((part, n) for part, n in found.items() if part)
    return [part for part, _ in parts], [n for _, n in parts]


class Learner:
    """Pieces and merges so far; a stage adds to them."""

    def __init__(self, job: Job) -> None:
        self.letters = job.letters()
        self.pieces = list(self.letters)
        self.merges: list[tuple[str, str]] = []
        self._max_length, self._length = job.max_length, _bytes_of if job.spelled else len
        self._symbols: list[tuple[int, int]] = []
        self._crosses = job.crosses
        # A piece that spells a special token or a byte piece would let user text reach its id.
        self._taken = frozenset((*job.specials, *(() if job.spelled else BYTE_PIECES)))
        self._fixed = len(job.joined)
        for piece in job.joined:
            self._append(self.pieces.index(piece[:-1]), self.pieces.index(piece[-1]))

    def key(self, left: int, right: int) -> Any:
        """The order of pairs of one count: by string."""
        return self.pieces[left], self.pieces[right]

    def learn(
        self, counts: SegmentedCounts, stage: Stage, until: int, lowest: int, on_progress: Callable[[int], None]
    ) -> dict[str, Any]:
        """Join until there are `until` merges or no pair stands `lowest` times."""
        rows, n = parts_of(counts, stage.swallows)
        counter = self.state(rows, n)
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

    def state(self, rows: Sequence[str], n: Sequence[int]) -> PairCounter:
        """What run time makes of the rows with the pieces so far: BPE is its merges, replayed."""
        counter = PairCounter(rows, n, self.letters)
        for symbol, merge in enumerate(self._symbols, start=len(self.letters)):
            known = counter.find(*merge)
            if known >= 0:
                counter.merge(known, symbol)
        return counter

    def grow(
        self,
        counter: PairCounter,
        until: int,
        lowest: int,
        on_progress: Callable[[int], None],
        refuses: Callable[[int, str], bool] = lambda _pair, _piece: False,
    ) -> dict[str, int]:
        """Join until there are `until` merges or no pair stands `lowest` times; `refuses` sees the pair and its piece."""
        lefts, rights = counter.left, counter.right
        pieces, length = self.pieces, [*map(self._length, self.pieces)]

        def fits(pair: int) -> bool:
            return length[int(lefts[pair])] + length[int(rights[pair])] <= self._max_length

        def key(pair: int) -> Any:
            return self.key(int(lefts[pair]), int(rights[pair]))

        queue = Queue(counter, key, fits, lowest)
        first = last = refused = 0
        while len(self.merges) < until and (pair := queue.pop()) is not None:
            left, right = int(lefts[pair]), int(rights[pair])
            piece = pieces[left] + pieces[right]
            if piece in self._taken or (self._crosses and self._crosses(piece)) or refuses(pair, piece):
                refused += 1
                counter.count[pair] = 0
                continue
            last = int(counter.count[pair])
            first = first or last
            known = counter.n_pairs
            counter.merge(pair, len(pieces))
            lefts, rights = counter.left, counter.right
            self._append(left, right)
            length.append(length[left] + length[right])
            queue.push(range(known, counter.n_pairs))
            if len(self.merges) % _REPORT == 0:
                on_progress(len(self.merges))
        on_progress(len(self.merges))
        return {"first_count": first, "last_count": last, "refused": refused}

    def _append(self, left: int, right: int) -> None:
        self.merges.append((self.pieces[left], self.pieces[right]))
        self._symbols.append((left, right))
        self.pieces.append("".join(self.merges[-1]))

    def bury(self, counts: SegmentedCounts) -> int:
        """Forget the merges whose piece no word holds and no piece is made of; returns how many."""
        symbol = self.state(counts.words, counts.n.tolist()).symbol
        used = np.bincount(symbol[symbol >= 0], minlength=len(self.pieces)) > 0
        first, wanted, kept = len(self.letters), set[int](), list[int]()
        for i in reversed(range(len(self.merges))):
            if i < self._fixed or used[first + i] or first + i in wanted:
                kept.append(i)
                wanted.update(self._symbols[i])
        dead = len(self.merges) - len(kept)
        number = {i: i for i in range(first)} | {first + i: first + k for k, i in enumerate(reversed(kept))}
        merges = [(number[left], number[right]) for left, right in (self._symbols[i] for i in reversed(kept))]
        self.shrink(0)
        for left, right in merges:
            self._append(left, right)
        return dead

    def shrink(self, merges: int) -> None:
        """Forget the merges behind so many."""
        del self.merges[merges:], self._symbols[merges:], self.pieces[len(self.letters) + merges :]

    def cut_back(self, merges: int) -> Learner:
        """A copy with the first merges only."""
        other = copy(self)
        other.merges, other.pieces, other._symbols = [*self.merges], [*self.pieces], [*self._symbols]
        other.shrink(merges)
        return other


# ── how many merges stay inside morphemes ─────────────────────────────────────────────────────────────────────────────
#
# The larger the first stage, the more boundaries are kept, and the more tokens there are. The second stage swallows all kinds
# alike, so of two targets the one that is missed most decides. The merges of the first stage are learnt once, as many as there
# is room for; a trial takes the first of them and learns the second stage.

START, SLOPE, LEAST = 4.0, 0.17, 2.0
"""Where the search begins (16 merges of 17 inside morphemes), by how much the boundaries kept rise with the logarithm of the
factor there, and where a preset ends, which asks for so many boundaries at least (four merges of five: few words keep more
boundaries than any preset asks for, because they are cut between letters). A factor f is a share of f² / (1 + f²), so that a
step near a share of 1 is a small one."""

KEPT: Final[dict[str, float]] = {"short": 0.45, "lm": 0.61, "encoder": 0.8}
"""What the presets keep of all boundaries; merges reach less of them at as many tokens than chosen pieces do."""


def share_for(job: Job, point: Point, text: _Text, room: int, min_count: int) -> float:
    """The share of merges inside morphemes with which the words meet the target of a point; 1 where it has none."""
    wants = targets_of(point)
    if not wants:
        return 1.0
    first, begun = Learner(job), len(job.joined)
    first.learn(job.counts, curriculum(1.0)[0], room, min_count, _silent)
    search = TargetSearch(0.0, near=NEAR, slope=SLOPE, least=LEAST if point.at_least else TargetSearch.LEAST)
    factor: float | None = START
    trials: list[tuple[float, float]] = []  # distance from the target, share
    while factor is not None and len(trials) < TRIALS:
        share = round(factor**2 / (1 + factor**2), 4)
        learner = first.cut_back(begun + round(share * (room - begun)))
        counter = learner.state(job.counts.words, job.counts.n.tolist())
        learner.grow(counter, room, min_count, _silent)
        figures = text.figures(counter)
        over = min(figures[name] - want for name, want in wants.items())
        trials.append((abs(over), share))
        factor = search.after(factor, over)
    return min(trials)[1]


def targets_of(point: Point) -> dict[str, float]:
    """The figures that a point asks for, and their values."""
    if point.at_least:
        return {"all": KEPT[point.name]}
    return (
        {f"{name}": share for name, share in (point.keep or {}).items()}
        if point.tokens is None
        else {"tokens_per_eojeol": point.tokens}
    )


class _Text:
    """The words of a job, as figures want them."""

    def __init__(self, job: Job) -> None:
        counts = job.counts
        sizes = np.fromiter(map(len, counts.words), np.int64, len(counts))
        node = np.concatenate([[0], np.cumsum(sizes + 1)])
        self._codes = np.frombuffer("".join(counts.words).encode("utf-32-le"), np.uint32)
        self._node = np.arange(len(self._codes)) + np.repeat(np.arange(len(counts)), sizes)  # before each character
        self._cut = np.zeros(int(node[-1]), bool)
        self._steps = {"", *(joined_bytes(job.letters()) if job.spelled else ())}
        self._boundaries = Boundaries(counts, node)
        self._eojeols = max(counts.total if job.eojeols is None else job.eojeols, 1e-9)

    def figures(self, counter: PairCounter) -> dict[str, float]:
        """Boundaries kept and tokens, where the rows of the counter are the words."""
        self._cut[self._node] = counter.symbol != INSIDE
        strange = counter.symbol == UNKNOWN
        codes, number = np.unique(self._codes[strange], return_inverse=True)
        more = np.array([self._bytes(chr(code)) - 1 for code in codes.tolist()], np.int64)[number]
        return {
            **{name: self._boundaries.kept(self._cut, name) for name in GROUPS},
            "f1": self._boundaries.f1(self._cut),
            "tokens_per_eojeol": (counter.tokens + int((more * counter.weight[strange]).sum())) / self._eojeols,
        }

    def _bytes(self, char: str) -> int:
        """Tokens of a character that has no piece: its bytes, the first of them in one where there is such a step."""
        data = spell(char)
        return min(len(data) - max(0, size - 1) for size in range(len(data)) if data[:size] in self._steps)


def _silent(_merges: int) -> None:
    pass


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
    counter = learner.state(rows, [1] * len(rows))
    symbol = counter.symbol.tolist()
    found, at = {}, 0
    for word in rows:
        ends = [k for k in range(1, len(word)) if symbol[at + k] != INSIDE] + [len(word)]
        symbols = tuple(s for s in symbol[at : at + len(word)] if s != INSIDE)
        at += len(word)
        edges = cuts[word]
        whole = inner or not edges
        # The token that ends in ends[0] holds no cut and ends at one (or is the word); likewise the last one.
        head = whole or (ends[0] <= edges[0] and (ends[0] == len(word) or ends[0] in edges))
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
    """Train a BPE vocabulary, spelled in characters or bytes.

    Counts are 64-bit; Hugging Face counts pairs in 32 bits, so parity ends at two thousand million.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3, " 집|은": 2})
    >>> learnt = train_bpe(Job(counts, 256 + 7 + 3, "bpe"), stages=curriculum(1.0))
    >>> learnt.vocab.pieces[-3:], learnt.merges[0]
    (('에서', ' 집', ' 학'), ('에', '서'))
    """
    learner, options = Learner(job), job.options
    spelled = joined_bytes(learner.letters) if job.spelled else learner.letters
    room = job.room(len(spelled))
    most = wide = 0 if job.runs is None else int(room * job.superwords.share)
    plain, dead = stages is not None, 0  # stages of the caller's are BPE as other libraries have it
    text = _Text(job)
    point = chosen(options.preset, keep=options.keep, tokens=options.tokens_per_eojeol)
    share = (
        share_for(job, point, text, room - wide, min_count) if options.share is None and not plain else options.share
    )
    stages = curriculum(share or 0.0) if stages is None else stages

    def on_progress(done: int) -> None:
        job.on_progress(done, room)

    def learn(until: int) -> list[dict[str, Any]]:
        nonlocal dead
        log: list[dict[str, Any]] = []
        share, begun = 0.0, len(learner.merges)
        for stage in stages:
            share += stage.share
            log.append(learner.learn(job.counts, stage, begun + round(share * (until - begun)), min_count, on_progress))
        while not plain and (buried := learner.bury(job.counts)):
            dead += buried
            more = learner.learn(job.counts, ANYWHERE[0], until, min_count, on_progress)
            log[-1] |= {"tokens": more["tokens"], "last_count": more["last_count"]}
        return log

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
        Vocab.bpe_bytes([*spelled, *map(spell, pieces)], specials=job.specials)
        if job.spelled
        else Vocab.bpe(learner.letters, pieces, specials=job.specials)
    )
    figures = text.figures(learner.state(job.counts.words, job.counts.n.tolist()))
    outcome: dict[str, Any] = {"share": share, **figures}
    wants = targets_of(point)
    if options.share is None and wants:
        worst = min(wants, key=lambda name: figures[name] - wants[name])
        over = figures[worst] - wants[worst]
        target = "tokens" if point.tokens is not None else worst
        outcome |= {"target": target, "asked": wants[worst], "met": abs(over) <= FAR or (point.at_least and over > 0)}
    account = {"stages": log, "dead_pieces_replaced": dead, **({} if plain else {"dials": outcome})}
    return Learnt(vocab, account, tuple(learner.merges))


def _bytes_of(piece: str) -> int:
    return len(piece.encode())
