"""`quick`: everything once on corpora/mini, without network, in less than a minute: for CI.

A vocabulary from 80 kB of text is no vocabulary to use; the figures say that the machinery runs, and catch it when it changes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from eval.suites import Suite, kiwi_gold
from koktok.report.measure import showcase

__all__ = ["MINI", "suite"]

MINI = Path(__file__).resolve().parent.parent.parent / "corpora" / "mini"
SIZE = 2300
BLOCK, HELD = 5, 4
"""Blocks of five lines; one of four is held out by hash."""


def suite() -> Suite:
    train: list[str] = []
    held: dict[str, list[str]] = {}
    for path in sorted(MINI.glob("*.txt")):
        for i, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            digest = hashlib.sha256(f"{path.stem}:{i // BLOCK}".encode()).hexdigest()
            if int(digest, 16) % HELD:
                train.append(line)
            else:
                held.setdefault(path.stem, []).append(line)
    modern = [line for name, lines in held.items() if name not in ("oldhangul", "codemixed") for line in lines]
    gold = kiwi_gold("mini, by Kiwi", modern)
    return Suite(
        title=f"koktok eval quick: {SIZE:,} ids on corpora/mini",
        train=train,
        size=SIZE,
        held=held,
        golds=[gold],
        published=(),
        shown=showcase([], 6, 0, [gold]),
        remarks=(
            "Three quarters of corpora/mini (80 kB) are trained on and the rest is measured: the figures prove that everything runs, "
            "not that a tokenizer is good.",
            "The boundaries are Kiwi's own (silver). Kiwi taught koktok's rows and two of the peers.",
        ),
        extended=True,
        sample=100,
        resamples=200,
    )
