"""`difference`: where two tokenizers cut the same text differently, and what that costs or gains.

The comparison word by word, by frequency, with the verdict of gold morphemes where there are any. Like the
command `diff` it has one bit of an answer (same or not) and then the details. What a cut is, every figure and every
interval are those of `koktok.metrics`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from koktok.metrics import Difference, GoldPage, Page, PageTokens, Table, Units, boundary_table, metrics
from koktok.metrics.gold import GoldCorpus
from koktok.metrics.statistics import paired
from koktok.progress import SPACE, OnProgress
from koktok.protocol.tokenizer import Tokenizer

RESAMPLES: Final = 1000
BATCH: Final = 1024


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

    `~` before or after the pieces marks a token that crosses the space.
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
class Judged:
    """Boundary figures of both on one gold corpus, and who is right where only one of them cuts.

    The difference is B minus A, with its interval and p-value over the units (`12 documents`).
    """

    gold: str
    standing: str
    f1_a: float
    f1_b: float
    difference: Difference
    units: str
    only_a: int
    only_a_right: int
    only_b: int
    only_b_right: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between A and B on a text."""

    a: Side
    b: Side
    lines: int
    lines_changed: int
    lines_same_cuts_other_ids: int
    eojeols: int
    eojeols_changed: int
    fertility_difference: Difference
    units: str
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
        data = {"format": "koktok-diff", "version": 3, "same": self.same} | asdict(self)
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def difference(
    a: Tokenizer,
    b: Tokenizer,
    text: Sequence[str] | Mapping[str, Sequence[str]],
    *,
    gold: Sequence[GoldCorpus] = (),
    words: int = 30,
    examples: int = 10,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Changes:
    """Compare two tokenizers on the same lines."""
    domains = text if isinstance(text, Mapping) else {"": text}
    lines = [line for domain in domains.values() for line in domain]
    changes: Counter[tuple[str, str, str]] = Counter()
    line_changes: list[LineChange] = []
    tokens = np.zeros((len(lines), 3), dtype=np.int64)
    changed = other_ids = eojeols_changed = only_a = only_b = 0
    for at in range(0, len(lines), BATCH):
        if on_progress:
            on_progress("comparing", at, len(lines))
        batch = lines[at : at + BATCH]
        page = Page(batch)
        left, right = _Shown(page, a), _Shown(page, b)
        tokens[at : at + len(batch)] = np.stack([left.tokens.per_line, right.tokens.per_line, page.eojeols], axis=1)
        words_of_line = np.searchsorted(page.eojeol_lines, np.arange(len(batch) + 1))
        for k, line in enumerate(batch):
            x, y = left.tokens.rows.line(k), right.tokens.rows.line(k)
            if np.array_equal(x.spans, y.spans):
                other_ids += not np.array_equal(x.ids, y.ids)
                continue
            before, origin = eojeols_changed, int(page.line_starts[k])
            for word in range(words_of_line[k], words_of_line[k + 1]):
                start, end = int(page.eojeol_starts[word]), int(page.eojeol_ends[word])
                pieces = left.word(k, start, end), right.word(k, start, end)
                if pieces[0] != pieces[1]:
                    eojeols_changed += 1
                    changes[line[start - origin : end - origin], *pieces] += 1
                    cuts = left.cuts[start + 1 : end], right.cuts[start + 1 : end]
                    only_a += int((cuts[0] & ~cuts[1]).sum())
                    only_b += int((cuts[1] & ~cuts[0]).sum())
            # A line in which only a space is in another token is not counted as changed.
            if eojeols_changed == before and len(x.ids) == len(y.ids):
                continue
            changed += 1
            if len(line_changes) < examples:
                line_changes.append(LineChange(at + k + 1, left.line(k), right.line(k)))
    if on_progress:
        on_progress("comparing", len(lines), len(lines))
    eojeols = int(tokens[:, 2].sum())
    top = sorted(changes.items(), key=lambda item: (-item[1], item[0]))[:words]
    solid = tokens[:, 2] > 0
    sources = np.repeat(np.arange(len(domains)), [len(domain) for domain in domains.values()])[solid]
    units = Units.by(sources, "domains", "lines")
    table_a, table_b = (Table({"tokens": tokens[solid, k], "eojeols": tokens[solid, 2]}, units.of) for k in (0, 1))
    return Changes(
        a=_side(a, int(tokens[:, 0].sum()), eojeols),
        b=_side(b, int(tokens[:, 1].sum()), eojeols),
        lines=len(lines),
        lines_changed=changed,
        lines_same_cuts_other_ids=other_ids,
        eojeols=eojeols,
        eojeols_changed=eojeols_changed,
        fertility_difference=_paired(table_a, table_b, "fertility", seed),
        units=repr(units),
        only_a=only_a,
        only_b=only_b,
        words=tuple(WordChange(*key, times) for key, times in top),
        examples=tuple(line_changes),
        judged=tuple(_judge(a, b, corpus, seed, on_progress) for corpus in gold),
    )


class _Shown:
    """What one tokenizer makes of the lines of a page, as people read it."""

    def __init__(self, page: Page, tokenizer: Tokenizer) -> None:
        self.page, self.tokens = page, PageTokens(page, tokenizer.encode_lines(page.lines))
        self.cuts = self.tokens.cuts
        self._starts = np.bincount(self.tokens.rows.starts, minlength=len(page.codes) + 1)
        self._text = "".join(page.lines)

    def word(self, line: int, start: int, end: int) -> str:
        """The pieces of one eojeol of a line."""
        first, last = int(self.page.line_starts[line]), int(self.page.line_starts[line + 1])
        # A leading space inside the token is how most vocabularies mark a word; crossing means that a word before it is in.
        before = "~" if start > first and not (self.cuts[start] or self.cuts[start - 1]) else ""
        after = "~" if end < last and not (self.cuts[end] or self.cuts[min(end + 1, last)]) else ""
        return before + "|".join(self._parts(start, end)) + after

    def line(self, number: int) -> str:
        """A whole line, cut."""
        parts = self._parts(int(self.page.line_starts[number]), int(self.page.line_starts[number + 1]))
        # A space that no token holds is shown as it is: there is nothing to cut.
        return "|".join(part.replace(" ", SPACE) for part in parts).replace("|\0|", " ").replace("\0", " ")

    def _parts(self, start: int, end: int) -> list[str]:
        """Pieces from place to place; several tokens inside one (bytes of a character) are counted in brackets."""
        inner = (np.flatnonzero(self.cuts[start + 1 : end]) + start + 1).tolist()
        return [self._part(a, b) for a, b in pairwise([start, *inner, end])]

    def _part(self, start: int, end: int) -> str:
        text = self._text[start:end]
        if text.isspace() and not self.tokens.covered[start]:
            return "\0"
        n = int(self._starts[start:end].sum())
        return text + (f"({n})" if n > 1 else "")


def _side(tokenizer: Tokenizer, tokens: int, eojeols: int) -> Side:
    return Side(
        tokenizer.spec, tokenizer.name, tokenizer.digest(), tokenizer.size, tokens, round(tokens / max(eojeols, 1), 9)
    )


def _paired(a: Table, b: Table, name: str, seed: int) -> Difference:
    """B minus A; 0 where there is nothing to compare."""
    result = paired(b, a, metrics()[name].value, resamples=RESAMPLES, seed=seed)
    figures = {key: getattr(result, key) for key in ("value", "low", "high", "p")}
    # What two machines sum in another order shall not show in JSON.
    shown = {key: None if x is None or not math.isfinite(x) else round(x, 9) for key, x in figures.items()}
    return replace(result, **shown | {"value": shown["value"] or 0.0})


def _judge(a: Tokenizer, b: Tokenizer, corpus: GoldCorpus, seed: int, on_progress: OnProgress | None) -> Judged:
    page = GoldPage(corpus)
    sides = []
    for k, side in enumerate((a, b)):
        if on_progress:
            on_progress(f"judging by {corpus.name}", k, 2)
        sides.append(boundary_table(side, page))
    if on_progress:
        on_progress(f"judging by {corpus.name}", 2, 2)
    (table_a, tokens_a), (table_b, tokens_b) = sides
    left, right = tokens_a.cuts & page.inner, tokens_b.cuts & page.inner
    f1 = metrics()["boundary_f1"].value
    f1_a, f1_b = (float(f1(table.sums())) for table in (table_a, table_b))
    return Judged(
        gold=corpus.name,
        standing=corpus.label,
        f1_a=round(f1_a, 9) if math.isfinite(f1_a) else 0.0,
        f1_b=round(f1_b, 9) if math.isfinite(f1_b) else 0.0,
        difference=_paired(table_a, table_b, "boundary_f1", seed),
        units=repr(page.units),
        only_a=int((left & ~right).sum()),
        only_a_right=int((left & ~right & page.borders).sum()),
        only_b=int((right & ~left).sum()),
        only_b_right=int((right & ~left & page.borders).sum()),
    )
