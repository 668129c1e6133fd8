"""The tables that encode again: samples of the text, other texts, the vocabulary itself."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from koktok.errors import MissingExtraError
from koktok.foreign.base import ForeignTokenizer
from koktok.metrics.fertility import columns as count_columns
from koktok.metrics.fidelity import probes, round_trip
from koktok.metrics.language_model import ngram_table, segmentation_entropy
from koktok.metrics.probe import Labelled, probe
from koktok.metrics.robustness import contexts, noise
from koktok.metrics.statistics import Table, Units
from koktok.metrics.tokens import Page, Parallel, Text, Tokens
from koktok.metrics.vocabulary import vocabulary_counts
from koktok.progress import Tell
from koktok.text.unpack import zstd


def other_texts(
    tokenizer: ForeignTokenizer,
    *,
    parallel: Parallel | None,
    english: Text | None,
    code: Text | None,
    labelled: Labelled | None,
) -> dict[str, Table]:
    """Tables of parallel, English, program and labelled text, as far as they came."""
    tables = {}
    if parallel is not None:
        tokens = np.diff(tokenizer.encode(parallel.korean).indptr)
        other = np.diff(tokenizer.encode(parallel.other).indptr)
        share = np.divide(tokens, other, out=np.zeros(len(tokens)), where=other > 0)
        columns = {"tokens": tokens, "other_tokens": other, "premium": share, "pairs": (other > 0).astype(np.int64)}
        tables["parallel"] = Table(columns, Units.blocks(np.zeros(len(tokens), dtype=np.int64)))
    for name, text in (("english", english), ("code", code)):
        if text is not None and len(text):
            page = Page(text.lines)
            tables[name] = Table(count_columns(page, Tokens(page, tokenizer.encode(text.lines))), text.units.of)
    if labelled is not None:
        tables["probe"] = probe(tokenizer, labelled)
    return tables


def packed(tokenizer: ForeignTokenizer, text: Text) -> Table | None:
    """Bits of the ids and bytes of gzip and zstd, a row a domain; None for an open vocabulary."""
    if tokenizer.size is None:
        return None
    tokens = np.diff(tokenizer.encode(text.lines).indptr)
    rows: list[dict[str, float]] = []
    for k in range(len(text.names)):
        which = np.flatnonzero(text.domains == k)
        if not len(which):
            continue
        raw = "\n".join(text.lines[i] for i in which).encode()
        row = {
            "id_bits": float(tokens[which].sum() * np.log2(tokenizer.size)),
            "gzip": float(len(zlib.compress(raw, 9))),
        }
        with suppress(MissingExtraError):
            row["zstd"] = float(len(zstd().compress(raw, level=19)))
        rows.append(row)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Table(columns, np.zeros(len(rows), dtype=np.int64))


def sampled(
    tokenizer: ForeignTokenizer,
    text: Text | None,
    *,
    sample: int,
    seed: int,
    tell: Tell | None,
) -> tuple[dict[str, Table], dict[str, Any]]:
    """Tables of a sample of the text, and of the vocabulary."""

    def one(row: dict[str, float]) -> Table:
        return Table({k: np.array([v], dtype=np.float64) for k, v in row.items()}, np.zeros(1, dtype=np.int64))

    tables: dict[str, Table | None] = {}
    counted, passed = probes(tokenizer)
    tables["probes"] = one(counted)
    steps = 6
    tables["vocabulary"] = one(vocabulary_counts(tokenizer))
    if text is not None and len(text):
        few = text.sample(sample, seed)
        work: list[tuple[str, Callable[[], Table | None]]] = [
            ("round_trip", lambda: round_trip(tokenizer, few)),
            ("noise", lambda: noise(tokenizer, few, seed=seed)),
            ("contexts", lambda: contexts(tokenizer, few, seed=seed)),
            ("entropy", lambda: segmentation_entropy(tokenizer, few)),
            ("ngram", lambda: ngram_table(tokenizer, text.sample(10 * sample, seed))),
            ("packed", lambda: packed(tokenizer, text.sample(10 * sample, seed))),
        ]
        for number, (name, make) in enumerate(work):
            tables[name] = make()
            if tell:
                tell(f"{name} {tokenizer.name}", number + 1, steps)
    return {name: table for name, table in tables.items() if table is not None}, {"probes": passed}
