"""`Decoder`: ids back to texts, in bulk: the text of each token is copied as UTF-16, from which Python makes strings.

What a token spells depends on nothing but the token and whether it is the first
of its text (WordPiece puts a space before the others). A token of at most seven units, with their number in the eighth,
is a record of one size: found without a look-up of its place and written without a loop; what it writes too much, the
next one writes over. Longer tokens, first tokens and byte pieces take a slower road through the same pass. Korean text is
one unit a character, as in a Python string, so that a string is made by a copy and no decoding.

Bytes that make no character alone are collected until a token comes that is text, and then read as UTF-8. What is none
becomes U+FFFD: one for each byte of the whole run with byte fallback, as in Hugging Face's ByteFallback, and what
`bytes.decode` gives where pieces spell bytes.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from koktok import hangul
from koktok.bulk.arrays import checked_flat
from koktok.bulk.encoder import workers_of
from koktok.bulk.texts import CODEC
from koktok.model.decoding import checked_ids
from koktok.model.definition import Definition
from koktok.model.tokens import running
from koktok.model.vocab import MARK, whole_text
from koktok.text.prefix import without_prefix

_BATCH = 1 << 17  # ids handed to a thread at once: their text stays in the second cache until strings are made of it
_INLINE = 7
_LONG, _RAW = 8, 9  # in the place of a number: the units lie elsewhere; the token is bytes that make no character alone
_SLACK = 8


class Decoder:
    r"""A vocabulary, ready to decode in bulk.

    Examples
    --------
    >>> from koktok.model.vocab import Vocab
    >>> decoder = Decoder(Definition(Vocab.unigram({"가": -1.0, "나": -2.0})))
    >>> decoder(np.array([256, 257, 195, 169]), np.array([0, 1, 4]))
    ['가', '나é']
    >>> decoder(np.array([256, 0xEA, 0xB0, 0, 257]), np.array([0, 5]))
    ['가\ufffd\ufffd\ufffd나']
    """

    def __init__(self, definition: Definition) -> None:
        vocab = definition.vocab
        self.size = vocab.size
        self.letters = definition.jamo
        self.prefix = definition.prefix
        self.first_special = vocab.first_special
        self._bytewise = vocab.bytewise
        spelled, firsts = vocab.token_bytes, None
        if vocab.kind == "wordpiece":  # no space before the first token, which keeps even the mark of a continued word
            firsts = tuple(token.encode() for token in vocab.tokens)
            spelled = tuple(token[len(MARK) :] if token.startswith(MARK.encode()) else b" " + token for token in firsts)
        raw = (
            [i for i, text in enumerate(spelled) if whole_text(text) is None]
            if vocab.bytewise
            else range(vocab.n_bytes)
        )
        self._marked = firsts is not None
        self._lay_out(spelled, firsts, np.array(raw, np.int64))

    def _lay_out(self, spelled: Sequence[bytes], firsts: Sequence[bytes] | None, raw: NDArray[np.int64]) -> None:
        """Arrays for compiled code: records of tokens by id; units of all tokens, and of tokens that begin a document; bytes.

        Tokens of `raw` are bytes, the others UTF-8. The arrays of ends hold where each begins in the flat ones.
        """
        bare = set(raw.tolist())
        units = [b"" if i in bare else text.decode().encode(CODEC) for i, text in enumerate(spelled)]
        begin = [text.decode().encode(CODEC) for text in firsts] if firsts else units
        records = np.zeros((len(spelled), _INLINE + 1), np.uint16)
        long_ends, first_ends = (np.cumsum([0, *map(len, some)]) // 2 for some in (units, begin))
        longs, first_units = (np.frombuffer(b"".join(some), np.uint16) for some in (units, begin))
        counts, sizes = np.diff(long_ends), np.array([*map(len, spelled)], np.int64)
        records[:, _INLINE] = np.minimum(counts, _LONG)
        for k in range(_INLINE):
            some = np.flatnonzero((counts > k) & (counts <= _INLINE))
            records[some, k] = longs[long_ends[some] + k]
        # What needs to be counted is no plain copy either: halves of surrogate pairs, and the null between documents.
        odd = np.flatnonzero(((longs >= 0xD800) & (longs < 0xE000)) | (longs == 0))
        records[np.searchsorted(long_ends, odd, side="right") - 1, _INLINE] = _LONG
        records[raw, _INLINE] = _RAW
        most = np.maximum(counts, np.diff(first_ends))
        most[raw] = sizes[raw]
        self._most = most
        self._records = records.reshape(-1)
        ends = running(sizes)
        texts = np.frombuffer(b"".join(spelled), np.uint8)
        self._tables = (longs, long_ends, first_units, first_ends, texts, ends)

    def __call__(
        self, ids: Any, offsets: Any, *, skip_special_tokens: bool = False, threads: int | None = None
    ) -> list[str]:
        """Texts of documents; see `Tokenizer.decode_ids`."""
        flat, places = checked_flat(ids, offsets, self.size)
        limit = self.first_special if skip_special_tokens else self.size
        cuts = _batches(places)
        work = [(flat, places[a : b + 1], limit) for a, b in pairwise(cuts)]
        workers = workers_of(threads)
        if workers == 1 or len(work) < 2:
            parts = [self._decode(*some) for some in work]
        else:
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(lambda some: self._decode(*some), work))
        texts = [text for part in parts for text in part]
        return [without_prefix(text, self.prefix) for text in texts] if self.prefix else texts

    def batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids."""
        flat, ends = (
            array("I"),
            [0],
        )  # of a signed kind, CPython reads each number by the road of arguments: 3.5 times as long
        for row in rows:
            try:
                if type(row) is list:
                    flat.fromlist(row)  # faster, and leaves nothing of a row that it cannot take
                else:  # bytes hold numbers too, but are no ids: `checked_ids` refuses them
                    flat.extend(checked_ids(row, self.size) if isinstance(row, str | bytes | bytearray) else row)
            except (TypeError, OverflowError):
                del flat[ends[-1] :]
                flat.extend(checked_ids(row, self.size))
            ends.append(len(flat))
        ids = np.frombuffer(flat, np.uintc) if flat else np.empty(0, np.uintc)
        return self(ids, np.array(ends), skip_special_tokens=skip_special_tokens, threads=1)

    def _decode(self, ids: NDArray[Any], offsets: NDArray[np.int64], limit: int) -> list[str]:
        """Texts of documents without the tokens from `limit` on."""
        n = len(offsets) - 1
        if n == 0:
            return []
        state = np.zeros(3, np.int64)
        size = int(_measure(ids, offsets, limit, self._most, self._records, state))
        out, closes = np.empty(size + n + _SLACK, np.uint16), np.empty(n, np.int64)
        paired = np.zeros(n, np.bool_)
        words = np.ndarray((len(out) - 3,), np.int64, out, strides=(2,))
        used = _write(
            ids, offsets, limit, self._records, self._records.view(np.int64), *self._tables, self._marked,
            self._bytewise, np.empty(state[0], np.uint8), out, words, closes, paired, state,
        )  # fmt: skip
        # The units are the string, but for surrogate pairs, which are few: one in a batch must not make all of it wide.
        text = _string_of(2, out.ctypes.data, used)
        texts = text.split("\0")
        if state[2]:  # a document holds a null, which also separates documents
            texts = [
                text[first:last] for first, last in zip([0, *(closes[:-1] + 1).tolist()], closes.tolist(), strict=True)
            ]
        if state[1]:
            for i in np.flatnonzero(paired).tolist():
                texts[i] = texts[i].encode(CODEC, "surrogatepass").decode(CODEC)
        return [hangul.join(text) for text in texts] if self.letters else texts


_string_of: Any = ctypes.pythonapi["PyUnicode_FromKindAndData"]  # its own function object: others may set types too
_string_of.restype = ctypes.py_object
_string_of.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t]


def _batches(offsets: NDArray[np.int64]) -> list[int]:
    """Documents in runs of about `_BATCH` ids."""
    cuts, n = [0], len(offsets) - 1
    while cuts[-1] < n:
        reach = int(np.searchsorted(offsets, offsets[cuts[-1]] + _BATCH, side="right")) - 1
        cuts.append(min(max(reach, cuts[-1] + 1), n))
    return cuts


@njit(nogil=True, cache=True)
def _measure(ids, offsets, limit, most, records, state):
    """Most units that the tokens become; in `state`, bytes of those that are bytes."""
    total, raw = np.int64(0), np.int64(0)
    for at in range(offsets[0], offsets[-1]):
        i = np.uint64(ids[at])
        if i < np.uint64(limit):
            total += most[i]
            if records[i * np.uint64(8) + np.uint64(7)] == _RAW:
                raw += most[i]
    state[0] = raw
    return total


@njit(nogil=True, cache=True)
def _settle(run, size, bytewise, out, used, state):
    """Units of a run of bytes, what is no UTF-8 as U+FFFD; returns where the next unit goes."""
    begin, at, pairs, nulls = used, np.int64(0), np.int64(0), np.int64(0)
    while at < size:
        first = np.int64(run[at])
        low, high = 0x80, 0xBF
        if first < 0x80:
            more, char = 0, first
        elif 0xC2 <= first <= 0xDF:
            more, char = 1, first & 0x1F
        elif 0xE0 <= first <= 0xEF:
            more, char = 2, first & 0x0F
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more, char = 3, first & 0x07
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            more, char = -1, first
        read = np.int64(1)
        while read <= more and at + read < size:
            byte = np.int64(run[at + read])
            if not low <= byte <= high:
                break
            low, high = 0x80, 0xBF
            char = (char << 6) | (byte & 0x3F)
            read += 1
        at += read
        if read <= more or more < 0:
            if not bytewise:
                for k in range(size):
                    out[begin + k] = 0xFFFD
                return begin + size
            char = np.int64(0xFFFD)  # one for the longest beginning of a character, as Python's decoder has it
        if char >= 0x10000:
            out[used] = 0xD7C0 + (char >> 10)
            out[used + 1] = 0xDC00 + (char & 0x3FF)
            used += 2
            pairs += 1
        else:
            nulls += char == 0
            out[used] = char
            used += 1
    state[1] += pairs
    state[2] += nulls
    return used


@njit(nogil=True, cache=True)
def _copied(units, begin, end, out, used, state):
    """The units of a token written out; returns where the next unit goes."""
    for k in range(begin, end):
        unit = units[k]
        state[1] += (unit & 0xFC00) == 0xD800
        state[2] += unit == 0
        out[used] = unit
        used += 1
    return used


@njit(nogil=True, cache=True)
def _write(
    ids, offsets, limit, records, record_words, longs, long_ends, firsts, first_ends, texts, ends, marked, bytewise, run,
    out, words, closes, paired, state,
):  # fmt: skip
    """Units of all documents, a null between them; returns how many.

    In `closes`, where each document ends; in `paired`, whether it holds surrogate pairs; in `state`, how many of these there
    are, and nulls inside documents.
    """
    used, running, pairs = np.int64(0), np.int64(0), np.int64(0)
    bound, eight = np.uint64(limit), np.uint64(8)
    for document in range(len(offsets) - 1):
        if document > 0:
            out[used] = 0
            used += 1
        first = marked
        plain = not first
        for at in range(offsets[document], offsets[document + 1]):
            i = np.uint64(ids[at])
            if i >= bound:
                continue
            size = np.int64(records[i * eight + np.uint64(7)])
            if plain and size <= _INLINE:
                words[np.uint64(used)] = record_words[i * np.uint64(2)]
                words[np.uint64(used) + np.uint64(4)] = record_words[i * np.uint64(2) + np.uint64(1)]
                used += size
                continue
            if size == _RAW:
                for k in range(ends[i], ends[i + np.uint64(1)]):
                    run[running] = texts[k]
                    running += 1
                first = plain = False
                continue
            if running > 0:
                used = _settle(run, running, bytewise, out, used, state)
                running = np.int64(0)
            if first:
                used = _copied(firsts, first_ends[i], first_ends[i + np.uint64(1)], out, used, state)
            else:
                used = _copied(longs, long_ends[i], long_ends[i + np.uint64(1)], out, used, state)
            first = False
            plain = True
        if running > 0:
            used = _settle(run, running, bytewise, out, used, state)
            running = np.int64(0)
        closes[document] = used
        paired[document] = state[1] > pairs
        pairs = state[1]
    return used
