"""`ManyTexts`: what a tokenizer does with many texts at once.

This file adds: the faces of `koktok.bulk` and of batches; every one gives what `encode` and `decode` give text by text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from koktok.errors import InputError
from koktok.special import special_tokens
from koktok.tokenizer.encoding import Encoding

if TYPE_CHECKING:
    from koktok.bulk import Decoder, Encoder, TokenArray
    from koktok.recipe import Recipe
    from koktok.special import Style
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern
    from koktok.vocab import Vocab

__all__ = ["ManyTexts"]


class ManyTexts:
    """The part of `Tokenizer` that takes many texts."""

    recipe: Recipe
    vocab: Vocab
    normalizer: Normalizer
    pattern: Pattern

    @cached_property
    def style(self) -> Style:
        """What the special tokens are for."""
        raise NotImplementedError

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Collection[str] | Literal["all"] = (),
        superwords: bool = True,
    ) -> Encoding:
        """One text, which is what the whole class is defined by."""
        raise NotImplementedError

    def encode_batch(
        self, texts: Iterable[str], *, allowed_special: Collection[str] | Literal["all"] = (), **options: Any
    ) -> list[Encoding]:
        """Many texts at once, each as `encode` does it; options are its.

        Raises
        ------
        InputError
            When a bare `str` comes in place of texts.
        """
        if isinstance(texts, str):
            raise InputError("one `str` came where texts were wanted", hint="tokenizer.encode_batch([text])")
        try:
            if isinstance(texts, Mapping | bytes | bytearray):
                raise TypeError
            each = iter(texts)  # an array of no dimensions calls itself iterable, and is not
        except TypeError:
            raise InputError(
                f"a {type(texts).__name__} came where texts were wanted", hint="tokenizer.encode_batch([text, text])"
            ) from None
        return [self.encode(text, allowed_special=allowed_special, **options) for text in each]

    def encode_ids(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        dtype: Any = None,
        add_special_tokens: bool = False,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        allowed_special: Collection[str] | Literal["all"] = (),
    ) -> TokenArray:
        """Ids of many texts in one flat array: those of `encode`, at many times its speed, and nothing else.

        Parameters
        ----------
        texts : iterable of str, or pyarrow.Array or ChunkedArray of strings
            Each is a document.
        threads : int, optional
            The default is one for each core; small inputs take one. The ids are the same for any number.
        dtype : numpy type, optional
            The default is uint16 where all ids of the vocabulary fit, else uint32.
        add_special_tokens, allowed_special
            As in `encode`, for every document.
        before, after : sequence of str
            Special tokens that every document begins and ends with, outside those of `add_special_tokens`.

        Returns
        -------
        TokenArray
            `ids`, and `offsets` that say where each document begins and ends.

        Raises
        ------
        InputError
            As `encode`; and when a bare `str` comes in place of texts.
        UsageError
            When `dtype` cannot hold the ids, or `threads` is less than 1.

        Examples
        --------
        >>> from koktok import Recipe, Tokenizer
        >>> from koktok.vocab import Vocab
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}, specials=["</s>"]))
        >>> tokens = tokenizer.encode_ids(["한국", "국"], after=["</s>"])
        >>> tokens.ids.tolist(), tokens.offsets.tolist(), tokens[1].tolist()
        ([258, 259, 256, 259], [0, 2, 4], [256, 259])
        """
        frame = self.style.frame if add_special_tokens else ([], [])
        return self._ids_by(
            self.bulk_encoder,
            texts,
            before=[*special_tokens(before, self.vocab.special_ids, "before"), *frame[0]],
            after=[*frame[1], *special_tokens(after, self.vocab.special_ids, "after")],
            threads=threads,
            dtype=dtype,
            allowed_special=allowed_special,
        )

    def _ids_by(
        self, encoder: Any, texts: Any, *, before: Sequence[str] = (), after: Sequence[str] = (), **options: Any
    ) -> TokenArray:
        if isinstance(texts, Mapping):
            raise InputError("a mapping came where texts were wanted", hint="tokenizer.encode_ids(mapping[key])")
        known = self.vocab.special_ids
        edges = (special_tokens(before, known, "before"), special_tokens(after, known, "after"))
        begin, end = ([known[token] for token in edge] for edge in edges)
        found: TokenArray = encoder(texts, before=begin, after=end, **options)
        return found

    @cached_property
    def bulk_encoder(self) -> Encoder:
        """What `encode_ids` runs on; made on first use, and keeps the words that it has solved."""
        from koktok.bulk import Encoder

        return Encoder(self.vocab, self.normalizer, self.pattern, lstrip=self.style.lstrip)

    def decode_ids(
        self,
        ids: Any,
        offsets: Any = None,
        *,
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Texts of many documents, each as `decode` gives it.

        Parameters
        ----------
        ids : TokenArray, or ndarray of integers, shape (tokens,)
            The flat ids of all documents.
        offsets : ndarray of int64, shape (documents + 1,), optional
            Where each begins and ends; a `TokenArray` brings its own, and without any all ids are one document.
        skip_special_tokens : bool
            As in `decode`.
        threads : int, optional
            The default is one for each core.

        Raises
        ------
        InputError
            When an id is outside the vocabulary, or the offsets do not fit the ids.

        Examples
        --------
        >>> from koktok import Recipe, Tokenizer
        >>> from koktok.vocab import Vocab
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> tokenizer.decode_ids(tokenizer.encode_ids(["한국", "국é"]))
        ['한국', '국é']
        """
        from koktok.bulk import TokenArray

        if isinstance(ids, TokenArray):
            ids, offsets = ids.ids, ids.offsets
        elif isinstance(ids, str | bytes | bytearray) or not hasattr(ids, "__len__") or getattr(ids, "ndim", 1) == 0:
            raise InputError(
                f"`decode_ids` got {type(ids).__name__} where flat ids were wanted",
                hint="tokenizer.decode_ids(tokenizer.encode_ids(texts))",
            )
        elif offsets is None:
            offsets = [0, len(ids)]
        return self._bulk_decoder(ids, offsets, skip_special_tokens=skip_special_tokens, threads=threads)

    def decode_batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids, each as `decode` gives it.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.

        Examples
        --------
        >>> from koktok import Recipe, Tokenizer
        >>> from koktok.vocab import Vocab
        >>> tokenizer = Tokenizer(Recipe(), Vocab.unigram({"한": -2.0, "국": -2.0}))
        >>> tokenizer.decode_batch([[256], [257, 256], []])
        ['국', '한국', '']
        """
        given: Any = rows
        if isinstance(given, str | bytes) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise InputError(
                f"`decode_batch` got {type(given).__name__} where rows of ids were wanted",
                hint="tokenizer.decode_batch([ids, ids])",
            )
        return self._bulk_decoder.batch(rows, skip_special_tokens=skip_special_tokens)

    @cached_property
    def _bulk_decoder(self) -> Decoder:
        from koktok.bulk import Decoder

        return Decoder(self.vocab, letters=bool(self.recipe.jamo))
