"""`Tokenizer`: normalize, pre-tokenize, model: text to ids and back, with offsets into the text that the caller passed.

This file adds: composition. decode(encode(x)) == normalize(x) for every text (law 4), and offsets are half-open code
points of the raw text, also where normalization changed its length (law 7). Text that spells a special token is text,
unless the caller allows that token.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from koktok import hangul
from koktok.errors import InputError, UsageError
from koktok.recipe import Recipe
from koktok.special import Style, cut_at
from koktok.tokenizer.decoding import checked_ids, decoder_for
from koktok.tokenizer.encoding import Encoding, Reading
from koktok.tokenizer.many import ManyTexts
from koktok.tokenizer.model import Encoded, model_for
from koktok.vocab import Vocab

if TYPE_CHECKING:
    import numpy as np

    from koktok.tokenizer.stream import Stream

__all__ = ["Encoding", "Tokenizer"]

CACHED_WORDS = 1 << 18
"""Solved pre-tokens kept: a quarter of a million distinct words cover over .97 of running Korean text, in about 100 MB."""

Solve = Callable[[str], Encoded]
"""A pretoken to ids and spans."""

CACHED_LENGTH = 48
"""Longer pre-tokens are seldom met twice and would only fill the memory."""

LONG_TEXT = 1 << 18
"""Characters from which the garbage collector waits: it would go through all offsets so far every 70,000 tokens, which took
36 s of processor time for a text of 10 MB with ten million tokens, and 8 s without."""


class Tokenizer(ManyTexts):
    """A trained tokenizer.

    Parameters
    ----------
    recipe : Recipe
        How text is normalized and pre-tokenized.
    vocab : Vocab
        What the model runs on.
    signature : mapping, optional
        Where the vocabulary came from; written beside the recipe.

    Examples
    --------
    >>> pieces = {" ": -9.0, "한": -8.0, "국": -8.0, "어": -8.0, "는": -7.0, "한국어": -5.0, " 한국어": -5.0}
    >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram(pieces))
    >>> encoding = tokenizer.encode("한국어는 한국어")
    >>> encoding.pieces, encoding.offsets
    (['한국어', '는', ' 한국어'], [(0, 3), (3, 4), (4, 8)])
    >>> tokenizer.decode(encoding.ids)
    '한국어는 한국어'
    """

    def __init__(self, recipe: Recipe, vocab: Vocab, signature: Mapping[str, Any] | None = None) -> None:
        if not isinstance(recipe, Recipe) or not isinstance(vocab, Vocab):
            raise UsageError(
                f"a recipe and a vocabulary were wanted, not {type(recipe).__name__} and {type(vocab).__name__}",
                hint="Tokenizer.load(FOLDER), or train_tokenizer(lines).tokenizer",
            )
        self.recipe = recipe
        self.vocab = vocab
        self.signature = dict(signature or {})
        self.normalizer = recipe.normalizer_for(vocab)
        self.pattern = recipe.pattern
        self.words = self.pattern.within_words
        self.model = model_for(vocab)
        self._cache: dict[str, Encoded] = {}

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab.kind}, size={self.vocab.size}, digest={self.vocab.digest()})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What was compiled and solved is made again: a used tokenizer pickles to the same bytes as a fresh one.
        return type(self), (self.recipe, self.vocab, self.signature)

    def __eq__(self, other: object) -> bool:
        """True for tokenizers of the same content, see `digest`."""
        return isinstance(other, Tokenizer) and (self is other or self.digest() == other.digest())

    def __hash__(self) -> int:
        return hash(self.digest())

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides what a text becomes, and ids become.

        Vocabulary, folds, pattern, jamo and style; not what the vocabulary was trained on.

        Examples
        --------
        >>> vocab = Vocab.bpe("가나", ["가나"])
        >>> Tokenizer(Recipe(), vocab) == Tokenizer(Recipe(holdout=0.1), vocab)
        True
        >>> Tokenizer(Recipe(), vocab) == Tokenizer(Recipe().changed(normalize={"quotes": True}), vocab)
        False
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        parts = [self.vocab.digest(), self.normalizer.signature(), asdict(self.pattern), self.recipe.jamo]
        parts.append(asdict(self.style))
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def lossless(self) -> bool:
        """True where `decode(encode(x)) == normalize(x)` for every text; False for WordPiece and whole words.

        `wordpiece` loses runs of spaces, the spaces around punctuation and unknown words; `word` unknown words;
        `wordpiece-bytes` nothing but a "##" that begins a word.
        """
        return self.model.lossless

    @cached_property
    def style(self) -> Style:
        """What the special tokens are for; `koktok.formats.styles.restyle` changes it without a new training."""
        return self.recipe.style_for(self.vocab.specials)

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers: `bos_token`, `eos_token`, `pad_token` ..."""
        return self.style.roles

    def normalize(self, text: str) -> str:
        """The text as the model sees it: what `decode(encode(text))` gives back."""
        normal = self.normalizer(text)
        return hangul.join(normal) if self.recipe.jamo else normal

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Collection[str] | Literal["all"] = (),
        superwords: bool = True,
    ) -> Encoding:
        """Text to ids, pieces and offsets; always the same for the same text.

        Parameters
        ----------
        text : str
        add_special_tokens : bool
            Put around it what the recipe's style wants there ([CLS] ... [SEP]); those have the empty offsets (0, 0).
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them; anything else stays text.
        superwords : bool
            False keeps every piece inside its word, for prompts that end at a word and are continued by a model.

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is no special token.
        """
        found = self._encode(text, allowed_special, self._solve, superwords=superwords)
        if not add_special_tokens:
            return found
        ids = self.vocab.special_ids
        before, behind = ([ids[token] for token in tokens] for tokens in self.style.frame)
        none = [(0, 0)]
        return self._encoding(
            [*before, *found.ids, *behind], [*none * len(before), *found.offsets, *none * len(behind)]
        )

    def sample(
        self,
        text: str,
        *,
        alpha: float | None = None,
        dropout: float | None = None,
        seed_or_rng: int | np.random.Generator,
        n_best: int | None = None,
        allowed_special: Collection[str] | Literal["all"] = (),
    ) -> Encoding:
        """Another segmentation of the same text, for subword regularization; `decode` gives the same text.

        Parameters
        ----------
        text : str
        alpha : float
            Unigram: a segmentation has a probability proportional to exp(alpha · score); the larger, the likelier the
            best one.
        dropout : float
            BPE and WordPiece: the probability with which a join, or a match, is passed over; 0 gives `encode`.
        seed_or_rng : int or numpy.random.Generator
            A seed gives the same sample each time; a generator goes on from call to call.
        n_best : int, optional
            Unigram: draw from so many best segmentations of each pretoken; the default is all.
        allowed_special
            As in `encode`.

        Raises
        ------
        UsageError
            For a keyword that is not of this kind of model, for none, or a value out of range; names the right one.

        Examples
        --------
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> tokenizer.sample("한국", alpha=100.0, seed_or_rng=0).pieces
        ['한국']
        >>> tokenizer.sample("한국", dropout=0.1, seed_or_rng=0)
        Traceback (most recent call last):
            ...
        koktok.errors.UsageError: `dropout` is not for a unigram tokenizer, whose samples take `alpha`
        hint: tokenizer.sample(text, alpha=0.1, seed_or_rng=0)
        """
        from koktok.tokenizer.sampling import sampler_for

        draw = sampler_for(self.model, alpha=alpha, dropout=dropout, seed_or_rng=seed_or_rng, n_best=n_best)
        return self._encode(text, allowed_special, draw)

    def n_best(self, text: str, n: int) -> list[tuple[Encoding, float]]:
        """The `n` best segmentations of a whole text with their scores, best first; fewer when there are not so many.

        The first is that of `encode`. Exact: the lists of the pretokens are combined best first.

        Parameters
        ----------
        text : str
        n : int
            At least 1.

        Raises
        ------
        UsageError
            When `n` is less than 1, or the model gives no scores to segmentations (only unigram does).

        Examples
        --------
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> [(encoding.pieces, score) for encoding, score in tokenizer.n_best("한국", 2)]
        [(['한국'], -3.0), (['한', '국'], -4.0)]
        """
        from koktok.tokenizer.combine import best_choices
        from koktok.tokenizer.sampling import n_best_of

        n_best = n_best_of(self.model)
        if not isinstance(n, int):
            raise UsageError(f"n = {n!r}; wanted a whole number of at least 1", hint="tokenizer.n_best(text, 5)")
        read = self._read(_checked(text))
        solved = {pretoken: n_best(pretoken, n) for pretoken in dict.fromkeys(word for _, word in read.pretokens)}
        lists = [solved[pretoken] for _, pretoken in read.pretokens]
        found = []
        for choice, score in best_choices([[score for _, score in ways] for ways in lists], n):
            ids: list[int] = []
            offsets: list[tuple[int, int]] = []
            for (at, _), ways, i in zip(read.pretokens, lists, choice, strict=True):
                (more, spans), _ = ways[i]
                ids += more
                offsets += read.offsets(at, spans)
            found.append((self._encoding(ids, offsets), score))
        return found

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text.

        Bytes that are no UTF-8 become U+FFFD; no encoding of a text holds such bytes. Where `lossless` is False the
        text comes back as well as Hugging Face's decoder can: WordPiece puts one space before each word.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        kept = checked_ids(ids, self.vocab.size)
        if skip_special_tokens:
            first_special = self.vocab.size - len(self.vocab.specials)
            kept = [i for i in kept if i < first_special]
        text = decoder_for(self.vocab)(self.vocab, kept)
        return hangul.join(text) if self.recipe.jamo else text

    def stream(self, *, skip_special_tokens: bool = False, early: bool = False) -> Stream:
        """A decoder for ids that come one by one, as a model gives them: `push` each, then `finish`.

        Parameters
        ----------
        skip_special_tokens : bool
            As in `decode`.
        early : bool
            Let a character of byte pieces out as soon as it is whole; see `koktok.tokenizer.stream`.

        Examples
        --------
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0}))
        >>> stream = tokenizer.stream()
        >>> [stream.push(i) for i in tokenizer.encode("한국").ids], stream.finish()
        (['한', '국'], '')
        """
        from koktok.tokenizer.stream import Stream

        letters = bool(self.recipe.jamo)
        return Stream(self.vocab, letters=letters, skip_special_tokens=skip_special_tokens, early=early)

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write the folder that transformers, tokenizers and sentencepiece load.

        Kinds that Hugging Face has no model for (`ngram`, `morpheme`) get a vocab.json of ours in place of
        tokenizer.json and its neighbours: only koktok loads such a folder. tokenizer.model is there for unigram and
        character BPE, where SentencePiece can express the pattern.

        Parameters
        ----------
        path : str or Path
            A new folder, or an older koktok tokenizer: its files are replaced, all others in the folder stay.
        extra : mapping, optional
            More files for the folder, for instance a model card.

        Raises
        ------
        UsageError
            When something else is at that place, or a file that koktok did not write has the name of a new one,
            or `extra` holds what is no file of the folder.
        InputError
            When the disk says no; nothing half-written is left.
        """
        from koktok.files import write_folder
        from koktok.formats.folder import TOKENIZER, files_of, with_extra

        return write_folder(path, with_extra(files_of(self), extra), TOKENIZER)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """The tokenizer of a folder.

        Raises
        ------
        ArtifactError
            When the folder is missing, damaged, changed by hand, or written by a newer koktok.
        """
        from koktok.files import path_of, read_settled
        from koktok.formats.folder import TOKENIZER, is_imported, read_folder

        folder = path_of(path)

        def read() -> Tokenizer:
            if is_imported(folder):
                from koktok.foreign.imported import load_imported

                return load_imported(folder)
            return cls(*read_folder(folder))

        return read_settled(folder, TOKENIZER, read)

    def _encode(
        self, text: str, allowed: Collection[str] | Literal["all"], solve: Solve, *, superwords: bool = True
    ) -> Encoding:
        if len(_checked(text)) > LONG_TEXT and gc.isenabled():
            gc.disable()
            try:
                return self._encode(text, allowed, solve, superwords=superwords)
            finally:
                gc.enable()
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, end, special in cut_at(text, allowed, self.vocab.special_ids, self.style.lstrip):
            if special:
                ids.append(self.vocab.special_ids[special])
                offsets.append((start, end))
                continue
            part = text[start:end]
            if self.normalizer(part) == part:
                # What most texts are: normal already. Places in what the model reads are places in the text.
                at = start
                for pretoken in (self.pattern if superwords else self.words).pretokenize(part):
                    found, spans = solve(pretoken)
                    ids += found
                    offsets += [(at + a, at + b) for a, b in spans]
                    at += len(pretoken)
                continue
            read = self._read(part, superwords=superwords)
            for at, pretoken in read.pretokens:
                found, spans = solve(pretoken)
                ids += found
                offsets += read.offsets(at, spans, start)
        return self._encoding(ids, offsets)

    def _read(self, text: str, *, superwords: bool = True) -> Reading:
        pattern = self.pattern if superwords else self.words
        return Reading.of(text, self.normalizer, pattern)

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        tokens = self.vocab.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)

    def _solve(self, pretoken: str) -> Encoded:
        solved = self._cache.get(pretoken)
        if solved is None:
            ids, spans = self.model.encode(pretoken)
            solved = tuple(ids), tuple(spans)  # the garbage collector does not go through tuples of numbers again
            if len(pretoken) <= CACHED_LENGTH:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[pretoken] = solved
        return solved


def _checked(text: str) -> str:
    """`text`, if it is one."""
    if not isinstance(text, str):
        raise InputError(
            f"`encode` got {type(text).__name__} where one `str` was wanted",
            hint="tokenizer.encode_batch(texts) for many" if isinstance(text, Iterable) else "",
        )
    return text
