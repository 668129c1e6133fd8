"""Korean vocabularies that know where morphemes end, handed over as ordinary Hugging Face and SentencePiece tokenizers.

These names are the public interface; everything else is by module and may change. They load on first use, so that
`import koktok` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from koktok.build import train_tokenizer
    from koktok.errors import KoktokError
    from koktok.foreign import load
    from koktok.recipe import Recipe
    from koktok.text.sources import Source
    from koktok.tokenizer import Tokenizer
    from koktok.tokenizer.encoding import Encoding

__all__ = ["Encoding", "KoktokError", "Recipe", "Source", "Tokenizer", "load", "train_tokenizer"]

_HOMES = {
    "Encoding": "koktok.tokenizer.encoding",
    "KoktokError": "koktok.errors",
    "Recipe": "koktok.recipe",
    "Source": "koktok.text.sources",
    "Tokenizer": "koktok.tokenizer.tokenizer",
    "load": "koktok.foreign.import_file",
    "train_tokenizer": "koktok.build",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'koktok' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
