"""`prune`: an existing vocabulary without pieces that a text never uses.

A piece that is no part of a longer one is never merged further; if it does not occur in a text, it was never made there, and
without it the text has the same tokens in every library. Such leaves are removed first, those of the highest rank before
others, and their parts may become leaves. A Unigram has no merges: its unused pieces are removed longest first, and without
byte fallback none whose removal makes a character unknown. Ids change here only; they keep their order, and `ids.tsv` lists
old and new ids.
"""

from __future__ import annotations

import copy
import heapq
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from koktok.corpora.paths import as_text
from koktok.errors import ArtifactError, InputError, UsageError
from koktok.extension.base_tokenizer import Base, base_of, open_base
from koktok.extension.extension_files import BaseRecord, Record, base_record, config_of
from koktok.extension.learn import splits
from koktok.files import Product, check_folder, checked, read_bounded, read_utf8, write_folder
from koktok.model.vocab import BYTE_PIECES
from koktok.progress import OnProgress, silent
from koktok.protocol.agree import Ids, agree
from koktok.recipe import Options
from koktok.runtimes.huggingface.auto_tokenizer import not_carried
from koktok.runtimes.probe import PROBE, probe_json
from koktok.runtimes.sentencepiece.message import ModelProto
from koktok.runtimes.tiktoken.ranks import files as files_of_ranks
from koktok.text.sources import read
from koktok.tokenizer.ready import folder_of

PRUNED: Final = "pruned.json"
"""The file by which a folder is recognized as a pruned vocabulary."""

FORMAT: Final = 1

FOLDER: Final = Product(
    "pruned.sha256", "pruned vocabulary", frozenset({PRUNED, "ids.tsv", "tokenizer.json", "tokenizer_config.json"})
)
"""The folder of a pruned vocabulary."""

_BATCH = 1000


class RemovedRecord(BaseModel, extra="allow"):
    """A removed piece in pruned.json."""

    id: NonNegativeInt
    token: str


class PrunedRecord(Record):
    """pruned.json."""

    format: int
    koktok: str = ""
    base: BaseRecord
    size: PositiveInt
    removed: list[RemovedRecord]


class PruneOptions(Options):
    """Settings of pruning."""

    drop: Annotated[int, Field(ge=1)] | Literal["all"]
    """Remove this many pieces that the text never uses, and add none (ids change); for every such piece."""
    keep_scripts: tuple[str, ...] = ()
    """Keep pieces with a letter of one of these Unicode scripts (Latin,Han,Hangul)."""
    pattern: str | None = None
    """For tiktoken ranks: the name of a pattern, or a regular expression."""
    specials: dict[str, int] | None = None
    """For tiktoken ranks: special tokens with their ids."""


@dataclass(frozen=True)
class Pruned:
    """The result of `prune`."""

    removed: tuple[int, ...]
    size: int
    lines: int
    notes: tuple[str, ...]
    folder: Path


def prune(
    reference: str | Path | Base,
    text: Any,
    out: str | Path,
    *,
    force: bool = False,
    on_progress: OnProgress = silent,
    **options: Any,
) -> Pruned:
    """Remove pieces that the text never uses from a vocabulary, prove that the text keeps its pieces, and write the folder."""
    settings = PruneOptions(**options)
    check_folder(out, FOLDER)
    if not isinstance(reference, Base):
        reference = open_base(str(reference), pattern=settings.pattern, specials=settings.specials)
    base = reference
    source = as_text(text)
    if isinstance(source, Iterator):
        source = list(source)
    uses, n = np.zeros(base.size, np.int64), 0
    for lines in _batches(source):
        for row in base.encode(lines):
            np.add.at(uses, row, 1)
        n += len(lines)
        on_progress("encode", n, None)
    if not n:
        raise InputError(
            "expected text to find the unused pieces, got none", hint="koktok extend BASE TEXT --prune 10000"
        )
    removed = leaves(base, uses > 0, settings.drop, settings.keep_scripts)
    kept = np.ones(base.size, bool)
    kept[removed] = False
    table = np.where(kept, np.cumsum(kept) - 1, -1)
    files = _files(base, table, removed)
    new = base_of(str(out), {name: data for name, data in files.items() if name.startswith("token")})
    lines_compared, old = 0, moved(base, table)
    for lines in _batches(source):
        for example in agree(new.encode, old, lines, examples=1).examples:
            raise ArtifactError(
                f"without these pieces the line {example.line[:60]!r} would have other tokens; nothing was written"
            )
        lines_compared += len(lines)
        on_progress("verify", lines_compared, n)
    left = not_carried(folder_of(Path(base.name)), files)
    notes = (*base.notes, *left, f"{lines_compared:,} lines of the text have the pieces they had", _of_other_text(base))
    files[PROBE] = probe_json(new.encode).encode()
    return Pruned(tuple(removed), int(kept.sum()), lines_compared, notes, write_folder(out, files, FOLDER, force=force))


def _batches(source: Any) -> Iterator[list[str]]:
    lines = (line for block in read(source) for line in block.lines())
    while batch := list(islice(lines, _BATCH)):
        yield batch


def _of_other_text(base: Base) -> str:
    """What becomes of text that uses removed pieces."""
    if base.lossless:
        return "other text that used a removed piece has more tokens; nothing is unknown"
    return (
        "other text that used a removed piece has more tokens; only characters that the base did not know are unknown"
    )


def moved(base: Base, table: NDArray[np.int64]) -> Ids:
    """The base's ids of lines, as new ids."""
    return lambda lines: [table[row].tolist() for row in base.encode(lines)]


def leaves(
    base: Base, used: NDArray[np.bool_], drop: int | Literal["all"], keep_scripts: Sequence[str] = ()
) -> list[int]:
    """Old ids of `drop` pieces to remove, ascending."""
    stays = used | _never(base) | _of_scripts(base, keep_scripts)
    strings = base.strings
    have = {string: i for i, string in enumerate(strings) if string}
    ways: dict[int, list[tuple[bytes, bytes]]] = {}
    makes = np.zeros(base.size, np.int64)
    if base.kind != "unigram":
        for string, i in have.items():
            ways[i] = splits(string, have)
            for part in chain.from_iterable(ways[i]):
                makes[have[part]] += 1
    lengths = [len(string.decode(errors="replace")) for string in strings]
    ranks = np.array(lengths) if base.kind == "unigram" else base.order[0]
    most = len(have) if drop == "all" else drop
    heap = [(-int(ranks[i]), -i) for i in have.values() if not stays[i] and not makes[i]]
    heapq.heapify(heap)
    removed: list[int] = []
    while heap and len(removed) < most:
        i = -heapq.heappop(heap)[1]
        removed.append(i)
        for part in chain.from_iterable(ways.get(i, ())):
            k = have[part]
            makes[k] -= 1
            if not makes[k] and not stays[k]:
                heapq.heappush(heap, (-int(ranks[k]), -k))
    if not removed or (drop != "all" and len(removed) < drop):
        raise UsageError(
            f"expected {drop if drop == 'all' else f'{drop:,}'} pieces that are unused in the text and in no used piece, "
            f"got {len(removed):,}",
            hint="--prune all" if removed else "less text, or another base",
        )
    return sorted(removed)


def _never(base: Base) -> NDArray[np.bool_]:
    """Ids that are never removed: special tokens, bytes, the unknown token, and ids without a piece.

    Without byte fallback also single characters, and every piece with a character that is none.
    """
    stays = np.array([not string or (base.kind == "bytes" and len(string) == 1) for string in base.strings])
    stays[[i for token, i in base.ids.items() if token in BYTE_PIECES]] = True
    stays[list(base.added)] = True
    if base.unknown >= 0:
        stays[base.unknown] = True
    if not base.lossless:
        texts = [string.decode() for string in base.strings]
        alone = {text for text in texts if len(text) == 1}
        stays |= np.array([len(text) == 1 or not alone.issuperset(text) for text in texts])
    return stays


def _of_scripts(base: Base, scripts: Sequence[str]) -> NDArray[np.bool_]:
    """Pieces with a letter of one of these scripts, by the first word of its Unicode name; half a character has none."""
    if not scripts:
        return np.zeros(base.size, bool)
    heads = {"CJK" if script.casefold() == "han" else script.upper() for script in scripts}
    letters = {chr(code) for code in range(0x20000) if unicodedata.name(chr(code), "").split(" ")[0] in heads}
    if strange := heads - {unicodedata.name(letter).split(" ")[0] for letter in letters}:
        raise UsageError(f"`{min(strange).title()}` is not a script of Unicode", hint="--keep-scripts Latin,Han,Hangul")
    return np.array([not letters.isdisjoint(string.decode(errors="ignore")) for string in base.strings])


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _files(base: Base, table: NDArray[np.int64], removed: Sequence[int]) -> dict[str, bytes]:
    gone = {base.tokens[i] for i in removed}
    definition = _definition(base, table, gone)
    files = {name: data for name, data in base.files.items() if name == "chat_template.jinja"}
    files["tokenizer.json"] = (json.dumps(definition, ensure_ascii=False, indent=1) + "\n").encode()
    files["tokenizer_config.json"] = config_of(base, table=table)
    if "tokenizer.model" in base.files:
        files["tokenizer.model"] = _model(base, table)
    if base.ranks is not None:
        ranks = replace(
            base.ranks,
            name="pruned",
            ranks={piece: int(table[i]) for piece, i in base.ranks.ranks.items() if table[i] >= 0},
            specials={token: int(table[i]) for token, i in base.ranks.specials.items()},
        )
        files |= {name: text.encode() for name, text in files_of_ranks(ranks).items()}
    record = PrunedRecord(
        format=FORMAT,
        koktok=version("koktok"),
        base=base_record(base),
        size=int(table.max()) + 1,
        removed=[RemovedRecord(id=i, token=base.tokens[i]) for i in removed],
    )
    files[PRUNED] = record.to_json()
    rows = "".join(f"{old}\t{new if new >= 0 else ''}\n" for old, new in enumerate(table.tolist()))
    files["ids.tsv"] = f"old\tnew\n{rows}".encode()
    return files


def _definition(base: Base, table: NDArray[np.int64], gone: set[str]) -> dict[str, Any]:
    definition = copy.deepcopy(base.definition)
    model = definition["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = [row for i, row in enumerate(model["vocab"]) if table[i] >= 0]
        if model.get("unk_id") is not None:
            model["unk_id"] = int(table[model["unk_id"]])
    else:
        model["vocab"] = {token: int(table[i]) for token, i in model["vocab"].items() if table[i] >= 0}
        model["merges"] = [[a, b] for a, b in base.merges if not {a, b, a + b} & gone]
    for row in definition.get("added_tokens") or ():
        row["id"] = int(table[row["id"]])
    if isinstance(definition.get("padding"), dict):
        definition["padding"]["pad_id"] = int(table[definition["padding"]["pad_id"]])
    _move(definition.get("post_processor"), table)
    return definition


def _move(node: Any, table: NDArray[np.int64]) -> None:
    """Ids of a post-processor: of templates, and of RoBERTa's and BERT's pairs of a token and its id."""
    if not isinstance(node, dict):
        return
    for part in node.get("processors") or ():
        _move(part, table)
    specials = node.get("special_tokens")
    for row in specials.values() if isinstance(specials, dict) else ():
        row["ids"] = [int(table[i]) for i in row["ids"]]
    for name in ("sep", "cls"):
        if isinstance(node.get(name), list):
            node[name][1] = int(table[node[name][1]])


def _model(base: Base, table: NDArray[np.int64]) -> bytes:
    proto = ModelProto(base.files["tokenizer.model"])
    size = len(proto.pieces)
    proto.pieces = [row for i, row in enumerate(proto.pieces) if table[i] >= 0]
    spec = proto.trainer_spec
    spec.vocab_size = len(proto.pieces)
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        if 0 <= getattr(spec, name) < size:
            setattr(spec, name, int(table[getattr(spec, name)]))
    return proto.serialized()


def is_pruned(folder: str | Path) -> bool:
    """Whether `prune` wrote a folder."""
    return (Path(folder) / PRUNED).is_file()


def read_pruned(folder: str | Path) -> tuple[PrunedRecord, NDArray[np.int64]]:
    """pruned.json of a folder, and the new id of each old id, -1 for a removed one."""
    place, hint = Path(folder), "koktok extend BASE TEXT --prune 10000 --out FOLDER"
    record = checked(PrunedRecord, read_bounded(place / PRUNED, hint=hint), f"`{place / PRUNED}`", hint)
    rows = [line.split("\t") for line in read_utf8(place / "ids.tsv", hint=hint).splitlines()[1:]]
    try:
        table = np.array([int(new) if new else -1 for _, new in rows], np.int64)
        sound = record.format == FORMAT and len(table) == record.base.size and table.max() + 1 == record.size
    except ValueError as error:
        raise ArtifactError(
            f"`{folder}` is not a pruned vocabulary: {type(error).__name__}: {error}", hint=hint
        ) from error
    if not sound:
        raise ArtifactError(f"`{place / PRUNED}` is of a newer format, or damaged", hint="pip install -U koktok")
    return record, table
