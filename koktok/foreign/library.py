"""`LibraryTokenizer`: a tokenizer of any library; an adapter of a library is a subclass.

Whose ids they are. A foreign definition is run by the library that it was written for, from the bytes that were given, and not
by a rebuilding of ours: then its ids are that library's by construction. Nothing of a file is ever executed. The definition
stays the data that it was, in a folder with a koktok.toml that says which library runs it, and its digest. What a round trip
costs is measured: `lossless` is what `decode(encode(x))` did to a list of hard texts.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from koktok.errors import InputError, KoktokError, UsageError
from koktok.files import typed, write_folder
from koktok.foreign.sandbox import PROBES
from koktok.formats.folder import MARK, TOKENIZER, with_extra
from koktok.special import cut_at, style_for
from koktok.tokenizer.any_tokenizer import Allowed, Tokenizer, checked_text
from koktok.tokenizer.decoding import checked_ids
from koktok.tokenizer.encoding import Encoding
from koktok.tokenizer.tokens import ByteTable, Spans, Tokens, tokens_by_bytes

if TYPE_CHECKING:
    from koktok.foreign.batch import LibraryDecoder, LibraryEncoder
    from koktok.tokenizer.tokens import Tokens

IdsAndSpans = tuple[list[int], list[tuple[int, int]]]
"""Ids of a text, and in parallel half-open code points of it."""

FORMAT = 1
"""Version of the layout of an imported folder."""


class asking:  # noqa: N801 - used as a statement
    """A context in which whatever a library raises becomes an error of ours; panics of Rust are no `Exception`.

    Examples
    --------
    >>> with asking("tokenizers"):
    ...     raise BaseException("a panic")
    Traceback (most recent call last):
        ...
    koktok.errors.InputError: the library tokenizers fails on this text: BaseException: a panic
    hint: the definition is at fault: import it again, from a source that you trust
    """

    def __init__(self, library: str) -> None:
        self.library = library

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Say it in our words."""
        if error is None or isinstance(
            error, KoktokError | KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError
        ):
            return
        raise InputError(
            f"the library {self.library} fails on this text: {type(error).__name__}: {error}",
            hint="the definition is at fault: import it again, from a source that you trust",
        ) from None


class LibraryVocab:
    """The table of a library's tokens; none of the rules of a `koktok.vocab.Vocab` hold for it."""

    kind: ClassVar[str] = "imported"
    """In the place of a `koktok.vocab.ModelKind`."""

    def __init__(self, tokenizer: LibraryTokenizer) -> None:
        self._tokenizer = tokenizer
        self.size = tokenizer.size or 0
        self.tokens = tuple(tokenizer.tokens)
        self.special_ids: Mapping[str, int] = tokenizer.specials
        self.specials = tuple(tokenizer.specials)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece to id, without special tokens."""
        specials = set(self.special_ids.values())
        return {token: i for i, token in enumerate(self.tokens) if i not in specials and token}

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        """Token to id, special ones included."""
        return {**self.ids, **self.special_ids}

    @property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        return self._tokenizer.fragments

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides its ids."""
        return self._tokenizer.digest()


class LibraryTokenizer(Tokenizer):
    """A tokenizer that its own library runs, with the calls of `koktok.Tokenizer`.

    An adapter has `token_bytes`, and `encode_lines` or `ids` with `_bytes` and `read`. What else a library can do (decode, find
    special tokens, normalize, be kept in a folder) it overrides; what is left has a default that follows from those, or an error.
    `recipe`, `style`, `normalizer`, `pattern`, `words` and `model` are koktok's: asking for one is an error. Offsets are those
    that the library gives; Hugging Face's are short behind a normalizer that composes.
    """

    library: ClassVar[str] = ""
    """The package that runs it."""

    def __init__(
        self,
        spec: str,
        name: str,
        *,
        size: int | None,
        digest: str,
        libraries: dict[str, str],
        notes: Sequence[str] = (),
        unknown_ids: Collection[int] = (),
        byte_ids: Collection[int] = (),
        special_ids: Collection[int] = (),
    ) -> None:
        self.spec, self.name = spec, name
        self.size = size
        self._digest = digest
        self.libraries = libraries
        self.notes = tuple(notes)
        self.unknown_ids = frozenset(unknown_ids)
        self.byte_ids = frozenset(byte_ids)
        self.special_ids = frozenset(special_ids)
        self.signature: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, digest={self.digest()})"

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("recipe", "style", "normalizer", "pattern", "words", "model"):
            raise _NoStageError(
                f"an imported tokenizer has no `{name}` of koktok's: the library {self.library} runs it whole"
            )
        if name in ("sample", "n_best", "stream"):
            raise _NoStageError(f"`{name}` is for koktok's own tokenizers", hint=f"ask the library {self.library}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- What every adapter has ---------------------------------------------------------------------------------------

    @abstractmethod
    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""

    @cached_property
    def _bytes(self) -> ByteTable:
        """The bytes that each id writes, for spans."""
        raise NotImplementedError

    spaced = True
    """Whether pieces hold white space."""

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        """Tokens of lines, with spans from the bytes that each id writes, or else the library's own."""
        return tokens_by_bytes(
            lines,
            self.ids(lines),
            self._bytes,
            lambda which: self.offsets([lines[k] for k in which]),
            spaced=self.spaced,
        )

    # --- What a library may do besides --------------------------------------------------------------------------------

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids that `encode_lines` gives, without spans."""
        return [row.tolist() for row in self.encode_lines(lines)]

    def ids_with_specials(self, lines: Sequence[str]) -> list[list[int]] | None:  # noqa: ARG002
        """The same where special tokens that a line spells are read as such; None where the library cannot."""
        return None

    def read(self, text: str) -> IdsAndSpans:
        """One text, with the offsets that the library itself gives, where it gives any."""
        row = self.encode_lines([text])
        return row.ids.tolist(), [(a, b) for a, b in row.spans.tolist()]

    def offsets(self, lines: Sequence[str]) -> list[Spans]:
        """The offsets that the library itself gives."""
        return [self.read(line)[1] for line in lines]

    def read_with_specials(self, text: str, *, template: bool = False) -> IdsAndSpans | None:  # noqa: ARG002
        """`read` with special tokens found as the library finds them; None where it has no way of its own."""
        if template:
            raise UsageError(
                f"a tokenizer that {self.library or self.name} runs has no template of special tokens",
                hint="add them yourself",
            )
        return None

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:  # noqa: ARG002
        """The text of ids; None where this tokenizer has no decoder."""
        return None

    def texts_of(self, rows: Sequence[Sequence[int]]) -> list[str] | None:
        """The text of each row of ids; None where this tokenizer has no decoder."""
        texts = [text for text in map(self.text_of, rows) if text is not None]
        return texts if len(texts) == len(rows) else None

    def normalize(self, text: str) -> str:
        """What the library's normalizer makes of the text, as far as it tells."""
        return _checked(text)

    def files(self) -> dict[str, str | bytes]:
        """The definition, as files of a folder that `koktok.load` reads."""
        raise UsageError(
            f"`{self.spec}` cannot be kept in a folder: what {self.library or self.name} runs is not in one file",
            hint=f"koktok report {typed(self.spec)}",
        )

    # --- The table of tokens ------------------------------------------------------------------------------------------

    def piece(self, i: int) -> str:
        """The id as its vocabulary spells it; '' for one that it does not use."""
        written = self.token_bytes(i)
        return "" if written is None else written.decode("utf-8", errors="replace")

    @cached_property
    def tokens(self) -> Sequence[str]:
        """`piece` of every id."""
        return tuple(map(self.piece, range(self.size or 0)))

    @cached_property
    def specials(self) -> Mapping[str, int]:
        """Special tokens and the unknown one, by their spelling: what text reaches only when it is allowed to."""
        return {self.tokens[i]: i for i in sorted(self.special_ids | self.unknown_ids)}

    @property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        return min(self.unknown_ids, default=None)

    @cached_property
    def vocab(self) -> LibraryVocab:  # type: ignore[override]
        """The table of its tokens; an error where ids are made as text comes."""
        if self.size is None:
            raise UsageError(
                f"`{self.spec}` has no vocabulary: its ids are made as text comes",
                hint=f"koktok report {typed(self.spec)}",
            )
        return LibraryVocab(self)

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers, as far as their spelling tells it."""
        return style_for("plain", self.vocab.specials).roles

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides what a text becomes, and ids become."""
        return self._digest

    # --- What is measured ---------------------------------------------------------------------------------------------

    @cached_property
    def exact(self) -> int:
        """How many of `PROBES` come back as they were."""
        return sum(self._comes_back(text) for text in PROBES)

    def _comes_back(self, text: str) -> bool:
        try:
            return self.decode(self.encode(text).ids) == text
        except InputError:  # the library refuses it
            return False

    @property
    def lossless(self) -> bool:
        """True where all of `PROBES` come back as they were: measured, not proven."""
        return self.exact == len(PROBES)

    @cached_property
    def reachable(self) -> tuple[str, ...]:
        """Special tokens that text reaches though nobody allowed it: the library finds them among the pieces."""
        found = []
        for token, i in self.specials.items():
            with suppress(InputError):  # what the library refuses reaches nothing
                if i != self.unknown and i in self.read(f"가{token}나")[0]:
                    found.append(token)
        return tuple(found)

    # --- Text to ids and back -----------------------------------------------------------------------------------------

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        """Text to ids, tokens and offsets, as the library gives them."""
        _checked(text)
        if not superwords:
            raise UsageError("`superwords=False` is for koktok's own tokenizers")
        if (isinstance(allowed_special, str) and allowed_special == "all") or add_special_tokens:
            whole = self.read_with_specials(text, template=add_special_tokens)
            if whole is not None:
                return self._encoding(*whole)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, end, special in cut_at(text, allowed_special, self.specials):
            if special:
                ids.append(self.specials[special])
                offsets.append((start, end))
            else:
                more, spans = self.read(text[start:end])
                ids += more
                offsets += [(start + a, start + b) for a, b in spans]
        return self._encoding(ids, offsets)

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        tokens = self.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)

    @property
    def bulk_encoder(self) -> LibraryEncoder:
        """The library, text by text."""
        return self._encoder(add_special_tokens=False)[0]

    def _encoder(self, *, add_special_tokens: bool) -> tuple[LibraryEncoder, Sequence[str], Sequence[str]]:
        from koktok.foreign.batch import LibraryEncoder

        return LibraryEncoder(self, add_special_tokens=add_special_tokens), (), ()

    @property
    def _bulk_decoder(self) -> LibraryDecoder:
        from koktok.foreign.batch import LibraryDecoder

        return LibraryDecoder(self)

    @property
    def decodes(self) -> bool:
        """Whether the library has a decoder."""
        return type(self).text_of is not LibraryTokenizer.text_of

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text, as the library does it."""
        kept = checked_ids(ids, self.vocab.size)
        unused = next((i for i in kept if not self.tokens[i]), None)
        if unused is not None:
            raise InputError(f"the id {unused} is that of no token")
        text = self.text_of(kept, skip_special_tokens=skip_special_tokens)
        if text is None:
            raise UsageError(f"what runs `{self.spec}` has no decoder")
        return text

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = True) -> Path:
        """Write a folder that `koktok.load` reads: the definition as it came, and koktok.toml."""
        import tomli_w

        files = self.files()
        table = {
            "format": FORMAT,
            "kind": "imported",
            "library": self.library,
            "files": sorted(files),
            "sha256": digest_of(files),
            "probes": len(PROBES),
            "exact": self.exact,
        }
        mark = tomli_w.dumps({"imported": table, "signature": self.signature})
        return write_folder(path, with_extra({MARK: mark, **files}, extra), TOKENIZER, force=force)


class _NoStageError(UsageError, AttributeError):
    """An attribute that imported tokenizers do not have, for `hasattr` and for people."""


def digest_of(files: Mapping[str, str | bytes]) -> str:
    """SHA-256 over names and contents, in the order of names."""
    found = hashlib.sha256()
    for name in sorted(files):
        content = files[name]
        data = content.encode() if isinstance(content, str) else content
        found.update(f"{name}\0{len(data)}\0".encode())
        found.update(data)
    return found.hexdigest()


def _checked(text: str) -> str:
    """`text`, if it is one that UTF-8 can hold; libraries fail at others in ways of their own."""
    try:
        checked_text(text).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"a lone surrogate U+{ord(text[error.start]):04X} came at character {error.start}; wanted: text that UTF-8 "
            "can hold",
            hint='text.encode("utf-8", "replace").decode("utf-8")',
        ) from error
    return text
