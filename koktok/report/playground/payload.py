"""What the page's engine runs on: a tokenizer as plain data, and data as text that a browser unpacks.

Everything that decides an id is in it, worked out here; engine.js holds algorithms and no table of
Korean or Unicode. Ranks with a published pattern (o200k_base, Llama 3's) are byte-level BPE without a normalizer, and the
engine runs them as it runs koktok's own.
"""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise
from typing import Any

from koktok.errors import UsageError
from koktok.files import typed
from koktok.hangul import COMPATIBILITY
from koktok.model.vocab import SCORE_STEP, WITH_UNKNOWN
from koktok.runtimes import LibraryTokenizer
from koktok.runtimes.tiktoken.adapter import Tiktoken
from koktok.text.normalize import nfc_tables
from koktok.text.patterns import PUBLISHED, TIKTOKEN, in_javascript
from koktok.tokenizer import TrainedTokenizer


def tables() -> dict[str, Any]:
    """What all tokenizers share: the walls of NFC, see `nfc_tables`, and conjoining jamo as people type them."""
    return nfc_tables() | {"typed": list(COMPATIBILITY.items())}


def payload(tokenizer: TrainedTokenizer | LibraryTokenizer, name: str = "") -> dict[str, Any]:
    """A tokenizer as JSON can hold it."""
    if isinstance(tokenizer, LibraryTokenizer):
        if isinstance(tokenizer, Tiktoken):
            return _of_ranks(tokenizer, name) | {"digest": tokenizer.digest()}
        raise UsageError(
            f"`{name}` is run by the library {tokenizer.library}, which a page does not have",
            hint=f"koktok report {typed(tokenizer.spec)} --text corpus:mini -o report, which shows the cuts of any tokenizer",
        )
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


def _of_ranks(adapter: Tiktoken, name: str) -> dict[str, Any]:
    """Ranks as byte-level BPE: the rank is the id, and a pretoken that is a piece is that piece, whatever joins to it."""
    ranks = adapter.ranks
    known = {regex: PUBLISHED[name] for table in (PUBLISHED, TIKTOKEN) for name, regex in table.items()}
    if ranks.pattern not in known or {*ranks.ranks.values()} != {*range(len(ranks.ranks))}:
        raise UsageError(
            f"`{name}` has a pattern of its own, or ids without a rank: a page cannot run it",
            hint="ranks with a published pattern can be run: package:o200k_base",
        )
    n, named = len(ranks.ranks), {i: token for token, i in ranks.specials.items()}
    return {
        "name": name or adapter.name,
        "kind": "bpe-bytes",
        "bytes": 0,
        "pieces": adapter.tokens[:n],
        "scores": [],
        "specials": [named.get(i, f"<|{i}|>") for i in range(n, max(named, default=n - 1) + 1)],
        "unknown": -1,
        "lstrip": [],
        "lossless": True,
        "prefix": False,
        "wholes": True,
        "normalizer": {"folds": [], "lone": "", "repeats": "", "whole": None, "nfc": False},
        "pattern": {"regex": in_javascript(known[ranks.pattern])},
    }


def packed(value: Any) -> str:
    """A value as gzip in base64: what `DecompressionStream` and `JSON.parse` read back."""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    squeeze = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS, memLevel=9)  # a gzip header without a date
    return base64.b64encode(squeeze.compress(data) + squeeze.flush()).decode("ascii")
