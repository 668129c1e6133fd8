"""Syllables to conjoining jamo and back, exactly.

A Korean syllable fuses morphemes: 갔 is 가 + ㅆ. A tokenizer that works on jamo can cut there. The price is that somebody
has to compose again on decoding, so jamo are a choice, not the default.

Only the 11,172 modern syllables are touched, by the arithmetic of Unicode (section 3.12): L + V + T. Compatibility jamo
(ㅋㅋ, ㅠ), ㈜, loose conjoining jamo and old Hangul pass through, and since NFC text never has a lead before a vowel, nor
an open syllable before a final, composing brings back exactly what was there. hgtk and jamotools, which go through
compatibility jamo, join the typed ㅎㅏㄴ to 한.

The same arithmetic is in the package `jamo` (`h2j`), to which this module is held by a test; a table for `str.translate`
is six times as quick (100 against 590 ns a character). Its `j2hcj` is what `readable` shows people.

The middle way is `FallbackNormalizer`: syllables stay whole, and only those without a piece of their own are taken apart.

Streaming: what composes on decoding is not prefix-stable. `koktok.tokenizer.stream` holds a syllable back until it is complete;
Hugging Face's `DecodeStream` raises "Invalid prefix" at the first syllable that grows (가 becomes 갔), with all-jamo
pieces in the first word, with the middle way at the first rare syllable.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, Literal

from koktok.errors import InputError
from koktok.text.normalize import Aligned, Folds, Normalizer

__all__ = [
    "FallbackNormalizer",
    "align",
    "charsmap",
    "denormalization_tsv",
    "join",
    "normalization_tsv",
    "offsets",
    "readable",
    "split",
    "split_cuts",
    "to_hf_decoder",
    "to_hf_normalizer",
]

_FIRST, _SYLLABLES, _FINALS = 0xAC00, 11_172, 28
# U+11A7 + i is final i; U+11A7 itself is no jamo of a syllable.
_FINAL_BASE = 0x11A7
_SPLIT: Final = {
    c: chr(0x1100 + i // 588)
    + chr(0x1161 + i % 588 // _FINALS)
    + (chr(_FINAL_BASE + i % _FINALS) if i % _FINALS else "")
    for i, c in enumerate(range(_FIRST, _FIRST + _SYLLABLES))
}
# Only Hangul, so that NFC of a match is NFC of Hangul and touches nothing else.
_JOINABLE = re.compile("[\u1100-\u1112\u1161-\u1175\u11a8-\u11c2\uac00-\ud7a3]++")

Cut = int | tuple[int, Literal["coda"]]


def split(text: str) -> str:
    """Decompose modern syllables to conjoining jamo.

    Law: ``join(split(x)) == x`` for every x in NFC.

    Examples
    --------
    >>> len(split("갔다")), split("ㅋㅋ ㈜") == "ㅋㅋ ㈜"
    (5, True)
    """
    return text.translate(_SPLIT)


def join(text: str) -> str:
    """Compose conjoining jamo to modern syllables, and touch nothing else.

    Examples
    --------
    >>> join(split("갔다")), join("가\u11bb다")
    ('갔다', '갔다')
    """
    return _JOINABLE.sub(_compose, text)


def offsets(text: str) -> list[int]:
    """Where each offset of `text`, from 0 to its length, falls in `split(text)`.

    Examples
    --------
    >>> offsets("갔다")
    [0, 3, 5]
    """
    return [0, *accumulate(len(_SPLIT.get(ord(c), c)) for c in text)]


def align(text: str) -> list[int]:
    """The index of the character of `text` that each character of `split(text)` came from.

    Examples
    --------
    >>> align("갔다")
    [0, 0, 0, 1, 1]
    """
    return [i for i, c in enumerate(text) for _ in _SPLIT.get(ord(c), c)]


def split_cuts(text: str, cuts: Iterable[Cut]) -> list[int]:
    """Move cuts along with `split`: sorted, each once.

    A cut is an offset of `text`, or ``(i, "coda")``: inside syllable i, between its vowel and its final, where a fused
    morpheme begins.

    Raises
    ------
    InputError
        For a cut outside the text, or before a final that is not there.

    Examples
    --------
    >>> split_cuts("갔다", [1, (0, "coda")])
    [2, 3]
    """
    at = offsets(text)
    moved = set()
    for cut in cuts:
        i = cut if isinstance(cut, int) else cut[0]
        if not 0 <= i < len(at):
            raise InputError(f"the cut {cut!r} came for {text!r}; wanted: 0 to {len(text)}")
        if isinstance(cut, int):
            moved.add(at[i])
        elif cut[1] == "coda" and i < len(text) and at[i + 1] - at[i] == 3:
            moved.add(at[i] + 2)
        else:
            raise InputError(f'the cut {cut!r} came for {text!r}; wanted: (index of a syllable with a final, "coda")')
    return sorted(moved)


def readable(text: str) -> str:
    """Show conjoining jamo as compatibility jamo, which fonts and terminals draw apart; for eyes only, no way back.

    Examples
    --------
    >>> readable(split("갔")), readable("\u11bb다")
    ('ㄱㅏㅆ', 'ㅆ다')
    """
    from jamo import j2hcj

    return str(j2hcj(text))


def normalization_tsv() -> str:
    r"""The rules of `split` for SentencePiece's ``normalization_rule_tsv``.

    The trainer's rules replace its NFKC, and know nothing of NFC: give the trainer normal text.

    Examples
    --------
    >>> normalization_tsv().splitlines()[1]
    'AC01\t1100 1161 11A8\t# 각'
    """
    return "".join(f"{c:X}\t{_hex(jamo)}\t# {chr(c)}\n" for c, jamo in _SPLIT.items())


def denormalization_tsv() -> str:
    r"""The rules of `join` for SentencePiece's ``denormalization_rule_tsv``; the longest match wins there.

    Examples
    --------
    >>> denormalization_tsv().splitlines()[1]
    '1100 1161 11A8\tAC01\t# 각'
    """
    return "".join(f"{_hex(jamo)}\t{c:X}\t# {chr(c)}\n" for c, jamo in _SPLIT.items())


def to_hf_normalizer() -> list[dict[str, Any]]:
    """Give the nodes of a tokenizer.json, to stand after NFC, that do what `split` does.

    SentencePiece's compiled map does the work (0.2 µs a character; 67 `Replace` nodes that need no map take 2 to 4). But
    Hugging Face looks it up by grapheme, and for a grapheme of at most five bytes puts the rule's result in place of
    *all* of it: a syllable with a two-byte mark, 가 + U+0301, loses its mark. So a CGJ (U+034F) goes between the two
    first, which makes six bytes or more, and leaves afterwards. It is put before every two-byte character that follows
    a syllable, a CGJ too, so that taking one away again is exact.
    """
    return _nodes("\uac00-\ud7a3", charsmap())


def _nodes(syllables: str, table: bytes) -> list[dict[str, Any]]:
    """The three nodes for syllables (the inside of a character class) and the compiled rules that take them apart."""
    return [
        _replace(f"(?<=[{syllables}\u1161-\u1175\u11a8-\u11c2])(?=[\u0080-\u07ff])", "\u034f"),
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode("ascii")},
        _replace("(?<=[\u1161-\u1175\u11a8-\u11c2])\u034f(?=[\u0080-\u07ff])", ""),
    ]


def to_hf_decoder() -> list[dict[str, Any]]:
    """Give the nodes of a tokenizer.json, to stand after Fuse, that do what `join` does.

    Hugging Face has no NFC decoder, so each syllable is a node: 399 open ones, then 10,773 that add a final to
    them. That is 0.7 MB, 0.13 s to load, and 5 to 7 ms of processor time to decode a line of 42 characters (`python
    -m timeit --process` around `tokenizers.Tokenizer.decode`; ours takes 0.02). Fewer nodes cannot do it: a node
    writes one fixed string, so 11,172 syllables need as many, unless the bytes of a syllable were written one by
    one; only `ByteLevel` makes characters of bytes, and it takes a token for bytes only if *all* its characters
    spell some, which a fused text with hanja or emoji does not.
    """
    opened = [(jamo, chr(c)) for c, jamo in _SPLIT.items() if len(jamo) == 2]
    closed = [(join(jamo[:2]) + jamo[2], chr(c)) for c, jamo in _SPLIT.items() if len(jamo) == 3]
    return [{"type": "Replace", "pattern": {"String": a}, "content": b} for a, b in opened + closed]


@lru_cache(maxsize=2)
def charsmap(*, back: bool = False) -> bytes:
    """The rules of `split`, or of `join` where `back` says so, as SentencePiece compiles them into a model.

    Examples
    --------
    >>> len(charsmap()) > 100_000
    True
    """
    if not back:
        return _compiled([(chr(c), jamo) for c, jamo in _SPLIT.items()])
    # 가 + ㅆ too: the middle way takes only the final off.
    half = [(join(jamo[:2]) + jamo[2], chr(c)) for c, jamo in _SPLIT.items() if len(jamo) == 3]
    return _compiled([(jamo, chr(c)) for c, jamo in _SPLIT.items()] + half)


class FallbackNormalizer(Normalizer):
    """A normalizer behind which only the syllables without a piece of their own are taken apart.

    Such a syllable becomes its open syllable and its final (뎠 to 뎌 and ㅆ) where the open one has a piece, else its jamo.
    The result is canonically equal to NFC, and `join` of it is NFC.

    Parameters
    ----------
    folds : Folds
    known : iterable of str
        Pieces; those of one syllable stay whole.

    Examples
    --------
    >>> normalizer = FallbackNormalizer(Folds(), ["뎌", "가"])
    >>> [readable(char) for char in normalizer("뎠가각")]
    ['뎌', 'ㅆ', '가', '가', 'ㄱ']
    >>> join(normalizer("뎠가각"))
    '뎠가각'
    """

    __slots__ = ("spelling",)

    def __init__(self, folds: Folds, known: Iterable[str]) -> None:
        super().__init__(folds)
        whole = {ord(piece) for piece in known if len(piece) == 1} & _SPLIT.keys()
        self.spelling: dict[int, str] = {}
        for c, jamo in _SPLIT.items():
            opened = c - (c - _FIRST) % _FINALS
            if c not in whole:
                self.spelling[c] = chr(opened) + jamo[2] if len(jamo) == 3 and opened in whole else jamo

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FallbackNormalizer) and (self.folds, self.spelling) == (other.folds, other.spelling)

    def __hash__(self) -> int:
        return hash((self.folds, frozenset(self.spelling)))

    def __reduce__(self) -> Any:
        return FallbackNormalizer, (self.folds, [chr(c) for c in _SPLIT if c not in self.spelling])

    def __repr__(self) -> str:
        return f"FallbackNormalizer({self.folds!r}, {len(_SPLIT) - len(self.spelling)} syllables)"

    def __call__(self, text: str) -> str:
        """Give the normal form of `text`, rare syllables taken apart."""
        return super().__call__(text).translate(self.spelling)

    def align(self, text: str) -> Aligned:
        """As `Normalizer.align`; the parts of a syllable share its raw characters."""
        whole = super().align(text)
        at = [i for i, c in enumerate(whole.normal) for _ in self.spelling.get(ord(c), c)]
        if len(at) == len(whole.normal):
            return whole
        return Aligned(
            whole.normal.translate(self.spelling), [whole.starts[i] for i in at], [whole.ends[i] for i in at]
        )

    def to_hf(self) -> dict[str, Any]:
        """Give the "normalizer" node of a tokenizer.json that does what `__call__` does."""
        plain = super().to_hf()
        if not self.spelling:
            return plain
        table = _compiled([(chr(c), parts) for c, parts in self.spelling.items()])
        nodes = plain["normalizers"] if plain["type"] == "Sequence" else [plain]
        return {"type": "Sequence", "normalizers": [*nodes, *_nodes(_ranges(self.spelling), table)]}


def _ranges(codes: Iterable[int]) -> str:
    """The inside of a character class."""
    runs: list[list[int]] = []
    for c in sorted(codes):
        if runs and c == runs[-1][1] + 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return "".join(chr(a) if a == b else f"{chr(a)}-{chr(b)}" for a, b in runs)


def _compiled(rules: list[tuple[str, str]]) -> bytes:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    sentencepiece.set_min_log_level(2)  # or the builder tells the terminal how many rules it got
    compiled = sentencepiece.SentencePieceNormalizer(norm_map=rules)
    spec = sentencepiece_model_pb2.NormalizerSpec.FromString(compiled.serialized_normalizer_spec())
    return bytes(spec.precompiled_charsmap)


def _compose(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", match[0])


def _hex(text: str) -> str:
    return " ".join(f"{ord(c):X}" for c in text)


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
