"""Marks of tokens: which of them begin an eojeol or a morpheme of the text.

The marks of a word depend on the word alone, because the analyser reads words, as in training. So they are computed once for each
distinct word and stored with its ids in the table of the bulk encoder. For a tokenizer of another library they are
computed from the offsets of its tokens.

A border is a place where a token *and* an eojeol or a morpheme begin. Places inside a token are no borders, so a superword, or a
piece that contains a particle, is one unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok import hangul
from koktok.bulk.encoder import BATCH, DOCUMENTS, Encoder, workers_of
from koktok.bulk.solvers import Solver
from koktok.bulk.table import TABLE_BYTES
from koktok.bulk.texts import Texts
from koktok.instances.token_facts import ENDING, EOJEOL, MORPHEME, TokenFacts
from koktok.instances.word_cuts import WordCuts, strings_of
from koktok.model.tokens import Tokens, running
from koktok.runtimes import LibraryTokenizer
from koktok.text.blocks import Block
from koktok.text.normalize import nfc
from koktok.tokenizer import TrainedTokenizer

_NARROW = 16  # ids of 16 bits and their marks fit the 20 bits that the table of the bulk encoder keeps in its entries


class MarkedTexts:
    """An encoder of texts to ids and marks, for a tokenizer that koktok trained or imported."""

    def __init__(self, tokenizer: TrainedTokenizer | LibraryTokenizer, lexicon: WordCuts) -> None:
        self.tokenizer, self.lexicon, self.facts = tokenizer, lexicon, TokenFacts.of(tokenizer)

    def __call__(
        self, blocks: Iterator[Block], *, threads: int | None = None
    ) -> Iterator[tuple[Texts, Tokens, NDArray[np.uint8]]]:
        """Yield texts with their ids and marks, a part at a time, in order."""
        stream = self._bulk if isinstance(self.tokenizer, TrainedTokenizer) else self._by_offsets
        for texts, tokens, marks in stream(blocks, threads):
            self.facts.mark_eojeols(tokens.ids, tokens.indptr, marks)
            yield texts, tokens, marks

    def _bulk(self, blocks: Iterator[Block], threads: int | None) -> Iterator[tuple[Texts, Tokens, NDArray[np.uint8]]]:
        tokenizer = self.tokenizer
        assert isinstance(tokenizer, TrainedTokenizer)  # `__call__` has checked it
        shift = max(_NARROW, (tokenizer.vocab.size - 1).bit_length())
        encoder = Encoder(
            tokenizer.definition,
            table_bytes=TABLE_BYTES // workers_of(threads),  # memory does not grow with the cores
            marking=lambda solver: _Marking(solver, tokenizer, self.facts, self.lexicon, shift),
        )
        for texts, tokens in encoder.stream(blocks, threads=threads, dtype="uint32"):
            marks = (tokens.ids >> shift).astype(np.uint8)
            yield texts, Tokens(tokens.ids & np.uint32((1 << shift) - 1), tokens.indptr), marks

    def _by_offsets(
        self, blocks: Iterator[Block], _threads: int | None
    ) -> Iterator[tuple[Texts, Tokens, NDArray[np.uint8]]]:
        for make in Texts.batches(blocks, BATCH, DOCUMENTS):
            texts = make()
            lines = [texts.text(i) for i in range(len(texts))]
            encodings = [self.tokenizer.encode(line) for line in lines]
            words = [[(match.start(), match[0]) for match in re.finditer(r"\S+", line)] for line in lines]
            # The analyser reads NFC; in any other spelling of a word its cuts have other places.
            flat = [word if nfc(word) == word else "" for row in words for _, word in row]
            distinct = sorted(set(flat))
            cuts = self.lexicon.cuts(Texts.of(distinct))
            row_of = {word: i for i, word in enumerate(distinct)}
            ids, marks = [], []
            for line, encoding, row in zip(lines, encodings, words, strict=True):
                borders: dict[int, int] = {}
                ending = np.zeros(len(line) + 1, np.uint8)
                for begin, word in row:
                    borders[begin] = EOJEOL | MORPHEME
                    k = row_of[word if nfc(word) == word else ""]
                    for at in range(cuts[0][k], cuts[0][k + 1]):
                        place = begin + int(cuts[1][at])
                        borders[place] = MORPHEME
                        ending[place : begin + len(word)] = ENDING * cuts[2][at]
                before = -1
                for i, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
                    held = line[start:end].lstrip()
                    first = end - len(held)
                    ids.append(i)
                    # The bytes of one character share its span, and only the first of them can begin a unit.
                    begun = borders.get(first, 0) if held or start == end else EOJEOL | MORPHEME
                    marks.append((begun if first != before else 0) | int(ending[min(first, len(line))]))
                    before = first if held else -1
            tokens = np.array(ids, np.uint32)
            offsets = running([len(encoding.ids) for encoding in encodings])
            yield texts, Tokens(tokens, offsets), np.array(marks, np.uint8)


class _Marking:
    """A solver of pretokens that writes the marks into the high bits of each id."""

    def __init__(
        self, solver: Solver, tokenizer: TrainedTokenizer, facts: TokenFacts, lexicon: WordCuts, shift: int
    ) -> None:
        self.solver, self.lexicon, self.shift = solver, lexicon, shift
        vocab = tokenizer.vocab
        self.dropped = vocab.kind == "wordpiece"  # its pieces hold no spaces
        self.spaced = facts.spaced
        # The number of characters that begin in a token, and whether its first byte begins one.
        lead = [sum(byte & 0xC0 != 0x80 for byte in data) for data in vocab.token_bytes]
        self.chars = np.array(lead, np.int64)
        self.whole = np.array([data[:1] and data[0] & 0xC0 != 0x80 for data in vocab.token_bytes], np.bool_)
        self.spelled: Callable[[str], int] | None = None
        if tokenizer.definition.jamo:
            normalizer = tokenizer.normalizer
            self.spelled = lambda char: len(normalizer(char))

    def __call__(
        self, data: NDArray[np.uint16], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        ids, offsets = self.solver(data, begins, ends)
        if not len(ids):
            return ids, offsets
        marks = np.where(self.spaced[ids], EOJEOL | MORPHEME, 0).astype(np.int32)
        firsts = offsets[:-1][np.diff(offsets) > 0]
        spaced = _SPACES[data[begins]]
        marks[firsts] |= MORPHEME | np.where(spaced[np.diff(offsets) > 0], EOJEOL, 0).astype(np.int32)
        if self.lexicon.none:
            return ids | (marks << self.shift), offsets
        words = Texts(data, begins, ends)
        pretokens: list[str] = []
        if self.spelled is not None:  # pieces are jamo, and the analyser reads syllables
            pretokens = [hangul.join(pretoken) for pretoken in strings_of(data, begins, ends)]
            words = Texts.of(pretokens)
        starts, at, endings = self.lexicon.cuts(words)
        if len(at):
            of = np.repeat(np.arange(len(begins)), np.diff(starts))
            if self.spelled is not None:
                at = np.array([sum(map(self.spelled, pretokens[k][:cut])) for k, cut in zip(of, at, strict=True)])
            # The place of a token among the characters of its pretoken.
            chars = self.chars[ids]
            places = np.cumsum(chars) - chars
            token_of = np.repeat(np.arange(len(begins)), np.diff(offsets))
            places -= places[np.minimum(offsets[:-1], len(ids) - 1)][token_of]
            if self.dropped:
                places += _blanks(words.data, words.begins, words.ends)[token_of]
            places -= ~self.whole[ids]  # the rest of a character is at its beginning
            # One row of rising numbers for all pretokens, so that bisection finds the place of a cut.
            far = int(max(places.max(), at.max())) + 1
            cuts = of * far + at
            tokens = token_of * far + places
            last = np.searchsorted(cuts, tokens, side="right") - 1
            within = (last >= 0) & (of[last] == token_of)
            marks |= np.where(within & (cuts[last] == tokens) & self.whole[ids], MORPHEME, 0).astype(np.int32)
            marks |= np.where(within & endings[last], ENDING, 0).astype(np.int32)
        return ids | (marks << self.shift), offsets


@njit(nogil=True, cache=True)
def _blanks(data, begins, ends):
    """The number of spaces that each word begins with."""
    counts = np.zeros(len(begins), np.int64)
    for i in range(len(begins)):
        while begins[i] + counts[i] < ends[i] and data[begins[i] + counts[i]] == 32:
            counts[i] += 1
    return counts


_SPACES = np.array([chr(i).isspace() for i in range(1 << 16)])
"""By unit of UTF-16; there is no white space beyond."""
