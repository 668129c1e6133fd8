"""Every format in a folder, opened by the library that runs it in the world.

This file adds: one face for all of them. A reader encodes texts, decodes ids, and tells its pieces; what a format cannot
do (a text it cannot read, no normalizer of its own) it says itself. Where a library is missing there is no reader, but the
reason.
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
from koktok.foreign.engines import parsed
from koktok.foreign.trial import prove
from koktok.vocab import BYTE_CHARS

if TYPE_CHECKING:
    from koktok.tokenizer import Tokenizer

__all__ = ["HuggingFace", "Reader", "SentencePiece", "TikToken", "Transformers", "Unopened", "ggufs", "open_formats"]


@dataclass(frozen=True)
class Unopened:
    """A format without a reader: `why`, and whether that is a fault of the file."""

    why: str
    fault: bool = False


class Reader:
    """A format, opened.

    Attributes
    ----------
    name : str
        The file, or the library where it reads the folder.
    normalized : bool
        True where the format has no normalizer of ours and wants normal text.
    own_normalizer : bool
        True where it has a normalizer of its own all the same, which may do less than ours.
    rounds : bool
        True where it sums scores in 32 bits over a whole line, which rounds on lines of thousands of tokens.
    slow : bool
        True where only a sample of a large text is worth the time.
    """

    name = ""
    normalized = False
    own_normalizer = False
    rounds = False
    slow = False

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text; special tokens that a text spells are text, and none are added."""
        raise NotImplementedError

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:  # noqa: ARG002
        """Ids of each text, special tokens that it spells read as such; None where the format cannot."""
        return None

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row of ids; None where the format has no decoder of ours."""
        raise NotImplementedError

    def reads(self, text: str) -> bool:  # noqa: ARG002
        """False for a text that the library cannot take."""
        return True

    def pieces(self) -> Iterable[tuple[int, str]]:
        """Ids and their pieces, as `Vocab.tokens` spells them."""
        raise NotImplementedError


class HuggingFace(Reader):
    """tokenizer.json in the library `tokenizers`."""

    name = "tokenizer.json"

    def __init__(self, file: Path) -> None:
        import tokenizers

        text = file.read_text(encoding="utf-8")
        prove("tokenizers", text, where=file.name, content=parsed(text, file.name))
        self.library = tokenizers.Tokenizer.from_str(text)
        self.library.no_padding()
        self.library.no_truncation()

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text, on all cores."""
        self.library.encode_special_tokens = True
        return [row.ids for row in self.library.encode_batch_fast(texts, add_special_tokens=False)]

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """The library's default."""
        self.library.encode_special_tokens = False
        return [row.ids for row in self.library.encode_batch_fast(texts, add_special_tokens=False)]

    def offsets(self, texts: list[str]) -> list[list[tuple[int, int]]]:
        """Offsets of each text's tokens."""
        self.library.encode_special_tokens = True
        return [row.offsets for row in self.library.encode_batch(texts, add_special_tokens=False)]

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return list(self.library.decode_batch(rows, skip_special_tokens=False))

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All rows, special tokens too."""
        return sorted((i, piece) for piece, i in self.library.get_vocab(with_added_tokens=True).items())


class CodeOfItsOwnError(Exception):
    """A folder asks for code that `verify` does not run."""


class Transformers(Reader):
    """The folder in the library `transformers`, as `AutoTokenizer` opens it, without any code from the folder."""

    name = "transformers"
    slow = True

    def __init__(self, folder: Path) -> None:
        with suppress(ValueError):  # transformers says itself what is wrong with the file
            if "auto_map" in json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")):
                raise CodeOfItsOwnError("the folder asks for code of its own (`auto_map`), which is not run here")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from transformers import AutoTokenizer

            self.library: Any = AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )

    def encode(self, texts: list[str]) -> list[list[int]]:
        """With the call-time `split_special_tokens=True`."""
        return list(self.library(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """The library's default."""
        return list(self.library(texts, add_special_tokens=False)["input_ids"])

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return [self.library.decode(row) for row in rows]

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All rows."""
        return enumerate(self.library.convert_ids_to_tokens(list(range(len(self.library)))))


class SentencePiece(Reader):
    """tokenizer.model in the library `sentencepiece`."""

    normalized = True
    rounds = True

    def __init__(self, file: Path) -> None:
        import sentencepiece

        self.name = file.name
        model = file.read_bytes()
        prove("sentencepiece", model, where=file.name)
        self.library = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.own_normalizer = self.library.normalize("\ufeff") != "\ufeff"

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text."""
        return list(self.library.encode(texts))

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return list(self.library.decode(rows))

    def reads(self, text: str) -> bool:
        """The library's strings of rules end at a NUL."""
        return "\0" not in text

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All rows."""
        return enumerate(map(self.library.id_to_piece, range(self.library.get_piece_size())))


class TikToken(Reader):
    """A ranks file in the library `tiktoken`."""

    normalized = True

    def __init__(self, folder: Path) -> None:
        from koktok.formats import tiktoken

        ranks = tiktoken.load(folder)
        self.name = f"{ranks.name}.tiktoken"
        self._ranks = ranks
        prove("tiktoken", ranks.pattern, dict(ranks.ranks), dict(ranks.specials), where=self.name)
        self.library = ranks.encoding()

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text, whatever it spells."""
        return [self.library.encode_ordinary(text) for text in texts]

    def encode_specials(self, texts: list[str]) -> list[list[int]] | None:
        """With all special tokens allowed."""
        return [self.library.encode(text, allowed_special="all") for text in texts]

    def decode(self, rows: list[list[int]]) -> list[str] | None:
        """The text of each row."""
        return [self.library.decode(row) for row in rows]

    def pieces(self) -> Iterable[tuple[int, str]]:
        """All rows, bytes as GPT-2 spells them."""
        for piece, i in self._ranks.ranks.items():
            yield i, "".join(BYTE_CHARS[byte] for byte in piece)
        yield from ((i, token) for token, i in self._ranks.specials.items())


def open_formats(
    tokenizer: Tokenizer, folder: Path, more: Iterable[Path] = ()
) -> Iterator[tuple[str, Reader | Unopened]]:
    """The readers of a folder, or why there is none, by name.

    Parameters
    ----------
    tokenizer : Tokenizer
        Of the folder.
    folder : Path
    more : iterable of Path
        Exports, folders or files, which are held against the same tokenizer.

    Raises
    ------
    UsageError
        When nothing that can be read lies at a place.
    """
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
        from koktok.formats.hf import why_not

        yield "tokenizer.json", Unopened(why_not(tokenizer.vocab) or "not in the folder")


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
            yield place.name, "tokenizers", "", lambda: HuggingFace(place)
        elif not ggufs(place):
            yield place.name, "sentencepiece", "", lambda: SentencePiece(place)
        return
    file = place / "tokenizer.json"
    if file.is_file():
        yield file.name, "tokenizers", "", lambda: HuggingFace(file)
        if (place / "tokenizer_config.json").is_file():
            yield "transformers", "transformers", "transformers", lambda: Transformers(place)
    for model in sorted(place.glob("*.model")):
        yield model.name, "sentencepiece", "", lambda model=model: SentencePiece(model)  # type: ignore[misc]
    if (place / "tiktoken.json").is_file():
        name = next((found.name for found in sorted(place.glob("*.tiktoken"))), "tiktoken.json")
        yield name, "tiktoken", "tiktoken", lambda: TikToken(place)


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
