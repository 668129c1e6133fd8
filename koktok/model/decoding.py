r"""Ids to text, all at once or one by one, as Hugging Face's decoders of the same names do it.

Pieces with real spaces are only joined; bytes are collected until they make characters; WordPiece alone adds spaces, because
its pieces have none.

Where ids come one by one, as a model generates them, a token may end inside a character, and in a vocabulary of jamo a
syllable may still grow by the next token (가 + ㅆ is 갔). Text that may still change is held back, so the strings of all
pushes join to the text of all ids, for any ids. Held back are at most

* three bytes of an incomplete character;
* in jamo mode one syllable that a vowel or a tail may extend;
* with byte fallback the run of byte pieces at the end: one bad byte makes every byte of its run U+FFFD, as in Hugging
  Face's decoder, so no character of the run is certain before the run ends. Only characters without a piece, an emoji or a
  rare hanja, have such runs.

The same rules stand in `bulk/decoder.py` (compiled), `runtimes/huggingface/tokenizer_json.py` (as nodes of a tokenizer.json) and
`report/playground/engine.js`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from operator import index
from typing import Any

from koktok import hangul
from koktok.errors import InputError
from koktok.model.definition import Definition
from koktok.model.vocab import MARK, Vocab
from koktok.text.prefix import without_prefix


def checked_id(value: Any, size: int) -> int:
    """An id of a vocabulary of that size; numpy integers are ids too."""
    try:
        i = index(value)
    except TypeError:
        row = isinstance(value, Iterable) and not isinstance(value, str)
        hint = "tokenizer.decode(row) for each row" if row else ""
        raise InputError(f"expected an integer as id in `decode`, got {value!r}", hint=hint) from None
    if not 0 <= i < size:
        raise InputError(f"the id {i} is outside the vocabulary (0 to {size - 1})")
    return i


def checked_ids(values: Any, size: int) -> list[int]:
    """A row of ids; text and bytes are none, though they can be iterated."""
    try:
        if isinstance(values, str | bytes | bytearray):
            raise TypeError
        row = list(values)  # an array of no dimensions calls itself iterable, and is not
    except TypeError:
        raise InputError(
            f"expected ids (integers) in `decode`, got {type(values).__name__}",
            hint="tokenizer.decode(tokenizer.encode(text).ids)",
        ) from None
    try:
        ids = list(map(index, row))
    except TypeError:
        ids = []
    if len(ids) == len(row) and (not ids or (min(ids) >= 0 and max(ids) < size)):
        return ids
    return [checked_id(i, size) for i in row]  # one of them raises


class PieceDecoder:
    """Pieces, joined; a run of byte pieces that is no UTF-8 becomes one U+FFFD a byte when the run ends."""

    def __init__(self, vocab: Vocab) -> None:
        self._tokens, self._n_bytes, self._raw = vocab.tokens, vocab.n_bytes, bytearray()

    @property
    def waiting(self) -> bool:
        """Whether text is held back."""
        return bool(self._raw)

    def push(self, i: int) -> str:
        """The text that cannot change any more after this id, which is in the vocabulary."""
        if i < self._n_bytes:
            self._raw.append(i)
            return ""
        return self.finish() + self._tokens[i] if self._raw else self._tokens[i]

    def finish(self) -> str:
        """The text that was held back; the decoder is then as new."""
        raw = bytes(self._raw)
        self._raw.clear()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return "\ufffd" * len(raw)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids that are in the vocabulary."""
        return "".join(map(self.push, ids)) + self.finish()


class _ByteLevel(PieceDecoder):
    """The bytes of tokens, decoded as UTF-8; invalid bytes become U+FFFD, as in ByteLevel."""

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._bytes = vocab.token_bytes
        # Python's own incremental decoder replaces exactly what `bytes.decode` replaces.
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def waiting(self) -> bool:
        return bool(self._utf8.getstate()[0])

    def push(self, i: int) -> str:
        return self._utf8.decode(self._bytes[i])

    def finish(self) -> str:
        text = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        return text

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(map(self._bytes.__getitem__, ids)).decode("utf-8", "replace")


class _WordPiece(PieceDecoder):
    """A space before every token that begins a word, except the first, as in WordPiece (cleanup=False)."""

    def __init__(self, vocab: Vocab) -> None:
        super().__init__(vocab)
        self._first = True

    def push(self, i: int) -> str:
        token = self._tokens[i]
        if self._first:
            self._first = False
            return token
        return token[len(MARK) :] if token.startswith(MARK) else f" {token}"

    def finish(self) -> str:
        self._first = True
        return ""


def decoder_for(vocab: Vocab) -> PieceDecoder:
    """The decoder of a kind of vocabulary."""
    return (_ByteLevel if vocab.bytewise else _WordPiece if vocab.marked else PieceDecoder)(vocab)


class Stream:
    """A decoder of one id at a time, from `TrainedTokenizer.stream`.

    Law: ``"".join(map(stream.push, ids)) + stream.finish() == tokenizer.decode(ids)``.

    Examples
    --------
    >>> vocab = Vocab.bpe(" 한글", [" 한"])
    >>> stream = Stream(Definition(vocab))
    >>> [stream.push(i) for i in (vocab.ids[" 한"], 0xC3, 0xA9, vocab.ids["글"])], stream.finish()
    ([' 한', '', '', 'é글'], '')
    """

    def __init__(self, definition: Definition, *, skip_special_tokens: bool = False) -> None:
        vocab = definition.vocab
        self._size = vocab.size
        self._end = vocab.first_special if skip_special_tokens else vocab.size
        self._letters = definition.jamo
        self._prefix, self._first = definition.prefix, bool(definition.prefix)
        self._decoder = decoder_for(vocab)
        self._pending = ""  # jamo mode: a lead or an open syllable at the end of the text so far

    def push(self, token_id: int) -> str:
        """The text that cannot change any more after this id; '' where a character is incomplete."""
        i = checked_id(token_id, self._size)
        return self._without_first_space(self._complete(self._decoder.push(i))) if i < self._end else ""

    def finish(self) -> str:
        """The text that was held back, an incomplete character as U+FFFD; the stream is then as new."""
        text = self._pending + self._decoder.finish()
        self._pending = ""
        text = self._without_first_space(hangul.join(text) if self._letters else text)
        self._first = bool(self._prefix)
        return text

    @property
    def waiting(self) -> bool:
        """Whether text is held back."""
        return bool(self._pending) or self._decoder.waiting

    def _without_first_space(self, text: str) -> str:
        if not text:
            return text
        first, self._first = self._first, False
        return without_prefix(text, self._prefix) if first else text

    def _complete(self, text: str) -> str:
        """The pending text and this one, without the part that is pending now."""
        if not self._letters or not text:
            return text
        text = hangul.join(self._pending + text)
        end = len(text) - hangul.may_grow(text[-1])
        self._pending = text[end:]
        return text[:end]
