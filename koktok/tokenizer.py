"""`Tokenizer`: normalize, pre-tokenize, model: text to ids and back, with offsets into the text that the caller passed.

This file adds: composition. decode(encode(x)) == normalize(x) for every text (law 4), and offsets are half-open code
points of the raw text, also where normalization changed its length (law 7). Text that spells a special token is text,
unless the caller allows that token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from koktok import jamo
from koktok.encoding import Encoding, Reading
from koktok.errors import ArtifactError, InputError
from koktok.models import Encoded, model_for
from koktok.models.decoding import decoder_for
from koktok.normalize import Folds, Normalizer
from koktok.pretokenize import Pattern
from koktok.recipe import Recipe
from koktok.vocab import Vocab

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Encoding", "Tokenizer"]

CACHED_WORDS = 1 << 18
"""Solved pre-tokens kept: a quarter of a million distinct words cover over .97 of running Korean text, in about 100 MB."""

Solve = Callable[[str], Encoded]
"""A pretoken to ids and spans."""

CACHED_LENGTH = 48
"""Longer pre-tokens are seldom met twice and would only fill the memory."""


class Tokenizer:
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
        self.recipe = recipe
        self.vocab = vocab
        self.signature = dict(signature or {})
        self.normalizer = Normalizer(Folds(**recipe.normalize.model_dump()))
        self.words = Pattern(split=recipe.pretokenize.split, digits=recipe.pretokenize.digits)
        self.pattern = replace(self.words, superwords=recipe.train.superwords > 0)
        self.model = model_for(vocab)
        self._cache: dict[str, Encoded] = {}

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab.kind}, size={self.vocab.size}, digest={self.vocab.digest()})"

    @property
    def lossless(self) -> bool:
        """True where `decode(encode(x)) == normalize(x)` for every text; False for WordPiece and whole words.

        `wordpiece` loses runs of spaces, the spaces around punctuation and unknown words; `word` unknown words;
        `wordpiece-bytes` nothing but a "##" that begins a word.
        """
        return self.model.lossless

    def normalize(self, text: str) -> str:
        """The text as the model sees it: what `decode(encode(text))` gives back."""
        return self.normalizer(text)

    def encode(
        self, text: str, *, allowed_special: Collection[str] | Literal["all"] = (), superwords: bool = True
    ) -> Encoding:
        """Text to ids, pieces and offsets; always the same for the same text.

        Parameters
        ----------
        text : str
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them; anything else stays text.
        superwords : bool
            False keeps every piece inside its word, for prompts that end at a word and are continued by a model.

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is no special token.
        """
        return self._encode(text, allowed_special, self._solve, superwords=superwords)

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
        from koktok.models.sampling import sampler_for

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
        from koktok.models.combine import best_choices
        from koktok.models.sampling import n_best_of

        n_best = n_best_of(self.model)
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

    def encode_batch(
        self, texts: Iterable[str], *, allowed_special: Collection[str] | Literal["all"] = ()
    ) -> list[Encoding]:
        """Many texts at once, each as `encode` does it.

        Raises
        ------
        InputError
            When a bare `str` comes in place of texts.
        """
        if isinstance(texts, str):
            raise InputError("one `str` came where texts were wanted", hint="tokenizer.encode_batch([text])")
        return [self.encode(text, allowed_special=allowed_special) for text in texts]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text.

        Bytes that are no UTF-8 become U+FFFD; no encoding of a text holds such bytes. Where `lossless` is False the
        text comes back as well as Hugging Face's decoder can: WordPiece puts one space before each word.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        size, first_special = self.vocab.size, self.vocab.size - len(self.vocab.specials)
        kept = []
        for given in ids:
            try:
                i = index(given)  # numpy integers are ids too
            except TypeError:
                raise InputError(f"`decode` got the id {given!r}; ids are integers") from None
            if not 0 <= i < size:
                raise InputError(f"the id {i} is outside the vocabulary (0 to {size - 1})")
            if i < first_special or not skip_special_tokens:
                kept.append(i)
        text = decoder_for(self.vocab)(self.vocab, kept)
        return jamo.join(text) if self.recipe.jamo else text

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write the folder that transformers, tokenizers and sentencepiece load.

        Kinds that Hugging Face has no model for (`ngram`, `morpheme`) get a vocab.json of ours in place of
        tokenizer.json and its neighbours: only koktok loads such a folder. tokenizer.model is there for unigram and
        character BPE, where SentencePiece can express the pattern.

        Parameters
        ----------
        path : str or Path
            A new folder, or an older koktok tokenizer, which is replaced.
        extra : mapping, optional
            More files for the folder, for instance a model card.

        Raises
        ------
        UsageError
            When something else is at that place.
        InputError
            When the disk says no; nothing half-written is left.
        """
        from koktok.export import hf, plain
        from koktok.export.folder import MARK, write_folder
        from koktok.export.sentencepiece import model_proto, why_not

        signature = {**self.signature, "kind": self.vocab.kind, "vocab": self.vocab.digest()}
        files: dict[str, str | bytes] = {MARK: self.recipe.to_toml(signature)}
        if hf.why_not(self.vocab):
            files["vocab.json"] = plain.vocab_json(self.vocab)
        else:
            files["tokenizer.json"] = hf.tokenizer_json(
                self.vocab, self.normalizer, self.pattern, jamo=self.recipe.jamo
            )
            files["tokenizer_config.json"] = hf.config_json(self.vocab)
            files["special_tokens_map.json"] = hf.special_tokens_json(self.vocab)
        if not why_not(self.vocab, self.pattern):
            files["tokenizer.model"] = model_proto(self.vocab, self.pattern, jamo=self.recipe.jamo)
        return write_folder(path, files | dict(extra or {}))

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """The tokenizer of a folder.

        Raises
        ------
        ArtifactError
            When the folder is missing, damaged, changed by hand, or written by a newer koktok.
        """
        import tomllib

        from koktok.export import hf, plain
        from koktok.export.folder import MARK

        folder = Path(path)
        own = (folder / "vocab.json").is_file() and not (folder / "tokenizer.json").is_file()
        file = folder / ("vocab.json" if own else "tokenizer.json")
        try:
            toml = (folder / MARK).read_text(encoding="utf-8")
            text = file.read_text(encoding="utf-8")
            signature = tomllib.loads(toml).get("signature", {})
            recipe = Recipe.from_toml(toml)
        except (OSError, ValueError) as error:  # RecipeError and decoding errors are ValueErrors
            raise ArtifactError(
                f"`{folder}` is no readable koktok tokenizer: {error}", hint="koktok train TEXT --out FOLDER"
            ) from error
        kind = signature.pop("kind", None)
        vocab = plain.vocab_from_json(text) if own else hf.vocab_from_json(text, kind)
        if vocab.digest() != signature.pop("vocab", None):
            raise ArtifactError(
                f"the vocabulary in `{file}` is not the one that {MARK} was written with",
                hint="train again" if own else "train again, or load it with tokenizers.Tokenizer.from_file",
            )
        return cls(recipe, vocab, signature)

    def _parts(self, text: str, allowed: Collection[str] | Literal["all"]) -> list[tuple[int, str, bool]]:
        """The text cut at allowed special tokens, before normalization, longest token first as in Hugging Face."""
        specials = self.vocab.special_ids
        names = list(specials) if allowed == "all" else list(allowed)
        unknown = [name for name in names if name not in specials]
        if unknown:
            raise InputError(f"{unknown[0]!r} is no special token; there are {', '.join(specials) or 'none'}")
        if not names:
            return [(0, text, False)]
        pattern = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
        parts, end = [], 0
        for match in pattern.finditer(text):
            if match.start() > end:
                parts.append((end, text[end : match.start()], False))
            parts.append((match.start(), match[0], True))
            end = match.end()
        if end < len(text):
            parts.append((end, text[end:], False))
        return parts

    def _encode(
        self, text: str, allowed: Collection[str] | Literal["all"], solve: Solve, *, superwords: bool = True
    ) -> Encoding:
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, part, special in self._parts(_checked(text), allowed):
            if special:
                ids.append(self.vocab.special_ids[part])
                offsets.append((start, start + len(part)))
                continue
            read = self._read(part, superwords=superwords)
            for at, pretoken in read.pretokens:
                found, spans = solve(pretoken)
                ids += found
                offsets += read.offsets(at, spans, start)
        return self._encoding(ids, offsets)

    def _read(self, text: str, *, superwords: bool = True) -> Reading:
        pattern = self.pattern if superwords else self.words
        return Reading.of(text, self.normalizer, pattern, letters=self.recipe.jamo)

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        tokens = self.vocab.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)

    def _solve(self, pretoken: str) -> Encoded:
        solved = self._cache.get(pretoken)
        if solved is None:
            solved = self.model.encode(pretoken)
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
