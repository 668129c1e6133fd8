"""The header of a GGUF, checked before the library reads the file.

The library trusts the sizes in a file, and takes minutes and gigabytes for a hundred bytes that claim many. Here every count is
compared with the rest of the file, and every key that koktok uses with its type.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from koktok.errors import ArtifactError
from koktok.files import open_regular

STRING, ARRAY = 8, 9
MOST = 1 << 24
"""Bytes of a string, and strings of an array: sixteen times the largest that models have."""

_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_INTEGERS: Final = frozenset({0, 1, 2, 3, 4, 5, 10, 11})
_FLOATS: Final = frozenset({6, 12})

_EXPECTED: Final[dict[str, tuple[str, frozenset[int]]]] = {
    "general.architecture": ("a string", frozenset({STRING})),
    "split.count": ("a whole number", _INTEGERS),
    "tokenizer.ggml.model": ("a string", frozenset({STRING})),
    "tokenizer.ggml.pre": ("a string", frozenset({STRING})),
    "tokenizer.ggml.tokens": ("an array of strings", frozenset({STRING})),
    "tokenizer.ggml.merges": ("an array of strings", frozenset({STRING})),
    "tokenizer.ggml.scores": ("an array of numbers", _FLOATS | _INTEGERS),
    "tokenizer.ggml.token_type": ("an array of whole numbers", _INTEGERS),
    "tokenizer.ggml.precompiled_charsmap": ("an array of whole numbers", _INTEGERS),
}


class Field(NamedTuple):
    """A key of the header with the value of a string or number, or the length of an array."""

    key: str
    kind: int
    value: str | int | float
    item: int | None = None

    @property
    def shown(self) -> str:
        """The type in words."""
        kind = "a string" if self.kind == STRING else "an array" if self.kind == ARRAY else "a number"
        return kind if self.item is None else f"an array of {'strings' if self.item == STRING else 'numbers'}"


class Header:
    """The fields of a file, and after them the shapes of its tensors, each to be read once and in this order."""

    def __init__(self, data: mmap.mmap, path: str | Path) -> None:
        self._data, self._path, self._at, self._where = data, path, 0, "the header"
        if self._take("4s") != b"GGUF":
            raise ArtifactError(f"`{path}` is no GGUF", hint="a file that begins with the letters GGUF")
        self._order = "<" if self._peek("<I") & 0xFFFF else ">"
        self._take("I")
        self.n_tensors, self.n_fields = int(self._take("Q")), int(self._take("Q"))
        # A field has a key, a type and a value of a byte or more; a tensor a name, a type and a place.
        self._room(13 * self.n_fields + 24 * self.n_tensors)

    _order = "<"

    def fields(self) -> Iterator[Field]:
        """Every key in its order."""
        for _ in range(self.n_fields):
            self._where = "a key"
            key = self._text()
            self._where = f"`{key}`"
            kind = int(self._take("I"))
            field = self._array(key) if kind == ARRAY else Field(key, kind, self._value(kind))
            expected, kinds = _EXPECTED.get(key, ("", None))
            of = field.item if expected.startswith("an array") else field.kind
            if kinds is not None and of not in kinds:
                raise ArtifactError(f"`{self._path}`: expected {expected} as `{key}`, got {field.shown}")
            yield field

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The name and the shape of every tensor, the width of a row first."""
        size = len(self._data)
        for _ in range(self.n_tensors):
            self._where = "a tensor"
            name = self._text()
            dimensions = int(self._take("I"))
            if not 1 <= dimensions <= 4:
                raise ArtifactError(f"`{self._path}`: expected 1 to 4 dimensions of `{name}`, got {dimensions}")
            shape = tuple(int(self._take("Q")) for _ in range(dimensions))
            elements = 1
            for n in shape:
                elements *= n
            if not 0 < elements <= 8 * size:  # one bit is the least that a number takes
                raise ArtifactError(
                    f"`{self._path}`: expected a shape that the file has room for of `{name}`, got {shape}"
                )
            self._take("IQ")
            yield name, shape

    def _array(self, key: str) -> Field:
        item, n = int(self._take("I")), int(self._take("Q"))
        if item == ARRAY:
            raise ArtifactError(f"`{self._path}`: expected strings or numbers in `{key}`, got arrays in an array")
        if n == 0:
            raise ArtifactError(f"`{self._path}`: expected values in the array `{key}`, got none")
        if item == STRING:
            self._room(8 * n)
            self._few(n, "strings")
            for _ in range(n):
                self._skip(self._take("Q"))
        elif item in _NUMBERS:
            self._skip(n * struct.calcsize(_NUMBERS[item]))
        else:
            raise ArtifactError(f"`{self._path}`: expected a type of GGUF in `{key}`, got {item}")
        return Field(key, ARRAY, n, item)

    def _value(self, kind: int) -> str | int | float:
        if kind == STRING:
            return self._text()
        if kind not in _NUMBERS:
            raise ArtifactError(f"`{self._path}`: expected a type of GGUF as {self._where}, got {kind}")
        return self._take(_NUMBERS[kind])  # type: ignore[no-any-return]

    def _text(self) -> str:
        size = int(self._take("Q"))
        self._room(size)
        self._few(size, "bytes of text")
        raw = self._data[self._at : self._at + size]
        self._at += size
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise ArtifactError(f"`{self._path}`: expected UTF-8 in {self._where}, got {raw[:20]!r}") from None

    def _room(self, size: int) -> None:
        if self._at + size > len(self._data):
            raise ArtifactError(
                f"`{self._path}` is cut short: {self._where} does not end in it", hint="fetch or write it again"
            )

    def _few(self, n: int, what: str) -> None:
        if n > MOST:
            raise ArtifactError(f"`{self._path}`: expected at most {MOST:,} {what} in {self._where}, got {n:,}")

    def _skip(self, size: int) -> None:
        self._room(size)
        self._at += size

    def _peek(self, form: str):  # type: ignore[no-untyped-def]
        self._room(struct.calcsize(form))
        values = struct.unpack_from(form, self._data, self._at)
        return values[0]

    def _take(self, form: str):  # type: ignore[no-untyped-def]
        value = self._peek(self._order + form)
        self._at += struct.calcsize(self._order + form)
        return value


@contextmanager
def opened(path: str | Path) -> Iterator[Header]:
    """The header of an open file."""
    try:
        with open_regular(Path(path), "a GGUF") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield Header(data, path)
    except ArtifactError:
        raise
    except (OSError, ValueError) as error:  # a file of no bytes cannot be mapped
        raise ArtifactError(
            f"`{path}` is no GGUF: {error}", hint="koktok export FOLDER --to gguf --out FILE.gguf"
        ) from error


def check(path: str | Path) -> tuple[dict[str, Field], dict[str, tuple[int, ...]]]:
    """Fields by key and shapes by tensor; ArtifactError for a malformed file."""
    with opened(path) as header:
        fields = {field.key: field for field in header.fields()}
        return fields, dict(header.shapes())
