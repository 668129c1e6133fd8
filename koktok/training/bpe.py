"""BPE: join the pair of neighbours that gains most, again and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909).

`Learner.learn` is the algorithm, and `pairs.py` makes it fast. In plain BPE a join gains one token at each of its places. Here
a gap has a price where the choice of pieces (`selection.py`) keeps a morpheme boundary: `BpeSelection.fit` segments the words as
the chosen pieces do at least cost, and a join over a boundary that stays there loses what it gains at some other places. So
which boundaries are given up for shorter text is decided over whole segmentations, as for a Unigram, and BPE learns the merges
that lead there.

A join is made at all its places, because run time knows no boundary. Then the words are at every moment as run time segments them
with the pieces so far; nothing is replayed, and every piece is used or is a part of one that is (law 15). For where the tokens
that lie inside a piece were joined nothing outside of it had a say, so each piece is made of the same two parts everywhere.

Over bytes, merges are learnt over characters, and `joined_bytes` gives the characters that are pieces the lowest ranks. So no
piece except a byte or a step to a character ends inside a character (law 17).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koktok.model.vocab import BYTE_PIECES, Vocab, spell
from koktok.segment.segmented import BoundaryKind
from koktok.training.alphabet import joined_bytes
from koktok.training.job import Job, Learnt
from koktok.training.lattice import TRUST, cheapest
from koktok.training.pairs import INSIDE, UNKNOWN, GainQueue, PairCounter
from koktok.training.prune import Choice
from koktok.training.selection import Selection, Trial, point_of, train_points
from koktok.training.superwords import crosses_space

_REPORT = 256  # merges between two calls of on_progress

UNIT: Final = 256
"""The gain of a join at one place; whole numbers, so that sums are exact in any order."""


class Learner:
    """The pieces so far. A symbol is the place of a piece: first the letters, then one new piece for each merge."""

    def __init__(self, job: Job) -> None:
        self.job, self.letters = job, job.letters()
        self.alphabet = joined_bytes(self.letters) if job.spelled else self.letters
        self.room, joined = job.room(len(self.alphabet)), job.joined
        self.pieces = list(self.letters)
        self.merges: list[tuple[int, int]] = []
        size = len(self.letters) + self.room
        self._lengths = np.zeros(size, np.int32)
        self._lengths[: len(self.letters)] = [self._length(letter) for letter in self.letters]
        # A piece that spells a special token or a byte piece would let user text reach its id.
        self._taken = frozenset((*job.specials, *(() if job.spelled else BYTE_PIECES)))
        self.log: list[dict[str, Any]] = []
        place = {letter: symbol for symbol, letter in enumerate(self.letters)}
        for piece in joined:
            left, right = _parts(piece, place)
            place[piece] = self._join(place[left], place[right])

    def learn(
        self,
        words: PairCounter,
        *,
        name: str = "eojeol",
        lowest: int = 2,
        allows: Callable[[str], bool] = lambda _piece: True,
    ) -> None:
        """Join the pair with the highest gain until the room is full, or no pair that occurs `lowest` times gains anything."""
        job, begin, refused = self.job, len(self.merges), 0
        queue = GainQueue(words, lengths=self._lengths, longest=job.max_length, lowest=lowest)
        while queue.best is not None and len(self.merges) < self.room:
            left, right = int(words.left[queue.best]), int(words.right[queue.best])
            piece = self.pieces[left] + self.pieces[right]
            if piece in self._taken or (job.crosses and job.crosses(piece)) or not allows(piece):
                refused += 1
                queue.refuse()
                continue
            queue.merge(queue.best, self._join(left, right))
            if len(self.merges) % _REPORT == 0:
                job.on_progress(len(self.merges), self.room)
        job.on_progress(len(self.merges), self.room)
        merges = len(self.merges) - begin
        self.log.append({"stage": name, "merges": merges, "refused": refused, "tokens": words.tokens})

    def words(self, value: NDArray[np.int32] | None = None) -> PairCounter:
        """The text of the job in the pieces so far; `value` is what a join gains over the gap before each character."""
        text = self.job.text
        words = PairCounter(text.words, text.n, self.letters, value=value)
        for symbol, (left, right) in enumerate(self.merges, start=len(self.letters)):
            if (pair := words.find(left, right)) >= 0:
                words.merge(pair, symbol)
        return words

    def vocab(self) -> Vocab:
        """The vocabulary of the pieces so far."""
        pieces = self.pieces[len(self.letters) :]
        if self.job.spelled:
            return Vocab.bpe_bytes([*self.alphabet, *map(spell, pieces)], specials=self.job.specials)
        return Vocab.bpe(self.letters, pieces, specials=self.job.specials)

    def learnt(self, log: dict[str, Any]) -> Learnt:
        """The result."""
        merges = tuple((self.pieces[left], self.pieces[right]) for left, right in self.merges)
        return Learnt(self.vocab(), {"trainer": self.job.kind, "stages": self.log, **log}, merges)

    def _length(self, piece: str) -> int:
        return len(piece.encode()) if self.job.spelled else len(piece)

    def _join(self, left: int, right: int) -> int:
        """Append the piece of two symbols; its symbol."""
        symbol = len(self.pieces)
        self.merges.append((left, right))
        self.pieces.append(self.pieces[left] + self.pieces[right])
        self._lengths[symbol] = self._lengths[left] + self._lengths[right]
        return symbol


def _parts(piece: str, rank: Mapping[str, int]) -> list[str]:
    """The two pieces of which run time makes a piece whose beginnings are all pieces.

    Examples
    --------
    >>> _parts("312", {"3": 0, "1": 1, "2": 2, "12": 3, "31": 4})
    ['3', '12']
    """
    parts = [*piece]
    while len(parts) > 2:
        at = min(range(len(parts) - 1), key=lambda i: rank.get(parts[i] + parts[i + 1], len(rank)))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def train_bpe(job: Job) -> Learnt:
    """Train a BPE vocabulary, spelled in characters or bytes, for the preset or target that the recipe names.

    Examples
    --------
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 40, " 집|에서": 30, " 집|은": 20})
    >>> learnt = train_bpe(Job(counts, 256 + 7 + 3, "bpe"))
    >>> learnt.vocab.pieces[-3:], learnt.merges[0]
    (('에서', ' 집', ' 학'), ('에', '서'))
    """
    if not len(job.text.offset) and job.runs is None:
        return train_plain_bpe(job)  # there is nothing to choose by
    point = point_of(job)
    return train_points(BpeSelection, job, [point])[point.name]


def train_plain_bpe(job: Job, *, lowest: int = 2) -> Learnt:
    """Train BPE as other libraries have it.

    Counts are 64-bit; Hugging Face counts pairs in 32 bits, so parity ends at two thousand million.

    Examples
    --------
    >>> from koktok.segment.segmented import SegmentedCounts
    >>> learnt = train_plain_bpe(Job(SegmentedCounts.from_marked({"ㅋㅋㅋ": 4, "ㅋㅋ": 3}), 256 + 1 + 2, "bpe"))
    >>> learnt.vocab.pieces
    ('ㅋ', 'ㅋㅋ', 'ㅋㅋㅋ')
    """
    learner = Learner(job)
    learner.learn(learner.words(), lowest=lowest)
    return learner.learnt({})


@dataclass(frozen=True, eq=False)
class Merged(Trial):
    """Pieces with the merges that lead to them."""

    learner: Learner
    uses: NDArray[Any]


class BpeSelection(Selection[Merged]):
    """The training of one point as a BPE."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        text, node = self.counts, self.candidates.lattice.node
        sizes = np.diff(node) - 1
        self._node = np.arange(int(sizes.sum())) + np.repeat(np.arange(len(sizes)), sizes)  # before each character
        self._codes = np.frombuffer("".join(text.words).encode("utf-32-le"), np.uint32)
        # What a boundary is worth that a piece swallows: as much as it can be trusted; a space between two words, all.
        self._worth = np.zeros(len(self._codes))
        inner = np.ones(len(self._codes), bool)
        inner[node[:-1][sizes > 0] - np.arange(len(sizes))[sizes > 0]] = False
        self._worth[inner & (self._codes == ord(" "))] = 1.0
        trust = np.array([TRUST.get(kind.label, TRUST["rest"]) for kind in BoundaryKind])
        place = np.repeat(node[:-1] - np.arange(len(sizes)), np.diff(text.start)) + text.offset
        self._worth[place] = trust[text.kind] * text.confidence
        self._steps = {"", *(joined_bytes(self.job.letters()) if self.job.spelled else ())}

    def room(self) -> int:
        """The number of ids that bytes, special tokens and characters leave."""
        letters = self.job.letters()
        return self.job.room(len(joined_bytes(letters) if self.job.spelled else letters))

    def fit(self, choice: Choice, alive: NDArray[np.bool_], factors: dict[str, float], before: Merged | None) -> Merged:
        """Learn merges that keep the boundaries that the chosen pieces keep."""
        del before
        kept, _ = cheapest(self.lattice.only(alive, self.pool), choice.costs, self.price, self.pool)
        value = UNIT - np.rint(UNIT * self.point.respect * self._worth * kept[self._node])
        learner = Learner(self.job)
        words = learner.words(value.astype(np.int32))
        allows = self._superwords(alive)
        learner.learn(words, name="chosen", allows=allows)
        # Of little text what occurs once comes before what crosses a boundary that is kept.
        if len(learner.merges) < learner.room:
            learner.learn(words, name="once", lowest=1, allows=allows)
        if len(learner.merges) < learner.room:
            words.price(np.ones_like(words.symbol))
            learner.learn(words, name="rest", allows=allows)
        cut = np.zeros(int(self.lattice.node[-1]), bool)
        cut[self._node] = words.symbol != INSIDE
        known = words.symbol >= 0
        times = np.bincount(words.symbol[known], words.weight[known], len(learner.pieces))[len(learner.letters) :]
        return Merged(alive, factors, learner.vocab(), cut, self._tokens(words), learner, times)

    def uses(self, trial: Merged) -> NDArray[Any]:
        """How often each piece of two characters or more is used in the text."""
        return trial.uses

    def finished(self, trial: Merged) -> Learnt:
        """The merges of the trial."""
        return trial.learner.learnt(self.outcome(trial))

    def _superwords(self, alive: NDArray[np.bool_]) -> Callable[[str], bool]:
        """Which pieces may be made: across spaces, those chosen and the steps to them."""
        chosen = [self.candidates.pieces[i] for i in np.flatnonzero(alive & self.candidates.superword).tolist()]
        steps = {piece[a:b] for piece in chosen for a in range(len(piece)) for b in range(a + 2, len(piece) + 1)}
        return lambda piece: not crosses_space(piece) or (piece in steps and not piece.endswith(" "))

    def _tokens(self, words: PairCounter) -> float:
        """Running tokens; a character that has no piece is its bytes, the first of them in one where there is such a step."""
        unknown = words.symbol == UNKNOWN
        codes, number = np.unique(self._codes[unknown], return_inverse=True)
        more = np.array([_bytes_of(chr(code), self._steps) - 1 for code in codes.tolist()], np.int64)[number]
        return float(words.tokens + int((more * words.weight[unknown]).sum()))


def _bytes_of(char: str, steps: Collection[str]) -> int:
    data = spell(char)
    return min(len(data) - max(0, size - 1) for size in range(len(data)) if data[:size] in steps)
