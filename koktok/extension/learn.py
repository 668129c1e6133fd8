"""The training of new pieces: merges of the base's tokens, with morpheme boundaries in the count.

A candidate counts the tokens that it saves, minus a penalty for every morpheme boundary inside it, so pieces inside morphemes
come before frequent ones across them; `nu` is the penalty, and `keep` searches it. Every prefix of the ordered list is an
extension, because each piece is counted in the segmentation by the pieces before it. Held-out words are merged, too, so one run
measures all sizes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field, model_validator

from koktok.errors import UsageError, VocabSizeError
from koktok.extension.base_text import BaseText
from koktok.extension.base_tokenizer import HANGUL, Base, holds_hangul
from koktok.extension.merges import MergeState, Queue, TokenRows, hash_of
from koktok.model.vocab import SPACE_MARK, whole_text
from koktok.progress import OnProgress, silent
from koktok.recipe import Options
from koktok.text.blocklist import Blocklist

ADD: Final = 8192
"""New pieces by default."""

Method = Literal["mean", "eeve", "weighted"]
"""Initialization of new rows, see `koktok.extension.embeddings`."""

NU: Final = 1.0
"""The default penalty: a merge across a morpheme boundary counts nothing."""

MOST_NU: Final = 8.0
"""The largest penalty: a candidate that sometimes crosses a boundary is never chosen."""

MOST_CHARS: Final = 16
"""Longest piece in characters, as in BPE of `koktok train`."""

# Where a piece ends inside a syllable: bytes that begin one, at the end.
_CUT = re.compile(rb"(?:[\xEB\xEC][\x80-\xBF]?|\xEA[\xB0-\xBF]?|\xED[\x80-\x9E]?)?\Z")


class ExtendOptions(Options):
    """Settings of an extension."""

    add: Annotated[int, Field(ge=1)] | None = None
    """Number of new pieces. By default 8,192, or the largest of the sizes."""
    sizes: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Sizes to report from one run; the largest is written unless `add` is given."""
    keep: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the morpheme boundaries that are token boundaries; `nu` is adjusted to reach it."""
    nu: Annotated[float, Field(ge=0, le=MOST_NU)] | None = None
    """Cost of a morpheme boundary inside a piece, as a share of what the piece saves; by default 1."""
    fill: str | None = None
    """Slots that the base reserves, in place of ids after all others: `reserved`, `unused`, or a file of tokens."""
    min_count: Annotated[int, Field(ge=1)] | None = None
    """Minimum number of tokens that a piece saves, and minimum count of a word; by default 2 tokens, and words of any count."""
    init: Method = "mean"
    """Initialization of new embedding rows."""
    pad_to: Annotated[int, Field(ge=1)] = 1
    """Where the model's matrices grow, round their rows up to a multiple of this."""
    pattern: str | None = None
    """For tiktoken ranks: the name of a pattern, or a regular expression."""
    specials: dict[str, int] | None = None
    """For tiktoken ranks: special tokens with their ids."""

    @model_validator(mode="after")
    def _fits(self) -> ExtendOptions:
        if any(size > self.size for size in self.sizes):
            raise UsageError(f"expected sizes from 1 to {self.size:,}, got {max(self.sizes):,}", hint="--add 8192")
        if self.keep is not None and self.nu is not None:
            raise UsageError("--keep finds --nu; expected one of them, got both", hint="--keep 0.8")
        return self

    @property
    def size(self) -> int:
        """Number of new pieces."""
        return self.add or max(self.sizes, default=ADD)


UNRECORDED: Final = {"add", "sizes", "nu", "pattern", "specials"}
"""Options that extension.json tells by what became of them: its pieces, the `nu` that was found, the base."""


@dataclass(frozen=True)
class Piece:
    """A new piece."""

    string: bytes
    ids: tuple[int, ...]
    pair: tuple[bytes, bytes] | None
    count: int


@dataclass(frozen=True)
class SizePoint:
    """An extension of one size, on the frontier."""

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
class PieceList:
    """An ordered list of new pieces."""

    pieces: tuple[Piece, ...]
    points: tuple[SizePoint, ...]
    penalty: float


def learn(
    base: Base,
    text: BaseText,
    options: ExtendOptions,
    blocklist: Blocklist | None = None,
    on_progress: OnProgress = silent,
) -> PieceList:
    """New pieces in order."""
    learner = _Learner(base, text, options, blocklist, on_progress)
    if options.keep is None:
        return learner.run(NU if options.nu is None else options.nu)
    low, high = 0.0, MOST_NU / 2
    best: tuple[float, PieceList] | None = None
    for first in (NU, *[None] * 7):
        at = (low + high) / 2 if first is None else first
        try:
            result = learner.run(at)
        except VocabSizeError:  # too few pieces with so high a penalty
            high = at
            continue
        recall = result.points[-1].recall
        if best is None or abs(recall - options.keep) < abs(best[0] - options.keep):
            best = (recall, result)
        if abs(recall - options.keep) <= 0.01:
            break
        low, high = (at, high) if recall < options.keep else (low, at)
    return best[1] if best else learner.run(0.0)


class _Learner:
    """A trainer for one text, run with different penalties."""

    def __init__(
        self, base: Base, text: BaseText, options: ExtendOptions, blocklist: Blocklist | None, on_progress: OnProgress
    ) -> None:
        self.base, self.text, self.options, self.on_progress = base, text, options, on_progress
        self.blocklist, self.least = blocklist, options.min_count or 2
        self.strings = base.with_byte_fallback.strings
        self.hashes, self.powers = hash_of(self.strings)
        self.ranks, self.lists = base.order
        if base.kind == "unigram":  # has no merges at run time
            self.ranks = np.full(len(self.strings), -1, np.int64)
        self.own = np.array([i for i, string in enumerate(self.strings) if string and holds_hangul(string)], np.int64)
        self.chars = {int(code): name for name, code in _chars(text.rows)}
        self.taken = set(base.added.values())

    def run(self, penalty: float) -> PieceList:
        """The list of pieces for a penalty."""
        base, options = self.base, self.options
        n_old, strings = len(self.strings), list(self.strings)
        have = {string: i for i, string in enumerate(strings) if string}
        state = MergeState(
            self.text.rows,
            self.hashes,
            self.powers,
            self.ranks,
            self.lists,
            pieces=self.own,
            more=options.size,
            penalty=penalty,
        )
        spelled: dict[int, bytes] = {}
        refused: set[int] = set()

        def string(c: int) -> bytes:
            left = int(state.left[c])
            return self.chars[state.code(c)] if left < 0 else strings[left] + strings[int(state.right[c])]

        def fits(c: int) -> bool:
            if c in spelled:
                return True
            if c in refused or state.is_piece(c):
                return False
            piece = string(c)
            if not _may_be(base, piece) or piece in have:
                refused.add(c)
                return False
            spelled[c] = piece
            return True

        queue = Queue(state, lambda c: spelled[c], fits, self.least * MergeState.SCALE)
        state.risen()
        pieces: list[Piece] = []
        points = [_point(self.text, state, 0)]
        sizes = {options.size, *options.sizes}
        while len(pieces) < options.size and (c := queue.pop()) is not None:
            piece = spelled[c]
            if self.refuses(piece, have):
                refused.add(c)
                del spelled[c]
                state.count[c] = 0
                continue
            left, right = int(state.left[c]), int(state.right[c])
            saved = int(state.count[c]) // MergeState.SCALE
            have[piece] = state.join(c, int(hash_of([piece])[1][0]))
            strings.append(piece)
            ids = (left, right) if left >= 0 else ()
            flat = tuple(chain.from_iterable((i,) if i < n_old else pieces[i - n_old].ids for i in ids))
            pair = (strings[left], strings[right]) if left >= 0 else None
            pieces.append(Piece(piece, flat or base_ids_of(base, piece), pair, saved))
            queue.push(state.risen())
            if len(pieces) in sizes:
                points.append(_point(self.text, state, len(pieces)))
            if len(pieces) % 256 == 0:
                self.on_progress("learn", len(pieces), options.size)
        if len(pieces) < options.size:
            raise VocabSizeError(
                f"expected {options.size:,} new pieces, got {len(pieces):,} that save {self.least} tokens or more in this text",
                hint=f"--add {len(pieces)}, or more text",
            )
        return PieceList(tuple(pieces), tuple(points), penalty)

    def refuses(self, piece: bytes, have: Mapping[bytes, int]) -> bool:
        """Whether a piece is excluded by the user, by the base's special tokens, or by repetition."""
        shown = piece.decode(errors="replace").replace(SPACE_MARK, " ")
        if self.base.encode_piece(piece) in self.taken:
            return True
        return (self.blocklist is not None and bool(self.blocklist.refuses(shown))) or _overlaps(piece, have)


def splits(piece: bytes, have: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair of pieces that merges to this one, the longest left part first.

    Of two splits that overlap in a text ("다니" "다" "니다") the leftmost is then merged first, as in libraries that use ranks.
    """
    return [(piece[:k], piece[k:]) for k in range(len(piece) - 1, 0, -1) if piece[:k] in have and piece[k:] in have]


def _point(text: BaseText, state: MergeState, n_pieces: int) -> SizePoint:
    """The figures of the extension with the pieces so far."""
    totals, weight = (text.held, state.held) if text.held.words else (text.train, state.weight)
    kept = totals.kept - state.swallowed(weight, 2)
    uses = state.uses()
    return SizePoint(
        size=n_pieces,
        tokens=(text.train.rest + state.tokens(state.weight)) / max(1, text.train.words),
        held_tokens=(text.held.rest + state.tokens(state.held)) / max(1, text.held.words),
        precision=kept / max(1, totals.borders - state.swallowed(weight, 1)),
        recall=kept / max(1, totals.cuts),
        used=float((uses > 0).mean()) if n_pieces else 0.0,
        exposure=float(np.median(uses)) / max(1, text.size) * 1e9 if n_pieces else 0.0,
        floor=text.floor / max(1, totals.words),
    )


def _chars(rows: TokenRows) -> list[tuple[bytes, int]]:
    """All possible unknown characters by hash, because the rows have only their hashes."""
    if not rows.char.any():
        return []
    every = [chr(code).encode() for code in chain(range(0x3131, 0x318F), range(0xAC00, 0xD7A4))]
    return list(zip(every, hash_of(every)[0].tolist(), strict=True))


def _may_be(base: Base, piece: bytes) -> bool:
    """Whether the laws allow a piece: Hangul, with a space or one mark before it, or a mark after it; it may end inside a syllable."""
    body = piece.removeprefix(base.space)
    if not holds_hangul(body):
        return False
    whole = body[: _CUT.search(body).start()] if base.kind == "bytes" else body  # type: ignore[union-attr]
    text = whole_text(whole)
    if text is None:
        return False
    if len(body) == len(piece) and text and _is_mark(text[0]):
        text = text[1:]
    elif len(whole) == len(body) and _is_mark(text[-1]):
        text = text[:-1]
    return len(text) <= MOST_CHARS and (not text or HANGUL.fullmatch(text) is not None)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS" and char != SPACE_MARK


def _overlaps(piece: bytes, have: Mapping[bytes, int]) -> bool:
    """Whether a piece (ㅋㅋㅋ) can overlap itself by more than half and has two splits, whose order differs between libraries."""
    half = len(piece) // 2
    if not any(piece[:k] == piece[-k:] for k in range(half + 1, len(piece))):
        return False
    return sum(piece[:k] in have and piece[k:] in have for k in range(1, len(piece))) > 1


def base_ids_of(base: Base, piece: bytes) -> tuple[int, ...]:
    """The byte tokens of a character."""
    ids = [base.ids.get(f"<0x{byte:02X}>", -1) for byte in piece]
    return tuple(ids) if -1 not in ids else (max(0, base.unknown),)
