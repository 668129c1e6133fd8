"""Every format in a folder, opened by its library through the adapters of `koktok.adapters`.

A `Reader` adds the properties that the checks need: texts that it cannot read, whether it normalizes. If a library is missing,
there is a reason in place of a reader.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koktok.adapters.huggingface_adapter import open_hf
from koktok.adapters.sentencepiece_adapter import SentencePiece, open_sp
from koktok.adapters.tiktoken_adapter import open_tiktoken
from koktok.errors import UsageError, asking
from koktok.files import read_utf8
from koktok.text.prefix import Prefix, with_prefix

if TYPE_CHECKING:
    from koktok.adapters import LibraryTokenizer
    from koktok.tokenizer import TrainedTokenizer


@dataclass(frozen=True)
class Unopened:
    """A format without a reader, with the reason, and whether that is a fault of the file."""

    why: str
    fault: bool = False


class Reader:
    """An opened format: the adapter of its library, and properties for the checks."""

    puts_space = takes_space = True
    slow = False  # whether only a sample of a large text is checked

    def __init__(
        self,
        name: str,
        adapter: LibraryTokenizer,
        *,
        normalized: bool = False,
        own_normalizer: bool = False,
        rounds: bool = False,
        puts_space: bool = True,
        takes_space: bool = True,
    ) -> None:
        self.name, self.adapter = name, adapter
        self.normalized, self.own_normalizer, self.rounds = normalized, own_normalizer, rounds
        self.puts_space, self.takes_space = puts_space, takes_space

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text; special tokens that a text spells stay text, and none are added."""
        return self.adapter.ids(texts)

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """Ids of each text with the special tokens that it spells; None if the format cannot read these."""
        if isinstance(self.adapter, SentencePiece):
            return None
        return [self.adapter.encode(text, allowed_special="all").ids for text in texts]

    def with_space(self, texts: list[str], *, prefix: Prefix) -> list[str]:
        """The texts with the prefix space, if the tokenizer adds one and the format does not."""
        return texts if self.puts_space else [with_prefix(text, prefix) for text in texts]

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row of ids; None if the format has no decoder."""
        return self.adapter.texts_of(rows)

    def reads(self, text: str, *, prefix: Prefix = "") -> bool:
        """Whether the library reads a text in the same way.

        The rules of SentencePiece end at a NUL, and only tokenizer.json separates the first space of a text from the prefix space.
        """
        of_sentencepiece = self.adapter.library == SentencePiece.library
        apart = prefix == "first" and text.startswith(" ") and (of_sentencepiece or not self.puts_space)
        return not apart and not (of_sentencepiece and "\0" in text)

    def pieces(self) -> Iterable[tuple[int, str]]:
        """Ids and their pieces, as `Vocab.tokens` spells them."""
        return ((i, piece) for i, piece in enumerate(self.adapter.tokens) if piece)


def auto_tokenizer(folder: Path) -> Any:
    """The tokenizer that `AutoTokenizer` opens from a folder, without code from it and without a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


class CodeOfItsOwnError(Exception):
    """A folder requires code of its own, which `verify` does not run."""


class TransformersFolder(Reader):
    """The folder in `transformers`, opened by `AutoTokenizer` without code from the folder."""

    slow = True

    def __init__(self, folder: Path) -> None:
        self.name, self.normalized, self.own_normalizer, self.rounds = "transformers", False, False, False
        with suppress(ValueError):  # transformers itself raises an error for a malformed file
            if "auto_map" in json.loads(read_utf8(folder / "tokenizer_config.json")):
                raise CodeOfItsOwnError("the folder requires code of its own (`auto_map`), which is not run here")
        self.library = auto_tokenizer(folder)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids with `split_special_tokens=True`."""
        with asking("transformers"):
            return list(self.library(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """Ids of a call without options."""
        with asking("transformers"):
            return list(self.library(texts, add_special_tokens=False)["input_ids"])

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return [self.library.decode(row) for row in rows]

    def reads(self, text: str, *, prefix: Prefix = "") -> bool:  # noqa: ARG002
        """True for every text."""
        return True

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All ids and their pieces."""
        return enumerate(self.library.convert_ids_to_tokens(list(range(len(self.library)))))


def _json(file: Path) -> Reader:
    return Reader(file.name, open_hf(file.name, file))


def _model(file: Path) -> Reader:
    model = open_sp(file.name, file)
    return Reader(
        file.name, model, normalized=True, own_normalizer=model.own_normalizer, rounds=True, takes_space=False
    )


def _ranks(folder: Path) -> Reader:
    encoding = open_tiktoken(folder.name, folder)
    return Reader(f"{encoding.ranks.name}.tiktoken", encoding, normalized=True, puts_space=False, takes_space=False)


def open_formats(
    tokenizer: TrainedTokenizer, folder: Path, more: Iterable[Path] = ()
) -> Iterator[tuple[str, Reader | Unopened]]:
    """The readers of the formats in a folder, or the reasons why there is none, by name."""
    for place in (folder, *more):
        at = "" if place == folder else f"{(place.resolve().parent if place.is_file() else place.resolve()).name}/"
        formats = list(_found(place))
        if place != folder and not formats and not ggufs(place):
            raise UsageError(
                f"expected an export of koktok, got `{place}`", hint="koktok export FOLDER --to hf --out NEW-FOLDER"
            )
        for name, module, extra, opened in formats:
            yield f"{at}{name}", _opened(module, extra, opened)
    if not (folder / "tokenizer.json").is_file():
        from koktok.formats.limits import unsupported_reason

        yield "tokenizer.json", Unopened(unsupported_reason("hf", tokenizer.vocab) or "not in the folder")


def ggufs(place: Path) -> list[Path]:
    """The GGUF files at a path; a single file is recognized by its first bytes."""
    if not place.is_file():
        return sorted(place.glob("*.gguf"))
    with place.open("rb") as file:
        return [place] if place.suffix == ".gguf" or file.read(4) == b"GGUF" else []


def _found(place: Path) -> Iterator[tuple[str, str, str, Callable[[], Reader]]]:
    """The formats at a path: name, module that runs it, extra that installs the module, function that opens it."""
    if place.is_file():
        if place.suffix == ".json":
            yield place.name, "tokenizers", "", lambda: _json(place)
        elif not ggufs(place):
            yield place.name, "sentencepiece", "", lambda: _model(place)
        return
    file = place / "tokenizer.json"
    if file.is_file():
        yield file.name, "tokenizers", "", lambda: _json(file)
        if (place / "tokenizer_config.json").is_file():
            yield "transformers", "transformers", "transformers", lambda: TransformersFolder(place)
    for model in sorted(place.glob("*.model")):
        yield model.name, "sentencepiece", "", lambda model=model: _model(model)  # type: ignore[misc]
    if (place / "tiktoken.json").is_file():
        name = next((file.name for file in sorted(place.glob("*.tiktoken"))), "tiktoken.json")
        yield name, "tiktoken", "tiktoken", lambda: _ranks(place)


def _opened(module: str, extra: str, opened: Callable[[], Reader]) -> Reader | Unopened:
    """A reader, or the reason why there is none."""
    if find_spec(module) is None:
        hint = f": pip install 'koktok[{extra}]'" if extra else ""
        return Unopened(f"the library `{module}` is not installed{hint}")
    try:
        return opened()
    except CodeOfItsOwnError as error:
        return Unopened(str(error))
    except Exception as error:  # each library has its own errors
        return Unopened(f"{module} refuses it: {error}".splitlines()[0], fault=True)
