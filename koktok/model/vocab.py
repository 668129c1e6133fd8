"""`Vocab`: pieces, their ids and scores: the result of a trainer, and the input of a run-time model.

Ids are the 256 bytes in one block (in vocabularies with byte fallback), then the pieces, then the special tokens. Special
tokens are never model pieces, so user text cannot reach them. Unigram pieces are ordered by falling score, then by string;
BPE pieces by rank, the alphabet first.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal, get_args

from koktok.errors import ArtifactError

VocabKind = Literal[
    "unigram", "bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes", "word", "syllable", "jamo", "ngram", "morpheme"
]

SCORE_STEP = 1 / 256
"""Scores are multiples of this, so that float32 (SentencePiece) and float64 (Hugging Face) sum them alike."""

BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""Names of the pieces of byte fallback in SentencePiece and Hugging Face."""

SPACE_MARK = "▁"
"""A space in pieces of SentencePiece and of Hugging Face's `Metaspace`, so never part of one of ours; as bytes it is restored exactly."""

MARK = "##"
"""Prefix of WordPiece's pieces that continue a word."""

UNKNOWN = ("[UNK]", "<unk>")
"""Unknown tokens, for text that a vocabulary without byte fallback cannot spell; the first one in the vocabulary is used."""

MAX_CHARS = 100
"""A longer word is unknown to WordPiece, as by default in Hugging Face."""

NO_MAX_CHARS = (1 << 32) - 1
"""The limit of kinds without unknown words: the largest number that tokenizers 1.0 reads. Hugging Face takes seconds for a
word of ten thousand bytes: it tries every length at every place."""


# --- Kinds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """The properties of a kind of vocabulary."""

    bytewise: bool = False
    marked: bool = False
    unknown: bool = False
    single: bool = False  # pieces are single characters
    loses: str = ""

    @property
    def lossless(self) -> bool:
        """True where decode(encode(x)) is the normalized text for every text."""
        return not self.unknown


KINDS: Mapping[str, KindRow] = {
    "unigram": KindRow(),
    "bpe": KindRow(),
    "bpe-bytes": KindRow(bytewise=True),
    "wordpiece": KindRow(
        marked=True,
        unknown=True,
        loses="""gives back words with one space between them: runs of spaces
and words with an unknown part (`[UNK]`) are lost.""",
    ),
    "wordpiece-bytes": KindRow(
        bytewise=True,
        marked=True,
        unknown=True,
        loses="""gives back the normalized text, but for a `##` that begins a
word; nothing is unknown.""",
    ),
    "word": KindRow(
        unknown=True,
        loses="gives back known words; all others are the unknown token.",
    ),
    "syllable": KindRow(single=True),
    "jamo": KindRow(single=True),
    "ngram": KindRow(),
    "morpheme": KindRow(),
}
"""The kinds of vocabulary. A new kind is a row here, and one of `TRAINERS`, `MODELS` and `SOLVERS` each."""

WITH_UNKNOWN = tuple(name for name, kind in KINDS.items() if kind.unknown)
"""Kinds that read whole words."""

assert set(KINDS) == set(get_args(VocabKind))


# --- Bytes as characters, pieces for display -------------------------------------------------------------------------

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
BYTE_CHARS = tuple(
    chr(byte) if byte in _PRINTABLE else chr(0x100 + sum(b not in _PRINTABLE for b in range(byte)))
    for byte in range(256)
)
"""GPT-2's characters for bytes: printable Latin-1 as itself, the 68 others as U+0100 and up; the alphabet of "bpe-bytes"."""

BYTE_OF = {char: byte for byte, char in enumerate(BYTE_CHARS)}
"""The byte of each of these characters."""

_SPELLING = str.maketrans({chr(byte): char for byte, char in enumerate(BYTE_CHARS)})
_LATIN = str.maketrans({char: chr(byte) for char, byte in BYTE_OF.items()})


def spell(text: str) -> str:
    """The UTF-8 bytes of `text`, spelled with `BYTE_CHARS`.

    Examples
    --------
    >>> spell(" 가")
    'Ġê°Ģ'
    """
    return text.encode().decode("latin-1").translate(_SPELLING)


def unspell(spelled: str) -> str:
    """Back from `spell` to text; a part of a character becomes U+FFFD."""
    return spelled.translate(_LATIN).encode("latin-1").decode(errors="replace")


def splits(pieces: Collection[str]) -> list[tuple[str, str]]:
    """The merges for libraries that rank pairs: all splits of each piece into two pieces, in the order of the pieces.

    Examples
    --------
    >>> splits(["a", "b", "ab", "aba"])
    [('a', 'b'), ('ab', 'a')]
    """
    known = set(pieces)
    return [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]


def readable(piece: str, kind: str) -> str:
    """A piece for display: text where its bytes make characters, and `<0xEA>` for other bytes.

    Examples
    --------
    >>> readable(spell(" 가"), "bpe-bytes"), readable(spell("가")[:2], "bpe-bytes"), readable(" 가", "bpe")
    (' 가', '<0xEA><0xB0>', ' 가')
    """
    if kind not in ("bpe-bytes", "wordpiece-bytes"):
        return piece
    bare = piece.removeprefix(MARK) if kind == "wordpiece-bytes" else piece
    if not all(char in BYTE_OF for char in bare):
        return piece  # a special token
    return piece.removesuffix(bare) + readable_bytes(bytes(map(BYTE_OF.__getitem__, bare)))


def whole_text(raw: bytes) -> str | None:
    """The text that bytes write; None if they are not whole characters."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def readable_bytes(raw: bytes) -> str:
    """Bytes for display: text where they make characters, and `<0xEA>` for other bytes."""
    text = ""
    while raw:
        try:
            return text + raw.decode()
        except UnicodeDecodeError as error:
            text += raw[: error.start].decode() + "".join(BYTE_PIECES[byte] for byte in raw[error.start : error.end])
            raw = raw[error.end :]
    return text


# --- The vocabulary ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Vocab:
    """A trained vocabulary, frozen.

    Examples
    --------
    >>> vocab = Vocab.unigram({"가": -1.0, "나": -2.0, "가나": -1.5}, specials=("</s>",))
    >>> vocab.size, vocab.ids["가나"], vocab.pieces
    (260, 257, ('가', '가나', '나'))
    """

    kind: VocabKind
    pieces: tuple[str, ...]
    scores: tuple[float, ...] = ()
    specials: tuple[str, ...] = ()
    byte_fallback: bool = True

    def __post_init__(self) -> None:
        for name, strings in (("pieces", self.pieces), ("specials", self.specials)):
            _check_strings(name, strings)
        known = set(self.pieces)
        if len(known) != len(self.pieces):
            raise ArtifactError("expected distinct pieces")
        text = "".join(self.pieces)
        missing = set(text) - known
        if missing and self.kind not in WITH_UNKNOWN:
            raise ArtifactError(f"every character of a piece must be a piece; missing: {sorted(missing)[:10]}")
        if self.kind in WITH_UNKNOWN and not set(UNKNOWN) & set(self.specials):
            raise ArtifactError(f"a {self.kind} vocabulary requires one of the special tokens {', '.join(UNKNOWN)}")
        if len(set(self.specials)) != len(self.specials):
            raise ArtifactError("special tokens must be distinct")
        clash = known & {*self.specials, *BYTE_PIECES[: self.n_bytes]}
        if clash:
            raise ArtifactError(
                f"the piece {min(clash)!r} spells a special token or a byte piece; text may not reach those"
            )
        if KINDS[self.kind].single and (longer := next((piece for piece in self.pieces if len(piece) > 1), "")):
            raise ArtifactError(f"a {self.kind} vocabulary has single characters, got the piece {longer!r}")
        if SPACE_MARK in text:
            raise ArtifactError("U+2581 (▁) may not be in a piece: SentencePiece would decode it to a space")
        if self.kind == "unigram":
            if len(self.scores) != len(self.pieces):
                raise ArtifactError(f"expected {len(self.pieces)} scores, one for each piece, got {len(self.scores)}")
            pairs = zip(self.scores, self.scores[1:], self.pieces, self.pieces[1:], strict=False)
            falling = all(a > b or (a == b and p < q) for a, b, p, q in pairs)
            if not falling or any(score > 0 or (score / SCORE_STEP) % 1 for score in set(self.scores)):
                raise ArtifactError("expected rounded scores of at most 0 in descending order, ties by string")
        elif self.scores:
            raise ArtifactError(f"a {self.kind} vocabulary has no scores: its rank is its order")

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.pieces[:3])) + (", ..." if len(self.pieces) > 3 else "")
        return f"Vocab({self.kind}, size={self.size}, pieces=({shown}), specials={len(self.specials)})"

    def __getstate__(self) -> dict[str, Any]:
        # Without cached tables, so that a used vocabulary pickles to the same bytes as a fresh one.
        return {name: self.__dict__[name] for name in ("kind", "pieces", "scores", "specials", "byte_fallback")}

    @classmethod
    def unchecked(
        cls,
        kind: VocabKind,
        pieces: tuple[str, ...],
        scores: tuple[float, ...] = (),
        specials: tuple[str, ...] = (),
        *,
        byte_fallback: bool = True,
    ) -> Vocab:
        """Construct without checks, for content that has passed them before."""
        vocab = object.__new__(cls)
        vocab.__dict__.update(kind=kind, pieces=pieces, scores=scores, specials=specials, byte_fallback=byte_fallback)
        return vocab

    @classmethod
    def unigram(cls, scores: Mapping[str, float], *, specials: Iterable[str] = ()) -> Vocab:
        """A unigram vocabulary in canonical order, with scores lowered to at most 0 and rounded.

        Positive scores are lowered by a constant per *character*: every segmentation of a word has the same characters,
        so no comparison between two segmentations changes (a constant per piece would change them all).
        """
        wrong = [piece for piece, score in scores.items() if not piece or not math.isfinite(score)]
        if wrong:
            raise ArtifactError(f"expected a finite score of the piece {wrong[0]!r}, got {scores[wrong[0]]}")
        slope = max((score / len(piece) for piece, score in scores.items()), default=0.0)
        lower = max(0.0, slope)
        rounded = {p: min(0.0, round((s - lower * len(p)) / SCORE_STEP) * SCORE_STEP) for p, s in scores.items()}
        order = sorted(rounded, key=lambda piece: (-rounded[piece], piece))
        return cls("unigram", tuple(order), tuple(rounded[piece] for piece in order), tuple(specials))

    @classmethod
    def bpe(cls, alphabet: Iterable[str], merged: Iterable[str], *, specials: Iterable[str] = ()) -> Vocab:
        """A BPE vocabulary: the alphabet by code point, then the merged pieces in the order of their merges."""
        return cls("bpe", (*sorted(set(alphabet)), *merged), (), tuple(specials))

    @classmethod
    def bpe_bytes(cls, merged: Iterable[str], *, specials: Iterable[str] = ()) -> Vocab:
        """A byte-level BPE vocabulary, spelled with `BYTE_CHARS`: the 256 bytes, then the merged pieces by rank.

        The bytes are ordered by the code point of their spelling, as in GPT-2's own vocabulary.
        """
        return cls("bpe-bytes", (*sorted(BYTE_CHARS), *merged), (), tuple(specials), byte_fallback=False)

    @classmethod
    def plain(cls, kind: VocabKind, pieces: Iterable[str], *, specials: Iterable[str] = ()) -> Vocab:
        """A vocabulary in the order of the caller; with byte fallback unless its model reads whole words."""
        return cls(kind, tuple(pieces), (), tuple(specials), byte_fallback=kind not in WITH_UNKNOWN)

    @property
    def n_bytes(self) -> int:
        """Number of ids of the byte block: 256 or 0."""
        return 256 if self.byte_fallback else 0

    @property
    def bytewise(self) -> bool:
        """Whether pieces are spelled in bytes, with `BYTE_CHARS`."""
        return KINDS[self.kind].bytewise

    @property
    def marked(self) -> bool:
        """Whether pieces that continue a word begin with `MARK`."""
        return KINDS[self.kind].marked

    @property
    def size(self) -> int:
        """Number of ids: bytes, pieces and special tokens."""
        return self.n_bytes + len(self.pieces) + len(self.specials)

    @property
    def first_special(self) -> int:
        """The first id after the pieces."""
        return self.n_bytes + len(self.pieces)

    @property
    def unknown_score(self) -> float:
        """The score of a character without a piece; Hugging Face and SentencePiece subtract 10 from the lowest score."""
        return min(self.byte_score, min(self.scores, default=0.0)) - 10.0

    @property
    def longest_word(self) -> int:
        """Longest word of WordPiece, in characters, or in bytes if pieces are spelled in bytes; a longer one is unknown."""
        return NO_MAX_CHARS if self.bytewise else MAX_CHARS

    @property
    def byte_score(self) -> float:
        """The score of a byte piece: so low that text that spells `<0x0A>` is never read as that byte.

        Such text has six characters, each at least a piece of its own; the byte must score less than all six together.
        """
        return 6 * min(self.scores, default=0.0) - 4.0

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece to id, without bytes and special tokens."""
        return {piece: self.n_bytes + i for i, piece in enumerate(self.pieces)}

    @cached_property
    def special_ids(self) -> dict[str, int]:
        """Special token to id."""
        return {token: self.first_special + i for i, token in enumerate(self.specials)}

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The string of every id."""
        return (*BYTE_PIECES[: self.n_bytes], *self.pieces, *self.specials)

    @cached_property
    def token_ids(self) -> dict[str, int]:
        """Byte piece, piece or special token to id."""
        return {token: i for i, token in enumerate(self.tokens) if token}

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        r"""The bytes of every id inside a text: without the mark of a continued word; a special token as its own spelling.

        Examples
        --------
        >>> Vocab.bpe_bytes(["ê°"], specials=["</s>"]).token_bytes[-2:]
        (b'\xea\xb0', b'</s>')
        >>> Vocab.plain("wordpiece", ["가", "##나"], specials=["[UNK]"]).token_bytes[1].decode()
        '나'
        """
        bare = [token.removeprefix(MARK) for token in self.tokens] if self.marked else self.tokens
        pieces, specials = bare[self.n_bytes : self.first_special], bare[self.first_special :]
        if self.bytewise:
            flat = "".join(pieces).translate(_LATIN).encode("latin-1")
            encoded = [flat[first:last] for first, last in pairwise(accumulate(map(len, pieces), initial=0))]
        else:
            encoded = [piece.encode() for piece in pieces]
        return (*(bytes([i]) for i in range(self.n_bytes)), *encoded, *(token.encode() for token in specials))

    @property
    def unknown_id(self) -> int:
        """The id of the unknown token."""
        return self.special_ids[next((token for token in UNKNOWN if token in self.special_ids), UNKNOWN[0])]

    @cached_property
    def guard(self) -> str:
        r"""A regular expression of places where a pretoken is cut so that no part of it spells a special token, or ''.

        Hugging Face's WordPiece and WordLevel require the unknown token in the model's own table, and with it every special
        token before it, so text that spells one would become that token. Cut after its first character, it stays text.
        """
        return "|".join(
            f"{re.escape(token[0])}(?={re.escape(token[1:])})" for token in self.listed_specials if token[1:]
        )

    @property
    def listed_specials(self) -> tuple[str, ...]:
        """The special tokens in Hugging Face's table of the model: of kinds that read whole words, up to the unknown token."""
        return self.tokens[self.first_special : self.unknown_id + 1] if self.kind in WITH_UNKNOWN else ()

    def guarded(self, pretoken: str) -> list[str]:
        """The parts of a pretoken, cut at `guard`.

        Examples
        --------
        >>> Vocab.plain("word", [" 집"], specials=["[PAD]", "[UNK]"]).guarded(" 집[PAD]에")
        [' 집', '[', 'PAD]에']
        """
        return [part for part in re.split(f"({self.guard})", pretoken) if part] if self.guard else [pretoken]

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of single bytes that may be a part of a character, from byte fallback or as pieces."""
        parts = {mark + char for char in BYTE_CHARS[0x80:] for mark in ("", MARK)}
        spelled = parts.intersection(self.ids) if self.bytewise else ()
        return frozenset((*range(self.n_bytes), *(self.ids[piece] for piece in spelled)))

    @cached_property
    def whole_characters(self) -> frozenset[str]:
        """Characters that have a piece of their own; in WordPiece, both at the beginning of a word and inside."""
        if self.kind == "wordpiece":
            return frozenset(piece for piece in self.ids if len(piece) == 1 and f"{MARK}{piece}" in self.ids)
        return frozenset(piece for piece in self.ids if len(piece) == 1)

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over everything that determines ids."""
        parts = [
            json.dumps(part, ensure_ascii=False) for part in (self.kind, self.pieces, self.specials, self.byte_fallback)
        ]
        # Scores repeat, and formatting a float takes time; only 0.0 and -0.0 are equal and formatted differently.
        spelled = {score: repr(score) for score in set(self.scores)}
        plain = 0 in spelled or set(map(type, spelled)) - {float}
        scores = json.dumps(self.scores) if plain else f"[{', '.join(map(spelled.__getitem__, self.scores))}]"
        return hashlib.sha256(f"[{', '.join([*parts[:2], scores, *parts[2:]])}]".encode()).hexdigest()[:16]


def _check_strings(name: str, strings: Any) -> None:
    if not isinstance(strings, tuple) or not all(isinstance(string, str) and string for string in strings):
        raise ArtifactError(f"expected non-empty strings as {name} of a vocabulary, got others")
    try:
        "".join(strings).encode()
    except UnicodeEncodeError:
        raise ArtifactError(f"the {name} contain a lone surrogate, which UTF-8 cannot encode") from None
