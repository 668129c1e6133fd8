"""The training text of an extension: counted words in tokens of the base, with the morpheme boundaries of an analyser.

For every pretoken with Hangul there are its ids, the kind of boundary before each token (inside a character, between characters,
between morphemes) and the trust in that boundary; all other tokens are a number, because no extension changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from koktok.count import Counts
from koktok.count.counting import CountResult
from koktok.count.sample import enough, sampled
from koktok.errors import InputError
from koktok.extension.base_tokenizer import HANGUL, Base, holds_hangul
from koktok.extension.merges import UNKNOWN, TokenRows, hash_of
from koktok.hangul import syllable_mask
from koktok.progress import OnProgress, silent
from koktok.segment import Policy, Segmenter, segment_counts
from koktok.segment.segmented import BoundaryKind, SegmentedCounts
from koktok.text.normalize import normalized
from koktok.training.lattice import TRUST

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    weight = np.array([n[word] if n[word] >= least else 0 for word in words], np.int64)
    weight_held = np.array([held[word] for word in words], np.int64)
    return _BaseTokens(base.with_byte_fallback, words, weight, weight_held, on_progress).text(
        dict(zip(marked, range(len(marked)), strict=True)), cut, size
    )


class _BaseTokens:
    """The base's tokens of all words in flat arrays: the id, the word and the pretoken of each."""

    def __init__(
        self, base: Base, words: list[str], weight: NDArray[np.int64], held: NDArray[np.int64], on_progress: OnProgress
    ) -> None:
        self.base, self.weight, self.held = base, weight, held
        # If the base itself adds a space before a text, words are encoded without theirs.
        self.shown = [" " + word.lstrip(" ") for word in words] if base.prefixes else words
        sent = [word.lstrip(" ") for word in words] if base.prefixes else words
        ids: list[NDArray[np.int64]] = []
        parts: list[NDArray[np.int64]] = []
        lengths: list[int] = []
        waiting = iter(sent)
        while batch := list(islice(waiting, _BATCH)):
            for encoding in base.encodings(batch):
                ids.append(np.array(encoding.ids, np.int64))
                if base.kind == "bytes":
                    parts.append(np.array(encoding.word_ids, np.int64))
                lengths.append(len(encoding.ids))
            on_progress("encode", len(lengths), len(sent))
        self.ids = np.concatenate(ids)
        self.word = np.repeat(np.arange(len(words)), lengths)
        # Without a pattern a whole word is one pretoken.
        first = np.r_[True, self.word[1:] != self.word[:-1]]
        if base.kind == "bytes":
            part = np.concatenate(parts)
            first |= np.r_[True, part[1:] != part[:-1]]
        self.row = np.cumsum(first) - 1

    def text(self, number: Mapping[int, int], cut: SegmentedCounts, size: int) -> BaseText:
        """The pretokens with Hangul as `TokenRows`, and the number of all other tokens."""
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
        # Where each token begins in `data`; words that the tokens do not cover exactly are left out.
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
        measured = self.held if self.held.sum() else self.weight
        pretokens = np.bincount(
            self.word[np.flatnonzero(np.r_[True, self.row[1:] != self.row[:-1]])], minlength=len(of_word)
        )
        all_words = np.array([bool(word.strip()) for word in self.shown])
        start = np.r_[True, self.row[1:] != self.row[:-1]]
        between = (border > 0) & ~start & inside
        # Boundaries before the first token of a pretoken stay after any merge: the pattern cuts there.
        fixed = (border > 0) & ~(between) & np.r_[False, self.word[1:] == self.word[:-1]] & whole[self.word]
        open_ = between | fixed
        symbol, char, n_tokens, kept_tokens = self._symbols(inside, is_byte)
        rows = TokenRows(
            symbol=symbol,
            char=char,
            start=np.r_[np.flatnonzero(start[inside][kept_tokens]), len(symbol)].astype(np.int64),
            weight=self.weight[self.word][inside & start],
            held=self.held[self.word][inside & start],
            size=n_tokens,
            border=border[inside][kept_tokens],
            trust=trust[inside][kept_tokens],
        )

        def totals(weight: NDArray[np.int64]) -> Totals:
            running = weight[self.word]
            return Totals(
                rest=int(running[~inside].sum()),
                words=int(weight[all_words].sum()),
                cuts=int((cuts * weight).sum()),
                borders=int(running[open_].sum()),
                kept=int(running[open_ & (border == 2)].sum()),
            )

        return BaseText(
            rows=rows,
            train=totals(self.weight),
            held=totals(self.held),
            floor=int((pretokens * measured).sum()),
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
        """The kind of boundary before each token, the trust in it, and the number of morpheme boundaries in each word."""
        codes = np.frombuffer(data.decode().encode("utf-32-le"), np.uint32)
        flat = np.frombuffer(data, np.uint8)
        chars = np.flatnonzero((flat & 0xC0) != 0x80)  # where each character begins
        syllable = syllable_mask(codes)
        between = np.r_[False, syllable[1:] & syllable[:-1]]
        kind = np.zeros(len(data), np.int8)
        kind[chars[between]] = 1
        trust = np.zeros(len(data))
        # (학교, ")를", 다.: gold segmentations cut off punctuation.
        mark = ~syllable & (codes != ord(" "))
        trust[chars[np.r_[False, (syllable[1:] & mark[:-1]) | (mark[1:] & syllable[:-1])]]] = TRUST["punctuation"]
        index = np.zeros(len(begin) - 1, np.int64)
        index[list(number)] = list(number.values())
        first_char = np.searchsorted(chars, begin[:-1])
        cuts = np.zeros(len(begin) - 1, np.int64)
        words = np.array(list(number), np.int64)
        which = np.array(list(number.values()), np.int64)
        # The space that the base adds is not in a counted word without one.
        lead = np.array([len(self.shown[i]) - len(cut.words[k]) for i, k in number.items()], np.int64)
        n = cut.start[which + 1] - cut.start[which]
        place = np.repeat(first_char[words] + lead, n)
        flat_index = np.repeat(cut.start[which] - np.r_[0, np.cumsum(n)[:-1]], n) + np.arange(n.sum())
        offset = place + cut.offset[flat_index]
        trusts = _TRUST[cut.kind[flat_index]]
        good = (trusts > 0) & between[np.minimum(offset, len(between) - 1)]
        kind[chars[offset[good]]] = 2
        trust[chars[offset[good]]] = trusts[good]
        np.add.at(cuts, np.repeat(words, n)[good], 1)
        return kind[at], trust[at], cuts

    def _symbols(
        self, inside: NDArray[np.bool_], is_byte: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32], NDArray[np.bool_]]:
        """Ids of the base; the byte tokens of one character become one symbol."""
        ids = self.ids[inside]
        symbol = ids.astype(np.int32)
        unmergeable = np.array([not string for string in self.base.strings])
        symbol[unmergeable[ids]] = UNKNOWN
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
                if HANGUL.fullmatch(name.decode(errors="replace")):
                    char[spelled[name]] = code
        return symbol[kept], char[kept], size[kept], kept
