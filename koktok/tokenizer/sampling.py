"""Which models can be sampled, with which keyword: one look-up behind `Tokenizer.sample` and `Tokenizer.n_best`.

This file adds: the error that names the way out. Unigram gives segmentations a probability and is sharpened by `alpha`;
BPE and WordPiece have none and drop joins or matches; the baselines have one segmentation only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from koktok.errors import UsageError
from koktok.tokenizer.model import Encoded, Model

if TYPE_CHECKING:
    import numpy as np

__all__ = ["n_best_of", "sampler_for"]

_ALPHA = ("unigram",)
_DROPOUT = ("bpe", "bpe-bytes", "wordpiece", "wordpiece-bytes")


def sampler_for(
    model: Model,
    *,
    alpha: float | None,
    dropout: float | None,
    seed_or_rng: int | np.random.Generator,
    n_best: int | None = None,
) -> Callable[[str], Encoded]:
    """A function of one pretoken that draws a segmentation.

    Parameters
    ----------
    model : Model
    alpha, dropout, n_best
        As in `Tokenizer.sample`.
    seed_or_rng : int or numpy.random.Generator

    Raises
    ------
    UsageError
        For a keyword that is not of this kind of model, or for none; names the right one.
    """
    import numpy as np

    kind = model.vocab.kind
    wanted = "alpha" if kind in _ALPHA else "dropout" if kind in _DROPOUT else None
    if wanted is None:
        raise UsageError(f"a {kind} tokenizer has one segmentation of a text only", hint="tokenizer.encode(text)")
    way_out = f"tokenizer.sample(text, {wanted}=0.1, seed_or_rng=0)"
    given = {"alpha": alpha, "dropout": dropout, "n_best": n_best}
    taken = ("alpha", "n_best") if wanted == "alpha" else ("dropout",)
    for name, value in given.items():
        if value is not None and name not in taken:
            raise UsageError(f"`{name}` is not for a {kind} tokenizer, whose samples take `{wanted}`", hint=way_out)
    if given[wanted] is None:
        raise UsageError(f"samples of a {kind} tokenizer want `{wanted}`", hint=way_out)
    for name, value in given.items():
        number = int if name == "n_best" else int | float
        if value is not None and (isinstance(value, bool) or not isinstance(value, number)):
            whole = "a whole number" if name == "n_best" else "a number"
            raise UsageError(f"{name} = {value!r}; wanted {whole}", hint=way_out)
    try:
        rng = np.random.default_rng(seed_or_rng)
    except (TypeError, ValueError) as error:
        raise UsageError(f"seed_or_rng = {seed_or_rng!r}: {error}", hint=way_out) from None
    options = {name: given[name] for name in taken}
    return lambda pretoken: model.sample(pretoken, rng=rng, **options)  # type: ignore[attr-defined]


def n_best_of(model: Model) -> Callable[[str, int], list[tuple[Encoded, float]]]:
    """The function that gives the n best segmentations of a pretoken.

    Raises
    ------
    UsageError
        When the model gives segmentations no score.
    """
    if model.vocab.kind not in _ALPHA:
        raise UsageError(
            f"a {model.vocab.kind} tokenizer gives segmentations no score, so none is the second best",
            hint="koktok train --model unigram",
        )
    return model.n_best  # type: ignore[attr-defined, no-any-return]
