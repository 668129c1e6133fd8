"""Rows for the new ids in the model's matrices, without a deep-learning library.

The embedding of a new piece is a weighted sum of the rows of the old ids of its text, by one of the published `METHODS`.
`apply_extension` streams the safetensors shards of a model: the embedding matrices get new rows, all other tensors are copied,
and only a block of rows is in memory at a time.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors import SafetensorError, safe_open

from koktok.errors import ArtifactError, UsageError
from koktok.extension.extension_files import FOLDER, ExtensionRecord, read_extension
from koktok.extension.learn import ExtendOptions, Method
from koktok.extension.prune import is_pruned, read_pruned
from koktok.files import (
    Product,
    check_folder,
    checked,
    is_plain,
    open_regular,
    read_bounded,
    typed,
    write_folder,
)
from koktok.model.tokens import running
from koktok.progress import OnProgress
from koktok.runtimes.folder import IN_A_FOLDER
from koktok.runtimes.huggingface.adapter import open_hf
from koktok.runtimes.huggingface.config_files import IDS_OF_TOKENS, NAMING, files_beside, json_of, named_ids
from koktok.tokenizer.open import load

METHODS: Final[Mapping[Method, str]] = {
    "mean": "both rows are the mean of the old rows (Gee et al. 2022, Fast Vocabulary Transfer, arXiv:2402.09977)",
    "eeve": "input: the mean; output: the first old row (Kim et al. 2024, EEVE-Korean, arXiv:2402.14714)",
    "weighted": "input: the mean, with the median norm of the base's Hangul rows where input and output are apart; output: the mean "
    "weighted by characters (Joshi et al. 2026, arXiv:2608.03494)",
}
"""Initializations of the rows of a new piece from those of the old ids that it replaces."""

MODEL: Final = Product("model.sha256", "model", frozenset({"config.json"}))
"""The folder of a model with an extension applied."""

_INPUT: Final = (
    "embed_tokens.weight",
    "wte.weight",
    "embed_in.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "shared.weight",
)
_OUTPUT: Final = ("lm_head.weight", "embed_out.weight", "lm_head.bias", "embed_out.bias")
_REPLACED: Final = (
    *IN_A_FOLDER,
    *NAMING,
    *("merges.txt", "model.safetensors.index.json", MODEL.manifest, FOLDER.manifest),
)
"""Files of a model, by pattern, in whose place are those of the extension."""

_CHUNK: Final = 1 << 24
_ROWS: Final = 1024
_MOST_JSON: Final = 100_000_000
_TIED: Final = (
    "gpt2",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "t5",
    "mt5",
    "opt",
    "bloom",
    "xglm",
    "cohere",
    "cohere2",
)
"""Types of models that tie input and output by default."""


class Weights(NamedTuple):
    """Rows as weighted sums of old rows, sparse."""

    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    weight: NDArray[np.float64]

    def of(self, matrix: Any, first: int, last: int) -> NDArray[np.float64]:
        """Rows `first` to `last` of the product with a matrix (or a vector, for a bias)."""
        part = slice(int(self.start[first]), int(self.start[last]))
        gathered = np.asarray(matrix[self.rows[part]], dtype=np.float64)
        weight = self.weight[part]
        heads = (self.start[first:last] - self.start[first]).astype(np.int64)
        shaped = weight if gathered.ndim == 1 else weight[:, None]
        summed: NDArray[np.float64] = np.add.reduceat(gathered * shaped, heads, axis=0)
        return summed


def weights_of(record: ExtensionRecord, method: Method) -> tuple[Weights, Weights]:
    """Rows of the input and of the output matrix, in the order of extension.json.

    Examples
    --------
    >>> piece = {"id": 9, "token": "가", "base": [5, 7], "lengths": [1, 3]}
    >>> record = ExtensionRecord(base={"name": "", "size": 9, "sha256": "0"}, mode="append", size=10, pieces=[piece])
    >>> [rows.weight.tolist() for rows in weights_of(record, "weighted")], weights_of(record, "eeve")[1].rows.tolist()
    ([[0.5, 0.5], [0.25, 0.75]], [5])
    """
    bases = [piece.base for piece in record.pieces]
    mean = _weights(bases, [[1.0] * len(ids) for ids in bases])
    if method == "mean":
        return mean, mean
    if method == "eeve":
        return mean, _weights([ids[:1] for ids in bases], [[1.0]] * len(bases))
    return mean, _weights(bases, [piece.lengths for piece in record.pieces])


def _weights(ids: Sequence[Sequence[int]], weights: Sequence[Sequence[float]]) -> Weights:
    start = running([len(row) for row in ids])
    flat = np.array([w / sum(row) for row in weights for w in row], np.float64)
    return Weights(start, np.array([i for row in ids for i in row], np.int64), flat)


def npz(record: ExtensionRecord, method: Method) -> bytes:
    """init.npz: `ids`, and for input and output `start`, `rows` and `weight`, to initialize rows with other software."""
    rows = dict(zip(("input", "output"), weights_of(record, method), strict=True))
    arrays = {f"{side}_{name}": array for side, weights in rows.items() for name, array in weights._asdict().items()}
    out = BytesIO()
    np.savez(out, ids=np.array([piece.id for piece in record.pieces], np.int64), method=np.array(method), **arrays)
    return out.getvalue()


@dataclass(frozen=True)
class _Tensor:
    """A tensor of a shard, with the range of its bytes in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class _Shard:
    """A safetensors file, with its tensors in the order of their bytes."""

    file: Path
    metadata: Mapping[str, str]
    tensors: tuple[_Tensor, ...]


class _Index(BaseModel, extra="allow"):
    """The index of a model with several shards."""

    metadata: dict[str, Any] | None = None
    weight_map: dict[str, str]


def _open(file: Path) -> _Shard:
    """Read the header of a shard, which the safetensors library checks against the file."""
    hint = "fetch the model again"
    if not file.exists():
        raise ArtifactError(f"the shard `{file}` is missing", hint=hint)
    try:
        with open_regular(file, "a safetensors file", hint) as opened:
            with safe_open(file, "numpy") as checked_file:
                metadata = checked_file.metadata()
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"`{file}` is not a safetensors file, or it is cut short: {error}", hint=hint) from error
    tensors = [
        _Tensor(name, row["dtype"], tuple(row["shape"]), *(8 + length + at for at in row["data_offsets"]))
        for name, row in header.items()
        if name != "__metadata__"
    ]
    return _Shard(file, metadata or {}, tuple(sorted(tensors, key=lambda t: (t.begin, t.end))))


def _shards(model: Path) -> tuple[list[_Shard], dict[str, Any] | None]:
    """The shards of a model in their order, and the index where there is one."""
    index_file, single = model / "model.safetensors.index.json", model / "model.safetensors"
    if index_file.exists():
        hint = "fetch the model again"
        data = read_bounded(index_file, _MOST_JSON, "an index of shards", hint)
        index = checked(_Index, data, f"`{index_file}`", hint)
        names = sorted(set(index.weight_map.values()))
        if odd := [name for name in names if not is_plain(name)]:
            raise ArtifactError(f"`{index_file}`: expected names of files beside it, got {odd[0]!r}", hint=hint)
        shards = [_open(model / name) for name in names]
        present = {t.name for shard in shards for t in shard.tensors}
        if lost := sorted(set(index.weight_map) - present):
            raise ArtifactError(f"no shard of `{model}` has `{lost[0]}`, which its index names", hint=hint)
        return shards, index.model_dump()
    if single.exists():
        return [_open(single)], None
    raise ArtifactError(
        f"`{model}` holds no model.safetensors and no index of shards",
        hint="AutoModelForCausalLM.from_pretrained(MODEL).save_pretrained(NEW) writes them from other formats",
    )


def apply_extension(
    extension: str | Path,
    model: str | Path,
    out: str | Path,
    *,
    method: Method | None = None,
    pad_to: int | None = None,
    force: bool = False,
    on_progress: OnProgress = lambda _stage, _done, _total: None,
) -> list[str]:
    """Write a model with rows for the new ids; returns notes in sentences.

    `method` and `pad_to` are by default what was given when the extension was learned.
    """
    ExtendOptions(init=method or "mean", pad_to=1 if pad_to is None else pad_to)  # refuses others
    source, place = Path(model), Path(extension)
    table = read_pruned(extension)[1] if is_pruned(extension) else None
    if table is not None and method is not None:
        raise UsageError(
            "`--init` does nothing with a pruned vocabulary, which has no new rows",
            hint=f"koktok extend {typed(place)} --apply {typed(source)} --out NEW",
        )
    check_folder(out, MODEL)
    config = _config(source)
    shards, index = _shards(source)
    record = read_extension(extension) if table is None else None
    if record is not None:
        method = method or record.init
        pad_to = record.pad_to if pad_to is None else pad_to
        plan = _plan(record, shards, config, method, pad_to, source)
    else:
        assert table is not None
        plan = _gathered(table, shards, pad_to or 1, source)
    _check_tokens(source, place, record, table)
    outside = [entry for folder in (source, place) for entry in folder.iterdir() if _leads_out(entry)]
    names = {shard.file.name for shard in shards}
    if needed := [entry for entry in outside if entry.name in {"config.json", *names}]:
        raise ArtifactError(
            f"`{needed[0]}` is a link that leads out of the folder", hint=f"cp -rL {typed(source)} A-COPY"
        )
    said = json_of(files_beside(place / "tokenizer.json"), "tokenizer_config.json", str(place))
    templates = ("chat_template.jinja",) if "chat_template" in said else ()
    left_out = {source: (*_REPLACED, *templates, *names), place: (FOLDER.manifest, "README.md", "init.npz")}
    total = sum(shard.file.stat().st_size for shard in shards)

    def write(staged: Path) -> None:
        for folder, replaced in left_out.items():
            for entry in sorted(folder.iterdir()):
                hidden = folder is source and entry.name.startswith(".")
                idle = hidden or entry in outside or any(map(entry.match, replaced))
                if entry.is_file() and not idle:
                    shutil.copyfile(entry, staged / entry.name)
        done = 0
        for shard in shards:
            for written in _write(shard, staged / shard.file.name, plan):
                done += written
                on_progress("apply", done, total)
        contents: dict[str, Any] = {"config.json": _with_size(config, plan.rows)}
        if index is not None:
            sizes = sum(plan.bytes_of(t) for shard in shards for t in shard.tensors)
            index["metadata"] = {**(index.get("metadata") or {}), "total_size": sizes}
            contents["model.safetensors.index.json"] = index
        if table is not None:
            contents["config.json"] = _moved(contents["config.json"], table)
            if (source / "generation_config.json").is_file():
                contents["generation_config.json"] = _moved(_config(source, "generation_config.json"), table)
        for name, content in contents.items():
            (staged / name).write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    write_folder(out, write, MODEL, force=force)
    notes = [*plan.notes]
    if skipped := [entry.name for entry in sorted(source.iterdir()) if entry.is_dir()]:
        notes.append(f"folders inside the model were not copied: {', '.join(skipped)}")
    if outside:
        notes.append(f"links that lead elsewhere were not followed: {', '.join(entry.name for entry in outside)}")
    return notes


def _check_tokens(
    model: Path, extension: Path, record: ExtensionRecord | None, table: NDArray[np.int64] | None
) -> None:
    """Refuse an extension in which a token of the model's folder, or an id of its configuration, belongs to another one."""
    hint = f"koktok extend {typed(model)} TEXT, with all files of the model"
    new = {piece.id for piece in record.pieces} if record else set()
    for key, i in named_ids(files_beside(model / "config.json"), str(model)):
        if i in new:
            raise ArtifactError(f"the id {i} is the {key} of `{model}`, and that of a new piece", hint=hint)
    if not any(True for name in IN_A_FOLDER for _ in model.glob(name)):
        return
    file = extension / "tokenizer.json"
    now, gone = open_hf(str(file), file).vocab.tokens, record.undo.tokens if record else set()
    for old, token in enumerate(load(model).vocab.tokens):
        i = old if table is None or old >= len(table) else int(table[old])
        got = now[i] if 0 <= i < len(now) else ""
        if token and i >= 0 and token != got and token not in gone:
            why = f"that of {got!r}" if got else "without a token"
            raise ArtifactError(f"the id {old} of {token!r} in `{model}` would be {why}", hint=hint)


def rows_of(model: str | Path) -> int | None:
    """The number of rows of a model's matrices: of its shards, or else of its configuration; None without a model."""
    place = Path(model)
    try:
        tensors = [t for shard in _shards(place)[0] for t in shard.tensors]
        return next(t.shape[0] for t in tensors if t.name.endswith(_INPUT) and len(t.shape) == 2)
    except (ArtifactError, StopIteration):
        pass
    if not (place / "config.json").is_file():
        return None
    size = _text_config(_config(place)).get("vocab_size")
    return size if isinstance(size, int) else None


def _leads_out(file: Path) -> bool:
    """Whether a link in a folder leads out of it; the Hub's cache keeps a model's files beside its folder."""
    home = file.parent.resolve()
    homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    return file.is_symlink() and not any(file.resolve().is_relative_to(one) for one in homes)


def _config(model: Path, name: str = "config.json") -> dict[str, Any]:
    hint = "the folder of a model"
    return checked(
        dict[str, Any], read_bounded(model / name, _MOST_JSON, "a configuration", hint), f"`{model / name}`", hint
    )


def _text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that has the size of the vocabulary."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) and "vocab_size" in inner else config


def _with_size(config: dict[str, Any], rows: int) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(config))
    for part in (changed, changed.get("text_config")):
        if isinstance(part, dict) and "vocab_size" in part:
            part["vocab_size"] = rows
    return changed


def _moved(node: Any, table: NDArray[np.int64], *, ids: bool = False) -> Any:
    """A configuration with new ids in the values of ..._token_id, ..._token_index, suppress_tokens and so on."""
    if isinstance(node, dict):
        return {name: _moved(value, table, ids=name.endswith(IDS_OF_TOKENS)) for name, value in node.items()}
    if isinstance(node, list):
        return [_moved(value, table, ids=ids) for value in node]
    moves = ids and isinstance(node, int) and not isinstance(node, bool) and 0 <= node < len(table)
    return int(table[node]) if moves else node


@dataclass(frozen=True)
class _Plan:
    """The changes of the tensors."""

    rows: int
    old_rows: int
    ids: NDArray[np.int64]
    weights: Mapping[str, Weights]
    calibrated: frozenset[str]
    hangul: NDArray[np.int64]
    notes: tuple[str, ...]
    kept: NDArray[np.int64] | None = None

    def bytes_of(self, t: _Tensor) -> int:
        """Return the size of a tensor as it is written."""
        size = t.end - t.begin
        return size // self.old_rows * self.rows if t.name in self.weights else size


def _matrices(shards: Sequence[_Shard], base_size: int, model: Path) -> tuple[list[_Tensor], list[_Tensor]]:
    """The matrices of input and output (with its bias), which must have the same number of rows."""
    tensors = [t for shard in shards for t in shard.tensors]
    of_input = [t for t in tensors if t.name.endswith(_INPUT) and len(t.shape) == 2]
    of_output = [t for t in tensors if t.name.endswith(_OUTPUT)]
    if not of_input:
        raise ArtifactError(
            f"`{model}` has no embedding matrix; expected a tensor whose name ends with {', '.join(_INPUT)}",
            hint="init.npz of the extension has the rows to apply with other software",
        )
    old_rows = of_input[0].shape[0]
    for t in (*of_input, *of_output):
        if t.shape[0] != old_rows:
            raise ArtifactError(
                f"expected {old_rows:,} rows of `{t.name}`, as of `{of_input[0].name}`, got {t.shape[0]:,}"
            )
        if t.dtype not in ("F32", "F16", "BF16"):
            raise ArtifactError(
                f"expected F32, F16 or BF16 as type of `{t.name}`, got {t.dtype}",
                hint="apply to the model before it is quantized",
            )
    if old_rows < base_size:
        raise ArtifactError(
            f"the matrices of `{model}` have {old_rows:,} rows, and the base's vocabulary has ids up to {base_size - 1:,}",
            hint="the model that the base belongs to, its own added tokens included",
        )
    known = {t.name for t in (*of_input, *of_output)}
    if odd := [t.name for t in tensors if t.name not in known and "embed" in t.name and t.shape[:1] == (old_rows,)]:
        raise ArtifactError(f"`{odd[0]}` has a row for each id, and is not a known matrix")
    return of_input, of_output


def _gathered(table: NDArray[np.int64], shards: Sequence[_Shard], pad_to: int, model: Path) -> _Plan:
    """Rows of the remaining ids in their new order; rows without a token are removed, too."""
    matrices = [t for some in _matrices(shards, len(table), model) for t in some]
    kept = np.flatnonzero(table >= 0)
    rows, old_rows = -(-len(kept) // pad_to) * pad_to, matrices[0].shape[0]
    none = np.zeros(0, np.int64)
    nothing = Weights(np.zeros(1, np.int64), none, np.zeros(0))
    notes = (f"rows: {old_rows:,} before, {rows:,} now",)
    return _Plan(rows, old_rows, none, {t.name: nothing for t in matrices}, frozenset(), none, notes, kept)


def _plan(
    record: ExtensionRecord, shards: Sequence[_Shard], config: dict[str, Any], method: Method, pad_to: int, model: Path
) -> _Plan:
    inputs, outputs = weights_of(record, method)
    base_size, size = record.base.size, record.size
    of_input, of_output = _matrices(shards, base_size, model)
    old_rows = of_input[0].shape[0]
    text = _text_config(config)
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    tied = config.get("model_type") in _TIED if tied is None else bool(tied)
    apart = bool(of_output) and not tied
    if not apart and not tied and not of_output:
        tied = True  # no other matrix can make logits
    rows = old_rows if size <= old_rows else -(-size // pad_to) * pad_to
    weights = {t.name: inputs for t in of_input} | {t.name: outputs if apart else inputs for t in of_output}
    calibrated = frozenset(t.name for t in of_input) if method == "weighted" and apart else frozenset()
    notes = [f"init {method}: {METHODS[method]}", f"rows: {old_rows:,} before, {rows:,} now"]
    if record.mode == "append" and old_rows > base_size:
        notes.append(
            f"the matrices had {old_rows - base_size:,} rows without a token; new ids begin there, with their own rows"
        )
    if rows > size:
        notes.append(f"{rows - max(size, old_rows):,} new rows without a token, the mean of all old rows")
    if tied:
        notes.append(
            "input and output are one matrix; it has the rows of the input"
            + (", not scaled" if method == "weighted" else "")
        )
    ids = np.array([piece.id for piece in record.pieces], np.int64)
    hangul = np.array(record.base.hangul, np.int64)
    return _Plan(rows, old_rows, ids, weights, calibrated, hangul, tuple(notes))


def _write(shard: _Shard, target: Path, plan: _Plan) -> Iterator[int]:
    """Copy a shard with new rows in its embeddings, and yield the numbers of bytes."""
    header: dict[str, Any] = {"__metadata__": dict(shard.metadata)} if shard.metadata else {}
    at = 0
    for t in shard.tensors:
        shape = (plan.rows, *t.shape[1:]) if t.name in plan.weights else t.shape
        header[t.name] = {"dtype": t.dtype, "shape": list(shape), "data_offsets": [at, at + plan.bytes_of(t)]}
        at += plan.bytes_of(t)
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    stored = np.memmap(shard.file, np.uint8, "r")
    with target.open("wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        for t in shard.tensors:
            if t.name in plan.weights:
                blocks = _rows(shard, t, plan)
            else:
                blocks = (stored[at : min(at + _CHUNK, t.end)] for at in range(t.begin, t.end, _CHUNK))
            for block in blocks:
                out.write(block.tobytes())
                yield block.nbytes


def _rows(shard: _Shard, t: _Tensor, plan: _Plan) -> Iterator[NDArray[Any]]:
    """Yield a matrix (or a bias) with its new rows, in blocks."""
    raw = np.memmap(shard.file, _STORED[t.dtype], "r", t.begin, t.shape)
    matrix = _Read(raw, t.dtype)
    weights, ids = plan.weights[t.name], plan.ids
    norm = _median_norm(matrix, plan) if t.name in plan.calibrated else None
    old = plan.old_rows if plan.kept is None else len(plan.kept)
    mean = _mean(matrix) if plan.rows > old else None
    for first in range(0, plan.rows, _ROWS):
        last = min(first + _ROWS, plan.rows)
        block = np.empty((last - first, *t.shape[1:]), _STORED[t.dtype])
        n_old = max(0, min(last, old) - first)
        block[:n_old] = raw[first : first + n_old] if plan.kept is None else raw[plan.kept[first : first + n_old]]
        if n_old < last - first:
            block[n_old:] = _stored(np.broadcast_to(mean, block[n_old:].shape), t.dtype)  # type: ignore[arg-type]
        low, high = np.searchsorted(ids, [first, last]).tolist()
        if low < high:
            new = weights.of(matrix, low, high)
            if norm is not None:
                lengths = np.linalg.norm(new, axis=1, keepdims=True)
                new = new * (norm / np.where(lengths > 0, lengths, 1.0))
            block[ids[low:high] - first] = _stored(new, t.dtype)
        yield block


_STORED: Final[dict[str, np.dtype[Any]]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


class _Read:
    """Rows of a stored matrix as floats."""

    def __init__(self, raw: Any, dtype: str) -> None:
        self.raw, self.dtype = raw, dtype

    def __getitem__(self, rows: Any) -> Any:
        part = self.raw[rows]
        return (part.astype("<u4") << 16).view("<f4") if self.dtype == "BF16" else part


def _stored(rows: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """Floats in the stored type; bfloat16 to the nearest, ties to even."""
    if dtype != "BF16":
        plain: NDArray[Any] = rows.astype(_STORED[dtype])
        return plain
    bits: NDArray[np.uint64] = np.ascontiguousarray(rows, "<f4").view("<u4").astype(np.uint64)
    rounded: NDArray[Any] = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)).astype("<u2")
    return rounded


def _blocks(matrix: _Read, rows: int) -> Iterator[NDArray[np.float64]]:
    for first in range(0, rows, _ROWS):
        yield np.asarray(matrix[first : min(first + _ROWS, rows)], np.float64)


def _mean(matrix: _Read) -> NDArray[np.float64]:
    n = len(matrix.raw)
    total: NDArray[np.float64] = sum(block.sum(axis=0) for block in _blocks(matrix, n)) / n
    return total


def _median_norm(matrix: _Read, plan: _Plan) -> float | None:
    """The median norm of the base's rows with Hangul; None if there are none."""
    if not len(plan.hangul):
        return None
    norms = [
        np.linalg.norm(np.asarray(matrix[plan.hangul[k : k + _ROWS]], np.float64), axis=1)
        for k in range(0, len(plan.hangul), _ROWS)
    ]
    return float(np.median(np.concatenate(norms)))


def model_of(folder: str | Path) -> tuple[int, bool, int] | None:
    """Width, whether input and output are tied, and number of parameters of the model in a folder; None without a model."""
    place = Path(folder)
    try:
        config = _config(place)
        tensors = [t for shard in _shards(place)[0] for t in shard.tensors]
    except ArtifactError:
        return None
    width = next((t.shape[1] for t in tensors if t.name.endswith(_INPUT) and len(t.shape) == 2), 0)
    tied = not any(t.name.endswith(_OUTPUT) for t in tensors) or bool(_text_config(config).get("tie_word_embeddings"))
    return (width, tied, sum(math.prod(t.shape) for t in tensors)) if width else None
