"""`difference`: where two tokenizers cut the same text differently, and what that costs or gains.

This file adds: the comparison word by word, by frequency, with the verdict of gold morphemes where there are any. Like the
command `diff` it has one bit of an answer (same or not) and then the details.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from koktok.metrics import GoldPage, boundary_table, metrics
from koktok.metrics.statistics import Table, Units, paired

if TYPE_CHECKING:
    from koktok.foreign import Subject
    from koktok.foreign.base import Row
    from koktok.gold import GoldCorpus

__all__ = ["Difference", "Judged", "LineChange", "Side", "WordChange", "difference"]

RESAMPLES: Final = 1000
BATCH: Final = 1024

Tell = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tokenizers and what it did with the text."""

    spec: str
    name: str
    digest: str
    size: int | None
    tokens: int
    fertility: float


@dataclass(frozen=True, slots=True)
class WordChange:
    """An eojeol that is cut differently: its pieces on both sides, and how often.

    `~` before or behind the pieces says that the token crosses the space there.
    """

    word: str
    a: str
    b: str
    times: int


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line that is cut differently, with its number from 1 on."""

    number: int
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Interval:
    """A paired difference, B minus A; no bounds where there is one unit only."""

    value: float
    low: float | None
    high: float | None
    p: float | None
    units: str


@dataclass(frozen=True, slots=True)
class Judged:
    """Boundary figures of both on one gold corpus, and who is right where only one of them cuts.

    The difference is B minus A, with its 95 % interval and p-value over the units (`12 documents`).
    """

    gold: str
    standing: str
    f1_a: float
    f1_b: float
    difference: Interval
    only_a: int
    only_a_right: int
    only_b: int
    only_b_right: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between A and B on a text.

    Parameters
    ----------
    lines, lines_changed, lines_same_cuts_other_ids : int
        All lines; those with an eojeol that is cut differently, or with another number of tokens; those with the same tokens
        and other ids (two copies of a vocabulary in another order).
    eojeols, eojeols_changed : int
    fertility_difference : Interval
        B minus A in tokens an eojeol, over the same units as in a report.
    only_a, only_b : int
        Cuts inside eojeols that only one of the two makes.
    """

    a: Side
    b: Side
    lines: int
    lines_changed: int
    lines_same_cuts_other_ids: int
    eojeols: int
    eojeols_changed: int
    fertility_difference: Interval
    only_a: int
    only_b: int
    words: tuple[WordChange, ...]
    examples: tuple[LineChange, ...]
    judged: tuple[Judged, ...]

    @property
    def same(self) -> bool:
        """Whether every word is cut alike, into as many tokens."""
        return self.lines_changed == 0

    def to_json(self) -> str:
        """Deterministic JSON, versioned, with a final newline."""
        data = {"format": "koktok-diff", "version": 2, "same": self.same} | asdict(self)
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def difference(
    a: Subject,
    b: Subject,
    text: Sequence[str] | Mapping[str, Sequence[str]],
    *,
    gold: Sequence[GoldCorpus] = (),
    words: int = 30,
    examples: int = 10,
    seed: int = 0,
    tell: Tell | None = None,
) -> Difference:
    """Compare two tokenizers on the same lines.

    Parameters
    ----------
    a, b : Subject
        From `koktok.foreign.open_spec`.
    text : sequence of str, or mapping of str to sequence of str
        Lines, or lines by domain.
    gold : sequence of GoldCorpus
        Sentences with morphemes, from `koktok.gold.read_gold`; adds who is right.
    words, examples : int
        How many changed words and lines are listed.
    seed : int
        Of the bootstrap.
    tell : callable, optional
        Progress: stage, done, total.
    """
    domains = text if isinstance(text, Mapping) else {"": text}
    lines = [line for domain in domains.values() for line in domain]
    changes: Counter[tuple[str, str, str]] = Counter()
    found: list[LineChange] = []
    tokens = np.zeros((len(lines), 3), dtype=np.int64)
    changed = other_ids = eojeols_changed = only_a = only_b = 0
    for at in range(0, len(lines), BATCH):
        if tell:
            tell("comparing", at, len(lines))
        batch = lines[at : at + BATCH]
        for k, (line, x, y) in enumerate(zip(batch, *_rows(a, b, batch), strict=True)):
            words_here = [*_words(line)]
            tokens[at + k] = len(x.ids), len(y.ids), len(words_here)
            if np.array_equal(x.spans, y.spans):
                other_ids += not np.array_equal(x.ids, y.ids)
                continue
            before = eojeols_changed
            left, right = _Cuts.of(x, len(line)), _Cuts.of(y, len(line))
            for start, end in words_here:
                here = left.shown(line, start, end), right.shown(line, start, end)
                if here[0] != here[1]:
                    eojeols_changed += 1
                    changes[line[start:end], *here] += 1
                    inner = range(start + 1, end)
                    only_a += sum(bool(left.at[p] and not right.at[p]) for p in inner)
                    only_b += sum(bool(right.at[p] and not left.at[p]) for p in inner)
            # Where only the space goes with another token, nobody would call the line changed.
            if eojeols_changed == before and len(x.ids) == len(y.ids):
                continue
            changed += 1
            if len(found) < examples:
                found.append(LineChange(at + k + 1, left.line(line), right.line(line)))
    if tell:
        tell("comparing", len(lines), len(lines))
    eojeols = int(tokens[:, 2].sum())
    top = sorted(changes.items(), key=lambda item: (-item[1], item[0]))[:words]
    return Difference(
        a=_side(a, int(tokens[:, 0].sum()), eojeols),
        b=_side(b, int(tokens[:, 1].sum()), eojeols),
        lines=len(lines),
        lines_changed=changed,
        lines_same_cuts_other_ids=other_ids,
        eojeols=eojeols,
        eojeols_changed=eojeols_changed,
        fertility_difference=_fertility(tokens, [len(domain) for domain in domains.values()], seed),
        only_a=only_a,
        only_b=only_b,
        words=tuple(WordChange(*key, times) for key, times in top),
        examples=tuple(found),
        judged=tuple(_judge(a, b, corpus, seed, tell) for corpus in gold),
    )


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Which offsets of a line are cuts, how many tokens start at each, and which characters are in no token."""

    at: np.ndarray
    starts: np.ndarray
    bare: np.ndarray

    @classmethod
    def of(cls, row: Row, length: int) -> _Cuts:
        starts, ends = row.spans[:, 0], row.spans[:, 1]
        marks = np.zeros(length + 1, dtype=bool)
        marks[starts] = True
        marks[ends] = True
        inside = np.zeros(length + 2, dtype=np.int64)
        long = ends - starts > 1
        np.add.at(inside, starts[long] + 1, 1)
        np.add.at(inside, ends[long], -1)
        counts = np.bincount(starts, minlength=length + 1)
        covered = np.zeros(length + 2, dtype=np.int64)
        np.add.at(covered, starts, 1)
        np.add.at(covered, ends, -1)
        bare = np.cumsum(covered)[: length + 1] == 0
        return cls(marks & (np.cumsum(inside)[: length + 1] == 0), counts, bare)

    def shown(self, line: str, start: int, end: int) -> str:
        """The pieces of one eojeol."""
        inner = [p for p in range(start + 1, end) if self.at[p]]
        parts = [self._part(line, a, b) for a, b in zip([start, *inner], [*inner, end], strict=True)]
        # A leading space inside the token is how most vocabularies mark a word; crossing means that a word before it is in.
        before = "~" if start > 0 and not (self.at[start] or self.at[start - 1]) else ""
        after = "~" if end < len(line) and not (self.at[end] or self.at[min(end + 1, len(line))]) else ""
        return before + "|".join(parts) + after

    def line(self, line: str) -> str:
        """The whole line, cut."""
        cuts = [p for p in range(1, len(line)) if self.at[p]]
        parts = [self._part(line, a, b) for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]
        # A space that no token holds is shown as it is: there is nothing to cut.
        return "|".join(part.replace(" ", "▁") for part in parts).replace("|\0|", " ").replace("\0", " ")

    def _part(self, line: str, start: int, end: int) -> str:
        """A piece; several tokens inside one place (bytes of a character) are counted in brackets."""
        if self.bare[start] and line[start:end].isspace():
            return "\0"
        n = int(self.starts[start:end].sum())
        return line[start:end] + (f"({n})" if n > 1 else "")


def _rows(a: Subject, b: Subject, batch: Sequence[str]) -> tuple[list[Row], list[Row]]:
    x, y = a.encode(batch), b.encode(batch)
    return [x[k] for k in range(len(batch))], [y[k] for k in range(len(batch))]


def _words(line: str) -> Iterator[tuple[int, int]]:
    at = 0
    for word in line.split():
        start = line.index(word, at)
        at = start + len(word)
        yield start, at


def _side(subject: Subject, tokens: int, eojeols: int) -> Side:
    return Side(subject.spec, subject.name, subject.digest, subject.size, tokens, round(tokens / max(eojeols, 1), 9))


def _fertility(tokens: np.ndarray, sizes: Sequence[int], seed: int) -> Interval:
    """Of tokens of A, tokens of B and eojeols of each line; so many lines are of each domain."""
    units = Units.by(np.repeat(np.arange(len(sizes)), sizes), "domains", "lines")
    a, b = (Table({"tokens": tokens[:, side], "eojeols": tokens[:, 2]}, units.of) for side in (0, 1))
    return _interval(a, b, "fertility", units, seed)


def _interval(a: Table, b: Table, name: str, units: Units, seed: int) -> Interval:
    found = paired(b, a, metrics()[name].value, resamples=RESAMPLES, seed=seed)
    figures = (found.value, found.low, found.high, found.p)
    value, low, high, p = (None if x is None or not math.isfinite(x) else round(x, 9) for x in figures)
    return Interval(value or 0.0, low, high, p, repr(units))


def _judge(a: Subject, b: Subject, corpus: GoldCorpus, seed: int, tell: Tell | None) -> Judged:
    page = GoldPage(corpus)
    found = []
    for k, side in enumerate((a, b)):
        if tell:
            tell(f"judging by {corpus.name}", k, 2)
        found.append(boundary_table(side, page))
    if tell:
        tell(f"judging by {corpus.name}", 2, 2)
    (table_a, tokens_a), (table_b, tokens_b) = found
    left, right = tokens_a.cuts & page.inner, tokens_b.cuts & page.inner
    f1 = metrics()["boundary_f1"].value
    f1_a, f1_b = (float(f1(table.sums())) for table in (table_a, table_b))
    return Judged(
        gold=corpus.name,
        standing=corpus.label,
        f1_a=round(f1_a, 9) if math.isfinite(f1_a) else 0.0,
        f1_b=round(f1_b, 9) if math.isfinite(f1_b) else 0.0,
        difference=_interval(table_a, table_b, "boundary_f1", page.units, seed),
        only_a=int((left & ~right).sum()),
        only_a_right=int((left & ~right & page.borders).sum()),
        only_b=int((right & ~left).sum()),
        only_b_right=int((right & ~left & page.borders).sum()),
    )
