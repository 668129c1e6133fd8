"""`Runtime`: a library that runs tokenizers: what it can hold, how it is written, and what `verify` opens of it.

A member is a class in the file or folder of its library; `koktok.runtimes` lists them, and whoever wants to know asks the member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from koktok.errors import UsageError, did_you_mean
from koktok.files import typed
from koktok.model.definition import Definition
from koktok.model.tokens import Spans
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.folder import MARK
from koktok.text.prefix import Prefix, with_prefix


@dataclass(frozen=True, slots=True)
class Detected:
    """The file or folder of a tokenizer, and its kind: a key of a member's `files`, or `koktok`."""

    kind: str
    path: Path

    def __str__(self) -> str:
        return kinds_of_file()[self.kind]


class Runtime(ABC):
    """One library, or one file format of it."""

    name: ClassVar[str]
    """As in `koktok export --to NAME`."""

    options: ClassVar[frozenset[str]] = frozenset()
    """What it takes besides the place to write to."""

    is_koktoks: ClassVar[bool] = False
    """Whether it writes a folder that koktok loads again, with a tokenizer of any style."""

    references: ClassVar[Mapping[str, str]] = {}
    """The kinds of reference that it opens (`sp:FILE.model`), with their help texts."""

    files: ClassVar[Mapping[str, str]] = {}
    """The kinds of file that it reads, with what each is called."""

    stands_alone: ClassVar[bool] = False
    """Whether its files are read by themselves, also beside files of transformers."""

    openers: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    """The function that opens each kind of file, given the reference and the path, as a `LibraryTokenizer`."""

    library: ClassVar[str] = ""
    """The library by which a folder of `koktok import` names it; '' where it opens none."""

    def detects(self, file: Path, data: bytes) -> Detected | None:  # noqa: ARG002
        """What a file is, by its content and then by its name; nothing if it is another library's."""
        return None

    def detects_folder(self, folder: Path) -> Detected | None:  # noqa: ARG002
        """What a folder is as a whole, if files in it say so."""
        return None

    def imported(self, folder: Path, contents: Mapping[str, bytes]) -> Any:
        """The tokenizer of a folder that `koktok import` wrote, from the files that its koktok.toml lists."""
        raise NotImplementedError

    @abstractmethod
    def write(self, tokenizer: Tokenizer, one: Definition, out: Path, *, force: bool, **options: Any) -> list[str]:
        """Write koktok's own tokenizer, and say what the library does differently."""

    @abstractmethod
    def convert(self, tokenizer: Any, out: Path, *, force: bool, **options: Any) -> list[str]:
        """Write a tokenizer that a library runs (`LibraryTokenizer`), and say what is different."""

    @abstractmethod
    def readers(self, place: Path) -> Iterator[Opening]:
        """What this library reads at a path, a file or a folder."""

    def export(self, tokenizer: Tokenizer, out: str | Path, *, force: bool = False, **options: Any) -> list[str]:
        """Write a tokenizer for this library; see `Tokenizer.export`."""
        self.check(options)
        place = Path(out)
        if not self.is_koktoks and (place / MARK).is_file():
            raise UsageError(f"the folder `{out}` holds a koktok tokenizer, which would be lost", hint="--out NEW-NAME")
        if tokenizer.definition is None:
            return self.convert(tokenizer, place, force=force, **options)
        return self.write(tokenizer, tokenizer.definition, place, force=force, **options)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that do nothing here."""
        if idle := sorted(options.keys() - self.options):
            raise UsageError(
                f"`--{idle[0].replace('_', '-')}` does nothing with `--to {self.name}`", hint="koktok export --help"
            )
        if (name := options.get("name")) and Path(name).name != name:
            raise UsageError(
                f"`--name {name}` is not a name of a file", hint=f"--name {typed(Path(name).name or 'mine')}"
            )


RUNTIMES: Final[dict[str, Runtime]] = {}
"""The members by name; `koktok.runtimes` fills it."""


def kinds_of_file() -> dict[str, str]:
    """What each kind of file is called."""
    return {"koktok": "a koktok folder"} | {kind: name for one in RUNTIMES.values() for kind, name in one.files.items()}


def runtime_of(name: str) -> Runtime:
    """The member of a name."""
    if name not in RUNTIMES:
        raise UsageError(f"expected one of {', '.join(RUNTIMES)}, got {name!r}", hint=did_you_mean(name, RUNTIMES))
    return RUNTIMES[name]


# --- What `verify` opens ----------------------------------------------------------------------------------------------


class Encodes(Protocol):
    """What `verify` asks of a library's tokenizer."""

    @property
    def library(self) -> str:
        """The library that runs it."""

    @property
    def cuts_specials(self) -> bool:
        """Whether it reads special tokens in text, where it is asked to."""

    @property
    def tokens(self) -> Sequence[str]:
        """The string of every id."""

    @property
    def roles(self) -> Mapping[str, str]:
        """Special tokens by their role in transformers."""

    def offsets(self, lines: Sequence[str]) -> list[Spans]:
        """The code points of each token of each line."""

    def ids(self, lines: Sequence[str], *, specials: bool = False) -> list[list[int]]:
        """The ids of lines."""

    def text_of(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids."""


@dataclass(frozen=True)
class Reader:
    """An opened format: the tokenizer of its library, and properties for the checks."""

    name: str
    tokenizer: Encodes
    normalized: bool = False  # whether it reads normalized text only
    own_normalizer: bool = False  # whether it has another normalizer
    rounds: bool = False  # whether sums of scores are rounded
    puts_space: bool = True  # whether it adds the prefix space
    takes_space: bool = True  # whether its decoder takes it away
    marks_space: bool = True  # whether it tells the first space of a text from the prefix space
    ends_at_nul: bool = False  # whether its rules end at a NUL
    has_offsets: bool = False  # whether its offsets are compared
    has_roles: bool = False  # whether it reads roles of special tokens from the folder
    slow: bool = False  # whether only a sample of a large text is checked

    def with_space(self, texts: list[str], *, prefix: Prefix) -> list[str]:
        """The texts with the prefix space, if the tokenizer adds one and the format does not."""
        return texts if self.puts_space else [with_prefix(text, prefix) for text in texts]

    def joins(self, text: str, *, prefix: Prefix) -> bool:
        """Whether the library may join the first space of a text with the prefix space, which gives other ids."""
        return prefix == "first" and text.startswith(" ") and not self.marks_space

    def reads(self, text: str) -> bool:
        """Whether the library reads the whole of a text."""
        return not (self.ends_at_nul and "\0" in text)


@dataclass(frozen=True)
class WrittenTable:
    """A format that no Python library runs: its table is compared, line by line, with that of a definition."""

    note: Callable[[Definition], str]
    rows: Callable[[Definition], Iterator[tuple[str, object, object]]]
    """What is compared, what koktok writes, and what the file has."""


@dataclass(frozen=True)
class Opening:
    """A file or folder that a library reads, not opened yet."""

    name: str
    module: str  # that runs it
    extra: str  # that installs the module
    open: Callable[[], Reader | WrittenTable]
