"""Hugging Face: a folder for transformers and tokenizers, and the file that tokenizers 1.x reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import UsageError
from koktok.files import write_file, write_folder
from koktok.model.definition import Definition
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.conversion import agreement, hf_files
from koktok.runtimes.folder import TOKENIZER
from koktok.runtimes.huggingface.adapter import HuggingFace, open_hf
from koktok.runtimes.huggingface.auto_tokenizer import Transformers
from koktok.runtimes.huggingface.tokenizer_json import in_version_2, refuses, tokenizer_json
from koktok.runtimes.library import PROBES, LibraryTokenizer
from koktok.runtimes.probe import PROBE, probe_json
from koktok.runtimes.runtime import Opening, Reader, Runtime

LOOKS = (
    *(
        "style",
        "template",
        "eos",
        "chat_template",
        "model_max_length",
        "padding_side",
        "truncation_side",
        "trim_offsets",
    ),
    "pad_to_multiple",
)
"""Fields of the recipe that may be another's in a folder for transformers: the ids of text stay the same."""


class Folder(Runtime):
    """tokenizer.json and the files beside it."""

    name: ClassVar[str] = "hf"
    options: ClassVar[frozenset[str]] = frozenset(LOOKS)
    is_koktoks: ClassVar[bool] = True

    def write(self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, **_: Any) -> list[str]:
        """Save the tokenizer, whose style is the wanted one."""
        _check(one)
        tokenizer.save(out, force=force)
        return []

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, **looks: Any) -> list[str]:
        """Write its definition as tokenizer.json, and say for how many hard texts it gives the same ids."""
        if looks:
            raise UsageError("styles are for koktok's own tokenizers; an imported one keeps its special tokens")
        files = hf_files(tokenizer)
        different = agreement(tokenizer, files)
        files[PROBE] = probe_json(HuggingFace(str(files["tokenizer.json"])).ids)
        write_folder(out, files, TOKENIZER, force=force)
        same = f"{len(PROBES) - len(different)} of {len(PROBES)} hard texts get the same ids as from the source"
        return [same, *(f"other ids for {probe!r}" for probe in different[:5])]

    def readers(self, place: Path) -> Iterator[Opening]:
        """tokenizer.json in tokenizers, and its folder in transformers."""
        file = place / "tokenizer.json" if place.is_dir() else place
        if file.is_file() and file.suffix == ".json":
            yield Opening(
                file.name,
                "tokenizers",
                "",
                lambda: Reader(file.name, open_hf(file.name, file), has_offsets=True),
            )
        if place.is_dir() and file.is_file() and (place / "tokenizer_config.json").is_file():
            name = "transformers"
            yield Opening(name, name, name, lambda: Reader(name, Transformers(place), slow=True))


class Version2(Runtime):
    """A tokenizer.json of version 2.0."""

    name: ClassVar[str] = "hf2"

    def write(self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, **_: Any) -> list[str]:
        """Write the file."""
        _check(one)
        more = ["a text that begins with a space loses it"] if one.prefix == "first" else []
        return [*self._write(in_version_2(tokenizer_json(one), tokenizer.roles), out, force=force), *more]

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, **_: Any) -> list[str]:
        """Write its tokenizer.json in that version."""
        return self._write(in_version_2(str(hf_files(tokenizer)["tokenizer.json"]), {}), out, force=force)

    def _write(self, text: str, out: Path, *, force: bool) -> list[str]:
        data = text.encode()
        write_file(out, data, ours=lambda file: file.read_bytes() == data, force=force, what="tokenizer.json")
        return ["tokenizers 0.x does not read version 2.0, and the format may change before tokenizers 1.0"]

    def readers(self, place: Path) -> Iterator[Opening]:  # noqa: ARG002
        """Nothing: the installed tokenizers does not read it."""
        return iter(())


def _check(one: Definition) -> None:
    if reason := refuses(one):
        raise UsageError(f"no tokenizer.json: {reason}", hint="koktok train TEXT --model unigram --out FOLDER")
