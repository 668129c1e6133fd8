r"""The way back: ids to text, whole or one by one, as Hugging Face's decoders of the same names do it.

What each kind of vocabulary loses, and patience. Pieces with real spaces are only joined; bytes are
collected until they make characters; WordPiece alone puts spaces where it may, because it kept none.

Where ids come one by one, as a model gives them, a token may end inside a character, and in a vocabulary of jamo a
syllable may still grow by the token after it (가 + ㅆ is 갔). What may still change is held back, so that what went out
once is never taken back, and the strings of all pushes join to the text of all ids, for any ids at all. Held back, at most:

* three bytes, of a character that has begun;
* in jamo mode one syllable that a vowel or a tail may still join;
* with byte fallback the run of byte pieces at the end: one bad byte makes every byte of its run U+FFFD, as in Hugging
  Face's decoder, so no character of the run is sure before the run ends. Text of characters that have pieces has no such
  runs, but for an emoji or a rare hanja here and there.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from operator import index
from typing import Any

from koktok import hangul
from koktok.errors import InputError
from koktok.text.prefix import Prefix, without_prefix
from koktok.vocab import MARK, Vocab


def checked_id(given: Any, size: int) -> int:
    """`given`, if it is an id of a vocabulary of that size; numpy integers are ids too."""
    try:
        i = index(given)
    except TypeError:
        hint = (
            "tokenizer.decode(row) for each row" if isinstance(given, Iterable) and not isinstance(given, str) else ""
        )
        raise InputError(f"expected an integer as id in `decode`, got {given!r}", hint=hint) from None
    if not 0 <= i < size:
        raise InputError(f"the id {i} is outside the vocabulary (0 to {size - 1})")
    return i


def checked_ids(given: Any, size: int) -> list[int]:
    """All of `given`, if they are ids; text and bytes are no ids, though one can iterate over them."""
    try:
        if isinstance(given, str | bytes | bytearray):
            raise TypeError
        given = list(given)  # an array of no dimensions calls itself iterable, and is not
    except TypeError:
        raise InputError(
            f"expected ids (integers) in `decode`, got {type(given).__name__}",
            hint="tokenizer.decode(tokenizer.encode(text).ids)",
        ) from None
    try:
        ids = list(map(index, given))
    except TypeError:
        ids = []
    if len(ids) == len(given) and (not ids or (min(ids) >= 0 and max(ids) < size)):
        return ids
    return [checked_id(i, size) for i in given]  # one of them raises


class PieceDecoder:
    """Pieces as they stand, joined; a run of byte pieces that is no UTF-8 becomes one U+FFFD a byte, when the run ends."""

    def __init__(self, vocab: Vocab) -> None:
        self._tokens, self._n_bytes, self._raw = vocab.tokens, vocab.n_bytes, bytearray()

    @property
    def waiting(self) -> bool:
        """True where something is held back: `finish` would give more than ''."""
        return bool(self._raw)

    def push(self, i: int) -> str:
        """The text that is settled by an id that is in the vocabulary."""
        if i < self._n_bytes:
            self._raw.append(i)
            return ""
        return self.finish() + self._tokens[i] if self._raw else self._tokens[i]

    def finish(self) -> str:
        """What was held back; the decoder is then as new."""
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
    """The bytes that tokens spell, read as UTF-8 (what is none becomes U+FFFD, as in ByteLevel)."""

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
    """A space before every token that continues no word, but the first, as in WordPiece (cleanup=False)."""

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
    r"""The decoder of a kind of vocabulary."""
    return (_ByteLevel if vocab.bytewise else _WordPiece if vocab.marked else PieceDecoder)(vocab)


class Stream:
    r"""A decoder of one id at a time; `Tokenizer.stream` makes it.

    Law: ``"".join(map(stream.push, ids)) + stream.finish() == tokenizer.decode(ids)``; U+FFFD comes only where `decode`
    gives it.

    Examples
    --------
    >>> from koktok import Recipe
    >>> from koktok.tokenizer import TrainedTokenizer
    >>> from koktok.vocab import Vocab
    >>> tokenizer = TrainedTokenizer(Recipe(), Vocab.bpe(" 한글", [" 한"]))
    >>> stream = tokenizer.stream()
    >>> [stream.push(i) for i in tokenizer.encode("한é글").ids], stream.finish()
    (['한', '', '', 'é글'], '')
    """

    def __init__(
        self,
        vocab: Vocab,
        *,
        letters: bool = False,
        prefix: Prefix = "",
        skip_special_tokens: bool = False,
    ) -> None:
        self._size = vocab.size
        self._end = vocab.first_special if skip_special_tokens else vocab.size
        self._letters = letters
        self._prefix, self._first = prefix, bool(prefix)
        self._decoder = decoder_for(vocab)
        self._open = ""  # jamo mode: a lead or an open syllable at the end of the text so far

    def push(self, token_id: int) -> str:
        """The text that is settled by this id; often '' where a character is not whole yet."""
        i = checked_id(token_id, self._size)
        return self._begun(self._settled(self._decoder.push(i))) if i < self._end else ""

    def finish(self) -> str:
        """What was held back; a character that never became whole is U+FFFD. The stream is then as new."""
        text = self._open + self._decoder.finish()
        self._open = ""
        text = self._begun(hangul.join(text) if self._letters else text)
        self._first = bool(self._prefix)
        return text

    @property
    def waiting(self) -> bool:
        """True where something is held back: `finish` would give more than ''."""
        return bool(self._open) or self._decoder.waiting

    def _begun(self, text: str) -> str:
        """`text`, without what was put before it."""
        if not text:
            return text
        first, self._first = self._first, False
        return without_prefix(text, self._prefix) if first else text

    def _settled(self, text: str) -> str:
        """`text` behind what was open, without what is open now."""
        if not self._letters or not text:
            return text
        text = hangul.join(self._open + text)
        end = len(text) - hangul.may_grow(text[-1])
        self._open = text[end:]
        return text[:end]
