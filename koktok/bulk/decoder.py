"""`Decoder`: ids back to texts, by the gigabyte: the bytes of all tokens laid one behind the other by compiled code.

This file adds: the way back in one pass. What a token spells depends on nothing but the token and whether it is the first
of its text (WordPiece puts a space before the others). `koktok.bulk.utf16` writes it; where that stops, at a null or at
bytes that make no character, the bytes themselves are written here and read by Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from koktok import hangul
from koktok.bulk.encoder import workers_of
from koktok.bulk.trie import BYTEWISE
from koktok.bulk.utf16 import Records
from koktok.errors import InputError
from koktok.tokenizer.decoding import checked_ids
from koktok.vocab import BYTE_OF, MARK, Vocab

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Decoder", "checked_flat"]

_BATCH = 1 << 17  # ids handed to a thread at once: their text stays in the second cache until strings are made of it


class Decoder:
    """A vocabulary, ready to decode in bulk.

    Parameters
    ----------
    vocab : Vocab
    letters : bool
        Whether pieces are spelled in conjoining jamo.

    Examples
    --------
    >>> decoder = Decoder(Vocab.unigram({"가": -1.0, "나": -2.0}))
    >>> decoder(np.array([256, 257, 195, 169]), np.array([0, 1, 4]))
    ['가', '나é']
    """

    def __init__(self, vocab: Vocab, *, letters: bool = False) -> None:
        self.size = vocab.size
        self.letters = letters
        self.first_special = vocab.size - len(vocab.specials)
        self._runs = vocab.n_bytes  # ids below are byte pieces, whose runs are read as UTF-8
        spelled = [_bytes_of(vocab, i, token, self.first_special) for i, token in enumerate(vocab.tokens)]
        self._texts, self._ends = self._firsts, self._first_ends = _flat(spelled)
        firsts = None
        if vocab.kind == "wordpiece":  # no space before the first token, which keeps even the mark of a continued word
            firsts = [token.encode() for token in vocab.tokens]
            self._firsts, self._first_ends = _flat(firsts)
        bytewise = vocab.kind in BYTEWISE
        raw = {i for i, text in enumerate(spelled) if _torn(text)} if bytewise else set(range(vocab.n_bytes))
        self._records = Records.of(spelled, firsts, raw, torn=bytewise)

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
        return [text for part in parts for text in part]

    def batch(self, rows: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Texts of rows of ids."""
        flat, ends = array("q"), [0]
        for row in rows:
            try:
                if type(row) is list:
                    flat.fromlist(row)  # faster, and leaves nothing of a row that it cannot take
                else:  # bytes hold numbers too, but are no ids; `checked_ids` says so
                    flat.extend(checked_ids(row, self.size) if isinstance(row, str | bytes | bytearray) else row)
            except (TypeError, OverflowError):
                del flat[ends[-1] :]
                flat.extend(checked_ids(row, self.size))
            ends.append(len(flat))
        ids = np.frombuffer(flat, np.int64) if flat else np.empty(0, np.int64)
        return self(ids, np.array(ends), skip_special_tokens=skip_special_tokens, threads=1)

    def _decode(self, ids: NDArray[Any], offsets: NDArray[np.int64], limit: int) -> list[str]:
        texts = self._records.texts_of(ids, offsets, limit)
        if texts is None:  # it holds nulls, or bytes that Python alone knows how to replace
            texts = self._decode_bytes(ids, offsets, limit)
        return [hangul.join(text) for text in texts] if self.letters else texts

    def _decode_bytes(self, ids: NDArray[Any], offsets: NDArray[np.int64], limit: int) -> list[str]:
        n = len(offsets) - 1
        ends = np.zeros(n + 1, np.int64)
        table = (self._firsts, self._first_ends, self._texts, self._ends)
        size = _measure(ids, offsets, limit, self._ends, self._first_ends)
        # A byte that makes no character becomes U+FFFD, three bytes.
        out = np.empty(size + (2 * _count_below(ids, offsets, self._runs) if self._runs else 0), np.uint8)
        _write(ids, offsets, limit, self._runs, *table, out, ends)
        chars = np.zeros(n + 1, np.int64)
        try:
            whole = _count(out, ends, chars)
            text = str(out[: ends[-1]].data, "utf-8") if whole else ""
        except UnicodeDecodeError:
            whole = False
        if whole:  # one text is decoded faster than many, and cut where documents end
            at = chars.tolist()
            return [text[first:last] for first, last in pairwise(at)]
        data, at = out.tobytes(), ends.tolist()
        return [data[first:last].decode("utf-8", "replace") for first, last in pairwise(at)]


def _bytes_of(vocab: Vocab, i: int, token: str, first_special: int) -> bytes:
    """What a token spells where it is not the first one."""
    if i < vocab.n_bytes:
        return bytes([i])
    if vocab.kind == "wordpiece":
        return (token[len(MARK) :] if token.startswith(MARK) else f" {token}").encode()
    if vocab.kind in ("bpe-bytes", "wordpiece-bytes"):
        spelled = token.removeprefix(MARK) if vocab.kind == "wordpiece-bytes" else token
        return spelled.encode() if i >= first_special else bytes(BYTE_OF[char] for char in spelled)
    return token.encode()


def checked_flat(ids: Any, offsets: Any, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Flat ids and the places of documents, if they fit each other and a vocabulary of that size.

    Raises
    ------
    InputError
        When they do not.

    Examples
    --------
    >>> checked_flat([5, 6], [0, 1, 2], 7)
    (array([5, 6]), array([0, 1, 2]))
    """
    try:
        flat = np.ascontiguousarray(ids)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"rows came where flat ids were wanted: {error}", hint="tokenizer.decode_batch(rows)"
        ) from None
    places = _places_of(offsets)
    if flat.dtype.kind not in "iu" and len(flat):
        raise InputError(f"an array of {flat.dtype} came where ids (integers) were wanted")
    if flat.dtype.kind not in "iu":
        flat = flat.astype(np.uint16)
    if (
        flat.ndim != 1
        or places.ndim != 1
        or not len(places)
        or places[0] < 0
        or places[-1] > len(flat)
        or (len(places) == 1 and places[0] > 0)
    ):
        raise InputError(
            "flat ids and rising offsets that lie inside them were wanted",
            hint="decode_ids(tokens.ids, tokens.offsets)",
        )
    if (np.diff(places) < 0).any():
        raise InputError("the offsets of documents go back", hint="decode_ids(tokens.ids, tokens.offsets)")
    if len(flat) and not 0 <= (low := int(flat.min())) <= (high := int(flat.max())) < size:
        bad = low if low < 0 else high
        raise InputError(f"the id {bad} is outside the vocabulary (0 to {size - 1})")
    return flat, places


def _places_of(offsets: Any) -> NDArray[np.int64]:
    """Offsets as they came, if they are integers."""
    try:
        given = np.asarray(offsets)
    except (TypeError, ValueError):  # rows of several lengths
        given = np.asarray("")
    if given.dtype.kind not in "iu" and given.size:
        raise InputError(
            f"offsets must be an array of integers, and {type(offsets).__name__} came",
            hint="decode_ids(tokens.ids, tokens.offsets)",
        )
    return np.ascontiguousarray(given, np.int64)


def _torn(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def _flat(texts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    ends = np.cumsum([0, *map(len, texts)])
    return np.frombuffer(b"".join(texts), np.uint8), ends


def _batches(offsets: NDArray[np.int64]) -> list[int]:
    """Documents in runs of about `_BATCH` ids."""
    cuts, n = [0], len(offsets) - 1
    while cuts[-1] < n:
        reach = int(np.searchsorted(offsets, offsets[cuts[-1]] + _BATCH, side="right")) - 1
        cuts.append(min(max(reach, cuts[-1] + 1), n))
    return cuts


@njit(nogil=True, cache=True)
def _measure(ids, offsets, limit, ends, first_ends):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Bytes of all tokens, each taken for the longer of what it may spell."""
    total = np.int64(0)
    for at in range(offsets[0], offsets[-1]):
        i = np.int64(ids[at])
        if i < limit:
            total += max(ends[i + 1] - ends[i], first_ends[i + 1] - first_ends[i])
    return total


@njit(nogil=True, cache=True)
def _count(out, ends, chars):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """How many characters the documents have up to the end of each; False where one begins inside a character."""
    total = np.int64(0)
    for document in range(len(ends) - 1):
        begin, end = ends[document], ends[document + 1]
        if begin < end and out[begin] & 0xC0 == 0x80:
            return False
        for i in range(begin, end):
            total += out[i] & 0xC0 != 0x80
        chars[document + 1] = total
    return True


@njit(nogil=True, cache=True)
def _count_below(ids, offsets, n_bytes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    total = np.int64(0)
    for at in range(offsets[0], offsets[-1]):
        total += np.int64(ids[at]) < n_bytes
    return total


@njit(nogil=True, cache=True)
def _sound(out, begin, end):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """True where bytes are UTF-8: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut off."""
    at = begin
    while at < end:
        first = out[at]
        if first < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more >= end or not low <= out[at + 1] <= high:
            return False
        for i in range(at + 2, at + more + 1):
            if not 0x80 <= out[i] <= 0xBF:
                return False
        at += more + 1
    return True


@njit(nogil=True, cache=True)
def _settle(out, begin, used):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A run of byte pieces: what is no UTF-8 becomes one U+FFFD a byte; returns where the next byte goes."""
    if _sound(out, begin, used):
        return used
    for k in range(used - begin):
        out[begin + 3 * k], out[begin + 3 * k + 1], out[begin + 3 * k + 2] = 0xEF, 0xBF, 0xBD
    return begin + 3 * (used - begin)


@njit(nogil=True, cache=True)
def _write(  # type: ignore[no-untyped-def]
    ids, offsets, limit, n_bytes, firsts, first_ends, texts, ends, out, closes
):  # pragma: no cover - compiled
    used = np.int64(0)
    for document in range(len(offsets) - 1):
        first, run = True, np.int64(-1)
        for at in range(offsets[document], offsets[document + 1]):
            i = np.int64(ids[at])
            if i >= limit:
                continue
            if i < n_bytes:
                if run < 0:
                    run = used
                out[used] = i
                used += 1
                first = False
                continue
            if run >= 0:
                used = _settle(out, run, used)
                run = np.int64(-1)
            if first:
                first = False
                for k in range(first_ends[i], first_ends[i + 1]):
                    out[used] = firsts[k]
                    used += 1
            else:
                for k in range(ends[i], ends[i + 1]):
                    out[used] = texts[k]
                    used += 1
        if run >= 0:
            used = _settle(out, run, used)
        closes[document + 1] = used
