"""BPE: merge the most frequent pair of neighbours, again and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909).

`Learner.learn` is the algorithm. `pairs.py` makes it fast: pair counts follow the merges, and a heap holds only frequent pairs.
Below, each with its reason: `train_bpe`, which learns merges first inside morphemes, then across them (the *stages*); unused
pieces; the search for the share of the first stage that meets a target; superwords, which are learnt across spaces (수 있, 는 것).

A stage starts from the segmentation that run time would give its words with the pieces so far, because at run time no
morpheme boundary is known. Over bytes, merges are learnt over characters, and `joined_bytes` gives the characters that are pieces
the lowest ranks. So no piece except a byte or a step to a character ends inside a character (law 17).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress
from typing import Any, Final, NamedTuple

import numpy as np

from koktok.count import words_of
from koktok.model.vocab import BYTE_PIECES, Vocab, spell
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.training.alphabet import joined_bytes
from koktok.training.job import Job, Learnt
from koktok.training.pairs import INSIDE, UNKNOWN, PairCounter, Queue
from koktok.training.superwords import crosses_space
from koktok.training.targets import FAR, NEAR, TRIALS, Boundaries, TargetSearch
from koktok.training.unigram_point import chosen

_REPORT = 256  # merges between two calls of on_progress


class Learner:
    """The pieces so far. A symbol is the place of a piece: first the letters, then one new piece for each merge."""

    def __init__(self, job: Job) -> None:
        self.job, self.letters = job, job.letters()
        self.alphabet = joined_bytes(self.letters) if job.spelled else self.letters
        self.room = job.room(len(self.alphabet))
        self.pieces = list(self.letters)
        self.merges: list[tuple[int, int]] = []
        self._length: Callable[[str], int] = (lambda piece: len(piece.encode())) if job.spelled else len
        # A piece that spells a special token or a byte piece would let user text reach its id.
        self._taken = frozenset((*job.specials, *(() if job.spelled else BYTE_PIECES)))
        for piece in job.joined:
            self._merge(self.pieces.index(piece[:-1]), self.pieces.index(piece[-1]))

    def learn(
        self,
        stage: str,
        counter: PairCounter,
        until: int,
        lowest: int,
        refuses: Callable[[int, str], bool] = lambda _pair, _piece: False,
    ) -> dict[str, Any]:
        """Merge the most frequent pair until there are `until` merges or no pair occurs `lowest` times; the log of it."""
        job, pieces, begin = self.job, self.pieces, len(self.merges)
        length = [*map(self._length, pieces)]
        first = last = refused = 0

        def parts(pair: int) -> tuple[int, int]:
            return int(counter.left[pair]), int(counter.right[pair])

        def fits(pair: int) -> bool:
            left, right = parts(pair)
            return length[left] + length[right] <= job.max_length

        queue = Queue(counter, lambda pair: self.tie_key(*parts(pair)), fits, lowest)
        while len(self.merges) < until and (pair := queue.pop()) is not None:
            left, right = parts(pair)
            piece = pieces[left] + pieces[right]
            if piece in self._taken or (job.crosses and job.crosses(piece)) or refuses(pair, piece):
                refused += 1
                counter.count[pair] = 0
                continue
            last = int(counter.count[pair])
            first = first or last
            known = counter.n_pairs
            counter.merge(pair, self._merge(left, right))
            length.append(length[left] + length[right])
            queue.push(range(known, counter.n_pairs))
            if len(self.merges) % _REPORT == 0:
                job.on_progress(len(self.merges), self.room)
        job.on_progress(len(self.merges), self.room)
        return {
            "stage": stage,
            "wanted": until - begin,
            "merges": len(self.merges) - begin,
            "first_count": first,
            "last_count": last,
            "refused": refused,
            "parts": counter.rows,
            "tokens": counter.tokens,
        }

    def _merge(self, left: int, right: int) -> int:
        """Append the piece of two symbols; its symbol."""
        self.merges.append((left, right))
        self.pieces.append(self.pieces[left] + self.pieces[right])
        return len(self.pieces) - 1

    def tie_key(self, left: int, right: int) -> Any:
        """The order of pairs of one count: by string."""
        return self.pieces[left], self.pieces[right]

    def replay(self, rows: Sequence[str], n: Sequence[int]) -> PairCounter:
        """The rows as run time segments them with the pieces so far: encoding with BPE is replaying its merges."""
        counter = PairCounter(rows, n, self.letters)
        for symbol, merge in enumerate(self.merges, start=len(self.letters)):
            pair = counter.find(*merge)
            if pair >= 0:
                counter.merge(pair, symbol)
        return counter

    def replay_words(self) -> PairCounter:
        """The words of the job as run time segments them."""
        return self.replay(self.job.counts.words, self.job.counts.n.tolist())

    def first(self, merges: int) -> Learner:
        """A copy with the first merges only."""
        other = copy(self)
        other.merges, other.pieces = self.merges[:merges], self.pieces[: len(self.letters) + merges]
        return other

    def drop_unused(self) -> int:
        """Drop the merges whose piece no word holds and no other piece is made of; how many.

        A piece that is only a step to others stays, because every runtime makes a piece out of two: .7 % of 32,000 ids.
        """
        symbols, first = self.replay_words().symbol, len(self.letters)
        used = np.bincount(symbols[symbols >= 0], minlength=len(self.pieces)) > 0
        used[: first + len(self.job.joined)] = True
        stays: list[bool] = used.tolist()
        for i in reversed(range(len(self.merges))):
            if stays[first + i]:
                left, right = self.merges[i]
                stays[left] = stays[right] = True
        number = list(accumulate(stays, initial=0))  # the new symbol of each one that stays
        self.merges = [(number[left], number[right]) for left, right in compress(self.merges, stays[first:])]
        self.pieces = list(compress(self.pieces, stays))
        return stays.count(False)


# ── stages ────────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# A stage is plain BPE over words that are cut where it may not merge. The share of the vocabulary that the first stage, inside
# morphemes, gets decides between many kept boundaries and few tokens.


@dataclass(frozen=True)
class Stage:
    """One stage: its share of the merges, and the kinds of boundary that its pieces may swallow."""

    name: str
    share: float
    swallows: frozenset[Kind] = frozenset()


ANYWHERE = (Stage("eojeol", 1.0, frozenset(Kind)),)
"""One stage that merges anywhere inside an eojeol."""


def curriculum(share: float) -> tuple[Stage, ...]:
    """Two stages: `share` of the merges inside morphemes, the rest anywhere inside an eojeol."""
    stages = (Stage("morpheme", share), Stage("eojeol", 1 - share, frozenset(Kind)))
    return tuple(stage for stage in stages if stage.share)


def parts_of(counts: SegmentedCounts, swallows: Collection[Kind]) -> tuple[list[str], list[int]]:
    """The distinct parts of words between the cuts that may not be swallowed, sorted, with counts.

    Examples
    --------
    >>> parts_of(SegmentedCounts.from_marked({" 집|에": 2, " 산|에": 3}), swallows=())
    ([' 산', ' 집', '에'], [3, 2, 5])
    """
    parts: Counter[str] = Counter()
    closed = ~np.isin(counts.kind, [int(kind) for kind in swallows])
    offsets, bounds = counts.offset.tolist(), counts.start.tolist()
    for i, (word, n) in enumerate(zip(counts.words, counts.n.tolist(), strict=True)):
        start = 0
        for k in range(bounds[i], bounds[i + 1]):
            if closed[k]:
                parts[word[start : offsets[k]]] += n
                start = offsets[k]
        parts[word[start:]] += n
    del parts[""]
    return sorted(parts), [parts[part] for part in sorted(parts)]


def learn_stages(learner: Learner, stages: Sequence[Stage], until: int, min_count: int) -> list[dict[str, Any]]:
    """Learn one stage after another; what a stage cannot use goes to the next."""
    log: list[dict[str, Any]] = []
    begin, share = len(learner.merges), 0.0
    for stage in stages:
        share += stage.share
        counter = learner.replay(*parts_of(learner.job.counts, stage.swallows))
        log.append(learner.learn(stage.name, counter, begin + round(share * (until - begin)), min_count))
    return log


def train_bpe(job: Job, *, stages: Sequence[Stage] | None = None, min_count: int = 2) -> Learnt:
    """Train a BPE vocabulary, spelled in characters or bytes.

    With `stages` it is BPE as other libraries have it: no target, and unused pieces stay. Counts are 64-bit; Hugging Face
    counts pairs in 32 bits, so parity ends at two thousand million.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3, " 집|은": 2})
    >>> learnt = train_bpe(Job(counts, 256 + 7 + 3, "bpe"), stages=curriculum(1.0))
    >>> learnt.vocab.pieces[-3:], learnt.merges[0]
    (('에서', ' 집', ' 학'), ('에', '서'))
    """
    learner, plain = Learner(job), stages is not None
    room, dead = learner.room, 0
    across = most_across = 0 if job.runs is None else int(room * job.superwords.share)
    target = ShareTarget(job)
    share = job.options.share
    if stages is None:
        share = target.share(room - across, min_count) if share is None else share
        stages = curriculum(share)

    def learn_inside(until: int) -> list[dict[str, Any]]:
        nonlocal dead
        log = learn_stages(learner, stages, until, min_count)
        while not plain and (dropped := learner.drop_unused()):
            dead += dropped
            (more,) = learn_stages(learner, ANYWHERE, until, min_count)
            log[-1] |= {"tokens": more["tokens"], "last_count": more["last_count"]}
        return log

    log = learn_inside(room - across)
    while job.runs is not None:
        inside = len(learner.merges)
        record = learn_superwords(learner, job.runs, min(inside + most_across, room))
        if record["merges"] >= across or inside < room - across:
            log.append(record)
            break
        # Fewer superwords are frequent enough than have places: more merges inside eojeols take these, and this stage begins again.
        across = record["merges"]
        learner = learner.first(inside)
        log += learn_inside(room - across)

    pieces = learner.pieces[len(learner.letters) :]
    if job.spelled:
        vocab = Vocab.bpe_bytes([*learner.alphabet, *map(spell, pieces)], specials=job.specials)
    else:
        vocab = Vocab.bpe(learner.letters, pieces, specials=job.specials)
    report = {} if plain else {"dials": {"share": share, **target.outcome(learner.replay_words())}}
    merges = tuple((learner.pieces[left], learner.pieces[right]) for left, right in learner.merges)
    return Learnt(vocab, {"stages": log, "dead_pieces_replaced": dead, **report}, merges)


# ── the share of the first stage that meets a target ──────────────────────────────────────────────────────────────────
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


class ShareTarget:
    """The figures that a job asks for, and the search for the share that meets them."""

    def __init__(self, job: Job) -> None:
        self.job, options = job, job.options
        self.point = chosen(options.preset, keep=options.keep, tokens=options.tokens_per_eojeol)
        self.wants = {"all": KEPT[self.point.name]} if self.point.at_least else self.point.wants
        words = job.counts.words
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        node = np.concatenate([[0], np.cumsum(sizes + 1)])
        self._codes = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
        self._node = np.arange(len(self._codes)) + np.repeat(np.arange(len(words)), sizes)  # before each character
        self._cut = np.zeros(int(node[-1]), bool)
        self._boundaries = Boundaries(job.counts, node)
        self._steps = {"", *(joined_bytes(job.letters()) if job.spelled else ())}

    def share(self, until: int, min_count: int) -> float:
        """The share with which the words come nearest to the target; 1 where the job has none."""
        if not self.wants:
            return 1.0
        longest = Learner(replace(self.job, on_progress=lambda _done, _total: None))
        begin = len(longest.merges)
        learn_stages(longest, curriculum(1.0), until, min_count)
        search = TargetSearch(0.0, near=NEAR, slope=SLOPE, least=LEAST if self.point.at_least else TargetSearch.LEAST)
        factor: float | None = START
        trials: list[tuple[float, float]] = []  # distance from the target, share
        while factor is not None and len(trials) < TRIALS:
            share = round(factor**2 / (1 + factor**2), 4)
            learner = longest.first(begin + round(share * (until - begin)))
            words = learner.replay_words()
            learner.learn("eojeol", words, until, min_count)
            figures = self.figures(words)
            over = min(figures[name] - want for name, want in self.wants.items())
            trials.append((abs(over), share))
            factor = search.after(factor, over)
        return min(trials)[1]

    def figures(self, words: PairCounter) -> dict[str, float]:
        """Boundaries kept, and tokens per eojeol, of the words as they are segmented."""
        self._cut[self._node] = words.symbol != INSIDE
        unknown = words.symbol == UNKNOWN
        codes, number = np.unique(self._codes[unknown], return_inverse=True)
        more = np.array([self._tokens(chr(code)) - 1 for code in codes.tolist()], np.int64)[number]
        tokens = words.tokens + int((more * words.weight[unknown]).sum())
        return {**self._boundaries.figures(self._cut), "tokens_per_eojeol": tokens / self.job.n_eojeols}

    def _tokens(self, char: str) -> int:
        """Tokens of a character that has no piece: its bytes, the first of them in one where there is such a step."""
        data = spell(char)
        return min(len(data) - max(0, size - 1) for size in range(len(data)) if data[:size] in self._steps)

    def outcome(self, words: PairCounter) -> dict[str, Any]:
        """The figures, and whether the target is met."""
        figures = self.figures(words)
        if self.job.options.share is not None or not self.wants:
            return figures
        worst = min(self.wants, key=lambda name: figures[name] - self.wants[name])
        over = figures[worst] - self.wants[worst]
        met = abs(over) <= FAR or (self.point.at_least and over > 0)
        return {**figures, "target": self.point.shown(worst), "asked": self.wants[worst], "met": met}


# ── superwords: merges across spaces ──────────────────────────────────────────────────────────────────────────────────
#
# Merges inside eojeols have lower ranks and are done first at run time, so a later merge sees a sentence as the tokens of its
# words. Where the last token of a word and the first of the next hold no cut inside and end where a word or a cut does, they may
# be merged over the gap between them; a chain is a stretch of tokens with such gaps. BPE over chains swallows no cut inside an
# eojeol, and needs nothing that the other stages do not have.


class Token(NamedTuple):
    """A token of a word, and whether it may be merged with the token before it and with the one after it."""

    symbol: int
    before: bool
    after: bool


def tokens_of(learner: Learner, runs: SegmentedCounts, *, inner: bool = False) -> dict[str, list[Token]]:
    """The tokens of every distinct word of the runs, with the pieces so far."""
    cuts: dict[str, list[int]] = {}
    offsets, bounds = runs.offset.tolist(), runs.start.tolist()
    for i, run in enumerate(runs.words):
        begin, k = 0, bounds[i]
        for word in words_of(run):
            end, first = begin + len(word), k
            while k < bounds[i + 1] and offsets[k] < end:
                k += 1
            cuts.setdefault(word, [offset - begin for offset in offsets[first:k]])
            begin = end
    rows = sorted(cuts)
    symbols: list[int] = learner.replay(rows, [1] * len(rows)).symbol.tolist()
    tokens, at = {}, 0
    for word in rows:
        starts = [k for k in range(len(word)) if symbols[at + k] != INSIDE]
        head = tail = inner or len(starts) == 1  # a word without cuts that is two tokens: each is a part of a morpheme
        if cuts[word] and not inner:
            head, tail = [*starts[1:], len(word)][0] == cuts[word][0], starts[-1] == cuts[word][-1]
        known = [symbols[at + k] >= 0 for k in starts]
        tokens[word] = [
            Token(
                symbols[at + k],
                known[i] and (inner or (i == 0 and head)),
                known[i] and (inner or (i == len(starts) - 1 and tail)),
            )
            for i, k in enumerate(starts)
        ]
        at += len(word)
    return tokens


def chains_of(runs: SegmentedCounts, words: dict[str, list[Token]]) -> Iterator[tuple[int, list[int]]]:
    """Number of the run, and the symbols of each chain in it that has two or more.

    Examples
    --------
    >>> words = {"그는": [Token(5, True, False), Token(6, False, True)], " 것": [Token(7, True, True)]}
    >>> words[" 같다"] = [Token(8, True, False), Token(9, False, True)]
    >>> list(chains_of(SegmentedCounts.from_marked({"그|는 것 같|다": 1}), words))
    [(0, [6, 7, 8])]
    """
    for i, run in enumerate(runs.words):
        symbols: list[int] = []
        open_ = False
        for token in chain.from_iterable(words[word] for word in words_of(run)):
            if not (open_ and token.before):
                if len(symbols) > 1:
                    yield i, symbols
                symbols = []
            symbols.append(token.symbol)
            open_ = token.after
        if len(symbols) > 1:
            yield i, symbols


def learn_superwords(learner: Learner, runs: SegmentedCounts, until: int) -> dict[str, Any]:
    """Merge across the spaces of runs until there are `until` merges, or no pair reaches the floors of the policy."""
    policy, documents = learner.job.superwords, learner.job.run_documents
    chains = list(chains_of(runs, tokens_of(learner, runs, inner=policy.inner)))
    n, numbers = runs.n.tolist(), [i for i, _ in chains]
    rows = ["".join(map(chr, symbols)) for _, symbols in chains]  # a private alphabet: the symbol is the code point
    counter = PairCounter(rows, [n[i] for i in numbers], [*map(chr, range(len(learner.pieces)))])
    run = np.repeat(np.asarray(numbers, np.int64), [*map(len, rows)])
    represents = runs.represents

    def refuses(pair: int, piece: str) -> bool:
        if not crosses_space(piece):  # inside an eojeol: a step of an inner superword
            return False
        if not policy.looks_right(piece):
            return True
        where = np.unique(run[counter.standing(pair)])
        if documents is not None and documents[where].sum() < policy.min_documents:
            return True
        return bool(represents[where].sum() < policy.min_runs)

    return learner.learn("superword", counter, until, policy.min_count, refuses)
