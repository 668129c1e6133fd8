"""Every format in a folder, opened by the library that runs it in the world, through the adapters of `koktok.foreign`.

What a check has to know of a format besides (a text it cannot read, no normalizer of its own). Where a
library is missing there is no reader, but the reason.
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

from koktok.errors import UsageError
from koktok.foreign.huggingface_adapter import open_hf
from koktok.foreign.sentencepiece_adapter import SentencePiece, open_sp
from koktok.foreign.tiktoken_adapter import open_tiktoken
from koktok.text.prefix import Prefix, with_prefix

if TYPE_CHECKING:
    from koktok.foreign import LibraryTokenizer
    from koktok.tokenizer import TrainedTokenizer


@dataclass(frozen=True)
class Unopened:
    """A format without a reader: `why`, and whether that is a fault of the file."""

    why: str
    fault: bool = False


class Reader:
    """A format, opened: the adapter of the library that runs it, and what a check has to know besides."""

    puts_space = takes_space = True
    slow = False
    """True where only a sample of a large text is worth the time."""

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
        """Ids of each text; special tokens that a text spells are text, and none are added."""
        return self.adapter.ids(texts)

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """Ids of each text, special tokens that it spells read as such; None where the format cannot."""
        return self.adapter.ids_with_specials(texts)

    def with_space(self, texts: list[str], *, prefix: Prefix) -> list[str]:
        """What the format must be given where the tokenizer begins with a `prefix` space and the format does not put it."""
        return texts if self.puts_space else [with_prefix(text, prefix) for text in texts]

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row of ids; None where the format has no decoder of ours."""
        return self.adapter.texts_of(rows)

    def reads(self, text: str, *, prefix: Prefix = "") -> bool:
        """False for a text that the library reads in another way by design.

        SentencePiece's strings of rules end at a NUL, and nothing but tokenizer.json cuts a space that a text begins with from the one
        before it.
        """
        of_sentencepiece = self.adapter.library == SentencePiece.library
        apart = prefix == "first" and text.startswith(" ") and (of_sentencepiece or not self.puts_space)
        return not apart and not (of_sentencepiece and "\0" in text)

    def pieces(self) -> Iterable[tuple[int, str]]:
        """Ids and their pieces, as `Vocab.tokens` spells them."""
        return ((i, piece) for i, piece in enumerate(self.adapter.tokens) if piece)


def auto_tokenizer(folder: Path) -> Any:
    """What `AutoTokenizer` of the installed transformers builds from a folder, without its code and without a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


class CodeOfItsOwnError(Exception):
    """A folder asks for code that `verify` does not run."""


class TransformersFolder(Reader):
    """The folder in the library `transformers`, as `AutoTokenizer` opens it, without any code from the folder."""

    slow = True

    def __init__(self, folder: Path) -> None:
        self.name, self.normalized, self.own_normalizer, self.rounds = "transformers", False, False, False
        with suppress(ValueError):  # transformers says itself what is wrong with the file
            if "auto_map" in json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")):
                raise CodeOfItsOwnError("the folder asks for code of its own (`auto_map`), which is not run here")
        self.library = auto_tokenizer(folder)

    def encode(self, texts: list[str]) -> list[list[int]]:
        """With the call-time `split_special_tokens=True`."""
        return list(self.library(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """The library's default."""
        return list(self.library(texts, add_special_tokens=False)["input_ids"])

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return [self.library.decode(row) for row in rows]

    def reads(self, text: str, *, prefix: Prefix = "") -> bool:  # noqa: ARG002
        """Every text."""
        return True

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All rows."""
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
    """The readers of a folder, or why there is none, by name."""
    for place in (folder, *more):
        at = "" if place == folder else f"{(place.resolve().parent if place.is_file() else place.resolve()).name}/"
        found = list(_found(place))
        if place != folder and not found and not ggufs(place):
            raise UsageError(
                f"`{place}` is nothing that `koktok export` wrote", hint="koktok export FOLDER --to hf --out NEW-FOLDER"
            )
        for name, module, extra, opened in found:
            yield f"{at}{name}", _opened(module, extra, opened)
    if not (folder / "tokenizer.json").is_file():
        from koktok.formats.limits import unsupported_reason

        yield "tokenizer.json", Unopened(unsupported_reason("hf", tokenizer.vocab) or "not in the folder")


def ggufs(place: Path) -> list[Path]:
    """The GGUF files at a place; one that is named itself is told by its first bytes."""
    if not place.is_file():
        return sorted(place.glob("*.gguf"))
    with place.open("rb") as file:
        return [place] if place.suffix == ".gguf" or file.read(4) == b"GGUF" else []


def _found(place: Path) -> Iterator[tuple[str, str, str, Callable[[], Reader]]]:
    """What lies at a place: name, module that runs it, extra that brings the module, how to open it."""
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
        name = next((found.name for found in sorted(place.glob("*.tiktoken"))), "tiktoken.json")
        yield name, "tiktoken", "tiktoken", lambda: _ranks(place)


def _opened(module: str, extra: str, opened: Callable[[], Reader]) -> Reader | Unopened:
    """A reader, or why there is none."""
    if find_spec(module) is None:
        hint = f": pip install 'koktok[{extra}]'" if extra else ""
        return Unopened(f"the library `{module}` is not installed{hint}")
    try:
        return opened()
    except CodeOfItsOwnError as error:
        return Unopened(str(error))
    except Exception as error:  # each library has errors of its own; all mean that it refuses the file
        return Unopened(f"{module} refuses it: {error}".splitlines()[0], fault=True)
