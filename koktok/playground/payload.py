"""What the page's engine runs on: a tokenizer as plain data, and data as text that a browser unpacks.

This file adds: `payload`. Everything that decides an id is in it, worked out here; engine.js holds algorithms and no table of
Korean or Unicode.
"""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from koktok.hangul import COMPATIBILITY
from koktok.text.normalize import nfc_tables
from koktok.vocab import SCORE_STEP, WITH_UNKNOWN

if TYPE_CHECKING:
    from koktok.tokenizer import Tokenizer

__all__ = ["packed", "payload", "tables"]


def tables() -> dict[str, Any]:
    """What all tokenizers share: the walls of NFC, see `nfc_tables`, and conjoining jamo as people type them."""
    return nfc_tables() | {"typed": list(COMPATIBILITY.items())}


def payload(tokenizer: Tokenizer, name: str = "") -> dict[str, Any]:
    """A tokenizer as JSON can hold it.

    Parameters
    ----------
    tokenizer : Tokenizer
    name : str
        What the page calls it.

    Returns
    -------
    dict
        `scores` are whole steps of 1/256 by which each piece stands below the one before it.

    Examples
    --------
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.vocab import Vocab
    >>> made = payload(Tokenizer(Recipe(), Vocab.unigram({"가": -1.0, "나": -1.5})))
    >>> made["kind"], made["bytes"], made["pieces"], made["scores"]
    ('unigram', 256, ('가', '나'), [256, 128])
    """
    vocab, style = tokenizer.vocab, tokenizer.style
    steps = [round(-score / SCORE_STEP) for score in vocab.scores]
    return {
        "name": name or vocab.kind,
        "kind": vocab.kind,
        "digest": tokenizer.digest(),
        "bytes": vocab.n_bytes,
        "pieces": vocab.pieces,
        "scores": [below - above for above, below in pairwise((0, *steps))],
        "specials": vocab.specials,
        "unknown": vocab.unknown_id if vocab.kind in WITH_UNKNOWN else -1,
        "lstrip": [token for token in vocab.specials if token in style.lstrip],
        "lossless": tokenizer.lossless,
        "prefix": tokenizer.prefix,
        "normalizer": tokenizer.normalizer.rules(),
        "pattern": tokenizer.pattern.rules(),
    }


def packed(value: Any) -> str:
    """A value as gzip in base64: what `DecompressionStream` and `JSON.parse` read back.

    Examples
    --------
    >>> import gzip
    >>> gzip.decompress(base64.b64decode(packed(["가"]))).decode()
    '["가"]'
    """
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    squeeze = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS, memLevel=9)  # a gzip header without a date
    return base64.b64encode(squeeze.compress(data) + squeeze.flush()).decode("ascii")
