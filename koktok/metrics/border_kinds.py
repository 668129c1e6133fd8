"""Boundary scores by what stands on both sides of a border: particles, endings, the copula, and the rest.

This file adds: the headline. Schemes of annotation agree on the borders before particles (josa), endings (eomi) and the
copula, four fifths of all, and disagree on suffixes, compounds and auxiliaries; there a cut is as good as none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from koktok.gold import FUNCTIONAL, KINDS
from koktok.metrics.registry import f_score, metric, ratio
from koktok.metrics.statistics import Table

COLUMNS: Final = ("functional_hits", "functional_cuts", "functional_borders")


def golds_table(tables: list[Table]) -> Table:
    """The functional counts of several gold corpora in one table, for the mean over them; each is resampled by itself."""
    rows = [len(table) for table in tables]
    columns = {}
    for k, table in enumerate(tables):
        for name in COLUMNS:
            parts = [np.zeros(n, dtype=np.int64) for n in rows]
            parts[k] = table.columns[name]
            columns[f"{name}_{k}"] = np.concatenate(parts)
    shift = np.cumsum([0, *(int(table.units.max(initial=-1)) + 1 for table in tables)])
    units = [table.units + at for table, at in zip(tables, shift.tolist(), strict=False)]
    return Table(columns, np.concatenate(units), np.repeat(np.arange(len(tables)), rows))


def by_kind() -> dict[str, Callable[[Any], Any]]:
    """For each kind of border its recall from column sums: a breakdown, as domains are, and no metrics of their own."""
    return {kind: partial(_recall, kinds=(kind,)) for kind in KINDS}


def _recall(s: Any, kinds: Sequence[str]) -> Any:
    numbers = [KINDS.index(kind) for kind in kinds]
    return ratio(sum(s[f"hits_{k}"] for k in numbers), sum(s[f"borders_{k}"] for k in numbers))


@metric("M10f", ko="조사·어미·계사 앞 경계 F1", unit="share", better="higher", needs="gold", table="gold")
def boundary_f1_functional(s: Any) -> Any:
    """Boundary F1 before particles, endings and the copula.

    Definition: 2·hits / (cuts + borders) over the borders before a particle, an ending or the copula; cuts on borders of
    other kinds (suffixes, compounds, auxiliaries) count neither as right nor as wrong.
    Source: this suite; the kinds on which schemes of annotation agree.
    Pitfalls: a tokenizer that cuts no compound and no suffix loses nothing here.
    """
    return f_score(s["functional_hits"], s["functional_cuts"], s["functional_borders"])


@metric("M10g", ko="경계 F1, 정답 말뭉치 평균", unit="share", better="higher", needs="gold", table="golds")
def boundary_f1_macro(s: Any) -> Any:
    """Boundary F1, mean of the gold corpora.

    Definition: the mean of M10f over the gold corpora that people annotated, or over all where none is such; whatever their sizes.
    Source: this suite; one treebank is one style of text and of annotation.
    Pitfalls: depends on which corpora came; their names are in the signature. Compare at equal tokens.
    """
    count = sum(name.startswith(COLUMNS[0]) for name in s)
    return np.mean([f_score(*(s[f"{name}_{k}"] for name in COLUMNS)) for k in range(count)], axis=0)


@metric("M12a", ko="체언|조사 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_noun_particle(s: Any) -> Any:
    """Recall before particles.

    Definition: borders between a noun and a particle (N|J) that are cut / such borders.
    Source: this suite.
    Pitfalls: only the edges of syllables.
    """
    return _recall(s, ("N|J",))


@metric("M12b", ko="용언|어미 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_verb_ending(s: Any) -> Any:
    """Recall before endings.

    Definition: borders between a verb, a suffix or the copula and an ending (V|E, XS|E, VCP|E) that are cut / such borders.
    Source: this suite.
    Pitfalls: many are fused (했), which are not counted here.
    """
    return _recall(s, ("V|E", "XS|E", "VCP|E"))


@metric("M12c", ko="어미|어미 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_ending_ending(s: Any) -> Any:
    """Recall between endings.

    Definition: borders between two endings (었|다) that are cut / such borders.
    Source: this suite.
    Pitfalls: schemes differ in what is one ending (습니다).
    """
    return _recall(s, ("E|E",))


@metric("M12d", ko="파생·계사 앞 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_suffix_copula(s: Any) -> Any:
    """Recall before suffixes and the copula.

    Definition: borders before a derivational suffix or the copula (N|XS, N|VCP) that are cut / such borders.
    Source: this suite.
    Pitfalls: gold schemes disagree most here and on compounds.
    """
    return _recall(s, ("*|XSV", "*|XSN", "*|VCP"))


@metric("M12e", ko="복합 명사 재현율", unit="share", better="none", needs="gold", table="gold")
def recall_compound(s: Any) -> Any:
    """Recall inside compounds.

    Definition: borders between two nouns (N|N) that are cut / such borders.
    Source: this suite.
    Pitfalls: a compound kept whole is no fault.
    """
    return _recall(s, ("N|N",))


@metric("M12f", ko="조사·어미 앞 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_headline(s: Any) -> Any:
    """Recall before particles and endings.

    Definition: borders of M12a and M12b that are cut / such borders.
    Source: this suite; the kinds on which schemes agree.
    Pitfalls: recall alone rewards cutting everywhere.
    """
    return _recall(s, ("N|J", "V|E", "XS|E", "VCP|E"))


@metric("M12g", ko="계사 앞 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_copula(s: Any) -> Any:
    """Recall before the copula.

    Definition: borders before the copula (학생|이다) that are cut / such borders.
    Source: this suite.
    Pitfalls: where the copula left no trace (학교다) there is no border.
    """
    return _recall(s, ("*|VCP",))


@metric("M12h", ko="조사·어미·계사 앞 재현율", unit="share", better="higher", needs="gold", table="gold")
def recall_functional(s: Any) -> Any:
    """Recall before particles, endings and the copula.

    Definition: borders of M10f that are cut / such borders.
    Source: this suite.
    Pitfalls: as M12f.
    """
    return _recall(s, FUNCTIONAL)


@metric("M12i", ko="경계 종류별 재현율 평균", unit="share", better="higher", needs="gold", table="gold")
def recall_by_kind(s: Any) -> Any:
    """Recall, mean of the kinds of border.

    Definition: the mean of the recall of every kind of border that the gold has (`koktok.gold.KINDS`, the last one apart).
    Source: this suite; noun and particle are two fifths of all borders and drown the others in M10a.
    Pitfalls: as M12f; rare kinds weigh as much as common ones, and compounds and suffixes are no fault when they stay whole.
    """
    found = np.array([ratio(s[f"hits_{k}"], s[f"borders_{k}"]) for k, _ in enumerate(KINDS[:-1])])
    held = np.isfinite(found)
    return ratio(np.where(held, found, 0).sum(axis=0), held.sum(axis=0))
