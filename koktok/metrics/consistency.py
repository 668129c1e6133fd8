"""Whether the same morpheme keeps its pieces: over pairs of words, and for one stem in all its forms."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from typing import Any, Final

import numpy as np

from koktok.foreign.base import ForeignTokenizer
from koktok.gold.sentences import word_class
from koktok.hangul import has_syllable
from koktok.metrics.boundaries import GoldPage
from koktok.metrics.registry import f_score, metric, ratio
from koktok.metrics.tokens import Tokens

WORDS: Final = 2000
"""Distinct eojeols of which every pair is compared: two million pairs."""

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


def consistency(tokenizer: ForeignTokenizer, gold: GoldPage, tokens: Tokens, *, seed: int = 0) -> dict[str, float]:
    """Counts of pairs, and of stems; one row, as the sample is of types.

    Parameters
    ----------
    tokens : Tokens
        Of the gold's sentences.
    seed : int
        Decides which eojeols are sampled.
    """
    page, rows = gold.page, tokens.rows
    text = "".join(page.lines)
    by_line: defaultdict[int, list[tuple[int, int, str, str]]] = defaultdict(list)
    for k, sentence in enumerate(gold.gold.sentences):
        at = int(page.line_starts[k])
        by_line[k] = [(at + m.start, at + m.end, m.form, word_class(m.tag)) for m in sentence.morphemes]
    words: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]] = {}
    stems: defaultdict[tuple[str, str], Counter[tuple[int, ...]]] = defaultdict(Counter)
    forms: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    whole: Counter[tuple[str, str]] = Counter()
    first, last = tokens.ended, tokens.started
    solid = rows.ends > rows.starts
    ordered = rows.ids[solid][np.argsort(rows.starts[solid], kind="stable")].tolist()
    line_position: defaultdict[int, int] = defaultdict(int)
    pieces: dict[int, str] = {}
    for start, end, line, scored in zip(
        page.eojeol_starts.tolist(),
        page.eojeol_ends.tolist(),
        page.eojeol_lines.tolist(),
        gold.eojeols.tolist(),
        strict=True,
    ):
        row = by_line[line]
        at = line_position[line]
        while at < len(row) and row[at][0] < start:
            at += 1
        mine = []
        while at < len(row) and row[at][0] < end:
            mine.append(row[at])
            at += 1
        line_position[line] = at
        if not scored or not mine:
            continue
        form = text[start:end]
        ids = ordered[int(first[start]) : int(last[end])]
        if form not in words:
            for i in ids:
                if i not in pieces:
                    pieces[i] = tokenizer.surface(i).strip()
            words[form] = (
                frozenset(f"{m}/{c}" for _, _, m, c in mine if c not in ("S", "F")),
                frozenset(
                    f"{ALLOMORPHS.get(m, m) if c in 'JE' else m}/{c}" for _, _, m, c in mine if c not in ("S", "F")
                ),
                frozenset(pieces[i] for i in ids if has_syllable(pieces[i])),
            )
        stem = next(((a, b, m, c) for a, b, m, c in mine if c in ("N", "V") and b > a), None)
        if stem is not None and stem[0] == start and tokens_alone(mine, stem):
            a, b, lemma, kind = stem
            inside = tuple((np.flatnonzero(tokens.cuts[a + 1 : b + 1]) + 1).tolist())
            stems[lemma, kind][inside] += 1
            whole[lemma, kind] += inside == (b - a,)
            forms[lemma, kind].add(form)
    found = _pairs(words, seed)
    several = [counter for key, counter in stems.items() if len(forms[key]) > 1]
    found["stem_words"] = float(sum(sum(counter.values()) for counter in several))
    found["stem_same"] = float(sum(max(counter.values()) for counter in several))
    found["stem_kept"] = float(sum(whole[key] for key in stems if len(forms[key]) > 1))
    found["stems"] = float(len(several))
    return found


def tokens_alone(mine: list[tuple[int, int, str, str]], stem: tuple[int, int, str, str]) -> bool:
    """True where the stem shares no syllable with its neighbour."""
    return all(other == stem or other[0] >= stem[1] or other[1] <= stem[0] for other in mine)


def _pairs(words: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]], seed: int) -> dict[str, float]:
    """Pairs of sampled words that share a morpheme, a token, or both."""
    order = sorted(words, key=lambda word: hashlib.sha256(f"{seed}:{word}".encode()).digest())[:WORDS]

    def share(part: int) -> Any:
        names: dict[str, int] = {}
        cells = [
            (k, names.setdefault(item, len(names)))
            for k, word in enumerate(order)
            for item in sorted(words[word][part])
        ]
        table = np.zeros((len(order), max(len(names), 1)), dtype=np.float32)
        for k, j in cells:
            table[k, j] = 1
        return np.triu(table @ table.T > 0, k=1)

    surface, merged, token = share(0), share(1), share(2)
    return {
        "pairs_token": float(token.sum()),
        "pairs_surface": float(surface.sum()),
        "pairs_surface_both": float((surface & token).sum()),
        "pairs_merged": float(merged.sum()),
        "pairs_merged_both": float((merged & token).sum()),
    }


@metric("M16a", ko="형태 일관성 F1 (표면형)", unit="share", better="higher", needs="sample", table="consistency")
def consistency_f1(s: Any) -> Any:
    """Morphological consistency, surface forms.

    Definition: over all pairs of 2,000 sampled distinct eojeols of the gold, F1 of "share a token with Hangul" against
    "share a morpheme", morphemes in their gold form with their word class.
    Source: the idea of MorphBPE; the sampling is ours, as the paper's could not be read.
    Pitfalls: pairs that share a particle dominate; 은 and 는 are two here and one in M16b.
    """
    return f_score(s["pairs_surface_both"], s["pairs_token"], s["pairs_surface"])


@metric("M16b", ko="형태 일관성 F1 (이형태 통합)", unit="share", better="higher", needs="sample", table="consistency")
def consistency_f1_merged(s: Any) -> Any:
    """Morphological consistency, allomorphs merged.

    Definition: as M16a with 은/는, 이/가, 았/었/였 … taken as one morpheme each.
    Source: as M16a.
    Pitfalls: surface tokens cannot share what is spelled differently, so the recall has a ceiling below 1.
    """
    return f_score(s["pairs_merged_both"], s["pairs_token"], s["pairs_merged"])


@metric("M16c", ko="어간 분할 일관성", unit="share", better="none", needs="sample", table="consistency")
def stem_consistency(s: Any) -> Any:
    """Same stem, same cuts.

    Definition: for stems (first noun or verb of an eojeol, sharing no syllable) that occur in two or more distinct
    eojeols: running words whose cuts inside and at the end of the stem are the most frequent ones of that stem / all.
    Source: this suite.
    Pitfalls: never cutting is rewarded (whole eojeols have .92, single syllables 1), so it is no score: read recall before
    particles and endings (M12) beside it.
    """
    return ratio(s["stem_same"], s["stem_words"])


@metric("M16d", ko="한 토큰으로 남은 어간", unit="share", better="higher", needs="sample", table="consistency")
def stem_whole(s: Any) -> Any:
    """Stems that are exactly one token.

    Definition: running words whose stem (as in M16c) ends at a cut and has none inside / all.
    Source: this suite.
    Pitfalls: long compounds cannot.
    """
    return ratio(s["stem_kept"], s["stem_words"])
