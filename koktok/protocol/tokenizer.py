"""`Tokenizer`: the protocol of every tokenizer that koktok opens, its own or a library's.

`koktok.load` gives a `TrainedTokenizer`, which koktok runs, or a `LibraryTokenizer`, which runs in the library that its
definition was written for. Each implements ten methods; `Tokenizer` makes batches, flat arrays and files of them, and `Lookups`
has the names of look-ups that users of other libraries know.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from koktok.errors import InputError, UsageError
from koktok.model.encoding import BatchEncoding, Encoding
from koktok.model.special import end_of_document, special_tokens

if TYPE_CHECKING:
    from koktok.model.definition import Definition
    from koktok.model.note import Note
    from koktok.model.tokens import Tokens


Allowed = Collection[str] | Literal["all"]
"""Special tokens that are read as such where a text spells them."""


class TokenTable(Protocol):
    """The tokens of a tokenizer by id: `koktok.model.vocab.Vocab`, or the vocabulary of a library."""

    @property
    def size(self) -> int:
        """Number of ids, special ones included."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id; '' for an id without a token."""

    @property
    def token_ids(self) -> Mapping[str, int]:
        """Token to id, special ones included."""

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Special token to id."""

    def digest(self) -> str:
        """16 hex digits of the SHA-256 of its content."""


def _id_of(role: str) -> property:
    """The id of the special token of a role, or None."""
    return property(lambda tokenizer: tokenizer.token_to_id(tokenizer.roles.get(role, "")), doc=_id_of.__doc__)


class Lookups:
    """Look-ups in the table of tokens, by the names of transformers, tokenizers and sentencepiece."""

    vocab: TokenTable
    """The table of its tokens."""

    roles: Mapping[str, str]
    """Special tokens by their role in transformers: `bos_token`, `eos_token`, `pad_token` ..."""

    def __len__(self) -> int:
        return self.vocab.size

    def __bool__(self) -> bool:
        return True

    @property
    def vocab_size(self) -> int:
        """Number of ids: bytes, pieces, special and reserved tokens."""
        return self.vocab.size

    def get_vocab(self) -> dict[str, int]:
        """Every token and its id."""
        return dict(self.vocab.token_ids)

    def token_to_id(self, token: str) -> int | None:
        """The id of a piece, byte piece or special token; None for a string that is no token."""
        return self.vocab.token_ids.get(token)

    def id_to_token(self, i: int) -> str | None:
        """The token of an id; None for a number that is not an id."""
        return self.vocab.tokens[i] if 0 <= i < self.vocab.size else None

    @property
    def end_of_document(self) -> str:
        """The special token after a document, '' if there is none; in a chat, `eos_token` is the end of a turn."""
        return end_of_document(self.roles, self.vocab.special_ids)

    def edge(self, role: Literal["bos", "eos"], *, token: bool | str) -> list[str]:
        """The special token before (`bos`) or after (`eos`) each document, in a list: the one that is named, or, if True, its own."""
        own = self.end_of_document if role == "eos" else self.roles.get("bos_token", "")
        asked = [token if isinstance(token, str) else own] if token else []
        if strange := [one for one in asked if one not in self.vocab.special_ids]:
            what = (
                f"`{strange[0]}` is not a special token of the tokenizer"
                if strange[0]
                else f"this tokenizer has no {role} token"
            )
            known = ", ".join(self.vocab.special_ids) or "none"
            raise UsageError(f"{what}; it has: {known}", hint=f"leave out --{role}" if not strange[0] else "")
        return asked

    unk_id, pad_id, bos_id, eos_id = map(_id_of, ("unk_token", "pad_token", "bos_token", "eos_token"))


class Tokenizer(Lookups, ABC):
    """A tokenizer that koktok opens, its own or a library's.

    Examples
    --------
    >>> import koktok
    >>> tokenizer = koktok.load("bytes")
    >>> tokenizer.encode("가A").ids, tokenizer.decode([234, 176, 128, 65])
    ([234, 176, 128, 65], '가A')
    >>> tokens = tokenizer.encode_ids(["가", "A"])
    >>> tokens.ids.tolist(), tokens.indptr.tolist(), tokenizer.decode_ids(tokens)
    ([234, 176, 128, 65], [0, 3, 4], ['가', 'A'])
    """

    signature: dict[str, Any]
    """Its origin."""

    definition: Definition | None = None
    """What koktok runs it by; None where a library does."""

    spec: str = ""  # the reference that it was opened by
    name: str = ""  # its name in tables
    size: int | None  # number of ids, special ones included; None where ids are assigned while text is read
    unknown_ids: frozenset[int]  # ids of text that has no piece
    byte_ids: frozenset[int]  # ids of byte fallback
    special_ids: frozenset[int]  # ids of special tokens, without the unknown one
    libraries: dict[str, str]  # the packages that run it, with their versions
    notes: tuple[Note, ...]  # shown with its figures: its normalization of the input, its losses
    any_text: bool = True  # False for cuts from a file, which has them for its own lines only
    lossless: bool  # whether `decode(encode(x))` is `normalize(x)` for every text
    decodes: bool = True  # whether there is a decoder
    reads_specials: bool = False  # whether a call without options reads special tokens that a text spells

    @abstractmethod
    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over everything that determines ids and decoded text."""

    def __eq__(self, other: object) -> bool:
        """True for tokenizers of the same content, see `digest`."""
        return isinstance(other, Tokenizer) and (self is other or self.digest() == other.digest())

    def __hash__(self) -> int:
        return hash(self.digest())

    @abstractmethod
    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = False) -> Path:
        """Write a folder that `koktok.load` reads.

        Parameters
        ----------
        path : str or Path
            A new folder, or one that koktok wrote: its files are replaced, all others in the folder stay.
        extra : mapping, optional
            More files for the folder, for instance a model card.
        force : bool
            Replace another tokenizer that koktok wrote there; refused by default, as on the command line.

        Raises
        ------
        UsageError
            When something else is at that path, a file that koktok did not write has the name of a new one,
            or `extra` holds something that is not a file of the folder.
        InputError
            When the disk refuses; no partial files are left.
        """

    @abstractmethod
    def export(self, to: str, out: str | Path, *, force: bool = False, **options: Any) -> list[str]:
        """Write it for another library, as `koktok export` does, and give the differences between that library and koktok.

        Parameters
        ----------
        to : str
            A library, as in `koktok export --help`.
        out : str or Path
            A new path, or one that the same export wrote; a folder for libraries that read one.
        force : bool
            Replace another export of koktok there.
        **options
            Those of `koktok export --help` for that library, such as `style="bert"`.

        Raises
        ------
        UsageError
            When `to` is not known, an option does nothing there, or something else is at the path.
        ArtifactError
            When the library cannot run this tokenizer.
        """

    # --- One text -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def normalize(self, text: str) -> str:
        """The text as the model reads it, which `decode(encode(text))` gives back; without a space before the first word."""

    @abstractmethod
    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        """Text to ids, pieces and offsets; always the same for the same text.

        Parameters
        ----------
        text : str
        add_special_tokens : bool
            Add the special tokens of the template ([CLS] ... [SEP]); those have the empty offsets (0, 0).
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them; all others stay text.
        superwords : bool
            False keeps every piece inside its word, for prompts that end at a word and are continued by a model.

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is not a special token.
        """

    @abstractmethod
    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text.

        Bytes that are no UTF-8 become U+FFFD; no encoding of a text holds such bytes. Where `lossless` is False the
        text is restored as far as Hugging Face's decoder can: WordPiece puts one space before each word.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """

    def __call__(self, text: str | Iterable[str], *, add_special_tokens: bool = True, **options: Any) -> BatchEncoding:
        """Encode one text or many with the special tokens of the template around each, as transformers does.

        The result is a mapping, so that `dataset.map(lambda row: tokenizer(row["text"]))` works, batched or not.
        """
        if strange := sorted(options.keys() - {"allowed_special", "superwords"}):
            raise UsageError(
                f"`{strange[0]}` is not an option of a koktok tokenizer",
                hint="tokenizer.save(FOLDER), then transformers.AutoTokenizer.from_pretrained(FOLDER)(text, ...)",
            )
        if isinstance(text, str):
            ids = self.encode(text, add_special_tokens=add_special_tokens, **options).ids
            return BatchEncoding(input_ids=ids, attention_mask=[1] * len(ids))
        rows = [row.ids for row in self.encode_batch(text, add_special_tokens=add_special_tokens, **options)]
        return BatchEncoding(input_ids=rows, attention_mask=[[1] * len(row) for row in rows])

    # --- Many texts ---------------------------------------------------------------------------------------------------

    def encode_batch(self, texts: Iterable[str], **options: Any) -> list[Encoding]:
        """Encode many texts, each as `encode` does, with the options of `encode`."""
        if isinstance(texts, str):
            raise InputError("expected texts, got one `str`", hint="tokenizer.encode_batch([text])")
        try:
            if isinstance(texts, Mapping | bytes | bytearray):
                raise TypeError
            each = iter(texts)  # an array of no dimensions calls itself iterable, and is not
        except TypeError:
            raise InputError(
                f"expected texts, got {type(texts).__name__}", hint="tokenizer.encode_batch([text, text])"
            ) from None
        return [self.encode(text, **options) for text in each]

    def encode_ids(
        self,
        texts: Any,
        *,
        threads: int | None = None,
        dtype: Any = None,
        add_special_tokens: bool = False,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        allowed_special: Allowed = (),
    ) -> Tokens:
        """Ids of many texts in one flat array: those of `encode`, many times faster.

        Parameters
        ----------
        texts : iterable of str, or pyarrow.Array or ChunkedArray of strings
            Each is a document.
        threads : int, optional
            One for each core by default, and one for small inputs. The ids are the same for any number.
        dtype : numpy type, optional
            By default uint16 where all ids of the vocabulary fit, else uint32.
        add_special_tokens, allowed_special
            As in `encode`, for every document.
        before, after : sequence of str
            Special tokens that every document begins and ends with, outside those of `add_special_tokens`.

        Returns
        -------
        Tokens
            `ids`, and `indptr`, where each document begins and ends.

        Raises
        ------
        InputError
            As `encode`; and when `texts` is a bare `str`.
        UsageError
            When `dtype` cannot hold the ids, or `threads` is less than 1.
        """
        if isinstance(texts, Mapping):
            raise InputError("expected texts, got a mapping", hint="tokenizer.encode_ids(mapping[key])")
        known = self.vocab.special_ids
        tokens: Tokens = self.bulk_encoder(
            texts,
            before=[known[token] for token in special_tokens(before, known, "before")],
            after=[known[token] for token in special_tokens(after, known, "after")],
            add_special_tokens=add_special_tokens,
            threads=threads,
            dtype=dtype,
            allowed_special=allowed_special,
        )
        return tokens

    def encode_files(
        self,
        paths: str | Path | Iterable[str | Path],
        *,
        field: str | None = None,
        threads: int | None = None,
        dtype: Any = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> Tokens:
        r"""Ids of the documents of files, lines or records: those of `encode_ids`; plain text is read without Python strings.

        Parameters
        ----------
        paths : path, or iterable of paths
            Files, folders or patterns, as `koktok encode` takes them. Lines that are not UTF-8 are left out; a file that is
            mostly not UTF-8 is an error.
        field : str, optional
            Field or column of records; "text" by default.
        threads, dtype, before, after
            As in `encode_ids`.

        Raises
        ------
        InputError
            When a file cannot be read or is not text.
        """
        from koktok.bulk.mapped import mapped_blocks
        from koktok.corpora.paths import as_source
        from koktok.text.sources import read

        source = as_source(*([paths] if isinstance(paths, str | os.PathLike) else paths), field=field)

        def encoded(blocks: Iterator[Any]) -> Tokens:
            return self.encode_ids(blocks, threads=threads, dtype=dtype, before=before, after=after)

        with suppress(InputError):
            return encoded(mapped_blocks(source))
        return encoded(read(source, may_be_empty=True))

    def decode_ids(
        self,
        ids: Any,
        indptr: Any = None,
        *,
        skip_special_tokens: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Texts of many documents, each as `decode` gives it.

        Parameters
        ----------
        ids : Tokens, or ndarray of integers, shape (tokens,)
            The flat ids of all documents.
        indptr : ndarray of int64, shape (documents + 1,), optional
            Where each begins and ends; `Tokens` have their own, and without any all ids are one document.
        skip_special_tokens : bool
            As in `decode`.
        threads : int, optional
            One for each core by default.

        Raises
        ------
        InputError
            When an id is outside the vocabulary, or `indptr` does not fit the ids.
        """
        from koktok.model.tokens import Tokens

        if isinstance(ids, Tokens):
            ids, indptr = ids.ids, ids.indptr
        elif isinstance(ids, str | bytes | bytearray) or not hasattr(ids, "__len__") or getattr(ids, "ndim", 1) == 0:
            raise InputError(
                f"expected flat ids in `decode_ids`, got {type(ids).__name__}",
                hint="tokenizer.decode_ids(tokenizer.encode_ids(texts))",
            )
        elif indptr is None:
            indptr = [0, len(ids)]
        texts: list[str] = self.bulk_decoder(ids, indptr, skip_special_tokens=skip_special_tokens, threads=threads)
        return texts

    def decode_batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids, each as `decode` gives it."""
        value: Any = rows
        if isinstance(value, str | bytes) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
            raise InputError(
                f"expected rows of ids in `decode_batch`, got {type(value).__name__}",
                hint="tokenizer.decode_batch([ids, ids])",
            )
        texts: list[str] = self.bulk_decoder.batch(rows, skip_special_tokens=skip_special_tokens)
        return texts

    @property
    @abstractmethod
    def bulk_encoder(self) -> Any:
        """The encoder of `encode_ids`."""

    @property
    @abstractmethod
    def bulk_decoder(self) -> Any:
        """The decoder of `decode_ids`."""

    # --- What is measured ---------------------------------------------------------------------------------------------

    @abstractmethod
    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        """Ids and spans of each line; what spells a special token is text, and none are added."""

    @abstractmethod
    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""


def checked_text(text: Any) -> str:
    """The text, if it is a `str`."""
    if isinstance(text, str):
        return text
    hint = "tokenizer.encode_batch(texts) for many" if isinstance(text, Iterable) else ""
    hint = "text.decode('utf-8')" if isinstance(text, bytes | bytearray) else hint
    raise InputError(f"expected one `str` in `encode`, got {type(text).__name__}", hint=hint)
