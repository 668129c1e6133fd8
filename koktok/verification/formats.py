"""Every format in a folder, opened by its library through the adapters of `koktok.runtimes`.

A `Reader` holds the tokenizer, and the properties that the checks need: texts that it cannot read, whether it normalizes. If a
library is missing, there is a reason in place of a reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from koktok.errors import UsageError, asking
from koktok.files import read_utf8
from koktok.runtimes.huggingface.adapter import open_hf
from koktok.runtimes.huggingface.auto_tokenizer import auto_tokenizer
from koktok.runtimes.huggingface.config_files import roles_of
from koktok.runtimes.library import LibraryTokenizer
from koktok.runtimes.sentencepiece.adapter import SentencePiece, open_sp
from koktok.runtimes.tiktoken.adapter import open_tiktoken
from koktok.text.prefix import Prefix, with_prefix
from koktok.tokenizer import TrainedTokenizer


@dataclass(frozen=True)
class Unopened:
    """A format without a reader, with the reason, and whether that is a fault of the file."""

    why: str
    fault: bool = False


@dataclass(frozen=True)
class Reader:
    """An opened format: the tokenizer of its library, and properties for the checks."""

    name: str
    tokenizer: LibraryTokenizer
    normalized: bool = False  # whether it reads normalized text only
    own_normalizer: bool = False  # whether it has another normalizer
    rounds: bool = False  # whether sums of scores are rounded
    puts_space: bool = True  # whether it adds the prefix space
    takes_space: bool = True  # whether its decoder takes it away
    slow: bool = False  # whether only a sample of a large text is checked

    def with_space(self, texts: list[str], *, prefix: Prefix) -> list[str]:
        """The texts with the prefix space, if the tokenizer adds one and the format does not."""
        return texts if self.puts_space else [with_prefix(text, prefix) for text in texts]

    def reads(self, text: str, *, prefix: Prefix = "") -> bool:
        """Whether the library reads a text in the same way.

        The rules of SentencePiece end at a NUL, and only tokenizer.json separates the first space of a text from the prefix space.
        """
        of_sentencepiece = self.tokenizer.library == SentencePiece.library
        apart = prefix == "first" and text.startswith(" ") and (of_sentencepiece or not self.puts_space)
        return not apart and not (of_sentencepiece and "\0" in text)


class CodeOfItsOwnError(Exception):
    """A folder requires code of its own, which `verify` does not run."""


class Transformers(LibraryTokenizer):
    """A folder that `AutoTokenizer` opens without code from the folder."""

    library: ClassVar[str] = "transformers"
    cuts_specials = True

    def __init__(self, folder: Path) -> None:
        with suppress(ValueError):  # transformers itself raises an error for a malformed file
            if "auto_map" in json.loads(read_utf8(folder / "tokenizer_config.json")):
                raise CodeOfItsOwnError("the folder requires code of its own (`auto_map`), which is not run here")
        self._auto = auto_tokenizer(folder)
        super().__init__(str(folder), "transformers", size=len(self._auto), digest="", libraries={})

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        """The ids of lines; `specials`: of a call without options."""
        split = {} if specials else {"split_special_tokens": True}
        with asking(self.library):
            return list(self._auto(list(lines), add_special_tokens=False, **split)["input_ids"])

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids."""
        return str(self._auto.decode(ids, skip_special_tokens=skip_special_tokens))

    @cached_property
    def roles(self) -> Mapping[str, str]:  # type: ignore[override]
        """The special token of each role."""
        return roles_of(self._auto.special_tokens_map)

    @cached_property
    def tokens(self) -> Sequence[str]:
        """The string of every id."""
        return self._auto.convert_ids_to_tokens(list(range(len(self._auto)))) or ()


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
        from koktok.runtimes.limits import unsupported_reason

        yield "tokenizer.json", Unopened(unsupported_reason("hf", tokenizer.definition) or "not in the folder")


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
            yield (
                "transformers",
                "transformers",
                "transformers",
                lambda: Reader("transformers", Transformers(place), slow=True),
            )
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
