"""The three sizes of the study, and the arithmetic of its arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REFERENCE: Final = "sp-unigram"
"""Whose text and compute the arms are measured by."""


@dataclass(frozen=True)
class Size:
    """What PLAN.md fixes for a size."""

    corpus: str
    ids: int  # of every vocabulary (characters have fewer)
    cap: int  # eojeols taken of each source
    layers: int
    width: int
    context: int  # bytes of a sequence, sequences of a step
    batch: int
    bytes_read: int  # of training text, in the arm of equal bytes
    sweep: float  # the part of them that a run of the learning rate's sweep reads
    rates: tuple[float, ...]
    dropout: float
    held: int  # bytes asked for bits per byte
    pairs: int  # minimal pairs a probe; labelled texts to learn from (a third as many are asked); prompts
    texts: int
    prompts: int

    @property
    def head(self) -> int:
        """Coordinates of an attention head."""
        return 64 if self.width >= 256 else 32

    @property
    def hidden(self) -> int:
        """Width of SwiGLU: two thirds of 4 widths, in eights."""
        return round(8 * self.width / 3 / 8) * 8

    @property
    def body(self) -> int:
        """Parameters outside of the embedding."""
        return self.layers * (4 * self.width**2 + 3 * self.width * self.hidden + 2 * self.width) + self.width

    def flops(self, vocabulary: int, context: int) -> int:
        """Training FLOPs of a token: forward and twice that backward, head counted, attention causal (half of all pairs)."""
        return 6 * (self.body + self.width * vocabulary) + 6 * self.layers * self.width * context


SIZES: Final = {
    "tiny": Size(
        "open-ko", 8_000, 12_000, 2, 96, 256, 4, 400_000, 1 / 3, (0.002, 0.004, 0.008), 0.0, 80_000, 300, 900, 100
    ),
    "night": Size(
        "open-ko", 16_000, 1 << 40, 4, 192, 1024, 8, 24_000_000, 1 / 5, (0.001, 0.002, 0.004), 0.0, 500_000, 1000, 3000, 300
    ),
    "gpu": Size(
        "bench-ko", 32_000, 1 << 40, 10, 512, 2048, 64, 580_000_000, 1 / 10, (0.0005, 0.001, 0.002), 0.1, 1_000_000, 1000, 3000, 300
    ),
}  # fmt: skip
"""As PLAN.md has them."""

PRESETS: Final = ("short", "balanced", "aligned")

ALL: Final = (
    *("sp-unigram", "sp-bpe", "hf-bpe", "kiwi-bpe"),
    *(f"koktok-{preset}" for preset in PRESETS),
    *(f"koktok-{preset}-superwords" for preset in PRESETS),
    "characters",
)

CELLS: Final = {
    "tiny": ALL,
    "night": ("sp-unigram", "sp-bpe", "koktok-balanced", "koktok-aligned", "koktok-balanced-superwords"),
    "gpu": ("sp-unigram", "sp-bpe", "koktok-balanced", "koktok-balanced-superwords"),
}
"""The tokenizers that the plan runs of a size."""

HOW: Final = ("clean", "no_spaces", "all_spaces")
"""How labelled texts are asked."""

ARMS: Final = ("bytes", "flops")
SWEEP: Final = "sweep"
SWEEP_SEED: Final = 100
WARM, DECAY = 0.02, 0.2
"""Parts of a run: of the equal-bytes arm the first, of the run itself the second."""


@dataclass(frozen=True)
class Shape:
    """What a tokenizer makes of a size."""

    vocabulary: int  # all ids, the end of a line among them
    context: int  # tokens of a sequence
    step_bytes: float  # bytes of text that a step reads, on average
    flops: int  # of a step

    @classmethod
    def of(cls, size: Size, vocabulary: int, bytes_per_token: float) -> Shape:
        """Equal bytes of context, in whole tokens.

        Examples
        --------
        >>> Shape.of(SIZES["tiny"], 8001, 4.0)
        Shape(vocabulary=8001, context=64, step_bytes=1024.0, flops=1539422208)
        """
        context = max(2, round(size.context / bytes_per_token))
        tokens = size.batch * context
        return cls(vocabulary, context, tokens * bytes_per_token, tokens * size.flops(vocabulary, context))

    def steps(self, size: Size, arm: str, reference: Shape) -> int:
        """How many steps an arm is long.

        Examples
        --------
        >>> small, large = (Shape.of(SIZES["tiny"], n, 4.0) for n in (2001, 8001))
        >>> large.steps(SIZES["tiny"], "bytes", large), small.steps(SIZES["tiny"], "bytes", large)
        (391, 391)
        >>> small.steps(SIZES["tiny"], "flops", large), round(391 * large.flops / small.flops)
        (928, 928)
        """
        read = round(size.bytes_read * (size.sweep if arm == SWEEP else 1) / self.step_bytes)
        if arm != "flops" or self == reference:
            return read
        return round(reference.steps(size, "bytes", reference) * reference.flops / self.flops)


@dataclass(frozen=True)
class Cell:
    """One run."""

    tokenizer: str
    arm: str
    seed: int
    rate: float
    again: int = 0  # above 0 where the same is run once more, for the noise

    @property
    def key(self) -> str:
        """Its folder."""
        return f"{self.trunk}-{self.arm}"

    @property
    def trunk(self) -> str:
        """What both arms have in common: all but when the rate begins to fall."""
        return f"{self.tokenizer}-{self.seed}-{self.rate:g}" + (f"-again{self.again}" if self.again else "")
