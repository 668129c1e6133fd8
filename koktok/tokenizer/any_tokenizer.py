"""`Tokenizer`: the protocol of every tokenizer that koktok opens, its own or a library's.

`koktok.load` gives one of two: a `TrainedTokenizer`, which is koktok's own, or a `LibraryTokenizer`, which the library runs that
its definition was written for. Each brings `encode`, `decode`, `encode_lines`, a table of tokens and what runs
them on much text, and this class the rest: many texts, flat arrays, look-ups, comparison.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, overload

from koktok.errors import InputError, UsageError
from koktok.formats.vocabularies import folder_of
from koktok.special import special_tokens
from koktok.tokenizer.encoding import Encoding

if TYPE_CHECKING:
    from koktok.tokenizer.tokens import Tokens


Allowed = Collection[str] | Literal["all"]
"""Special tokens that a text may spell."""


class TokenTable(Protocol):
    """The tokens of a tokenizer by id: `koktok.vocab.Vocab`, or what a library has."""

    @property
    def size(self) -> int:
        """All ids, special ones included."""
        ...

    @property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id; '' for one that is not used."""
        ...

    @property
    def token_ids(self) -> Mapping[str, int]:
        """Token to id, special ones included."""
        ...

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Special token to id."""
        ...

    def digest(self) -> str:
        """16 hex digits of all that is in it."""
        ...


class Tokenizer(ABC):
    """A tokenizer that koktok opens, its own or another's."""

    vocab: TokenTable
    """The table of its tokens."""

    signature: dict[str, Any]
    """Where it came from."""

    spec: str = ""
    """The reference that it was opened by."""

    name: str = ""
    """What a table calls it."""

    size: int | None
    """All ids, special ones included; None where they are made as text comes."""

    unknown_ids: frozenset[int]
    """Ids of text that has no piece."""

    byte_ids: frozenset[int]
    """Ids of the bytes to fall back on."""

    special_ids: frozenset[int]
    """Ids of special tokens, the unknown one apart."""

    libraries: dict[str, str]
    """The packages that run it, with their versions."""

    notes: tuple[str, ...]
    """What travels with its figures: what it does to its input, what it loses."""

    @classmethod
    def load(cls, reference: str | Path) -> Self:
        """Open a tokenizer of any kind, as `koktok.load` does.

        Examples
        --------
        >>> Tokenizer.load("syllables").encode_lines(["한국"]).ids.tolist()
        [0, 1]
        """
        opened: Self = import_module("koktok.foreign.open").load(reference)  # a later stage, found by name
        return opened

    @classmethod
    def from_pretrained(cls, reference: str | Path) -> Self:
        """Open a tokenizer, as users of transformers type it; nothing is fetched."""
        return cls.load(reference)

    @classmethod
    def from_file(cls, reference: str | Path) -> Self:
        """Open a tokenizer, as users of tokenizers type it; the tokenizer.json of a folder of koktok's is that folder."""
        return cls.load(folder_of(Path(reference)))

    @property
    @abstractmethod
    def lossless(self) -> bool:
        """Whether `decode(encode(x))` is `normalize(x)` for every text."""

    @property
    @abstractmethod
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers: `bos_token`, `eos_token`, `pad_token` ..."""

    @property
    @abstractmethod
    def bulk_encoder(self) -> Any:
        """What `encode_ids` runs on."""

    @property
    @abstractmethod
    def _bulk_decoder(self) -> Any:
        """What `decode_ids` runs on."""

    @abstractmethod
    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides what a text becomes, and ids become."""

    @abstractmethod
    def normalize(self, text: str) -> str:
        """The text as the model sees it."""

    @abstractmethod
    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        """Text to ids, pieces and offsets."""

    @abstractmethod
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
        """Ids of many texts in one flat array."""

    @abstractmethod
    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text."""

    @abstractmethod
    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        """Ids and spans of each line; what spells a special token is text, and none are put around it."""

    @abstractmethod
    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""

    @abstractmethod
    def piece(self, i: int) -> str:
        """The id as its vocabulary spells it; '' for one that it does not use."""

    @abstractmethod
    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write a folder that `koktok.load` reads."""

    def __eq__(self, other: object) -> bool:
        """True for tokenizers of the same content, see `digest`."""
        return isinstance(other, Tokenizer) and (self is other or self.digest() == other.digest())

    def __hash__(self) -> int:
        return hash(self.digest())

    # --- What is measured ---------------------------------------------------------------------------------------------

    @property
    def decodes(self) -> bool:
        """Whether there is a decoder."""
        return True

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids that `encode_lines` gives, without spans."""
        return [row.tolist() for row in self.encode_ids(list(lines))]

    def ids_by_default(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of a call without options: some libraries read special tokens that a text spells."""
        return self.ids(lines)

    def unigram(self) -> dict[str, float] | None:
        """Text of each piece to its log-probability, where the model is a Unigram; None where it is not."""
        return None

    def unigram_words(self, line: str) -> list[str]:
        """What a Unigram model reads one by one: by default words, each with the space before it."""
        return re.findall(r"\s*\S+|\s+$", line)

    def surface(self, i: int) -> str:
        """The id for display: its text, with U+FFFD for a broken character."""
        written = self.token_bytes(i)
        return self.piece(i) if written is None else written.decode("utf-8", errors="replace")

    @cached_property
    def fragments(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        alone = (i for i in range(self.size or 0) if len(found := self.token_bytes(i) or b"") == 1 and found >= b"\x80")
        return self.byte_ids.union(alone)

    # --- Many texts ---------------------------------------------------------------------------------------------------

    @overload
    def __call__(self, text: str, *, add_special_tokens: bool = True, **options: Any) -> Encoding: ...

    @overload
    def __call__(self, text: Iterable[str], *, add_special_tokens: bool = True, **options: Any) -> list[Encoding]: ...

    def __call__(
        self, text: str | Iterable[str], *, add_special_tokens: bool = True, **options: Any
    ) -> Encoding | list[Encoding]:
        """As transformers has it: one text or many, with the special tokens of the style around each.

        Examples
        --------
        >>> from koktok import Recipe
        >>> from koktok.tokenizer import TrainedTokenizer
        >>> from koktok.vocab import Vocab
        >>> tokenizer = TrainedTokenizer(Recipe().changed(template="eos"), Vocab.bpe(" 한국", [" 한", " 국"], specials=["</s>"]))
        >>> tokenizer("한국").input_ids, [encoding["attention_mask"] for encoding in tokenizer(["한", "국"])]
        ([259, 257, 261], [[1, 1], [1, 1]])
        """
        if strange := sorted(options.keys() - {"allowed_special", "superwords"}):
            raise UsageError(
                f"`{strange[0]}` is nothing that a tokenizer of koktok's does",
                hint="tokenizer.save(FOLDER), then transformers.AutoTokenizer.from_pretrained(FOLDER)(text, ...)",
            )
        if isinstance(text, str):
            return self.encode(text, add_special_tokens=add_special_tokens, **options)
        return self.encode_batch(text, add_special_tokens=add_special_tokens, **options)

    def encode_batch(self, texts: Iterable[str], **options: Any) -> list[Encoding]:
        """Many texts at once, each as `encode` does it, with its options.

        Raises
        ------
        InputError
            When a bare `str` comes in place of texts.
        """
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
        r"""Ids of the documents of files, lines or records: those of `encode_ids`, without a string being made of plain text.

        Parameters
        ----------
        paths : path, or iterable of paths
            Files, folders or patterns, as `koktok encode` takes them. Bytes that are not UTF-8 end it for what is mostly no
            text; else their lines are left out.
        field : str, optional
            Field or column of records; "text" by default.
        threads, dtype, before, after
            As in `encode_ids`.

        Raises
        ------
        InputError
            When a file cannot be read or is no text.

        Examples
        --------
        >>> import tempfile
        >>> from koktok import Recipe
        >>> from koktok.tokenizer import TrainedTokenizer
        >>> from koktok.vocab import Vocab
        >>> path = Path(tempfile.mkdtemp(), "a.txt")
        >>> _ = path.write_text("한국\n국\n", encoding="utf-8")
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> [ids.tolist() for ids in tokenizer.encode_files(path)]
        [[256, 259], [256, 257]]
        """
        from koktok.bulk.mapped import mapped_blocks
        from koktok.corpora.paths import as_source
        from koktok.text.sources import read

        source = as_source(*([paths] if isinstance(paths, str | os.PathLike) else paths), field=field)

        def encoded(blocks: Iterator[Any]) -> Tokens:
            options = {"threads": threads, "dtype": dtype}
            return self._ids_by(self.bulk_encoder, blocks, before=before, after=after, **options)

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
            Where each begins and ends; `Tokens` bring their own, and without any all ids are one document.
        skip_special_tokens : bool
            As in `decode`.
        threads : int, optional
            The default is one for each core.

        Raises
        ------
        InputError
            When an id is outside the vocabulary, or `indptr` does not fit the ids.

        Examples
        --------
        >>> from koktok import Recipe
        >>> from koktok.tokenizer import TrainedTokenizer
        >>> from koktok.vocab import Vocab
        >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.unigram({" ": -1.0, "한": -2.0, "국": -2.0, "한국": -3.0}))
        >>> tokenizer.decode_ids(tokenizer.encode_ids(["한국", "국é"]))
        ['한국', '국é']
        """
        from koktok.tokenizer.tokens import Tokens

        if isinstance(ids, Tokens):
            ids, indptr = ids.ids, ids.indptr
        elif isinstance(ids, str | bytes | bytearray) or not hasattr(ids, "__len__") or getattr(ids, "ndim", 1) == 0:
            raise InputError(
                f"expected flat ids in `decode_ids`, got {type(ids).__name__}",
                hint="tokenizer.decode_ids(tokenizer.encode_ids(texts))",
            )
        elif indptr is None:
            indptr = [0, len(ids)]
        found: list[str] = self._bulk_decoder(ids, indptr, skip_special_tokens=skip_special_tokens, threads=threads)
        return found

    def decode_batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids, each as `decode` gives it.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        given: Any = rows
        if isinstance(given, str | bytes) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise InputError(
                f"expected rows of ids in `decode_batch`, got {type(given).__name__}",
                hint="tokenizer.decode_batch([ids, ids])",
            )
        found: list[str] = self._bulk_decoder.batch(rows, skip_special_tokens=skip_special_tokens)
        return found

    def _ids_by(
        self, encoder: Any, texts: Any, *, before: Sequence[str] = (), after: Sequence[str] = (), **options: Any
    ) -> Tokens:
        if isinstance(texts, Mapping):
            raise InputError("expected texts, got a mapping", hint="tokenizer.encode_ids(mapping[key])")
        known = self.vocab.special_ids
        edges = (special_tokens(before, known, "before"), special_tokens(after, known, "after"))
        begin, end = ([known[token] for token in edge] for edge in edges)
        found: Tokens = encoder(texts, before=begin, after=end, **options)
        return found

    # --- Vocabulary ---------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.vocab.size

    def __bool__(self) -> bool:
        return True

    @property
    def vocab_size(self) -> int:
        """All ids: bytes, pieces, special and reserved tokens."""
        return self.vocab.size

    def get_vocab(self) -> dict[str, int]:
        """Every token and its id."""
        return dict(self.vocab.token_ids)

    def token_to_id(self, token: str) -> int | None:
        """The id of a piece, byte piece or special token; None for a string that is no token."""
        return self.vocab.token_ids.get(token)

    def id_to_token(self, i: int) -> str | None:
        """The token of an id; None for a number that is no id."""
        return self.vocab.tokens[i] if 0 <= i < self.vocab.size else None

    @property
    def unk_id(self) -> int | None:
        """The id of the unknown token, which byte fallback never gives; None where there is none."""
        return self.token_to_id(self.roles.get("unk_token", ""))

    @property
    def pad_id(self) -> int | None:
        """The id of the padding token, or None."""
        return self.token_to_id(self.roles.get("pad_token", ""))

    @property
    def bos_id(self) -> int | None:
        """The id of the token that begins a text, or None."""
        return self.token_to_id(self.roles.get("bos_token", ""))

    @property
    def eos_id(self) -> int | None:
        """The id of the token that ends a text, or None."""
        return self.token_to_id(self.roles.get("eos_token", ""))


def checked_text(text: str) -> str:
    """`text`, if it is one."""
    if not isinstance(text, str):
        raise InputError(
            f"expected one `str` in `encode`, got {type(text).__name__}",
            hint="text.decode('utf-8')"
            if isinstance(text, bytes | bytearray)
            else "tokenizer.encode_batch(texts) for many"
            if isinstance(text, Iterable)
            else "",
        )
    return text
