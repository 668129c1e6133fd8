"""SentencePiece: a tokenizer.model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import UsageError
from koktok.files import read_bounded, write_file
from koktok.model.definition import Definition
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.runtime import Detected, Opening, Reader, Runtime
from koktok.runtimes.sentencepiece.adapter import SentencePiece, open_sp
from koktok.runtimes.sentencepiece.model_proto import differences, may_be_ours, model_proto


class ModelFile(Runtime):
    """The file that SentencePiece loads."""

    name: ClassVar[str] = "spm"
    library: ClassVar[str] = SentencePiece.library
    references: ClassVar[Mapping[str, str]] = {"sp": "sp:FILE.model, a SentencePiece model alone"}
    files: ClassVar[Mapping[str, str]] = {"sp": "a SentencePiece model"}
    openers: ClassVar[Mapping[str, Callable[..., LibraryTokenizer]]] = {"sp": open_sp}
    options: ClassVar[frozenset[str]] = frozenset({"user_defined"})

    def detects(self, file: Path, data: bytes) -> Detected | None:
        """Bytes that are neither JSON nor text, and text that calls itself a model."""
        if data.lstrip()[:1] == b"{":
            return None
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return Detected("sp", file)
        return Detected("sp", file) if file.suffix == ".model" else None

    def write(
        self,
        tokenizer: Tokenizer,  # noqa: ARG002
        one: Definition,
        out: Path,
        *,
        force: bool,
        user_defined: Sequence[str] = (),
        **_: Any,
    ) -> list[str]:
        """Write the file; `user_defined` are special tokens that SentencePiece recognizes in text."""
        write_file(out, model_proto(one, user_defined), ours=may_be_ours, force=force, what="model")
        notes = ["SentencePiece leaves the space before the first word when it decodes"] * bool(one.prefix)
        notes += ["a text that begins with a space may have other ids in SentencePiece"] * (one.prefix == "first")
        return notes + [f"not normalized by SentencePiece: {line}" for line in differences(one.normalizer)]

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, **options: Any) -> list[str]:
        """Write the bytes of an imported model."""
        if not isinstance(tokenizer, SentencePiece):
            raise UsageError(f"this tokenizer was imported from {tokenizer.library}, and is not a SentencePiece model")
        if options:
            raise UsageError("`--user-defined` is for koktok's own tokenizers")
        whole = tokenizer.data
        write_file(
            out, whole, ours=lambda file: may_be_ours(file) or file.read_bytes() == whole, force=force, what="model"
        )
        return []

    def imported(self, folder: Path, contents: Mapping[str, bytes]) -> SentencePiece:
        """A model."""
        return SentencePiece(contents["tokenizer.model"], spec=str(folder))

    def readers(self, place: Path) -> Iterator[Opening]:
        """The models of a folder, or a file."""
        alone = place.is_file() and self.detects(place, read_bounded(place)) is not None
        for file in sorted(place.glob("*.model")) if place.is_dir() else [place] * alone:
            yield Opening(file.name, "sentencepiece", "", lambda file=file: _reader(file))  # type: ignore[misc]


def _reader(file: Path) -> Reader:
    model = open_sp(file.name, file)
    return Reader(
        file.name,
        model,
        normalized=True,
        own_normalizer=model.own_normalizer,
        rounds=True,
        takes_space=False,
        marks_space=False,
        ends_at_nul=True,
    )
