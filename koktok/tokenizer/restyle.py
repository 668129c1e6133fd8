"""`restyle`: other special tokens, roles and templates for a trained tokenizer.

Special tokens have the ids after the pieces, so the ids of text do not change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from koktok.errors import UsageError
from koktok.files import read_utf8
from koktok.model.special import CHAT_TEMPLATES, STYLES, StyleName, fill
from koktok.model.vocab import Vocab
from koktok.recipe import Recipe


class _Trained(Protocol):
    """What is made of a recipe and a vocabulary: `TrainedTokenizer`."""

    recipe: Recipe
    vocab: Vocab
    signature: dict[str, Any]

    def __init__(self, recipe: Recipe, vocab: Vocab, signature: dict[str, Any]) -> None: ...


T = TypeVar("T", bound=_Trained)


def chat_template_of(value: str | None) -> str | None:
    """The name of a preset, or the content of the file with this path."""
    if not value or value in CHAT_TEMPLATES:
        return value
    hint = f"--chat-template {' | '.join(CHAT_TEMPLATES)} | FILE"
    return read_utf8(Path(value), "the name or the file of a chat template", hint)


def restyle(tokenizer: T, style: StyleName | None = None, **changes: Any) -> T:
    """The same pieces with other special tokens: another style, and other values of `SpecialRecipe` and `specials`.

    Examples
    --------
    >>> from koktok import Recipe
    >>> from koktok.tokenizer import TrainedTokenizer
    >>> from koktok.model.vocab import Vocab
    >>> plain = TrainedTokenizer(Recipe(), Vocab.bpe(" 가나", [" 가", " 가나"], specials=Recipe().special_tokens))
    >>> bert = restyle(plain, "bert")
    >>> bert.encode("가나", add_special_tokens=True).pieces
    ['[CLS]', ' 가나', '[SEP]']
    >>> bert.encode("가나").ids == plain.encode("가나").ids
    True
    """
    if style is not None and style not in STYLES:
        raise UsageError(f"the style `{style}` is not known", hint=f"--style {' | '.join(STYLES)}")
    old = tokenizer.recipe
    if style is not None and style != old.special.style:
        # None would keep the values of the old style.
        left = {"template": None, "model_max_length": None, "padding_side": None, "truncation_side": None}
        old = old.model_copy(update={"special": old.special.model_copy(update=left)})
    trained = old.pretokenize.prefix_space  # the pieces were trained with it
    recipe = old.changed(style=style, prefix_space=trained, **changes)
    vocab = replace(tokenizer.vocab, specials=recipe.special_tokens)
    vocab = fill(vocab, recipe.special.pad_to_multiple, STYLES[recipe.special.style].tail)
    return type(tokenizer)(recipe, vocab, tokenizer.signature)
