"""The tables of PLAN.md, from what lies in the work folder; what does not lie there is named with its reason."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from eval.machine import Told, machine
from eval.study.data import Prepared, shared
from eval.study.encoder import of_encoders
from eval.study.probe import there
from eval.study.sizes import ARMS, REFERENCE, Cell
from eval.study.train import Runs
from koktok.files import write_file
from koktok.metrics.statistics import Table, around, paired
from koktok.report.markdown import table

UNALIGNED: Final = ("sp-unigram", "sp-bpe", "hf-bpe")
MARGIN: Final = 0.005
GAIN: Final = 0.15
LEAST: Final = 3
"""Seeds that a claim wants."""


@dataclass(frozen=True)
class Contrast:
    """One row against another in an arm, as parts of the other's bits per byte."""

    value: float  # 0 where they are equal
    documents: tuple[float | None, float | None]  # 95 % intervals
    seeds: tuple[float | None, float | None]
    n: int  # seeds

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray, size: np.ndarray, units: np.ndarray) -> Contrast:
        """Bits of each seed and line, of equal seeds, and bytes of the lines.

        Examples
        --------
        >>> bits = np.full((3, 40), 10.0)
        >>> same = Contrast.of(bits * 1.01, bits, np.ones(40), np.arange(40))
        >>> round(same.value, 4), [round(end, 4) for end in same.documents]
        (0.01, [0.01, 0.01])
        """
        tables = [Table({"bits": bits.mean(0), "bytes": size}, units) for bits in (first, second)]
        found = paired(*tables, lambda sums: np.log(sums["bits"] / sums["bytes"]))
        each = np.log(first.sum(1) / second.sum(1)).tolist()
        error = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None
        ends = around(statistics.fmean(each), error, len(each))
        return cls(math.expm1(found.value), grown(found.low, found.high), grown(*ends), len(each))

    @property
    def ends(self) -> tuple[float, float]:
        """Of the wider interval."""
        both = [(a, b) for a, b in (self.documents, self.seeds) if a is not None and b is not None]
        return max(both, key=lambda pair: pair[1] - pair[0]) if both else (-math.inf, math.inf)

    def said(self) -> str:
        """For a table, in percent."""
        return f"{self.value:+.2%} {shown(self.documents)} {shown(self.seeds)}".replace("%", " %")


def grown(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """From differences of logarithms to parts."""
    return (None, None) if low is None or high is None else (math.expm1(low), math.expm1(high))


def shown(ends: tuple[float | None, float | None]) -> str:
    low, high = ends
    return "[–]" if low is None or high is None else f"[{low:+.2%}, {high:+.2%}]"


def verdict(contrasts: Sequence[Contrast | None], gain: float, tokens: float) -> str:
    """What PLAN.md lets be said of a row.

    Examples
    --------
    >>> fine = Contrast(0.001, (-0.001, 0.003), (-0.002, 0.004), 3)
    >>> verdict([fine, fine], 0.2, 0.99), verdict([fine, fine], 0.2, 1.1), verdict([fine, None], 0.2, 0.99)
    ('no worse with more', 'not shown: more tokens', 'not shown: an arm is missing')
    """
    if any(one is None for one in contrasts):
        return "not shown: an arm is missing"
    given = [one for one in contrasts if one is not None]
    if any(one.n < LEAST for one in given):
        return f"not shown: fewer than {LEAST} seeds"
    if any(one.ends[0] > MARGIN for one in given):
        return "worse"
    if all(one.ends[1] < 0 for one in given):
        return "better"
    why = ["bits"] if any(one.ends[1] > MARGIN for one in given) else []
    why += ["F1"] if gain < GAIN else []
    why += ["more tokens"] if tokens > 1 else []
    return f"not shown: {', '.join(why)}" if why else "no worse with more"


class Found:
    """What of a size is there."""

    def __init__(self, runs: Runs, names: Sequence[str], seeds: Sequence[int]) -> None:
        self.runs, self.names, self.seeds = runs, names, seeds
        held = shared(runs.work)
        self.sizes, self.units = np.array(held["test_bytes"]), np.array(held["units"])
        self.missing: dict[str, str] = {f"probe {name}": why for name, why in held["missing"].items()}
        self.about: dict[str, dict[str, Any]] = {}
        for name in names:
            try:
                self.about[name] = Prepared(runs.work, name).about
            except FileNotFoundError as error:
                self.missing[name] = str(error)
        self.rows = {(name, arm): self._rows(name, arm) for name in self.about for arm in ARMS}

    def cell(self, name: str, arm: str, seed: int) -> Cell | None:
        """The run; for the reference both arms are one."""
        arm = "bytes" if name == REFERENCE else arm
        return next((c for c in self.runs.cells(name, seed) if c.arm == arm and not c.again), None)

    def _rows(self, name: str, arm: str) -> dict[int, dict[str, Any]]:
        found = {}
        for seed in self.seeds:
            cell = self.cell(name, arm, seed)
            done = self.runs.done(cell) if cell else None
            if done and "bits" in done:
                found[seed] = done
            else:
                why = "its rate was not swept" if cell is None else "not trained yet" if done is None else done["why"]
                self.missing[f"{name}, {arm}, seed {seed}"] = why
        return found

    def bits(self, name: str, arm: str, seeds: Sequence[int]) -> np.ndarray:
        """Of each seed and line."""
        return np.array([self.rows[name, arm][seed]["bits"] for seed in seeds])

    def per_byte(self, name: str, arm: str) -> list[float]:
        """Bits per byte of each seed."""
        return [float(sum(row["bits"]) / self.sizes.sum()) for row in self.rows[name, arm].values()]

    def best(self, arm: str) -> str | None:
        """The unaligned row with the fewest bits."""
        known = [name for name in UNALIGNED if name in self.about and self.rows[name, arm]]
        return min(known, key=lambda name: statistics.fmean(self.per_byte(name, arm)), default=None)

    def contrast(self, name: str, other: str | None, arm: str) -> Contrast | None:
        """By the seeds that both have."""
        if other is None or other == name:
            return None
        seeds = [seed for seed in self.rows[name, arm] if seed in self.rows[other, arm]]
        if not seeds:
            return None
        return Contrast.of(self.bits(name, arm, seeds), self.bits(other, arm, seeds), self.sizes, self.units)

    def verdict(self, name: str) -> str:
        """Of a koktok row; the other is the one of the arm of equal bytes where F1 and tokens are asked."""
        other = self.best("bytes")
        if other is None:
            return "not shown: nothing to compare with"
        gain, tokens = (self.about[name][key]["value"] for key in ("f1", "fertility"))
        over, least = (self.about[other][key]["value"] for key in ("f1", "fertility"))
        return verdict([self.contrast(name, self.best(arm), arm) for arm in ARMS], gain - over, tokens / least)

    def probes(self, name: str) -> list[dict[str, float]]:
        """Of each seed."""
        cells = [cell for seed in self.seeds for cell in there(self.runs, name, seed)]
        paths = [self.runs.place(cell) / "probes.json" for cell in cells]
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]

    def noise(self, name: str) -> list[float]:
        """All differences between two seeds, as parts."""
        found = self.per_byte(name, "bytes")
        return [abs(a / b - 1) for i, a in enumerate(found) for b in found[:i]]

    def again(self) -> float | None:
        """The difference of two equal runs, as a part."""
        for cell in self.runs.cells(REFERENCE, 0) if REFERENCE in self.about else ():
            done = self.runs.done(cell)
            if cell.again and done and 0 in self.rows[REFERENCE, "bytes"]:
                return abs(sum(done["bits"]) / sum(self.rows[REFERENCE, "bytes"][0]["bits"]) - 1)
        return None


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean, and half of the 95 % interval over seeds."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.{digits}f}"
    low, _ = around(mean, statistics.stdev(values) / math.sqrt(len(values)), len(values))
    return f"{mean:.{digits}f} ± {mean - (low or mean):.{digits}f}"


def with_ends(value: dict[str, Any]) -> str:
    return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"


def report(runs: Runs, size: str, names: Sequence[str], seeds: Sequence[int], path: Path | None) -> None:
    """Tell it, and write it as Markdown and JSON where a path is given."""
    found = Found(runs, names, seeds)
    tell = Told(path)
    held = shared(runs.work)
    tell(f"{machine()}\n")
    text, units = sum(held["piece_bytes"]) / 1e6, len(np.unique(found.units))
    tell(f"Size `{size}` of [the plan](../study/PLAN.md) on {held['key'][1]}: {text:.1f} MB to train on,")
    tell(
        f"{found.sizes.sum():,} bytes asked for in {units} units; {runs.size.body:,} parameters outside of the embedding.\n"
    )
    if size == "tiny":
        tell(
            "This size checks the machinery: by the plan nothing is claimed from it, whatever the column of claims says.\n"
        )
    for part in (vocabularies, first_endpoint, noise, second_endpoints, tuned_encoders):
        part(found, tell)
    tell("\n## Not run\n")
    reasons: dict[str, list[str]] = {}
    for what, why in found.missing.items():
        reasons.setdefault(why, []).append(what)
    tell("\n".join(f"* {'; '.join(what)}: {why}" for why, what in reasons.items()) or "Everything was run.")
    if path is not None:
        write_file(
            path.with_suffix(".json"), (json.dumps(figures(found, size), ensure_ascii=False, indent=1) + "\n").encode()
        )


def vocabularies(found: Found, tell: Callable[[str], None]) -> None:
    heads = ["tokenizer", "ids", "tokens per eojeol", "boundary F1 [95 %]", "bytes per token", "lines that come back"]
    heads += ["tokens of a sequence", "steps, equal bytes", "equal FLOPs", "rate", "digest"]
    rows = []
    for name, about in found.about.items():
        shape = Prepared(found.runs.work, name).shape(found.runs.size)
        rate, rates = found.runs.rate(name), found.runs.size.rates
        edge = " (edge)" if rate in (rates[0], rates[-1]) else ""
        steps = [f"{found.runs.steps(Cell(name, arm, 0, 0.0)):,}" for arm in ARMS]
        row = [name, f"{about['vocabulary'] - 1:,}", f"{about['fertility']['value']:.3f}", with_ends(about["f1"])]
        row += [f"{about['bytes_per_token']:.2f}", f"{about['lossless']:.4f}", str(shape.context), *steps]
        rows.append([*row, f"{rate:g}{edge}" if rate else "–", about["digest"]])
    tell("## Vocabularies and runs\n")
    tell(table(heads, "lrrrrrrrrrl", rows))


def first_endpoint(found: Found, tell: Callable[[str], None]) -> None:
    tell("\n## Bits per byte\n")
    others = {arm: found.best(arm) for arm in ARMS}
    for arm, other in others.items():
        tell(f"Equal {'FLOPs' if arm == 'flops' else 'bytes'}: against {other}.  ")
    tell("In brackets 95 % intervals of the difference, over documents and over seeds.\n")
    rows = []
    for name in found.about:
        row = [name]
        for arm, other in others.items():
            values, contrast = found.per_byte(name, arm), found.contrast(name, other, arm)
            row += [spread(values, 4) if values else "not run", contrast.said() if contrast else ""]
        rows.append([*row, found.verdict(name) if name.startswith("koktok") else ""])
    heads = [
        "tokenizer",
        "equal bytes ± seeds",
        "difference",
        "equal FLOPs ± seeds",
        "difference",
        "no worse with more?",
    ]
    tell(table(heads, "lrrrrl", rows))


def noise(found: Found, tell: Callable[[str], None]) -> None:
    tell("\n## Noise\n")
    each = [part for name in found.about for part in found.noise(name)]
    if each:
        middle = math.sqrt(statistics.fmean(part * part for part in each))
        tell(
            f"Two seeds of one tokenizer differ by {middle:.2%} (root mean square of {len(each)}), at most by {max(each):.2%}."
        )
    again = found.again()
    tell("The same run twice: not run." if again is None else f"The same run twice differs by {again:.4%}.")


def second_endpoints(found: Found, tell: Callable[[str], None]) -> None:
    tell("\n## Second endpoints\n\nEqual bytes, mean ± half of the 95 % interval over seeds; they decide nothing.\n")
    probes = {name: rows for name in found.about if (rows := found.probes(name))}
    found.missing |= {f"probes, {name}": "no model was asked" for name in found.about if name not in probes}
    tell(of_seeds(probes))
    counts = {key: len(value) for key, value in shared(found.runs.work)["probes"].items()}
    tell(f"\nAsked: {', '.join(f'{key} {n:,}' for key, n in counts.items())}.")


def of_seeds(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A table of what the models of each seed scored."""
    if not rows:
        return "None was asked."
    heads = list(dict.fromkeys(key for each in rows.values() for row in each for key in row))
    cells = [[name, *(spread([row[key] for row in each]) for key in heads)] for name, each in rows.items()]
    return table(["tokenizer", *heads], "l" + "r" * len(heads), cells)


def tuned_encoders(found: Found, tell: Callable[[str], None]) -> None:
    rows = {name: each for name in found.about if (each := of_encoders(found.runs, name, found.seeds))}
    if rows:
        tell("\n## Encoders\n\nShare that is right after tuning, mean ± half of the 95 % interval over seeds.\n")
        tell(of_seeds(rows))
    else:
        found.missing["encoders"] = "`--task encoder` was not run"


def figures(found: Found, size: str) -> dict[str, Any]:
    """For JSON: what every cell found, but for the bits of each line, and what stands in the tables."""
    cells = [
        {key: value for key, value in row.items() if key != "bits"}
        | {"per_byte": sum(row["bits"]) / float(found.sizes.sum())}
        for (name, arm), rows in found.rows.items()
        if not (name == REFERENCE and arm == "flops")
        for row in rows.values()
    ]
    sweeps = [done for name in found.about for cell in found.runs.sweep(name) if (done := found.runs.done(cell))]
    contrasts = {
        arm: {name: vars(c) for name in found.about if (c := found.contrast(name, found.best(arm), arm))}
        for arm in ARMS
    }
    return {
        "size": size,
        "text": shared(found.runs.work)["key"],
        "vocabularies": {
            name: {k: v for k, v in about.items() if k not in ("written", "unknown_bits", "key")}
            for name, about in found.about.items()
        },
        "against": {arm: found.best(arm) for arm in ARMS},
        "contrasts": contrasts,
        "verdicts": {name: found.verdict(name) for name in found.about if name.startswith("koktok")},
        "same run twice": found.again(),
        "probes": {name: found.probes(name) for name in found.about},
        "encoders": {name: of_encoders(found.runs, name, found.seeds) for name in found.about},
        "cells": cells,
        "sweeps": sweeps,
        "not run": found.missing,
    }
