"""vocab.json: a vocabulary of a kind that no other library runs, for `Tokenizer.load` alone.

A tokenizer.json that another library loads and reads differently is worse than none.
"""

from __future__ import annotations

import json

from koktok.errors import ArtifactError
from koktok.vocab import Vocab


def vocab_json(vocab: Vocab) -> str:
    """The vocabulary as JSON, the same bytes for the same vocabulary.

    Examples
    --------
    >>> vocab = Vocab.plain("morpheme", ["학", "교", "학교"], specials=["</s>"])
    >>> vocab_from_json(vocab_json(vocab)) == vocab
    True
    """
    content = {
        "kind": vocab.kind,
        "byte_fallback": vocab.byte_fallback,
        "pieces": vocab.pieces,
        "specials": vocab.specials,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def vocab_from_json(text: str) -> Vocab:
    """The vocabulary of a vocab.json."""
    try:
        content = json.loads(text)
        pieces, specials = map(str, content["pieces"]), map(str, content["specials"])
        return Vocab(content["kind"], tuple(pieces), (), tuple(specials), byte_fallback=bool(content["byte_fallback"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArtifactError(f"vocab.json is damaged or not koktok's: {type(error).__name__}: {error}") from error
