"""`ImportedTokenizer`: a foreign tokenizer with the interface of ours.

This file adds: keeping. The definition stays the data that it was, in a folder with a koktok.toml that says what it is,
which library runs it, and its digest; `koktok.load` reads it back. What a round trip through it costs is measured,
not believed: `lossless` is what `decode(encode(x))` did to a list of hard texts.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import path_of, read_settled, write_folder
from koktok.foreign.engines import Engine, HfEngine, SentencePieceEngine, TiktokenEngine
from koktok.foreign.trial import PROBES
from koktok.formats.folder import MARK, TOKENIZER, folder_of, is_imported, read_folder, with_extra
from koktok.formats.tiktoken import load as load_ranks
from koktok.special import special_tokens, style_for
from koktok.tokenizer import Tokenizer
from koktok.tokenizer.decoding import checked_ids
from koktok.tokenizer.encoding import Encoding
from koktok.vocab import Vocab

if TYPE_CHECKING:
    from koktok.bulk import TokenArray

__all__ = ["PROBES", "ForeignVocab", "ImportedTokenizer", "load_folder", "load_imported"]

FORMAT = 1
"""Version of the layout of an imported folder."""


class ForeignVocab(Vocab):
    """The tokens of a foreign tokenizer by id, in the place of a `Vocab`; none of a vocabulary's rules hold for it.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Engine) -> None:
        for name, value in {
            "kind": "imported",
            "pieces": tuple(token for token in engine.tokens if token not in engine.specials),
            "scores": (),
            "specials": tuple(engine.specials),
            "byte_fallback": False,
            "_engine": engine,
        }.items():
            object.__setattr__(self, name, value)

    _engine: Engine

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._engine,)

    @property
    def size(self) -> int:
        """All ids, up to the largest."""
        return len(self._engine.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece to id, without special tokens."""
        specials = set(self._engine.specials.values())
        return {token: i for i, token in enumerate(self._engine.tokens) if i not in specials and token}

    @cached_property
    def special_ids(self) -> dict[str, int]:
        """Special token to id; they may stand anywhere."""
        return dict(self._engine.specials)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id."""
        return self._engine.tokens

    @property
    def unknown_id(self) -> int:
        """The id of the unknown token."""
        if self._engine.unknown is None:
            raise KeyError("this tokenizer has no unknown token")
        return self._engine.unknown

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        return self._engine.fragments

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over the files that define it."""
        return digest_of(self._engine.files())[:16]


class ImportedTokenizer(Tokenizer):
    """A foreign tokenizer, run by its own library; see `import_tokenizer`.

    Parameters
    ----------
    engine : Engine
    signature : mapping, optional
        Where it came from.

    Notes
    -----
    `recipe`, `style`, `normalizer`, `pattern`, `words` and `model` are koktok's, and an imported tokenizer has none of
    them: asking for one is an error. Offsets are those that its library gives; Hugging Face's are short behind a normalizer that composes.
    """

    def __init__(self, engine: Engine, signature: Mapping[str, Any] | None = None) -> None:
        self.engine = engine
        self.vocab = ForeignVocab(engine)
        self.signature = dict(signature or {})

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("recipe", "style", "normalizer", "pattern", "words", "model"):
            raise _NoStageError(
                f"an imported tokenizer has no `{name}` of koktok's: the library {self.engine.library} runs it whole"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def style(self) -> NoReturn:
        """None of koktok's: the error says so."""
        self.__getattr__("style")

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers, as far as their spelling tells it."""
        return style_for("plain", self.vocab.specials).roles

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.engine, self.signature)

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(f"{self.engine.library}\0{self.vocab.digest()}".encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ImportedTokenizer({self.engine.library}, size={self.vocab.size}, digest={self.vocab.digest()})"

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
        for token, i in self.vocab.special_ids.items():
            with suppress(InputError):  # what the library refuses reaches nothing
                if i != self.engine.unknown and i in self.engine.encode(f"가{token}나")[0]:
                    found.append(token)
        return tuple(found)

    def normalize(self, text: str) -> str:
        """What the library's normalizer makes of the text."""
        return self.engine.normalize(_checked(text))

    def encode(
        self,
        text: str,
        *,
        allowed_special: Collection[str] | Literal["all"] = (),
        superwords: bool = True,
        add_special_tokens: bool = False,
    ) -> Encoding:
        """Text to ids, tokens and offsets, as the library gives them.

        Parameters
        ----------
        text : str
        allowed_special : collection of str, or "all"
            Special tokens that are read as such where the text spells them. "all" leaves it to the library where it can
            (then its flags for white space around them hold).
        superwords : bool
            Only True: where pieces end is the library's affair.
        add_special_tokens : bool
            Put the library's own template around the text (tokenizer.json only).

        Raises
        ------
        InputError
            When `text` is no `str`, holds a lone surrogate, or an allowed token is no special token.
        UsageError
            When something is asked that the library cannot do.
        """
        _checked(text)
        if not superwords:
            raise UsageError("`superwords=False` is for koktok's own tokenizers")
        if (isinstance(allowed_special, str) and allowed_special == "all") or add_special_tokens:
            whole = self.engine.encode_all(text, template=add_special_tokens)
            if whole is not None:
                return self._encoding(*whole)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, part, special in self._cut(text, allowed_special):
            if special:
                ids.append(self.vocab.special_ids[part])
                offsets.append((start, start + len(part)))
            else:
                more, spans = self.engine.encode(part)
                ids += more
                offsets += [(start + a, start + b) for a, b in spans]
        return self._encoding(ids, offsets)

    def encode_ids(self, texts: Any, *, add_special_tokens: bool = False, **options: Any) -> TokenArray:
        """Ids of many texts in one flat array, each as `encode` gives them; see `Tokenizer.encode_ids`.

        Parameters
        ----------
        texts : iterable of str, or pyarrow.Array or ChunkedArray of strings
        add_special_tokens : bool
            As in `encode`; `before` and `after` stand outside.
        **options
            Those of `Tokenizer.encode_ids`; any number of threads is one.

        Raises
        ------
        InputError
            As `encode`; and when a bare `str` comes in place of texts.
        UsageError
            As `encode`; and when `dtype` cannot hold the ids, or `threads` is less than 1.
        """
        from koktok.foreign.imported_batch import LibraryEncoder

        encoder = LibraryEncoder(self, add_special_tokens=add_special_tokens)
        return self._ids_by(encoder, texts, **options)

    @cached_property
    def bulk_encoder(self) -> Any:
        """What `encode_ids` runs on: the library, text by text."""
        from koktok.foreign.imported_batch import LibraryEncoder

        return LibraryEncoder(self)

    @cached_property
    def _bulk_decoder(self) -> Any:
        from koktok.foreign.imported_batch import LibraryDecoder

        return LibraryDecoder(self)

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Ids to text, as the library does it.

        Raises
        ------
        InputError
            When an id is outside the vocabulary.
        """
        kept = checked_ids(ids, self.vocab.size)
        unused = next((i for i in kept if not self.vocab.tokens[i]), None)
        if unused is not None:
            raise InputError(f"the id {unused} is that of no token")
        return self.engine.decode(kept, skip_special_tokens=skip_special_tokens)

    def sample(self, *_: Any, **__: Any) -> NoReturn:
        """Not for imported tokenizers."""
        raise UsageError("samples are for koktok's own tokenizers", hint=f"ask the library {self.engine.library}")

    def n_best(self, *_: Any, **__: Any) -> NoReturn:
        """Not for imported tokenizers."""
        raise UsageError("n-best is for koktok's own tokenizers", hint=f"ask the library {self.engine.library}")

    def stream(self, *_: Any, **__: Any) -> NoReturn:
        """Not for imported tokenizers."""
        raise UsageError("streams are for koktok's own tokenizers", hint="tokenizers.decoders.DecodeStream")

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write a folder that `koktok.load` reads: the definition as it came, and koktok.toml.

        Parameters
        ----------
        path : str or Path
            A new folder, or an older koktok tokenizer: its files are replaced, all others in the folder stay.
        extra : mapping, optional
            More files for the folder.
        """
        import tomli_w

        files = self.engine.files()
        table = {
            "format": FORMAT,
            "kind": "imported",
            "library": self.engine.library,
            "files": sorted(files),
            "sha256": digest_of(files),
            "probes": len(PROBES),
            "exact": self.exact,
        }
        mark = tomli_w.dumps({"imported": table, "signature": self.signature})
        return write_folder(path, with_extra({MARK: mark, **files}, extra), TOKENIZER)

    def _cut(self, text: str, allowed: Collection[str] | Literal["all"]) -> list[tuple[int, str, bool]]:
        """The text cut at allowed special tokens, longest first: (start, part, whether it is a special token)."""
        specials = self.vocab.special_ids
        whole = isinstance(allowed, str) and allowed == "all"
        names = list(specials) if whole else special_tokens(allowed, specials, "allowed_special")
        if not names:
            return [(0, text, False)]
        parts, start = [], 0
        for part in re.split(f"({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})", text):
            if part:
                parts.append((start, part, part in names))
            start += len(part)
        return parts


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


def load_folder(path: str | Path) -> Tokenizer:
    """The tokenizer of a folder that koktok wrote, trained or imported.

    Raises
    ------
    ArtifactError
        When the folder is missing, damaged, changed by hand, written by a newer koktok, or somebody else's.
    """
    folder = folder_of(path_of(path))

    def read() -> Tokenizer:
        return load_imported(folder) if is_imported(folder) else Tokenizer(*read_folder(folder))

    return read_settled(folder, TOKENIZER, read)


def load_imported(folder: str | Path) -> ImportedTokenizer:
    """The imported tokenizer of a folder; `koktok.load` comes here by itself.

    Raises
    ------
    ArtifactError
        When the folder is damaged, changed by hand, or written by a newer koktok.
    """
    place = Path(folder)
    again = "koktok import FILE --out FOLDER"
    try:
        toml = tomllib.loads((place / MARK).read_text(encoding="utf-8"))
        table = toml["imported"]
        library, digest, newer = table["library"], table["sha256"], table["format"] != FORMAT
        names = [Path(str(name)).name for name in table["files"]]
        contents = {name: (place / name).read_bytes() for name in names}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(
            f"`{place}` is no readable imported tokenizer: {type(error).__name__}: {error}", hint=again
        ) from error
    if newer:
        raise ArtifactError(f"`{place}` has format {table['format']!r}; this koktok reads {FORMAT}", hint=again)
    if digest_of(contents) != digest:
        raise ArtifactError(f"the files of `{place}` are not those that {MARK} was written with", hint=again)
    engine: Engine
    if library == "tokenizers":
        beside = {name: data for name, data in contents.items() if name != "tokenizer.json"}
        engine = HfEngine(contents["tokenizer.json"].decode("utf-8"), beside, where=str(place))
    elif library == "sentencepiece":
        engine = SentencePieceEngine(contents["tokenizer.model"], where=str(place))
    elif library == "tiktoken":
        engine = TiktokenEngine(load_ranks(place), where=str(place))
    else:
        raise ArtifactError(f"`{place}` wants the library {library!r}, which this koktok does not know", hint=again)
    return ImportedTokenizer(engine, toml.get("signature"))


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise InputError(
            f"`encode` got {type(text).__name__} where one `str` was wanted",
            hint="text.decode('utf-8')"
            if isinstance(text, bytes | bytearray)
            else "tokenizer.encode_batch(texts) for many"
            if isinstance(text, Iterable)
            else "",
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"a lone surrogate U+{ord(text[error.start]):04X} came at character {error.start}; wanted: text that UTF-8 "
            "can hold",
            hint='text.encode("utf-8", "replace").decode("utf-8")',
        ) from error
    return text
