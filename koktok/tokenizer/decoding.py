"""The way back: tokens to text, as Hugging Face's decoders of the same names do it, so that both give the same text.

This file adds: what each kind of vocabulary loses. Pieces with real spaces are only joined; bytes are collected until
they make characters; WordPiece alone puts spaces where it may, because it kept none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

from koktok.errors import InputError
from koktok.vocab import BYTE_OF, MARK, Vocab

__all__ = ["checked_id", "checked_ids", "decoder_for"]

Decode = Callable[[Vocab, Sequence[int]], str]


def checked_id(given: Any, size: int) -> int:
    """`given`, if it is an id of a vocabulary of that size; numpy integers are ids too.

    Raises
    ------
    InputError
        When it is no integer, or outside the vocabulary.

    Examples
    --------
    >>> checked_id(300, 256)
    Traceback (most recent call last):
        ...
    koktok.errors.InputError: the id 300 is outside the vocabulary (0 to 255)
    """
    try:
        i = index(given)
    except TypeError:
        hint = (
            "tokenizer.decode(row) for each row" if isinstance(given, Iterable) and not isinstance(given, str) else ""
        )
        raise InputError(f"`decode` got the id {given!r}; ids are integers", hint=hint) from None
    if not 0 <= i < size:
        raise InputError(f"the id {i} is outside the vocabulary (0 to {size - 1})")
    return i


def checked_ids(given: Any, size: int) -> list[int]:
    """All of `given`, if they are ids; text and bytes are no ids, though one can iterate over them.

    Raises
    ------
    InputError
        As `checked_id`, and when `given` is no sequence of ids at all.

    Examples
    --------
    >>> checked_ids(b"ab", 256)
    Traceback (most recent call last):
        ...
    koktok.errors.InputError: `decode` got bytes where ids (integers) were wanted
    hint: tokenizer.decode(tokenizer.encode(text).ids)
    """
    try:
        if isinstance(given, str | bytes | bytearray):
            raise TypeError
        given = list(given)  # an array of no dimensions calls itself iterable, and is not
    except TypeError:
        raise InputError(
            f"`decode` got {type(given).__name__} where ids (integers) were wanted",
            hint="tokenizer.decode(tokenizer.encode(text).ids)",
        ) from None
    try:
        ids = list(map(index, given))
    except TypeError:
        ids = []
    if len(ids) == len(given) and (not ids or (min(ids) >= 0 and max(ids) < size)):
        return ids
    return [checked_id(i, size) for i in given]  # one of them raises


def decoder_for(vocab: Vocab) -> Decode:
    r"""The decoder of a kind of vocabulary: ids inside its range to text.

    Examples
    --------
    >>> vocab = Vocab.bpe("가", [])
    >>> decoder_for(vocab)(vocab, [256, 0xEA, 0xB0, 0x81, 256, 0xFF])
    '가각가�'
    """
    return {"bpe-bytes": _byte_level, "wordpiece": _wordpiece, "wordpiece-bytes": _wordpiece_bytes}.get(
        vocab.kind, _byte_fallback
    )


def _byte_fallback(vocab: Vocab, ids: Sequence[int]) -> str:
    """Pieces joined; a run of byte pieces that is no UTF-8 becomes one U+FFFD a byte, as in ByteFallback."""
    parts: list[str] = []
    raw = bytearray()

    def flush() -> None:
        if raw:
            try:
                parts.append(raw.decode("utf-8"))
            except UnicodeDecodeError:
                parts.append("\ufffd" * len(raw))
            raw.clear()

    for i in ids:
        if i < vocab.n_bytes:
            raw.append(i)
        else:
            flush()
            parts.append(vocab.tokens[i])
    flush()
    return "".join(parts)


def _byte_level(vocab: Vocab, ids: Sequence[int]) -> str:
    """The bytes that pieces spell, joined, then read as UTF-8; what is none becomes U+FFFD, as in ByteLevel."""
    return _bytes_of(vocab, ((vocab.tokens[i], i) for i in ids))


def _wordpiece(vocab: Vocab, ids: Sequence[int]) -> str:
    """A space before every token that continues no word, but the first, as in WordPiece (cleanup=False)."""
    tokens = [vocab.tokens[i] for i in ids]
    return "".join(
        token if not i else token[len(MARK) :] if token.startswith(MARK) else f" {token}"
        for i, token in enumerate(tokens)
    )


def _wordpiece_bytes(vocab: Vocab, ids: Sequence[int]) -> str:
    """`_byte_level` without the marks of continued words: spaces are among the bytes."""
    return _bytes_of(vocab, ((vocab.tokens[i].removeprefix(MARK), i) for i in ids))


def _bytes_of(vocab: Vocab, tokens: Iterable[tuple[str, int]]) -> str:
    """Spelled bytes to text; special tokens are spelled as themselves."""
    first_special = vocab.size - len(vocab.specials)
    raw = bytearray()
    for token, i in tokens:
        raw += token.encode() if i >= first_special else bytes(BYTE_OF[char] for char in token)
    return raw.decode("utf-8", errors="replace")
