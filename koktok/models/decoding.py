"""The way back: tokens to text, as Hugging Face's decoders of the same names do it, so that both give the same text.

This file adds: what each kind of vocabulary loses. Pieces with real spaces are only joined; bytes are collected until
they make characters; WordPiece alone puts spaces where it may, because it kept none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from koktok.models.wordpiece import MARK
from koktok.vocab import BYTE_CHARS, Vocab

__all__ = ["decoder_for"]

Decode = Callable[[Vocab, Sequence[int]], str]

_BYTE_OF = {char: byte for byte, char in enumerate(BYTE_CHARS)}


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
        raw += token.encode() if i >= first_special else bytes(_BYTE_OF[char] for char in token)
    return raw.decode("utf-8", errors="replace")
