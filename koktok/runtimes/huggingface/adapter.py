"""`hf:`, by the tokenizers library."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import ArtifactError, UsageError, asking
from koktok.files import read_utf8
from koktok.model.note import Note
from koktok.model.tokens import ByteTable, Spans
from koktok.model.vocab import BYTE_OF, SPACE_MARK
from koktok.runtimes import gguf
from koktok.runtimes.huggingface.config_files import SAVED, json_of, roles_of
from koktok.runtimes.huggingface.tokenizer_json import check_sparse, checked_json, in_version_1, parsed
from koktok.runtimes.library import IdsAndSpans, LibraryTokenizer
from koktok.text.patterns import LLAMA_CPP, PUBLISHED, STEPS


def tokenizers_library() -> Any:
    """The library `tokenizers` in a version that loads, saves and has offsets, which 1.0 has not yet."""
    import tokenizers

    if not hasattr(tokenizers.Tokenizer, "from_str"):
        raise UsageError(
            f"expected tokenizers 0.21 to 0.x, got {tokenizers.__version__}, which has no `Tokenizer.from_str`",
            hint="pip install 'tokenizers<1'",
        )
    return tokenizers


BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


_IN_STEPS = {steps: PUBLISHED[name] for name, steps in STEPS.items()}
"""Patterns in steps, by their steps."""


class HuggingFace(LibraryTokenizer):
    """A tokenizer.json, with the tokenizer_config.json and the chat template beside it."""

    library: ClassVar[str] = "tokenizers"
    cuts_specials = has_template = reads_specials = True

    def __init__(
        self,
        text: str,
        beside: Mapping[str, bytes] | None = None,
        *,
        spec: str = "tokenizer.json",
        name: str = "tokenizer",
        notes: Sequence[Note] = (),
        content: Mapping[str, Any] | None = None,
    ) -> None:
        self.text = text
        self.beside = dict(beside or {})
        form = parsed(text, spec) if content is None else content
        model = form.get("model") if isinstance(form, dict) else None
        if not isinstance(model, dict):
            raise ArtifactError(f"`{spec}` is not a tokenizer.json: it has no model")
        if form.get("version") == "2.0":
            form = in_version_1(form)
            self.text = text = json.dumps(form, ensure_ascii=False)
        self._spec, self.content = spec, dict(form)
        self.strict = self._load()
        self.strict.encode_special_tokens = True
        ids: dict[str, int] = self.strict.get_vocab(with_added_tokens=True)
        check_sparse(ids.values(), spec)
        pieces = [""] * (max(ids.values(), default=-1) + 1)
        for piece, i in ids.items():
            pieces[i] = piece
        self._pieces = pieces
        unknown = model.get("unk_token") or model.get("unk_id")
        at = ids.get(unknown) if isinstance(unknown, str) else unknown
        unknown_ids = {at} if isinstance(at, int) and at < len(pieces) else set()
        self._falls_back = bool(model.get("byte_fallback")) or "ByteFallback" in _types(form.get("decoder"))
        byte_ids = {i for i, piece in enumerate(pieces) if BYTE.fullmatch(piece)} if self._falls_back else set()
        unknown_ids -= byte_ids  # the format requires some unknown id, and a byte piece may have it
        self._special = {
            token.content: i for i, token in sorted(self.strict.get_added_tokens_decoder().items()) if token.special
        }
        super().__init__(
            spec,
            name,
            size=len(pieces),
            digest=hashlib.sha256(text.encode()).hexdigest()[:16],
            libraries={"tokenizers": version("tokenizers")},
            notes=notes,
            unknown_ids=unknown_ids,
            byte_ids=byte_ids,
            special_ids=set(self._special.values()) - unknown_ids,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        again = partial(HuggingFace, spec=self.spec, name=self.name, notes=self.notes)
        return again, (self.text, self.beside), {"signature": self.signature}

    def _load(self) -> Any:
        tokenizers = tokenizers_library()
        with asking(self.library, self._spec, "pip install -U tokenizers, if it was written by a newer one"):
            loaded = tokenizers.Tokenizer.from_str(self.text)
        loaded.no_padding()
        loaded.no_truncation()
        return loaded

    @cached_property
    def _open(self) -> Any:
        """A second object that reads special tokens in text: the switch belongs to the object, and threads share it."""
        return self._load()

    @cached_property
    def byte_table(self) -> ByteTable:
        form = self.content
        model, steps = form["model"], _types(form.get("decoder"))
        bare = model.get("continuing_subword_prefix") or ""
        suffix = model.get("end_of_word_suffix") or ""
        bytes_of = BYTE_OF if "ByteLevel" in {*steps, *_types(form.get("pre_tokenizer"))} else None
        metaspace = SPACE_MARK in str([form.get(name) for name in ("decoder", "normalizer", "pre_tokenizer")])
        added = {token["id"]: token["content"] for token in form.get("added_tokens") or []}
        silent = {*self._special.values(), *self.unknown_ids}
        table: list[bytes] = []
        for i, piece in enumerate(self._pieces):
            if i in silent:
                table.append(b"")
            elif i in added:
                table.append(added[i].encode())
            elif i in self.byte_ids:
                table.append(bytes([int(piece[3:5], 16)]))
            elif bytes_of is not None and all(c in bytes_of for c in piece):
                table.append(bytes(bytes_of[c] for c in piece))
            else:
                text = piece.removeprefix(bare) if bare else piece
                text = text.removesuffix(suffix) if suffix else text
                table.append((text.replace(SPACE_MARK, " ") if metaspace else text).encode())
        return ByteTable(table)

    @cached_property
    def spaced(self) -> bool:  # type: ignore[override]
        return "WordPiece" not in {*_types(self.content.get("decoder")), self.content["model"].get("type")}

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        with asking(self.library):
            rows = (self._open if specials else self.strict).encode_batch_fast(list(lines), add_special_tokens=False)
            return [row.ids for row in rows]

    def read(self, text: str, *, specials: bool = False, template: bool = False) -> IdsAndSpans:
        with asking(self.library):
            encoding = (self._open if specials else self.strict).encode(text, add_special_tokens=template)
        return list(encoding.ids), list(encoding.offsets)

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        with asking(self.library):
            return str(self.strict.decode([int(i) for i in ids], skip_special_tokens=skip_special_tokens))

    def offsets(self, lines: Sequence[str]) -> list[Spans]:
        with asking(self.library):
            return [row.offsets for row in self.strict.encode_batch(list(lines), add_special_tokens=False)]

    def normalize(self, text: str) -> str:
        with asking(self.library):
            return str(self.strict.normalizer.normalize_str(text)) if self.strict.normalizer else text

    @property
    def tokens(self) -> Sequence[str]:
        return self._pieces

    @cached_property
    def specials(self) -> Mapping[str, int]:
        """Added tokens that are marked as special."""
        return self._special

    @cached_property
    def roles(self) -> Mapping[str, str]:  # type: ignore[override]
        """Special tokens by their role, as tokenizer_config.json says; without one, recognized by their spelling."""
        config = json_of(self.beside, "tokenizer_config.json", self._spec)
        return roles_of(config) if config else super().roles

    def files(self) -> dict[str, str | bytes]:
        """tokenizer.json, unchanged, and the files beside it."""
        return {"tokenizer.json": self.text, **{name: self.beside[name] for name in SAVED if name in self.beside}}

    def tokenizer_json(self) -> dict[str, Any]:
        """Its content."""
        return dict(self.content)

    def gguf_vocab(self) -> gguf.GgufVocab:
        """The vocabulary for llama.cpp, which runs byte-level BPE with patterns that it knows by name."""
        model, node = self.content["model"], self.content.get("pre_tokenizer") or {}
        parts = node.get("pretokenizers", [node])
        kinds = [part.get("type") for part in parts]
        steps = tuple(part.get("pattern", {}).get("Regex", "") for part in parts[:-1] if part.get("type") == "Split")
        regex = {steps[:1]: "".join(steps), (): gguf.PATTERNS_OF_BYTE_LEVEL, **_IN_STEPS}.get(steps)
        if model.get("type") != "BPE" or kinds != [*["Split"] * len(steps), "ByteLevel"] or regex is None:
            raise ArtifactError(
                "no GGUF: expected a tokenizer.json of byte-level BPE with one pattern, got "
                f"{model.get('type')} with {', '.join(map(str, kinds))}",
                hint="koktok import sp:FOLDER/tokenizer.model --out NEW, if it was made from one",
            )
        if parts[-1].get("add_prefix_space", True):
            raise ArtifactError("no GGUF: llama.cpp adds no space before a text, and this tokenizer does")
        pre = LLAMA_CPP.get((regex, bool(model.get("ignore_merges"))))
        if pre is None:
            raise ArtifactError(
                f"no GGUF: llama.cpp has no pattern `{regex[:60]}…` by name",
                hint=f"it has those of {', '.join(sorted(set(LLAMA_CPP.values())))}",
            )
        added = {token["id"]: bool(token["special"]) for token in self.content.get("added_tokens", ())}
        kind_of = {True: gguf.CONTROL, False: gguf.USER_DEFINED}
        roles = {role.removesuffix("_token"): self.specials[name] for role, name in self.roles.items()}
        # Special tokens around a text of one character are those around every text; llama.cpp has one before and one after.
        bare, whole = (self.encode("a", add_special_tokens=on).ids for on in (False, True))
        at = next((i for i in range(len(whole)) if whole[i : i + len(bare)] == bare), 0)
        around = {"bos": whole[:at], "eos": whole[at + len(bare) :]}
        roles |= {role: ids[0] for role, ids in around.items() if len(ids) == 1}
        return gguf.GgufVocab(
            model="gpt2",
            pre=pre,
            tokens=tuple(token or f"[PAD{i}]" for i, token in enumerate(self.tokens)),
            scores=(),
            types=tuple(
                kind_of[added[i]] if i in added else gguf.NORMAL if token else gguf.UNUSED
                for i, token in enumerate(self.tokens)
            ),
            roles=roles,
            merges=tuple(pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]),
            add_bos=len(around["bos"]) == 1,
            add_eos=len(around["eos"]) == 1,
        )


def _types(part: Any) -> Collection[str]:
    """The `type` of every step in a part of a tokenizer.json."""
    if isinstance(part, dict):
        own = {part["type"]} if isinstance(part.get("type"), str) else set()
        return own.union(*map(_types, part.values()))
    return set().union(*map(_types, part)) if isinstance(part, list) else set()


def open_hf(spec: str, path: Path) -> HuggingFace:
    """A tokenizer.json alone, checked."""
    name = path.stem if path.stem not in ("tokenizer", "model") else path.resolve().parent.name
    text = read_utf8(path)
    content = checked_json(text, str(path))
    opened = HuggingFace(text, spec=spec, name=name, content=content)
    for token in content.get("added_tokens") or ():  # the library may assign other ids
        expected, got = token["id"], opened.strict.token_to_id(token["content"])
        if got != expected:
            raise ArtifactError(
                f"`{path}` gives {token['content']!r} the id {expected}, and the tokenizers library {got}",
                hint="ids of added tokens follow the vocabulary without a gap",
            )
    return opened
