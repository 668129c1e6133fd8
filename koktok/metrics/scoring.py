"""`score`: one tokenizer on a text and on gold, every metric of it with an interval and a signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from koktok.errors import UsageError
from koktok.foreign.base import ForeignTokenizer, Ints
from koktok.gold import GoldCorpus, check_names
from koktok.metrics import boundaries, fertility, unknowns
from koktok.metrics.border_kinds import by_kind, golds_table
from koktok.metrics.distribution import Histogram, counted, lengths
from koktok.metrics.extended import other_texts, sampled
from koktok.metrics.probe import Labelled
from koktok.metrics.registry import Metric, metrics
from koktok.metrics.statistics import (
    GROUPS,
    Difference,
    Statistics,
    Table,
    Value,
    around,
    interval,
    jackknife,
    paired,
)
from koktok.metrics.tokens import Page, Parallel, Text, Tokens
from koktok.progress import Tell

FORMAT: Final = 2
"""Version of what `Scores.as_dict` gives."""


@dataclass
class Scores:
    """The figures of one tokenizer.

    Parameters
    ----------
    tokenizer : dict
        Spec, name, size, digest, libraries, notes.
    values : dict of str to Value
        By name of the metric; those of gold also as NAME@GOLD for each gold corpus.
    domains : dict of str to dict of str to Value
    kinds : dict of str to dict of str to Value
        For each gold corpus the recall of each kind of border.
    trivial : dict of str to dict of str to float
        For each gold corpus what stands beside every boundary score.
    histograms : dict of str to list of int
    details : dict
        What is no number: which difficult strings came back.
    """

    tokenizer: dict[str, Any]
    values: dict[str, Value]
    domains: dict[str, dict[str, Value]]
    kinds: dict[str, dict[str, Value]]
    trivial: dict[str, dict[str, float]]
    histograms: dict[str, list[int]]
    details: dict[str, Any]
    signature: dict[str, Any]
    statistics: Statistics = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the same inputs give the same bytes when keys are sorted."""
        return {
            "details": self.details,
            "domains": _plain(self.domains),
            "format": FORMAT,
            "histograms": self.histograms,
            "kinds": _plain(self.kinds),
            "signature": self.signature,
            "tokenizer": self.tokenizer,
            "trivial": {
                name: {k: Value(v).as_dict()["value"] for k, v in row.items()} for name, row in self.trivial.items()
            },
            "values": {name: value.as_dict() for name, value in sorted(self.values.items())},
        }


def _plain(rows: dict[str, dict[str, Value]]) -> dict[str, dict[str, Any]]:
    return {key: {name: value.as_dict() for name, value in sorted(row.items())} for key, row in rows.items()}


def _text_statistics(
    tokenizer: ForeignTokenizer, text: Text, reference: ForeignTokenizer | None, tell: Tell | None
) -> Statistics:
    """Tables of a text, batch by batch."""
    parts: list[dict[str, Ints]] = []
    histogram = np.zeros((GROUPS, tokenizer.size or 1), dtype=np.int64)
    batches, groups = list(text.batches()), text.units.groups
    for number, part in enumerate(batches):
        lines = text.lines[part]
        page = Page(lines)
        tokens = Tokens(page, tokenizer.encode(lines))
        found = fertility.columns(page, tokens) | unknowns.columns(page, tokens, tokenizer)
        if reference is not None:
            found["reference_tokens"] = np.diff(reference.encode(lines).indptr)
        parts.append(found)
        ids = tokens.rows.ids
        size = max(histogram.shape[1], int(ids.max(initial=-1)) + 1)
        if size > histogram.shape[1]:
            histogram = np.pad(histogram, ((0, 0), (0, size - histogram.shape[1])))
        line_of = np.repeat(np.arange(len(lines)), tokens.per_line)
        histogram += counted(ids, line_of, groups[part], size)
        if tell:
            tell(f"score {tokenizer.name}", number + 1, len(batches))
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    size = tokenizer.size or histogram.shape[1]
    if tokenizer.size is not None:
        columns["id_bits"] = columns["tokens"] * float(np.log2(size))
    return Statistics({"text": Table(columns, text.units.of)}, histogram)


def score(
    tokenizer: ForeignTokenizer,
    text: Text | None = None,
    *,
    gold: Sequence[GoldCorpus | boundaries.GoldPage] = (),
    reference: ForeignTokenizer | None = None,
    parallel: Parallel | None = None,
    english: Text | None = None,
    code: Text | None = None,
    labelled: Labelled | None = None,
    extended: bool = False,
    sample: int = 2000,
    resamples: int = 1000,
    seed: int = 0,
    tell: Tell | None = None,
) -> Scores:
    """Measure a tokenizer.

    Parameters
    ----------
    text : Text, optional
        For fertility, unknowns and the distribution of ids.
    gold : sequence of GoldCorpus or GoldPage
        For boundary scores; the first human one stands where no corpus is named, and the headline (`boundary_f1_macro`) is
        the mean of the human ones, or of all where none is. A `GoldPage` can be made once for many subjects.
    reference : ForeignTokenizer, optional
        For normalized sequence length.
    parallel, english, code, labelled : optional
        Text for parity, for fertility beside the Korean, and for the linear probe.
    extended : bool
        Also the metrics that encode again: round trips, noise, contexts, consistency, reach of the vocabulary, n-grams.
    sample : int
        Lines for the extended metrics (ten times as many for n-grams).
    resamples, seed : int
        Of the bootstrap over documents and domains (`Units`); 0 draws no intervals.
    tell : callable, optional
        Progress.

    Raises
    ------
    UsageError
        When there is neither text nor gold.

    Examples
    --------
    >>> from koktok.foreign import open_spec
    >>> scores = score(open_spec("syllables"), Text.of({"news": ["하늘이 맑다", "비가 온다"]}), resamples=10)
    >>> scores.values["fertility"].value
    2.25
    """
    if text is None and not gold:
        raise UsageError("neither text nor gold came, so there is nothing to measure")
    pages = [page if isinstance(page, boundaries.GoldPage) else boundaries.GoldPage(page) for page in gold]
    check_names(page.gold for page in pages)
    statistics = Statistics({})
    histograms: dict[str, list[int]] = {}
    details: dict[str, Any] = {}
    if text is not None and len(text):
        statistics = _text_statistics(tokenizer, text, reference, tell)
        if statistics.histogram is not None:
            histograms = dict(lengths(statistics.histogram, tokenizer))
    trivial = {}
    for page in pages:
        name = page.gold.name
        table, tokens = boundaries.boundary_table(tokenizer, page)
        statistics.tables[f"gold@{name}"] = table
        statistics.tables[f"types@{name}"] = _one({"boundary_f1_types": boundaries.by_type(tokens, page)})
        trivial[name] = boundaries.trivial_rows(page)
        if extended:
            from koktok.metrics.consistency import consistency

            statistics.tables[f"consistency@{name}"] = _one(consistency(tokenizer, page, tokens, seed=seed))
    if pages:
        judges = [page for page in pages if page.gold.human] or pages
        statistics.tables["golds"] = golds_table([statistics.tables[f"gold@{page.gold.name}"] for page in judges])
    statistics.tables |= other_texts(tokenizer, parallel=parallel, english=english, code=code, labelled=labelled)
    if extended:
        tables, details = sampled(tokenizer, text, sample=sample, seed=seed, tell=tell)
        statistics.tables |= tables
    domains = _domains(statistics, text, resamples, seed)
    if len(domains) > 1:
        _across(statistics, domains)
    values = _values(statistics, tokenizer, [page.gold for page in pages], resamples, seed)
    kinds = {
        page.gold.name: _measure(statistics.tables[f"gold@{page.gold.name}"], by_kind(), resamples, seed)
        for page in pages
    }
    signature = {
        "format": FORMAT,
        "gold": {page.gold.name: {"digest": page.gold.digest, "label": page.gold.label} for page in pages},
        "libraries": dict(
            sorted({**tokenizer.libraries, "koktok": version("koktok"), "numpy": version("numpy")}.items())
        ),
        "normalization": "NFC",
        "reference": None if reference is None else {"digest": reference.digest, "spec": reference.name},
        "resamples": resamples,
        "sample": sample if extended else None,
        "seed": seed,
        "text": None if text is None else text.digest,
        "units": _units(text, pages),
        "tokenizer": tokenizer.digest,
    }
    about = {
        "digest": tokenizer.digest,
        "libraries": dict(sorted(tokenizer.libraries.items())),
        "name": tokenizer.name,
        "notes": list(tokenizer.notes),
        "size": tokenizer.size,
        "spec": tokenizer.spec,
    }
    return Scores(about, values, domains, kinds, trivial, histograms, details, signature, statistics)


def _units(text: Text | None, pages: Sequence[boundaries.GoldPage]) -> dict[str, str]:
    """What the intervals stand on, by corpus."""
    found = {page.gold.name: repr(page.units) for page in pages}
    return found if text is None else {"text": repr(text.units)} | found


def _one(row: dict[str, float]) -> Table:
    """A table of one row, which has no interval."""
    return Table({k: np.array([v], dtype=np.float64) for k, v in row.items()}, np.zeros(1, dtype=np.int64))


def _of_table(known: dict[str, Metric], name: str, table: Table | None = None) -> dict[str, Callable[[Any], Any]]:
    """The metrics of a table; a column that is missing without being called optional is misspelt, and no metric hides it."""
    there = {"", *(() if table is None else table.columns)}
    return {m.name: m.value for m in known.values() if m.table == name and (table is None or m.optional in there)}


def _measure(table: Table, wanted: Mapping[str, Callable[[Any], Any]], resamples: int, seed: int) -> dict[str, Value]:
    """Values and intervals of what is wanted and has its columns in the table."""
    sums = table.sums()
    usable = {name: (value, float(value(sums))) for name, value in wanted.items()}
    drawn = table.draws(resamples, seed) if usable else None
    units = 0 if drawn is None else len(np.unique(table.units))
    found = {}
    for name, (value, here) in usable.items():
        low, high = interval(np.asarray(value(drawn), dtype=np.float64)) if drawn is not None else (None, None)
        found[name] = Value(here, low, high, len(table), units)
    return found


def _domains(statistics: Statistics, text: Text | None, resamples: int, seed: int) -> dict[str, dict[str, Value]]:
    """The figures of each domain by itself, with blocks of its lines as units."""
    if text is None or "text" not in statistics.tables or len(text.names) < 2:
        return {}
    wanted = _of_table(metrics(), "text", statistics.tables["text"])
    return {
        name: _measure(statistics.tables["text"].where(text.domains == k, text.blocks), wanted, resamples, seed)
        for k, name in enumerate(text.names)
        if (text.domains == k).any()
    }


def _across(statistics: Statistics, domains: dict[str, dict[str, Value]]) -> None:
    """The row from which the spread over domains is computed."""
    found = [row["fertility"].value for row in domains.values()]
    sums = statistics.tables["text"].sums()
    row = {"fertility_max": max(found), "fertility_min": min(found)}
    statistics.tables["domains"] = _one(row | {"fertility": float(sums["tokens"] / sums["eojeols"])})


def _values(
    statistics: Statistics, tokenizer: ForeignTokenizer, gold: Sequence[GoldCorpus], resamples: int, seed: int
) -> dict[str, Value]:
    known = metrics()
    values: dict[str, Value] = {}
    headline = next((g.name for g in gold if g.human), gold[0].name if gold else "")
    for name, table in statistics.tables.items():
        base, _, corpus = name.partition("@")
        found = _measure(table, _of_table(known, base, table), resamples, seed)
        values |= {f"{key}@{corpus}" if corpus else key: value for key, value in found.items()}
        if corpus and corpus == headline:
            values |= found
    if statistics.histogram is not None and statistics.histogram.any():
        whole = statistics.histogram.sum(axis=0)
        for name, value in _of_table(known, "histogram").items():
            if name.endswith("utilisation") and tokenizer.size is None:
                continue

            def of(counts_of: Any, value: Callable[[Any], Any] = value) -> float:
                return float(value(Histogram(counts_of, tokenizer.size)))

            error, n = jackknife(list(statistics.histogram), of, whole) if resamples > 1 else (None, 0)
            values[name] = Value(
                of(whole), *around(of(whole), error, n), int(whole.sum()), n if error is not None else 0
            )
    return values


def _paired_histograms(first: Scores, second: Scores, m: Metric, resamples: int) -> Difference:
    """The same groups of blocks left out on both sides, one after the other."""
    sides = [(scores.statistics.histogram, scores.tokenizer["size"]) for scores in (first, second)]
    (a, a_size), (b, b_size) = sides
    if a is None or b is None or first.signature["text"] != second.signature["text"]:
        raise UsageError(f"`{m.name}` was not measured on the same text for both")
    width = a.shape[1]
    both = np.concatenate([a, b], axis=1)

    def difference(counts_of: Any) -> float:
        return float(m.value(Histogram(counts_of[:width], a_size)) - m.value(Histogram(counts_of[width:], b_size)))

    whole = both.sum(axis=0)
    error, n = jackknife(list(both), difference, whole) if resamples > 1 else (None, GROUPS)
    here = difference(whole)
    return Difference.tested(here, *around(here, error, n), error, n)


def compare(first: Scores, second: Scores, name: str, *, resamples: int = 10_000, seed: int = 0) -> Difference:
    """First minus second on the same lines, with a paired bootstrap interval over the units of the text or the gold.

    Parameters
    ----------
    first, second : Scores
    name : str
        A metric; of gold also NAME@GOLD.
    resamples, seed : int
        0 draws no interval.

    Raises
    ------
    UsageError
        When one of them has no such figure, or they are not of the same lines.
    """
    bare, _, corpus = name.partition("@")
    m = metrics().get(bare)
    if m is None:
        raise UsageError(f"`{bare}` is no metric", hint="koktok metrics")
    table = m.table
    if table == "histogram":
        return _paired_histograms(first, second, m, resamples)
    if table in ("gold", "types", "consistency"):
        human = [g for g, about in first.signature["gold"].items() if about["label"] == "human"]
        table = f"{table}@{corpus or next(iter(human or first.signature['gold']), '')}"
    sides = [scores.statistics.tables.get(table) for scores in (first, second)]
    if (
        sides[0] is None
        or sides[1] is None
        or any(m.optional and m.optional not in side.columns for side in sides if side)
    ):
        raise UsageError(f"`{name}` was not measured for both")
    same = first.signature["text"] == second.signature["text"] if table == "text" else True
    if not same:
        raise UsageError("the two were not measured on the same text")
    return paired(sides[0], sides[1], m.value, resamples=resamples, seed=seed)
