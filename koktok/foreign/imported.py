"""`ImportedTokenizer`: a foreign tokenizer with the calls of ours, and the folder that keeps it.

The definition stays the data that it was, in a folder with a koktok.toml that says what it is,
which library runs it, and its digest; `koktok.load` reads it back. What a round trip through it costs is measured,
not believed: `lossless` is what `decode(encode(x))` did to a list of hard texts.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import path_of, read_whole, typed, write_folder
from koktok.foreign.base import ForeignTokenizer
from koktok.foreign.huggingface_adapter import HuggingFace
from koktok.foreign.sentencepiece_adapter import SentencePiece
from koktok.foreign.tiktoken_adapter import Tiktoken
from koktok.foreign.trial import PROBES
from koktok.formats.folder import MARK, TOKENIZER, is_imported, read_folder, with_extra
from koktok.formats.tiktoken import load as load_ranks
from koktok.special import cut_at, style_for
from koktok.tokenizer import Tokenizer
from koktok.tokenizer.any_tokenizer import Allowed, AnyTokenizer, checked_text
from koktok.tokenizer.decoding import checked_ids
from koktok.tokenizer.encoding import Encoding
from koktok.vocabularies import folder_of

if TYPE_CHECKING:
    from koktok.bulk import TokenArray


FORMAT = 1
"""Version of the layout of an imported folder."""


class ImportedVocab:
    """The table of a foreign tokenizer's tokens; none of the rules of a `koktok.vocab.Vocab` hold for it."""

    kind: ClassVar[str] = "imported"
    """In the place of a `koktok.vocab.ModelKind`."""

    def __init__(self, adapter: ForeignTokenizer) -> None:
        self._adapter = adapter

    @property
    def size(self) -> int:
        """All ids, up to the largest."""
        return self._adapter.size or 0

    @property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id."""
        return self._adapter.tokens

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece to id, without special tokens."""
        specials = set(self._adapter.specials.values())
        return {token: i for i, token in enumerate(self.tokens) if i not in specials and token}

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Special token to id; they may stand anywhere."""
        return self._adapter.specials

    @property
    def specials(self) -> tuple[str, ...]:
        """Special tokens, by id."""
        return tuple(self._adapter.specials)

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        """Token to id, special ones included."""
        return {**self.ids, **self._adapter.specials}

    @property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        return self._adapter.fragments

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides its ids."""
        return self._adapter.digest


class ImportedTokenizer(AnyTokenizer):
    """A foreign tokenizer with the calls of `koktok.Tokenizer`, run by its own library; see `import_tokenizer`.

    Notes
    -----
    `recipe`, `style`, `normalizer`, `pattern`, `words` and `model` are koktok's, and an imported tokenizer has none of
    them: asking for one is an error. Offsets are those that its library gives; Hugging Face's are short behind a normalizer that composes.
    """

    vocab: ImportedVocab

    def __init__(self, adapter: ForeignTokenizer, signature: Mapping[str, Any] | None = None) -> None:
        if adapter.size is None:
            raise UsageError(
                f"`{adapter.spec}` has no vocabulary: its ids are made as text comes",
                hint=f"koktok report {typed(adapter.spec)}",
            )
        self.adapter = adapter
        self.vocab = ImportedVocab(adapter)
        self.signature = dict(signature or {})

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("recipe", "style", "normalizer", "pattern", "words", "model"):
            raise _NoStageError(
                f"an imported tokenizer has no `{name}` of koktok's: the library {self.adapter.library} runs it whole"
            )
        if name in ("sample", "n_best", "stream"):
            raise _NoStageError(
                f"`{name}` is for koktok's own tokenizers", hint=f"ask the library {self.adapter.library}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by the part that they play for transformers, as far as their spelling tells it."""
        return style_for("plain", self.vocab.specials).roles

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.adapter, self.signature)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides what a text becomes, and ids become."""
        return hashlib.sha256(f"{self.adapter.library}\0{self.vocab.digest()}".encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"ImportedTokenizer({self.adapter.library}, size={self.vocab.size}, digest={self.vocab.digest()})"

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
                if i != self.adapter.unknown and i in self.adapter.read(f"가{token}나")[0]:
                    found.append(token)
        return tuple(found)

    def normalize(self, text: str) -> str:
        """What the library's normalizer makes of the text."""
        return self.adapter.normalize(_checked(text))

    def encode(
        self,
        text: str,
        *,
        allowed_special: Allowed = (),
        superwords: bool = True,
        add_special_tokens: bool = False,
    ) -> Encoding:
        """Text to ids, tokens and offsets, as the library gives them."""
        _checked(text)
        if not superwords:
            raise UsageError("`superwords=False` is for koktok's own tokenizers")
        if (isinstance(allowed_special, str) and allowed_special == "all") or add_special_tokens:
            whole = self.adapter.read_with_specials(text, template=add_special_tokens)
            if whole is not None:
                return self._encoding(*whole)
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, end, special in cut_at(text, allowed_special, self.vocab.special_ids):
            if special:
                ids.append(self.vocab.special_ids[special])
                offsets.append((start, end))
            else:
                more, spans = self.adapter.read(text[start:end])
                ids += more
                offsets += [(start + a, start + b) for a, b in spans]
        return self._encoding(ids, offsets)

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
    ) -> TokenArray:
        """Ids of many texts in one flat array, each as `encode` gives them; see `Tokenizer.encode_ids`."""
        from koktok.foreign.imported_batch import LibraryEncoder

        return self._ids_by(
            LibraryEncoder(self, add_special_tokens=add_special_tokens),
            texts,
            before=before,
            after=after,
            threads=threads,
            dtype=dtype,
            allowed_special=allowed_special,
        )

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
        """Ids to text, as the library does it."""
        kept = checked_ids(ids, self.vocab.size)
        unused = next((i for i in kept if not self.vocab.tokens[i]), None)
        if unused is not None:
            raise InputError(f"the id {unused} is that of no token")
        text = self.adapter.decode(kept, skip_special_tokens=skip_special_tokens)
        if text is None:
            raise UsageError(f"what runs `{self.adapter.spec}` has no decoder")
        return text

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = True) -> Path:
        """Write a folder that `koktok.load` reads: the definition as it came, and koktok.toml."""
        import tomli_w

        files = self.adapter.files()
        table = {
            "format": FORMAT,
            "kind": "imported",
            "library": self.adapter.library,
            "files": sorted(files),
            "sha256": digest_of(files),
            "probes": len(PROBES),
            "exact": self.exact,
        }
        mark = tomli_w.dumps({"imported": table, "signature": self.signature})
        return write_folder(path, with_extra({MARK: mark, **files}, extra), TOKENIZER, force=force)

    def _encoding(self, ids: list[int], offsets: list[tuple[int, int]]) -> Encoding:
        tokens = self.vocab.tokens
        return Encoding(ids, [tokens[i] for i in ids], offsets)


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


def load_folder(path: str | Path) -> Tokenizer | ImportedTokenizer:
    """The tokenizer of a folder that koktok wrote, trained or imported."""
    folder = folder_of(path_of(path))

    def read() -> Tokenizer | ImportedTokenizer:
        return load_imported(folder) if is_imported(folder) else Tokenizer(*read_folder(folder))

    return read_whole(folder, TOKENIZER, read)


def load_imported(folder: str | Path) -> ImportedTokenizer:
    """The imported tokenizer of a folder; `koktok.load` comes here by itself."""
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
    adapter: ForeignTokenizer
    spec, name = str(place), place.resolve().name
    if library == "tokenizers":
        beside = {name: data for name, data in contents.items() if name != "tokenizer.json"}
        adapter = HuggingFace(contents["tokenizer.json"].decode("utf-8"), beside, spec=spec, name=name)
    elif library == "sentencepiece":
        adapter = SentencePiece(contents["tokenizer.model"], spec=spec, name=name)
    elif library == "tiktoken":
        adapter = Tiktoken(load_ranks(place), spec=spec, name=name)
    else:
        raise ArtifactError(f"`{place}` wants the library {library!r}, which this koktok does not know", hint=again)
    return ImportedTokenizer(adapter, toml.get("signature"))


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
