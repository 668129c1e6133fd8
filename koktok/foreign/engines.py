"""The libraries that run foreign tokenizers, behind one interface: text to ids and offsets, and back.

This file adds: whose ids they are. A foreign definition is run by the library that it was written for, from the bytes
that were given, and not by a rebuilding of ours: then its ids are that library's by construction. All three read data
only; nothing of a file is ever executed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol

from koktok.errors import ArtifactError, InputError, KoktokError, UsageError
from koktok.foreign.trial import prove
from koktok.formats.tiktoken import Ranks, files
from koktok.vocab import BYTE_CHARS, BYTE_PIECES, check_sparse

__all__ = ["Engine", "HfEngine", "SentencePieceEngine", "TiktokenEngine", "asking", "parsed"]

Found = tuple[list[int], list[tuple[int, int]]]
"""Ids, and in parallel half-open code points of the text."""


class Engine(Protocol):
    """What an imported tokenizer needs of a library."""

    library: str
    """The name of the package that runs it."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id, as the library spells it; an id that it does not use has ''."""
        ...

    @property
    def specials(self) -> Mapping[str, int]:
        """Special tokens: what text reaches only when it is allowed to."""
        ...

    @property
    def fragments(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        ...

    @property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        ...

    def encode(self, text: str) -> Found:
        """Text to ids and offsets; what spells a special token is text."""
        ...

    def encode_all(self, text: str, *, template: bool = False) -> Found | None:
        """The same with special tokens found as the library finds them; None where it has no way of its own."""
        ...

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Ids to text, as the library does it."""
        ...

    def normalize(self, text: str) -> str:
        """The text as the library's model reads it, as far as it tells."""
        ...

    def files(self) -> dict[str, str | bytes]:
        """The definition, as files of a folder."""
        ...


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


def parsed(text: str, where: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """JSON, or an error of ours also where it is nested deeper than anybody nests.

    Parameters
    ----------
    text, where : str
    pairs : callable, optional
        Makes an object of its keys and values, in place of `dict`.

    Raises
    ------
    ArtifactError
        When it is no JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except ArtifactError:
        raise
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise ArtifactError(f"`{where}` is no JSON: {why}", hint="fetch it again; it may be cut short") from None


class HfEngine:
    """A tokenizer.json, run by `tokenizers`.

    Parameters
    ----------
    text : str
        The JSON; padding and truncation are switched off.
    beside : mapping of str to bytes
        Files that belong to it for other readers (tokenizer_config.json ...).
    where : str
        What errors call it.
    proven : bool
        It was tried before, see `koktok.foreign.trial`.

    Raises
    ------
    ArtifactError
        When the library cannot read it.
    """

    library = "tokenizers"

    def __init__(
        self,
        text: str,
        beside: Mapping[str, bytes] | None = None,
        *,
        where: str = "tokenizer.json",
        proven: bool = False,
    ) -> None:
        self.text = text
        self.beside = dict(beside or {})
        if not proven:
            prove(self.library, text, where=where, content=parsed(text, where))
        self._strict = self._load()
        self._strict.encode_special_tokens = True

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(HfEngine, proven=True), (self.text, self.beside)

    def _load(self) -> Any:
        import tokenizers

        try:
            loaded = tokenizers.Tokenizer.from_str(self.text)
        except BaseException as error:
            # Rust panics reach Python as an exception that is no `Exception`.
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise ArtifactError(
                f"the tokenizers library cannot read this tokenizer.json: {error}",
                hint="pip install -U tokenizers, if it was written by a newer one",
            ) from None
        loaded.no_padding()
        loaded.no_truncation()
        return loaded

    @cached_property
    def _open(self) -> Any:
        """A second one that finds special tokens in text: the switch belongs to the object, and threads share it."""
        return self._load()

    @cached_property
    def content(self) -> dict[str, Any]:
        """The JSON."""
        content: dict[str, Any] = json.loads(self.text)
        return content

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id."""
        rows = self._strict.get_vocab(with_added_tokens=True)
        check_sparse(rows.values(), "tokenizer.json")
        found = [""] * (max(rows.values(), default=-1) + 1)
        for token, i in rows.items():
            found[i] = token
        return tuple(found)

    @cached_property
    def specials(self) -> dict[str, int]:
        """Added tokens that are marked as special."""
        rows = self._strict.get_added_tokens_decoder()
        return {token.content: i for i, token in sorted(rows.items()) if token.special}

    def id_of(self, token: str) -> int | None:
        """The id that the library gives to a piece or an added token."""
        found = self._strict.token_to_id(token)
        return int(found) if found is not None else None

    @cached_property
    def byte_level(self) -> bool:
        """Whether pieces are spelled in bytes."""
        return "ByteLevel" in {node.get("type") for node in _nodes(self.content.get("pre_tokenizer"))} | {
            node.get("type") for node in _nodes(self.content.get("normalizer"))
        }

    @cached_property
    def fragments(self) -> frozenset[int]:
        """Bytes of byte fallback, or of a byte-level alphabet."""
        wanted = set(BYTE_CHARS[0x80:]) if self.byte_level else set(BYTE_PIECES)
        return frozenset(i for i, token in enumerate(self.tokens) if token in wanted)

    @cached_property
    def unknown(self) -> int | None:
        """The id of the model's unknown token."""
        model = self.content.get("model", {})
        if isinstance(model.get("unk_id"), int):
            return int(model["unk_id"])
        found = self._strict.token_to_id(model["unk_token"]) if isinstance(model.get("unk_token"), str) else None
        return int(found) if found is not None else None

    def encode(self, text: str) -> Found:
        """Text to ids and offsets."""
        with asking(self.library):
            found = self._strict.encode(text, add_special_tokens=False)
        return list(found.ids), list(found.offsets)

    def encode_all(self, text: str, *, template: bool = False) -> Found | None:
        """With special tokens; `template` adds those around the text."""
        with asking(self.library):
            found = self._open.encode(text, add_special_tokens=template)
        return list(found.ids), list(found.offsets)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Ids to text."""
        with asking(self.library):
            return str(self._strict.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def normalize(self, text: str) -> str:
        """What its normalizer makes of the text."""
        with asking(self.library):
            return str(self._strict.normalizer.normalize_str(text)) if self._strict.normalizer else text

    def files(self) -> dict[str, str | bytes]:
        """tokenizer.json as it came, and what stood beside it."""
        return {"tokenizer.json": self.text, **self.beside}


class SentencePieceEngine:
    """A SentencePiece model, run by `sentencepiece`.

    Parameters
    ----------
    data : bytes
        The serialized ModelProto.
    where, proven
        As in `HfEngine`.

    Raises
    ------
    ArtifactError
        When it is no model, cut short, or the library refuses it.
    """

    library = "sentencepiece"

    def __init__(self, data: bytes, *, where: str = "tokenizer.model", proven: bool = False) -> None:
        import sentencepiece
        from google.protobuf.message import DecodeError
        from sentencepiece import sentencepiece_model_pb2

        self.data = data
        hint = "a SentencePiece model is the .model file of spm_train"
        try:
            self.proto = sentencepiece_model_pb2.ModelProto.FromString(data)
        except DecodeError as error:
            raise ArtifactError(f"this is no SentencePiece model: {error}", hint=hint) from error
        if not self.proto.pieces or not (
            self.proto.HasField("trainer_spec") and self.proto.HasField("normalizer_spec")
        ):
            raise ArtifactError("this is no SentencePiece model, or it is cut short", hint=hint)
        if not proven:
            prove(self.library, data, where=where)
        sentencepiece.set_min_log_level(2)
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=data)
        except (RuntimeError, OSError, ValueError) as error:
            raise ArtifactError(f"sentencepiece refuses this model: {str(error).strip()}", hint=hint) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(SentencePieceEngine, proven=True), (self.data,)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id, spaces as ▁ where the model has them so."""
        return tuple(row.piece for row in self.proto.pieces)

    @cached_property
    def specials(self) -> dict[str, int]:
        """Control symbols and the unknown token."""
        kinds = type(self.proto).SentencePiece
        wanted = (kinds.CONTROL, kinds.UNKNOWN)
        return {row.piece: i for i, row in enumerate(self.proto.pieces) if row.type in wanted}

    @cached_property
    def fragments(self) -> frozenset[int]:
        """Byte pieces."""
        kind = type(self.proto).SentencePiece.BYTE
        return frozenset(i for i, row in enumerate(self.proto.pieces) if row.type == kind)

    @property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        return int(self._processor.unk_id())

    def encode(self, text: str) -> Found:
        """Text to ids and offsets."""
        with asking(self.library):
            found = self._processor.encode(text, return_type="offset_mapping")
        return list(found["ids"]), [(int(a), int(b)) for a, b in found["offsets"]]

    def encode_all(self, text: str, *, template: bool = False) -> Found | None:  # noqa: ARG002
        """SentencePiece never finds control symbols in text."""
        if template:
            raise UsageError("a SentencePiece model has no template of special tokens", hint="add them yourself")
        return None

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Ids to text; the library is silent about control symbols, so they are put between its parts here."""
        controls = {i: token for token, i in self.specials.items() if i != self.unknown}
        if skip_special_tokens or not any(i in controls for i in ids):
            unknown = {self.unknown} if skip_special_tokens else set()
            return str(self._processor.decode([i for i in ids if i not in unknown]))
        parts: list[str] = []
        run: list[int] = []
        for i in (*ids, -1):
            if i != -1 and i not in controls:
                run.append(i)
                continue
            if run:
                parts.append(str(self._processor.decode(run)))
                run = []
            parts.append(controls.get(i, ""))
        return "".join(parts)

    def normalize(self, text: str) -> str:
        """What its normalizer makes of the text, spaces as spaces."""
        normal = str(self._processor.normalize(text))
        spec = self.proto.normalizer_spec
        if not spec.escape_whitespaces:
            return normal
        return normal.replace("▁", " ").removeprefix(" " if spec.add_dummy_prefix else "")

    def files(self) -> dict[str, str | bytes]:
        """The model as it came."""
        return {"tokenizer.model": self.data}


class TiktokenEngine:
    """Ranks, a pattern and special tokens, run by `tiktoken`.

    Parameters
    ----------
    ranks : Ranks
    where, proven
        As in `HfEngine`.

    Raises
    ------
    MissingExtraError
        When tiktoken is not installed.
    """

    library = "tiktoken"

    def __init__(self, ranks: Ranks, *, where: str = "", proven: bool = False) -> None:
        self.ranks = ranks
        if not proven:
            prove(self.library, ranks.pattern, dict(ranks.ranks), dict(ranks.specials), where=where or ranks.name)
        self._encoding = ranks.encoding()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(TiktokenEngine, proven=True), (self.ranks,)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id, bytes spelled as GPT-2 spells them."""
        found = [""] * (self._encoding.max_token_value + 1)
        for piece, i in self.ranks.ranks.items():
            found[i] = "".join(BYTE_CHARS[byte] for byte in piece)
        for token, i in self.ranks.specials.items():
            found[i] = token
        return tuple(found)

    @property
    def specials(self) -> Mapping[str, int]:
        """As they were given."""
        return self.ranks.specials

    @cached_property
    def fragments(self) -> frozenset[int]:
        """The bytes from 0x80 on."""
        return frozenset(self.ranks.ranks[bytes([byte])] for byte in range(0x80, 0x100))

    unknown: int | None = None

    def encode(self, text: str) -> Found:
        """Text to ids; the bytes of one character share its offsets, as in `koktok.tokenizer.bpe_model`."""
        with asking(self.library):
            ids = self._encoding.encode_ordinary(text)
        return ids, self._offsets(text, ids, ())

    def encode_all(self, text: str, *, template: bool = False) -> Found | None:
        """With special tokens."""
        if template:
            raise UsageError("a tiktoken encoding has no template of special tokens", hint="add them yourself")
        with asking(self.library):
            ids = self._encoding.encode(text, allowed_special="all")
        return ids, self._offsets(text, ids, self.ranks.specials.values())

    def _offsets(self, text: str, ids: Sequence[int], specials: Collection[int]) -> list[tuple[int, int]]:
        owner = [i for i, char in enumerate(text) for _ in range(len(char.encode()))]
        spans, start = [], 0
        for i in ids:
            end = start + len(self.tokens[i].encode() if i in specials else self.tokens[i])
            if end > len(owner):
                break
            spans.append((owner[start], owner[end - 1] + 1))
            start = end
        if start != len(owner) or len(spans) != len(ids):
            raise InputError(
                f"the pattern of `{self.ranks.name}` leaves a part of this text out, and tiktoken with it",
                hint="koktok import RANKS --pattern with a regular expression that matches every character",
            )
        return spans

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Ids to text."""
        specials = set(self.ranks.specials.values()) if skip_special_tokens else set()
        return self._encoding.decode([i for i in ids if i not in specials])

    def normalize(self, text: str) -> str:
        """There is no normalizer."""
        return text

    def files(self) -> dict[str, str | bytes]:
        """Ranks and the rest, as `koktok.formats.tiktoken` writes them."""
        return dict(files(self.ranks))


def _nodes(node: Any) -> list[dict[str, Any]]:
    """A node of a tokenizer.json and all that it is made of."""
    if not isinstance(node, dict):
        return []
    inside = [*node.get("normalizers", ()), *node.get("pretokenizers", ()), *node.get("decoders", ())]
    return [node, *(more for part in inside for more in _nodes(part))]
