"""The budget of the plan, and its figures: what was found is judged here, since a training machine has no texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eval.contrasts import Counts, contrasts, plain, scored, with_interval
from eval.study.data import Prepared
from eval.study.prepare import tasks_of
from eval.study.sizes import EPOCHS, PAIRS, PRIMARY, ROWS, Size, budget
from eval.study.train import Cell, Runs
from eval.tagger import Sentences, without_particle
from koktok.metrics.gold.spans import SpanCorpus
from koktok.report.markdown import table

BITS = "bits per byte"


def plan(size: Size, work: Path) -> str:
    """Number and seconds of each kind of run, with the bytes of a token that `prepare` found."""
    rows = {name: Prepared(work, name) for kind in ROWS.values() for name in kind if (work / "data" / name).exists()}
    if not rows:
        return "nothing is prepared"
    some = [
        (data.about["vocabulary"], data.about["bytes_per_token"], data.shared["tuned_bytes"]) for data in rows.values()
    ]
    each = [budget(size, *about) for about in some]
    cells = [
        [what, f"{count}", f"{seconds:.1f}", f"{count * seconds / 60:.1f}"]
        for what, count, seconds in ((what, count, float(np.mean([row[k][2] for row in each]))) for k, (what, count, _) in enumerate(each[0]))
    ]  # fmt: skip
    cells.append(["together", "", "", f"{sum(float(row[-1]) for row in cells):.1f}"])
    return table(["runs", "number", "seconds of one", "minutes"], "lrrr", cells)


def cuts_of(data: Prepared, task: str, corpus: SpanCorpus) -> Sentences:
    """The tokens of a task's texts as `prepare` wrote them."""
    lists = data.lists
    columns = {name: lists[f"{task}-{name}"].flat.astype(np.int64) for name in ("ids", "starts", "ends")}
    return Sentences(
        corpus, texts=lists[f"{task}-ids"].ends, labels=lists[f"{task}-labels"].flat.astype(np.int8), **columns
    )


def answers_right(cuts: Sentences, found: list[list[int]]) -> tuple[list[bool], list[bool]]:
    """Whether the characters of each answer are right, as they are and with a particle taken off."""
    exact, stripped = [], []
    for k, (first, last) in enumerate(found):
        at = int(cuts.texts[k])
        start, end = int(cuts.starts[at + first]), int(cuts.ends[at + last])
        gold = cuts.corpus.spans[k][0]
        exact.append((start, end) == gold)
        stripped.append((start, without_particle(cuts.corpus.texts[k], start, end)) == gold)
    return exact, stripped


def counts_of(kind: str, data: Prepared, cells: list[Mapping[str, Any]], corpora: Mapping[str, SpanCorpus]) -> dict[str, Counts]:  # fmt: skip
    """What `eval.contrasts` takes of a row: right, found and marked by seed and text."""
    if kind == "decoder":
        units = np.unique(data.shared["units"], return_inverse=True)[1]
        bits = np.array([np.bincount(units, cell["bits"]) for cell in cells])
        size = np.bincount(units, data.shared["test_bytes"])
        return {BITS: (bits, np.broadcast_to(size, bits.shape), size)}
    found: dict[str, Counts] = {}
    cuts = cuts_of(data, "entities", corpora["entities"])
    judged = np.array([[cuts.judged(k, np.array(row, dtype=np.int8)) for k, row in enumerate(cell["entities"])] for cell in cells])  # fmt: skip
    marked = np.array(list(map(len, corpora["entities"].spans)))
    right, stripped, all_of = np.moveaxis(judged, 2, 0)
    found["entities"], found["entities, stripped"] = (right, all_of, marked), (stripped, all_of, marked)
    if "answers" not in cells[0]:
        return found
    answers = cuts_of(data, "answers", corpora["answers"])
    articles = np.unique(corpora["answers"].documents, return_inverse=True)[1]
    asked = np.bincount(articles)
    both = [answers_right(answers, cell["answers"]) for cell in cells]
    for name, side in (("answers", 0), ("answers, stripped", 1)):
        exact = np.array([np.bincount(articles, row[side]) for row in both])
        found[name] = exact, np.broadcast_to(asked, exact.shape), asked
    return found


def figures(size: Size, work: Path, seeds: int) -> dict[str, Any]:
    """Scores and contrasts of the seeds that every row has; rows that did not run are named."""
    runs, report = Runs(size, work), dict[str, Any]()
    for kind in size.kinds:
        done = {
            row: [runs.done(Cell(kind, row, "whole", seed, runs.rate(kind, row))) for seed in range(seeds)]
            for row in ROWS[kind]
        }
        good = {row: [cell for cell in cells if cell and "why" not in cell] for row, cells in done.items()}
        there = {row: cells for row, cells in good.items() if cells}
        n = min(map(len, there.values()), default=0)
        report[kind] = {"seeds": n, "not run": [row for row in ROWS[kind] if row not in there]}
        if not n:
            continue
        prepared = {row: Prepared(work, row) for row in there}
        shared = next(iter(prepared.values())).shared
        corpora: dict[str, SpanCorpus] = {}
        if kind == "encoder":
            entities, questions = tasks_of(size, Path(shared["data"]))
            corpora = dict(zip(EPOCHS, (entities, questions.corpus), strict=True))
        scores = scored({row: counts_of(kind, prepared[row], cells[:n], corpora) for row, cells in there.items()})
        report[kind] |= {
            "rows": {
                row: {
                    "digest": prepared[row].about["digest"],
                    "tokens": prepared[row].about["tokens"],
                    "rate": runs.rate(kind, row),
                    "edge": len(size.rates) > 1 and runs.rate(kind, row) in (size.rates[0], size.rates[-1]),
                    "seconds": float(np.mean([cell["seconds"] for cell in there[row]])),
                    **{task: plain(one.minus()) for task, one in scores[row].items()},
                }
                for row in there
            },
            "contrasts": contrasts(scores, PAIRS[kind], PRIMARY[kind]),
        }
    return report


def page(report: Mapping[str, Any]) -> str:
    """The tables of both kinds."""
    lines = []
    for kind, found in report.items():
        seeds = "one seed, so intervals are over texts alone" if found["seeds"] == 1 else f"{found['seeds']} seeds"
        missing = f"not run: {', '.join(found['not run']) or 'none'}."
        if not found["seeds"]:
            lines.append(f"{kind.capitalize()}s, {seeds}; {missing}")
            continue
        hours = found["seeds"] * sum(about["seconds"] for about in found["rows"].values()) / 3600
        lines.append(f"{kind.capitalize()}s, {seeds}, {hours:.1f} hours together; {missing}")
        tasks = [BITS, *(name for task in EPOCHS for name in (task, f"{task}, stripped"))]
        tasks = [task for task in tasks if task in next(iter(found["rows"].values()))]
        rows = [
            [row, f"{about['tokens']:.3f}", f"{about['rate']:g}" + " (edge)" * about["edge"]]
            + [f"{about[task]['value']:.4f} ± {about[task]['high'] - about[task]['value']:.4f}" for task in tasks]
            + [f"{about['seconds'] / 60:.0f}"]
            for row, about in found["rows"].items()
        ]
        lines.append(table(["tokens of", "tokens", "rate", *tasks, "minutes"], "lrr" + "r" * (len(tasks) + 1), rows))
        scale = {"points": 1, "digits": 4} if kind == "decoder" else {}
        differences = [
            [pair, *(with_interval(each[task], **scale) + p_of(each[task], found["seeds"]) for task in tasks)]
            for pair, each in found["contrasts"].items()
        ]
        lines.append(table(["", *tasks], "l" + "r" * len(tasks), differences))
    return "\n\n".join(lines)


def p_of(one: Mapping[str, float], seeds: int) -> str:
    """The p of a contrast of the plan; one seed has none, since it says nothing of others."""
    return f", p {one['holm']:.1g}" if seeds > 1 and "holm" in one else ""
