"""`measure`: references of tokenizers and text to a `Report`.

A tokenizer that does not run becomes a row with the reason.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

from koktok.errors import KoktokError, UsageError
from koktok.hangul import has_syllable
from koktok.metrics import Difference, GoldPage, Metric, Scores, Settings, compare, holm, metrics, score
from koktok.metrics import scoring as metrics_of
from koktok.metrics.gold import GoldCorpus
from koktok.metrics.registry import columns
from koktok.metrics.scoring import DEFAULT
from koktok.progress import OnProgress, silent
from koktok.protocol.tokenizer import Tokenizer
from koktok.report.schema import Report, Sentence
from koktok.report.scored import gold_info, span_info, texts_of
from koktok.text.names import distinct

ONE_SENTENCE: Final = (
    "{} is one sentence of {:,} words, so its figures have no intervals; an empty line ends a sentence"
)
"""A file of one word a line, most often."""

SHOWN_LENGTH: Final = (12, 70)
"""Fewest and most characters of a sentence that fits on one line of the page."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tokenizer to measure."""

    spec: str
    name: str = ""
    shown: str = ""
    why: str = ""


@dataclass(frozen=True)
class ReportMaterial(metrics_of.Material):
    """What is measured on, and the sentences that the page shows."""

    shown: Sequence[Sentence] = ()


def entries_of(words: Sequence[str]) -> list[Entry]:
    """Parse references of a command line; `NAME=SPEC` names a row.

    Examples
    --------
    >>> [(entry.name, entry.spec) for entry in entries_of(["hf:a=b/tokenizer.json", "ours=koktok:my-tokenizer"])]
    [('', 'hf:a=b/tokenizer.json'), ('ours', 'koktok:my-tokenizer')]
    """
    entries = []
    for word in words:
        named = re.fullmatch(r"([^:/=]+)=(.+)", word)
        entries.append(Entry(named[2], named[1]) if named else Entry(word))
    return entries


def showcase(texts: Sequence[str], count: int, seed: int, golds: Sequence[GoldCorpus] = ()) -> list[Sentence]:
    """Draw sentences for the page by seed, from the first gold corpus, or from the text without gold."""
    low, high = SHOWN_LENGTH
    if golds:
        gold = golds[0]
        fitting = [s for s in gold.sentences if low <= len(s.text) <= high and not s.masked]
        chosen = random.Random(seed).sample(fitting, min(count, len(fitting)))
        return [
            Sentence(
                text=s.text,
                gold=[c.at for c in s.cuts],
                unjudged=_unjudged(replace(gold, sentences=[s])),
                standing=f"{gold.name}, {gold.label}",
            )
            for s in chosen
        ]
    lines = [line for line in dict.fromkeys(texts) if low <= len(line) <= high and has_syllable(line)]
    return [Sentence(text=line) for line in random.Random(seed).sample(lines, min(count, len(lines)))]


def _unjudged(gold: GoldCorpus) -> list[int]:
    """The places of its only sentence that are not scored."""
    inner = GoldPage(gold).inner.tolist()
    return [at for at in range(1, len(inner) - 1) if not inner[at]]


def _open(spec: str) -> Tokenizer:
    from koktok.tokenizer.open import load

    return load(spec)


Opener = Callable[[str], "Tokenizer"]
"""Opens a reference; the benchmark has kinds of its own."""


def measure(
    entries: Sequence[Entry],
    material: ReportMaterial,
    settings: Settings = DEFAULT,
    *,
    title: str = "koktok report",
    command: str = "",
    made: str = "",
    reference: str | None = None,
    remarks: Sequence[str] = (),
    on_progress: OnProgress | None = None,
    opener: Opener = _open,
) -> Report:
    """Measure every entry on the same material."""
    if not entries:
        raise UsageError(
            "expected at least one tokenizer for the report, got none",
            hint="koktok report kiwi my-tokenizer --text FILE --out DIR",
        )
    if material.text is None and not material.golds and not material.spans:
        raise UsageError(
            "expected text, gold morphemes or spans, got none", hint="--text FILE, --gold FILE or --spans FILE"
        )
    pages, shown = material.pages, material.shown
    opened = [_opened(entry, opener) for entry in entries]
    against = (
        _opened(Entry(reference), opener) if reference else next((s for s in opened if not isinstance(s, str)), None)
    )
    if isinstance(against, str):
        raise UsageError(f"the reference `{reference}` cannot run: {against}")
    on_progress = on_progress or silent
    base = None if against is None else score(against, material, settings, reference=against)
    rows: list[Scores] = []
    measured: set[str] = set()
    tokens: list[dict[int, list[tuple[int, int]]]] = [{} for _ in shown]
    names = _names(entries, opened)
    for number, (entry, tokenizer, name) in enumerate(zip(entries, opened, names, strict=True), start=1):
        on_progress(f"measuring {len(entries)} tokenizers", number - 1, len(entries))
        about: dict[str, Any] = {
            "number": number,
            "name": name,
            "spec": entry.shown or entry.spec,
            "family": _family(entry.spec),
        }
        if isinstance(tokenizer, str):
            rows.append(Scores(**about, why=tokenizer))
            continue
        try:
            scores = score(tokenizer, material, settings, reference=against) if tokenizer is not against else base
            assert scores is not None
            differences = _differences(scores, base, settings) if base is not None and scores is not base else {}
            found = tokenizer.encode_lines([sentence.text for sentence in shown])
        except Exception as error:  # a foreign library may raise anything; the error is in its row
            why = f"{type(error).__name__}: {error}".split("\n")[0]
            rows.append(Scores(**about, why=why, failed=True, vocab_size=tokenizer.size))
            continue
        values = {name: value for name, value in scores.values.items() if math.isfinite(value.value)}
        rows.append(scores.model_copy(update={**about, "scores": values, "differences": differences}))
        measured.update(name.split("@")[0] for name in scores.values)
        for k, spans in enumerate(tokens):
            spans[number] = [(int(a), int(b)) for a, b in found.line(k).spans]
    on_progress(f"measuring {len(entries)} tokenizers", len(entries), len(entries))
    return Report(
        title=title,
        command=command,
        made=made,
        seed=settings.seed,
        resamples=settings.resamples,
        libraries={"koktok": version("koktok")},
        measures=[
            _of_whom(metric, [page.gold for page in pages]) for name, metric in metrics().items() if name in measured
        ],
        texts=texts_of(material.text),
        beside=[*texts_of(material.english), *texts_of(material.code), *texts_of(material.parallel_text)],
        golds=[gold_info(page) for page in pages],
        spans=[span_info(page) for page in material.marked],
        rows=_adjusted(rows),
        reference=_name_of(against, entries, opened) if any(row.differences for row in rows) else "",
        sentences=[s.model_copy(update={"tokens": t}) for s, t in zip(shown, tokens, strict=True)],
        remarks=[
            *remarks,
            *(ONE_SENTENCE.format(page.gold.name, page.gold.words) for page in pages if len(page.gold.sentences) == 1),
        ],
        resampled="" if material.text is None else repr(material.text.units),
    )


def _of_whom(metric: Metric, golds: Sequence[GoldCorpus]) -> Metric:
    """A measure of boundaries says whose they are where none are human, and that it is a mean where there are several."""
    if not golds or not metric.name.startswith(("boundary_", "recall_")):
        return metric
    title, title_ko = metric.title, metric.title_ko
    if len([gold for gold in golds if gold.human] or golds) == 1:
        title, title_ko = title.removesuffix(", mean of the gold corpora"), title_ko.removesuffix(", 정답 말뭉치 평균")
    if any(gold.human for gold in golds):
        return replace(metric, title=title, title_ko=title_ko)
    names = ", ".join(gold.name for gold in golds)
    return replace(metric, title=f"{title} ({names}'s boundaries, silver)", title_ko=f"{title_ko}({names}의 경계)")


def _adjusted(rows: Sequence[Scores]) -> list[Scores]:
    """Adjust the p-values for the number of tests in the report."""
    adjusted = iter(holm([one.p for row in rows for one in row.differences.values()]))
    return [
        row.model_copy(
            update={"differences": {k: replace(one, adjusted=next(adjusted)) for k, one in row.differences.items()}}
        )
        for row in rows
    ]


def _differences(scores: Scores, base: Scores, settings: Settings) -> dict[str, Difference]:
    """The figures of a row minus those of the reference, where both are numbers."""
    compared = [metric.name for metric in columns() if metric.shown.compared]
    both = [key for key in compared if key in scores.values and key in base.values]
    found = {key: compare(scores, base, key, resamples=settings.resamples, seed=settings.seed) for key in both}
    return {key: difference for key, difference in found.items() if math.isfinite(difference.value)}


def _opened(entry: Entry, opener: Opener) -> Tokenizer | str:
    """Open a tokenizer, or return the reason why it does not open."""
    if entry.why:
        return entry.why
    try:
        return opener(entry.spec)
    except KoktokError as error:
        return f"{error.message} ({error.hint})" if error.hint else error.message


def _names(entries: Sequence[Entry], opened: Sequence[Tokenizer | str]) -> list[str]:
    """A name a row, all distinct."""
    pairs = zip(entries, opened, strict=True)
    names = [entry.name or (entry.spec if isinstance(tokenizer, str) else tokenizer.name) for entry, tokenizer in pairs]
    return distinct(names, [entry.shown or entry.spec for entry in entries])


def _name_of(against: Tokenizer | None, entries: Sequence[Entry], opened: Sequence[Tokenizer | str]) -> str:
    if against is None:
        return ""
    return next((name for name, s in zip(_names(entries, opened), opened, strict=True) if s is against), against.name)


def _family(spec: str) -> str:
    from koktok.tokenizer.open import parse_spec

    try:
        return parse_spec(spec)[0]
    except KoktokError:
        return "unknown"
