"""`Point`: one setting of the default trainer, and the named ones, the presets.

A cost means another thing at every size and in every text, so a setting may have a
target instead: the shares of the boundaries before particles and before endings that stay token borders, or the number of
tokens. The trainer then turns `nu` until the vocabulary does that (see `koktok.training.unigram`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koktok.recipe import Group
from koktok.training import scores as crf
from koktok.training.lattice import CostWeights, nu_by_kind


@dataclass(frozen=True)
class Point:
    """One setting of the trainer; a preset is one in `PRESETS`, and a name in `Preset` of the recipe."""

    name: str
    lam: float = 1.0
    """What a token costs."""
    mu: float = 0.5
    """What a cut costs where there is no boundary."""
    nu: float | Mapping[str, float] = 0.5
    """What a boundary inside a token costs, for all kinds or by kind; with a target it is scaled until that is met."""
    keep: Mapping[Group, float] | None = None
    """Target: the shares of the boundaries that stay token boundaries."""
    tokens: float | None = None
    """Target: tokens per eojeol, in place of `keep`."""
    at_least: bool = False
    """Whether more boundaries than `keep` are as good: `nu` is then not scaled down."""
    rarity: float = 0.2
    """Power of a word's rarity by which its boundaries cost more: a model learns frequent words whole."""
    min_count: int = 10
    """Least number of occurrences of a candidate."""
    max_length: int = 12
    """Most characters of a piece."""
    aligned: bool = True
    """Whether a candidate lies inside one morpheme, or begins and ends at boundaries."""
    per_id: float = 0.0
    """Candidates that there must be for each id; where `min_count` leaves fewer, rarer ones are taken as well."""
    sharp: float = 3.0
    """How much the scores of a Unigram prefer the cheapest segmentation: its costs are multiplied by this for training them."""
    damping: float = 0.5
    """Power of a word's count that its training of scores uses, so that frequent words do not decide alone."""
    epochs: int = crf.EPOCHS
    """Rounds of training the scores."""
    respect: float = 3.0
    """BPE: what a join over a kept boundary loses, in places where it gains. At 1.5 a particle that stands in many words is joined
    where a few kept boundaries are against it (F1 .736 at 1.984 tokens; .749 at 1.980 with 3, .752 with 6)."""

    @property
    def wants(self) -> Mapping[Any, float]:
        """The figures that are asked for."""
        return self.keep or {} if self.tokens is None else {"tokens_per_eojeol": self.tokens}

    @staticmethod
    def shown(target: str) -> str:
        """The name of a target in a log."""
        return "tokens" if target == "tokens_per_eojeol" else target

    def with_target(self, *, keep: float | Mapping[Group, float] | None = None, tokens: float | None = None) -> Point:
        """The same with another target, or with none, in place of its own.

        Examples
        --------
        >>> point = PRESETS["lm"].with_target(keep=0.8)
        >>> point.keep, point.at_least
        ({'josa': 0.8, 'eomi': 0.8, 'all': 0.8}, False)
        """
        shares = dict.fromkeys(GROUPS, keep) if isinstance(keep, float | int) else keep
        return replace(self, keep=shares, tokens=tokens, at_least=False)

    def weights(self, times: Mapping[str, float] | None = None) -> CostWeights:
        """The costs, with `nu` times a factor by kind of boundary."""
        nu = {kind: price * (times or {}).get(kind, 1.0) for kind, price in nu_by_kind(self.nu).items()}
        return CostWeights.of(self.lam, self.mu, nu, self.rarity)

    def sharpened(self, times: Mapping[str, float] | None = None) -> CostWeights:
        """The costs that scores are trained on."""
        weights = self.weights(times)
        more = self.sharp / weights.lam
        return CostWeights(weights.lam * more, weights.mu * more, tuple(nu * more for nu in weights.nu), weights.rarity)


GROUPS: Final[dict[Group, tuple[str, ...]]] = {
    "josa": ("josa", "copula", "josa_chain"),
    "eomi": ("eomi", "eomi_chain"),
    "all": ("derivation", "auxiliary", "compound", "punctuation", "other"),
}
"""What may have a target, and the kinds of boundary whose price it moves: those of grammar after a noun, and after a verb (a stem
is spelled alike in every sentence as far as these are cut); and the share of all boundaries, which the price of the others moves."""

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
"""What they cost where the boundaries before particles and endings are the target (eval/log/014 has what else was tried)."""


def _sold(nu: float, prices: Mapping[str, float] = PRICES) -> dict[str, float]:
    return {kind: round(nu * price, 9) for kind, price in prices.items()}


PRESETS: dict[str, Point] = {
    # Figures in eval/log/001 and 003. Rarity is what makes the curve smooth. Candidates an id: with 2.1 MB and 16,000 ids min_count 10 leaves
    # 1.3 (1.994 tokens, F .589), 5 leaves 2.5 (1.932, .600), 3 leaves 4.5 (1.946, .601).
    # Small transformers need fewer bits with these shares than with fewer (eval/log/064).
    "lm": Point(
        "lm", nu=_sold(0.15, BALANCED), keep={"josa": 0.865, "eomi": 0.84, "all": 0.8}, at_least=True, per_id=2.25
    ),
    "encoder": Point(
        "encoder",
        nu=_sold(0.15, BALANCED),
        keep={"josa": 0.968, "eomi": 0.965, "all": 0.92},
        at_least=True,
        rarity=0.05,  # as good as .2, and alike in every draw: recall before particles .975 to .976 (.966 to .980)
        per_id=2.25,
    ),
    # No cut is worth a token here, so rarity has no effect; rarer candidates keep rare stems whole.
    "aligned": Point("aligned", mu=2.0, nu=2.0, rarity=0.0, min_count=5, per_id=3.0, respect=1.2),
    "short": Point("short", nu=_sold(0.1), keep={"josa": 0.6, "eomi": 0.2}, at_least=True, per_id=2.25),
}
"""The default, for language models; for encoders; the truest cuts; the fewest tokens."""

DEFAULT: Final = "lm"
"""The preset of `koktok train` without `--preset`."""


def _keeping(share: float) -> Point:
    return replace(PRESETS[DEFAULT].with_target(keep=share), name=f"keep {share}")


FRONTIER: Final[tuple[Point, ...]] = (
    PRESETS["short"],
    *map(_keeping, (0.5, 0.7)),
    PRESETS[DEFAULT],
    _keeping(0.9),
    PRESETS["encoder"],
    PRESETS["aligned"],
)
"""The presets, and shares of the boundaries between them, from fewest tokens to most accurate cuts; each has options (`flags`)."""


def chosen(
    preset: str,
    *,
    keep: float | Mapping[Group, float] | None = None,
    tokens: float | None = None,
    nu: float | Mapping[str, float] | None = None,
    min_count: int | None = None,
    **values: Any,
) -> Point:
    """The setting of a preset with other values; a target, or `nu`, takes the place of the preset's own target."""
    point = PRESETS[preset]
    if (keep, tokens, nu) != (None, None, None):
        point = point.with_target(keep=keep, tokens=tokens)
    values |= {"nu": nu, "min_count": min_count, "per_id": None if min_count is None else 0.0}  # a floor is a floor
    return replace(point, **{name: value for name, value in values.items() if value is not None})
