"""`Point`: one setting of the default trainer, and the three that have names.

What is asked for. A cost means another thing at every size and in every text, so a setting may name a
target in its place: the share of the morpheme boundaries that stay token borders, all of them or those that grammar draws,
or the number of tokens. The trainer then turns `nu` until the vocabulary does that (see `koktok.training.unigram`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from koktok.errors import UsageError
from koktok.training import scores as crf
from koktok.training.lattice import TRUST, CostWeights


@dataclass(frozen=True)
class Point:
    """One setting of the trainer."""

    name: str
    lam: float = 1.0
    mu: float = 0.5
    nu: float | Mapping[str, float] = 0.5
    keep: float | None = None
    tokens: float | None = None
    grammar: float | None = None
    at_least: bool = False
    rarity: float = 0.2
    min_count: int = 10
    max_length: int = 12
    aligned: bool = True
    per_id: float = 0.0
    sharp: float = 3.0
    damping: float = 0.5
    epochs: int = crf.EPOCHS

    def __post_init__(self) -> None:
        if self.tokens is not None and (self.keep, self.grammar) != (None, None):
            raise UsageError("one target is possible at a time", hint="--keep 0.8, or --tokens-per-eojeol 1.8")
        for share in (self.keep, self.grammar):
            if share is not None and not 0 < share <= 1:
                raise UsageError(
                    f"expected a share of the boundaries over 0 and at most 1, got {share}", hint="--keep 0.8"
                )
        if self.tokens is not None and not self.tokens > 0:
            raise UsageError(
                f"expected more than 0 tokens for each eojeol, got {self.tokens}", hint="--tokens-per-eojeol 1.8"
            )

    @property
    def target(self) -> float | None:
        """What is asked for, whichever it is."""
        return next((target for target in (self.tokens, self.grammar, self.keep) if target is not None), None)

    def with_target(self, *, keep: float | None = None, tokens: float | None = None) -> Point:
        """The same with another target, or with none, in place of its own.

        Examples
        --------
        >>> point = PRESETS["balanced"].with_target(keep=0.8)
        >>> point.target, point.grammar, point.at_least
        (0.8, None, False)
        """
        return replace(self, keep=keep, tokens=tokens, grammar=None, at_least=False)

    def weights(self, times: float = 1.0) -> CostWeights:
        """The costs, with `nu` so many times what stands here."""
        nu = priced(self.nu)
        return CostWeights.of(self.lam, self.mu, {kind: price * times for kind, price in nu.items()}, self.rarity)

    def sharpened(self, times: float = 1.0) -> CostWeights:
        """The costs that scores are trained on."""
        weights = self.weights(times)
        more = self.sharp / weights.lam
        return CostWeights(weights.lam * more, weights.mu * more, tuple(nu * more for nu in weights.nu), weights.rarity)


def priced(nu: float | Mapping[str, float]) -> dict[str, float]:
    """What a swallowed boundary of each kind costs."""
    return dict(nu) if isinstance(nu, Mapping) else {kind: round(nu * trust, 9) for kind, trust in TRUST.items()}


GRAMMAR = ("josa", "eomi", "copula")
"""What the grammar draws behind a stem: a stem is spelled alike in every sentence as far as these are cut. Chains are left
out, which are few strings: 었|다 alone would be a large part of the share."""

PRICES = {
    "josa": 1.2,
    "josa_chain": 1.0,
    "eomi": 1.0,
    "eomi_chain": 2.4,
    "copula": 3.0,
    "derivation": 0.5,
    "auxiliary": 0.5,
    "compound": 0.4,
    "punctuation": 0.5,
    "other": 1.0,
    "rest": 0.0,
}
"""What the kinds cost beside each other where boundaries are sold. 었|다 and 것|이다 are a few strings that are in much of
the text: sold first at equal prices, they are a large part of the recall for a handful of pieces, so they cost more."""


BALANCED = {
    **PRICES,
    "josa": 1.75,
    "eomi": 1.45,
    "eomi_chain": 2.0,
    "copula": 6.0,
    "derivation": 0.4,
    "auxiliary": 0.4,
    "compound": 0.35,
    "punctuation": 0.25,
}
"""What they cost where the boundaries before particles and endings are what is wanted (eval/LOG.md has what else was tried)."""


def _sold(nu: float, prices: Mapping[str, float] = PRICES) -> dict[str, float]:
    return {kind: round(nu * price, 9) for kind, price in prices.items()}


PRESETS: dict[str, Point] = {
    # Figures in eval/LOG.md. Rarity is what makes the curve smooth. `balanced` at 32,000 ids: with .70 and .72 in place of .71
    # 1.860 and 1.872 tokens, recall before endings .614 and .639 (1.868, .631). `nu` is met there at .33: from .3 on 8,000 and
    # 16,000 ids take more tokens than they need, from .25 on they keep less than with all boundaries as the target. `keep` is for
    # little text, where endings are cut anyway: the demo has F1 .698 at the tokens of SentencePiece's defaults, .641 without.
    # Candidates an id: at 64,000 `short` has .943 / F .531 with min_count 5 (3.4 an id) and .951 / .511 with 10 (1.8); at 32,000
    # 10 leaves 3.6 and is best. With 2.1 MB and 16,000 ids 10 leaves 1.3 (1.994 tokens, F .589), 5 leaves 2.5 (1.932, .600), 3
    # leaves 4.5 (1.946, .601); `aligned`: 5 gives 2.246, .842, and 3 gives 2.267, .853.
    "short": Point("short", nu=_sold(0.1), keep=0.43, at_least=True, per_id=2.25),
    "balanced": Point("balanced", nu=_sold(0.28, BALANCED), keep=0.53, grammar=0.71, at_least=True, per_id=2.25),
    # No cut is worth a token here, so rarity has nothing to say; rarer candidates keep rare stems whole.
    "aligned": Point("aligned", mu=2.0, nu=2.0, rarity=0.0, min_count=5, per_id=3.0),
}
"""Fewest tokens; the default; truest cuts."""


def chosen(
    preset: str,
    *,
    keep: float | None = None,
    tokens: float | None = None,
    nu: float | Mapping[str, float] | None = None,
    min_count: int | None = None,
    **values: Any,
) -> Point:
    """The setting of a preset with other values; a target, or `nu`, takes the place of the preset's own target."""
    if preset not in PRESETS:
        raise UsageError(f"the preset `{preset}` is not known", hint=f"--preset {' | '.join(PRESETS)}")
    if nu is not None and (keep is not None or tokens is not None):
        raise UsageError(
            "expected a target or `nu`, got both: a target finds `nu` by itself", hint="leave one of them out"
        )
    point = PRESETS[preset]
    if (keep, tokens, nu) != (None, None, None):
        point = point.with_target(keep=keep, tokens=tokens)
    values |= {"nu": nu, "min_count": min_count, "per_id": None if min_count is None else 0.0}  # a floor is a floor
    return replace(point, **{name: value for name, value in values.items() if value is not None})
