"""Which pieces come first: words as the base cuts them, joined further, with Kiwi's borders in the count.

This file adds: the order. A candidate counts the tokens that it saves, less a penalty for every border of morphemes that it
swallows, so that pieces inside morphemes come first and frequent ones across them behind; the penalty is the dial, and
`keep` finds it. The list is ordered, and every beginning of it is an extension: the pieces so far, and nothing behind them,
made the state in which the next one was counted. Held-out words are joined along, so that one run tells all sizes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from koktok.blocklist import Blocklist
from koktok.count import Counts
from koktok.count.counting import Reading, Tell, silent
from koktok.errors import InputError, UsageError, VocabSizeError
from koktok.extend.base_tokenizer import Base, holds_hangul
from koktok.extend.joins import UNKNOWN, Joints, TokenRows, hash_of
from koktok.hangul import SYLLABLE, syllable_mask
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.train.bpe import Queue
from koktok.train.lattice import TRUST

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NU", "BaseText", "Piece", "PieceList", "SizePoint", "learn", "learn_kept", "prepare"]

NU: Final = 1.0
"""The penalty by default: a join counts where it swallows no border of morphemes, and not where it does."""

MOST_NU: Final = 8.0
"""From here on no candidate that swallows a border now and then is ever worth it."""

MOST_CHARS: Final = 16
"""Longest piece in characters, as in BPE of `koktok train`."""

_PIECE = re.compile(f"[{SYLLABLE}\u3131-\u318e]+")
_PART = re.compile(rb"[\xEB\xEC][\x80-\xBF]?|\xEA[\xB0-\xBF]|\xED[\x80-\x9E]")
_BATCH = 1 << 15
_TRUST = np.array([TRUST.get(kind.label, TRUST["rest"]) for kind in Kind])


@dataclass(frozen=True)
class Piece:
    """A new piece.

    Parameters
    ----------
    string : bytes
        As the base spells it, a space or ▁ first where it begins a word.
    ids : tuple of int
        What the base makes of that string.
    pair : tuple of (bytes, bytes), or None
        The two pieces that it was first joined of; None for a character that the base has not.
    count : int
        Running tokens that it saved when it was made.
    """

    string: bytes
    ids: tuple[int, ...]
    pair: tuple[bytes, bytes] | None
    count: int


@dataclass(frozen=True)
class SizePoint:
    """An extension of one size, on the frontier.

    Parameters
    ----------
    size : int
        New pieces.
    tokens, held_tokens : float
        Tokens per eojeol, of the text and held out.
    precision, recall : float
        Of token borders between two syllables against Kiwi's borders of morphemes, held out where something is.
    used : float
        Share of the new pieces that stand in the text.
    exposure : float
        How often the median new piece stands in a GB of the text.
    floor : float
        Tokens per eojeol that no extension goes below, because the base's pattern cuts there.
    """

    size: int
    tokens: float
    held_tokens: float
    precision: float
    recall: float
    used: float
    exposure: float
    floor: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class BaseText:
    """Counted words as the base cuts them.

    Parameters
    ----------
    rows : TokenRows
        Pre-tokens with Hangul.
    rest, held_rest : int
        Running tokens of all others, which no extension changes.
    words, held_words : int
        Eojeols.
    cuts, held_cuts : int
        Borders of morphemes between two syllables.
    borders, held_borders : int
        Token borders between two syllables, of the base.
    kept, held_kept : int
        Those that are borders of morphemes.
    floor : int
        Running pre-tokens, of the held-out text where something is.
    size : int
        Bytes of the text.
    left_out : int
        Running words that the base's normalizer changes.
    """

    rows: TokenRows
    rest: int
    held_rest: int
    words: int
    held_words: int
    cuts: int
    held_cuts: int
    borders: int
    held_borders: int
    kept: int
    held_kept: int
    floor: int
    size: int
    left_out: int


@dataclass(frozen=True)
class PieceList:
    """An ordered list of new pieces.

    Parameters
    ----------
    pieces : tuple of Piece
        Every beginning of it is an extension.
    points : tuple of SizePoint
        The base itself first, then each size that was asked for.
    penalty : float
    """

    pieces: tuple[Piece, ...]
    points: tuple[SizePoint, ...]
    penalty: float


def prepare(
    base: Base,
    reading: Reading,
    segmenter: Segmenter,
    *,
    policy: str = "morphemes",
    min_count: int = 1,
    tell: Tell = silent,
) -> BaseText:
    """Words of the text, as the base cuts them, with the borders of their morphemes.

    Parameters
    ----------
    base : Base
    reading : Reading
        Counted words, those held out apart.
    segmenter : Segmenter
        Asked once for each distinct word.
    policy : str
        Which borders count, see `koktok.segment.Policy`.
    min_count : int
        Rarer words are not trained on.
    tell : callable
        Progress.

    Raises
    ------
    InputError
        When there is no Hangul in the text.
    """
    n: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for counts, into in ((reading.train, n), (reading.held, held)):
        for word, times in zip(counts.words, counts.n.tolist(), strict=True):
            into[unicodedata.normalize("NFC", word)] += times
    size = sum(len(word.encode()) * times for word, times in n.items())
    words = sorted(word for word in {*n, *held} if n[word] >= min_count or held[word])
    marked = [i for i, word in enumerate(words) if _PIECE.search(word)]
    if not marked:
        raise InputError(
            "there is no Hangul in the text; an extension is learnt from Korean", hint="koktok extend BASE TEXT"
        )
    cut = segment_counts(
        Counts.from_mapping({words[i]: 1 for i in marked}),
        segmenter,
        Policy.parse(policy),
        on_progress=lambda done, total: tell("segment", done, total),
    )
    weight = np.array([n[word] if n[word] >= min_count else 0 for word in words], np.int64)
    weight_held = np.array([held[word] for word in words], np.int64)
    return _BaseTokens(base.learning, words, weight, weight_held, tell).text(
        dict(zip(marked, range(len(marked)), strict=True)), cut, size
    )


class _BaseTokens:
    """The base's tokens of all words, flat: of each its id, word, pre-token, and the bytes of the word before it."""

    def __init__(
        self, base: Base, words: list[str], weight: NDArray[np.int64], held: NDArray[np.int64], tell: Tell
    ) -> None:
        self.base, self.weight, self.held = base, weight, held
        # Where the base puts a space before a text itself, a word is given without its own.
        self.shown = [" " + word.lstrip(" ") for word in words] if base.prefixes else words
        sent = [word.lstrip(" ") for word in words] if base.prefixes else words
        ids: list[NDArray[np.int64]] = []
        parts: list[NDArray[np.int64]] = []
        lengths: list[int] = []
        waiting = iter(sent)
        while batch := list(islice(waiting, _BATCH)):
            for found in base.runner.encode_batch(batch, add_special_tokens=False):
                ids.append(np.array(found.ids, np.int64))
                if base.kind == "bytes":
                    parts.append(np.array(found.word_ids, np.int64))
                lengths.append(len(found.ids))
            tell("encode", len(lengths), len(sent))
        self.ids = np.concatenate(ids)
        self.word = np.repeat(np.arange(len(words)), lengths)
        # Without a pattern a whole word is one pre-token.
        first = np.r_[True, self.word[1:] != self.word[:-1]]
        if base.kind == "bytes":
            part = np.concatenate(parts)
            first |= np.r_[True, part[1:] != part[:-1]]
        self.row = np.cumsum(first) - 1

    def text(self, number: Mapping[int, int], cut: SegmentedCounts, size: int) -> BaseText:
        """TokenRows with Hangul, and what all others amount to."""
        base, ids = self.base, self.ids
        tokens = base.tokens
        is_byte = np.array([len(token) == 6 and token.startswith("<0x") for token in tokens])
        if base.kind == "bytes":
            length = np.array([len(string) for string in base.strings])
            is_byte[:] = False
        else:
            length = np.array([len(string.replace(base.space, b" ")) for string in base.strings])
            length[is_byte] = 1
        data = "".join(self.shown).encode()
        of_word = np.array([len(word.encode()) for word in self.shown])
        begin = np.r_[0, np.cumsum(of_word)]
        taken = np.bincount(self.word, length[ids], len(of_word)).astype(np.int64)
        whole = taken == of_word
        # Where each token begins in `data`; of words that do not come out whole nothing is asked.
        before = np.cumsum(length[ids]) - length[ids]
        heads = np.flatnonzero(np.r_[True, self.word[1:] != self.word[:-1]])
        shift = np.zeros(len(of_word), np.int64)
        shift[self.word[heads]] = begin[self.word[heads]] - before[heads]
        at = np.minimum(before + shift[self.word], len(data) - 1)
        hangul = np.array([holds_hangul(string) or any(byte > 0x7F for byte in string) for string in base.strings])
        hangul |= is_byte
        marked = np.zeros(len(of_word), bool)
        marked[list(number)] = True
        rows_of = np.bincount(self.row, (hangul[ids] & whole[self.word] & marked[self.word]).astype(float)) > 0
        inside = rows_of[self.row]
        border, trust, cuts = self._borders(data, at, number, cut, begin)
        w, h = self.weight[self.word], self.held[self.word]
        tells = self.held if self.held.sum() else self.weight
        pretokens = np.bincount(
            self.word[np.flatnonzero(np.r_[True, self.row[1:] != self.row[:-1]])], minlength=len(of_word)
        )
        all_words = np.array([bool(word.strip()) for word in self.shown])
        start = np.r_[True, self.row[1:] != self.row[:-1]]
        between = (border > 0) & ~start & inside
        # Borders before the first token of a pre-token stay whatever is joined: the pattern has cut there.
        fixed = (border > 0) & ~(between) & np.r_[False, self.word[1:] == self.word[:-1]] & whole[self.word]
        open_ = between | fixed
        symbol, char, n_tokens, kept_tokens = self._symbols(inside, is_byte)
        rows = TokenRows(
            symbol=symbol,
            char=char,
            start=np.r_[np.flatnonzero(start[inside][kept_tokens]), len(symbol)].astype(np.int64),
            weight=w[inside & start],
            held=h[inside & start],
            size=n_tokens,
            border=border[inside][kept_tokens],
            trust=trust[inside][kept_tokens],
        )
        return BaseText(
            rows=rows,
            rest=int(w[~inside].sum()),
            held_rest=int(h[~inside].sum()),
            words=int(self.weight[all_words].sum()),
            held_words=int(self.held[all_words].sum()),
            cuts=int((cuts * self.weight).sum()),
            held_cuts=int((cuts * self.held).sum()),
            borders=int(w[open_].sum()),
            held_borders=int(h[open_].sum()),
            kept=int(w[open_ & (border == 2)].sum()),
            held_kept=int(h[open_ & (border == 2)].sum()),
            floor=int((pretokens * tells).sum()),
            size=size,
            left_out=int(self.weight[~whole & marked].sum()),
        )

    def _borders(
        self,
        data: bytes,
        at: NDArray[np.int64],
        number: Mapping[int, int],
        cut: SegmentedCounts,
        begin: NDArray[np.int64],
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.int64]]:
        """What stands before each token, the trust in it, and the borders of morphemes in each word."""
        codes = np.frombuffer(data.decode().encode("utf-32-le"), np.uint32)
        flat = np.frombuffer(data, np.uint8)
        chars = np.flatnonzero((flat & 0xC0) != 0x80)  # where each character begins
        syllable = syllable_mask(codes)
        between = np.r_[False, syllable[1:] & syllable[:-1]]
        kind = np.zeros(len(data), np.int8)
        kind[chars[between]] = 1
        trust = np.zeros(len(data))
        index = np.zeros(len(begin) - 1, np.int64)
        index[list(number)] = list(number.values())
        first_char = np.searchsorted(chars, begin[:-1])
        cuts = np.zeros(len(begin) - 1, np.int64)
        words = np.array(list(number), np.int64)
        which = np.array(list(number.values()), np.int64)
        # Of the words as they were counted; where the base puts a space itself they may have had none.
        lead = np.array([len(self.shown[i]) - len(cut.words[k]) for i, k in number.items()], np.int64)
        n = cut.start[which + 1] - cut.start[which]
        place = np.repeat(first_char[words] + lead, n)
        flat_index = np.repeat(cut.start[which] - np.r_[0, np.cumsum(n)[:-1]], n) + np.arange(n.sum())
        offset = place + cut.offset[flat_index]
        worth = _TRUST[cut.kind[flat_index]]
        good = (worth > 0) & between[np.minimum(offset, len(between) - 1)]
        kind[chars[offset[good]]] = 2
        trust[chars[offset[good]]] = worth[good]
        np.add.at(cuts, np.repeat(words, n)[good], 1)
        return kind[at], trust[at], cuts

    def _symbols(
        self, inside: NDArray[np.bool_], is_byte: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32], NDArray[np.bool_]]:
        """Ids of the base, where bytes of one character become that character."""
        ids = self.ids[inside]
        symbol = ids.astype(np.int32)
        dumb = np.array([not string for string in self.base.strings])
        symbol[dumb[ids]] = UNKNOWN
        char, size, kept = np.zeros(len(ids), np.uint64), np.ones(len(ids), np.int32), np.ones(len(ids), bool)
        places = np.flatnonzero(is_byte[ids])
        if len(places):
            byte = np.array(
                [int(token[3:5], 16) if is_byte[i] else 0 for i, token in enumerate(self.base.tokens)], np.uint8
            )[ids]
            word = self.row[inside]
            k = 0
            spelled: dict[bytes, list[int]] = {}
            while k < len(places):
                p = int(places[k])
                n = 4 if byte[p] >= 0xF0 else 3 if byte[p] >= 0xE0 else 2 if byte[p] >= 0xC0 else 1
                if n > 1 and p + n <= len(ids) and is_byte[ids[p : p + n]].all() and word[p] == word[p + n - 1]:
                    spelled.setdefault(byte[p : p + n].tobytes(), []).append(p)
                    kept[p + 1 : p + n] = False
                    size[p] = n
                    k += n
                else:
                    k += 1
            names = sorted(spelled)
            for name, code in zip(names, hash_of(names)[0].tolist(), strict=True):
                if _PIECE.fullmatch(name.decode(errors="replace")):
                    char[spelled[name]] = code
        return symbol[kept], char[kept], size[kept], kept


def learn(
    base: Base,
    text: BaseText,
    add: int,
    *,
    penalty: float = NU,
    blocked: Blocklist | None = None,
    sizes: Sequence[int] = (),
    min_count: int = 2,
    tell: Tell = silent,
) -> PieceList:
    """New pieces in order, up to `add` of them.

    Parameters
    ----------
    base : Base
    text : BaseText
    add : int
        New pieces.
    penalty : float
        What a swallowed border of morphemes takes from the count of a join, as a share of it.
    blocked : Blocklist, optional
        What no piece may hold.
    sizes : sequence of int
        Sizes to tell of; `add` always is.
    min_count : int
        A piece saves at least so many tokens of the text.
    tell : callable
        Progress.

    Raises
    ------
    VocabSizeError
        When the text does not give so many.
    UsageError
        When a size is none.
    """
    if add < 1 or any(not 1 <= size <= add for size in sizes):
        raise UsageError(f"sizes from 1 to {add:,} were wanted, and {sorted(sizes) or add} came", hint="--add 8192")
    if not 0 <= penalty <= MOST_NU:
        raise UsageError(f"nu is {penalty}; wanted a number from 0 to {MOST_NU:g}", hint=f"--nu {NU:g}")
    n_old = base.learning.size
    strings = list(base.learning.strings)
    hashes, powers = hash_of(strings)
    ranks, lists = base.order
    have = {string: i for i, string in enumerate(strings) if string}
    if base.kind == "unigram":  # run time joins nothing there
        ranks = np.full(n_old, -1, np.int64)
    own = np.array([i for i, string in enumerate(strings) if string and holds_hangul(string)], np.int64)
    joints = Joints(text.rows, hashes, powers, ranks, lists, pieces=own, more=add, penalty=penalty)
    spelled: dict[int, bytes] = {}
    refused: set[int] = set()
    chars = {int(code): name for name, code in _chars(text.rows)}
    taken = set(base.added.values())

    def string(c: int) -> bytes:
        left = int(joints.left[c])
        return chars[joints.code(c)] if left < 0 else strings[left] + strings[int(joints.right[c])]

    def fits(c: int) -> bool:
        if c in spelled:
            return True
        if c in refused or joints.is_piece(c):
            return False
        piece = string(c)
        if not _may_be(base, piece) or piece in have:
            refused.add(c)
            return False
        spelled[c] = piece
        return True

    def refuses(piece: bytes) -> bool:
        shown = piece.decode(errors="replace").replace("▁", " ")
        if base.spelled(piece) in taken or (blocked is not None and blocked.refuses(shown)):
            return True
        return _overlaps(piece, have)

    queue = Queue(joints, lambda c: spelled[c], fits, min_count * Joints.SCALE)  # type: ignore[arg-type]
    joints.risen()
    pieces: list[Piece] = []
    told = _Telling(text, joints)
    points = [told.point([])]
    wanted = {add, *sizes}
    while len(pieces) < add and (c := queue.pop()) is not None:
        piece = spelled[c]
        if refuses(piece):
            refused.add(c)
            del spelled[c]
            joints.count[c] = 0
            continue
        left, right = int(joints.left[c]), int(joints.right[c])
        saved = int(joints.count[c]) // Joints.SCALE
        symbol = joints.join(c, int(hash_of([piece])[1][0]))
        have[piece] = symbol
        strings.append(piece)
        ids = (left, right) if left >= 0 else ()
        flat = tuple(chain.from_iterable((i,) if i < n_old else pieces[i - n_old].ids for i in ids)) or base_ids_of(
            base, piece
        )
        pieces.append(Piece(piece, flat, (strings[left], strings[right]) if left >= 0 else None, saved))
        queue.push(joints.risen())
        if len(pieces) in wanted:
            points.append(told.point(pieces))
        if len(pieces) % 256 == 0:
            tell("learn", len(pieces), add)
    if len(pieces) < add:
        raise VocabSizeError(
            f"{add:,} new pieces were wanted, and the text gives only {len(pieces):,} that save {min_count} tokens or more",
            hint=f"--add {len(pieces)}, or more text",
        )
    return PieceList(tuple(pieces), tuple(points), penalty)


def learn_kept(
    base: Base,
    text: BaseText,
    add: int,
    keep: float,
    *,
    blocked: Blocklist | None = None,
    sizes: Sequence[int] = (),
    min_count: int = 2,
    tell: Tell = silent,
) -> PieceList:
    """`learn` with the penalty that keeps a share of the borders of morphemes, found by bisection to .01.

    Parameters
    ----------
    keep : float
        Share of the running text's borders of morphemes that stay borders of tokens, at `add` pieces.

    Others as in `learn`; where no penalty keeps so many, or so few, the nearest is returned.
    """
    if not 0 < keep <= 1:
        raise UsageError(f"--keep {keep} came; a share over 0 and up to 1 was wanted", hint="--keep 0.9")

    def run(penalty: float, at: Sequence[int] = ()) -> PieceList:
        return learn(base, text, add, penalty=penalty, blocked=blocked, sizes=at, min_count=min_count, tell=tell)

    low, high = 0.0, MOST_NU / 2
    best: tuple[float, float] | None = None
    for penalty in _bisection():
        at = low + (high - low) * 0.5 if penalty is None else penalty
        try:
            found = run(at).points[-1].recall
        except VocabSizeError:  # so high a penalty leaves too few pieces
            high = at
            continue
        if best is None or abs(found - keep) < abs(best[1] - keep):
            best = (at, found)
        if abs(found - keep) <= 0.01:
            break
        low, high = (at, high) if found < keep else (low, at)
    return run(best[0] if best else 0.0, sizes)


def _bisection() -> Iterator[float | None]:
    """The default first, then halves."""
    yield NU
    for _ in range(7):
        yield None


class _Telling:
    """Figures of the frontier while a run goes on."""

    def __init__(self, text: BaseText, joints: Joints) -> None:
        self._text, self._joints = text, joints

    def point(self, pieces: Sequence[Piece]) -> SizePoint:
        text, now = self._text, self._joints.totals
        held = text.held_words > 0
        cuts = text.held_cuts if held else text.cuts
        borders = text.held_borders - now["held_borders"] if held else text.borders - now["borders"]
        kept = text.held_kept - now["held_cuts"] if held else text.kept - now["cuts"]
        uses = self._joints.uses()
        return SizePoint(
            size=len(pieces),
            tokens=(text.rest + now["tokens"]) / max(1, text.words),
            held_tokens=(text.held_rest + now["held_tokens"]) / max(1, text.held_words),
            precision=kept / max(1, borders),
            recall=kept / max(1, cuts),
            used=float((uses > 0).mean()) if pieces else 0.0,
            exposure=float(np.median(uses)) / max(1, text.size) * 1e9 if pieces else 0.0,
            floor=text.floor / max(1, text.held_words if held else text.words),
        )


def _chars(rows: TokenRows) -> list[tuple[bytes, int]]:
    """Unknown characters by hash: all that there may be, for the rows keep their hashes only."""
    if not rows.char.any():
        return []
    every = [chr(code).encode() for code in chain(range(0x3131, 0x318F), range(0xAC00, 0xD7A4))]
    return list(zip(every, hash_of(every)[0].tolist(), strict=True))


def _may_be(base: Base, piece: bytes) -> bool:
    """Whether the laws let a piece be: Hangul alone, a space before it at most, or the beginning of one syllable in bytes."""
    body = piece.removeprefix(base.space)
    if not holds_hangul(body):
        return False
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return base.kind == "bytes" and _PART.fullmatch(body) is not None
    return len(text) <= MOST_CHARS and _PIECE.fullmatch(text) is not None


def _overlaps(piece: bytes, have: Mapping[bytes, int]) -> bool:
    """Whether a piece could overlap itself by more than half, by two of its splits (ㅋㅋㅋ): libraries take other ones first."""
    half = len(piece) // 2
    if not any(piece[:k] == piece[-k:] for k in range(half + 1, len(piece))):
        return False
    return sum(piece[:k] in have and piece[k:] in have for k in range(1, len(piece))) > 1


def base_ids_of(base: Base, piece: bytes) -> tuple[int, ...]:
    """The byte tokens of a character."""
    found = [base.ids.get(f"<0x{byte:02X}>", -1) for byte in piece]
    return tuple(found) if -1 not in found else (max(0, base.unknown),)
