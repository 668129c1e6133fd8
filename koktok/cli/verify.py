"""`koktok verify`: the checks of a folder as a table or JSON, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from koktok.cli.options import Field, Folder, Quiet, lines_of_paths

if TYPE_CHECKING:
    from koktok.verification import Verification


def verify(
    tokenizer: Folder,
    paths: Annotated[
        list[str] | None, typer.Argument(help="Text to verify on; koktok's own small corpus by default.")
    ] = None,
    exports: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Folder or file of an export that must give the same ids; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only this many lines, from the first on.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Lines for the slow checks, spread over the text. [20000]")
    ] = None,
    strings: Annotated[
        int | None,
        typer.Option(
            "--random", min=0, help="Extensions: also check this many random strings and byte strings. [10000]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    field: Field = None,
    quiet: Quiet = False,
) -> None:
    """Verify a tokenizer on your text: losslessness, equal ids and text in every format, offsets, special tokens.

    For a folder that koktok did not train, ids and special tokens are compared with those of transformers' AutoTokenizer.

    Example: koktok verify my-tokenizer text.txt
    """
    from koktok.progress import ConsoleProgress, print_line
    from koktok.verification import SAMPLE
    from koktok.verification import verify as check

    lines = islice(_lines(paths, field), limit)
    with ConsoleProgress(quiet=quiet) as progress:
        report = check(
            tokenizer, lines, exports=exports or (), sample=sample or SAMPLE, strings=strings, on_progress=progress
        )
    if as_json:
        print_line(report.to_json())
    else:
        _show(report)
    raise typer.Exit(0 if report.passed else 1)


def _lines(paths: list[str] | None, field: str | None) -> Iterator[str]:
    """Lines of files or standard input, by default of corpora/mini."""
    from koktok.cli.options import sources_of
    from koktok.text.sources import read

    if not paths or any(path.startswith("corpus:") for path in paths):
        blocks = read(sources_of(paths or ["corpus:mini"], field, [], quiet=True))
        return (line for block in blocks for line in block.lines())
    return lines_of_paths(paths, field)


def _show(report: Verification) -> None:
    from koktok.progress import counted, stderr, table

    rows = [
        (
            finding.check,
            finding.outcome if finding.outcome == "not run" else finding.outcome.upper(),
            f"{finding.checked:,}" if finding.checked else "",
            f"{finding.wrong:,}" if finding.checked else "",
        )
        for finding in report.findings
    ]
    title = report.folder
    if report.tokenizer:
        title += f": {report.tokenizer}, {counted(report.lines, 'line')}, {counted(report.characters, 'character')}"
    table(title, ("check", "outcome", "checked", "wrong"), rows)
    console = stderr()
    for finding in report.findings:
        if finding.outcome != "pass":
            console.print(f"{finding.check}: {finding.message}", markup=False)
        if finding.note:
            console.print(f"{finding.check}: {finding.note}", markup=False)
        for example in finding.examples:
            console.print(f"    {example}", markup=False)
    left = sum(finding.outcome == "not run" for finding in report.findings)
    passed = f"passed, but {counted(left, 'check')} did not run" if left else "all checks passed"
    console.print(passed if report.passed else "FAILED", markup=False)
