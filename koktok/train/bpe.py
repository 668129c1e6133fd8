"""BPE: join the most frequent pair of neighbours, again and again (Gage 1994; Sennrich et al. 2016, arXiv:1508.07909).

This file adds: the curriculum. Joins are learnt in stages, first inside morphemes, then across them; the share of the
vocabulary that each stage gets is the dial between "aligned" and "short". A stage is plain BPE over words that are cut
where it may not join, and it starts from what run time would make of those words with the pieces so far, because at
run time no cut is known.

Counting is incremental: each pair keeps its count and the places where it stood. Only pairs over a falling threshold
wait in the heap, because most pairs are never candidates.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numba import njit

from koktok.errors import UsageError, VocabSizeError
from koktok.segmented import Kind, SegmentedCounts
from koktok.vocab import BYTE_CHARS, Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BpeResult", "Joiner", "Stage", "curriculum", "parts_of", "train_bpe"]

Ties = Literal["pair", "hf", "spm"]

_BATCH = 1 << 14  # pairs that enter the heap at a time; any number gives the same merges
_REPORT = 256  # merges between two calls of on_progress
_FORBIDDEN = "▁"  # SentencePiece decodes it to a space, so it stays bytes
_SPELL = str.maketrans({chr(byte): char for byte, char in enumerate(BYTE_CHARS)})
_UNSPELL = {char: byte for byte, char in enumerate(BYTE_CHARS)}


@dataclass(frozen=True)
class Stage:
    """One stage of the curriculum.

    Parameters
    ----------
    name : str
        For the log.
    share : float
        Of the merges; the shares of all stages sum to 1. What a stage cannot use goes to the next.
    swallows : frozenset of Kind
        Cuts that a piece of this stage may hold inside.
    """

    name: str
    share: float
    swallows: frozenset[Kind] = frozenset()


_EOJEOL = Stage("eojeol", 1.0, frozenset(Kind))


def curriculum(share: float) -> tuple[Stage, ...]:
    """Two stages: `share` of the merges inside morphemes, the rest anywhere inside an eojeol.

    Examples
    --------
    >>> [(stage.name, stage.share) for stage in curriculum(0.75)]
    [('morpheme', 0.75), ('eojeol', 0.25)]
    """
    stages = (Stage("morpheme", share), Stage("eojeol", 1 - share, frozenset(Kind)))
    return tuple(stage for stage in stages if stage.share)


@dataclass(frozen=True)
class BpeResult:
    """What `train_bpe` learnt.

    Parameters
    ----------
    vocab : Vocab
        Of kind "bpe" or "bpe-bytes".
    merges : tuple of (str, str)
        In order; merge i made the i-th piece behind the alphabet.
    log : tuple of dict
        A record a stage: its name, the merges wanted and made, the count of the first and of the last, the pieces that
        `crosses` refused, distinct parts and running tokens left.
    """

    vocab: Vocab
    merges: tuple[tuple[str, str], ...]
    log: tuple[dict[str, Any], ...]


class _Text(NamedTuple):
    symbol: NDArray[np.int32]  # at the first place of each token; -1 unknown, -2 inside a token
    next: NDArray[np.int32]  # place of the token to the right that may be joined, or -1
    previous: NDArray[np.int32]
    weight: NDArray[np.int64]  # count of the part that the place belongs to


class _Pairs(NamedTuple):
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    count: NDArray[np.int64]
    head: NDArray[np.int32]  # the newest of its places
    length: NDArray[np.int32]  # how many places, stale ones too
    table: NDArray[np.int32]  # open addressing: hash of (left, right) → pair


class _Places(NamedTuple):
    position: NDArray[np.int32]
    older: NDArray[np.int32]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _slot(pairs, left, right):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = len(pairs.table) - 1
    h = (((np.int64(left) << 32) | np.int64(right)) * np.int64(-7046029254386353131) >> 24) & mask
    while True:
        pair = pairs.table[h]
        if pair < 0 or (pairs.left[pair] == left and pairs.right[pair] == right):
            return h
        h = (h + 1) & mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def _note(text, pairs, places, used, position):  # type: ignore[no-untyped-def] # pragma: no cover
    """The pair that starts at `position` stands there from now on."""
    left, right = text.symbol[position], text.symbol[text.next[position]]
    if left < 0 or right < 0:
        return
    h = _slot(pairs, left, right)
    pair = pairs.table[h]
    if pair < 0:
        pair = used[0]
        used[0] += 1
        pairs.table[h] = pair
        pairs.left[pair], pairs.right[pair] = left, right
        pairs.count[pair], pairs.head[pair], pairs.length[pair] = 0, -1, 0
    pairs.count[pair] += text.weight[position]
    places.position[used[1]] = position
    places.older[used[1]] = pairs.head[pair]
    pairs.head[pair] = used[1]
    pairs.length[pair] += 1
    used[1] += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _note_all(text, pairs, places, used):  # type: ignore[no-untyped-def] # pragma: no cover
    for position in range(len(text.symbol)):
        if text.next[position] >= 0:
            _note(text, pairs, places, used, position)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _forget(text, pairs, position):  # type: ignore[no-untyped-def] # pragma: no cover
    left, right = text.symbol[position], text.symbol[text.next[position]]
    if left >= 0 and right >= 0:
        pairs.count[pairs.table[_slot(pairs, left, right)]] -= text.weight[position]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _join(text, pairs, places, used, pair, symbol):  # type: ignore[no-untyped-def] # pragma: no cover
    """Join `pair` wherever it stands, from left to right (ㅋㅋㅋ becomes ㅋㅋ ㅋ); how often, weighted."""
    left, right = pairs.left[pair], pairs.right[pair]
    found = np.empty(pairs.length[pair], np.int32)
    n = 0
    k = pairs.head[pair]
    while k >= 0:
        found[n] = places.position[k]
        n += 1
        k = places.older[k]
    found.sort()
    joined = 0
    for position in found:
        second = text.next[position]
        if text.symbol[position] != left or second < 0 or text.symbol[second] != right:
            continue  # stale, or the middle of ㅋㅋㅋ
        before, behind = text.previous[position], text.next[second]
        if before >= 0:
            _forget(text, pairs, before)
        if behind >= 0:
            _forget(text, pairs, second)
            text.previous[behind] = position
        text.symbol[position], text.symbol[second] = symbol, -2
        text.next[position] = behind
        joined += text.weight[position]
        if before >= 0:
            _note(text, pairs, places, used, before)
        if behind >= 0:
            _note(text, pairs, places, used, position)
    pairs.count[pair] = 0
    return joined


@njit(cache=True)  # type: ignore[untyped-decorator]
def _rehash(pairs, n):  # type: ignore[no-untyped-def] # pragma: no cover
    for pair in range(n):
        pairs.table[_slot(pairs, pairs.left[pair], pairs.right[pair])] = pair


class Joiner:
    """Words as rows of symbols, whose pairs are counted and joined.

    Parameters
    ----------
    rows : sequence of str
        Distinct parts of words; no pair spans two of them.
    n : sequence of int
        Their counts.
    alphabet : sequence of str
        Single characters by code point; their indexes are the first symbols. A character outside joins nothing.

    Examples
    --------
    >>> joiner = Joiner(["ㅋㅋㅋ", "가ㅋ"], [2, 5], ["ㅋ", "가"])
    >>> pair = joiner.find(0, 0)
    >>> int(joiner.count[pair]), joiner.join(pair, 2), int(joiner.count[joiner.find(2, 0)])
    (4, 2, 2)
    """

    def __init__(self, rows: Sequence[str], n: Sequence[int], alphabet: Sequence[str]) -> None:
        codes = np.frombuffer("".join(rows).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        letters = np.array([ord(char) for char in alphabet], dtype=np.uint32)
        size = len(codes)
        symbol = np.full(size, -1, dtype=np.int32)
        if len(letters):
            index = np.minimum(np.searchsorted(letters, codes), len(letters) - 1)
            symbol = np.where(letters[index] == codes, index, -1).astype(np.int32)
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        ends = np.cumsum(lengths)
        after = np.arange(1, size + 1, dtype=np.int32)
        before = np.arange(-1, size - 1, dtype=np.int32)
        after[ends - 1] = -1
        before[ends - lengths] = -1
        weight = np.repeat(np.asarray(n, dtype=np.int64), lengths)
        self.text = _Text(symbol, after, before, weight)
        # Every join takes one token away and makes at most two new pairs, so three places a character are enough.
        self._places = _Places(np.empty(3 * size, np.int32), np.empty(3 * size, np.int32))
        self._used = np.zeros(2, dtype=np.int64)
        self._grow(size + 1)
        _note_all(self.text, self._pairs, self._places, self._used)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs so far; they are numbered in the order of their first sight."""
        return int(self._used[0])

    @property
    def left(self) -> NDArray[np.int32]:
        """Left symbol of each pair."""
        return self._pairs.left[: self.n_pairs]

    @property
    def right(self) -> NDArray[np.int32]:
        """Right symbol of each pair."""
        return self._pairs.right[: self.n_pairs]

    @property
    def count(self) -> NDArray[np.int64]:
        """How often each pair stands now (ㅋㅋㅋ holds ㅋㅋ twice); writable, 0 puts a pair out of the running."""
        return self._pairs.count[: self.n_pairs]

    @property
    def tokens(self) -> int:
        """Running tokens."""
        return int(self.text.weight[self.text.symbol != -2].sum())

    def find(self, left: int, right: int) -> int:
        """The number of a pair, or -1."""
        return int(self._pairs.table[_slot(self._pairs, left, right)])

    def join(self, pair: int, symbol: int) -> int:
        """Make `symbol` of every `pair`, and return how often, counts of words considered."""
        most = self.n_pairs + 2 * int(self._pairs.length[pair])
        if most > len(self._pairs.left):
            self._grow(2 * most)
        return int(_join(self.text, self._pairs, self._places, self._used, pair, symbol))

    def _grow(self, capacity: int) -> None:
        old = self._pairs[:5] if self.n_pairs else ()
        kinds = (np.int32, np.int32, np.int64, np.int32, np.int32)
        columns: list[Any] = [np.empty(capacity, kind) for kind in kinds]
        for column, values in zip(columns, old, strict=False):
            column[: self.n_pairs] = values[: self.n_pairs]
        table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
        self._pairs = _Pairs(*columns, table)
        _rehash(self._pairs, self.n_pairs)


class _Queue:
    """The most frequent pair first; ties by the key of the pair.

    Holds only pairs with counts of at least a threshold, which falls when they have run out. Counts of old pairs only
    fall (a symbol is born in one join, and all its pairs with it), so an entry is corrected when it comes up.
    """

    def __init__(self, joiner: Joiner, key: Callable[[int], Any], fits: Callable[[int], bool], lowest: int) -> None:
        self._joiner, self._key, self._fits, self._lowest = joiner, key, fits, lowest
        self._heap: list[tuple[int, Any, int]] = []
        self._threshold = 1 << 62

    def push(self, pairs: Iterable[int]) -> None:
        """Offer pairs; those under the threshold are met again when it falls."""
        count = self._joiner.count
        for pair in pairs:
            n = int(count[pair])
            if n >= self._threshold and self._fits(pair):
                heapq.heappush(self._heap, (-n, self._key(pair), pair))

    def pop(self) -> int | None:
        """The best pair, or None when no count reaches the lowest."""
        count, heap = self._joiner.count, self._heap
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
        count = self._joiner.count
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


def train_bpe(
    counts: SegmentedCounts,
    *,
    vocab_size: int,
    specials: Sequence[str] = (),
    characters: Iterable[str] | None = None,
    required: Iterable[str] = (),
    stages: Sequence[Stage] = (_EOJEOL,),
    ties: Ties = "pair",
    alphabet: Literal["chars", "bytes"] = "chars",
    min_count: int = 2,
    max_length: int | None = None,
    crosses: Callable[[str], bool] | None = None,
    allow_fewer: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> BpeResult:
    """Train a BPE vocabulary.

    Parameters
    ----------
    counts : SegmentedCounts
        Words with leading spaces, cuts and counts.
    vocab_size : int
        All ids: bytes, pieces and specials.
    specials : sequence of str
        Special and reserved tokens, behind the pieces.
    characters : iterable of str, optional
        The alphabet; the default is every character of the counts. Others become bytes at run time.
    required : iterable of str
        Characters to add to the alphabet.
    stages : sequence of Stage
        The curriculum; see `curriculum`. With one stage that swallows every cut it is plain BPE.
    ties : "pair", "hf" or "spm"
        Which of equally frequent pairs comes first. "pair": the smaller left string, then the smaller right one. "hf":
        the older symbols, as in Hugging Face's BpeTrainer. "spm": the shorter piece, then the smaller string (a space
        counts as ▁), as in SentencePiece 0.2.3 (the releases before looked at a part of the pairs only).
    alphabet : "chars" or "bytes"
        Characters with byte fallback, or the bytes of UTF-8 as GPT-2 spells them.
    min_count : int
        A pair that stands less often is not joined.
    max_length : int, optional
        Longest piece in symbols of the alphabet; the default is 16 characters or 48 bytes.
    crosses : callable, optional
        True for a piece that must never be made, for instance one that mixes scripts.
    allow_fewer : bool
        Return a smaller vocabulary, in place of an error, when the counts give no more.
    on_progress : callable, optional
        Called with merges done and merges wanted.

    Returns
    -------
    BpeResult

    Raises
    ------
    UsageError
        When an argument is impossible.
    VocabSizeError
        When the alphabet does not fit, or the counts give too few pieces.

    Notes
    -----
    Counts are 64-bit; Hugging Face counts pairs in 32 bits, so parity ends at two thousand million.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 학교|에서": 4, " 집|에서": 3, " 집|은": 2})
    >>> result = train_bpe(counts, vocab_size=256 + 7 + 3, stages=curriculum(1.0))
    >>> result.vocab.pieces[-3:], result.merges[0]
    (('에서', ' 집', ' 학'), ('에', '서'))
    """
    if ties not in ("pair", "hf", "spm"):
        raise UsageError(f"ties = {ties!r}; wanted 'pair', 'hf' or 'spm'")
    if alphabet not in ("chars", "bytes"):
        raise UsageError(f"alphabet = {alphabet!r}; wanted 'chars' or 'bytes'")
    if min_count < 1:
        raise UsageError(f"min_count = {min_count}; wanted at least 1")
    if any(stage.share < 0 for stage in stages) or abs(sum(stage.share for stage in stages) - 1) > 1e-9:
        raise UsageError(f"the stages have the shares {[stage.share for stage in stages]}; wanted a sum of 1")
    wide = [char for char in required if len(char) != 1]
    if wide:
        raise UsageError(f"required characters are single characters; got {wide[:5]}")
    if alphabet == "bytes":
        letters = sorted(BYTE_CHARS)
    else:
        seen = {char for word in counts.words for char in word} if characters is None else set(characters)
        letters = sorted((seen | set(required)) - {_FORBIDDEN})
    room = vocab_size - len(letters) - len(specials) - (0 if alphabet == "bytes" else 256)
    if room < 0:
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and the alphabet, bytes and special tokens alone take {vocab_size - room:,}",
            hint=f"a vocabulary size of {vocab_size - room:,} or more, or fewer characters",
        )
    learner = _Learner(letters, ties, max_length or (48 if alphabet == "bytes" else 16), crosses, alphabet == "bytes")
    log, done = [], 0.0
    for stage in stages:
        done += stage.share
        log.append(learner.learn(counts, stage, round(done * room), min_count, on_progress or (lambda *_: None), room))
    if len(learner.merges) < room and not allow_fewer:
        reached = vocab_size - room + len(learner.merges)
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and the text gives only {reached:,} (pairs that stand {min_count} times "
            f"or more, pieces of at most {learner.max_length})",
            hint=f"a vocabulary size of {reached:,} or less, more text, or a lower minimum count",
        )
    make = Vocab.bpe_bytes if alphabet == "bytes" else lambda made, specials: Vocab.bpe(letters, made, specials=specials)
    return BpeResult(make(learner.pieces[len(letters) :], specials=specials), tuple(learner.merges), tuple(log))
