"""The figures of the size `cpu` (PLAN.md, part 3): cells of rows to ratios with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    """Units of text, and draws of them: of sources and of units within each, or of units alone."""

    source: npt.NDArray[np.int64]

    def draws(self, seeds: int, *, sources: bool) -> Draws:
        """The same for the same numbers."""
        random = np.random.default_rng(0)

        def drawn(count: Any, of: int) -> Floats:
            return random.multinomial(count, np.full(of, 1 / of), RESAMPLES).astype(np.float64)

        of_seeds = drawn(seeds, seeds)
        if not sources:
            return Draws(of_seeds, drawn(len(self.source), len(self.source)))
        there, texts = np.unique(self.source), np.zeros((RESAMPLES, len(self.source)))
        for one, often in zip(there.tolist(), drawn(len(there), len(there)).T.astype(int), strict=True):
            units = np.flatnonzero(self.source == one)
            texts[:, units] = drawn(often * len(units), len(units))
        return Draws(of_seeds, texts)

    @cached_property
    def freedom(self) -> int:
        """Degrees of freedom of the sources."""
        return max(1, len(np.unique(self.source)) - 1)


def wider(by_seed: Floats, drawn: Floats, freedom: int) -> Difference:
    """The mean over seeds with the wider of two intervals: of the draws, and of the seeds alone."""
    value, n = float(by_seed.mean()), len(by_seed)
    of_draws = Difference.tested(value, float(drawn.std(ddof=1)), freedom, n)
    if n < 2:
        return of_draws
    of_seeds = Difference.tested(value, float(by_seed.std(ddof=1)) / math.sqrt(n), n - 1, n)
    return max(of_draws, of_seeds, key=lambda one: one.high - one.low)  # type: ignore[operator]


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
        draws = self.sample.draws(len(seeds), sources=sources)
        counts = [take(self.row(name).of(seeds, mark, "bits")) for name in (first, second)]
        by_seed = np.log(counts[0].sum(axis=1) / counts[1].sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = np.log(draws.sums(counts[0]) / draws.sums(counts[1]))
        return wider(
            by_seed, drawn[np.isfinite(drawn)], self.sample.freedom if sources else len(self.sample.source) - 1
        )

    def at_equal_flops(self, first: str, second: str) -> tuple[Difference, bool]:
        """The logarithm of the ratio at the FLOPs of the cheaper row, and whether the other's curve goes on below its first point."""
        seeds, rows = self.both(first, second), [self.rows[first], self.rows[second]]
        draws = self.sample.draws(len(seeds), sources=True)
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
        return wider(seed_a - seed_b, drawn_a - drawn_b, self.sample.freedom), below

    def right(self, row: str, seeds: Sequence[int], which: npt.NDArray[np.bool_]) -> Floats:
        """Whether pairs are right, of shape (seeds, pairs)."""
        return (self.rows[row].of(seeds, LAST, "pairs")[:, which] > 0).astype(np.float64)

    def pairs(self, row: str, which: npt.NDArray[np.bool_]) -> dict[str, Any] | None:
        """The share of minimal pairs that are right, and by how much it is over the reference's."""
        if not which.any():
            return None
        seeds = self.both(row, REFERENCE)
        mine, other = (self.right(name, seeds, which) for name in (row, REFERENCE))
        draws = Draws.of(len(seeds), int(which.sum()))
        drawn = draws.sums(mine - other) / (which.sum() * len(seeds))
        more = wider((mine - other).mean(axis=1), drawn, int(which.sum()) - 1)
        return {
            "n": int(which.sum()),
            "right": float(f"{mine.mean():.5g}"),
            "more": plain(more) if row != REFERENCE else None,
        }

    def prompts(self, row: str) -> dict[str, Any]:
        """Bits over those of the whole line where it is cut inside a word, and over the reference's."""
        seeds = self.both(row, REFERENCE)
        both = [self.rows[name].of(seeds, LAST, "prompts") for name in (row, REFERENCE)]
        known = np.all([one[..., 1].min(axis=0) > 0 for one in both], axis=0)
        mine, other = (one[:, known, 1] - one[:, known, 0] for one in both)
        draws, n = Draws.of(len(seeds), int(known.sum())), int(known.sum())
        each = wider(mine.mean(axis=1), draws.sums(mine) / (n * len(seeds)), n - 1)
        more = wider((mine - other).mean(axis=1), draws.sums(mine - other) / (n * len(seeds)), n - 1)
        return {
            "n": n,
            "bits": plain(each),
            "median": float(f"{np.median(mine):.4g}"),
            "more": plain(more) if row != REFERENCE else None,
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
    kinds = np.array([kind for kind, _, _ in asked["pairs"]])
    stems = np.array([at for _, at, _ in asked["pairs"]])
    particles = np.isin(kinds, [*KINDS.values()])
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
            about["pairs"] = {
                "all": found.pairs(name, kinds != ""),
                **{kind: found.pairs(name, kinds == kind) for kind in sorted({*kinds.tolist()})},
                **{f"stems, {label}": found.pairs(name, particles & (stems == k)) for k, label in enumerate(NAMES)},
            }
            about["prompts"] = found.prompts(name)
        report["rows"][name] = about
    for first, second in PAIRS:
        if {first, second} <= found.rows.keys() and found.both(first, second):
            report["contrasts"][f"{first} − {second}"] = contrast(found, first, second)
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


def contrast(found: Figures, first: str, second: str) -> dict[str, Any]:
    """A row against another one: everything by which they differ in bits."""
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
    }
