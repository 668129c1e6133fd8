"""The sizes of PLAN.md, parts 2 and 3, the rows of part 2, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eval.texts import CAP


@dataclass(frozen=True)
class Size:
    """What the plan fixes for a size."""

    corpus: str
    ids: int
    cap: int  # eojeols taken of each source
    layers: int
    width: int
    context: int  # bytes of a sequence, sequences of a step
    batch: int
    bytes_read: int  # of training text
    sweep: float  # the part of them that a run of the sweep reads
    rates: tuple[float, ...]
    held: int  # bytes asked for bits per byte
    tuned: int | None = None  # texts of a task at most
    marks: tuple[float, ...] = (1.0,)  # decoders of part 3: shares of the run at which figures are taken
    kinds: tuple[str, ...] = ("decoder", "encoder")
    tasks: tuple[str, ...] = ("entities", "answers")
    tuning: tuple[float, ...] = (0.0001, 0.0004, 0.0016)  # rates of tuning; a single rate is taken without a sweep
    speed: tuple[float, float] = (
        210e12,
        60e12,
    )  # FLOP/s of pre-training and tuning: a fifth of an H200's peak, and less for short rows

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

    def tokens(self, bytes_per_token: float) -> int:
        """Tokens of a sequence: equal bytes, in whole tokens."""
        return max(2, round(self.context / bytes_per_token))

    def steps(self, bytes_per_token: float, share: float = 1.0) -> int:
        """Steps that read this share of the text.

        Examples
        --------
        >>> SIZES["tiny"].steps(4.0), SIZES["tiny"].steps(4.0, 0.5)
        (391, 195)
        """
        return round(share * self.bytes_read / (self.batch * self.tokens(bytes_per_token) * bytes_per_token))

    def flops(self, kind: str, vocabulary: int, bytes_per_token: float) -> float:
        """Training FLOPs of a token: forward and twice that backward.

        A decoder's attention sees half of all pairs, and an encoder's head is asked for the masked tokens alone.

        Examples
        --------
        >>> round(SIZES["gpu"].flops("decoder", 32_001, 5.0) / 1e6), round(SIZES["gpu"].flops("encoder", 32_001, 5.0) / 1e6)
        (260, 186)
        """
        decoder = kind == "decoder"
        head = self.width * vocabulary * (1 if decoder else MASKED)
        return 6 * (self.body + head) + (6 if decoder else 12) * self.layers * self.width * self.tokens(bytes_per_token)


TINY_RATES: Final = (0.0005, 0.001, 0.002, 0.004, 0.008)
GPU_RATES: Final = (0.00025, 0.0005, 0.001, 0.002, 0.004)
CPU_RATES: Final = (0.002, 0.004, 0.008)
ALL: Final = 1 << 40
SIZES: Final = {
    "tiny": Size("open-ko", 8_000, 12_000, 2, 96, 256, 4, 400_000, 1 / 3, TINY_RATES, 80_000, tuned=200),
    "cpu": Size("bench-ko", 32_000, CAP, 4, 128, 1500, 8, 8_400_000, 1 / 4, CPU_RATES, ALL, marks=(2 / 3, 1.0)),
    "cpu-encoder": Size(
        "bench-ko",
        32_000,
        CAP,
        4,
        128,
        1500,
        4,
        15_500_000,
        1 / 4,
        (0.002,),
        400_000,
        kinds=("encoder",),
        tasks=("entities",),
        tuning=(0.0016,),
        speed=(44e9, 31e9),
    ),
    "gpu": Size("bench-ko", 32_000, ALL, 8, 512, 2048, 64, 57_000_000, 1 / 10, GPU_RATES, 1_000_000),
}
MASKED: Final = 0.15
SEEDS, SWEEP_SEED = 5, 100
WARM, DECAY = 0.02, 0.2
FOLDS, TUNING_BATCH = 5, 32
EPOCHS: Final = {"entities": 4, "answers": 2}

PEERS: Final = ("sp-unigram", "sp-equal")
EQUAL: Final = {"sp-equal": "koktok-aligned", "sp-encoder": "koktok-encoder"}
"""Rows of SentencePiece with the tokens of another row."""
ROWS: Final = {
    "decoder": (*PEERS, "koktok-default", "koktok-across", "koktok-aligned", "koktok-moved"),
    "encoder": (*PEERS, "sp-encoder", "koktok-encoder", "koktok-aligned", "koktok-moved"),
}
PARAGRAPH: Final = 300
"""Characters of a paragraph that are asked."""
PAIRS: Final = {
    "decoder": (
        *((name, peer) for name in ("koktok-default", "koktok-across", "koktok-aligned") for peer in PEERS),
        ("koktok-moved", "sp-unigram"),
    ),
    "encoder": (
        *((name, peer) for name in ("koktok-aligned", "koktok-encoder") for peer in PEERS),
        ("koktok-encoder", "sp-encoder"),
        ("koktok-encoder", "koktok-moved"),
        ("koktok-aligned", "koktok-moved"),
    ),
}
PRIMARY: Final = {
    "decoder": [("koktok-default", peer, "bits per byte") for peer in PEERS],
    "encoder": [("koktok-aligned", other, task) for task in EPOCHS for other in (*PEERS, "koktok-moved")],
}


def budget(size: Size, vocabulary: int, bytes_per_token: float, tuned: dict[str, int]) -> list[tuple[str, int, float]]:
    """Kinds of runs with their number and the seconds of one; `tuned` are the bytes of each task.

    Examples
    --------
    >>> rows = budget(SIZES["gpu"], 32_001, 4.5, {"entities": 700_000, "answers": 3_600_000})
    >>> sum(count * seconds for _, count, seconds in rows) < 30 * 60
    True
    """
    tokens = size.bytes_read / bytes_per_token
    read = (FOLDS - 1) * sum(EPOCHS[task] * tuned[task] for task in size.tasks)
    tuning = 6 * size.body * read / bytes_per_token / size.speed[1]
    found = []
    for kind in size.kinds:
        rows, seconds = len(ROWS[kind]), tokens * size.flops(kind, vocabulary, bytes_per_token) / size.speed[0]
        if len(size.rates) > 1:
            found.append((f"{kind}s, the sweep of rates", rows * len(size.rates), size.sweep * seconds))
        found.append((f"{kind}s", rows * SEEDS, seconds))
    encoders = len(ROWS["encoder"])
    if len(size.tuning) > 1:
        found.append(
            ("encoders, one more for the rate of tuning", encoders, found[-1][2] + len(size.tuning) * tuning / FOLDS)
        )
    found.append((f"tuning of an encoder, {' and '.join(size.tasks)}, five folds", encoders * SEEDS, tuning))
    return found
