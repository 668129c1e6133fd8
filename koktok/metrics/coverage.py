"""Which Korean a vocabulary writes in whole characters, on koktok's own small corpus, the same wherever koktok is installed."""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import normalize

import numpy as np

from koktok import hangul
from koktok.corpora.fetch import mini_lines
from koktok.protocol.tokenizer import Tokenizer


@dataclass(frozen=True)
class Coverage:
    """How far single pieces reach.

    The share of the 2,350 syllables of KS X 1001, and of the running characters of the corpus, that are single pieces; the
    share of its tokens that are no whole characters, and that are unknown; its eojeols.
    """

    syllables: float
    characters: float
    bytes: float
    unknown: float
    eojeols: int


def coverage(tokenizer: Tokenizer) -> Coverage:
    """The coverage of a tokenizer with a closed vocabulary, on the lines of corpora/mini."""
    lines = mini_lines()
    written = [tokenizer.token_bytes(i) for i in range(tokenizer.size or 0)]
    texts = {normalize("NFC", piece.decode(errors="replace").removeprefix(" ")) for piece in written if piece}
    running = [char for line in lines for char in line if not char.isspace()]
    ids = tokenizer.encode_lines(lines).ids

    part = [
        i in tokenizer.byte_ids or "\ufffd" in (piece or b"").decode(errors="replace")
        for i, piece in enumerate(written)
    ]
    parts = [part[i] for i in ids.tolist()]
    return Coverage(
        syllables=sum(char in texts for char in hangul.KS_X_1001) / len(hangul.KS_X_1001),
        characters=sum(char in texts for char in running) / len(running),
        bytes=sum(parts) / len(ids),
        unknown=float(np.isin(ids, list(tokenizer.unknown_ids)).mean()) if tokenizer.unknown_ids else 0.0,
        eojeols=sum(len(line.split()) for line in lines),
    )
