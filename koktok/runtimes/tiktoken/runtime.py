"""tiktoken: a folder of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import ArtifactError, UsageError
from koktok.files import write_folder
from koktok.model.definition import Definition
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.runtime import Detected, Opening, Reader, Runtime
from koktok.runtimes.tiktoken.adapter import Tiktoken, open_ranks, open_tekken, open_tiktoken
from koktok.runtimes.tiktoken.ranks import EXPORT, SPEC, files, load, ranks_from_text, ranks_of


class RanksFolder(Runtime):
    """NAME.tiktoken, and tiktoken.json with the rest of a `tiktoken.Encoding`."""

    name: ClassVar[str] = "tiktoken"
    library: ClassVar[str] = Tiktoken.library
    references: ClassVar[Mapping[str, str]] = {
        "tiktoken": "tiktoken:FILE#PATTERN, ranks and a pattern (cl100k, o200k, ..., or a file), or a folder of koktok's export",
        "tekken": "tekken:FILE.json, Mistral's ranks",
    }
    files: ClassVar[Mapping[str, str]] = {"tiktoken": "a tiktoken ranks file", "tekken": "a tekken.json"}
    stands_alone: ClassVar[bool] = True
    openers: ClassVar[Mapping[str, Callable[..., LibraryTokenizer]]] = {
        "tiktoken": open_tiktoken,
        "ranks": open_ranks,
        "tekken": open_tekken,
    }
    options: ClassVar[frozenset[str]] = frozenset({"name"})

    def detects(self, file: Path, data: bytes) -> Detected | None:
        """Ranks, whatever their name is: Llama 3 calls them tokenizer.model."""
        if data.lstrip()[:1] == b"{":
            if file.name == SPEC:
                return Detected("tiktoken", file.parent)
            return Detected("tekken", file) if b'"token_bytes"' in data[:4096] else None
        try:
            ranks_from_text(next((line for line in data.decode("utf-8").splitlines() if line.strip()), ""))
        except UnicodeDecodeError:
            return None
        except ArtifactError:
            return Detected("tiktoken", file) if file.suffix == ".tiktoken" else None
        return Detected("tiktoken", file)

    def write(
        self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, name: str = "", **_: Any
    ) -> list[str]:
        """Write the folder."""
        ranks = ranks_of(one, name or tokenizer.name)
        write_folder(out, files(ranks, one.normalizer.signature(), one.pattern.javascript), EXPORT, force=force)
        notes = [
            "tiktoken puts no space before the first word: pass ' ' + text, and remove the space after decoding"
        ] * bool(one.prefix)
        return [*notes, "tiktoken has no normalizer: give it text that is normalized already (koktok normalize)"]

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, name: str = "", **_: Any) -> list[str]:
        """Write imported ranks."""
        if not isinstance(tokenizer, Tiktoken):
            raise UsageError(f"this tokenizer was imported from {tokenizer.library}, and has no ranks")
        write_folder(out, files(replace(tokenizer.ranks, name=name or tokenizer.name)), EXPORT, force=force)
        return []

    def imported(self, folder: Path, contents: Mapping[str, bytes]) -> Tiktoken:  # noqa: ARG002
        """Ranks."""
        return Tiktoken(load(folder), spec=str(folder))

    def readers(self, place: Path) -> Iterator[Opening]:
        """The ranks of a folder."""
        if (place / SPEC).is_file():
            name = next((file.name for file in sorted(place.glob("*.tiktoken"))), SPEC)
            yield Opening(name, "tiktoken", "tiktoken", lambda: _reader(place))


def _reader(folder: Path) -> Reader:
    encoding = open_tiktoken(folder.name, folder)
    name = f"{encoding.ranks.name}.tiktoken"
    return Reader(name, encoding, normalized=True, puts_space=False, takes_space=False, marks_space=False)
