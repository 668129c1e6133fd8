"""The pre-tokenizer of a tokenizer.json: without a pattern wherever the pieces make it redundant.

tokenizers 1.0 runs published patterns only, and older versions are faster without one. So the pattern is written only where it
makes a difference, and then as a separator that a `Replace` of the normalizer inserts at every cut.

Proof of redundance: assume that no piece holds two neighbours between which the pattern may cut in any context. Then every
segmentation of a text into pieces has a boundary at every cut, and the best one on one side of a cut does not depend on the
other side:

* Unigram adds scores, and koktok's are multiples of 2⁻⁸, whose sums are exact. Names of bytes are pieces to Hugging Face,
  too; if the pattern cuts them, all their characters are pieces, and six of these score more than the byte does.
* BPE merges only to pieces, hence never across a cut, and the order of merges on one side is that of their ranks.
* Unknown characters become their bytes, one by one or together.

A piece of bytes may begin or end inside a character; then every character that it can be a part of is tested. If only few of
them occur at cuts, these are split off one by one. WordPiece and WordLevel read whole words, so they require every cut.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koktok.model.vocab import BYTE_PIECES, WITH_UNKNOWN, Vocab, spell
from koktok.text.prefix import CUT_MARK, Prefix
from koktok.text.pretokenize import Pattern, first_crossing

MOST_APART: Final = 16
"""Maximum number of characters that are split off one by one; more nodes would cost more than a pattern."""

SEPARATOR: Final = "\u212b"
"""Marks cuts. NFC turns it into Å (U+00C5), so no normal text holds it."""


def cutting(
    vocab: Vocab, pattern: Pattern, prefix: Prefix = "", *, always_cut: bool = False
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The nodes after the normalizer's own, and the pre_tokenizer.

    Examples
    --------
    >>> cutting(Vocab.bpe(" 가나", ["가나", " 가"]), Pattern())
    ([], None)
    >>> cutting(Vocab.bpe("12", ["12"]), Pattern(digits="single"))[1]
    {'type': 'CharDelimiterSplit', 'delimiter': '\u212b'}
    """
    if prefix == "first":
        nodes, cuts = cutting(vocab, pattern, always_cut=always_cut or set_apart(vocab, pattern) != [])
        if cuts is None:
            return nodes, sequence([*FIRST_SPACE, *([] if any(map(_CROSSES, vocab.pieces)) else [APART])])
        return nodes, sequence([*FIRST_SPACE, *cuts.get("pretokenizers", [cuts])])
    node = pattern.to_hf()
    if always_cut or not pattern.bigram:
        return [], _by_regex(vocab, node)
    level = [_LEVEL] * vocab.bytewise
    apart = set_apart(vocab, pattern)
    if apart is not None:
        return [], sequence([*(_split({"String": char}) for char in apart), *level])
    # WordPiece drops spaces, so one more does no harm.
    separator = " " if vocab.kind == "wordpiece" else SEPARATOR
    # If the pattern itself cuts a special token, no part of a word spells it.
    guarded = [
        (re.escape(token[0]), re.escape(token[1:])) for token in vocab.listed_specials if not pattern.crosses(token)
    ]
    guards = [rf"(?<=[\s\S])(?={first}{rest})|(?<={first})(?={rest})" for first, rest in guarded if rest]
    borders = "|".join([pattern.borders, *guards])
    nodes = [{"type": "Replace", "pattern": {"Regex": borders}, "content": separator}]
    if vocab.kind == "wordpiece-bytes":  # tokenizers 1.0 has the pre-tokenizer ByteLevel for BPE only
        level = []
        nodes += [{"type": "ByteLevel"}, {"type": "Replace", "pattern": {"String": spell(SEPARATOR)}, "content": " "}]
        separator = " "
    return nodes, sequence([{"type": "CharDelimiterSplit", "delimiter": separator}, *level])


def _by_regex(vocab: Vocab, node: dict[str, Any]) -> dict[str, Any]:
    if node["type"] == "ByteLevel":  # GPT-2's pattern is a part of it
        return node
    steps = [*node.get("pretokenizers", [node])]
    if vocab.guard:
        steps.append(_split({"Regex": vocab.guard}))
    if vocab.bytewise:
        steps.append(_LEVEL)
    elif vocab.kind == "wordpiece":
        steps.append(_split({"Regex": " "}) | {"behavior": "Removed"})
    return sequence(steps) or node


_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _split(pattern: dict[str, str]) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


FIRST_SPACE: Final = (
    {"type": "Metaspace", "replacement": " ", "prepend_scheme": "first", "split": False},
    _split({"Regex": CUT_MARK}) | {"behavior": "Removed"},  # as a `String` transformers.js would keep it
)

APART: Final = _split({"Regex": " +[^ ]*"})
"""Cuts before the spaces of every word, so that `word_ids` counts words. `Metaspace` with `split` would also cut between two spaces,
which pieces hold."""

_CROSSES: Final = re.compile("[^ ] ").search
"""Finds the place where a piece goes on into the next word."""


def sequence(steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The pre_tokenizer that runs these one after another."""
    return {"type": "Sequence", "pretokenizers": steps} if steps[1:] else steps[0] if steps else None


def set_apart(vocab: Vocab, pattern: Pattern) -> list[str] | None:
    """The characters to split off so that the ids of every text are those with the pattern; None if that is not enough.

    Examples
    --------
    >>> vocab = Vocab.bpe(" 가나12", ["가나", "12"])
    >>> [set_apart(vocab, Pattern(digits=digits)) for digits in ("free", "single")]
    [[], None]
    >>> set_apart(Vocab.bpe(" 가나", ["가 "]), Pattern()) is None
    True
    """
    if not pattern.bigram or vocab.kind in WITH_UNKNOWN:
        return None
    if vocab.bytewise:
        return _set_apart_of_bytes(vocab, pattern)
    if not vocab.byte_fallback or first_crossing(vocab.pieces, pattern):
        return None
    spelled = set("".join(BYTE_PIECES)) <= vocab.ids.keys()
    return [] if vocab.kind != "unigram" or spelled or not any(map(pattern.crosses, BYTE_PIECES)) else None


def _set_apart_of_bytes(vocab: Vocab, pattern: Pattern) -> list[str] | None:
    follows = [[char == "1" for char in row] for row in pattern.rules()["follows"]]
    joints = {joint for raw in vocab.token_bytes[: vocab.first_special] for joint in pairwise(_characters(raw))}
    characters: set[int] = set()
    for before, after in joints:
        cut = {(a, b) for a in _classes_of(before) for b in _classes_of(after) if not follows[a][b]}
        if cut:
            # Characters of a side that is a part of one; between two whole characters nothing can be split off.
            sides = [
                [code for code in _codes(part) if _classes()[code] in {pair[k] for pair in cut}]
                for k, part in enumerate((before, after))
                if len(_codes(part)) > 1
            ]
            fewest: list[int] = min(sides, key=len, default=[])
            if not fewest:
                return None
            characters.update(fewest)
            if len(characters) > MOST_APART:
                return None
    apart = {code: int(_classes()[code]) for code in sorted(characters)}
    for before, after in joints if apart else ():
        # A piece must not join such a character to one that the pattern does not separate from it.
        for code, a in apart.items():
            if code in _codes(before) and any(follows[a][b] for b in _classes_of(after)):
                return None
            if code in _codes(after) and any(follows[b][a] for b in _classes_of(before)):
                return None
    return [chr(code) for code in apart]


def _characters(raw: bytes) -> list[bytes]:
    """The characters of a piece of bytes, the first and the last possibly in part."""
    starts = [0, *(i for i, byte in enumerate(raw) if i and byte & 0xC0 != 0x80), len(raw)]
    return [raw[first:last] for first, last in pairwise(starts)]


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint8]:
    """The class of every code point, as a number of a class in `Pattern.rules`."""
    ranges = Pattern().rules()["classes"]
    classes = np.full(0x110000, len(ranges), np.uint8)
    for k, borders in enumerate(ranges):
        for first, last in zip(borders[::2], borders[1::2], strict=True):
            classes[first : last + 1] = k
    return classes


@lru_cache(maxsize=1 << 16)
def _classes_of(part: bytes) -> frozenset[int]:
    return frozenset(np.unique(_classes()[_codes(part)]).tolist())


@lru_cache(maxsize=1 << 16)
def _codes(part: bytes) -> range:
    """The characters that end with these bytes, begin with them, or are spelled by them, surrogates included; none has more bytes."""
    if part[0] & 0xC0 == 0x80:
        if len(part) > 3:
            return range(0)
        low = sum((byte & 63) << 6 * k for k, byte in enumerate(reversed(part)))
        step = 1 << 6 * len(part)
        least = (0x80, 0x800, 0x10000)[len(part) - 1]
        return range(low + -(-max(least - low, 0) // step) * step, 0x110000, step)
    size = 1 + sum(part[0] >= lead for lead in (0xC0, 0xE0, 0xF0))
    if len(part) > size:
        return range(0)
    code = part[0] & (0x7F, 0x1F, 0x0F, 0x07)[size - 1]
    for byte in part[1:]:
        code = code << 6 | byte & 63
    bits = 6 * (size - len(part))
    return range(max(code << bits, (0, 0x80, 0x800, 0x10000)[size - 1]), min((code + 1) << bits, 0x110000))
