"""Facts about every id of a tokenizer, in one table: whether it is special, ordinary, white space, a symbol.

A token begins an eojeol if white space is before it. A piece that holds its space is known by its id; in a WordPiece vocabulary the
pieces hold none, and a piece without `##` is taken for the beginning. `koktok.instances.borders` has the text as well. It and
the collator both end in `mark_eojeols`, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.runtimes import LibraryTokenizer
from koktok.tokenizer import TrainedTokenizer

EOJEOL, MORPHEME, ENDING, SYMBOL = 1, 2, 4, 8
"""Marks, as bits: a token begins an eojeol; begins a morpheme; belongs to a particle, ending or copula; is punctuation."""

SPECIAL = 128
"""The mark of a special token in an instance."""

_SPARE = ("[unused", "<unused", "<0x")


@dataclass(frozen=True, eq=False)
class TokenFacts:
    """The special and the ordinary ids of a tokenizer, and the text that each id writes."""

    roles: Mapping[str, int]
    special: NDArray[np.bool_]
    ordinary: NDArray[np.bool_]
    """Ids that may replace a masked token: pieces, without special tokens, bytes, holes and the unknown token."""

    tokens: Sequence[str] = ()
    written: Sequence[str] = ()
    """The text of each id as far as its bytes are whole characters, U+FFFD for the rest, '' for special tokens."""

    @classmethod
    def of(cls, tokenizer: TrainedTokenizer | LibraryTokenizer) -> TokenFacts:
        """Return the facts of a tokenizer that koktok trained or imported."""
        vocab = tokenizer.vocab
        specials = set(vocab.special_ids.values())
        roles = {
            role: vocab.special_ids[token] for role, token in tokenizer.roles.items() if token in vocab.special_ids
        }
        excluded = {*specials, *roles.values()}
        if isinstance(tokenizer, TrainedTokenizer):
            excluded |= set(range(tokenizer.vocab.n_bytes))
            written = [data.decode("utf-8", "replace") for data in tokenizer.vocab.token_bytes]
        else:
            excluded |= {i for i, token in enumerate(vocab.tokens) if not token or token.startswith(_SPARE)}
            written = [
                token.removeprefix("##") if token.startswith("##") else tokenizer.decode([i])
                for i, token in enumerate("" if i in specials else token for i, token in enumerate(vocab.tokens))
            ]
        written = ["" if i in specials or not vocab.tokens[i] else text for i, text in enumerate(written)]
        return cls(roles, _flags(vocab.size, specials), ~_flags(vocab.size, excluded), vocab.tokens, written)

    @classmethod
    def of_transformers(cls, tokenizer: Any) -> TokenFacts:
        """Return the facts of a tokenizer of transformers."""
        tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        added = tokenizer.added_tokens_decoder.items()
        specials = {*tokenizer.all_special_ids, *(i for i, token in added if token.special)}
        # Behind a letter, because a decoder may remove the first space of a text.
        letter = tokenizer("a", add_special_tokens=False)["input_ids"]
        head = tokenizer.decode(letter, clean_up_tokenization_spaces=False)
        written = [
            ""
            if i in specials
            else str(tokenizer.decode([*letter, i], clean_up_tokenization_spaces=False)).removeprefix(head)
            for i in range(len(tokens))
        ]
        roles = {role: getattr(tokenizer, f"{role}_id") for role in ("mask_token", "pad_token")}
        spare = {i for i, token in enumerate(tokens) if token.startswith(_SPARE)}
        return cls(
            {role: i for role, i in roles.items() if i is not None},
            _flags(len(tokens), specials),
            ~_flags(len(tokens), specials | spare),
            tokens,
            written,
        )

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> TokenFacts:
        """Return the facts that the manifest of a folder holds; the texts of the ids are not among them."""
        size = manifest["vocab_size"]
        excluded = (i for first, last in manifest["excluded"] for i in range(first, last))
        return cls(manifest["roles"], _flags(size, manifest["specials"]), ~_flags(size, excluded))

    def values(self) -> dict[str, Any]:
        """Return the values for a manifest."""
        return {
            "vocab_size": len(self.special),
            "roles": dict(self.roles),
            "specials": np.flatnonzero(self.special).tolist(),
            "excluded": _ranges(np.flatnonzero(~self.ordinary).tolist()),
        }

    @cached_property
    def spaced(self) -> NDArray[np.bool_]:
        """Whether each token begins with white space."""
        return np.array([text[:1].isspace() for text in self.written])

    @cached_property
    def opens(self) -> NDArray[np.bool_]:
        """Whether each token begins an eojeol, as far as the id alone shows."""
        continues = np.array([token.startswith("##") for token in self.tokens])
        return np.array([bool(text) for text in self.written]) & ~continues if continues.any() else self.spaced

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Whether each token is white space alone."""
        return np.array([bool(text) and not text.strip() for text in self.written])

    @cached_property
    def closes(self) -> NDArray[np.bool_]:
        """Whether each token ends with white space."""
        return np.array([text[-1:].isspace() for text in self.written])

    @cached_property
    def symbols(self) -> NDArray[np.uint8]:
        """The mark `SYMBOL` of tokens without a letter, digit or broken character, white space apart."""
        return np.array(
            [
                SYMBOL * (bool(text.strip()) and "\ufffd" not in text and not any(map(str.isalnum, text)))
                for text in self.written
            ],
            np.uint8,
        )

    def marks(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Mark the tokens of rows of ids alone: no morphemes are known but those that begin an eojeol."""
        marks = np.where(self.opens[ids], EOJEOL | MORPHEME, 0).astype(np.uint8)
        self.mark_eojeols(ids, offsets, marks)
        marks[self.special[ids]] = SPECIAL
        return marks

    def mark_eojeols(self, ids: NDArray[Any], offsets: NDArray[np.int64], marks: NDArray[np.uint8]) -> None:
        """Complete the marks of rows: the first token of each begins an eojeol, and white space belongs to the eojeol behind it."""
        marks[offsets[:-1][np.diff(offsets) > 0]] |= EOJEOL | MORPHEME
        _join_blanks(ids, offsets, self.blank, self.closes, marks)
        marks |= self.symbols[ids]


@njit(nogil=True, cache=True)
def _join_blanks(ids, offsets, blank, closes, marks):
    """Move the beginning of an eojeol to the white space before it."""
    for row in range(len(offsets) - 1):
        for at in range(offsets[row] + 1, offsets[row + 1]):
            before = ids[at - 1]
            if blank[before]:
                marks[at] &= 0xFC
            elif closes[before]:
                marks[at] |= 3


def _flags(size: int, ids: Iterable[int]) -> NDArray[np.bool_]:
    flags = np.zeros(size, np.bool_)
    flags[list(ids)] = True
    return flags


def _ranges(ids: Sequence[int]) -> list[list[int]]:
    """Return rising numbers as half-open ranges: 0, 1, 2, 7 as [0, 3], [7, 8]."""
    ranges: list[list[int]] = []
    for i in ids:
        if ranges and ranges[-1][1] == i:
            ranges[-1][1] = i + 1
        else:
            ranges.append([i, i + 1])
    return ranges
