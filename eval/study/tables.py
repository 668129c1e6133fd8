"""The page of the size `cpu`: its tables, losses first, and the budget of what is left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from eval.contrasts import with_interval
from eval.study.cells import Cell, Cells, turns
from eval.study.compared import NAMES, OTHERS, PARTICLES, REFERENCE
from eval.study.rows import PRIMARY
from eval.study.sizes import Size
from koktok.report.markdown import table

LEAST: Final = 1e-15
"""A smaller p is shown as smaller than this."""
SHOWN_BY_SOURCE: Final = ("lm", "bpe", "hf", "aligned", "encoder")
SPEED: Final = 43e9
"""FLOP/s of one core in float32, as measured on an AMD EPYC of the third generation."""
ROW_HEADS: Final = (
    "row", "ids", "tokens per eojeol", "seeds", "rate", "bits a character", "against `sp`, %", "over units alone",
    "FLOPs, %", "at equal FLOPs, %", "a third of the text, %", "minutes",
)  # fmt: skip


def percent(one: Mapping[str, float], digits: int = 2) -> str:
    """A share with its interval.

    Examples
    --------
    >>> percent({"value": -0.0056, "low": -0.0082, "high": -0.0029})
    '−0.56 [−0.82, −0.29]'
    """
    return with_interval(one, digits=digits)


def signed(share: float, digits: int = 1) -> str:
    """In percent, with a sign.

    Examples
    --------
    >>> signed(0.105), signed(-0.0123)
    ('+10.5', '−1.2')
    """
    return f"{100 * share:+.{digits}f}".replace("-", "−")


def page(report: Mapping[str, Any]) -> str:
    """The tables, the rows with the most bits first."""
    rows, contrasts, text = report["rows"], report["contrasts"], report["text"]
    missing = "; ".join(f"`{name}` ({why})" for name, why in report["not run"].items())
    processors = sorted({name for one in rows.values() for name in one["processors"]})
    seconds = {(one["arrays"], one["rate"], k): one["seconds"] for one in rows.values() for k in range(one["seeds"])}
    lines = [
        f"{text['characters']:,} characters of {len(text['sources'])} sources in {text['units']} units; "
        f"a model reads {text['read'] / 1e6:.1f} of {text['train_bytes'] / 1e6:.1f} MB. {len(seconds)} runs took "
        f"{sum(seconds.values()) / 3600:.0f} hours of one core ({', '.join(processors)}), those that choose rates and changes not counted; "
        f"of one row some took twice as long as others. Differences are of the seeds that both rows have; "
        f"† a curve goes on below its first point. Not run: {missing or 'none'}."
    ]
    against = {name: contrasts.get(f"{name} − {REFERENCE}") for name in rows}
    order = sorted(rows, key=lambda name: -against[name]["bits"]["value"] if against[name] else 0)
    judged = [name for name in order if against[name]]
    if order:
        lines.append(table(ROW_HEADS, "l" + "r" * 11, [line_of(name, rows[name], against[name]) for name in order]))
    if contrasts:
        lines += table_of_contrasts(contrasts)
    if judged:
        lines += [
            "Against `sp` in percent, by frequency of the word in the training text; first words and ends of lines:"
        ]
        cells = [[f"`{name}`", *parts_of(against[name])] for name in judged]
        lines += [table(["row", *NAMES, "first words", "ends of lines"], "l" + "r" * (len(NAMES) + 2), cells)]
    if some := [name for name in SHOWN_BY_SOURCE if name in judged]:
        lines.append("Against `sp` in percent, by source:")
        first = against[some[0]]["by_source"]
        cells = [
            [source, *(signed(against[name]["by_source"][source]) for name in some)]
            for source in sorted(first, key=lambda source: -first[source])
        ]
        lines.append(table(["source", *(f"`{name}`" for name in some)], "l" + "r" * len(some), cells))
    if report["tried"]:
        lines += table_of_changes(report["tried"])
    lines += tables_of_pairs({name: rows[name] for name in order if "pairs" in rows[name]})
    return "\n\n".join(lines)


def line_of(name: str, row: Mapping[str, Any], against: Mapping[str, Any] | None) -> list[str]:
    """A row of the first table."""
    cells = [f"`{name}`: {row['shown']}", f"{row['vocabulary'] - 1:,}", f"{row['tokens']:.3f}", f"{row['seeds']}"]
    cells += [f"{row['rate']:g}" + " (edge)" * row["edge"], f"{row['bits']:.4f}"]
    if against is None:
        cells += [""] * 5
    else:
        cells += [
            percent(against["bits"]),
            percent(against["units"]),
            signed(against["flops"]),
            at_equal_flops(against),
            percent(against["short"]),
        ]
    return [*cells, f"{row['seconds'] / 60:.0f}"]


def at_equal_flops(one: Mapping[str, Any]) -> str:
    """With a mark where a curve had to go on below its first point."""
    return percent(one["equal_flops"]) + "†" * one["equal_flops"]["below"]


def parts_of(against: Mapping[str, Any]) -> list[str]:
    """By class of words, first words and ends of lines."""
    classes = [percent(against["by_class"][name], 1) if name in against["by_class"] else "" for name in NAMES]
    return [*classes, percent(against["first"], 1), percent(against["ends"], 1)]


def table_of_contrasts(contrasts: Mapping[str, Any]) -> list[str]:
    """The primary contrasts, then the others, each with the losses first."""
    primary = [" − ".join(pair) for pair in PRIMARY]
    order = sorted(contrasts, key=lambda key: (key not in primary, -contrasts[key]["bits"]["value"]))
    cells = [
        [
            f"**{key}**" if key in primary else key,
            f"{one['seeds']}",
            percent(one["bits"]),
            percent(one["units"]),
            at_equal_flops(one),
            "" if one.get("holm") is None else f"{one['holm']:.2g}" if one["holm"] > LEAST else f"< {LEAST:g}",
            *(
                _more(one[what], points, digits)
                for what, points, digits in (("pairs", 100, 1), ("rare", 100, 1), ("prompts", 1, 2))
            ),
        ]
        for key in order
        for one in (contrasts[key],)
    ]
    heads = [
        "",
        "seeds",
        "bits, %",
        "over units alone",
        "at equal FLOPs, %",
        "p",
        "minimal pairs, points",
        "of rare stems",
        "prompts, bits",
    ]
    title = (
        "Contrasts; p of the primary ones by Holm; minimal pairs, those of particles behind stems that were seen 1 to 9 times, and the "
        "bits that a prompt costs that ends inside a word:"
    )
    return [title, table(heads, "l" + "r" * 8, cells)]


def table_of_changes(tried: Mapping[str, Any]) -> list[str]:
    """One change each, by its short run."""
    heads = [
        "change", "of", "tokens, %", "FLOPs, %", "bits, %", "over units alone", "at equal FLOPs, %", "pairs, points",
        *NAMES[:2], "first words",
    ]  # fmt: skip
    cells = [
        [
            f"`{name}`: {one['shown']}", f"`{one['of']}`", signed(one["more_tokens"]), signed(one["flops"]), percent(one["bits"]),
            percent(one["units"]), signed(one["equal_flops"], 2), signed(one["pairs"]),
            *(percent(one["by_class"][label], 1) if label in one["by_class"] else "" for label in NAMES[:2]), percent(one["first"], 1),
        ]
        for name, one in sorted(tried.items(), key=lambda item: -item[1]["bits"]["value"])
    ]  # fmt: skip
    title = "One change each, by runs of a third of the text against those of the row that is changed (one seed):"
    return [title, table(heads, "ll" + "r" * (len(heads) - 2), cells)]


def tables_of_pairs(rows: Mapping[str, Any]) -> list[str]:
    """The tables of minimal pairs and prompts, the worst row first."""
    if not rows:
        return []
    order = sorted(rows, key=lambda name: _value(rows[name]["pairs"]["all"]["more"]))
    first = rows[order[0]]["pairs"]
    groups = {what: [name for name in first if name.startswith(f"{what}, ")] for what in (PARTICLES, OTHERS)}
    kinds = [name for name in first if name not in [*groups[PARTICLES], *groups[OTHERS]]]
    tables = []
    for columns in (kinds, groups[PARTICLES] + groups[OTHERS]):
        counts = ["n", "", *(f"{first[name]['n']:,}" for name in columns)]
        cells = [
            [f"`{row}`", _more(rows[row]["pairs"]["all"]["more"], 100, 1), *(f"{rows[row]['pairs'][name]['right']:.3f}" for name in columns)]
            for row in order
        ]  # fmt: skip
        tables.append(
            table(["row", "points more than `sp`", *columns], "l" + "r" * (1 + len(columns)), [counts, *cells])
        )
    worst = sorted(rows, key=lambda name: -_value(rows[name]["prompts"]["more"]))
    prompts = [
        [f"`{row}`", with_interval(one["bits"], points=1, digits=2), f"{one['median']:.2f}", _more(one["more"], 1, 2), f"{one['n']}"]
        for row in worst
        for one in (rows[row]["prompts"],)
    ]  # fmt: skip
    return [
        "Minimal pairs that are right, by kind (differences are of the seeds that both rows have):",
        tables[0],
        "The same by the frequency of the stem in the training text:",
        tables[1],
        "Bits more than those of the whole line where a prompt ends inside a word:",
        table(["row", "bits", "median", "more than `sp`", "prompts"], "lrrrr", prompts),
    ]


def _value(one: Mapping[str, float] | None) -> float:
    return one["value"] if one else 0.0


def _more(one: Mapping[str, float] | None, points: float, digits: int) -> str:
    return with_interval(one, points=points, digits=digits) if one else ""


def budget(size: Size, work: Path, seeds: int) -> str:
    """Cells and hours of one core by row, from FLOPs; figures cost a tenth besides."""
    cells, asked = Cells(size, work), Cells(size, work).asked
    found, hours = [], 0.0
    for row, about in asked["rows"].items():
        per_token = about["bytes_per_token"]
        of_step = size.batch * size.tokens(per_token) * size.flops("decoder", about["vocabulary"], per_token) / SPEED
        whole, sweep = (
            1.1 * of_step * len(turns(size.steps(per_token, share), marks))
            for share, marks in ((1.0, size.marks), (size.sweep, (1.0,)))
        )
        rate = cells.rate(row)
        done = (
            0 if rate is None else sum(cells.done(Cell(row, "whole", seed, rate)) is not None for seed in range(seeds))
        )
        left = (seeds - done) * whole + (0 if rate or cells.swept(row) != row else len(size.rates) * sweep)
        hours += left / 3600
        found.append(
            [
                f"`{row}`",
                f"{of_step:.2f}",
                f"{sweep / 60:.1f}",
                f"{whole / 60:.1f}",
                f"{done} of {seeds}",
                f"{left / 3600:.2f}",
            ]
        )
    found.append(["together", "", "", "", "", f"{hours:.1f}"])
    heads = ["row", "seconds a step", "minutes of a rate", "minutes of a cell", "done", "hours left, one core"]
    return table(heads, "lrrrrr", found)
