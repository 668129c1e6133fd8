"""The message of a SentencePiece model, read, changed and written without generated code or a library.

The wire format is that of Protocol Buffers: a list of numbered fields. Fields that are not set here are written unchanged, also those
that are not named here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces."""

UNIGRAM, BPE = 1, 2
"""Types of models."""

T = TypeVar("T")


class Message:
    """Fields by number, each with what was written for it: wire types and values."""

    __slots__ = ("fields",)

    def __init__(self, data: bytes = b"") -> None:
        self.fields: dict[int, list[tuple[int, Any]]] = {}
        at, end = 0, len(data)
        while at < end:
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            value: int | bytes
            if wire == _VARINT:
                value, at = _varint(data, at)
            elif wire == _BYTES or wire in _SIZES:
                size, at = _varint(data, at) if wire == _BYTES else (_SIZES[wire], at)
                value, at = data[at : at + size], at + size
            else:
                raise ValueError(f"wire type {wire} at byte {at}")
            if not number or at > end:
                raise ValueError(f"field {number} is cut short" if number else f"field 0 at byte {at}")
            self.fields.setdefault(number, []).append((wire, value))

    def serialized(self) -> bytes:
        """The bytes, fields in the order of their numbers."""
        parts = []
        for number, rows in sorted(self.fields.items()):
            for wire, value in rows:
                parts.append(_written(number << 3 | wire))
                if wire == _VARINT:
                    parts.append(_written(value))
                else:
                    parts += (_written(len(value)), value) if wire == _BYTES else (value,)
        return b"".join(parts)


class Field(Generic[T]):
    """A field of a message: its number, parser and writer, and the default for an absent or unknown value."""

    __slots__ = ("default", "number", "read", "wire", "write")

    def __init__(
        self, number: int, default: T, wire: int, read: Callable[[Any], T | None], write: Callable[[T], Any]
    ) -> None:
        self.number, self.default, self.wire, self.read, self.write = number, default, wire, read, write

    @overload
    def __get__(self, message: None, owner: type[Message]) -> Self: ...
    @overload
    def __get__(self, message: Message, owner: type[Message]) -> T: ...
    def __get__(self, message: Message | None, owner: type[Message]) -> Self | T:
        if message is None:
            return self
        # The last one counts, as Protocol Buffers have it.
        for wire, value in reversed(message.fields.get(self.number, ())):
            if wire == self.wire and (parsed := self.read(value)) is not None:
                return parsed
        return self.default

    def __set__(self, message: Message, value: T) -> None:
        message.fields[self.number] = [(self.wire, self.write(value))]

    def __delete__(self, message: Message) -> None:
        message.fields.pop(self.number, None)


def _text(number: int, default: str = "") -> Field[str]:
    return Field(number, default, _BYTES, bytes.decode, str.encode)


def _bytes(number: int) -> Field[bytes]:
    return Field(number, b"", _BYTES, bytes, bytes)


def _flag(number: int, default: bool) -> Field[bool]:  # noqa: FBT001
    return Field(number, default, _VARINT, bool, int)


def _number(number: int, default: int) -> Field[int]:
    return Field(number, default, _VARINT, lambda value: ((value & 0xFFFFFFFF) ^ 1 << 31) - (1 << 31), int)


def _one_of(number: int, default: int, last: int) -> Field[int]:
    return Field(number, default, _VARINT, lambda value: value if value <= last else None, int)


class Row(Message):
    """A row of the vocabulary."""

    __slots__ = ()
    piece = _text(1)
    score = Field(
        2, 0.0, _FIXED32, lambda value: float(struct.unpack("<f", value)[0]), lambda value: struct.pack("<f", value)
    )
    type = _one_of(3, NORMAL, BYTE)


class TrainerSpec(Message):
    """The settings of the training that koktok reads."""

    __slots__ = ()
    input = _text(1)
    model_type = _one_of(3, UNIGRAM, 4)
    vocab_size = _number(4, 8000)
    split_by_whitespace = _flag(22, True)
    treat_whitespace_as_suffix = _flag(24, False)
    byte_fallback = _flag(35, False)
    unk_id = _number(40, 0)
    bos_id = _number(41, 1)
    eos_id = _number(42, 2)
    pad_id = _number(43, -1)
    unk_piece = _text(45, "<unk>")
    bos_piece = _text(46, "<s>")
    eos_piece = _text(47, "</s>")
    pad_piece = _text(48, "<pad>")


class NormalizerSpec(Message):
    """The normalization of text."""

    __slots__ = ()
    name = _text(1)
    precompiled_charsmap = _bytes(2)
    add_dummy_prefix = _flag(3, True)
    remove_extra_whitespaces = _flag(4, True)
    escape_whitespaces = _flag(5, True)


class ModelProto(Message):
    """A whole model.

    Examples
    --------
    >>> model = ModelProto()
    >>> model.add("가", -1.5, NORMAL)
    >>> model.serialized().hex(" ")
    '0a 0c 0a 03 ea b0 80 15 00 00 c0 bf 18 01'
    >>> ModelProto(model.serialized()).pieces[0].score
    -1.5
    """

    __slots__ = ("denormalizer_spec", "normalizer_spec", "pieces", "trainer_spec")

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(data)
        self.pieces = [Row(row) for row in self._parts(1)]
        # A message in several parts is their concatenation.
        self.trainer_spec = TrainerSpec(b"".join(self._parts(2)))
        self.normalizer_spec = NormalizerSpec(b"".join(self._parts(3)))
        self.denormalizer_spec = NormalizerSpec(b"".join(self._parts(5)))

    def _parts(self, number: int) -> list[bytes]:
        return [value for wire, value in self.fields.get(number, ()) if wire == _BYTES]

    @property
    def whole(self) -> bool:
        """Whether it has pieces and specs; the library accepts an empty file."""
        return bool(self.pieces) and 2 in self.fields and 3 in self.fields

    def add(self, piece: str, score: float, kind: int) -> None:
        """Append a piece."""
        row = Row()
        row.piece, row.score, row.type = piece, score, kind
        self.pieces.append(row)

    def serialized(self) -> bytes:
        """As `Message.serialized`."""
        self.fields[1] = [(_BYTES, row.serialized()) for row in self.pieces]
        for number, spec in (2, self.trainer_spec), (3, self.normalizer_spec), (5, self.denormalizer_spec):
            if spec.fields or number in self.fields:
                self.fields[number] = [(_BYTES, spec.serialized())]
        return super().serialized()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of 7 bits in each byte, the low ones first; returns it and the place behind it."""
    if at < len(data) and (byte := data[at]) < 128:
        return byte, at + 1
    number = shift = 0
    for byte in data[at : at + 10]:
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError(f"the number at byte {at} has no end")


def _written(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes((value,))
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers have ten bytes
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
