"""Which Korean a vocabulary writes in whole characters: of the common syllables, and of text of many kinds.

This file adds: one text for everybody. The held-out lines of a training are like those that it learnt from; koktok's own
small corpus (news, dialogue, verse, old spellings, chat) is not, and is the same wherever koktok is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from unicodedata import normalize

import numpy as np

from koktok import hangul
from koktok.foreign.base import ForeignTokenizer
from koktok.text.corpora import mini_lines


@dataclass(frozen=True)
class Coverage:
    """What a vocabulary has pieces for.

    Parameters
    ----------
    syllables : float
        Share of the 2,350 syllables of KS X 1001 that are single pieces, with or without a space before.
    characters : float
        Share of the running characters of the general text, spaces apart, that are single pieces.
    bytes : float
        Share of its tokens there that are no whole characters: bytes, or pieces that begin or end inside one.
    unknown : float
        Share of its tokens there that are unknown.
    eojeols : int
        Of the general text.
    """

    syllables: float
    characters: float
    bytes: float
    unknown: float
    eojeols: int


def coverage(tokenizer: ForeignTokenizer) -> Coverage:
    """The coverage of a tokenizer with a closed vocabulary, on the lines of corpora/mini.

    Examples
    --------
    >>> from koktok import Recipe, Tokenizer
    >>> from koktok.foreign.koktok_adapter import Own
    >>> from koktok.vocab import Vocab
    >>> found = coverage(Own("", "", Tokenizer(Recipe(), Vocab.bpe("다", [], specials=Recipe().special_tokens))))
    >>> found.syllables * 2350, found.unknown, found.bytes > 0.9
    (1.0, 0.0, True)
    """
    lines = mini_lines()
    written = [tokenizer.token_bytes(i) for i in range(tokenizer.size or 0)]
    texts = {normalize("NFC", found.decode(errors="replace").removeprefix(" ")) for found in written if found}
    running = [char for line in lines for char in line if not char.isspace()]
    ids = tokenizer.encode(lines).ids
    parts = [i in tokenizer.fragments or "\ufffd" in (written[i] or b"").decode(errors="replace") for i in ids.tolist()]
    return Coverage(
        syllables=sum(char in texts for char in hangul.KS_X_1001) / len(hangul.KS_X_1001),
        characters=sum(char in texts for char in running) / len(running),
        bytes=sum(parts) / len(ids),
        unknown=float(np.isin(ids, list(tokenizer.unknown_ids)).mean()) if tokenizer.unknown_ids else 0.0,
        eojeols=sum(len(line.split()) for line in lines),
    )
