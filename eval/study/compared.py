"""The figures of the size `cpu` (PLAN.md, part 3): cells of rows to ratios with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eval.contrasts import RESAMPLES, Draws, plain
from eval.study.cells import LAST, Cell, Cells
from eval.study.pairs import CLASSES, KINDS
from eval.study.rows import PAIRS, PRIMARY, ROWS
from eval.study.sizes import Size
from koktok.metrics import Difference, holm

Floats = npt.NDArray[np.float64]
REFERENCE: Final = "sp"
NAMES: Final = ("not in the training text", "1 to 9", "10 to 99", "100 to 999", "1,000 and more")
PARTICLES, OTHERS = "particles", "endings and order"
RARE: Final = f"{PARTICLES}, {NAMES[1]}"
"""Minimal pairs of particles behind rare stems, which tokenizers tell apart most."""


@dataclass(frozen=True)
class Seen:
    """A row and its whole cells by seed."""

    name: str
    cells: dict[int, dict[str, Any]]

    def of(self, seeds: Sequence[int], mark: str, figure: str) -> Floats:
        """A figure of a mark, of shape (seeds, …)."""
        return np.array([self.cells[seed]["marks"][mark][figure] for seed in seeds], dtype=np.float64)

    @cached_property
    def marks(self) -> list[str]:
        """Their names, in order."""
        return [*next(iter(self.cells.values()))["marks"]]

    def flops(self, mark: str) -> float:
        """Of the run up to a mark, the same for all seeds."""
        return float(next(iter(self.cells.values()))["marks"][mark]["flops"])


@dataclass(frozen=True)
class Sample:
    """Units of text, and draws of them: of sources and of units within each, or of units within the sources as they are."""

    source: npt.NDArray[np.int64]

    def draws(self, seeds: int, *, sources: bool) -> Draws:
        """The same for the same numbers."""
        random = np.random.default_rng(0)

        def drawn(count: Any, of: int) -> Floats:
            return random.multinomial(count, np.full(of, 1 / of), RESAMPLES).astype(np.float64)

        of_seeds = drawn(seeds, seeds)
        there, texts = np.unique(self.source), np.zeros((RESAMPLES, len(self.source)))
        often = drawn(len(there), len(there)) if sources else np.ones((RESAMPLES, len(there)))
        for one, times in zip(there.tolist(), often.T.astype(int), strict=True):
            units = np.flatnonzero(self.source == one)
            texts[:, units] = drawn(times * len(units), len(units))
        return Draws(of_seeds, texts)

    def freedom(self, *, sources: bool) -> int:
        """Degrees of freedom of the sources, or of the units within them."""
        there = len(np.unique(self.source))
        return max(1, there - 1 if sources else len(self.source) - there)


def wider(by_seed: Floats, drawn: Floats, freedom: int) -> Difference:
    """The mean over seeds with the wider of two intervals, of the draws and of the seeds alone, and the larger p."""
    value, n = float(by_seed.mean()), len(by_seed)
    # A bootstrap of n has n − 1 of n of the variance.
    error = float(drawn.std(ddof=1)) * math.sqrt((freedom + 1) / freedom)
    of_draws = Difference.tested(value, error, freedom, n)
    if n < 2:
        return of_draws
    of_seeds = Difference.tested(value, float(by_seed.std(ddof=1)) / math.sqrt(n), n - 1, n)
    both = sorted([of_draws, of_seeds], key=lambda one: one.high - one.low)  # type: ignore[operator]
    return replace(both[1], p=max(one.p for one in both))  # type: ignore[type-var]


class Figures:
    """Rows whose cells are done, on the same text."""

    def __init__(self, size: Size, work: Path, seeds: int) -> None:
        self.cells = Cells(size, work)
        asked = self.asked = self.cells.asked
        self.rows: dict[str, Seen] = {}
        self.tried: dict[str, Seen] = {}
        for row, given in ROWS.items():
            part, mark, rows = (
                ("short", f"{size.marks[0]:.3g}", self.tried) if given.tried else ("whole", LAST, self.rows)
            )
            rate = self.cells.rate(row) if row in asked["rows"] else None
            done = {seed: self.cells.done(Cell(row, part, seed, rate)) for seed in range(seeds)} if rate else {}
            found = {
                seed: cell for seed, cell in done.items() if cell and np.isfinite(cell["marks"][mark]["bits"]).all()
            }
            if len(found) == 2 and None in done.values():
                found.popitem()  # an interval of two is 12.7 standard errors wide: the first counts until all are there
            if found:
                rows[row] = Seen(row, found)
        self.sample = Sample(np.array(asked["source"]))
        self.draws = cache(self.sample.draws)  # hundreds of ratios have the same
        self.characters = np.array(asked["characters"], dtype=np.float64)

    def why(self, row: str) -> str:
        """Why a row has no figures."""
        if row not in self.asked["rows"]:
            return "its vocabulary is not prepared"
        if self.cells.rate(row):
            return "its runs are not done"
        return f"the rates of `{self.cells.swept(row)}` are not done"

    def row(self, name: str) -> Seen:
        """A row of whole or of short runs."""
        return self.rows.get(name) or self.tried[name]

    def both(self, first: str, second: str) -> list[int]:
        """The seeds of two rows."""
        return sorted(self.row(first).cells.keys() & self.row(second).cells.keys())

    def ratio(
        self, first: str, second: str, *, mark: str = LAST, where: Callable[[Floats], Floats] | None = None, sources: bool = True
    ) -> Difference:  # fmt: skip
        """The logarithm of a ratio of bits, of a part of the columns or units."""
        seeds = self.both(first, second)
        take = where or (lambda bits: bits.sum(axis=-1))
        draws = self.draws(len(seeds), sources=sources)
        counts = [take(self.row(name).of(seeds, mark, "bits")) for name in (first, second)]
        by_seed = np.log(counts[0].sum(axis=1) / counts[1].sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = np.log(draws.sums(counts[0]) / draws.sums(counts[1]))
        return wider(by_seed, drawn[np.isfinite(drawn)], self.sample.freedom(sources=sources))

    def at_equal_flops(self, first: str, second: str) -> tuple[Difference, bool]:
        """The logarithm of the ratio at the FLOPs of the cheaper row, and whether the other's curve goes on below its first point."""
        seeds, rows = self.both(first, second), [self.rows[first], self.rows[second]]
        draws = self.draws(len(seeds), sources=True)
        wanted = min(row.flops(LAST) for row in rows)
        found, below = [], False
        for row in rows:
            short, last = row.marks[0], row.marks[-1]
            counts = [row.of(seeds, mark, "bits").sum(axis=-1) for mark in (short, last)]
            share = math.log(wanted / row.flops(last)) / math.log(row.flops(last) / row.flops(short))
            below |= wanted < row.flops(short)
            logs = [(np.log(one.sum(axis=1)), np.log(draws.sums(one))) for one in counts]
            found.append([b + share * (b - a) for a, b in zip(*logs, strict=True)])
        (seed_a, drawn_a), (seed_b, drawn_b) = found
        return wider(seed_a - seed_b, drawn_a - drawn_b, self.sample.freedom(sources=True)), below

    def mean(self, values: Floats, sources: Sequence[str]) -> Difference:
        """The mean of values of shape (seeds, texts); draws are of seeds and of whole sources."""
        there, of = np.unique(sources, return_inverse=True)
        sums = np.array([np.bincount(of, one, len(there)) for one in values])
        draws, count = Draws.of(len(values), len(there)), np.bincount(of, minlength=len(there))
        return wider(values.mean(axis=1), draws.sums(sums) / draws.sums(count), max(1, len(there) - 1))

    def pairs(self, first: str, second: str, which: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The share of minimal pairs of which a row is right, and by how much it is over that of another one with the same seeds."""
        seeds, n = self.both(first, second), int(which.sum())
        right = [(self.row(name).of(seeds, LAST, "pairs")[:, which] > 0).astype(np.float64) for name in (first, second)]
        sources = [source for (_, _, source), one in zip(self.asked["pairs"], which, strict=True) if one]
        return {
            "n": n,
            "right": float(f"{right[0].mean():.5g}"),
            "more": plain(self.mean(right[0] - right[1], sources)) if first != second else None,
        }

    def prompts(self, first: str, second: str) -> dict[str, Any]:
        """Bits over those of the whole line where it is cut inside a word, and over those of another row with the same seeds."""
        seeds, sources = self.both(first, second), np.array(self.asked["prompts"])
        both = [self.rows[name].of(seeds, LAST, "prompts") for name in (first, second)]
        known = np.all([one[..., 1].min(axis=0) > 0 for one in both], axis=0)
        mine, other = (one[:, known, 1] - one[:, known, 0] for one in both)
        return {
            "n": int(known.sum()),
            "bits": plain(self.mean(mine, sources[known].tolist())),
            "median": float(f"{np.median(mine):.4g}"),
            "more": plain(self.mean(mine - other, sources[known].tolist())) if first != second else None,
        }


def shown(one: Difference) -> dict[str, float]:
    """A logarithm of a ratio as a share, for JSON."""
    return plain(Difference(*(math.expm1(getattr(one, name)) for name in ("value", "low", "high")), one.p, one.n))


def figures(size: Size, work: Path, seeds: int) -> dict[str, Any]:
    """All figures of the rows that are done."""
    found = Figures(size, work, seeds)
    asked = found.asked
    report: dict[str, Any] = {
        "text": {key: asked[key] for key in ("text", "train_bytes", "eojeols", "sources")}
        | {"characters": int(found.characters.sum()), "units": len(asked["source"]), "read": size.bytes_read},
        "not run": {row: found.why(row) for row in ROWS if row not in found.rows | found.tried},
        "rows": {},
        "contrasts": {},
        "tried": {name: change(found, name) for name in found.tried if ROWS[name].tried in found.rows},
    }
    some = groups_of_pairs(asked["pairs"])
    for name, row in found.rows.items():
        bits = row.of([*row.cells], LAST, "bits")
        each = bits.sum(axis=(1, 2)) / found.characters.sum()
        cells = [*row.cells.values()]
        about = dict(asked["rows"][name]) | {
            "shown": ROWS[name].shown,
            "seeds": len(cells),
            "bits": float(f"{each.mean():.6g}"),
            "by_seed": [float(f"{one:.6g}") for one in each],
            "by_class": {label: _of(bits, found.characters, k) for k, label in enumerate(NAMES)},
            "first": _of(bits, found.characters, slice(len(CLASSES), 2 * len(CLASSES))),
            "flops": row.flops(LAST),
            "rate": cells[0]["rate"],
            "edge": cells[0]["rate"] in (size.rates[0], size.rates[-1]),
            "seconds": float(f"{np.mean([cell['seconds'] for cell in cells]):.4g}"),
            "processors": sorted({cell["processor"] for cell in cells}),
        }
        if REFERENCE in found.rows and found.both(name, REFERENCE):
            about["pairs"] = {group: found.pairs(name, REFERENCE, which) for group, which in some.items()}
            about["prompts"] = found.prompts(name, REFERENCE)
        report["rows"][name] = about
    for first, second in PAIRS:
        if {first, second} <= found.rows.keys() and found.both(first, second):
            report["contrasts"][f"{first} − {second}"] = contrast(found, first, second, some)
    tested = [report["contrasts"][key] for pair in PRIMARY if (key := " − ".join(pair)) in report["contrasts"]]
    for one, p in zip(tested, holm([one["bits"]["p"] for one in tested]), strict=True):
        one["holm"] = float(f"{p:.5g}")
    return report


def change(found: Figures, name: str) -> dict[str, Any]:
    """A short run of a row with one change, against the short run of the row itself."""
    of = ROWS[name].tried
    mark, last = found.rows[of].marks
    mine, its = found.tried[name], found.rows[of]
    both = found.ratio(name, of, mark=mark)
    # What the row itself would have with the FLOPs of the change, on its own curve.
    share = math.log(mine.flops(mark) / its.flops(mark)) / math.log(its.flops(last) / its.flops(mark))
    seeds = found.both(name, of)
    gained = float(
        np.mean([np.log(its.of(seeds, at, "bits").sum(axis=(1, 2))) for at in (last, mark)], axis=1) @ (1, -1)
    )
    moved = share * gained
    about = found.asked["rows"]
    return {
        "of": of,
        "shown": ROWS[name].shown,
        "seeds": len(seeds),
        "tokens": about[name]["tokens"],
        "more_tokens": about[name]["tokens"] / about[of]["tokens"] - 1,
        "flops": mine.flops(mark) / its.flops(mark) - 1,
        "bits": shown(both),
        "units": shown(found.ratio(name, of, mark=mark, sources=False)),
        "equal_flops": math.expm1(both.value - moved),
        "first": shown(
            found.ratio(name, of, mark=mark, where=lambda bits: bits[..., len(CLASSES) : 2 * len(CLASSES)].sum(axis=-1))
        ),
        "by_class": {
            label: shown(found.ratio(name, of, mark=mark, where=lambda bits, k=k: bits[..., k]))
            for k, label in enumerate(NAMES)
            if found.characters[:, k].any()
        },
        "pairs": float((mine.of(seeds, mark, "pairs") > 0).mean() - (its.of(seeds, mark, "pairs") > 0).mean()),
    }


def _of(bits: Floats, characters: Floats, columns: int | slice) -> float | None:
    """Bits a character of some columns."""
    some = characters[:, columns].sum()
    return float(f"{bits[..., columns].sum() / len(bits) / some:.5g}") if some else None


def groups_of_pairs(pairs: Sequence[tuple[str, int, str]]) -> dict[str, npt.NDArray[np.bool_]]:
    """Which pairs are of a kind, and which particles and which others have a stem of a class of frequency."""
    kinds, stems = np.array([kind for kind, _, _ in pairs]), np.array([at for _, at, _ in pairs])
    particles = np.isin(kinds, [*KINDS.values()])
    found = {"all": kinds != ""} | {kind: kinds == kind for kind in sorted({*kinds.tolist()})}
    for what, those in ((PARTICLES, particles), (OTHERS, ~particles)):
        found |= {f"{what}, {label}": those & (stems == k) for k, label in enumerate(NAMES)}
    return {name: which for name, which in found.items() if which.any()}


def contrast(found: Figures, first: str, second: str, pairs: Mapping[str, npt.NDArray[np.bool_]]) -> dict[str, Any]:
    """A row against another one: everything by which they differ."""
    rows, seeds = [found.rows[name] for name in (first, second)], found.both(first, second)
    equal, below = found.at_equal_flops(first, second)
    source = found.sample.source
    by_source = {
        name: math.expm1(found.ratio(first, second, where=lambda bits, k=k: bits.sum(axis=-1) * (source == k), sources=False).value)
        for k, name in enumerate(found.asked["sources"])
        if (source == k).any()
    }  # fmt: skip
    by_class = {
        label: shown(found.ratio(first, second, where=lambda bits, k=k: bits[..., k]))
        for k, label in enumerate(NAMES)
        if found.characters[:, k].any()
    }
    return {
        "seeds": len(seeds),
        "bits": shown(found.ratio(first, second)),
        "units": shown(found.ratio(first, second, sources=False)),
        "short": shown(found.ratio(first, second, mark=rows[0].marks[0])),
        "flops": rows[0].flops(LAST) / rows[1].flops(LAST) - 1,
        "equal_flops": shown(equal) | {"below": below},
        "by_class": by_class,
        "first": shown(
            found.ratio(first, second, where=lambda bits: bits[..., len(CLASSES) : 2 * len(CLASSES)].sum(axis=-1))
        ),
        "ends": shown(found.ratio(first, second, where=lambda bits: bits[..., -1])),
        "by_source": {name: float(f"{value:.4g}") for name, value in by_source.items()},
        "pairs": found.pairs(first, second, pairs["all"])["more"],
        "rare": found.pairs(first, second, pairs[RARE])["more"] if RARE in pairs else None,
        "prompts": found.prompts(first, second)["more"],
    }
