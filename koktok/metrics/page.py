"""Text and its tokens as flat arrays, so that a metric is a few vector operations whatever the number of tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from koktok.corpora.paths import as_source
from koktok.errors import InputError, UsageError
from koktok.hangul import syllable_mask
from koktok.metrics.statistics import Units
from koktok.model.tokens import SPACES, Ints, Tokens, code_points, running
from koktok.text.names import distinct
from koktok.text.normalize import normalized
from koktok.text.sources import read

Mask = npt.NDArray[np.bool_]
BATCH: Final = 1 << 20  # characters that are measured at once


@dataclass(frozen=True)
class Text:
    """Lines in NFC, each with its domain (a number into `names`) and its block of 50 neighbours.

    >>> text = Text.of({"news": ["하늘이 맑다"], "talk": ["응", "그래"]})
    >>> len(text.lines), text.domains.tolist(), text.names
    (3, [0, 1, 1], ('news', 'talk'))
    """

    lines: list[str]
    domains: Ints
    blocks: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, domains: Mapping[str, Sequence[str]]) -> Text:
        """Lines by domain; empty lines are left out. InputError for a bare `str` in place of lines."""
        lines: list[str] = []
        where: list[int] = []
        for k, (name, texts) in enumerate(domains.items()):
            if isinstance(texts, str):
                raise InputError(f"expected the lines of `{name}`, got one `str`")
            composed = [normalized("NFC", line) for line in texts if line.strip()]
            lines += composed
            where += [k] * len(composed)
        numbers = np.array(where, dtype=np.int64)
        return cls(lines, numbers, Units.blocks(numbers), tuple(domains))

    @classmethod
    def read(cls, paths: Sequence[str | Path]) -> Text:
        """Lines of files, folders or globs; every file is a domain."""
        files = [file for path in paths for file in as_source(str(path)).paths]
        names = distinct([file.name.split(".")[0] for file in files])
        lines = ([line for block in read(as_source(str(file))) for line in block.lines()] for file in files)
        return cls.of(dict(zip(names, lines, strict=True)))

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def digest(self) -> str:
        """16 hex digits over the lines and where the domains begin."""
        whole = hashlib.sha256("\n".join(self.lines).encode("utf-8", "surrogatepass"))
        whole.update(repr((self.names, np.bincount(self.domains, minlength=len(self.names)).tolist())).encode())
        return whole.hexdigest()[:16]

    @cached_property
    def units(self) -> Units:
        """What is resampled together."""
        return Units.by(self.domains, "domains", "lines", blocks=self.blocks)

    def take(self, which: Ints) -> Text:
        """These lines only, in this order."""
        return Text([self.lines[k] for k in which], self.domains[which], self.blocks[which], self.names)

    def sample(self, size: int, seed: int = 0) -> Text:
        """At most so many lines, spread over all domains; the same for the same seed."""
        if size >= len(self):
            return self
        rng = np.random.default_rng(seed)
        return self.take(np.sort(rng.choice(len(self), size=size, replace=False)).astype(np.int64))

    def batches(self) -> Iterator[slice]:
        """Slices of about `BATCH` characters."""
        start = total = 0
        for k, line in enumerate(self.lines):
            total += len(line)
            if total >= BATCH:
                yield slice(start, k + 1)
                start, total = k + 1, 0
        if start < len(self):
            yield slice(start, len(self))


@dataclass(frozen=True)
class Parallel:
    """Parallel lines in Korean and in another language."""

    korean: list[str]
    other: list[str]

    def __post_init__(self) -> None:
        if len(self.korean) != len(self.other):
            raise UsageError(
                f"expected as many lines on both sides of parallel text, got {len(self.korean)} and {len(self.other)}"
            )


class Page:
    """Lines (NFC) as one array of code points, with the masks and counts that metrics share.

    >>> page = Page(["하늘이 맑다", "응"])
    >>> page.eojeol_starts.tolist(), page.eojeol_ends.tolist(), page.eojeol_lines.tolist()
    ([0, 4, 6], [3, 6, 7], [0, 0, 1])
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.line_starts = running([len(line) for line in lines])
        self.codes = code_points("".join(lines))
        self.hangul: Mask = syllable_mask(self.codes)
        self.space: Mask = (self.codes <= 0x3000) & np.isin(self.codes, SPACES)
        solid = ~self.space
        first = np.zeros(len(self.codes) + 1, dtype=bool)
        first[self.line_starts] = True  # an eojeol ends with its line
        before, after = np.append(False, solid)[:-1], np.append(solid, False)[1:]
        self.eojeol_starts: Ints = np.flatnonzero(solid & (~before | first[:-1]))
        self.eojeol_ends: Ints = np.flatnonzero(solid & (~after | first[1:])) + 1
        # Of two lines that start at one place (an empty one) the right one is the last.
        self.eojeol_lines: Ints = np.searchsorted(self.line_starts, self.eojeol_starts, side="right") - 1

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def eojeols(self) -> Ints:
        """Eojeols of each line."""
        return np.bincount(self.eojeol_lines, minlength=len(self)).astype(np.int64)

    @cached_property
    def bytes_per_char(self) -> Ints:
        """UTF-8 bytes of each character."""
        c = self.codes
        return 1 + (c > 0x7F).astype(np.int64) + (c > 0x7FF) + (c > 0xFFFF)

    @cached_property
    def hangul_before(self) -> Ints:
        """Hangul syllables before each place."""
        return running(self.hangul.astype(np.int64))

    @cached_property
    def inner(self) -> Mask:
        """Places between two Hangul syllables of one eojeol, shape (characters + 1,)."""
        places = np.zeros(len(self.codes) + 1, dtype=bool)
        if len(self.codes):
            places[1:-1] = self.hangul[1:] & self.hangul[:-1]
            places[self.line_starts] = False
        return places

    @cached_property
    def gaps(self) -> Mask:
        """All places inside eojeols, beside punctuation, digits and letters too, shape (characters + 1,)."""
        places = np.zeros(len(self.codes) + 1, dtype=bool)
        if len(self.codes):
            places[1:-1] = ~self.space[1:] & ~self.space[:-1]
            places[self.line_starts] = False
        return places

    def per_line(self, mask: npt.NDArray[np.generic]) -> Ints:
        """Sums over the characters (or places) of each line."""
        total = running(mask[: len(self.codes)].astype(np.int64))
        return total[self.line_starts[1:]] - total[self.line_starts[:-1]]

    def per_eojeol_line(self, mask: npt.NDArray[np.generic]) -> Ints:
        """Sums over the eojeols of each line."""
        return self.by_line(self.eojeol_lines, mask.astype(np.float64))

    def by_line(self, lines: Ints, weights: npt.ArrayLike | None = None) -> Ints:
        """Sums over items, each in one of these lines."""
        return np.bincount(lines, weights=weights, minlength=len(self)).astype(np.int64)


class PageTokens:
    """The tokens of a page: where they begin, end and run across."""

    def __init__(self, page: Page, rows: Tokens) -> None:
        self.page, self.rows = page, rows
        self._solid = rows.ends > rows.starts

    @cached_property
    def per_line(self) -> Ints:
        """Tokens of each line."""
        return np.diff(self.rows.indptr)

    @cached_property
    def started(self) -> Ints:
        """Tokens that start before each place, shape (characters + 1,); tokens without characters apart."""
        counted = np.bincount(self.rows.starts[self._solid], minlength=len(self.page.codes) + 1)
        return np.cumsum(counted) - counted

    @cached_property
    def ended(self) -> Ints:
        """Tokens that end at or before each place."""
        return np.cumsum(np.bincount(self.rows.ends[self._solid], minlength=len(self.page.codes) + 1))

    @cached_property
    def crossed(self) -> Mask:
        """Places strictly inside a token."""
        return self.started > self.ended

    @cached_property
    def cuts(self) -> Mask:
        """Places where a token starts or ends and that no token crosses."""
        edge = np.zeros(len(self.page.codes) + 1, dtype=bool)
        edge[self.rows.starts[self._solid]] = True
        edge[self.rows.ends[self._solid]] = True
        return edge & ~self.crossed

    @cached_property
    def covered(self) -> Mask:
        """Characters that some token holds, shape (characters,)."""
        return self.started[1:] > self.ended[:-1]

    def over(self, starts: Ints, ends: Ints) -> Ints:
        """How many tokens have a character in common with each span."""
        counts: Ints = self.started[ends] - self.ended[starts]
        return counts

    def per_line_of(self, mask: npt.NDArray[np.generic]) -> Ints:
        """Sums over the tokens of each line."""
        total = running(mask.astype(np.int64))
        return total[self.rows.indptr[1:]] - total[self.rows.indptr[:-1]]
