"""`LibraryTokenizer`: a tokenizer that its own library runs; the adapter of a library is a subclass.

A foreign definition runs in the library that it was written for, from its unchanged bytes, so its ids are those of that
library. No code of a file is executed. An imported folder holds these bytes and a koktok.toml with the name of the library
and a digest. `lossless` is measured: whether `decode(encode(x))` restores a list of hard texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from koktok.errors import ArtifactError, InputError, UsageError
from koktok.files import typed, write_folder
from koktok.model.decoding import checked_ids
from koktok.model.encoding import Encoding
from koktok.model.note import Note
from koktok.model.special import cut_at, style_for
from koktok.model.tokens import ByteTable, Spans, Tokens, tokens_by_bytes
from koktok.protocol.tokenizer import Allowed, Tokenizer, checked_text
from koktok.runtimes.folder import MARK, TOKENIZER, with_extra
from koktok.runtimes.gguf import GgufVocab
from koktok.runtimes.runtime import runtime_of

if TYPE_CHECKING:
    from koktok.model.tokens import Tokens
    from koktok.runtimes.batch import LibraryDecoder, LibraryEncoder

IdsAndSpans = tuple[list[int], list[tuple[int, int]]]
"""Ids of a text, and in parallel half-open code points of it."""

FORMAT = 1
"""Version of the layout of an imported folder."""

PROBES: Final = (
    "한국어는 교착어다.", " 앞에 빈칸", "뒤에 빈칸 ", "두  칸,   세 칸", "첫 줄\n둘째 줄", "표\t안의\t글", "\r\n",
    "ㅋㅋㅋ ㅠㅠ ㄳ", "값이 12,345원, 1234567개(VAT 별도)", "Hello, World! Don't", "naïve façade", "漢字와 かな", "전각 ＡＢＣ １２３",
    "😀 👨‍👩‍👧 🇰🇷", "뷁쀍 똠방각하", "\u1112\u1161\u11ab\u1100\u1173\u11af", "ᄒᆞᆫ글 나랏말〯ᄊᆞ미", "밑줄▁글자", "<0x0A> [UNK] </s>",
    "㈜회사 ① ½ ㎏", "“따옴표” — 줄표…", "가\u200b나\u00a0다", "def f(x):\n    return x", "\x00\x7f", "ㆍ·•", "नमस्ते שלום",
)  # fmt: skip
"""Hard texts, on which the round trip of imported tokenizers is measured."""


class LibraryVocab:
    """The table of a library's tokens; it follows none of the rules of `koktok.model.vocab.Vocab`."""

    kind: ClassVar[str] = "imported"  # in place of a `koktok.model.vocab.ModelKind`

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

    def digest(self) -> str:
        """The digest of the tokenizer."""
        return self._tokenizer.digest()


class LibraryTokenizer(Tokenizer):
    """A tokenizer that its own library runs, with the calls of `koktok.Tokenizer`.

    An adapter is five functions: `read`, the ids and offsets of a text; `text_of`, the text of ids; `byte_table`, the bytes of
    each id; `tokens`, each id as its vocabulary spells it; and `files`, its definition. An adapter may override `ids`,
    `offsets` and `encode_lines`, which are for many lines, `specials` and `normalize`. `recipe`, `style`, `normalizer`, `pattern`,
    `words` and `model` exist only for koktok's own tokenizers. Offsets are those of the library; Hugging Face's are too short if a
    normalizer composes characters.
    """

    library: ClassVar[str] = ""  # the package that runs it
    spaced = True  # whether pieces hold white space
    cuts_specials = False  # whether the library itself finds special tokens in a text
    has_template = False  # whether the library adds special tokens around a text

    def __init__(
        self,
        spec: str,
        name: str,
        *,
        size: int | None,
        digest: str,
        libraries: dict[str, str],
        notes: Sequence[Note] = (),
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
                f"an imported tokenizer has no `{name}` of koktok's: it runs in the library {self.library}"
            )
        if name in ("sample", "n_best", "stream"):
            raise _NoStageError(f"`{name}` is for koktok's own tokenizers", hint=f"ask the library {self.library}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- What an adapter implements -----------------------------------------------------------------------------------

    def read(self, text: str, *, specials: bool = False, template: bool = False) -> IdsAndSpans:  # noqa: ARG002
        """The ids of one text, with the library's own offsets; `specials`: special tokens are read as the library reads them."""
        row = self.encode_lines([text])
        return row.ids.tolist(), [(a, b) for a, b in row.spans.tolist()]

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:  # noqa: ARG002
        """The text of ids."""
        raise UsageError(f"`{self.spec}` has no decoder")

    @cached_property
    def byte_table(self) -> ByteTable:
        """The bytes of each id; none for special tokens and the unknown one."""
        raise NotImplementedError

    @cached_property
    def tokens(self) -> Sequence[str]:
        """Each id as its vocabulary spells it; '' for an id without a token."""
        raise NotImplementedError

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        """The ids of lines, without spans."""
        return [self.read(line, specials=specials)[0] for line in lines]

    def offsets(self, lines: Sequence[str]) -> list[Spans]:
        """The library's own offsets of lines."""
        return [self.read(line)[1] for line in lines]

    def encode_lines(self, lines: Sequence[str]) -> Tokens:
        """Tokens of lines, with spans from the bytes of each id, or else the library's own."""
        return tokens_by_bytes(
            lines,
            self.ids(lines),
            self.byte_table,
            lambda which: self.offsets([lines[k] for k in which]),
            spaced=self.spaced,
        )

    def normalize(self, text: str) -> str:
        """The text after the library's normalizer, if the library exposes it."""
        return _checked(text)

    def files(self) -> dict[str, str | bytes]:
        """The definition, as files of a folder that `koktok.load` reads."""
        raise UsageError(
            f"`{self.spec}` cannot be saved in a folder: {self.library or self.name} has no definition in a file",
            hint=f"koktok report {typed(self.spec)}",
        )

    def tokenizer_json(self) -> dict[str, Any]:
        """A tokenizer.json that does the same, as values."""
        raise ArtifactError(f"expected a tokenizer with a tokenizer.json, got one of {self.library or self.name}")

    def gguf_vocab(self) -> GgufVocab:
        """The vocabulary for llama.cpp, where it has a tokenizer of this kind."""
        raise ArtifactError(
            f"no GGUF: expected a SentencePiece model or a tokenizer.json, got a tokenizer of {self.library or self.name}",
            hint="koktok export FOLDER --to hf, then koktok import that",
        )

    # --- The table of tokens ------------------------------------------------------------------------------------------

    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""
        return self.byte_table.written[i] or None

    @cached_property
    def specials(self) -> Mapping[str, int]:
        """Special tokens and the unknown one, by their spelling, which texts reach only if they are allowed."""
        return {self.tokens[i]: i for i in sorted(self.special_ids | self.unknown_ids)}

    @property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        return min(self.unknown_ids, default=None)

    @cached_property
    def vocab(self) -> LibraryVocab:  # type: ignore[override]
        """The table of its tokens; an error if ids are assigned while text is read."""
        if self.size is None:
            raise UsageError(
                f"`{self.spec}` has no vocabulary: its ids are assigned while text is read",
                hint=f"koktok report {typed(self.spec)}",
            )
        return LibraryVocab(self)

    @property
    def roles(self) -> Mapping[str, str]:  # type: ignore[override]
        """Special tokens by their role in transformers, recognized by their spelling."""
        return style_for("plain", [*self.specials]).roles

    def digest(self) -> str:
        return self._digest

    # --- What is measured ---------------------------------------------------------------------------------------------

    @cached_property
    def exact(self) -> int:
        """The number of `PROBES` that `decode(encode(x))` restores."""
        return sum(map(self._restores, PROBES))

    def _restores(self, text: str) -> bool:
        try:
            return self.decode(self.encode(text).ids) == text
        except InputError:  # the library refuses it
            return False

    @property
    def lossless(self) -> bool:  # type: ignore[override]
        """Whether all of `PROBES` are restored: measured, not proven."""
        return self.exact == len(PROBES)

    @cached_property
    def reachable(self) -> tuple[str, ...]:
        """Special tokens that any text reaches: the library has them among the pieces."""
        reached = []
        for token, i in self.specials.items():
            with suppress(InputError):  # a text that the library refuses reaches nothing
                if i != self.unknown and i in self.read(f"가{token}나")[0]:
                    reached.append(token)
        return tuple(reached)

    # --- Text to ids and back -----------------------------------------------------------------------------------------

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: Allowed = (),
        superwords: bool = True,
    ) -> Encoding:
        _checked(text)
        if not superwords:
            raise UsageError("`superwords=False` is for koktok's own tokenizers")
        if add_special_tokens and not self.has_template:
            raise UsageError(
                f"a tokenizer of {self.library or self.name} has no template of special tokens",
                hint="add them yourself",
            )
        if add_special_tokens or (allowed_special == "all" and self.cuts_specials):
            return self._encoding(*self.read(text, specials=True, template=add_special_tokens))
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
        from koktok.runtimes.batch import LibraryEncoder

        return LibraryEncoder(self)

    @property
    def bulk_decoder(self) -> LibraryDecoder:
        """The library, text by text."""
        from koktok.runtimes.batch import LibraryDecoder

        return LibraryDecoder(self)

    @property
    def decodes(self) -> bool:  # type: ignore[override]
        """Whether the adapter has a decoder."""
        return type(self).text_of is not LibraryTokenizer.text_of

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        checked = checked_ids(ids, self.vocab.size)
        unused = next((i for i in checked if not self.tokens[i]), None)
        if unused is not None:
            raise InputError(f"the id {unused} has no token")
        return self.text_of(checked, skip_special_tokens=skip_special_tokens)

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, force: bool = False) -> Path:
        """Write a folder that `koktok.load` reads: the unchanged definition, and koktok.toml."""
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

    def export(self, to: str, out: str | Path, *, force: bool = False, **options: Any) -> list[str]:
        return runtime_of(to).export(self, out, force=force, **options)


class _NoStageError(UsageError, AttributeError):
    """An attribute that imported tokenizers do not have, also for `hasattr`."""


def digest_of(files: Mapping[str, str | bytes]) -> str:
    """SHA-256 over names and contents, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(files):
        content = files[name]
        data = content.encode() if isinstance(content, str) else content
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _checked(text: str) -> str:
    """The text, if UTF-8 can encode it; libraries fail on others in different ways."""
    try:
        checked_text(text).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"expected text that UTF-8 can hold, got a lone surrogate U+{ord(text[error.start]):04X} at character "
            f"{error.start}",
            hint='text.encode("utf-8", "replace").decode("utf-8")',
        ) from error
    return text
