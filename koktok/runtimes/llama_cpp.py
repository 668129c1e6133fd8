"""llama.cpp: a GGUF, alone or in the file of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import ArtifactError, UsageError
from koktok.model.definition import Definition
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes import gguf
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.runtime import Detected, Opening, Runtime, WrittenTable


class LlamaCpp(Runtime):
    """The file that llama.cpp loads."""

    name: ClassVar[str] = "gguf"
    options: ClassVar[frozenset[str]] = frozenset({"name", "into"})

    def detects(self, file: Path, data: bytes) -> Detected | None:
        """Nothing that koktok reads."""
        if data[:4] == b"GGUF":
            raise ArtifactError(
                f"`{file}` is a GGUF; koktok writes those, and reads the files that they are converted from",
                hint="koktok import tokenizer.json or tokenizer.model",
            )
        return None

    def write(self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, **options: Any) -> list[str]:
        """Write the vocabulary, or a copy of the model `into` with it."""
        table = gguf.table_of(one)
        notes = [f"llama.cpp runs it as `{table.model}`", *gguf.notes(table, one.normalizer)]
        return _written(tokenizer, table, notes, one.style.chat_template, out, force=force, **options)

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, **options: Any) -> list[str]:
        """The same with the vocabulary of an imported tokenizer."""
        table = tokenizer.gguf_vocab()
        notes = [f"llama.cpp runs it as `{table.model}`, pattern `{table.pre}`", *gguf.notes(table)]
        return _written(tokenizer, table, notes, "", out, force=force, **options)

    def readers(self, place: Path) -> Iterator[Opening]:
        """The files of a folder, or a file."""
        for file in (
            sorted(place.glob("*.gguf")) if place.is_dir() else [place] * (place.is_file() and gguf.is_gguf(place))
        ):
            yield Opening(file.name, "gguf", "gguf", lambda file=file: _table(file))  # type: ignore[misc]


def _written(
    tokenizer: Tokenizer,
    table: gguf.GgufVocab,
    notes: list[str],
    chat_template: str,
    out: Path,
    *,
    force: bool,
    name: str = "",
    into: str | Path | None = None,
) -> list[str]:
    if into is None:
        gguf.write(table, out, name=name or tokenizer.name, force=force)
        return [gguf.ALONE, *notes]
    if name:
        raise UsageError("`--name` does nothing with `--to gguf --into`", hint="koktok export --help")
    gguf.write_into(table, into, out, chat_template=chat_template)
    more = len(gguf.fitted(table, into).tokens) - len(table.tokens)
    return [*notes, *([f"the model has {more:,} rows more than there are ids; they are named [PAD…]"] if more else [])]


def _table(file: Path) -> WrittenTable:
    theirs = gguf.read(file)

    def rows(one: Definition) -> Iterator[tuple[str, object, object]]:
        ours = gguf.table_of(one)
        by_id = (
            list(zip(table.tokens, table.scores or table.tokens, table.types, strict=True)) for table in (ours, theirs)
        )
        for i, (expected, actual) in enumerate(zip_longest(*by_id)):
            yield f"id {i}", expected, actual
        for field in fields(ours):
            if field.name not in ("tokens", "scores", "types"):
                yield field.name, getattr(ours, field.name), getattr(theirs, field.name)

    return WrittenTable(lambda one: " ".join(gguf.notes(theirs, one.normalizer)), rows)
