"""README.md of an extension: its benefit (fewer tokens) and its costs (parameters, FLOPs, the training of new rows)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from koktok.extension.extension_files import Extension
from koktok.extension.learn import SizePoint

LEAST_EXPOSURE: Final = 1000
"""Occurrences of the median new piece in a GB of text; with fewer, most new rows hardly change in a short continued training."""


@dataclass(frozen=True)
class CostModel:
    """The model of a base."""

    width: int
    tied: bool
    parameters: int

    def added(self, pieces: int) -> int:
        """Number of parameters of so many new rows.

        Examples
        --------
        >>> CostModel(4096, False, 8_030_261_248).added(8192)
        67108864
        """
        return pieces * self.width * (1 if self.tied else 2)

    def flops(self, pieces: int) -> float:
        """The factor of FLOPs for a token: 2 for each parameter, and `width` more parameters of the output for each row.

        Examples
        --------
        >>> round(CostModel(4096, False, 8_030_261_248).flops(8192), 4)
        1.0042
        """
        return 1 + pieces * self.width / self.parameters


def frontier_rows(points: Sequence[SizePoint]) -> list[tuple[str, ...]]:
    """Rows of the table of the frontier."""
    first = points[0].held_tokens or points[0].tokens
    rows: list[tuple[str, ...]] = []
    for point in points:
        tokens = point.held_tokens or point.tokens
        rows.append(
            (
                f"+{point.size:,}" if point.size else "the base",
                f"{tokens:.3f}",
                f"{tokens / first - 1:+.1%}",
                f"{point.precision:.3f}",
                f"{point.recall:.3f}",
                f"{point.f1:.3f}",
                f"{point.used:.1%}" if point.size else "",
                f"{point.exposure:,.0f}" if point.size else "",
            )
        )
    return rows


COLUMNS: Final = ("pieces", "tokens/eojeol", "change", "precision", "kept", "F1", "used", "times in a GB (median)")


def card(
    extension: Extension, points: Sequence[SizePoint], *, held: bool, model: CostModel | None, notes: Sequence[str]
) -> str:
    """README.md of the folder."""
    base, n = extension.base, len(extension.pieces)
    first, last = points[0], points[-1]
    share = (last.held_tokens / first.held_tokens) if held else last.tokens / first.tokens
    lines = [
        f"# {base.name.rstrip('/').rsplit('/', 1)[-1]}, with {n:,} Korean pieces",
        "",
        "Written by `koktok extend`. Old ids and special tokens are unchanged; a text without Hangul has the same ids.",
        f"`koktok verify FOLDER TEXT` checks it. New ids: {extension.ids[0]:,} to {extension.ids[-1]:,}, "
        + (
            f"reserved ids of the base; the size stays {extension.size:,}."
            if extension.filled
            else f"after those of the base; the size is {extension.size:,}."
        ),
        "",
        "## Benefit",
        "",
        f"On {'held-out lines of the' if held else 'the'} training text; precision, kept (recall) and F1 are those of token "
        "boundaries between two syllables against Kiwi's morpheme boundaries.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(row)} |" for row in frontier_rows(points)),
        "",
        f"The base's pattern alone splits this text into {last.floor:.3f} tokens per eojeol, the minimum for any extension.",
        "",
        "## Costs",
        "",
    ]
    if model is not None:
        added = model.added(n)
        lines += [
            f"- Parameters: {added:,} more ({added / model.parameters:.2%}): {1 if model.tied else 2} × {model.width:,} for each piece.",
            f"- FLOPs for a token: × {model.flops(n):.4f}; tokens: × {share:.4f}; their product: × {model.flops(n) * share:.4f}.",
        ]
    else:
        lines += [
            f"- Parameters: {n:,} × width more if input and output are tied, else twice as many.",
            f"- FLOPs for a token: × (1 + {n:,} × width / parameters); tokens: × {share:.4f}.",
        ]
    lines.append(f"- Exposure: the median new piece occurs {last.exposure:,.0f} times in a GB of such text.")
    if last.exposure < LEAST_EXPOSURE:
        lines.append(
            f"  **That is below {LEAST_EXPOSURE:,}: most new rows will hardly be trained. Use fewer pieces, or more text.**"
        )
    lines += [
        "",
        "**Fewer tokens alone do not make a better model.** New rows are initialized with sums of old ones (init.npz) and have to be",
        "trained: first the new rows alone, then all parameters, on text that includes the old languages; compare bits per byte, never",
        "loss per token, with the old model trained on as many bytes.",
    ]
    if notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"
