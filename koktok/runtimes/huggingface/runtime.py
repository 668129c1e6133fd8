"""Hugging Face: a folder for transformers and tokenizers, and the file that tokenizers 1.x reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from koktok.errors import InputError, UsageError
from koktok.files import write_file, write_folder
from koktok.model.definition import Definition
from koktok.model.special import NO_LIMIT
from koktok.model.vocab import UNKNOWN
from koktok.protocol.agree import Ids, agree
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.folder import TOKENIZER
from koktok.runtimes.huggingface.adapter import HuggingFace, open_hf
from koktok.runtimes.huggingface.auto_tokenizer import Transformers, open_folder, open_vocabulary
from koktok.runtimes.huggingface.config_files import SAVED, has_merges, is_of_transformers
from koktok.runtimes.huggingface.tokenizer_json import in_version_2, refuses, tokenizer_json
from koktok.runtimes.library import PROBES, LibraryTokenizer
from koktok.runtimes.probe import PROBE, probe_json
from koktok.runtimes.runtime import Detected, Opening, Reader, Runtime

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
    library: ClassVar[str] = HuggingFace.library
    references: ClassVar[Mapping[str, str]] = {
        "hf": "hf:PATH, a folder as transformers opens it, or a tokenizer.json alone",
        "wordpiece": "wordpiece:vocab.txt, a BERT vocabulary",
        "gpt2": "gpt2:vocab.json, with its merges.txt beside it",
    }
    files: ClassVar[Mapping[str, str]] = {
        "hf": "a tokenizer.json",
        "wordpiece": "a vocab.txt",
        "gpt2": "a vocab.json with its merges.txt",
        "transformers": "a folder of transformers",
    }
    openers: ClassVar[Mapping[str, Callable[..., LibraryTokenizer]]] = {
        "transformers": open_folder,
        "hf": open_hf,
        "wordpiece": open_vocabulary,
        "gpt2": open_vocabulary,
    }
    options: ClassVar[frozenset[str]] = frozenset(LOOKS)
    is_koktoks: ClassVar[bool] = True

    def detects(self, file: Path, data: bytes) -> Detected | None:
        """Any other JSON, and a list of pieces with an unknown one."""
        if data.lstrip()[:1] == b"{":
            return Detected("gpt2" if file.name == "vocab.json" and has_merges(file) else "hf", file)
        pieces = [line.split("\t")[0] for line in data.decode("utf-8").splitlines()]
        words = [piece for piece in pieces if piece and not (piece[0] in "[<" and piece[-1] in "]>")]
        alone = max(map(len, words), default=0) == 1  # KoCharELECTRA: characters, not pieces of words
        is_list = not alone and b"\t" not in data and any(name in pieces for name in UNKNOWN)
        return Detected("wordpiece", file) if is_list else None

    def detects_folder(self, folder: Path) -> Detected | None:
        """A folder of which files say how transformers reads its vocabulary."""
        return Detected("transformers", folder) if is_of_transformers(folder) else None

    def write(self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, **_: Any) -> list[str]:
        """Save the tokenizer, whose style is the wanted one."""
        _check(one)
        tokenizer.save(out, force=force)
        return []

    def convert(self, tokenizer: LibraryTokenizer, out: Path, *, force: bool, **looks: Any) -> list[str]:
        """Write its definition as tokenizer.json, and say for how many hard texts it gives the same ids."""
        if looks:
            raise UsageError("styles are for koktok's own tokenizers; an imported one keeps its special tokens")
        files = files_for_transformers(tokenizer)
        different = agreement(tokenizer, files)
        files[PROBE] = probe_json(HuggingFace(str(files["tokenizer.json"])).ids)
        write_folder(out, files, TOKENIZER, force=force)
        same = f"{len(PROBES) - len(different)} of {len(PROBES)} hard texts get the same ids as from the source"
        return [same, *(f"other ids for {probe!r}" for probe in different[:5])]

    def imported(self, folder: Path, contents: Mapping[str, bytes]) -> HuggingFace:
        """A tokenizer.json with the files beside it."""
        beside = {name: data for name, data in contents.items() if name in SAVED}
        return HuggingFace(contents["tokenizer.json"].decode("utf-8"), beside, spec=str(folder))

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
            yield Opening(name, name, name, lambda: Reader(name, Transformers(place), has_roles=True, slow=True))


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
        return self._write(in_version_2(str(files_for_transformers(tokenizer)["tokenizer.json"]), {}), out, force=force)

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


# --- Imported tokenizers ----------------------------------------------------------------------------------------------


def files_for_transformers(adapter: LibraryTokenizer) -> dict[str, str | bytes]:
    """A folder for transformers: tokenizer.json and tokenizer_config.json, those that it has unchanged."""
    files = adapter.files()
    if "tokenizer.json" not in files:
        files = {"tokenizer.json": json.dumps(adapter.tokenizer_json(), ensure_ascii=False, indent=2) + "\n"}
    return {**files, "tokenizer_config.json": files.get("tokenizer_config.json", bare_config(adapter))}


def bare_config(adapter: LibraryTokenizer) -> str:
    """A tokenizer_config.json for an imported tokenizer that has none."""
    config = {
        **adapter.roles,
        "clean_up_tokenization_spaces": False,
        "model_max_length": NO_LIMIT,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return json.dumps(config, ensure_ascii=False, indent=2) + "\n"


def agreement(adapter: LibraryTokenizer, files: Mapping[str, str | bytes]) -> list[str]:
    """The hard texts (`PROBES`) for which the tokenizer.json of `files` gives other ids than `adapter`."""
    text = files["tokenizer.json"]
    other = HuggingFace(text if isinstance(text, str) else text.decode("utf-8"))

    def ids(read: Callable[[str], Sequence[int]]) -> Ids:
        def row(line: str) -> Sequence[int] | None:
            try:
                return read(line)
            except InputError:  # the library refuses it
                return None

        return lambda lines: [*map(row, lines)]

    theirs, ours = ids(lambda line: other.read(line)[0]), ids(lambda line: adapter.encode(line).ids)
    return [example.line for example in agree(theirs, ours, PROBES, examples=len(PROBES)).examples]
