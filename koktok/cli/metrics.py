"""`koktok metrics`: what each figure of a report means."""

from __future__ import annotations

import json
from textwrap import wrap
from typing import Annotated

import typer


def metrics(
    which: Annotated[
        str | None, typer.Argument(help="A number (M10) or a name (fertility); all by default.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what each metric is: definition, unit, direction, source, pitfalls.

    Example: koktok metrics fertility
    """
    from dataclasses import asdict

    from koktok.metrics import describe
    from koktok.metrics import metrics as known

    definitions = describe(which) if which else list(known().values())
    if as_json:
        rows = [{key: value for key, value in asdict(m).items() if key != "value"} for m in definitions]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    elif which:
        for m in definitions:
            print(f"{m.id} {m.name}: {m.title} ({m.title_ko})")
            print(f"  {m.unit}, {BETTER[m.better]}; needs {m.needs}")
            for label in ("definition", "source", "pitfalls"):
                print(f"  {label.capitalize()}: {getattr(m, label)}")
            print()
    else:
        for m in definitions:
            print(f"{m.id:<6} {m.name:<28} {m.better:<7} {m.unit:<16} {m.needs}")
            print("\n".join(wrap(m.title, 78, initial_indent=" " * 7, subsequent_indent=" " * 7)))


BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "none": "a description, not a score",
    "one": "closer to 1 is better",
}
