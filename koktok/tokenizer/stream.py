r"""`Stream`: ids come one by one, as a model gives them, and text goes out as soon as it is settled.

This file adds: patience. A token may end inside a character, and in a vocabulary of jamo a syllable may still grow by the
token after it (가 + ㅆ is 갔). What may still change is held back, so that what went out once is never taken back, and
the strings of all pushes join to `Tokenizer.decode` of all ids, for any ids at all.

What is held back, at most:

* three bytes, of a character that has begun;
* in jamo mode one syllable that a vowel or a final may still join;
* with byte fallback the run of byte pieces at the end: one bad byte makes every byte of its run U+FFFD, as in Hugging
  Face's decoder, so no character of the run is sure before the run ends. Text of characters that have pieces has no such
  runs, but for an emoji or a rare hanja here and there. Where whole sentences come as bytes (Thai from a vocabulary
  without Thai), `early=True` lets each character out when its last byte is there; after bytes that are no UTF-8, which
  no encoding of a text has, the text may then differ from that of `decode`: what was good stays good.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Protocol

from koktok import hangul
from koktok.tokenizer.decoding import checked_id
from koktok.vocab import BYTE_OF, MARK

if TYPE_CHECKING:
    from koktok.vocab import Vocab

__all__ = ["Stream"]


class Stream:
    r"""A decoder of one id at a time; `Tokenizer.stream` makes it.

    Law: ``"".join(map(stream.push, ids)) + stream.finish() == tokenizer.decode(ids)``, unless `early`; U+FFFD comes only
    where `decode` gives it.

    Parameters
    ----------
    vocab : Vocab
    letters : bool
        Whether pieces are spelled in conjoining jamo.
    skip_special_tokens : bool
        Leave special tokens out, as `decode` does.
    early : bool
        Let a character of byte pieces out when its last byte is there, not when the run of bytes ends; see the module.

    Examples
    --------
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.vocab import Vocab
    >>> tokenizer = Tokenizer(Recipe(), Vocab.bpe("한글", []))
    >>> stream = tokenizer.stream()
    >>> [stream.push(i) for i in tokenizer.encode("한é글").ids], stream.finish()
    (['한', '', '', 'é글'], '')
    >>> stream = tokenizer.stream(early=True)
    >>> [stream.push(i) for i in tokenizer.encode("한é글").ids], stream.finish()
    (['한', '', 'é', '글'], '')
    """

    def __init__(
        self, vocab: Vocab, *, letters: bool = False, skip_special_tokens: bool = False, early: bool = False
    ) -> None:
        self._vocab = vocab
        self._first_special = vocab.size - len(vocab.specials)
        self._skip = skip_special_tokens
        self._letters = letters
        self._decoder = _decoder_for(vocab, early=early)
        self._open = ""  # jamo mode: a lead or an open syllable at the end of the text so far

    def push(self, token_id: int) -> str:
        """The text that is settled by this id; often '' where a character is not whole yet.

        Raises
        ------
        InputError
            When the id is no integer or outside the vocabulary; the stream is as it was before.
        """
        i = checked_id(token_id, self._vocab.size)
        if i >= self._first_special and self._skip:
            return ""
        return self._settled(self._decoder.push(i))

    def finish(self) -> str:
        """What was held back; a character that never became whole is U+FFFD. The stream is then as new."""
        text = self._open + self._decoder.finish()
        self._open = ""
        return hangul.join(text) if self._letters else text

    @property
    def waiting(self) -> bool:
        """True where something is held back: `finish` would give more than ''."""
        return bool(self._open) or self._decoder.waiting

    def _settled(self, text: str) -> str:
        """`text` behind what was open, without what is open now."""
        if not self._letters or not text:
            return text
        text = hangul.join(self._open + text)
        end = len(text) - hangul.may_grow(text[-1])
        self._open = text[end:]
        return text[:end]


class _Decoder(Protocol):
    """Ids that are in the vocabulary to text, one by one."""

    @property
    def waiting(self) -> bool: ...

    def push(self, i: int) -> str: ...

    def finish(self) -> str: ...


def _decoder_for(vocab: Vocab, *, early: bool) -> _Decoder:
    match vocab.kind:
        case "bpe-bytes" | "wordpiece-bytes":
            return _ByteLevel(vocab)
        case "wordpiece":
            return _WordPiece(vocab)
        case _:
            return _EarlyByteFallback(vocab) if early else _ByteFallback(vocab)


class _ByteFallback:
    """Pieces as they come; a run of byte pieces when it ends."""

    def __init__(self, vocab: Vocab) -> None:
        self._n_bytes, self._tokens = vocab.n_bytes, vocab.tokens
        self._raw = bytearray()

    @property
    def waiting(self) -> bool:
        return bool(self._raw)

    def push(self, i: int) -> str:
        if i < self._n_bytes:
            self._raw.append(i)
            return ""
        return self.finish() + self._tokens[i] if self._raw else self._tokens[i]

    def finish(self) -> str:
        raw = bytes(self._raw)
        self._raw.clear()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return "\ufffd" * len(raw)


class _Bytes:
    """UTF-8 that comes in parts; Python's own incremental decoder, which replaces exactly what `bytes.decode` replaces."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def waiting(self) -> bool:
        return bool(self._utf8.getstate()[0])

    def finish(self) -> str:
        text = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        return text


class _EarlyByteFallback(_Bytes):
    """Pieces as they come; a character of byte pieces when it is whole."""

    def __init__(self, vocab: Vocab) -> None:
        super().__init__()
        self._n_bytes, self._tokens = vocab.n_bytes, vocab.tokens

    def push(self, i: int) -> str:
        if i < self._n_bytes:
            return self._utf8.decode(bytes((i,)))
        return self.finish() + self._tokens[i]


class _ByteLevel(_Bytes):
    """Bytes as GPT-2 spells them, without the marks of continued words; special tokens are spelled as themselves."""

    def __init__(self, vocab: Vocab) -> None:
        super().__init__()
        self._tokens, self._first_special = vocab.tokens, vocab.size - len(vocab.specials)
        self._mark = MARK if vocab.kind == "wordpiece-bytes" else ""

    def push(self, i: int) -> str:
        token = self._tokens[i].removeprefix(self._mark)
        if i >= self._first_special:
            return self._utf8.decode(token.encode())
        return self._utf8.decode(bytes(BYTE_OF[char] for char in token))


class _WordPiece:
    """A space before every token that continues no word, but the first: nothing ever waits."""

    waiting = False

    def __init__(self, vocab: Vocab) -> None:
        self._tokens = vocab.tokens
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
