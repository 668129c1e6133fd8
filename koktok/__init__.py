"""Korean vocabularies that know where morphemes end, handed over as ordinary Hugging Face and SentencePiece tokenizers.

These names are the public interface; every other module is private and may change. They load on first use, so that
`import koktok` costs next to nothing.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from koktok.errors import KoktokError
    from koktok.extend.make import extend
    from koktok.foreign import load
    from koktok.metrics import evaluate
    from koktok.pipeline.road import Training, train
    from koktok.recipe import Recipe
    from koktok.tokenizer import Tokenizer
    from koktok.tokenizer.encoding import Encoding
    from koktok.verify import verify

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
    "Encoding": "koktok.tokenizer.encoding",
    "KoktokError": "koktok.errors",
    "Recipe": "koktok.recipe",
    "Tokenizer": "koktok.tokenizer.tokenizer",
    "Training": "koktok.pipeline.road",
    "evaluate": "koktok.metrics",
    "extend": "koktok.extend.make",
    "load": "koktok.foreign.import_file",
    "train": "koktok.pipeline.road",
    "verify": "koktok.verify",
}

_FORMER = {
    "Source": ("koktok.text.sources", "Source", "pathlib.Path, or a list of paths"),
    "train_tokenizer": ("koktok.pipeline.road", "train", "koktok.train"),
}
"""Names of the version before, and what to write in their place."""


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        home, there, instead = _FORMER[name]
        warnings.warn(f"koktok.{name} goes with the next version; write {instead}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(home), there)
    if name not in _HOMES:
        raise AttributeError(f"module 'koktok' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """The package, in which a public name stands for its function, though a room is called so: `koktok.train(text)`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):  # what an import of koktok.train... would set
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
