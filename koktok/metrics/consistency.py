"""Whether the same morpheme keeps its pieces: over pairs of words, and for one stem in all its forms."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Any, Final

import numpy as np

from koktok.hangul import has_syllable
from koktok.metrics.boundaries import GoldPage
from koktok.metrics.gold.sentences import word_class
from koktok.metrics.page import PageTokens
from koktok.metrics.vocabulary import surface
from koktok.protocol.tokenizer import Tokenizer

WORDS: Final = 2000  # distinct eojeols of which every pair is compared

ALLOMORPHS: Final = {
    form: "/".join(forms)
    for forms in (
        ("은", "는", "ㄴ"), ("이", "가"), ("을", "를", "ㄹ"), ("과", "와"), ("으로", "로"), ("았", "었", "였", "ㅆ"),
        ("아", "어", "여"), ("아서", "어서", "여서"), ("아도", "어도", "여도"), ("아야", "어야", "여야"), ("으면", "면"),
        ("으니", "니"), ("으며", "며"), ("으려", "려"), ("으러", "러"), ("는다", "ㄴ다"), ("습니다", "ㅂ니다"),
        ("으시", "시"), ("이나", "나"), ("이라", "라"), ("아라", "어라", "여라"), ("으로서", "로서"), ("으로써", "로써"),
    )
    for form in forms
}  # fmt: skip
"""Forms of one particle or ending; the same letters as a noun are another morpheme, so only J and E are merged."""

Morpheme = tuple[int, int, str, str]
"""Start, end, form, word class."""


def consistency(tokenizer: Tokenizer, gold: GoldPage, tokens: PageTokens, *, seed: int = 0) -> dict[str, float]:
    """Counts of pairs and of stems; one row, as the sample (by `seed`) is of types. `tokens` are the gold's sentences."""
    page, rows, text = gold.page, tokens.rows, "".join(gold.page.lines)
    morphemes: list[Morpheme] = [
        (int(at) + m.start, int(at) + m.end, m.form, word_class(m.tag))
        for at, sentence in zip(page.line_starts, gold.gold.sentences, strict=False)
        for m in sentence.morphemes
    ]
    begins = [m[0] for m in morphemes]
    solid = rows.ends > rows.starts
    ordered = rows.ids[solid][np.argsort(rows.starts[solid], kind="stable")].tolist()
    words: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]] = {}
    stems: defaultdict[tuple[str, str], Counter[tuple[int, ...]]] = defaultdict(Counter)
    forms: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    whole: Counter[tuple[str, str]] = Counter()
    for start, end in zip(
        page.eojeol_starts[gold.eojeols].tolist(), page.eojeol_ends[gold.eojeols].tolist(), strict=True
    ):
        mine = morphemes[bisect_left(begins, start) : bisect_left(begins, end)]
        if not mine:
            continue
        form = text[start:end]
        if form not in words:
            pieces = (
                surface(tokenizer, i).strip() for i in ordered[int(tokens.ended[start]) : int(tokens.started[end])]
            )
            named = [
                (f"{m}/{c}", f"{ALLOMORPHS.get(m, m) if c in 'JE' else m}/{c}") for _, _, m, c in mine if c not in "SF"
            ]
            shared = frozenset(piece for piece in pieces if has_syllable(piece))
            words[form] = (frozenset(a for a, _ in named), frozenset(b for _, b in named), shared)
        stem = next((m for m in mine if m[3] in ("N", "V") and m[1] > m[0]), None)
        if stem and stem[0] == start and all(m == stem or m[0] >= stem[1] or m[1] <= stem[0] for m in mine):
            a, b, key = stem[0], stem[1], (stem[2], stem[3])
            inside = tuple((np.flatnonzero(tokens.cuts[a + 1 : b + 1]) + 1).tolist())
            stems[key][inside] += 1
            whole[key] += inside == (b - a,)
            forms[key].add(form)
    several = [key for key in stems if len(forms[key]) > 1]
    return _pairs(words, seed) | {
        "stem_words": float(sum(stems[key].total() for key in several)),
        "stem_same": float(sum(max(stems[key].values()) for key in several)),
        "stem_kept": float(sum(whole[key] for key in several)),
        "stems": float(len(several)),
    }


def _pairs(words: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]], seed: int) -> dict[str, float]:
    """Pairs of sampled words that share a morpheme, a token, or both."""
    order = sorted(words, key=lambda word: hashlib.sha256(f"{seed}:{word}".encode()).digest())[:WORDS]

    def share(part: int) -> Any:
        number = {item: j for j, item in enumerate(sorted(set().union(*(words[word][part] for word in order))))}
        table = np.zeros((len(order), max(len(number), 1)), dtype=np.float32)
        for k, word in enumerate(order):
            table[k, [number[item] for item in words[word][part]]] = 1
        return np.triu(table @ table.T > 0, k=1)

    surface, merged, token = share(0), share(1), share(2)
    masks = {
        "token": token,
        "surface": surface,
        "surface_both": surface & token,
        "merged": merged,
        "merged_both": merged & token,
    }
    return {f"pairs_{name}": float(pairs.sum()) for name, pairs in masks.items()}
