r"""`Texts`: documents as one run of UTF-16 with their places, from strings or from blocks of UTF-8.

One conversion for thousands of strings: they are joined by a null character and encoded at once, and the nulls show where each
begins; only if a text holds a null itself, every string is encoded by itself. Blocks, and Arrow arrays as blocks, are read by
compiled code, which makes no strings of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok.errors import InputError
from koktok.text.blocks import Block
from koktok.text.normalize import Normalizer
from koktok.text.prefix import Prefix, with_prefix

CODEC = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
"""Units as the machine keeps numbers of 16 bits."""

_ASKED = 128
"""Texts whose length tells that of all: to ask every one of 4,096 short ones took 7 % of the time of encoding them."""

_PADDING = "\0" * 8  # two words of four units are read from every place on
Parts = list[tuple[int, int, str]]
"""Of a text: (start, end, special token or nothing)."""


_ALL: Final = np.zeros(0, np.bool_)
"""Stands for lines that all end a document."""

MARK_UNIT: Final = 0xDC00
"""Stands for `CUT_MARK` before normalization, which would change that: half a surrogate pair, which no text has."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    r"""Documents, or the parts between their special tokens.

    Examples
    --------
    >>> texts = Texts.of(["가", "", "a\0b"])
    >>> texts.begins.tolist(), texts.ends.tolist()
    ([0, 1, 1], [1, 1, 4])
    """

    data: NDArray[np.uint16]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    specials: NDArray[np.int32] | None = None
    closes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.begins)

    def text(self, i: int) -> str:
        """Document `i`."""
        return str(self.data[self.begins[i] : self.ends[i]].data, CODEC)

    def content(self, first: int, last: int) -> bytes:
        """The documents from `first` up to `last` in UTF-8, each followed by a null character."""
        if last > first + 1 and (self.begins[first + 1 : last] == self.ends[first : last - 1] + 1).all():
            whole = self.data[self.begins[first] : self.ends[last - 1]].data  # they lie so already
            return f"{str(whole, CODEC)}\0".encode()
        return "".join(f"{self.text(i)}\0" for i in range(first, last)).encode()

    def prefixed(self, fragile: NDArray[np.bool_], normalizer: Normalizer, prefix: Prefix) -> Texts:
        """The same with what `with_prefix` puts before each text of which the normalizer leaves something."""
        full = self.begins < self.ends
        spaced, marked, doubtful = full.copy(), np.zeros(len(self), np.bool_), np.zeros(len(self), np.bool_)
        _look(self.data, self.begins, self.ends, fragile, doubtful)
        if prefix == "first":
            first = self.data[self.begins[full]]
            marked[full] = first == ord(" ")
            doubtful[full] |= fragile[first] | (first & 0xF800 == 0xD800)
            if normalizer.folds.repeats or normalizer.folds.spaces:  # the first of a run may be what is dropped
                doubtful[full] |= first == self.data[self.begins[full] + 1]
        for i in np.flatnonzero(doubtful).tolist():
            aligned = normalizer.align(self.text(i))
            read = with_prefix(aligned.normal, prefix, kept=not aligned.normal or aligned.starts[0] == 0)
            spaced[i] = len(read) > len(aligned.normal)
            marked[i] = len(read) > len(aligned.normal) + 1
        if prefix == "first" and self.closes is not None:
            # Only the first part of a document, and not a part after a special token.
            firsts = np.concatenate([np.zeros(1, np.int64), self.closes[:-1]])
            begun = np.zeros(len(self), np.bool_)
            begun[firsts[firsts < self.closes]] = True
            spaced &= begun
        marked &= spaced
        data = np.zeros(self.size + int(spaced.sum() + marked.sum()) + len(_PADDING), np.uint16)
        begins, ends = np.empty_like(self.begins), np.empty_like(self.ends)
        _put_before(self.data, self.begins, self.ends, spaced, marked, MARK_UNIT, data, begins, ends)
        return Texts(data, begins, ends, self.specials, self.closes)

    @property
    def size(self) -> int:
        """Units of all documents."""
        return int((self.ends - self.begins).sum())

    @classmethod
    def of(cls, texts: list[str]) -> Texts:
        """Documents from strings."""
        n = len(texts)
        try:
            data = np.frombuffer("\0".join([*texts, _PADDING]).encode(CODEC), np.uint16)
            nulls = np.flatnonzero(data[: -len(_PADDING)] == 0)
            if len(nulls) == n:
                return cls(data, np.concatenate([np.zeros(1, np.int64), nulls[:-1] + 1])[:n], nulls)
            each = [text.encode(CODEC) for text in texts]
        except (TypeError, UnicodeEncodeError, AttributeError) as error:
            for text in texts:
                if not isinstance(text, str):
                    raise InputError(f"expected a text (str), got a `{type(text).__name__}`") from error
                Normalizer()(text)  # raises with the reason
            raise
        ends = np.cumsum(np.fromiter(map(len, each), np.int64, n)) // 2
        return cls(
            np.frombuffer(b"".join([*each, _PADDING.encode(CODEC)]), np.uint16),
            np.concatenate([np.zeros(1, np.int64), ends[:-1]])[:n],
            ends,
        )

    @classmethod
    def of_block(cls, block: Block) -> Texts:
        """Documents from a block; InputError if it is not UTF-8."""
        data = np.frombuffer(block.data, np.uint8)
        out = np.empty(len(data) + len(_PADDING), np.uint16)
        ends = np.empty(len(block), np.int64)
        wrong = _to_utf16(data, _ALL if block.closes is None else block.closes, out, ends)
        if wrong >= 0:
            raise InputError(f"a text holds bytes that are not UTF-8, the first at {wrong}: 0x{data[wrong]:02x}")
        return cls(out, np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])[: len(ends)], ends)

    @classmethod
    def of_parts(cls, documents: list[str], parts_of: Callable[[str], Parts], special_ids: Mapping[str, int]) -> Texts:
        """Documents that are cut at special tokens."""
        texts: list[str] = []
        specials: list[int] = []
        closes: list[int] = []
        for document in documents:
            for start, end, special in parts_of(document):
                texts.append("" if special else document[start:end])
                specials.append(special_ids[special] if special else -1)
            closes.append(len(texts))
        joined = cls.of(texts)
        return cls(joined.data, joined.begins, joined.ends, np.array(specials, np.int32), np.array(closes, np.int64))

    @classmethod
    def batches(
        cls,
        texts: Any,
        size: int,
        documents: int,
        parts_of: Callable[[str], Parts] | None = None,
        special_ids: Mapping[str, int] | None = None,
    ) -> Iterator[Callable[[], Texts]]:
        """Documents in runs of about `size` characters and at most so many documents, each made when it is called."""
        if isinstance(texts, str | bytes):
            raise InputError(f"expected texts, got one `{type(texts).__name__}`", hint="tokenizer.encode_ids([text])")
        if not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) == 0:
            raise InputError(f"expected texts, got a `{type(texts).__name__}`")
        each: Any = texts
        if type(texts).__module__.partition(".")[0] == "pyarrow":
            each = _blocks_of_arrow(texts, documents) if parts_of is None else each.to_pylist()
        strings = iter(each)
        first = list(islice(strings, 1))
        strings = chain(first, strings)
        if first and isinstance(first[0], Block):
            for block in strings:
                yield from (partial(cls.of_block, part) for part in block.split(3 * size))
            return
        runs = (
            (each[i : i + documents] for i in range(0, len(each), documents))  # without a step of Python for each text
            if isinstance(each, list)
            else iter(lambda: list(islice(strings, documents)), [])
        )
        for batch in runs:
            for some in _halves(batch, size):
                yield (
                    partial(cls.of, some)
                    if parts_of is None
                    else partial(cls.of_parts, some, parts_of, special_ids or {})
                )


def _halves(texts: list[str], size: int) -> Iterator[list[str]]:
    """A list, cut in two and two again while it is larger than `size`, as far as some of its texts tell."""
    step = max(1, len(texts) // _ASKED)
    try:
        large = len(texts) > 1 and step * sum(map(len, texts[::step])) > 2 * size
    except TypeError:
        large = False
    if large:
        yield from _halves(texts[: len(texts) // 2], size)
        yield from _halves(texts[len(texts) // 2 :], size)
    else:
        yield texts


def _blocks_of_arrow(array: Any, documents: int) -> Iterator[Block]:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if str(array.type) not in ("string", "large_string", "string_view"):
        raise InputError(f"expected an Arrow array of strings, got {array.type}", hint="array.cast(pyarrow.string())")
    if array.null_count:
        raise InputError(f"expected texts, got {array.null_count} nulls among them", hint='array.fill_null("")')
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        for at in range(0, len(chunk), documents):
            some = chunk.slice(at, documents).cast(pa.large_string())
            _, places, content = some.buffers()
            offsets = np.frombuffer(places, np.int64)[some.offset : some.offset + len(some) + 1]
            yield block_of_utf8(np.frombuffer(content or b"", np.uint8), offsets)


def block_of_utf8(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Block:
    """Make a block of documents that are stored without separators."""
    data, ends = data[offsets[0] : offsets[-1]], offsets[1:] - offsets[0]
    lines = np.insert(data, ends, np.uint8(10))
    closes = np.zeros(np.count_nonzero(lines == 10), np.bool_)
    closes[np.searchsorted(np.flatnonzero(lines == 10), ends + np.arange(len(ends)))] = True
    return Block(lines.tobytes(), None if closes.all() else closes)


@njit(nogil=True, cache=True)
def _look(data, begins, ends, fragile, doubtful):
    """Mark the texts of which the normalizer may leave nothing; of surrogates it is not known."""
    for i in range(len(begins)):
        at = begins[i]
        while at < ends[i] and (fragile[data[at]] or data[at] & 0xF800 == 0xD800):
            at += 1
        doubtful[i] = begins[i] < at == ends[i]


@njit(nogil=True, cache=True)
def _put_before(data, begins, ends, spaced, marked, mark, out, new_begins, new_ends):
    used = 0
    for i in range(len(begins)):
        new_begins[i] = used
        if spaced[i]:
            out[used] = 32
            used += 1
        if marked[i]:
            out[used] = mark
            used += 1
        for at in range(begins[i], ends[i]):
            out[used] = data[at]
            used += 1
        new_ends[i] = used


@njit(nogil=True, cache=True)
def _to_utf16(data, closes, out, ends):
    """UTF-8 of lines to UTF-16, with a null after each document; returns the place of the first byte that is none, or -1.

    `closes` is true for a line that ends its document; if it is empty, all do. A character that is cut off runs into the end of
    its line.
    """
    used, n, line = np.uint64(0), 0, 0
    at, one, two, three = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
    while at < len(data):
        first = np.uint32(data[at])
        if 0xE1 <= first <= 0xEC:  # Hangul and most of its neighbours
            second, third = np.uint32(data[at + one]), np.uint32(data[at + two])
            if ((second & 0xC0) ^ 0x80) | ((third & 0xC0) ^ 0x80):
                return np.int64(at)
            out[used] = ((first & 0xF) << 12) | ((second & 0x3F) << 6) | (third & 0x3F)
            used += one
            at += three
        elif first < 0x80:
            out[used] = first
            if first == 10:
                if len(closes) == 0 or closes[line]:
                    out[used] = 0
                    ends[n] = used
                    n += 1
                line += 1
            used += one
            at += one
        else:
            size = np.uint64(2 if first < 0xE0 else 3 if first < 0xF0 else 4)
            char = first & (0xFF >> (size + one))
            sound = bool(0xC2 <= first <= 0xF4)
            for i in range(1, size):
                byte = np.uint32(data[at + np.uint64(i)])
                char = (char << np.uint32(6)) | (byte & 0x3F)
                if byte & 0xC0 != 0x80:
                    sound = False
                    break
            if size == three and (char < 0x800 or char & 0xF800 == 0xD800):  # longer than needed, or a surrogate
                sound = False
            if size > three and not 0x10000 <= char < 0x110000:
                sound = False
            if not sound:
                return np.int64(at)
            if char >= 0x10000:
                out[used] = 0xD7C0 + (char >> np.uint32(10))
                used += one
                char = 0xDC00 + (char & 0x3FF)
            out[used] = char
            used += one
            at += size
    return np.int64(-1)
