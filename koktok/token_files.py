"""Token files for pre-training: flat ids that are mapped into memory, with the borders of documents, in shards.

A run that was killed continues after its last finished shard (see `koktok.files.resume`), if the
text is still the same.

A *document* is a line of a text file or a record of JSON lines or of a table, as `koktok.text.sources.read` gives them, or a
whole file, with the line break at its end. No document is in two shards: a shard ends with the document that brings it to `shard_tokens`.

========= ==========================================================================================================
format    what a shard is
========= ==========================================================================================================
``npy``   ``shard-00000.npy``: the ids; ``shard-00000.offsets.npy``: where documents begin and end (int64, one more than
          there are documents). ``numpy.load(path, mmap_mode="r")``.
``bin``   ``shard-00000.bin``: nothing but the ids, little-endian, as nanoGPT reads them
          (``numpy.memmap(path, dtype="uint16")``); ``shard-00000.idx``: the index of Megatron-LM's ``IndexedDataset``, a
          sequence and a document for each document. That format has no uint32: wider ids are int32.
``arrow`` ``shard-00000.arrow``: an Arrow IPC file with one column ``ids`` (large_list of integers), a row a document.
========= ==========================================================================================================

``manifest.json`` records the tokenizer (digest, version of koktok), the text (digest of every source), and the content of each
shard; ``tokens.sha256`` is the list of checksums.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from koktok.bulk.arrays import id_type
from koktok.errors import InputError, MissingExtraError, UsageError
from koktok.files import MANIFEST, Checkpoint, Product, resumable, typed
from koktok.model.special import special_tokens
from koktok.model.tokens import Tokens
from koktok.progress import OnProgress
from koktok.protocol.tokenizer import Tokenizer
from koktok.text.blocks import Block
from koktok.text.records import ReadReport
from koktok.text.sources import Source, read

Format = Literal["npy", "arrow", "bin"]
Documents = Literal["records", "files"]

LAYOUT = 1
"""Version of the folder."""

TOKENS: Final = Product("tokens.sha256", "folder of token files", frozenset({MANIFEST}))

SHARD_TOKENS = 1 << 26
"""A shard of 16-bit ids is then 128 MiB, which is also what a run holds in memory."""

_MEGATRON_TYPES = {"uint16": 8, "int32": 4}


def write_token_files(
    tokenizer: Tokenizer,
    sources: Source | Sequence[Source],
    out: str | Path,
    *,
    format: Format = "npy",  # noqa: A002
    shard_tokens: int = SHARD_TOKENS,
    documents: Documents = "records",
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    threads: int | None = None,
    report: ReadReport | None = None,
    on_progress: OnProgress | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Encode sources into a folder, or continue a run that was stopped; returns its manifest."""
    if format not in get_args(Format):
        raise UsageError(f"`{format}` is not a format of token files", hint=f"--format {' or '.join(get_args(Format))}")
    if shard_tokens < 1:
        raise UsageError(f"shard_tokens = {shard_tokens}; expected at least 1", hint=f"--shard-tokens {SHARD_TOKENS}")
    sources = [sources] if isinstance(sources, Source) else list(sources)
    if format == "arrow":
        _pyarrow()
    ids = tokenizer.vocab.special_ids
    for names, option in ((before, "before"), (after, "after")):
        special_tokens(names, ids, option)
    dtype = id_type(tokenizer.vocab.size)
    if format == "bin" and dtype == np.uint32:
        dtype = np.dtype(np.int32)
    recipe = getattr(tokenizer, "recipe", None)  # a foreign one has none
    run = {
        "layout": LAYOUT,
        "format": format,
        "dtype": dtype.name,
        "documents": documents,
        "before": list(before),
        "after": list(after),
        "tokenizer": tokenizer.vocab.digest(),
        "recipe": recipe.model_dump(mode="json", exclude_defaults=True) if recipe else {},
        "koktok": version("koktok"),
        "shard_tokens": shard_tokens,
        "sources": [source.name for source in sources],
    }
    report = report or ReadReport()

    def make(notes: Checkpoint) -> dict[str, Any]:
        blocks = _skip_finished(_blocks(sources, documents, report, on_progress), notes)
        stream = tokenizer.bulk_encoder.stream(
            blocks, threads=threads, dtype=dtype, before=[ids[t] for t in before], after=[ids[t] for t in after]
        )
        _write_shards(stream, notes, dtype, format, shard_tokens)
        return {
            "tokens": sum(shard["tokens"] for shard in notes.parts),
            "text_sha256": report.digests,
            "bad_lines": report.bad_lines,
        }

    def same(there: dict[str, Any]) -> bool:
        for _ in _blocks(sources, documents, report, on_progress):
            pass
        return bool(report.digests == there.get("text_sha256"))

    return resumable(out, TOKENS, run, make, same=same, force=force)


def _write_shards(
    stream: Iterable[tuple[Any, Tokens]],
    notes: Checkpoint,
    dtype: np.dtype[Any],
    format: Format,  # noqa: A002
    shard_tokens: int,
) -> None:
    """Write the rest of the text, as shards that follow those in the notes."""
    held: list[Tokens] = []
    size, digest = 0, hashlib.sha256()

    def close() -> None:
        nonlocal held, size, digest
        tokens = Tokens.joined(held or [Tokens(np.empty(0, dtype), np.zeros(1, np.int64))], dtype)
        name = f"shard-{len(notes.parts):05d}"
        _WRITERS[format](notes.folder / name, tokens)
        files = sorted(file.name for file in notes.folder.glob(f"{name}.*"))
        note = {"name": name, "tokens": size, "documents": len(tokens), "text_sha256": digest.hexdigest()}
        notes.add(note, files)
        held, size, digest = [], 0, hashlib.sha256()

    for batch, tokens in stream:
        at = 0
        while at < len(tokens):
            # The first document that brings the shard to its size is its last.
            wanted = tokens.indptr[at] + shard_tokens - size
            last = min(int(np.searchsorted(tokens.indptr, wanted)), len(tokens))
            last = max(last, at + 1)
            begin, end = int(tokens.indptr[at]), int(tokens.indptr[last])
            held.append(Tokens(tokens.ids[begin:end], tokens.indptr[at : last + 1] - begin))
            digest.update(batch.content(at, last))
            size += end - begin
            if size >= shard_tokens:
                close()
            at = last
    if held or not notes.parts:
        close()


def _skip_finished(blocks: Iterator[Block], notes: Checkpoint) -> Iterator[Block]:
    """Skip the texts of finished shards, and check that they are those that were encoded."""
    for shard in notes.parts:
        digest, left = hashlib.sha256(), shard["documents"]
        while left and (block := next(blocks, None)) is not None:
            texts = block.documents()
            digest.update("".join(f"{text}\0" for text in texts[:left]).encode())
            blocks = chain([Block.of(texts[left:])], blocks) if left < len(texts) else blocks
            left -= min(left, len(texts))
        if left or digest.hexdigest() != shard["text_sha256"]:
            work = notes.notes.parent
            raise InputError(
                f"the text is not the one that {shard['name']} in `{work}` was made from", hint=f"rm -r {typed(work)}"
            )
    return blocks


def _blocks(
    sources: list[Source], documents: Documents, report: ReadReport, on_progress: OnProgress | None
) -> Iterator[Block]:
    def report_read(done: int, total: int | None) -> None:
        if on_progress:
            on_progress("encode", done, total)

    if documents == "records":
        yield from read(sources, report=report, on_progress=report_read, may_be_empty=True)
        return
    for source in sources:
        digest = hashlib.sha256()
        for path in source.paths:
            one = ReadReport()
            blocks = read(Source(source.name, (path,), field=source.field), report=one, may_be_empty=True)
            whole = "\n".join(document for some in blocks for document in some.documents())
            block = Block.of([f"{whole}\n" if one.ended else whole])
            digest.update(block.data)
            report.add(one)
            yield block
        report.digests[source.name] = digest.hexdigest()


def _write_npy(stem: Path, tokens: Tokens) -> None:
    for suffix, array in ((".npy", tokens.ids), (".offsets.npy", tokens.indptr)):
        with stem.with_suffix(suffix).open("wb") as file:
            np.save(file, array)


def _write_megatron(stem: Path, tokens: Tokens) -> None:
    little = tokens.ids.astype(tokens.ids.dtype.newbyteorder("<"), copy=False)
    with stem.with_suffix(".bin").open("wb") as file:
        file.write(little.data)
    # Megatron-LM, megatron/core/datasets/indexed_dataset.py: magic, version, type, number of sequences, of entries of the
    # last table; lengths (int32), byte offsets (int64), and with which sequence each document ends (int64, from 0).
    n = len(tokens)
    lengths = np.diff(tokens.indptr)
    places = tokens.indptr[:-1] * tokens.ids.dtype.itemsize
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, _MEGATRON_TYPES[tokens.ids.dtype.name], n, n + 1)
    body = (lengths.astype("<i4"), places.astype("<i8"), np.arange(n + 1, dtype="<i8"))
    stem.with_suffix(".idx").write_bytes(head + b"".join(part.tobytes() for part in body))


def _write_arrow(stem: Path, tokens: Tokens) -> None:
    pa = _pyarrow()
    column = pa.LargeListArray.from_arrays(pa.array(tokens.indptr), pa.array(tokens.ids))
    batch = pa.record_batch([column], ["ids"])
    path = stem.with_suffix(".arrow")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow") from None
    return pyarrow


_WRITERS: dict[str, Callable[[Path, Tokens], None]] = {
    "npy": _write_npy,
    "bin": _write_megatron,
    "arrow": _write_arrow,
}
