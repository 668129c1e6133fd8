"""Korean tokenizers that cut words at morpheme boundaries, for Hugging Face, SentencePiece and tiktoken.

These names are the public interface; every other module is private and may change. They load on first use, so that
`import koktok` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from koktok.errors import KoktokError
    from koktok.extension.extend import extend
    from koktok.metrics import evaluate
    from koktok.model.encoding import Encoding
    from koktok.pipeline.train import train
    from koktok.pipeline.training import Training
    from koktok.protocol.tokenizer import Tokenizer
    from koktok.recipe import Recipe
    from koktok.tokenizer.open import load
    from koktok.verification import verify

__all__ = [
    "Encoding",
    "KoktokError",
    "Recipe",
    "Tokenizer",
    "Training",
    "evaluate",
    "extend",
    "load",
    "train",
    "verify",
]

_HOMES = {
    "Encoding": "koktok.model.encoding",
    "KoktokError": "koktok.errors",
    "Recipe": "koktok.recipe",
    "Tokenizer": "koktok.protocol.tokenizer",
    "Training": "koktok.pipeline.training",
    "evaluate": "koktok.metrics",
    "extend": "koktok.extension.extend",
    "load": "koktok.tokenizer.open",
    "train": "koktok.pipeline.train",
    "verify": "koktok.verification",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("koktok")
    if name not in _HOMES:
        raise AttributeError(f"module 'koktok' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
