"""`koktok instances`: text to training instances."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from koktok.cli.options import MOST_THREADS, Field, Force, Quiet, sources_of, tell_bad_lines
from koktok.errors import UsageError

if TYPE_CHECKING:
    from koktok.instances import Packed
    from koktok.progress import ConsoleProgress
    from koktok.text.sources import Source


class InstanceKind(StrEnum):
    """What `--kind` takes."""

    mlm = "mlm"
    bert = "bert"
    lm = "lm"
    t5 = "t5"
    packed = "packed"


class ExportTo(StrEnum):
    """What `--to` takes."""

    megatron = "megatron"


PLAN = "Plan.length Plan.seed Plan.across Plan.pairs Plan.short_seq_prob Plan.pack"
MASKING = "Masking.unit Masking.rate Masking.mask_prob Masking.random_prob Masking.max_predictions_per_seq"
OPTIONS = {
    "Instances": PLAN,
    "Masking": MASKING,
    "Text": "write_packed.documents write_packed.sentences segmenter policy",
    "Files": "write_instances.epochs write_packed.shard_tokens write_instances.shard_instances",
}
"""Parameters of the classes and functions of `koktok.instances`, and fields of the Recipe that mean the same here."""


def instances(
    tokenizer: Annotated[
        str,
        typer.Argument(
            help="Folder of a tokenizer, trained or imported; or `show`, `stats`, `export`.", show_default=False
        ),
    ],
    text: Annotated[
        list[str],
        typer.Argument(help="Files, folders, `corpus:NAME`, `-`; or one folder of instances.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the instances.")] = None,
    kind: Annotated[
        InstanceKind, typer.Option(help="Kind of the instances; `packed` stops at ids and boundaries.")
    ] = InstanceKind.mlm,
    *,
    dynamic: Annotated[
        bool,
        typer.Option("--dynamic", help="Write no masks, for KoktokCollator.", rich_help_panel="Masking"),
    ] = False,
    packed: Annotated[Path | None, typer.Option(help="Folder for ids and boundaries. [OUT-packed]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Workers. [one for each core]")] = None,
    field: Field = None,
    n: Annotated[int, typer.Option("--n", help="show: number of instances.")] = 3,
    to: Annotated[ExportTo | None, typer.Option(help="export: target format.", show_default=False)] = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Write training instances from text.

    `koktok instances show FOLDER` prints some, `koktok instances stats FOLDER` prints statistics, and
    `koktok instances export FOLDER --to megatron -o OUT` writes a packed folder for Megatron.

    Ids and the boundaries of sentences, eojeols and morphemes are packed once. Each instance is a function of seed, epoch and
    document. The same command resumes a stopped run.
    """
    if tokenizer == "show":
        for folder in text:
            _show(folder, n)
        return
    if tokenizer == "stats":
        _stats(text[0])
        return
    if out is None:
        raise UsageError("`--out` is missing", hint="--out FOLDER")
    if tokenizer == "export":
        _export(text[0], to, out, documents=kind == InstanceKind.lm, force=force, quiet=quiet)
        return
    from koktok.instances import Masking, Packed, Plan, write_instances
    from koktok.progress import ConsoleProgress, counted

    def taken(names: str) -> dict[str, Any]:
        """Return the options that were given, by the name of the parameter."""
        bare = (name.rpartition(".")[2] for name in names.split())
        return {name: settings[name] for name in bare if name in settings}

    masking = Masking(**taken(MASKING), epochs=settings.get("epochs", 1))
    plan = None if kind == InstanceKind.packed else Plan(kind.value, masking=masking, **taken(PLAN))  # type: ignore[arg-type]
    with ConsoleProgress(quiet=quiet) as progress:
        if len(text) == 1 and (Path(text[0]) / "tokens.json").is_file():
            made = Packed.open(text[0])
        else:
            without = {} if plan is None or plan.needs_morphemes else {"segmenter": "whitespace"}
            place = out if plan is None else packed or out.with_name(f"{out.name}-packed")
            made = _packed(
                tokenizer, sources_of(text, field, [], quiet=quiet), place, workers, progress,
                **without | taken(f"{OPTIONS['Text']} shard_tokens"), force=force, quiet=quiet,
            )  # fmt: skip
        if plan is None:
            done = f"{counted(made.manifest['n_tokens'], 'token')}, {counted(made.manifest['n_documents'], 'document')}"
        else:
            manifest = write_instances(
                made,
                plan,
                out,
                masked=not dynamic,
                **taken("epochs shard_instances"),
                workers=workers,
                on_progress=progress,
                force=force,
            )
            done = counted(sum(manifest["n_instances"]), "instance")
    if not quiet:
        print(f"{done} in {out}", file=sys.stderr)


def _packed(
    tokenizer: str,
    sources: list[Source],
    place: Path,
    workers: int | None,
    progress: ConsoleProgress,
    *,
    segmenter: str | None = None,
    policy: str | None = None,
    force: bool,
    quiet: bool,
    **settings: Any,
) -> Packed:
    from koktok.foreign import load
    from koktok.instances.packing import LONG_DOCUMENT, write_packed
    from koktok.instances.word_cuts import WordCuts
    from koktok.recipe import Recipe
    from koktok.segment import Policy
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import Workers, in_subprocess
    from koktok.text.records import ReadReport

    chosen = Recipe().changed(segmenter=segmenter, policy=policy).segment
    report = ReadReport()
    analyser = in_subprocess(chosen.segmenter, processes=workers)
    asked = analyser if chosen.segmenter == "whitespace" else CachedSegmenter(analyser)
    try:
        made = write_packed(
            load(tokenizer),
            sources,
            place,
            lexicon=WordCuts(asked, Policy.parse(chosen.policy)),
            threads=workers,
            report=report,
            on_progress=progress,
            force=force,
            **settings,
        )
    finally:
        if isinstance(analyser, Workers):
            analyser.close()
    if report.bad_lines and not quiet:
        tell_bad_lines(report, "left out")
    if (longest := made.manifest["longest_document"]) > LONG_DOCUMENT and not quiet:
        print(f"warning: a document has {longest:,} bytes; --documents sets what a document is", file=sys.stderr)
    return made


STYLES = {"text": "", "special": "dim", "mask": "bold yellow", "random": "bold magenta", "kept": "bold cyan"}


def _show(folder: str, n: int) -> None:
    from rich.text import Text

    from koktok.instances.display import rows_of, tokens_of_row
    from koktok.progress import stdout

    for number, row in enumerate(rows_of(folder, n)):
        line = Text(f"{number}: ", style="dim")
        for i, (shown, part) in enumerate(tokens_of_row(folder, row)):
            line.append(" " if i else "")
            line.append(shown, style=STYLES[part])
        told = ", ".join(f"{name} {value}" for name, value in row.items() if isinstance(value, int))
        line.append(f"\n{told}" if told else "", style="dim")
        stdout().print(line)


def _stats(folder: str) -> None:
    from koktok.instances.instance_statistics import statistics_of, tables_of
    from koktok.progress import print_line, table

    for i, (title, columns, rows) in enumerate(tables_of(statistics_of(folder))):
        if i:
            print_line()
        table(title, columns, rows)


def _export(folder: str, to: ExportTo | None, out: Path, *, documents: bool, force: bool, quiet: bool) -> None:
    from koktok.instances import Packed
    from koktok.instances.exporting import to_megatron
    from koktok.progress import counted

    if to is None:
        raise UsageError("`--to` is missing", hint="--to megatron")
    done = counted(to_megatron(Packed.open(folder), out, documents=documents, force=force)["n_sequences"], "sequence")
    if not quiet:
        print(f"{done} in {out}", file=sys.stderr)
