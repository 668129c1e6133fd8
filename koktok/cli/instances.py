"""`koktok instances`: text to training instances."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from koktok.cli.options import MOST_THREADS, Field, Force, Quiet, sources_of, tell_left_out
from koktok.errors import UsageError

if TYPE_CHECKING:
    from koktok.instances import Packed
    from koktok.progress import ConsoleProgress
    from koktok.text.sources import Source


PLAN = "Plan.length Plan.seed Plan.across Plan.pairs Plan.short_seq_prob"
MASKING = "Masking.unit Masking.rate Masking.mask_prob Masking.random_prob Masking.max_predictions_per_seq"
OPTIONS = {
    "Instances": PLAN,
    "Masking": MASKING,
    "Text": "PackOptions.documents PackOptions.sentences segmenter policy",
    "Files": "WriteOptions.epochs PackOptions.shard_tokens WriteOptions.shard_instances",
}
"""Fields of the models of `koktok.instances`, and of the Recipe that mean the same here."""


def instances(
    tokenizer: Annotated[
        str,
        typer.Argument(
            help="Folder of a tokenizer, trained or imported; without text, a folder of instances.", show_default=False
        ),
    ],
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders, `corpus:NAME`, `-`; or a packed folder.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the instances.")] = None,
    kind: Annotated[
        Literal["mlm", "bert", "packed"],
        typer.Option(help="Kind of the instances; `packed` stops at ids and boundaries."),
    ] = "mlm",
    *,
    dynamic: Annotated[
        bool,
        typer.Option("--dynamic", help="Write no masks, for KoktokCollator.", rich_help_panel="Masking"),
    ] = False,
    packed: Annotated[Path | None, typer.Option(help="Folder for ids and boundaries. [OUT-packed]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Workers. [one for each core]")] = None,
    field: Field = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Write training instances from text.

    `koktok instances FOLDER` prints the figures of a folder of instances.

    Ids and the boundaries of sentences, eojeols and morphemes are packed once. An instance depends only on the seed, the
    epoch and its document.

    Example: koktok instances my-tokenizer text.txt -o data
    """
    if not text:
        _print_statistics(tokenizer)
        return
    if out is None:
        raise UsageError("`--out` is missing", hint="--out FOLDER")
    from koktok.instances import Masking, Packed, Plan, write_instances
    from koktok.progress import ConsoleProgress, counted
    from koktok.segment import NONE

    def taken(names: str) -> dict[str, Any]:
        """Return the options that were given, by the name of the parameter."""
        bare = (name.rpartition(".")[2] for name in names.split())
        return {name: settings[name] for name in bare if name in settings}

    if kind == "packed" and (given := [*taken(f"{MASKING} {PLAN}")]):
        name = given[0].replace("_", "-")
        raise UsageError(f"`--{name}` has no effect with `--kind packed`, which masks nothing", hint="--kind mlm")
    masking = Masking(**taken(MASKING), epochs=settings.get("epochs", 1))
    plan = None if kind == "packed" else Plan(kind=kind, masking=masking, **taken(PLAN))
    with ConsoleProgress(quiet=quiet) as progress:
        if len(text) == 1 and (Path(text[0]) / "tokens.json").is_file():
            tokens = Packed.open(text[0])
        else:
            analysed = plan is None or plan.masking.of_morphemes
            without = {} if analysed else {"segmenter": NONE}
            place = out if plan is None else packed or out.with_name(f"{out.name}-packed")
            tokens = _packed(
                tokenizer, sources_of(text, field, [], quiet=quiet), place, workers, progress,
                **without | taken(f"{OPTIONS['Text']} shard_tokens"), force=force, quiet=quiet,
            )  # fmt: skip
        if plan is None:
            done = f"{counted(tokens.manifest['n_tokens'], 'token')}, {counted(tokens.manifest['n_documents'], 'document')}"
        else:
            manifest = write_instances(
                tokens,
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
    from koktok.instances.packing import LONG_DOCUMENT, write_packed
    from koktok.instances.word_cuts import WordCuts
    from koktok.recipe import Recipe
    from koktok.segment import Policy, analyser_of
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import Workers, in_subprocess
    from koktok.text.records import ReadReport
    from koktok.tokenizer.open import load

    chosen = Recipe().changed(segmenter=segmenter, policy=policy).segment
    report = ReadReport()
    analyser = in_subprocess(chosen.segmenter, processes=workers)
    asked = analyser if not analyser_of(chosen.segmenter).analyses else CachedSegmenter(analyser)
    try:
        tokens = write_packed(
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
    if not quiet:
        tell_left_out(report)
    if (longest := tokens.manifest["longest_document"]) > LONG_DOCUMENT and not quiet:
        print(f"warning: a document has {longest:,} bytes; --documents sets what a document is", file=sys.stderr)
    return tokens


def _print_statistics(folder: str) -> None:
    from koktok.instances.instance_statistics import statistics_of, tables_of
    from koktok.progress import print_line, table

    for i, (title, columns, rows) in enumerate(tables_of(statistics_of(folder))):
        if i:
            print_line()
        table(title, columns, rows)
