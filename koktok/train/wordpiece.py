"""WordPiece: join the pair whose parts attract each other most (Schuster and Nakajima 2012).

This file adds: pair counts that follow the joins, and a score. BPE asks how often a pair stands; WordPiece divides by
what its parts would give by chance, freq(ab) / (freq(a) · freq(b)), so a rare pair whose parts are seen together only
beats a frequent one of busy parts. `Joiner` counts for both trainers: each pair keeps its count and the places where it
stood, and a join corrects the counts of its neighbours only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numba import njit

from koktok.errors import UsageError, VocabSizeError
from koktok.segmented import Kind, SegmentedCounts
from koktok.vocab import BYTE_CHARS, FORBIDDEN, Vocab, spell

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MARK", "Joiner", "WordPieceResult", "train_wordpiece"]

MARK = "##"
"""What stands before a piece that continues a word."""

_REPORT = 256  # merges between two calls of on_progress


# The compiled functions share three plain tuples of arrays (named ones would put this module's name into Numba's cache):
# text    symbol (at the first place of each token; -1 unknown, -2 inside a token), place to the right that may be joined
#         (or -1), place to the left, count of the row
# pairs   left and right symbol, count, newest place, number of places (stale ones too), hash table of pairs
# places  where a pair stood, and the place that it stood at before (or -1)


@njit(cache=True)
def _slot(pairs, left, right):  # type: ignore[no-untyped-def] # pragma: no cover
    lefts, rights, _, _, _, table = pairs
    mask = len(table) - 1
    h = (((np.int64(left) << 32) | np.int64(right)) * np.int64(-7046029254386353131) >> 24) & mask
    while True:
        pair = table[h]
        if pair < 0 or (lefts[pair] == left and rights[pair] == right):
            return h
        h = (h + 1) & mask


@njit(cache=True)
def _note(text, pairs, places, used, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """The pair that starts at `place` stands there from now on."""
    symbol, behind, _, weight = text
    lefts, rights, count, newest, length, table = pairs
    left, right = symbol[place], symbol[behind[place]]
    if left < 0 or right < 0:
        return
    h = _slot(pairs, left, right)
    pair = table[h]
    if pair < 0:
        pair = used[0]
        used[0] += 1
        table[h], lefts[pair], rights[pair], count[pair], newest[pair], length[pair] = pair, left, right, 0, -1, 0
    count[pair] += weight[place]
    places[0][used[1]], places[1][used[1]] = place, newest[pair]
    newest[pair] = used[1]
    length[pair] += 1
    used[1] += 1


@njit(cache=True)
def _note_all(text, pairs, places, used):  # type: ignore[no-untyped-def] # pragma: no cover
    for place in np.nonzero(text[1] >= 0)[0]:
        _note(text, pairs, places, used, place)


@njit(cache=True)
def _forget(text, pairs, place):  # type: ignore[no-untyped-def] # pragma: no cover
    left, right = text[0][place], text[0][text[1][place]]
    if left >= 0 and right >= 0:
        pairs[2][pairs[5][_slot(pairs, left, right)]] -= text[3][place]


@njit(cache=True)
def _join(text, pairs, places, used, pair, joined):  # type: ignore[no-untyped-def] # pragma: no cover
    """Join `pair` wherever it stands, from left to right (ㅋㅋㅋ becomes ㅋㅋ ㅋ); how often, weighted."""
    symbol, behind, before, weight = text
    lefts, rights, count, newest, length, _ = pairs
    found = np.empty(length[pair], np.int32)
    k = newest[pair]
    for n in range(len(found)):
        found[n], k = places[0][k], places[1][k]
    found.sort()
    times = 0
    for place in found:
        second = behind[place]
        if symbol[place] != lefts[pair] or second < 0 or symbol[second] != rights[pair]:
            continue  # stale, or the middle of ㅋㅋㅋ
        first, third = before[place], behind[second]
        if first >= 0:
            _forget(text, pairs, first)
        if third >= 0:
            _forget(text, pairs, second)
            before[third] = place
        symbol[place], symbol[second] = joined, -2
        behind[place] = third
        times += weight[place]
        if first >= 0:
            _note(text, pairs, places, used, first)
        if third >= 0:
            _note(text, pairs, places, used, place)
    count[pair] = 0
    return times


@njit(cache=True)
def _rehash(pairs, n):  # type: ignore[no-untyped-def] # pragma: no cover
    for pair in range(n):
        pairs[5][_slot(pairs, pairs[0][pair], pairs[1][pair])] = pair


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
    heads : sequence of bool, optional
        Rows whose first character is another symbol than the same character elsewhere: its index + len(alphabet).

    Examples
    --------
    >>> joiner = Joiner(["ㅋㅋㅋ", "가ㅋ"], [2, 5], ["ㅋ", "가"])
    >>> pair = joiner.find(0, 0)
    >>> int(joiner.count[pair]), joiner.join(pair, 2), int(joiner.count[joiner.find(2, 0)])
    (4, 2, 2)
    """

    def __init__(
        self, rows: Sequence[str], n: Sequence[int], alphabet: Sequence[str], heads: Sequence[bool] | None = None
    ) -> None:
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
        if heads is not None:
            first = (ends - lengths)[np.asarray(heads, dtype=bool)]
            symbol[first] = np.where(symbol[first] >= 0, symbol[first] + len(letters), -1)
        weight = np.repeat(np.asarray(n, dtype=np.int64), lengths)
        self.symbol, self.weight = symbol, weight
        self.text = (symbol, after, before, weight)
        # Every join takes one token away and makes at most two new pairs, so three places a character are enough.
        self._places = (np.empty(3 * size, np.int32), np.empty(3 * size, np.int32))
        self._used = np.zeros(2, dtype=np.int64)
        self.left = self.right = self._newest = self._length = np.empty(0, dtype=np.int32)
        self._n = np.empty(0, dtype=np.int64)
        self._grow(size + 1)
        _note_all(self.text, self.pairs, self._places, self._used)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs so far; they are numbered in the order of their first sight."""
        return int(self._used[0])

    @property
    def count(self) -> NDArray[np.int64]:
        """How often each pair stands now (ㅋㅋㅋ holds ㅋㅋ twice); writable, 0 puts a pair out of the running."""
        return self._n[: self.n_pairs]

    @property
    def tokens(self) -> int:
        """Running tokens."""
        return int(self.weight[self.symbol != -2].sum())

    def find(self, left: int, right: int) -> int:
        """The number of a pair, or -1."""
        return int(self.pairs[5][_slot(self.pairs, left, right)])

    def join(self, pair: int, symbol: int) -> int:
        """Make `symbol` of every `pair`, and return how often, counts of words considered."""
        most = self.n_pairs + 2 * int(self._length[pair])
        if most > len(self.left):
            self._grow(2 * most)
        return int(_join(self.text, self.pairs, self._places, self._used, pair, symbol))

    def _grow(self, capacity: int) -> None:
        more = capacity - len(self.left)
        columns = (self.left, self.right, self._newest, self._length)
        self.left, self.right, self._newest, self._length = (np.append(c, np.empty(more, np.int32)) for c in columns)
        self._n = np.append(self._n, np.empty(more, np.int64))
        table = np.full(1 << (2 * capacity).bit_length(), -1, dtype=np.int32)
        self.pairs = (self.left, self.right, self._n, self._newest, self._length, table)
        _rehash(self.pairs, self.n_pairs)


@dataclass(frozen=True)
class WordPieceResult:
    """What `train_wordpiece` learnt: the vocabulary, the merges in order, and a log of one record."""

    vocab: Vocab
    merges: tuple[tuple[str, str], ...]
    log: tuple[dict[str, Any], ...]


@njit(cache=True)
def _before(spelling, a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """-1, 0 or 1: how two symbols stand to each other as strings."""
    for k in range(spelling.shape[1]):
        if spelling[a, k] != spelling[b, k]:
            return -1 if spelling[a, k] < spelling[b, k] else 1
    return 0


@njit(cache=True)
def _best(pairs, active, symbols, length, spelling, lowest, longest):  # type: ignore[no-untyped-def] # pragma: no cover
    """The pair with the highest score, of equal ones the smaller strings; and how many pairs stay in the running."""
    lefts, rights, count, _, _, _ = pairs
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


@njit(cache=True)
def _first(text, pairs, symbols, length, wanted, lowest, longest):  # type: ignore[no-untyped-def] # pragma: no cover
    """The pair with that score that stands first in the text."""
    symbol, behind, _, _ = text
    for place in range(len(symbol)):
        left, right = symbol[place], symbol[behind[place]]
        if left >= 0 and right >= 0 and behind[place] >= 0:
            pair = pairs[5][_slot(pairs, left, right)]
            fits = pairs[2][pair] >= lowest and length[left] + length[right] <= longest
            if fits and pairs[2][pair] / (symbols[left] * symbols[right]) == wanted:
                return pair
    return -1


class _Picker:
    """The pair with the highest score; it follows the counts of symbols."""

    def __init__(self, joiner: Joiner, names: list[str], room: int, lowest: int, longest: int, *, first: bool) -> None:
        self._joiner, self._names, self._lowest, self._longest, self._first = joiner, names, lowest, longest, first
        size, known = len(names) + room, joiner.symbol >= 0
        self._symbols = np.zeros(size)
        np.add.at(self._symbols, joiner.symbol[known], joiner.weight[known])
        self._length = np.ones(size, dtype=np.int32)
        self._spelling = np.full((size, longest + len(MARK)), -1, dtype=np.int32)  # -1: a prefix comes first
        for symbol, name in enumerate(names):
            self._spelling[symbol, : len(name)] = [ord(char) for char in name]
        self._active = np.arange(joiner.n_pairs, dtype=np.int32)

    def best(self) -> tuple[int, float] | None:
        pairs, tables, limits = self._joiner.pairs, (self._symbols, self._length), (self._lowest, self._longest)
        pair, score, kept = _best(pairs, self._active, *tables, self._spelling, *limits)
        self._active = self._active[:kept]
        if self._first and pair >= 0:
            pair = _first(self._joiner.text, pairs, *tables, score, *limits)
        return (int(pair), float(score)) if pair >= 0 else None

    def join(self, pair: int, piece: str) -> None:
        joiner, symbol = self._joiner, len(self._names)
        parts, known = [joiner.left[pair], joiner.right[pair]], joiner.n_pairs
        self._names.append(piece)
        self._spelling[symbol, : len(piece)] = [ord(char) for char in piece]
        self._length[symbol] = self._length[parts].sum()
        self._symbols[symbol] = joiner.join(pair, symbol)
        np.subtract.at(self._symbols, parts, self._symbols[symbol])  # ㅋㅋ takes two of the same
        fresh = np.arange(known, joiner.n_pairs, dtype=np.int32)
        self._active = np.concatenate([self._active, fresh[joiner.count[known:] >= self._lowest]])


def _rows(
    counts: SegmentedCounts, swallows: Collection[Kind], order: Sequence[str], *, spelled: bool
) -> tuple[list[str], list[bool], list[int]]:
    """Parts of words, whether each begins a word, and counts; words without their leading spaces unless bytes."""
    found: Counter[tuple[str, bool]] = Counter()
    place = {word: i for i, word in enumerate(order)}
    for word, cuts, n in sorted(counts.items(), key=lambda item: (place.get(item[0], len(order)), item[0])):
        lead = 0 if spelled else len(word) - len(word.lstrip(" "))
        inside = [cut.offset for cut in cuts if cut.kind not in swallows and cut.offset > lead]
        for start, end in pairwise([lead, *inside, len(word)]):
            part = word[start:end]
            found[spell(part) if spelled else part, start == lead] += n
    kept = [key for key in found if key[0]]
    return [part for part, _ in kept], [head for _, head in kept], [found[key] for key in kept]


def train_wordpiece(
    counts: SegmentedCounts,
    *,
    vocab_size: int,
    specials: Sequence[str] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    characters: Iterable[str] | None = None,
    required: Iterable[str] = (),
    swallows: Collection[Kind] = tuple(Kind),
    ties: Literal["pair", "first"] = "pair",
    order: Sequence[str] = (),
    alphabet: Literal["chars", "bytes"] = "chars",
    min_count: int = 5,
    max_length: int | None = None,
    crosses: Callable[[str], bool] | None = None,
    allow_fewer: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> WordPieceResult:
    """Train a WordPiece vocabulary.

    Parameters
    ----------
    counts : SegmentedCounts
        Words with cuts and counts; WordPiece drops the spaces before a word, unless `alphabet` is "bytes".
    vocab_size : int
        All ids: pieces and specials.
    specials : sequence of str
        One of them "[UNK]" or "<unk>".
    characters, required : iterable of str
        The alphabet, by default all characters; and characters that get both their pieces anyway.
    swallows : collection of Kind
        Cuts that a piece may hold inside; by default all.
    ties : "pair" or "first"
        Of equal scores, the smaller strings (left, then right; any order of the words gives the same); or the pair that
        stands first in the text, words taken in `order`, as in Hugging Face's course.
    order : sequence of str
        The words in the order of the text, for `ties="first"`.
    alphabet : "chars" or "bytes"
        "bytes" spells words as GPT-2 does: 512 pieces, and nothing is unknown (Hugging Face loads it with its ByteLevel
        pre-tokenizer). For jamo, pass counts of jamo.
    min_count : int
        A rare pair has a high score by chance, so pairs that stand less often are not joined.
    max_length : int, optional
        Longest piece without "##"; the default is 16 characters or 48 bytes.
    crosses, allow_fewer, on_progress
        As in `koktok.train.bpe.train_bpe`; `crosses` sees pieces without "##".

    Raises
    ------
    UsageError
        When an argument is impossible.
    VocabSizeError
        When the alphabet does not fit, or the counts give too few pieces.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5})
    >>> order = ["hug", "pug", "pun", "bun", "hugs"]
    >>> result = train_wordpiece(counts, vocab_size=15, min_count=1, ties="first", order=order)
    >>> result.vocab.pieces[7:], result.log[0]["first_score"]
    (('##gs', 'hu', 'hugs'), 0.05)
    """
    for name, value, choices in (("ties", ties, ("pair", "first")), ("alphabet", alphabet, ("chars", "bytes"))):
        if value not in choices:
            raise UsageError(f"{name} = {value!r}; wanted {choices[0]!r} or {choices[1]!r}")
    if min_count < 1:
        raise UsageError(f"min_count = {min_count}; wanted at least 1")
    spelled = alphabet == "bytes"
    longest = max_length or (48 if spelled else 16)
    rows, heads, n = _rows(counts, swallows, order if ties == "first" else (), spelled=spelled)
    seen = {char for row in rows for char in row} if characters is None else set(characters)
    letters = sorted(BYTE_CHARS if spelled else (seen | set(required)) - {FORBIDDEN})
    joiner = Joiner(rows, n, letters, heads)
    # Symbols are the letters inside words, the same letters at the head of words, then the joined pieces.
    names = [MARK + char for char in letters] + letters
    standing = set(joiner.symbol.tolist())
    always = set(BYTE_CHARS) if spelled else set(required)
    bare = sorted(name for i, name in enumerate(names) if i in standing or name[-1] in always)
    room = vocab_size - len(bare) - len(specials)
    if room < 0:
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and alphabet and special tokens alone take {vocab_size - room:,}",
            hint=f"--vocab-size {vocab_size - room} or more",
        )
    pick = _Picker(joiner, names, room, min_count, longest, first=ties == "first")
    merges: list[tuple[str, str]] = []
    made, refused = dict[str, float](), 0
    while len(made) < room and (found := pick.best()) is not None:
        pair, score = found
        left, right = names[joiner.left[pair]], names[joiner.right[pair]]
        piece = left + right.removeprefix(MARK)
        # A head may not look like a continued piece, nor any piece like a special token.
        clash = piece in specials or (piece.startswith(MARK) and not left.startswith(MARK))
        if clash or (crosses and crosses(piece.removeprefix(MARK))):
            refused += 1
            joiner.count[pair] = 0
            continue
        pick.join(pair, piece)
        merges.append((left, right))
        made[piece] = score
        if on_progress and (len(made) % _REPORT == 0 or len(made) == room):
            on_progress(len(made), room)
    if len(made) < room and not allow_fewer:
        reached = vocab_size - room + len(made)
        raise VocabSizeError(
            f"{vocab_size:,} ids were wanted, and the text gives only {reached:,} (pairs that stand {min_count} times "
            f"or more, pieces of at most {longest})",
            hint=f"--vocab-size {reached}",
        )
    scores = [*made.values()] or [0.0]
    log = {"wanted": room, "merges": len(made), "first_score": scores[0], "last_score": scores[-1], "refused": refused}
    vocab = Vocab.plain("wordpiece-bytes" if spelled else "wordpiece", [*bare, *made], specials=specials)
    return WordPieceResult(vocab, tuple(merges), ({**log, "tokens": joiner.tokens},))
