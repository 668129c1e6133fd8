"""The training text of an extension: counted words in tokens of the base, with the morpheme boundaries of an analyser.

For every pretoken with Hangul there are its ids, the kind of boundary before each token (inside a character, between characters,
between morphemes) and the trust in that boundary; all other tokens are a number, because no extension changes them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from koktok.count import Counts
from koktok.count.counting import CountResult
from koktok.count.sample import enough, sampled
from koktok.errors import InputError
from koktok.extension.base_tokenizer import HANGUL, Base, holds_hangul
from koktok.extension.merges import UNKNOWN, TokenRows, hash_of
from koktok.hangul import syllable_mask
from koktok.model.tokens import running
from koktok.model.vocab import BYTE_PIECES
from koktok.progress import OnProgress, silent
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.text.normalize import normalized
from koktok.training.lattice import TRUST

_BATCH = 1 << 15
_TRUST = np.array([TRUST.get(kind.label, TRUST["rest"]) for kind in BoundaryKind])


class Totals(NamedTuple):
    """Sums over the training words, or over the held-out ones."""

    rest: int
    """Tokens outside of `TokenRows`."""
    words: int
    cuts: int
    """Morpheme boundaries."""
    borders: int
    """Token boundaries between two syllables."""
    kept: int
    """Token boundaries that are morpheme boundaries."""


@dataclass(frozen=True)
class BaseText:
    """Counted words in tokens of the base."""

    rows: TokenRows
    train: Totals
    held: Totals
    floor: int
    size: int
    left_out: int


def prepare(
    base: Base,
    reading: CountResult,
    segmenter: Segmenter,
    *,
    policy: str = "morphemes",
    min_count: int | None = None,
    on_progress: OnProgress = silent,
) -> BaseText:
    """Encode the words of a text with the base, and find their morpheme boundaries."""
    n: Counter[str] = Counter()
    held: Counter[str] = Counter()
    train = reading.train if min_count else sampled(reading.train, enough(len(reading.train)))
    least = min_count or 1
    for counts, into in ((train, n), (reading.held, held)):
        for word, times in zip(counts.words, counts.n.tolist(), strict=True):
            into[normalized("NFC", word)] += times
    size = sum(len(word.encode()) * times for word, times in n.items())
    words = sorted(word for word in {*n, *held} if n[word] >= least or held[word])
    marked = [i for i, word in enumerate(words) if HANGUL.search(word)]
    if not marked:
        raise InputError("expected Korean text, got no Hangul in the text", hint="koktok extend BASE TEXT")
    cut = segment_counts(
        Counts.from_mapping({words[i]: 1 for i in marked}),
        segmenter,
        Policy.parse(policy),
        on_progress=lambda done, total: on_progress("segment", done, total),
    )
    table = WordTokens.of(base.with_byte_fallback, words, on_progress)
    weight = np.array([n[word] if n[word] >= least else 0 for word in words], np.int64)
    weight_held = np.array([held[word] for word in words], np.int64)
    has_hangul = np.zeros(len(words), bool)
    has_hangul[marked] = True
    of_pretoken = np.bincount(table.pretoken, table.writes_hangul & (has_hangul & table.covered)[table.word]) > 0
    inside = of_pretoken[table.pretoken]
    border = borders(table, np.array(marked, np.int64), cut)
    between = (border.kind > 0) & ~table.starts_word & table.covered[table.word]
    all_words = np.array([bool(word.strip()) for word in table.words])

    def totals(weight: NDArray[np.int64]) -> Totals:
        running = weight[table.word]
        return Totals(
            rest=int(running[~inside].sum()),
            words=int(weight[all_words].sum()),
            cuts=int((border.cuts * weight).sum()),
            borders=int(running[between].sum()),
            kept=int(running[between & (border.kind == 2)].sum()),
        )

    pretokens = np.bincount(table.word[table.starts_pretoken], minlength=len(words))
    return BaseText(
        rows=token_rows(table, inside, border, weight, weight_held),
        train=totals(weight),
        held=totals(weight_held),
        floor=int((pretokens * (weight_held if weight_held.sum() else weight)).sum()),
        size=size,
        left_out=int(weight[~table.covered & has_hangul].sum()),
    )


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The base's tokens of all words: the id of each, its word and its pretoken; a place is a byte of all words in a row."""

    base: Base
    words: list[str]
    """As the base reads them; with the space that it adds itself."""
    id: NDArray[np.int64]
    word: NDArray[np.int64]
    pretoken: NDArray[np.int64]

    @classmethod
    def of(cls, base: Base, words: list[str], on_progress: OnProgress) -> WordTokens:
        """The tokens of words; without a pattern a whole word is one pretoken."""
        sent = [word.lstrip(" ") for word in words] if base.prefixes else words
        ids: list[NDArray[np.int64]] = []
        parts: list[NDArray[np.int64]] = []
        waiting = iter(sent)
        while batch := list(islice(waiting, _BATCH)):
            for encoding in base.encodings(batch):
                ids.append(np.array(encoding.ids, np.int64))
                parts.append(np.array(encoding.word_ids if base.kind == "bytes" else [0] * len(ids[-1]), np.int64))
            on_progress("encode", len(ids), len(sent))
        word, part = np.repeat(np.arange(len(words)), [len(row) for row in ids]), np.concatenate(parts)
        pretoken = np.cumsum(_changes(word) | _changes(part)) - 1
        shown = [" " + word for word in sent] if base.prefixes else words
        return cls(base, shown, np.concatenate(ids), word, pretoken)

    @cached_property
    def data(self) -> bytes:
        """All words in a row."""
        return "".join(self.words).encode()

    @cached_property
    def word_begin(self) -> NDArray[np.int64]:
        """The place where each word begins, and the last ends."""
        return running([len(word.encode()) for word in self.words])

    @cached_property
    def byte(self) -> NDArray[np.int16]:
        """The byte of each id of byte fallback, -1 for others."""
        bytes_ = {} if self.base.kind == "bytes" else {token: i for i, token in enumerate(BYTE_PIECES)}
        return np.array([bytes_.get(token, -1) for token in self.base.tokens], np.int16)

    @cached_property
    def length(self) -> NDArray[np.int64]:
        """Bytes that each token spells."""
        space = self.base.space if self.base.kind != "bytes" else b" "
        length = np.array([len(string.replace(space, b" ")) for string in self.base.strings])
        length[self.byte >= 0] = 1
        return length[self.id]

    @cached_property
    def covered(self) -> NDArray[np.bool_]:
        """Whether the tokens of each word spell it exactly; others are left out."""
        spelled = np.bincount(self.word, self.length, len(self.words)).astype(np.int64)
        return np.asarray(spelled == np.diff(self.word_begin))

    @cached_property
    def begin(self) -> NDArray[np.int64]:
        """The place where each token begins, in a covered word."""
        before = np.cumsum(self.length) - self.length
        heads, word = np.flatnonzero(self.starts_word), self.word
        shift = np.zeros(len(self.words), np.int64)
        shift[word[heads]] = self.word_begin[word[heads]] - before[heads]
        return np.asarray(np.minimum(before + shift[word], len(self.data) - 1))

    @cached_property
    def starts_word(self) -> NDArray[np.bool_]:
        """Whether each token is the first of its word."""
        return _changes(self.word)

    @cached_property
    def starts_pretoken(self) -> NDArray[np.bool_]:
        """Whether each token is the first of its pretoken."""
        return _changes(self.pretoken)

    @cached_property
    def writes_hangul(self) -> NDArray[np.bool_]:
        """Whether each token may be a part of Hangul."""
        strings = self.base.strings
        hangul = np.array([holds_hangul(string) or any(byte > 0x7F for byte in string) for string in strings])
        return (hangul | (self.byte >= 0))[self.id]


def _changes(column: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row has another value than the one before it."""
    return np.concatenate([[True], column[1:] != column[:-1]])


class Borders(NamedTuple):
    """The kind of boundary before each token, the trust in it, and the number of morpheme boundaries in each word."""

    kind: NDArray[np.int8]
    trust: NDArray[np.float64]
    cuts: NDArray[np.int64]


def borders(table: WordTokens, marked: NDArray[np.int64], cut: SegmentedCounts) -> Borders:
    """The boundaries of all tokens; `cut` has the cuts of the words that are `marked`, in their order."""
    codes = np.frombuffer(table.data.decode().encode("utf-32-le"), np.uint32)
    chars = np.flatnonzero((np.frombuffer(table.data, np.uint8) & 0xC0) != 0x80)  # where each character begins
    syllable = syllable_mask(codes)
    between = np.r_[False, syllable[1:] & syllable[:-1]]
    kind, trust = np.zeros(len(table.data), np.int8), np.zeros(len(table.data))
    kind[chars[between]] = 1
    # (학교, ")를", 다.: gold segmentations cut off punctuation.
    mark = ~syllable & (codes != ord(" "))
    trust[chars[np.r_[False, (syllable[1:] & mark[:-1]) | (mark[1:] & syllable[:-1])]]] = TRUST["punctuation"]
    # The space that the base adds is not in a counted word without one.
    lead = np.array(
        [len(table.words[i]) - len(word) for i, word in zip(marked.tolist(), cut.words, strict=True)], np.int64
    )
    first_char, n = np.searchsorted(chars, table.word_begin[:-1]), np.diff(cut.start)
    offset = np.repeat(first_char[marked] + lead, n) + cut.offset
    trusts = _TRUST[cut.kind]
    good = (trusts > 0) & between[np.minimum(offset, len(between) - 1)]
    kind[chars[offset[good]]] = 2
    trust[chars[offset[good]]] = trusts[good]
    cuts = np.bincount(np.repeat(marked, n)[good], minlength=len(table.words))
    return Borders(kind[table.begin], trust[table.begin], cuts)


def token_rows(
    table: WordTokens,
    inside: NDArray[np.bool_],
    border: Borders,
    weight: NDArray[np.int64],
    held: NDArray[np.int64],
) -> TokenRows:
    """The pretokens whose tokens are `inside`; the byte tokens of one character become one symbol."""
    ids, pretoken, first = table.id[inside], table.pretoken[inside], table.starts_pretoken & inside
    byte = table.byte[ids]
    symbol = ids.astype(np.int32)
    symbol[np.array([not string for string in table.base.strings])[ids]] = UNKNOWN
    char, size, kept = np.zeros(len(ids), np.uint64), np.ones(len(ids), np.int32), np.ones(len(ids), bool)
    spelled: dict[bytes, list[int]] = {}
    end = 0
    for p in np.flatnonzero(byte >= 0xC0).tolist():
        n = 4 if byte[p] >= 0xF0 else 3 if byte[p] >= 0xE0 else 2
        if p < end or p + n > len(ids) or (byte[p : p + n] < 0).any() or pretoken[p] != pretoken[p + n - 1]:
            continue
        spelled.setdefault(byte[p : p + n].astype(np.uint8).tobytes(), []).append(p)
        kept[p + 1 : p + n] = False
        size[p], end = n, p + n
    names = sorted(spelled)
    for name, code in zip(names, hash_of(names)[0].tolist(), strict=True) if names else ():
        if HANGUL.fullmatch(name.decode(errors="replace")):
            char[spelled[name]] = code
    return TokenRows(
        symbol=symbol[kept],
        char=char[kept],
        start=np.r_[np.flatnonzero(table.starts_pretoken[inside][kept]), kept.sum()].astype(np.int64),
        weight=weight[table.word][first],
        held=held[table.word][first],
        size=size[kept],
        border=border.kind[inside][kept],
        trust=border.trust[inside][kept],
    )
