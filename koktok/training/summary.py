"""What a trained vocabulary does with the words that it was trained on, for any model, in plain values for `--log json`.

The account of trainers that keep none themselves. The most frequent words are encoded as at run time,
and the cuts that no token border meets were swallowed; so a builder sees which boundaries a vocabulary pays with.
"""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from typing import Any

from koktok.segment.segmented import Kind, SegmentedCounts
from koktok.tokenizer.models import model_for
from koktok.training.unigram_log import shape_of
from koktok.vocab import Vocab

MEASURED = 20_000
"""Distinct words that are encoded, the most frequent first: over .8 of running Korean text, in about a second."""

SHOWN = 4
"""Lengths of piece that the summary names."""

KINDS = 6
"""Kinds of boundary that the summary names, the most frequent ones."""


def account(counts: SegmentedCounts, vocab: Vocab) -> dict[str, Any]:
    """Pieces by length and shape, tokens a word, and by kind of boundary how many there were and how many were swallowed.

    Examples
    --------
    >>> counts = SegmentedCounts.from_marked({" 집|에": 3})
    >>> found = account(counts, Vocab.bpe(" 집에", [" 집", " 집에"]))
    >>> found["boundaries"], found["pieces_by_length"]
    ({'other': {'n': 3, 'swallowed': 3}}, {'1': 3, '2': 1, '3': 1})
    """
    model = model_for(vocab)
    there: Counter[int] = Counter()
    lost: Counter[int] = Counter()
    tokens = total = 0
    words = nlargest(MEASURED, counts.items(), key=lambda item: (item[2], item[0]))
    for word, cuts, n in words:
        ids, spans = model.encode(word)
        tokens += n * len(ids)
        total += n
        borders = {end for _, end in spans}
        for cut in cuts:
            there[cut.kind] += n
            lost[cut.kind] += n * (cut.offset not in borders)
    lengths, shapes = Counter(map(len, vocab.pieces)), Counter(map(shape_of, vocab.pieces))
    return {
        "pieces_by_length": {str(length): lengths[length] for length in sorted(lengths)},
        "pieces_by_shape": {shape: shapes[shape] for shape in sorted(shapes)},
        "words_measured": len(words),
        "tokens_per_word": tokens / max(1, total),
        "boundaries": {kind.label: {"n": there[kind], "swallowed": lost[kind]} for kind in Kind if there[kind]},
    }


def summary(log: dict[str, Any]) -> list[str]:
    r"""A training's log in a few lines for people.

    Examples
    --------
    >>> boundaries = {"josa": {"n": 4, "swallowed": 3}, "eomi": {"n": 4, "swallowed": 1}}
    >>> log = {"trainer": "bpe", "pieces_by_length": {"1": 9, "2": 5}, "boundaries": boundaries}
    >>> print(*summary({**log, "stages": [{"stage": "morpheme", "merges": 5}]}), sep="\n")
    bpe: 5 merges (morpheme 5)
    pieces by length: 1: 9, 2: 5
    boundaries kept: eomi 75%, josa 25%
    """
    done = []
    if "candidates" in log:
        done.append(f"{log['candidates']:,} candidates")
    if "rounds" in log:
        done.append(f"{len(log['rounds'])} rounds")
    if "stages" in log:
        stages = log["stages"]
        named = ", ".join(f"{stage['stage']} {stage['merges']:,}" for stage in stages if "stage" in stage)
        done.append(f"{sum(stage['merges'] for stage in stages):,} merges" + (f" ({named})" if named else ""))
    lines = [f"{log['trainer']}: {', '.join(done) or 'a list of the most frequent units'}"]
    lengths = log["pieces_by_length"]
    longest = sum(n for length, n in list(lengths.items())[SHOWN:])
    shown = [f"{length}: {n:,}" for length, n in list(lengths.items())[:SHOWN]]
    lines.append("pieces by length: " + ", ".join(shown + ([f"longer: {longest:,}"] if longest else [])))
    kept = {kind: 1 - row["swallowed"] / row["n"] for kind, row in log["boundaries"].items() if row["n"]}
    often = sorted(kept, key=lambda kind: (-log["boundaries"][kind]["n"], kind))[:KINDS]
    if often:
        lines.append("boundaries kept: " + ", ".join(f"{kind} {kept[kind]:.0%}" for kind in often))
    if log.get("dead_pieces_replaced"):
        lines.append(f"pieces that no word used, replaced: {log['dead_pieces_replaced']:,}")
    if "gaps" in log:
        lines.append(f"gaps between eojeols inside a token: {log['gaps']['inside'] / max(1, log['gaps']['n']):.1%}")
    return lines
