"""The packed layer: the ids of all documents with the borders of sentences, eojeols and morphemes.

Every kind of instance is made from it. A shard is a memory-mapped Arrow IPC file with a row for each document: `ids`, `marks`
(see `koktok.instances.borders`), `sentences` (the end of each, in tokens) and `source`. It holds no special tokens, so one
packed folder serves every kind, length, rate and seed. With its manifest instances are made without the tokenizer.

The sentences of a document are joined by a space: their ids are those of the running text.
"""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from koktok.bulk.arrays import id_type
from koktok.errors import ArtifactError, InputError, MissingExtraError
from koktok.files import MANIFEST, Product, read_manifest, write_folder, write_manifest, written
from koktok.files.paths import sha256_of
from koktok.instances.borders import MarkedTexts
from koktok.instances.reading import By, Sentences, read
from koktok.instances.token_facts import TokenFacts
from koktok.instances.word_cuts import WordCuts
from koktok.model.tokens import running
from koktok.progress import OnProgress
from koktok.recipe import Options
from koktok.runtimes import LibraryTokenizer
from koktok.text.blocks import Block
from koktok.text.records import ReadReport
from koktok.text.sources import Source
from koktok.tokenizer import TrainedTokenizer

log = logging.getLogger(__name__)

LAYOUT = 1
"""Version of the folder."""

PACKED: Final = Product("packed.sha256", "packed folder", frozenset({MANIFEST, "tokens.json"}))

_HINT = "koktok instances TOKENIZER TEXT --kind packed --out FOLDER"

LONG_DOCUMENT = 1_000_000
"""Bytes; a longer document is probably a file whose documents were not separated."""

SHARD_TOKENS = 1 << 24
"""A shard with its marks takes some 50 MB, on the disk and in memory."""


def arrow() -> Any:
    """Return pyarrow."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtraError("pyarrow", "instances") from None
    return pyarrow


@dataclass(frozen=True, slots=True, eq=False)
class PackedShard:
    """The documents of a shard, memory-mapped."""

    ids: NDArray[Any]
    marks: NDArray[np.uint8]
    documents: NDArray[np.int64]
    ends: NDArray[np.int64]
    sentences: NDArray[np.int64]
    sources: NDArray[np.uint16]


@dataclass(frozen=True)
class Packed:
    """A folder that `write_packed` wrote."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> Packed:
        """Open a packed folder."""
        path = Path(folder)
        return cls(path, read_manifest(path, "packed", LAYOUT, wrong="is not a packed folder", hint=_HINT))

    def __len__(self) -> int:
        return len(self.manifest["shards"])

    def shard(self, i: int) -> PackedShard:
        """Map the documents of shard `i`."""
        pa = arrow()
        path = self.folder / f"{self.manifest['shards'][i]['name']}.arrow"
        try:
            with pa.memory_map(str(path)) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
        except (OSError, pa.ArrowInvalid) as error:
            raise ArtifactError(f"`{path}` is damaged: {error}", hint=_HINT) from error
        columns = {name: batch.column(name) for name in ("ids", "marks", "sentences")}
        documents = columns["ids"].offsets.to_numpy().astype(np.int64)
        sentences = columns["sentences"].offsets.to_numpy().astype(np.int64)
        ends = columns["sentences"].values.to_numpy() + np.repeat(documents[:-1], np.diff(sentences))
        ids, marks = columns["ids"].values.to_numpy(), columns["marks"].values.to_numpy()
        return PackedShard(ids, marks, documents, ends.astype(np.int64), sentences, batch.column("source").to_numpy())

    def digest(self) -> str:
        """Return the first 16 hex digits of the SHA-256 over the digests of all shards."""
        listed = dict(PACKED.rows(self.folder) or ())
        names = [f"{shard['name']}.arrow" for shard in self.manifest["shards"]]
        if missing := [name for name in names if name not in listed]:
            raise ArtifactError(f"`{self.folder / PACKED.manifest}` does not list {missing[0]}", hint=_HINT)
        return sha256("\0".join(map(listed.__getitem__, names)).encode()).hexdigest()[:16]

    @cached_property
    def ordinary(self) -> NDArray[np.int64]:
        """The ids that may replace a masked token."""
        return np.flatnonzero(TokenFacts.of_manifest(self.manifest).ordinary)


class PackOptions(Options):
    """Settings of a packed folder."""

    documents: By = "auto"
    """Unit of a document; `auto` is a field of JSON and tables, in text what empty lines separate, else a line."""
    sentences: Sentences = "newline"
    """Sentence splitter."""
    shard_tokens: Annotated[int, Field(ge=1)] = SHARD_TOKENS
    """Tokens per packed file. It ends with the document that brings it to so many. A document that is longer than two shards
    is cut between sentences, and its parts count as documents."""


def write_packed(
    tokenizer: TrainedTokenizer | LibraryTokenizer,
    sources: Source | Sequence[Source],
    out: str | Path,
    *,
    lexicon: WordCuts | None = None,
    threads: int | None = None,
    report: ReadReport | None = None,
    on_progress: OnProgress | None = None,
    force: bool = False,
    **options: Any,
) -> Packed:
    """Encode the documents of sources into a folder; one that has them already is returned unchanged.

    `options` are those of `PackOptions`. The borders of morphemes are Kiwi's by default; the files are the same for any number
    of threads.
    """
    arrow()
    settings = PackOptions(**options)
    sources = [sources] if isinstance(sources, Source) else list(sources)
    cuts = lexicon or WordCuts.of_kiwi()
    dtype = id_type(tokenizer.vocab.size)
    texts = [{"name": source.name, "sha256": _digest(source)} for source in sources]
    known = all(text["sha256"] for text in texts)
    run = {
        "packed": LAYOUT,
        **_tokenizer_values(tokenizer),
        "dtype": dtype.name,
        "cuts": cuts.signature(),
        **settings.model_dump(),
        "sources": texts,
        "koktok": version("koktok"),
    }
    if (there := written(out, PACKED, run, same=lambda _: known, force=force or not known)) is not None:
        return Packed(Path(out), there)
    report = report or ReadReport()
    manifest = dict[str, Any](run)

    def report_read(done: int, total: int | None) -> None:
        if on_progress:
            on_progress("pack", done, total)

    def fill(folder: Path) -> None:
        # A tokenizer with a prefix space puts it before every text.
        between = "" if isinstance(tokenizer, TrainedTokenizer) and tokenizer.prefix else " "
        longest = [0]
        sentences = read(
            sources,
            by=settings.documents,
            sentences=settings.sentences,
            between=between,
            report=report,
            on_progress=report_read,
        )
        owners = array("H")
        marked = MarkedTexts(tokenizer, cuts)(_texts(sentences, owners, longest), threads=threads)
        shards = _write_shards(marked, folder, dtype, settings.shard_tokens, owners)
        if not shards:
            raise InputError("the text holds no document", hint="wc FILES")
        tokens = json.dumps(list(tokenizer.vocab.tokens), ensure_ascii=False)
        (folder / "tokens.json").write_text(tokens, encoding="utf-8")
        if longest[0] > LONG_DOCUMENT:
            log.warning("a document has %s bytes", f"{longest[0]:,}")
        manifest.update({f"n_{key}": sum(shard[key] for shard in shards) for key in ("tokens", "documents")})
        manifest.update(longest_document=longest[0], shards=shards)
        write_manifest(folder, manifest)

    write_folder(out, fill, PACKED, force=force)
    return Packed(Path(out), manifest)


def _digest(source: Source) -> str | None:
    """Return a SHA-256 of its files; None for a pipe, whose text is unknown."""
    if not all(path.is_file() for path in source.paths):
        return None
    return sha256("".join(sha256_of(path.resolve()) for path in source.paths).encode()).hexdigest()


def _tokenizer_values(tokenizer: TrainedTokenizer | LibraryTokenizer) -> dict[str, Any]:
    """Return the values of a tokenizer for the manifest."""
    values = TokenFacts.of(tokenizer).values()
    return {
        "tokenizer": tokenizer.digest(),
        "kind": tokenizer.vocab.kind,
        **values,
        "end": tokenizer.vocab.special_ids.get(tokenizer.end_of_document),
        "single": _frame(tokenizer, values["roles"], pair=False),
        "pair": _frame(tokenizer, values["roles"], pair=True),
    }


def _frame(tokenizer: TrainedTokenizer | LibraryTokenizer, roles: dict[str, int], *, pair: bool) -> list[list[Any]]:
    """Return the template as pairs of an id, "A" or "B", and a type id."""
    if isinstance(tokenizer, TrainedTokenizer):
        specials = tokenizer.vocab.special_ids
        return [[specials.get(token, token), kind] for token, kind in tokenizer.style.around(pair=pair)]
    end = tokenizer.vocab.special_ids.get(tokenizer.end_of_document)
    cls, sep = roles.get("cls_token", roles.get("bos_token")), roles.get("sep_token", end)
    if cls is None or sep is None:
        return [["A", 0], ["B", 1]] if pair else [["A", 0]]
    between, kind = ([[sep, 0]], 1) if "cls_token" in roles else ([[sep, 0], [sep, 0]], 0)
    return [[cls, 0], ["A", 0], *([*between, ["B", kind], [sep, kind]] if pair else [[sep, 0]])]


def _texts(batches: Iterator[tuple[int, list[str]]], owners: array[int], longest: list[int]) -> Iterator[Block]:
    """Yield the texts alone, and record the source of each document and the bytes of the longest one."""
    begun = False  # in the batch before
    size = 0
    for source, texts in batches:
        goes_on = texts[-1] != ""
        owners.extend([source] * (texts.count("") + goes_on - begun))
        begun = goes_on
        for text in texts:
            size = size + len(text.encode("utf-8", "surrogatepass")) if text else 0
            longest[0] = max(longest[0], size)
        yield Block.of(texts)


def _write_shards(
    marked: Iterator[Any], folder: Path, dtype: Any, shard_tokens: int, owners: array[int]
) -> list[dict[str, Any]]:
    """Write the text as shards, and return what the manifest says of each.

    A shard ends with the document that brings it to its size, or, so that memory does not depend on the longest document, before the
    sentence that begins at twice its size.
    """
    ids: list[NDArray[Any]] = []
    marks: list[NDArray[np.uint8]] = []
    lengths: list[NDArray[np.int64]] = []  # of the texts; an empty text ends a document
    ended: list[NDArray[np.bool_]] = []
    shards: list[dict[str, Any]] = []
    size = done = 0

    def close(*, goes_on: bool = False) -> None:
        nonlocal size, done
        if goes_on:
            lengths.append(np.zeros(1, np.int64))
            ended.append(np.ones(1, np.bool_))
        sizes, over = np.concatenate(lengths), np.concatenate(ended)
        n = int(over.sum())
        tokens = running(sizes)
        documents = np.concatenate([np.zeros(1, np.int64), tokens[1:][over]])
        within: NDArray[np.int64] = np.cumsum(over) - over
        kept = ~over & (sizes > 0)  # a fold may remove all that a sentence holds
        ends = tokens[1:][kept] - documents[within[kept]]
        sentences = running(np.bincount(within[kept], minlength=n))
        name = f"shard-{len(shards):05d}"
        _write_arrow(
            folder / f"{name}.arrow",
            np.concatenate(ids).astype(dtype),
            np.concatenate(marks),
            documents,
            ends,
            sentences,
            np.array(owners[done : done + n], np.uint16),
        )
        shards.append({"name": name, "tokens": size, "documents": n, "sentences": len(ends)})
        done += n - goes_on
        for held in (ids, marks, lengths, ended):
            held.clear()
        size = 0

    for texts, tokens, batch_marks in marked:
        over = texts.ends == texts.begins
        closes = np.flatnonzero(over) + 1
        at = 0
        while at < len(tokens):
            start = tokens.indptr[at] - size  # of the shard
            full = closes[np.searchsorted(tokens.indptr[closes], start + shard_tokens) :]
            last = int(full[0]) if len(full) else len(tokens)
            late = at + int(np.searchsorted(tokens.indptr[at:last], start + 2 * shard_tokens))
            goes_on = late < last and not over[late]
            last = late if goes_on else last
            begin, end = int(tokens.indptr[at]), int(tokens.indptr[last])
            ids.append(tokens.ids[begin:end].astype(dtype))
            marks.append(batch_marks[begin:end])
            lengths.append(np.diff(tokens.indptr[at : last + 1]))
            ended.append(over[at:last])
            size += end - begin
            if len(full) or goes_on:
                close(goes_on=goes_on)
            at = last
    if lengths:
        close()
    return shards


def _write_arrow(
    path: Path,
    ids: NDArray[Any],
    marks: NDArray[np.uint8],
    documents: NDArray[np.int64],
    ends: NDArray[np.int64],
    sentences: NDArray[np.int64],
    sources: NDArray[np.uint16],
) -> None:
    pa = arrow()

    def lists(offsets: NDArray[np.int64], values: Any) -> Any:
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))

    columns = {
        "ids": lists(documents, ids),
        "marks": lists(documents, marks),
        "sentences": lists(sentences, ends.astype(np.int32)),
        "source": pa.array(sources),
    }
    batch = pa.record_batch(list(columns.values()), list(columns))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
