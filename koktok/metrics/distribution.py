"""How evenly the vocabulary is used, from the counts of its ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from koktok.foreign.base import ForeignTokenizer, Ints
from koktok.hangul import count_syllables
from koktok.metrics.registry import metric
from koktok.metrics.statistics import GROUPS


class Histogram:
    """Counts of ids, and the size of the vocabulary.

    Parameters
    ----------
    counts : ndarray of int64, shape (ids,)
    size : int or None
        None for an open vocabulary: then the types that occurred.
    """

    def __init__(self, counts: Ints, size: int | None) -> None:
        self.counts = counts[counts > 0]
        self.tokens = int(self.counts.sum())
        self.types = len(self.counts)
        self.size = size if size is not None else self.types

    def entropy(self, power: float) -> float:
        """Rényi entropy in bits; Shannon's for power 1."""
        if not self.tokens:
            return float("nan")
        p = self.counts / self.tokens
        if power == 1.0:
            return float(-(p * np.log2(p)).sum())
        return float(np.log2((p**power).sum()) / (1 - power))

    def efficiency(self, power: float) -> float:
        """Entropy over that of the uniform distribution on the vocabulary."""
        return self.entropy(power) / float(np.log2(self.size)) if self.size > 1 else float("nan")


def counted(ids: Ints, line_of: Ints, groups: Ints, size: int) -> Ints:
    """Counts of every id in each group of lines (`Units.groups`), shape (groups, size)."""
    flat = np.bincount(groups[line_of] * size + ids, minlength=GROUPS * size)
    return flat.reshape(GROUPS, size).astype(np.int64)


def lengths(histogram: Ints, tokenizer: ForeignTokenizer, longest: int = 16) -> Mapping[str, list[int]]:
    """Distributions to draw: syllables and bytes per token, over all tokens, and the counts of types in falling order."""
    total = histogram.sum(axis=0)
    syllables, sizes = np.zeros(longest + 1, dtype=np.int64), np.zeros(3 * longest + 1, dtype=np.int64)
    for i in np.flatnonzero(total):
        written = tokenizer.token_bytes(int(i))
        if written is not None:
            text = written.decode("utf-8", errors="ignore")
            syllables[min(longest, count_syllables(text))] += total[i]
            sizes[min(3 * longest, len(written))] += total[i]
    falling = np.sort(total[total > 0])[::-1]
    kept = np.unique(np.geomspace(1, max(len(falling), 1), 2000).astype(np.int64)) - 1
    return {
        "bytes_per_token": sizes.tolist(),
        "frequency": falling[kept].tolist() if len(falling) else [],
        "frequency_rank": (kept + 1).tolist() if len(falling) else [],
        "syllables_per_token": syllables.tolist(),
    }


@metric("M17a", ko="레니 효율 (2.5)", unit="share", better="none", table="histogram")
def renyi_efficiency(h: Any) -> Any:
    """Rényi efficiency, power 2.5.

    Definition: H₂.₅(p) / log₂ V with H_α = log₂(Σ p^α) / (1 − α), p the shares of the ids and V the whole vocabulary.
    Source: Zouhar et al. 2023; the package tokenization-scorer.
    Pitfalls: the package divides by the types it saw, which depends on the size of the text; here V is fixed. Random-drop
    BPE raises it while translation gets worse (Cognetta et al. 2024): a diagnosis, not a score.
    """
    return h.efficiency(2.5)


@metric("M17b", ko="레니 효율 (3.0)", unit="share", better="none", table="histogram")
def renyi_efficiency_3(h: Any) -> Any:
    """Rényi efficiency, power 3.

    Definition: as M17a with α = 3, the package's default.
    Source: tokenization-scorer.
    Pitfalls: as M17a.
    """
    return h.efficiency(3.0)


@metric("M17c", ko="섀넌 효율", unit="share", better="none", table="histogram")
def shannon_efficiency(h: Any) -> Any:
    """Shannon efficiency.

    Definition: −Σ p log₂ p / log₂ V.
    Source: Zouhar et al. 2023.
    Pitfalls: as M17a.
    """
    return h.efficiency(1.0)


@metric("M17d", ko="섀넌 엔트로피", unit="bits/token", better="none", table="histogram")
def shannon_entropy(h: Any) -> Any:
    """Shannon entropy of the ids.

    Definition: −Σ p log₂ p over the shares of the ids.
    Source: information theory.
    Pitfalls: grows with the size of the text while rare ids are still new.
    """
    return h.entropy(1.0)


@metric("M18", ko="중간 빈도 유형의 비중", unit="share", better="none", table="histogram")
def percentile_frequency(h: Any) -> Any:
    """Mass of the types of middle rank.

    Definition: share of tokens whose type stands between the 3rd and the 83rd percentile of the types seen, by count.
    Source: Gowda and May 2020, as in tokenization-scorer.
    Pitfalls: as M17a.
    """
    falling = np.sort(h.counts)[::-1]
    if not len(falling):
        return float("nan")
    start, end = int(len(falling) * 0.03), int(len(falling) * 0.83)
    start, end = min(start, len(falling) - 1), min(end, len(falling) - 1)
    if start == end:
        start = max(0, start - 1)
    if start == end:
        end = min(len(falling) - 1, end + 1)
    return float(falling[start:end].sum() / h.tokens)


@metric("M19a", ko="어휘 사용률", unit="share", better="higher", table="histogram")
def utilisation(h: Any) -> Any:
    """Share of the vocabulary that occurs.

    Definition: ids that occur at least once / all ids, specials and bytes included.
    Source: common practice.
    Pitfalls: grows with the text; compare on the same text only. Not defined for an open vocabulary. It counts types, for
    which leaving out groups gives a rough interval only.
    """
    return h.types / h.size if h.size else float("nan")


@metric("M19b", ko="자주 쓰이는 어휘의 비율", unit="share", better="higher", table="histogram")
def frequent_utilisation(h: Any) -> Any:
    """Share of the vocabulary that occurs often.

    Definition: ids that occur at least 100 times per million tokens / all ids.
    Source: TokEval.
    Pitfalls: at most 10,000 ids can do so, so large vocabularies look bad by arithmetic.
    """
    return float((h.counts >= h.tokens / 10_000).sum() / h.size) if h.size and h.tokens else float("nan")
