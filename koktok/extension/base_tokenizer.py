"""The base: the tokenizer that is extended, of any library.

`koktok.runtimes` reads tokenizer.json, SentencePiece models, tiktoken ranks and tekken files; a base has a kind (bytes, characters
with byte fallback, or Unigram), strings by id, the order of merges, and the used and reserved ids. Tokenizers for which the laws
of an extension cannot hold are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from koktok.errors import ArtifactError, asking
from koktok.files import read_bounded, read_utf8, read_whole, standing
from koktok.hangul import SYLLABLE
from koktok.model.vocab import BYTE_CHARS, BYTE_OF, BYTE_PIECES, SPACE_MARK
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.folder import TOKENIZER, is_imported, is_koktoks
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.huggingface.config_files import SAVED, files_beside, named_ids
from koktok.runtimes.huggingface.runtime import bare_config
from koktok.runtimes.sentencepiece.adapter import with_tokens
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.runtimes.tiktoken.ranks import Ranks
from koktok.tokenizer.open import load
from koktok.tokenizer.ready import folder_of

BaseModelKind = Literal["bytes", "chars", "unigram"]

HANGUL_BYTES = re.compile(
    rb"[\xEB\xEC]|\xEA[\xB0-\xBF]|\xED[\x80-\x9E]|\xE3(?:\x85[\x80-\xBF]|\x84[\xB1-\xBF]|\x86[\x80-\x8E])"
)
"""Byte sequences that only Hangul has in UTF-8: syllables (U+AC00 to U+D7A3) are EA B0 80 to ED 9E A3, and EB and EC begin
nothing else, nor do EA with B0 to BF and ED with 80 to 9E after it; compatibility letters (U+3131 to U+318E) are E3 84 B1 to
E3 86 8E. A byte that begins a character never continues one, so no text without Hangul holds any of these."""

HANGUL = re.compile(f"[{SYLLABLE}\u3131-\u318e]+")
"""Syllables and compatibility letters."""

_FREE = re.compile(
    r"<?\|?\[?(?:reserved|unused|extra|special|dummy)(?:_?(?:special)?_?(?:token|id))?[_-]?\d+\|?\]?>?", re.I
)
"""Names of reserved ids: <|reserved_special_token_7|>, <unused7>, [unused7], <SPECIAL_7>, <|reserved_200013|>."""


def holds_hangul(piece: bytes) -> bool:
    r"""Whether a piece holds a byte sequence that only Hangul has.

    Examples
    --------
    >>> [holds_hangul(piece) for piece in ("가".encode(), b"\xea\xb0", b"\xb0\x80", "漢".encode(), "ㅋ".encode())]
    [True, True, False, False, True]
    """
    return HANGUL_BYTES.search(piece) is not None


@dataclass(frozen=True)
class Base:
    """A tokenizer that can be extended: its tokenizer.json, opened once, and the files of its folder."""

    name: str
    kind: BaseModelKind
    tokenizer: HuggingFace
    files: Mapping[str, bytes]
    ranks: Ranks | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def definition(self) -> dict[str, Any]:
        """The content of its tokenizer.json."""
        return self.tokenizer.content

    @property
    def runner(self) -> Any:
        """The definition in the library `tokenizers`; text that spells a special token stays text."""
        return self.tokenizer.strict

    @property
    def model(self) -> dict[str, Any]:
        """The model's node."""
        model: dict[str, Any] = self.definition["model"]
        return model

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece of the model to id."""
        rows = self.model["vocab"]
        return {row[0]: i for i, row in enumerate(rows)} if isinstance(rows, list) else dict(rows)

    @cached_property
    def added(self) -> dict[int, str]:
        """Added tokens by id."""
        return {int(row["id"]): str(row["content"]) for row in self.definition.get("added_tokens") or ()}

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of tokenizer_config.json, if there is one."""
        config = json.loads(self.files.get("tokenizer_config.json", b"{}"))
        return config if isinstance(config, dict) else {}

    @cached_property
    def size(self) -> int:
        """The first id after all used ones."""
        return max([*self.ids.values(), *self.added]) + 1

    @cached_property
    def tokens(self) -> list[str]:
        """The string of every id; '' for an unused one."""
        tokens = [""] * self.size
        for token, i in (*self.ids.items(), *((token, i) for i, token in self.added.items())):
            tokens[i] = token
        return tokens

    @cached_property
    def strings(self) -> list[bytes]:
        """The bytes of each id, spaces as in the model; b"" for special tokens, byte fallback and unused ids."""
        strings = [b""] * self.size
        hidden = set(self.added.values()) | (set() if self.kind == "bytes" else set(BYTE_PIECES))
        for token, i in self.ids.items():
            if token not in hidden:
                strings[i] = self.piece_bytes(token)
        return strings

    def piece_bytes(self, token: str) -> bytes:
        """The bytes that a token of the model spells."""
        if self.kind != "bytes":
            return token.encode()
        return bytes(BYTE_OF[char] for char in token) if all(char in BYTE_OF for char in token) else b""

    def encode_piece(self, piece: bytes) -> str:
        """The token of the model that spells these bytes."""
        return "".join(BYTE_CHARS[byte] for byte in piece) if self.kind == "bytes" else piece.decode()

    @cached_property
    def space(self) -> bytes:
        """A space in pieces: koktok's own vocabularies have real ones, those of SentencePiece ▁."""
        escaped = SPACE_MARK in str([self.definition.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")])
        return SPACE_MARK.encode() if self.kind != "bytes" and escaped else b" "

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """The model's merges in their order; none for a Unigram."""
        rows = self.model.get("merges") or ()
        return [tuple(row.split(" ", 1)) if isinstance(row, str) else (row[0], row[1]) for row in rows]  # type: ignore[misc]

    @cached_property
    def order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rank by id (-1 if no merge makes it), and pairs of ids that merge to Hangul, as `left << 32 | right`."""
        ranks, pairs = np.full(self.size, -1, np.int64), []
        ids, strings = self.ids, self.strings
        for rank, (left, right) in enumerate(self.merges):
            i = ids.get(left + right)
            if i is None or left not in ids or right not in ids:
                raise ArtifactError(
                    f"`{self.name}` has the merge {left!r} {right!r} without all three pieces", hint="fetch it again"
                )
            if ranks[i] < 0:
                ranks[i] = rank
            if holds_hangul(strings[i]):
                pairs.append(ids[left] << 32 | ids[right])
        return ranks, np.unique(np.array(pairs, np.int64))

    @cached_property
    def prefixes(self) -> bool:
        """Whether the base adds a space before a text."""
        (ids,) = self.encode(["가"])
        return b"".join(self.strings[i] for i in ids[:1]).startswith(self.space)

    @cached_property
    def unknown(self) -> int:
        """The id of the unknown token, or -1."""
        i = self.model.get("unk_id", self.ids.get(str(self.model.get("unk_token"))))
        return -1 if i is None else int(i)

    @property
    def lossless(self) -> bool:
        """Whether every character has tokens: bytes, if no piece."""
        return self.kind == "bytes" or bool(self.model.get("byte_fallback"))

    @cached_property
    def with_byte_fallback(self) -> Base:
        """The base with byte fallback, so that no character of a text is lost."""
        if self.lossless:
            return self
        lowest = min(row[1] for row in self.model["vocab"])
        rows = [*self.model["vocab"], *([piece, lowest] for piece in BYTE_PIECES if piece not in self.ids)]
        changed = {**self.model, "vocab": rows, "byte_fallback": True}
        return replace(self, tokenizer=opened({**self.definition, "model": changed}, beside=self.tokenizer.beside))

    @cached_property
    def free(self) -> list[int]:
        """Reserved ids, ascending, without those that have a role or that config.json names."""
        reserved = (i for i, token in enumerate(self.tokens) if token and _FREE.fullmatch(token))
        return sorted(i for i in reserved if i not in self.owned)

    @cached_property
    def owned(self) -> dict[int, str]:
        """The ids that have a role, with it, or that config.json names, with the key that does."""
        token_ids = {token: i for i, token in enumerate(self.tokens)}
        roles = {token_ids[token]: role for role, token in self.tokenizer.roles.items() if token in token_ids}
        return {**{i: key for key, i in named_ids(self.tokenizer.beside, self.name)}, **roles}

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids of each line, without special tokens."""
        return self.tokenizer.ids(lines)

    def encodings(self, lines: Sequence[str]) -> list[Any]:
        """The library's own result for each line, without special tokens."""
        with asking("tokenizers"):
            return list(self.runner.encode_batch(list(lines), add_special_tokens=False))


def opened(
    definition: dict[str, Any], text: str | None = None, beside: Mapping[str, bytes] | None = None
) -> HuggingFace:
    """A tokenizer.json, from its content, and its text if there is one, with the files beside it."""
    text = json.dumps(definition, ensure_ascii=False) if text is None else text
    return HuggingFace(text, beside, content=definition)


def open_base(reference: str, *, pattern: str | None = None, specials: Mapping[str, int] | None = None) -> Base:
    """Open a tokenizer to extend, or refuse it."""
    folder = folder_of(Path(reference))
    now = standing(folder)
    if is_koktoks(now) and not is_imported(now):
        base = read_whole(folder, TOKENIZER, lambda place: _trained(reference, place))
    else:
        tokenizer = load(reference, pattern=pattern, specials=specials)
        assert isinstance(tokenizer, LibraryTokenizer)
        base = base_of_library(reference, tokenizer)
        if isinstance(tokenizer, HuggingFace):
            base = _with_model(base, now if now.is_dir() else now.parent)
    _check(base)
    return base


def _trained(reference: str, folder: Path) -> Base:
    """The base of a folder that koktok trained."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise ArtifactError(f"expected a base with a tokenizer.json, got none in `{reference}`")
    text = read_utf8(file)
    return _with_model(base_of_library(reference, HuggingFace(text, files_beside(file), spec=reference)), folder)


def base_of_library(reference: str, tokenizer: LibraryTokenizer) -> Base:
    """The base of another library's tokenizer, as a tokenizer.json."""
    own = tokenizer
    if not isinstance(own, HuggingFace):
        own = opened(tokenizer.tokenizer_json())
    if "tokenizer_config.json" not in own.beside:  # nothing says roles but the spelling of the tokens
        own = opened(own.content, own.text, {**own.beside, "tokenizer_config.json": bare_config(tokenizer).encode()})
    files = {name: data.encode() if isinstance(data, str) else data for name, data in own.files().items()}
    files |= {
        name: data for name, data in tokenizer.files().items() if name == "tokenizer.model" and isinstance(data, bytes)
    }
    return Base(reference, _kind(reference, own.content), own, files, getattr(tokenizer, "ranks", None), [])


def _with_model(base: Base, folder: Path) -> Base:
    """The base with the SentencePiece model in its folder, if that has the same pieces with the same ids."""
    file = folder / "tokenizer.model"
    if base.ranks is not None or not file.is_file():
        return base
    with suppress(ArtifactError, ValueError):
        model = with_tokens(read_bounded(file), base.definition.get("added_tokens") or ())
        if model and [row.piece for row in ModelProto(model).pieces] == base.tokens:
            return replace(base, files={**base.files, file.name: model})
    return base


def base_of(name: str, files: Mapping[str, bytes], definition: dict[str, Any] | None = None) -> Base:
    """The base of the files of a folder that koktok extended or pruned."""
    beside = {name: data for name, data in files.items() if name in SAVED}
    text = None if definition else files["tokenizer.json"].decode()
    tokenizer = opened(definition or json.loads(text or ""), text, beside)
    return Base(name, _kind(name, tokenizer.content), tokenizer, files)


def _nodes(node: Any) -> list[dict[str, Any]]:
    """A node of a tokenizer.json and all nodes inside it."""
    if not isinstance(node, dict):
        return []
    inside = [*node.get("normalizers", ()), *node.get("pretokenizers", ()), *node.get("decoders", ())]
    return [node, *(more for part in inside for more in _nodes(part))]


def _kind(name: str, definition: Mapping[str, Any]) -> BaseModelKind:
    model = definition["model"]
    kind = model.get("type", "BPE" if "merges" in model else "WordPiece")  # older files have no type
    if kind == "Unigram":
        return "unigram"
    if kind != "BPE":
        raise ArtifactError(
            f"`{name}` is a {kind} model; expected byte-level BPE, BPE with byte fallback or Unigram",
            hint="koktok train --model wordpiece makes a new vocabulary",
        )
    if model.get("dropout") or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise ArtifactError(
            f"`{name}` has dropout, or marks the inside of words: the guarantees of an extension cannot be checked"
        )
    level = {node.get("type") for node in _nodes(definition.get("pre_tokenizer"))}
    level |= {node.get("type") for node in _nodes(definition.get("normalizer"))}
    if "ByteLevel" in level:
        return "bytes"
    if not model.get("byte_fallback"):
        raise ArtifactError(
            f"`{name}` is BPE without byte fallback: characters without a piece are lost, with an extension, too",
            hint="a base with byte fallback, or koktok train",
        )
    return "chars"


_TRIED = "대한민국의 학교에서는 책을 읽습니다"


def _check(base: Base) -> None:
    """Refuse a base that no extension can improve, and add notes for the user."""
    steps = {str(node.get("type")) for node in _nodes(base.definition.get("normalizer"))}
    normalizer = base.runner.normalizer
    normal = normalizer.normalize_str(_TRIED) if normalizer else _TRIED
    if not HANGUL.search(normal):
        raise ArtifactError(
            f"the normalizer of `{base.name}` ({', '.join(sorted(steps))}) splits syllables, so no piece of syllables can match",
            hint="a base that composes (NFC), or does not normalize",
        )
    changed = normalizer.normalize_str("Ａ가 ABC ①") if normalizer else "Ａ가 ABC ①"
    if "A" not in changed and "a" in changed:
        base.notes.append("the base lower-cases text; the extension is trained on lower-cased text")
    elif "①" not in changed:
        base.notes.append("the base folds compatibility characters (NFKC), also Hangul in half width or circles")
    if not base.encode([_TRIED])[0]:
        raise ArtifactError(f"`{base.name}` gives no tokens for Korean text")
    words = (
        base.runner.pre_tokenizer.pre_tokenize_str(normal)
        if base.runner.pre_tokenizer
        else [(normal, (0, len(normal)))]
    )
    if all(sum(map(len, HANGUL.findall(normal[a:b]))) < 2 for _, (a, b) in words):
        raise ArtifactError(
            f"the pattern of `{base.name}` cuts between any two syllables, so no piece can hold two",
            hint="no extension can change the pattern; use another base",
        )
    if not base.lossless:
        base.notes.append("the base has no byte fallback: a character without a piece is unknown, and lost in decoding")
