r"""`Texts`: documents as one run of UTF-8 bytes with their places, from strings or Arrow arrays.

This file adds: one conversion for thousands of strings. They are joined by a null character and encoded at once, and
the nulls show where each begins; only where a text holds a null itself is every string encoded by itself. Arrow keeps
strings as such bytes already, and they are read where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from koktok.errors import InputError
from koktok.normalize import Normalizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Texts"]

_PADDING = "\0" * 16  # two words of eight bytes are read from every place on
Parts = list[tuple[int, int, str]]
"""Of a text: (start, end, special token or nothing)."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    r"""Documents, or what stands between their special tokens.

    Parameters
    ----------
    data : ndarray of uint8
        Valid UTF-8.
    begins, ends : ndarray of int64, shape (parts,)
    specials : ndarray of int32, shape (parts,), optional
        The special token that a part is, or -1.
    closes : ndarray of int64, shape (documents,), optional
        How many parts stand before the end of each document; left out where every document is one part.

    Examples
    --------
    >>> texts = Texts.of(["가", "", "a\0b"])
    >>> texts.begins.tolist(), texts.ends.tolist()
    ([0, 3, 3], [3, 3, 6])
    """

    data: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    specials: NDArray[np.int32] | None = None
    closes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.begins)

    def content(self, first: int, last: int) -> bytes:
        r"""The documents from `first` up to `last`, each followed by a null character.

        Examples
        --------
        >>> Texts.of(["가", "a", "b"]).content(1, 3)
        b'a\x00b\x00'
        """
        if last > first + 1 and (self.begins[first + 1 : last] == self.ends[first : last - 1] + 1).all():
            return self.data[self.begins[first] : self.ends[last - 1] + 1].tobytes()  # they lie so already
        return b"".join(bytes(self.data[self.begins[i] : self.ends[i]]) + b"\0" for i in range(first, last))

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return int((self.ends - self.begins).sum())

    @classmethod
    def of(cls, texts: list[str]) -> Texts:
        """Documents from strings.

        Raises
        ------
        InputError
            For anything but a str, and for lone surrogates.
        """
        n = len(texts)
        try:
            data = np.frombuffer("\0".join([*texts, _PADDING]).encode(), np.uint8)
            nulls = np.flatnonzero(data[: -len(_PADDING)] == 0)
            if len(nulls) == n:
                return cls(data, np.concatenate([np.zeros(1, np.int64), nulls[:-1] + 1])[:n], nulls)
            each = [text.encode() for text in texts]
        except (TypeError, UnicodeEncodeError, AttributeError) as error:
            for text in texts:
                if not isinstance(text, str):
                    raise InputError(f"a `{type(text).__name__}` came where a text (str) was wanted") from error
                Normalizer()(text)  # says what is wrong with it
            raise
        ends = np.cumsum(np.fromiter(map(len, each), np.int64, n))
        return cls(
            np.frombuffer(b"".join([*each, _PADDING.encode()]), np.uint8),
            np.concatenate([np.zeros(1, np.int64), ends[:-1]])[:n],
            ends,
        )

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
        found = cls.of(texts)
        return cls(found.data, found.begins, found.ends, np.array(specials, np.int32), np.array(closes, np.int64))

    @classmethod
    def batches(
        cls,
        texts: Any,
        size: int,
        documents: int,
        parts_of: Callable[[str], Parts] | None = None,
        special_ids: Mapping[str, int] | None = None,
    ) -> Iterator[Texts]:
        """Documents in runs of about `size` characters and at most so many documents.

        Parameters
        ----------
        texts : iterable of str, or pyarrow.Array or ChunkedArray of strings
        size, documents : int
        parts_of : callable, optional
            Cuts a text at special tokens.
        special_ids : mapping, optional
            Ids of these.

        Raises
        ------
        InputError
            For one str in place of many, for what is no text, and for nulls of Arrow.
        """
        if isinstance(texts, str | bytes):
            raise InputError(
                f"one `{type(texts).__name__}` came where texts were wanted", hint="tokenizer.encode_ids([text])"
            )
        if not isinstance(texts, Iterable):
            raise InputError(f"a `{type(texts).__name__}` came where texts were wanted")
        given: Any = texts
        arrow = type(texts).__module__.partition(".")[0] == "pyarrow"
        if arrow and parts_of is None:
            yield from _of_arrow(texts, size, documents)
            return
        strings = iter(given.to_pylist() if arrow else texts)
        while batch := list(islice(strings, documents)):
            for some in _halves(batch, size):
                yield cls.of(some) if parts_of is None else cls.of_parts(some, parts_of, special_ids or {})


def _halves(texts: list[str], size: int) -> Iterator[list[str]]:
    """A list, cut in two and two again while it is larger than `size`."""
    try:
        large = len(texts) > 1 and sum(map(len, texts)) > 2 * size
    except TypeError:
        large = False
    if large:
        yield from _halves(texts[: len(texts) // 2], size)
        yield from _halves(texts[len(texts) // 2 :], size)
    else:
        yield texts


def _of_arrow(array: Any, size: int, documents: int) -> Iterator[Texts]:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        kind = str(array.type)
        if kind != "string_view":
            raise InputError(
                f"an Arrow array of {kind} came where strings were wanted", hint="array.cast(pyarrow.string())"
            )
        array = array.cast(pa.large_string())
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        if chunk.null_count:
            raise InputError(f"{chunk.null_count} nulls came among the texts", hint='array.fill_null("")')
        if not len(chunk):
            continue
        _, places, content = chunk.buffers()
        wide = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
        offsets = np.frombuffer(places, wide)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
        data = np.frombuffer(content or b"", np.uint8)
        try:
            str(data[offsets[0] : offsets[-1]].data, "utf-8")  # Arrow promises UTF-8 and does not check it
        except UnicodeDecodeError as error:
            raise InputError(f"an Arrow array holds bytes that are not UTF-8: {error}") from error
        if offsets[-1] + len(_PADDING) > len(data):
            data = np.append(data, np.frombuffer(_PADDING.encode(), np.uint8))
        at = 0
        while at < len(chunk):
            last = int(np.searchsorted(offsets, offsets[at] + 3 * size, side="right"))
            last = min(max(last, at + 2), at + documents + 1, len(offsets))
            yield Texts(data, offsets[at : last - 1], offsets[at + 1 : last])
            at = last - 1
