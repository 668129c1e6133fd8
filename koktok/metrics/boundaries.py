"""Cuts against the borders of gold morphemes: precision, recall, what is split and what is swallowed.

A cut counts where it stands between two Hangul syllables of one eojeol. A border inside a syllable (했 = 하 + 었) has no
legal cut; it stays out of M10a and is a miss that nobody can avoid in M10b. A cut beside such a syllable (해|요 for 하 + 아요)
is neither right nor wrong, and counts nowhere. No figure travels without the trivial row (one token a syllable) and the
arithmetic bound: with c cuts against g borders, F1 ≤ 2·min(c, g)/(c + g).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from koktok.foreign.base import ForeignTokenizer, Ints
from koktok.gold import FUNCTIONAL, KINDS, GoldCorpus
from koktok.metrics.registry import f_score, metric, ratio
from koktok.metrics.statistics import Table, Units
from koktok.metrics.tokens import Page, Tokens


class GoldPage:
    """A gold corpus as flat arrays, made once for all tokenizers."""

    def __init__(self, gold: GoldCorpus) -> None:
        self.gold = gold
        self.page = page = Page([sentence.text for sentence in gold.sentences])
        size = len(page.codes) + 1
        self.kinds = np.full(size, -1, dtype=np.int8)
        self.scored = np.ones(size, dtype=bool)
        neutral = np.zeros(size, dtype=bool)
        fused, spans = np.zeros(len(page), dtype=np.int64), []
        shared = []
        for k, sentence in enumerate(gold.sentences):
            at = int(page.line_starts[k])
            for cut in sentence.cuts:
                self.kinds[at + cut.at] = KINDS.index(cut.kind)
            for start, end in sentence.masked:
                self.scored[at + start : at + end + 1] = False
            neutral[[at + place for place in sentence.neutral]] = True
            fused[k] = len(sentence.fused)
            last = -1  # the morpheme before that left a trace
            for morpheme in sentence.morphemes:
                spans.append((at + morpheme.start, at + morpheme.end, k))
                # Two morphemes in one syllable: neither can be a token by itself.
                overlaps = last >= 0 and at + morpheme.start < spans[last][1] and morpheme.end > morpheme.start
                shared.append(overlaps or morpheme.end == morpheme.start)
                if overlaps:
                    shared[last] = True
                if morpheme.end > morpheme.start:
                    last = len(spans) - 1
        self.fused = fused
        flat = np.array(spans, dtype=np.int64).reshape(-1, 3)
        self.starts, self.ends, self.lines_of = flat[:, 0], flat[:, 1], flat[:, 2]
        self.alone = ~np.array(shared, dtype=bool)
        self.inner = page.inner & self.scored & ~neutral
        self.borders = (self.kinds >= 0) & self.inner
        self.functional = self.borders & (self.kinds < len(FUNCTIONAL))
        documents = np.unique([sentence.document for sentence in gold.sentences], return_inverse=True)[1]
        self.units = Units.by(documents, "documents", "sentences")
        middle = page.eojeol_starts + (page.eojeol_ends - page.eojeol_starts) // 2
        self.eojeols = self.scored[np.minimum(middle, size - 1)]  # eojeols without a masked word in their middle


def boundary_table(tokenizer: ForeignTokenizer, gold: GoldPage) -> tuple[Table, Tokens]:
    """Counts of each sentence of a gold corpus."""
    page = gold.page
    tokens = Tokens(page, tokenizer.encode(page.lines))
    cuts = tokens.cuts & gold.inner
    hits = cuts & gold.borders
    optional = gold.borders & ~gold.functional
    # Segments end at the edges of eojeols too, so that a piece across a space is two.
    edges = tokens.cuts.copy()
    edges[page.eojeol_starts] = edges[page.eojeol_ends] = True
    before = np.concatenate([[0], np.cumsum(edges)])
    solid = gold.ends > gold.starts
    exact = gold.alone & solid & edges[gold.starts] & edges[gold.ends]
    exact &= before[np.maximum(gold.ends, gold.starts + 1)] - before[np.minimum(gold.starts + 1, len(edges))] == 0
    starts, ends = page.eojeol_starts[gold.eojeols], page.eojeol_ends[gold.eojeols]
    lines = page.eojeol_lines[gold.eojeols]
    segments = before[ends] - before[starts]

    def of(mask: Any) -> Ints:
        return np.bincount(gold.lines_of, weights=mask, minlength=len(page)).astype(np.int64)

    columns: dict[str, Ints] = {
        "hits": page.per_line(hits[:-1]),
        "cuts": page.per_line(cuts[:-1]),
        "borders": page.per_line(gold.borders[:-1]),
        "places": page.per_line(gold.inner[:-1]),
        "fused": gold.fused,
        "eojeols": np.bincount(lines, minlength=len(page)).astype(np.int64),
        "tokens": tokens.per_line_of(gold.scored[np.minimum(tokens.rows.starts, len(page.codes))]),
        "morphemes": of(np.ones(len(gold.starts))),
        "intact": of(exact),
        "segments": np.bincount(lines, weights=segments, minlength=len(page)).astype(np.int64),
        "hidden": page.per_line((gold.borders & tokens.crossed)[:-1]),
        "perfect": np.bincount(lines, weights=_perfect(cuts, gold, starts, ends), minlength=len(page)).astype(np.int64),
        "functional_hits": page.per_line((hits & gold.functional)[:-1]),
        "functional_cuts": page.per_line((cuts & ~optional)[:-1]),
        "functional_borders": page.per_line(gold.functional[:-1]),
    }
    for k, _ in enumerate(KINDS):
        kind = gold.borders & (gold.kinds == k)
        columns[f"borders_{k}"] = page.per_line(kind[:-1])
        columns[f"hits_{k}"] = page.per_line((kind & cuts)[:-1])
    columns |= _first_borders(tokens, gold)
    return Table(columns, gold.units.of), tokens


def _perfect(cuts: Any, gold: GoldPage, starts: Ints, ends: Ints) -> Any:
    wrong = np.concatenate([[0], np.cumsum(cuts ^ gold.borders)])
    return wrong[ends] == wrong[starts]


def _first_borders(tokens: Tokens, gold: GoldPage) -> dict[str, Ints]:
    """For MorphScore: in each eojeol the first border before a particle or an ending, and whether it is cut."""
    page = gold.page
    stems = [KINDS.index(kind) for kind in ("N|J", "V|E", "XS|E", "VCP|E")]
    places = np.flatnonzero(gold.borders & np.isin(gold.kinds, stems))
    eojeol = np.searchsorted(page.eojeol_starts, places, side="right") - 1
    _, first = np.unique(eojeol, return_index=True)
    places, eojeol = places[first], eojeol[first]
    line = page.eojeol_lines[eojeol]
    cut = tokens.cuts[places]
    several = tokens.over(page.eojeol_starts[eojeol], page.eojeol_ends[eojeol]) > 1

    def of(mask: Any) -> Ints:
        return np.bincount(line, weights=mask, minlength=len(page)).astype(np.int64)

    return {
        "stems": of(np.ones(len(places))),
        "stems_cut": of(cut),
        "stems_several": of(several),
        "stems_several_cut": of(cut & several),
    }


def by_type(tokens: Tokens, gold: GoldPage) -> float:
    """Boundary F1 averaged over distinct eojeols: precision and recall of each are over all its occurrences."""
    page = gold.page
    cuts = tokens.cuts & gold.inner

    def running(mask: Any) -> Any:
        return np.concatenate([[0], np.cumsum(mask)])

    hits, made, wanted = running(cuts & gold.borders), running(cuts), running(gold.borders)
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    text = "".join(page.lines)
    for start, end, scored in zip(
        page.eojeol_starts.tolist(), page.eojeol_ends.tolist(), gold.eojeols.tolist(), strict=True
    ):
        if scored:
            total = sums[text[start:end]]
            total[0] += 2 * int(hits[end] - hits[start])
            total[1] += int(made[end] - made[start] + wanted[end] - wanted[start])
    scores = [above / below for above, below in sums.values() if below]
    return float(np.mean(scores)) if scores else float("nan")


def trivial_rows(gold: GoldPage) -> dict[str, float]:
    """What stands beside every boundary score of this gold: one token a syllable, and the recall without jamo."""
    borders, places, fused = int(gold.borders.sum()), int(gold.inner.sum()), int(gold.fused.sum())
    return {
        "borders_per_eojeol": float(ratio(borders, int(gold.eojeols.sum()))),
        "coverage": gold.gold.coverage,
        "fused_per_eojeol": float(ratio(fused, int(gold.eojeols.sum()))),
        "reachable_recall": float(ratio(borders, borders + fused)),
        "syllables_f1": float(f_score(borders, places, borders)),
        "syllables_precision": float(ratio(borders, places)),
    }


@metric("M2", ko="형태소당 토큰 수", unit="tokens/morpheme", better="one", needs="gold", table="gold")
def morpheme_fertility(s: Any) -> Any:
    """Tokens per gold morpheme.

    Definition: tokens / gold morphemes, fused ones counted; words that are not scored are left out on both sides.
    Source: fertility, with morphemes for words.
    Pitfalls: below 1 morphemes are merged, above 1 split, and both average out: read it beside M11.
    """
    return ratio(s["tokens"], s["morphemes"])


@metric("M10a.p", ko="형태소 경계 정밀도", unit="share", better="higher", needs="gold", table="gold")
def boundary_precision(s: Any) -> Any:
    """Precision of cuts.

    Definition: cuts that stand on a gold border / cuts, both between two Hangul syllables of an eojeol, over all of them.
    Source: standard.
    Pitfalls: see M10a.f1.
    """
    return ratio(s["hits"], s["cuts"])


@metric("M10a.r", ko="형태소 경계 재현율", unit="share", better="higher", needs="gold", table="gold")
def boundary_recall(s: Any) -> Any:
    """Recall of borders.

    Definition: gold borders that are cut / gold borders at the edge of a syllable.
    Source: standard.
    Pitfalls: one token a syllable has recall 1.
    """
    return ratio(s["hits"], s["borders"])


@metric("M10a.f1", ko="형태소 경계 F1", unit="share", better="higher", needs="gold", table="gold")
def boundary_f1(s: Any) -> Any:
    """Boundary F1.

    Definition: 2·hits / (cuts + borders), micro, between two Hangul syllables of an eojeol; borders inside a syllable
    (했) are left out, as no cut is legal there, and so are cuts at the edges of such a syllable (해|요).
    Source: standard; the alignment of restored morphemes is koktok.segment.align.
    Pitfalls: one token a syllable already has about .64 on Kaist; schemes of annotation differ by .05, so above .95
    differences are style. Micro is driven by some 200 particles and endings: M10c averages over types, M12 has the kinds.
    """
    return f_score(s["hits"], s["cuts"], s["borders"])


@metric("M10b.r", ko="형태소 경계 재현율 (융합 포함)", unit="share", better="higher", needs="gold", table="gold")
def boundary_recall_full(s: Any) -> Any:
    """Recall of all borders.

    Definition: gold borders that are cut / all gold borders, those inside a syllable included as out of reach.
    Source: this suite.
    Pitfalls: its ceiling without jamo is `reachable_recall`, about .86 on Kaist.
    """
    return ratio(s["hits"], s["borders"] + s["fused"])


@metric("M10b.f1", ko="형태소 경계 F1 (융합 포함)", unit="share", better="higher", needs="gold", table="gold")
def boundary_f1_full(s: Any) -> Any:
    """Boundary F1 over all borders.

    Definition: 2·hits / (cuts + all borders), those inside a syllable included as out of reach.
    Source: this suite.
    Pitfalls: as M10b.r.
    """
    return f_score(s["hits"], s["cuts"], s["borders"] + s["fused"])


@metric("M10c", ko="형태소 경계 F1 (어절 유형 평균)", unit="share", better="higher", needs="gold", table="types")
def boundary_f1_types(s: Any) -> Any:
    """Boundary F1 over distinct eojeols.

    Definition: F1 of each distinct eojeol over its occurrences, averaged; eojeols without a cut and a border are left out.
    Source: this suite; the macro view of M10a.
    Pitfalls: rare words dominate; no interval.
    """
    return s["boundary_f1_types"]


@metric("M10d", ko="경계 F1의 산술 상한", unit="share", better="none", needs="gold", table="gold")
def boundary_ceiling(s: Any) -> Any:
    """What F1 the number of cuts allows.

    Definition: 2·min(cuts, borders) / (cuts + borders): F1 if every cut, or every border, were hit.
    Source: arithmetic.
    Pitfalls: a bound, not a score; F1 near it means that only the number of cuts is wrong.
    """
    return f_score(np.minimum(s["cuts"], s["borders"]), s["cuts"], s["borders"])


@metric("M11a", ko="어절당 잘못된 분할", unit="cuts/eojeol", better="lower", needs="gold", table="gold")
def over_split(s: Any) -> Any:
    """Cuts inside morphemes.

    Definition: cuts that stand on no gold border / scored eojeols.
    Source: this suite.
    Pitfalls: rare nouns split for want of pieces; see M11c.
    """
    return ratio(s["cuts"] - s["hits"], s["eojeols"])


@metric("M11b", ko="어절당 놓친 경계", unit="borders/eojeol", better="lower", needs="gold", table="gold")
def under_split(s: Any) -> Any:
    """Borders that are not cut.

    Definition: gold borders at the edge of a syllable that are not cut / scored eojeols.
    Source: this suite.
    Pitfalls: particles and endings swallowed by a piece.
    """
    return ratio(s["borders"] - s["hits"], s["eojeols"])


@metric("M11c", ko="온전한 형태소 비율", unit="share", better="higher", needs="gold", table="gold")
def morpheme_intact(s: Any) -> Any:
    """Morphemes that are one token.

    Definition: gold morphemes with a cut or the edge of the eojeol at both ends and no cut inside / gold morphemes.
    Source: TkTkT (morpheme integrity), here over all morphemes.
    Pitfalls: a morpheme that shares a syllable never is.
    """
    return ratio(s["intact"], s["morphemes"])


@metric("M13", ko="토큰 단위 형태소 F1", unit="share", better="higher", needs="gold", table="gold")
def token_f1(s: Any) -> Any:
    """F1 of exact morphemes.

    Definition: 2·(segments that equal a gold morpheme) / (segments + gold morphemes); segments are what lies between two
    cuts or edges of an eojeol, so a piece across a space is split there; fused morphemes are out of reach.
    Source: the F1 of word segmentation.
    Pitfalls: harsher than M10a; bytes of one character are one segment.
    """
    return f_score(s["intact"], s["segments"], s["morphemes"])


@metric("M14", ko="MorphScore v1", unit="share", better="none", needs="gold", table="gold")
def morphscore_1(s: Any) -> Any:
    """MorphScore, first version, on this gold.

    Definition: eojeols whose first border before a particle or an ending is cut / eojeols with such a border that are
    more than one token.
    Source: Arnett and Bergen 2024, its rule on this gold: the Korean list of the paper splits nouns after one syllable.
    Pitfalls: leaving out single tokens rewards vocabularies that swallow whole eojeols; never quote it alone.
    """
    return ratio(s["stems_several_cut"], s["stems_several"])


@metric("M15", ko="MorphScore v2", unit="share", better="higher", needs="gold", table="gold")
def morphscore_2(s: Any) -> Any:
    """MorphScore, second version, single tokens included.

    Definition: eojeols whose first border before a particle or an ending is cut / eojeols with such a border.
    Source: arXiv 2507.06378 with exclude_single_tok=False, frequency-weighted as running text is.
    Pitfalls: its authors find that it explains little of what models do later.
    """
    return ratio(s["stems_cut"], s["stems"])


@metric("M24b", ko="토큰 안에 숨은 형태소 경계", unit="share", better="lower", needs="gold", table="gold")
def hidden_borders(s: Any) -> Any:
    """Gold borders that lie inside a token.

    Definition: gold borders at the edge of a syllable strictly inside a token / such borders.
    Source: the prefix alignment of arXiv 2601.23223.
    Pitfalls: 1 − M10a.r but for characters that no token covers.
    """
    return ratio(s["hidden"], s["borders"])


@metric("M10e", ko="어절 완전 일치 비율", unit="share", better="higher", needs="gold", table="gold")
def eojeols_exact(s: Any) -> Any:
    """Eojeols cut exactly as the gold.

    Definition: scored eojeols whose cuts between Hangul syllables are the gold borders / scored eojeols.
    Source: standard (exact match).
    Pitfalls: eojeols of one morpheme count too.
    """
    return ratio(s["perfect"], s["eojeols"])
