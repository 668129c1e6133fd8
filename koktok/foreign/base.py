"""`ForeignTokenizer`: a tokenizer of any library behind one interface: lines in, ids and spans out.

Whose ids they are. A foreign definition is run by the library that it was written for, from the bytes
that were given, and not by a rebuilding of ours: then its ids are that library's by construction, for whoever asks.
Nothing of a file is ever executed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from koktok.errors import InputError, KoktokError, UsageError
from koktok.files import typed

Ints = npt.NDArray[np.int64]

Found = tuple[list[int], list[tuple[int, int]]]
"""Ids of a text, and in parallel half-open code points of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its ids, and the code points of the line that each covers."""

    ids: Ints
    spans: Ints

    def __len__(self) -> int:
        return len(self.ids)


class Rows(Sequence[Row]):
    """The tokens of many lines, as flat arrays.

    Examples
    --------
    >>> rows = Rows.of([[7, 8], [9]], [[(0, 1), (1, 3)], [(0, 2)]], ["하겠다", "간다"])
    >>> rows[1].ids.tolist(), rows[1].spans.tolist()
    ([9], [[0, 2]])
    >>> rows.starts.tolist()
    [0, 1, 3]
    """

    __slots__ = ("ends", "ids", "indptr", "line_starts", "starts")

    def __init__(self, ids: Ints, starts: Ints, ends: Ints, indptr: Ints, line_starts: Ints) -> None:
        self.ids, self.starts, self.ends = ids, starts, ends
        self.indptr, self.line_starts = indptr, line_starts

    @classmethod
    def of(cls, ids: Sequence[Sequence[int]], spans: Sequence[Sequence[tuple[int, int]]], lines: Sequence[str]) -> Rows:
        """Rows from a list of ids and a list of spans for each line."""
        line_starts = running([len(line) for line in lines])
        indptr = running([len(row) for row in ids])
        flat_ids = np.array([i for row in ids for i in row], dtype=np.int64)
        flat = np.array([span for row in spans for span in row], dtype=np.int64).reshape(-1, 2)
        shift = np.repeat(line_starts[:-1], np.diff(indptr))
        return cls(flat_ids, flat[:, 0] + shift, flat[:, 1] + shift, indptr, line_starts)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, k: int) -> Row:  # type: ignore[override]
        """The tokens of line `k`, with spans that count from its own first character."""
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        k %= len(self)
        part = slice(self.indptr[k], self.indptr[k + 1])
        spans = np.stack([self.starts[part], self.ends[part]], axis=1) - self.line_starts[k]
        return Row(self.ids[part], spans)

    def __iter__(self) -> Iterator[Row]:
        return (self[k] for k in range(len(self)))


def running(lengths: Sequence[int] | Ints) -> Ints:
    """Where each of several runs starts, and where the last ends."""
    found = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.asarray(lengths, dtype=np.int64), out=found[1:])
    return found


class asking:  # noqa: N801 - used as a statement
    """A context in which whatever a library raises becomes an error of ours; panics of Rust are no `Exception`.

    Examples
    --------
    >>> with asking("tokenizers"):
    ...     raise BaseException("a panic")
    Traceback (most recent call last):
        ...
    koktok.errors.InputError: the library tokenizers fails on this text: BaseException: a panic
    hint: the definition is at fault: import it again, from a source that you trust
    """

    def __init__(self, library: str) -> None:
        self.library = library

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Say it in our words."""
        if error is None or isinstance(
            error, KoktokError | KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError
        ):
            return
        raise InputError(
            f"the library {self.library} fails on this text: {type(error).__name__}: {error}",
            hint="the definition is at fault: import it again, from a source that you trust",
        ) from None


class ForeignTokenizer(ABC):
    """A tokenizer of any library; an adapter a library is a subclass.

    What an adapter must have is `encode` and `token_bytes`. What else a library can do (decode, find special tokens,
    normalize, be kept in a folder) it overrides; what is left has a default that follows from those two, or an error.
    """

    library: ClassVar[str] = ""
    """The package that runs it."""

    analyser: ClassVar[bool] = False
    """True where ids are made on the fly, so that only their equality means something."""

    def __init__(
        self,
        spec: str,
        name: str,
        *,
        size: int | None,
        digest: str,
        libraries: dict[str, str],
        notes: Sequence[str] = (),
        unknown_ids: Collection[int] = (),
        byte_ids: Collection[int] = (),
        special_ids: Collection[int] = (),
    ) -> None:
        self.spec = spec
        self.name = name
        self.size: Final = size
        self.digest: Final = digest
        self.libraries: Final = libraries
        self.notes: tuple[str, ...] = tuple(notes)
        self.unknown_ids: Final = frozenset(unknown_ids)
        self.byte_ids: Final = frozenset(byte_ids)
        self.special_ids: Final = frozenset(special_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, size={self.size}, digest={self.digest})"

    # --- What every adapter has ---------------------------------------------------------------------------------------

    @abstractmethod
    def encode(self, lines: Sequence[str]) -> Rows:
        """The tokens of each line; what spells a special token is text, and none are put around it."""

    @abstractmethod
    def token_bytes(self, i: int) -> bytes | None:
        """UTF-8 of what the id writes, a leading space as a space; None for unknown and special ids."""

    # --- What a library may do besides --------------------------------------------------------------------------------

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids that `encode` gives, without spans."""
        return [row.ids.tolist() for row in self.encode(lines)]

    def ids_with_specials(self, lines: Sequence[str]) -> list[list[int]] | None:  # noqa: ARG002
        """The same where special tokens that a line spells are read as such; None where the library cannot."""
        return None

    def ids_by_default(self, lines: Sequence[str]) -> list[list[int]]:
        """What the library gives to who asks for nothing: some read special tokens that a text spells."""
        return self.ids(lines)

    def read(self, text: str) -> Found:
        """One text, with the offsets that the library itself gives, where it gives any."""
        row = self.encode([text])[0]
        return row.ids.tolist(), [(a, b) for a, b in row.spans.tolist()]

    def read_with_specials(self, text: str, *, template: bool = False) -> Found | None:  # noqa: ARG002
        """`read` with special tokens found as the library finds them; None where it has no way of its own."""
        if template:
            raise UsageError(
                f"a tokenizer that {self.library or self.name} runs has no template of special tokens",
                hint="add them yourself",
            )
        return None

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str | None:  # noqa: ARG002
        """The text of ids; None where this tokenizer has no decoder."""
        return None

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str] | None:
        """The text of each row of ids; None where this tokenizer has no decoder."""
        texts = [text for text in map(self.decode, rows) if text is not None]
        return texts if len(texts) == len(rows) else None

    def normalize(self, text: str) -> str:
        """The text as the model reads it, as far as the library tells."""
        return text

    def files(self) -> dict[str, str | bytes]:
        """The definition, as files of a folder that `koktok.load` reads."""
        raise UsageError(
            f"`{self.spec}` cannot be kept in a folder: what {self.library or self.name} runs is not in one file",
            hint=f"koktok report {typed(self.spec)}",
        )

    def unigram(self) -> dict[str, float] | None:
        """Text of each piece to its log-probability, where the model is a Unigram; None where it is not."""
        return None

    def words(self, line: str) -> list[str]:
        """What a Unigram model reads one by one: by default words, each with the space before it."""
        return re.findall(r"\s*\S+|\s+$", line)

    # --- The table of tokens ------------------------------------------------------------------------------------------

    def piece(self, i: int) -> str:
        """The id as its vocabulary spells it; '' for one that it does not use."""
        written = self.token_bytes(i)
        return "" if written is None else written.decode("utf-8", errors="replace")

    def surface(self, i: int) -> str:
        """The id for display: its text, with U+FFFD for a broken character."""
        written = self.token_bytes(i)
        return self.piece(i) if written is None else written.decode("utf-8", errors="replace")

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """`piece` of every id."""
        return tuple(map(self.piece, range(self.size or 0)))

    @cached_property
    def specials(self) -> Mapping[str, int]:
        """Special tokens and the unknown one, by their spelling: what text reaches only when it is allowed to."""
        return {self.tokens[i]: i for i in sorted(self.special_ids | self.unknown_ids)}

    @cached_property
    def fragments(self) -> frozenset[int]:
        """Ids of single bytes that are a part of a character."""
        alone = (i for i in range(self.size or 0) if len(found := self.token_bytes(i) or b"") == 1 and found >= b"\x80")
        return self.byte_ids.union(alone)

    @property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        return min(self.unknown_ids, default=None)
