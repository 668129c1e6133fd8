"""`measure`: references of tokenizers and text to a `Report`.

A tokenizer that does not run becomes a row with the reason. Finished rows may be kept on disk, so that a stopped run resumes.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from koktok.errors import KoktokError, UsageError
from koktok.files import write_file
from koktok.hangul import has_syllable
from koktok.metrics import Difference, GoldPage, Metric, Parallel, Scores, Text, compare, holm, metrics, score
from koktok.metrics.gold import check_names
from koktok.metrics.spans import SpanPage
from koktok.progress import OnProgress, silent
from koktok.report.names import distinct
from koktok.report.schema import Report, ReportRow, Sentence
from koktok.report.scored import gold_info, row_of, span_info, texts_of

if TYPE_CHECKING:
    from koktok.metrics.gold import GoldCorpus
    from koktok.metrics.gold.spans import SpanCorpus
    from koktok.tokenizer.protocol import Tokenizer


COMPARED: Final = ("fertility", "boundary_f1_macro", "boundary_f1")
"""Measures whose paired difference from the reference is drawn and tested."""

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
class Material:
    """The text, gold and spans of a report."""

    text: Text | None = None
    golds: Sequence[GoldCorpus] = ()
    spans: Sequence[SpanCorpus] = ()
    parallel: Parallel | None = None
    english: Text | None = None
    code: Text | None = None
    shown: Sequence[Sentence] = field(default=())


class _Done(BaseModel):
    """A measured row as it is kept on disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: ReportRow
    tokens: list[list[tuple[int, int]]]
    measures: list[str]


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
    from koktok.adapters import load

    return load(spec)


Opener = Callable[[str], "Tokenizer"]
"""Opens a reference; the benchmark has kinds of its own."""


def measure(
    entries: Sequence[Entry],
    material: Material,
    *,
    title: str = "koktok report",
    command: str = "",
    reference: str | None = None,
    extended: bool = False,
    sample: int = 2000,
    resamples: int = 1000,
    seed: int = 0,
    remarks: Sequence[str] = (),
    kept: Path | None = None,
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
    check_names(material.golds)
    opened = [_opened(entry, opener) for entry in entries]
    against = (
        _opened(Entry(reference), opener) if reference else next((s for s in opened if not isinstance(s, str)), None)
    )
    if isinstance(against, str):
        raise UsageError(f"the reference `{reference}` cannot run: {against}")
    options = {"extended": extended, "sample": sample, "resamples": resamples, "seed": seed}
    run, on_progress = _Measuring(material, against, kept, options), on_progress or silent
    rows: list[ReportRow] = []
    tokens: list[dict[int, list[tuple[int, int]]]] = [{} for _ in material.shown]
    measured: set[str] = set()
    for number, (entry, tokenizer, name) in enumerate(
        zip(entries, opened, _names(entries, opened), strict=True), start=1
    ):
        on_progress(f"measuring {len(entries)} tokenizers", number - 1, len(entries))
        row = ReportRow(number=number, name=name, spec=entry.shown or entry.spec, family=_family(entry.spec))
        if isinstance(tokenizer, str):
            rows.append(row.model_copy(update={"why": tokenizer}))
            continue
        try:
            done = run.one(tokenizer)
        except Exception as error:  # a foreign library may raise anything; the error is in its row
            why = f"{type(error).__name__}: {error}".split("\n")[0]
            rows.append(row.model_copy(update={"why": why, "failed": True, "vocab_size": tokenizer.size}))
            continue
        rows.append(done.row.model_copy(update=row.model_dump(include={"number", "name", "spec", "family"})))
        measured.update(done.measures)
        for spans, row_spans in zip(tokens, done.tokens, strict=True):
            spans[number] = row_spans
    on_progress(f"measuring {len(entries)} tokenizers", len(entries), len(entries))
    return Report(
        title=title,
        command=command,
        seed=seed,
        resamples=resamples,
        libraries={"koktok": version("koktok")},
        measures=[_of_whom(metric, material.golds) for name, metric in metrics().items() if name in measured],
        texts=texts_of(material.text),
        beside=[*texts_of(material.english), *texts_of(material.code)],
        golds=[gold_info(page) for page in run.pages],
        spans=[span_info(page) for page in run.spans],
        rows=_adjusted(rows),
        reference=_name_of(against, entries, opened) if any(row.differences for row in rows) else "",
        sentences=[s.model_copy(update={"tokens": t}) for s, t in zip(material.shown, tokens, strict=True)],
        remarks=[*remarks],
        resampled="" if material.text is None else repr(material.text.units),
    )


def _of_whom(metric: Metric, golds: Sequence[GoldCorpus]) -> Metric:
    """A measure of boundaries says whose they are where none are human."""
    if not golds or any(gold.human for gold in golds) or not metric.name.startswith(("boundary_", "recall_")):
        return metric
    names = ", ".join(gold.name for gold in golds)
    title, title_ko = metric.title.replace(" of the gold corpora", ""), metric.title_ko.replace("정답 말뭉치 ", "")
    return replace(metric, title=f"{title} ({names}'s boundaries, silver)", title_ko=f"{title_ko}({names}의 경계)")


def _adjusted(rows: Sequence[ReportRow]) -> list[ReportRow]:
    """Adjust the p-values for the number of tests in the report."""
    adjusted = iter(holm([one.p for row in rows for one in row.differences.values()]))
    return [
        row.model_copy(
            update={"differences": {k: replace(one, adjusted=next(adjusted)) for k, one in row.differences.items()}}
        )
        for row in rows
    ]


@dataclass
class _Measuring:
    """The settings that all rows share."""

    material: Material
    against: Tokenizer | None
    kept: Path | None
    options: dict[str, Any]

    @cached_property
    def pages(self) -> list[GoldPage]:
        """The gold corpora as arrays."""
        return [GoldPage(gold) for gold in self.material.golds]

    @cached_property
    def spans(self) -> list[SpanPage]:
        """The corpora of spans as arrays."""
        return [SpanPage(corpus) for corpus in self.material.spans]

    @cached_property
    def reference(self) -> Scores | None:
        """The scores of the reference."""
        return None if self.against is None else self._scores(self.against)

    def one(self, tokenizer: Tokenizer) -> _Done:
        """The row of one tokenizer, from the cache where it is there."""
        place = self.kept / f"{self._key(tokenizer)}.json" if self.kept else None
        if place and place.exists():
            return _Done.model_validate_json(place.read_text(encoding="utf-8"))
        done = self._measured(tokenizer)
        if place:
            write_file(place, done.model_dump_json().encode(), force=True)
        return done

    def _measured(self, tokenizer: Tokenizer) -> _Done:
        scores = self._scores(tokenizer)
        differences: dict[str, Difference] = {}
        if tokenizer is not self.against and (reference := self.reference) is not None:
            for key in COMPARED:
                if key in scores.values and key in reference.values:
                    draws = {name: self.options[name] for name in ("resamples", "seed")}
                    difference = compare(scores, reference, key, **draws)
                    if math.isfinite(difference.value):
                        differences[key] = difference
        shown = tokenizer.encode_lines([sentence.text for sentence in self.material.shown])
        return _Done(
            row=row_of(tokenizer, scores).model_copy(update={"differences": differences}),
            tokens=[[(int(a), int(b)) for a, b in shown.line(k).spans] for k in range(len(self.material.shown))],
            measures=sorted({name.split("@")[0] for name in scores.values}),
        )

    def _scores(self, tokenizer: Tokenizer) -> Scores:
        material = self.material
        return score(
            tokenizer,
            material.text,
            gold=self.pages,
            spans=self.spans,
            reference=self.against,
            parallel=material.parallel,
            english=material.english,
            code=material.code,
            on_progress=None,
            **self.options,
        )

    def _key(self, tokenizer: Tokenizer) -> str:
        material = self.material
        both = material.parallel
        beside = [material.english and material.english.digest, material.code and material.code.digest]
        beside += [hashlib.sha256(repr((both.korean, both.other)).encode()).hexdigest()] if both else []
        what = [
            [tokenizer.spec, tokenizer.name, tokenizer.digest(), tokenizer.libraries, tokenizer.notes],
            self.against and [self.against.name, self.against.digest()],
            material.text and material.text.digest,
            [gold.digest for gold in material.golds] + [spans.digest for spans in material.spans],
            beside,
            [sentence.text for sentence in material.shown],
            self.options,
            _source_digest(),
        ]
        return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:24]


@cache
def _source_digest() -> str:
    """The digest of the code of metrics, so that a kept row is measured again when a metric changes."""
    package = Path(__file__).parent.parent
    files = [path for room in ("metrics", "adapters", "metrics/gold") for path in sorted((package / room).glob("*.py"))]
    files += [package / "report" / "scored.py", package / "model" / "tokens.py"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


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
    from koktok.adapters import parse_spec

    try:
        return parse_spec(spec)[0]
    except KoktokError:
        return "unknown"
