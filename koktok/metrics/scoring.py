"""`score`: one tokenizer on a text and on gold, every metric with an interval and a signature; `compare` two; `evaluate` many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from operator import index
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, InstanceOf

from koktok.corpora.paths import as_text
from koktok.errors import UsageError
from koktok.metrics.borders import LINES, borders
from koktok.metrics.boundaries import GoldPage, boundary_table, by_type, golds_table, trivial_rows
from koktok.metrics.consistency import consistency
from koktok.metrics.counts import (
    Histogram,
    id_counts,
    line_counts,
    packed,
    parallel_table,
    plain_table,
    unknown_counts,
)
from koktok.metrics.entropy import segmentation_entropy
from koktok.metrics.fidelity import probes, round_trip
from koktok.metrics.gold import GOLD_BOUNDARIES, GoldCorpus, check_names, read_gold
from koktok.metrics.gold.spans import SpanCorpus
from koktok.metrics.page import Page, PageTokens, Parallel, Text
from koktok.metrics.registry import Formula, Metric, metrics
from koktok.metrics.robustness import contexts, noise
from koktok.metrics.spans import SpanPage, span_table
from koktok.metrics.statistics import GROUPS, Difference, Statistics, Table, Value, around, jackknife, paired
from koktok.metrics.vocabulary import vocabulary_counts
from koktok.model.note import Note
from koktok.protocol.tokenizer import Tokenizer
from koktok.runtimes.huggingface.adapter import HuggingFace
from koktok.runtimes.references.trivial import OpenVocabulary
from koktok.text.sources import Source, read
from koktok.tokenizer.open import load

FORMAT: Final = 3
RECALLS: Final = {
    f"recall:{kind}": Formula(f"of('hits', {kind!r}) / of('borders', {kind!r})") for kind in GOLD_BOUNDARIES
}
"""For each kind of boundary its recall."""


@dataclass(frozen=True)
class Material:
    """What is measured on: a text, gold morphemes, marked spans, the same lines in two languages, and English and code beside."""

    text: Text | None = None
    golds: Sequence[GoldCorpus | GoldPage] = ()
    spans: Sequence[SpanCorpus | SpanPage] = ()
    parallel: Parallel | None = None
    english: Text | None = None
    code: Text | None = None

    @cached_property
    def pages(self) -> list[GoldPage]:
        """The gold corpora as arrays."""
        check_names(gold.gold if isinstance(gold, GoldPage) else gold for gold in self.golds)
        return [gold if isinstance(gold, GoldPage) else GoldPage(gold) for gold in self.golds]

    @cached_property
    def marked(self) -> list[SpanPage]:
        """The corpora of spans as arrays."""
        return [spans if isinstance(spans, SpanPage) else SpanPage(spans) for spans in self.spans]

    @property
    def parallel_text(self) -> Text | None:
        """The two sides of the parallel lines."""
        sides = self.parallel and {"parallel Korean": self.parallel.korean, "parallel other": self.parallel.other}
        return Text.of(sides) if sides else None

    @cached_property
    def beside(self) -> dict[str, Text]:
        """English, code, and the words of the code with one space between them, as a tokenizer reads them that drops the others."""
        words = Text.of({"code": [" ".join(line.split()) for line in self.code.lines]}) if self.code else None
        texts = {"english": self.english, "code": self.code, "code_words": words}
        return {name: text for name, text in texts.items() if text}


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured: `extended` metrics encode again, on a sample of lines; intervals are of so many resamples."""

    extended: bool = False
    sample: int = 2000
    resamples: int = 1000
    seed: int = 0


DEFAULT = Settings()


class Scores(BaseModel):
    """The figures of one tokenizer: a row of a report.

    `values` by metric, and METRIC@WHERE of one gold corpus or one domain of the text (`recall:KIND@GOLD` of a kind of boundary);
    `differences` are its figures minus the reference's on the same lines. One that could not run has `why` and no figures;
    `failed` where that came while it was measured. `trivial` are the scores of trivial tokenizers on each gold; `details` are no
    numbers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    number: int = 0
    name: str
    spec: str = ""
    family: str = ""
    vocab_size: int | None = None
    why: str = ""
    failed: bool = False
    notes: list[str] = []
    notes_ko: list[str] = []
    signature: str = ""
    scores: dict[str, Value] = {}
    differences: dict[str, Difference] = {}
    trivial: dict[str, dict[str, float]] = Field({}, exclude=True)
    details: dict[str, Any] = Field({}, exclude=True)
    parts: dict[str, Any] = Field({}, exclude=True)
    """The parts of the signature."""
    statistics: InstanceOf[Statistics] = Field(Statistics({}), exclude=True, repr=False)

    @property
    def values(self) -> dict[str, Value]:
        """The figures by metric."""
        return self.scores

    @property
    def ran(self) -> bool:
        """Whether there are figures."""
        return not self.why


def score(
    tokenizer: Tokenizer,
    material: Material,
    settings: Settings = DEFAULT,
    *,
    reference: Tokenizer | None = None,
) -> Scores:
    """Measure a tokenizer.

    Examples
    --------
    >>> material = Material(Text.of({"news": ["하늘이 맑다", "비가 온다"]}))
    >>> scores = score(load("syllables"), material, Settings(resamples=10))
    >>> scores.values["fertility"].value
    2.25
    """
    text, pages, seed, resamples = material.text, material.pages, settings.seed, settings.resamples
    if text is None and not pages and not material.marked:
        raise UsageError("expected text, gold or spans to measure on, got none")
    statistics, details = Statistics({}), dict[str, Any]()
    if text is not None and len(text):
        statistics = _of_text(tokenizer, text, reference)
        assert statistics.histogram is not None
        if tokenizer.any_text:
            statistics.tables["borders"] = borders(tokenizer, text.sample(LINES, seed), seed=seed)
    tables = statistics.tables
    for page in pages:
        name = page.gold.name
        tables[f"gold@{name}"], tokens = boundary_table(tokenizer, page)
        tables[f"types@{name}"] = Table.row({"boundary_f1_types": by_type(tokens, page)})
        if settings.extended:
            tables[f"consistency@{name}"] = Table.row(consistency(tokenizer, page, tokens, seed=seed))
    if pages:
        judges = [page for page in pages if page.gold.human] or pages
        tables["golds"] = golds_table([tables[f"gold@{page.gold.name}"] for page in judges])
    tables |= {f"spans@{one.corpus.name}": span_table(tokenizer, one) for one in material.marked}
    if material.parallel is not None:
        tables["parallel"] = parallel_table(tokenizer, material.parallel)
    tables |= {name: plain_table(tokenizer, beside) for name, beside in material.beside.items()}
    if settings.extended and tokenizer.any_text:
        tables["vocabulary"] = Table.row(vocabulary_counts(tokenizer))
        counts, details["probes"] = probes(tokenizer)
        tables["probes"] = Table.row(counts)
        if text is not None and len(text):
            tables |= _sampled(tokenizer, text, settings.sample, seed)
    parts = _parts(tables["text"], text, resamples, seed) if text and len(text.names) > 1 else {}
    each = [value.value for name, value in parts.items() if name.startswith("fertility@")]
    if len(each) > 1:
        sums = tables["text"].sums()
        spread = {"fertility_max": max(each), "fertility_min": min(each)}
        tables["domains"] = Table.row(spread | {"fertility": float(sums["tokens"] / sums["eojeols"])})
    for page in pages:
        recalls = _within(tables[f"gold@{page.gold.name}"].measure(RECALLS, resamples, seed))
        parts |= {f"{name}@{page.gold.name}": value for name, value in recalls.items()}
    units = {page.gold.name: repr(page.units) for page in pages}
    units |= {one.corpus.name: repr(one.units) for one in material.marked}
    libraries = {**tokenizer.libraries, "koktok": version("koktok"), "numpy": version("numpy")}
    signed = {
        "format": FORMAT,
        "gold": {page.gold.name: {"digest": page.gold.digest, "label": page.gold.label} for page in pages},
        "libraries": dict(sorted(libraries.items())),
        "normalization": "NFC",
        "reference": None if reference is None else {"digest": reference.digest(), "spec": reference.name},
        "resamples": resamples,
        "sample": settings.sample if settings.extended else None,
        "seed": seed,
        "spans": {one.corpus.name: one.corpus.digest for one in material.marked},
        "text": None if text is None else text.digest,
        "units": units if text is None else {"text": repr(text.units)} | units,
        "tokenizer": tokenizer.digest(),
    }
    headline = next((page.gold.name for page in pages if page.gold.human), pages[0].gold.name if pages else "")
    values = _values(statistics, tokenizer.size, headline, resamples, seed) | parts
    return Scores(
        name=tokenizer.name,
        spec=tokenizer.spec,
        vocab_size=tokenizer.size,
        notes=[str(note) for note in tokenizer.notes],
        notes_ko=[note.korean for note in tokenizer.notes],
        signature=_in_one_line(signed),
        scores=dict(sorted(values.items())),
        trivial={page.gold.name: trivial_rows(page) for page in pages},
        details=details,
        parts=signed,
        statistics=statistics,
    )


def _in_one_line(parts: Mapping[str, Any]) -> str:
    """Parts of a signature as sacrebleu writes them: `key:value|key:value`."""

    def spelled(value: Any) -> str:
        if isinstance(value, Mapping):
            return ",".join(f"{key}={spelled(item)}" for key, item in sorted(value.items()))
        return ",".join(map(spelled, value)) if isinstance(value, list | tuple) else str(value)

    return "|".join(f"{key}:{spelled(value)}" for key, value in parts.items() if value not in (None, "", [], {}))


def _of_text(tokenizer: Tokenizer, text: Text, reference: Tokenizer | None) -> Statistics:
    """Tables of a text, batch by batch."""
    parts: list[dict[str, Any]] = []
    histogram = np.zeros((GROUPS, tokenizer.size or 1), dtype=np.int64)
    groups = text.units.groups
    for part in text.batches():
        page = Page(text.lines[part])
        tokens = PageTokens(page, tokenizer.encode_lines(page.lines))
        parts.append(line_counts(page, tokens) | unknown_counts(page, tokens, tokenizer))
        if reference is not None:
            parts[-1]["reference_tokens"] = np.diff(reference.encode_lines(page.lines).indptr)
        ids = tokens.rows.ids
        size = max(histogram.shape[1], int(ids.max(initial=-1)) + 1)
        histogram = np.pad(histogram, ((0, 0), (0, size - histogram.shape[1])))
        histogram += id_counts(ids, np.repeat(np.arange(len(page)), tokens.per_line), groups[part], size)
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if tokenizer.size is not None:
        columns["id_bits"] = columns["tokens"] * float(np.log2(tokenizer.size))
    return Statistics({"text": Table(columns, text.units.of)}, histogram)


def _sampled(t: Tokenizer, text: Text, sample: int, seed: int) -> dict[str, Table]:
    """Tables that encode a sample of the text again."""
    few, more = text.sample(sample, seed), text.sample(10 * sample, seed)
    work: dict[str, Callable[[], Table | None]] = {
        "round_trip": lambda: round_trip(t, few),
        "noise": lambda: noise(t, few, seed=seed),
        "contexts": lambda: contexts(t, few, seed=seed),
        "entropy": lambda: segmentation_entropy(t, few),
        "packed": lambda: packed(t, more),
    }
    return {name: table for name, make in work.items() if (table := make()) is not None}


def _of_table(name: str, table: Table | None = None) -> dict[str, Callable[[Any], Any]]:
    """The metrics of a table; a column that is missing without being called optional is misspelt, and no metric hides it."""
    there = {"", *(() if table is None else table.columns)}
    return {m.name: m.value for m in metrics().values() if m.table == name and (table is None or m.optional in there)}


def _parts(table: Table, text: Text, resamples: int, seed: int) -> dict[str, Value]:
    """The figures of each domain by itself, with blocks of its lines as units."""
    known = metrics()
    formulas = {name: value for name, value in _of_table("text", table).items() if known[name].shown.domains}
    masks = {name: text.domains == k for k, name in enumerate(text.names)}
    return {
        f"{key}@{name}": value
        for name, mask in masks.items()
        if mask.any()
        for key, value in _within(table.where(mask, text.blocks).measure(formulas, resamples, seed)).items()
    }


def _within(values: Mapping[str, Value]) -> dict[str, Value]:
    """Clip the intervals of shares to 0 and 1, as Student's t has no bounds."""

    def clipped(value: Value) -> Value:
        if value.low is None or value.high is None:
            return value
        return replace(value, low=max(value.low, 0.0), high=min(value.high, 1.0))

    known = metrics()
    return {
        name: clipped(value) if name not in known or known[name].unit == "share" else value
        for name, value in values.items()
    }


def _values(statistics: Statistics, size: int | None, headline: str, resamples: int, seed: int) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, table in statistics.tables.items():
        base, _, corpus = name.partition("@")
        figures = _within(table.measure(_of_table(base, table), resamples, seed))
        values |= {f"{key}@{corpus}" if corpus else key: value for key, value in figures.items()}
        values |= figures if corpus and corpus == headline else {}
    if statistics.histogram is not None and statistics.histogram.any():
        groups, whole = list(statistics.histogram), statistics.histogram.sum(axis=0)
        for name, metric in _of_table("histogram").items():
            if size is not None or not name.endswith("utilisation"):
                values[name] = _jackknifed(groups, whole, size, metric, resamples)
    return values


def _jackknifed(groups: list[Any], whole: Any, size: int | None, metric: Callable[[Any], Any], resamples: int) -> Value:
    def value(counts: Any) -> float:
        return float(metric(Histogram(counts, size)))

    error, n = jackknife(groups, value, whole) if resamples > 1 else (None, 0)
    whole_value = value(whole)
    return Value(whole_value, *around(whole_value, error, n - 1), int(whole.sum()), n if error is not None else 0)


def compare(first: Scores, second: Scores, name: str, *, resamples: int = 10_000, seed: int = 0) -> Difference:
    """First minus second on the same lines: a metric, of gold also NAME@GOLD, with a paired bootstrap interval.

    A UsageError when one of them has no such figure, or they are not of the same lines.
    """
    bare, _, corpus = name.partition("@")
    m = metrics().get(bare)
    if m is None:
        raise UsageError(f"`{bare}` is not a metric", hint="koktok metrics")
    if m.table == "histogram":
        return _paired_histograms(first, second, m, resamples)
    table = m.table
    if table in ("gold", "types", "consistency"):
        human = [g for g, about in first.parts["gold"].items() if about["label"] == "human"]
        table = f"{table}@{corpus or next(iter(human or first.parts['gold']), '')}"
    one, two = (scores.statistics.tables.get(table) for scores in (first, second))
    if one is None or two is None or (m.optional and not (m.optional in one.columns and m.optional in two.columns)):
        raise UsageError(f"`{name}` was not measured for both")
    if table in ("text", "borders") and first.parts["text"] != second.parts["text"]:
        raise UsageError("the two were not measured on the same text")
    return paired(one, two, m.value, resamples=resamples, seed=seed)


def _paired_histograms(first: Scores, second: Scores, m: Metric, resamples: int) -> Difference:
    """Compare two histograms by the jackknife over the same groups of blocks."""
    (a, a_size), (b, b_size) = ((scores.statistics.histogram, scores.vocab_size) for scores in (first, second))
    if a is None or b is None or first.parts["text"] != second.parts["text"]:
        raise UsageError(f"`{m.name}` was not measured on the same text for both")
    width, both = a.shape[1], np.concatenate([a, b], axis=1)

    def difference(counts: Any) -> float:
        return float(m.value(Histogram(counts[:width], a_size)) - m.value(Histogram(counts[width:], b_size)))

    whole = both.sum(axis=0)
    error, n = jackknife(list(both), difference, whole) if resamples > 1 else (None, GROUPS)
    whole_value = difference(whole)
    return Difference.tested(whole_value, error, n - 1, n)


class Evaluation(dict[str, Scores]):
    """Scores by the name of the tokenizer, shown as a table of the main figures.

    Examples
    --------
    >>> evaluate("syllables", ["하늘이 맑다", "비가 온다"], resamples=0)
               ids  fertility  chars_per_token  unknown_eojeols  fallback_bytes
    syllables           2.250            1.222            0.000           0.000
    """

    def __repr__(self) -> str:
        brief = [name for name, metric in metrics().items() if metric.shown.brief]
        names = [name for name in brief if any(name in scores.values for scores in self.values())]
        rows = [["", "ids", *names]]
        for name, scores in self.items():
            figures = [scores.values.get(one) for one in names]
            cells = ["" if figure is None else f"{figure.value:.3f}" for figure in figures]
            rows.append([name, "" if scores.vocab_size is None else f"{scores.vocab_size:,}", *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)


def evaluate(
    tokenizers: Any,
    text: Any = None,
    gold: Any = (),
    *,
    extended: bool = DEFAULT.extended,
    resamples: int = DEFAULT.resamples,
    seed: int = DEFAULT.seed,
    field: str | None = None,
) -> Evaluation:
    """Tokens, unknowns and morpheme boundaries of tokenizers, every figure with a 95 % interval.

    Parameters
    ----------
    tokenizers : Tokenizer, Path, str, function, or several of them
        A tokenizer (of transformers and tokenizers, too), a folder or file, a reference as `koktok report` takes it
        (`hf:FILE`, `package:NAME`, `kiwi`), or a function from a text to the places (begin, end) of its tokens.
    text : Path, several paths, lines, or a mapping of names to lines, optional
        Every file, or name, is a domain.
    gold : Path or several paths, optional
        Gold morphemes: CoNLL-U, KLUE-DP, Sejong.
    extended : bool
        Also the metrics that encode again: round trips, noise, reach of the vocabulary. Minutes each.
    resamples, seed : int
        Of the bootstrap; 0 draws no intervals.
    field : str, optional
        Field or column of the records of `text`.

    Returns
    -------
    Evaluation
        A dict of `Scores` by name, shown as a table. `scores["name"].values["fertility"].value` are tokens per eojeol; `koktok metrics`
        lists all.

    Examples
    --------
    >>> evaluate("syllables", ["하늘이 맑다", "비가 온다"], resamples=0)["syllables"].values["fertility"].value
    2.25
    """

    def several(value: Any) -> list[Any]:
        return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Path) else [value]

    opened = [_opened(one) for one in several(tokenizers)]
    if not opened:
        raise UsageError("no tokenizer was given to measure", hint='koktok.evaluate("my-tokenizer", Path("text.txt"))')
    golds = [one if isinstance(one, GoldCorpus) else read_gold(Path(one)) for one in several(gold)]
    material = Material(None if text is None else _text(text, field), golds)
    settings = Settings(extended, resamples=resamples, seed=seed)
    scores = Evaluation()
    for tokenizer in opened:
        name = tokenizer.name
        while name in scores:
            name += "'"
        scores[name] = score(tokenizer, material, settings)
    return scores


def _opened(tokenizer: Any) -> Tokenizer:
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if isinstance(tokenizer, str | Path):
        return load(str(tokenizer))
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)  # of transformers
    if hasattr(fast, "to_str"):  # of tokenizers
        name = Path(getattr(tokenizer, "name_or_path", "") or "tokenizer").name
        return HuggingFace(fast.to_str(), spec=name, name=name)
    if callable(tokenizer) and not hasattr(tokenizer, "save_pretrained"):
        return _of_function(tokenizer)
    hint = 'tokenizer.save_pretrained("FOLDER"); koktok.evaluate("FOLDER", text)' if callable(tokenizer) else ""
    raise UsageError(
        f"expected a tokenizer, a folder, a reference or a function from a text to spans, got a {type(tokenizer).__name__}",
        hint=hint,
    )


def _of_function(spans: Callable[[str], Any]) -> Tokenizer:
    """A tokenizer of a user's function from a text to the half-open places of its tokens."""
    name = getattr(spans, "__name__", type(spans).__name__)

    def cut(lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        rows = []
        for line in lines:
            try:
                row = [(index(a), index(b)) for a, b in spans(line)]
            except (TypeError, ValueError) as error:
                raise UsageError(
                    f"expected pairs of numbers from `{name}`: {error}", hint="[(0, 2), (2, 3)] for 학교에"
                ) from None
            at = [place for pair in row for place in pair]
            if at != sorted(at) or not 0 <= min(at, default=0) <= max(at, default=0) <= len(line):
                raise UsageError(
                    f"expected places in order inside the text from `{name}`, got {row[:5]} for {line[:40]!r}"
                )
            rows.append(row)
        return rows

    return OpenVocabulary(
        name, name, cut, digest=name, notes=[Note("a function from a text to spans", "텍스트를 나누는 함수")]
    )


def _text(text: Any, field: str | None = None) -> Text:
    if isinstance(text, Text):
        return text
    if isinstance(text, Mapping):
        return Text.of(text)
    source = as_text(text, field)
    if isinstance(source, list) and source and isinstance(source[0], Source) and field is None:
        return Text.read([file for source in source for file in source.paths])
    return Text.of({"text": [line for block in read(source) for line in block.lines()]})
