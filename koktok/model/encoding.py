"""`Encoding`, the result of `encode`, `BatchEncoding`, that of a call, and `NormalText`, a text as a model reads it, aligned to the raw text.

Spans inside a pretoken become half-open code points of the text that the caller passed (law 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from koktok.model.special import WHITE_SPACE
from koktok.text.prefix import CUT_MARK, Prefix, with_prefix

if TYPE_CHECKING:
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern


BLANK = WHITE_SPACE + "Ġ"
"""What is trimmed from a token: white space, and its byte as byte-level vocabularies spell it."""

_SHOWN = Repr()
_SHOWN.maxlist = 16


@dataclass(frozen=True, slots=True, repr=False)
class Encoding:
    """The result of `encode`: three lists of one length. As a sequence it is its ids.

    Parameters
    ----------
    ids : list of int
    pieces : list of str
        The string of each id.
    offsets : list of (int, int)
        Code points of the text that was passed, half-open; the byte tokens of one character share its span.

    Examples
    --------
    >>> encoding = Encoding([7, 8], ["한국", "어"], [(0, 2), (2, 3)])
    >>> len(encoding), list(encoding), encoding[-1], encoding.tokens
    (2, [7, 8], 8, ['한국', '어'])
    """

    ids: list[int]
    pieces: list[str]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    def __getitem__(self, key: int | slice) -> Any:
        return self.ids[key]

    def __repr__(self) -> str:
        shown = (f"{field.name}={_SHOWN.repr(getattr(self, field.name))}" for field in fields(self))
        return f"Encoding({', '.join(shown)})"

    @property
    def tokens(self) -> list[str]:
        """`pieces`, as Hugging Face calls them."""
        return self.pieces


class BatchEncoding(dict[str, Any]):
    """The result of `tokenizer(text)`, as in transformers: a dict whose keys are attributes, too.

    `input_ids`, and an `attention_mask` with a 1 for each token, because there is no padding; of many texts lists of these.

    Examples
    --------
    >>> batch = BatchEncoding(input_ids=[[7, 8], [8]], attention_mask=[[1, 1], [1]])
    >>> batch.input_ids == batch["input_ids"], list(batch)
    (True, ['input_ids', 'attention_mask'])
    """

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"{name!r}; a batch has {', '.join(self)}, and `tokenizer.encode(text)` the rest")
        return self[name]


def trimmed(
    ids: Sequence[int], spans: Iterable[tuple[int, int]], blanks: Mapping[int, tuple[int, int]]
) -> list[tuple[int, int]]:
    """Spans inside a pretoken without the white space at the edges of tokens; the span of white space alone is empty.

    On normal text these are the offsets of `ByteLevel(trim_offsets=True)` of tokenizers, except where a text begins with a
    space and the prefix space is added before it: theirs takes one space for the other, and does not trim it.

    `blanks` has the numbers of blanks that a token begins and ends with, by id; ids without any are left out.
    """
    result = []
    for i, (a, b) in zip(ids, spans, strict=True):
        first, last = blanks.get(i, (0, 0))
        begin = min(a + first, b)
        result.append((begin, max(b - last, begin)))
    return result


def blanks_of(tokens: Sequence[str]) -> dict[int, tuple[int, int]]:
    """The numbers of blanks that each token begins and ends with, by id, of tokens that have some.

    The byte of a space, which byte-level vocabularies spell Ġ, counts in every vocabulary, as in tokenizers.
    """
    blanks = {}
    for i, token in enumerate(tokens):
        edges = len(token) - len(token.lstrip(BLANK)), len(token) - len(token.rstrip(BLANK))
        if any(edges):
            blanks[i] = edges
    return blanks


@dataclass(frozen=True, slots=True)
class NormalText:
    """A text as the model reads it: its pretokens with their places, and the raw span of each character."""

    pretokens: list[tuple[int, str]]
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(
        cls, text: str, normalizer: Normalizer, pattern: Pattern, *, prefix: Prefix = "", first: bool = True
    ) -> NormalText:
        """Read one part of a text; an added prefix space has the span of the first character."""
        aligned = normalizer.align(text)
        normal, starts, ends = aligned.normal, aligned.starts, aligned.ends
        read = with_prefix(normal, prefix, first=first, kept=not normal or starts[0] == 0)
        if extra := len(read) - len(normal):
            start, end = (0, 1) if extra > 1 else (starts[0], ends[0])
            normal, starts, ends = read, [start] * extra + [*starts], [end] * extra + [*ends]
        pretokens, at = [], 0
        for pretoken in pattern.pretokenize(normal):
            if pretoken != CUT_MARK:
                pretokens.append((at, pretoken))
            at += len(pretoken)
        return cls(pretokens, starts, ends)

    def offsets(self, at: int, spans: Iterable[tuple[int, int]], base: int = 0) -> list[tuple[int, int]]:
        """Spans of the pretoken at `at` as offsets into the text."""
        return [
            (base + self._start(at + a), base + (self.ends[at + b - 1] if a < b else self._start(at + a)))
            for a, b in spans
        ]

    def _start(self, at: int) -> int:
        return self.starts[at] if at < len(self.starts) else self.ends[-1]
