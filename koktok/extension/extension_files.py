"""The ids of new pieces, and the files of an extended tokenizer.

`append` assigns ids after all used ones; `fill` uses reserved ids of the base, so that the model's matrices keep their shape.
tokenizer.json gets the new pieces and all their splits as merges after all old ones (as in the Llama-3 converter); a
SentencePiece model gets scores below all old ones; tiktoken gets ranks, which are ids. extension.json lists the new pieces and
the replaced entries, so that the base can be restored from the folder (`restored`) and compared with its digest.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from koktok.errors import ArtifactError, UsageError
from koktok.extension.base_tokenizer import Base, holds_hangul
from koktok.extension.learn import Method, Piece, PieceList, splits
from koktok.files import Product, checked, read_bounded, read_utf8
from koktok.model.vocab import SPACE_MARK, whole_text
from koktok.runtimes.sentencepiece.message import NORMAL, UNUSED, ModelProto
from koktok.runtimes.tiktoken.ranks import Ranks
from koktok.runtimes.tiktoken.ranks import files as files_of_ranks

EXTENSION: Final = "extension.json"
"""The file by which a folder is recognized as an extension."""

FORMAT: Final = 1

_MOST: Final = 1 << 30

FOLDER: Final = Product(
    "extension.sha256", "extension", frozenset({EXTENSION, "tokenizer.json", "tokenizer_config.json", "README.md"})
)
"""The folder of an extension."""


class Record(BaseModel, extra="allow"):
    """A JSON file of a folder."""

    def to_json(self) -> bytes:
        """The file, with the fields that were set, in their order."""
        content = self.model_dump(exclude_unset=True)
        return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


class BaseRecord(BaseModel, extra="allow"):
    """The base in extension.json."""

    name: str
    kind: str = ""
    size: PositiveInt
    sha256: str = Field(min_length=1)
    roles: dict[str, NonNegativeInt] = {}
    rows: NonNegativeInt | None = None
    hangul: list[NonNegativeInt] = []


class PieceRecord(BaseModel, extra="allow"):
    """A new piece in extension.json: its text, the old ids of this text, and their lengths in characters."""

    id: NonNegativeInt
    token: str
    text: str | None = None
    base: list[NonNegativeInt] = Field(min_length=1)
    lengths: list[PositiveFloat]
    merge: list[str] | None = None
    saved: int = 0


class UndoRecord(BaseModel, extra="allow"):
    """Replaced entries, to restore the base."""

    added_tokens: list[dict[str, Any]] = []
    vocab: dict[str, int] = {}
    pinned: list[str] = []

    @property
    def tokens(self) -> set[str]:
        """The replaced tokens."""
        return {*self.vocab, *(str(row["content"]) for row in self.added_tokens)}


class ExtensionRecord(Record):
    """extension.json."""

    format: int = FORMAT
    koktok: str = ""
    base: BaseRecord
    mode: Literal["append", "fill"]
    size: PositiveInt
    holes: NonNegativeInt = 0
    undo: UndoRecord = UndoRecord()
    nu: float | int = 0
    policy: str = ""
    segmenter: str = ""
    blocklist: str = ""
    min_count: int | None = None
    counts: str = ""
    pad_to: PositiveInt = 1
    init: Method = "mean"
    keep: float | None = None
    fill: str | None = None
    frontier: list[dict[str, Any]] = []
    pieces: list[PieceRecord]

    @model_validator(mode="after")
    def _fits(self) -> ExtensionRecord:
        """The ids determine the size of the matrices, and must follow the rules of `extended`."""
        ids, before = [piece.id for piece in self.pieces], self.base.size
        if self.mode == "append" and ids != list(range(before, before + len(ids))):
            raise ValueError(f"expected new ids from {before:,} on without a gap, got others")
        if ids != sorted(set(ids)) or self.size != max([before - 1, *ids]) + 1 or self.size > before + len(ids):
            raise ValueError(f"expected ascending ids that fill the size, got {ids[:4]} and {self.size:,}")
        if any(i >= before for i in (*self.base.hangul, *(i for piece in self.pieces for i in piece.base))):
            raise ValueError(f"expected ids of the base below {before:,}, got a larger one")
        if odd := [piece.token for piece in self.pieces if len(piece.base) != len(piece.lengths)]:
            raise ValueError(f"expected a length for each old id of {odd[0]!r}, got another number of them")
        return self


class _Format(BaseModel):
    """The format, which is checked before the rest."""

    format: int


_BONUS: Final = 2.0**-6
"""The score of a new piece of a Unigram above the sum of the old pieces of its text, for each token that it saves."""


@dataclass(frozen=True)
class Extension:
    """A base with new pieces."""

    base: Base
    pieces: tuple[Piece, ...]
    ids: tuple[int, ...]
    filled: Mapping[int, str] = field(default_factory=dict)
    log: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The first id after all used ones."""
        return max(self.base.size, *(i + 1 for i in self.ids)) if self.ids else self.base.size

    @cached_property
    def record(self) -> ExtensionRecord:
        """The content of extension.json."""
        base = self.base
        rows = base.definition.get("added_tokens") or []
        filled = set(self.filled.values())
        hangul = [i for i, string in enumerate(base.strings) if holds_hangul(string)]
        return ExtensionRecord(
            format=FORMAT,
            koktok=version("koktok"),
            base=BaseRecord(**base_record(base).model_dump(exclude_unset=True), rows=len(base.ids), hangul=hangul),
            mode="fill" if self.filled else "append",
            size=self.size,
            holes=self.holes,
            undo=UndoRecord(
                added_tokens=[row for row in rows if int(row["id"]) in self.filled],
                vocab={token: i for i, token in self.filled.items() if base.ids.get(token) == i},
                pinned=[t for t in base.added.values() if t not in base.ids and t not in filled],
            ),
            **self.log,
            pieces=[
                PieceRecord(
                    id=i,
                    token=base.encode_piece(piece.string),
                    text=_text_of(piece.string),
                    base=list(piece.ids),
                    lengths=[_length(base, i) for i in piece.ids],
                    merge=[base.encode_piece(part) for part in piece.pair] if piece.pair else None,
                    saved=piece.count,
                )
                for piece, i in zip(self.pieces, self.ids, strict=True)
            ],
        )

    @property
    def holes(self) -> int:
        """Number of ids below `size` without a token."""
        taken = {i for i, token in enumerate(self.base.tokens) if token} | set(self.ids)
        return self.size - len(taken)


def slots_of(base: Base, fill: str) -> list[int]:
    """The ids that an extension may use, ascending."""
    if fill in ("reserved", "unused"):
        if not base.free:
            raise UsageError(
                f"`{base.name}` has no reserved ids with a known name",
                hint="--fill FILE, or no --fill to append",
            )
        return base.free
    lines = read_utf8(Path(fill), "a list of slots", "--fill reserved | unused | FILE").splitlines()
    by_name = {token: i for i, token in enumerate(base.tokens) if token}
    slots = set()
    for line in filter(None, map(str.strip, lines)):
        i = by_name.get(line, int(line) if line.isascii() and line.isdecimal() else -1)
        if not 0 <= i < base.size:
            raise UsageError(
                f"`{line}` of `{fill}` is not a token of `{base.name}`, nor an id of one",
                hint="a token or an id a line",
            )
        slots.add(i)
    return sorted(slots)


def extended(
    base: Base, learnt: PieceList, size: int, *, fill: str | None = None, log: Mapping[str, Any] | None = None
) -> Extension:
    """The first `size` pieces with their ids."""
    pieces = learnt.pieces[:size]
    if fill is None:
        ids = tuple(range(base.size, base.size + len(pieces)))
        _check_free(base, ids, f"add the token to {base.name}/tokenizer_config.json")
        return Extension(base, pieces, ids, log=log or {})
    slots = slots_of(base, fill)
    if len(slots) < len(pieces):
        raise UsageError(
            f"expected {len(pieces):,} reserved ids for new pieces, got {len(slots):,} in `{base.name}`",
            hint=f"--add {len(slots)}, or no --fill to append",
        )
    ids = tuple(slots[: len(pieces)])
    _check_free(base, ids, "--fill FILE without it")
    if base.ranks is not None and ids[0] < max(base.ranks.ranks.values()):
        raise ArtifactError(
            "reserved ids below old ranks: in tiktoken an id is a rank, so these pieces would be merged before old ones",
            hint="no --fill, to append",
        )
    return Extension(base, pieces, ids, {i: base.tokens[i] for i in ids}, log or {})


def _check_free(base: Base, ids: Collection[int], hint: str) -> None:
    """Refuse ids for new pieces that a role or the model's configuration has."""
    if (owned := min(base.owned.keys() & ids, default=-1)) >= 0:
        raise UsageError(
            f"the id {owned} is the {base.owned[owned]} of `{base.name}`, so no new piece can have it", hint=hint
        )


def merges_of(extension: Extension) -> list[list[str]]:
    """Old merges in their order, with new splits of old pieces after the old splits, then all splits of the new pieces."""
    base = extension.base
    new = {piece.string: i for piece, i in zip(extension.pieces, extension.ids, strict=True)}
    have = {string: i for i, string in enumerate(base.strings) if string and i not in extension.filled} | new
    late: dict[str, list[list[str]]] = {}
    ranks, _ = base.order
    for i, string in enumerate(base.strings):
        if ranks[i] >= 0 and holds_hangul(string):
            pairs = [(a, b) for a, b in splits(string, have) if a in new or b in new]
            if pairs:
                late[base.tokens[i]] = [[base.encode_piece(a), base.encode_piece(b)] for a, b in pairs]
    last: dict[str, int] = {left + right: k for k, (left, right) in enumerate(base.merges) if left + right in late}
    merges: list[list[str]] = []
    for k, (left, right) in enumerate(base.merges):
        merges.append([left, right])
        if late and last.get(left + right) == k:
            merges += late[left + right]
    for piece in new:
        merges += [[base.encode_piece(a), base.encode_piece(b)] for a, b in splits(piece, have)]
    return merges


def definition_of(extension: Extension) -> dict[str, Any]:
    """tokenizer.json of the extension."""
    base = extension.base
    definition = copy.deepcopy({name: node for name, node in base.definition.items() if name != "model"})
    model = {name: node for name, node in base.model.items() if name not in ("vocab", "merges")}
    gone = set(extension.filled.values())
    rows = [row for row in definition.get("added_tokens") or () if row["content"] not in gone]
    definition["added_tokens"] = sorted(rows, key=lambda row: row["id"])
    spelled = {base.encode_piece(piece.string): i for piece, i in zip(extension.pieces, extension.ids, strict=True)}
    if base.kind == "unigram":
        model["vocab"] = _scored(extension)
    else:
        # Added tokens are in the table, too: else the library would assign ids after its end.
        pinned = {token: i for i, token in base.added.items() if token not in gone}
        table = {token: i for token, i in base.ids.items() if token not in gone} | pinned | spelled
        model["vocab"] = dict(sorted(table.items(), key=lambda row: row[1]))
        model["merges"] = merges_of(extension)
    return {**definition, "model": model}


def _scored(extension: Extension) -> list[list[Any]]:
    """Rows of a Unigram: a new piece scores a little more than the best old segmentation of its text."""
    base = extension.base
    rows = [list(row) for row in base.model["vocab"]]
    scores = [row[1] for row in rows]
    lowest = min(scores)
    size = extension.size
    rows += [[f"<koktok_hole_{i}>", lowest] for i in range(len(rows), size)]
    for i, token in base.added.items():
        if i >= len(scores):
            rows[i] = [token, lowest]
    bound = lowest if _may_be_unknown(base) else float("-inf")
    for piece, i in zip(extension.pieces, extension.ids, strict=True):
        old = sum(scores[j] for j in piece.ids)
        score = max(bound, round((old + _BONUS * (len(piece.ids) - 1)) * 2**12) / 2**12)
        rows[i] = [base.encode_piece(piece.string), min(score, -_BONUS)]
    return rows


def _may_be_unknown(base: Base) -> bool:
    """Whether a character of some piece has no own piece: then unknown characters compete with pieces by the lowest score."""
    return any(char not in base.ids for token in base.ids for char in token)


def config_of(base: Base, gone: Collection[str] = (), table: NDArray[np.int64] | None = None) -> bytes:
    """tokenizer_config.json of the base.

    `gone` are tokens that there are no more, and `table` has the new id of each old one.
    """
    config = dict(base.config)
    if isinstance(rows := config.get("added_tokens_decoder"), dict):
        kept = {int(i): row for i, row in rows.items() if _content(row) not in gone}
        config["added_tokens_decoder"] = {str(i if table is None else int(table[i])): row for i, row in kept.items()}
    if more := config.get("additional_special_tokens"):
        config["additional_special_tokens"] = [token for token in more if _content(token) not in gone]
    if named := config.get("extra_special_tokens"):
        config["extra_special_tokens"] = {name: token for name, token in named.items() if _content(token) not in gone}
    return (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode()


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token


def files_of(extension: Extension) -> dict[str, bytes]:
    """The files of the folder without the card and the rows for embeddings."""
    base = extension.base
    definition = definition_of(extension)
    files = {name: data for name, data in base.files.items() if name == "chat_template.jinja"}
    files["tokenizer.json"] = (json.dumps(definition, ensure_ascii=False, indent=1) + "\n").encode()
    files["tokenizer_config.json"] = config_of(base, set(extension.filled.values()))
    if "tokenizer.model" in base.files:
        files["tokenizer.model"] = _model_of(extension)
    if base.ranks is not None:
        more = {piece.string: i for piece, i in zip(extension.pieces, extension.ids, strict=True)}
        specials = {token: i for token, i in base.ranks.specials.items() if i not in extension.filled}
        ranks = Ranks("extended", base.ranks.pattern, {**base.ranks.ranks, **more}, specials)
        files |= {name: text.encode() for name, text in files_of_ranks(ranks).items()}
    files[EXTENSION] = extension.record.to_json()
    return files


def _model_of(extension: Extension) -> bytes:
    """The SentencePiece model with new pieces after the others, or at reserved ids, with scores below all old ones."""
    base = extension.base
    proto = ModelProto(base.files["tokenizer.model"])
    lowest = min(row.score for row in proto.pieces if row.type == NORMAL)
    scored = _scored(extension) if base.kind == "unigram" else None
    while len(proto.pieces) < extension.size:
        proto.add(f"<koktok_hole_{len(proto.pieces)}>", 0.0, UNUSED)
    below = np.float32(lowest)
    for rank, (piece, i) in enumerate(zip(extension.pieces, extension.ids, strict=True), start=1):
        row = proto.pieces[i]
        row.piece, row.type = base.encode_piece(piece.string), NORMAL
        # A score has 32 bits: near the -10⁹ of Mistral's last pieces, one less is the same number.
        below = min(np.float32(lowest - rank), np.nextafter(below, np.float32(-np.inf)))
        row.score = scored[i][1] if scored else float(below)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return proto.serialized()


def digest_of(definition: Mapping[str, Any]) -> str:
    """SHA-256 of the content of a tokenizer.json, independent of its layout."""
    plain = copy.copy(dict(definition))
    model = dict(plain["model"])
    if "merges" in model:
        model["merges"] = [row.split(" ", 1) if isinstance(row, str) else list(row) for row in model["merges"]]
    text = json.dumps({**plain, "model": model}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def base_record(base: Base) -> BaseRecord:
    """The base, for the record of an extension or a pruned vocabulary."""
    roles = {role: base.tokens.index(token) for role, token in base.tokenizer.roles.items() if token in base.tokens}
    digest = digest_of(base.definition)
    return BaseRecord(name=Path(base.name).name, kind=base.kind, size=base.size, sha256=digest, roles=roles)


def _length(base: Base, i: int) -> float:
    """Number of characters of an old token; a byte of a character counts a third."""
    string = base.strings[i].replace(base.space, b" ")
    whole = string.decode(errors="ignore")
    return round(len(whole) + (len(string) - len(whole.encode())) / 3, 3) or 1 / 3


def _text_of(piece: bytes) -> str | None:
    """The text of a piece, or None for half a character."""
    text = whole_text(piece)
    return None if text is None else text.replace(SPACE_MARK, " ")


def is_extension(folder: str | Path) -> bool:
    """Whether `koktok extend` wrote a folder."""
    return (Path(folder) / EXTENSION).is_file()


def read_extension(folder: str | Path) -> ExtensionRecord:
    """extension.json of a folder."""
    file = Path(folder) / EXTENSION
    hint = "koktok extend BASE TEXT --add 8192 --out FOLDER"
    data = read_bounded(file, _MOST, "the record of an extension", hint)
    actual = checked(_Format, data, f"`{file}`", hint).format
    if actual != FORMAT:
        raise ArtifactError(f"`{file}`: expected format {FORMAT}, got {actual}", hint="pip install -U koktok")
    return checked(ExtensionRecord, data, f"`{file}`", hint)


def restored(definition: Mapping[str, Any], record: ExtensionRecord) -> dict[str, Any]:
    """The base's tokenizer.json, restored from that of the extension."""
    undo, model = record.undo, dict(definition["model"])
    new = {piece.token for piece in record.pieces}
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][: record.base.rows]
    else:
        gone = new | set(undo.pinned)
        model["vocab"] = {token: i for token, i in model["vocab"].items() if token not in gone} | undo.vocab
        model["merges"] = [row for row in model["merges"] if not new & {row[0], row[1], row[0] + row[1]}]
    rows = [*(definition.get("added_tokens") or ()), *undo.added_tokens]
    return {
        **definition,
        "added_tokens": sorted(rows, key=lambda row: row["id"]),
        "model": model,
    }
