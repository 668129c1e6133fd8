"""The "normalizer" node of a tokenizer.json that does what a `Normalizer` does."""

from __future__ import annotations

import base64
from typing import Any

from koktok.hangul import TAIL, VOWEL
from koktok.runtimes.sentencepiece.model_proto import precompiled
from koktok.text.normalize import JamoNormalizer, Normalizer, ranges


def normalizer_node(normalizer: Normalizer) -> dict[str, Any]:
    """The node.

    Each step is a pass over the text. A line of 42 characters takes Hugging Face 4 µs by default and 7 µs with the
    folds of one or two steps; `lone_jamo` (67 steps) adds 33 µs, `fullwidth` 145 µs, `compatibility` (490 steps)
    0.5 ms. Where that matters, normalize first and export a tokenizer without the fold.
    """
    before, after = ([_replace(*pair) for pair in pairs] for pairs in normalizer.replacements())
    nodes = [*before, {"type": "NFC"}, *after]
    if isinstance(normalizer, JamoNormalizer) and normalizer.spelling:
        nodes += _apart(normalizer)
    return nodes[0] if len(nodes) == 1 else {"type": "Sequence", "normalizers": nodes}


def _apart(normalizer: JamoNormalizer) -> list[dict[str, Any]]:
    """Syllables to jamo.

    SentencePiece's compiled map does the work (0.2 µs a character; 67 `Replace` nodes that need no map take 2 to 4).
    But Hugging Face looks it up by grapheme, and for a grapheme of at most five bytes puts the rule's result in place
    of *all* of it: a syllable with a two-byte mark, 가 + U+0301, loses its mark. So a CGJ (U+034F) goes between the
    two first, which makes six bytes or more, and leaves afterwards. It is put before every two-byte character that
    follows a syllable, a CGJ too, so that taking one away again is exact.
    """
    table = precompiled(tuple((chr(c), parts) for c, parts in normalizer.spelling.items()))
    return [
        _replace(f"(?<=[{ranges(normalizer.spelling)}{VOWEL}{TAIL}])(?=[\u0080-\u07ff])", "\u034f"),
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode("ascii")},
        _replace(f"(?<=[{VOWEL}{TAIL}])\u034f(?=[\u0080-\u07ff])", ""),
    ]


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
