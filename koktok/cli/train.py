"""`koktok train`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from koktok.cli.options import MOST_THREADS, Field, Force, Paths, Quiet, RecipeFile, size_of, sources_of
from koktok.errors import InputError, UsageError, VocabSizeError

if TYPE_CHECKING:
    from koktok.pipeline.train import RunOptions
    from koktok.recipe import Recipe
    from koktok.text.sources import Source

CURVE = ("frontier.md", "frontier.json", "frontier.svg")

FRONTIER_HELP = (
    "Plot tokens against boundary F1 instead: the presets and points between them, at --sizes. Text, analyser, split, "
    "digits, specials and blocklist apply; --preset, --keep, the costs and superwords do not."
)


OPTIONS = {
    "Model": (
        "vocab_size model preset keep tokens_per_eojeol lam mu nu price superwords inner_superwords blocklist personal_data junk "
        "character_coverage required required_pieces reserve_script backend"
    ),
    "Korean": "segmenter policy user_dictionary split digits pattern prefix_space jamo",
    "Data": "min_count holdout",
    "Special tokens": (
        "specials eos reserved style template chat_template model_max_length padding_side truncation_side trim_offsets pad_to_multiple"
    ),
}
"""Fields of the Recipe that are options, by the heading in `--help`; the others are set in koktok.toml only."""

Headed = partial(typer.Option, rich_help_panel="Output")


def train(
    paths: Paths,
    out: Annotated[Path, Headed("--out", "-o", help="Folder to write.", show_default=False)] = Path("koktok-tokenizer"),
    recipe: RecipeFile = None,
    *,
    like: Annotated[
        Path | None,
        typer.Option(help="Target the number of tokens of this SentencePiece model.", rich_help_panel="Model"),
    ] = None,
    jamo_fallback: Annotated[
        bool,
        typer.Option(
            "--jamo-fallback", help="Decompose only syllables without a piece into jamo.", rich_help_panel="Korean"
        ),
    ] = False,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            help="Parquet file of words analysed on a cluster.",
            rich_help_panel="Korean",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option(help="NAME=W: multiply the counts of a source by W.", rich_help_panel="Data")
    ] = None,
    field: Field = None,
    threads: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads of the analyser. [all]")] = None,
    cache: Annotated[bool, typer.Option(help="Cache the analyses for the next training.")] = True,
    compare: Annotated[
        bool, Headed(help="Also train plain SentencePiece, or for bpe-bytes plain byte-level BPE, for comparison.")
    ] = True,
    frontier: Annotated[bool, Headed("--frontier", help=FRONTIER_HELP)] = False,
    sizes: Annotated[str | None, Headed(help="Sizes for --frontier, separated by commas. [--vocab-size]")] = None,
    dry_run: Annotated[bool, Headed("--dry-run", help="Print what would be done, and its estimated cost.")] = False,
    log: Annotated[str | None, Headed(help="Write the trainer's log (JSON) to this file; `json` for stderr.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Train a tokenizer on Korean text and write its folder.

    Example: koktok train text.txt --vocab-size 8000 -o my-tokenizer
    """
    from koktok.recipe import Recipe

    if sizes and not frontier:
        raise UsageError("`--sizes` is for a curve", hint=f"--vocab-size {sizes.split(',')[0]}, or --frontier")
    base = Recipe.load(recipe) if recipe else Recipe()
    user_dictionary = settings.pop("user_dictionary", None)
    without = {"user_dictionary": "", "user_dictionary_sha256": ""} if user_dictionary == "" else {}
    if jamo_fallback:
        settings["jamo"] = "fallback"
    chosen = base.changed(**settings, **without, sources=())
    from koktok.cli import training_shown as shown
    from koktok.files import check_file, check_folder, refuse_another
    from koktok.pipeline.baseline import compare as compare_with_peers
    from koktok.pipeline.train import RunOptions
    from koktok.pipeline.train import train as train_tokenizer
    from koktok.pipeline.user_dictionary import with_dictionary
    from koktok.progress import ConsoleProgress
    from koktok.runtimes.folder import CARD, MARK, TOKENIZER

    chosen, dictionary = with_dictionary(chosen, user_dictionary or None)
    check_folder(out, TOKENIZER, CURVE if frontier else (CARD,))
    sources = sources_of(paths, field, weight or [], quiet=quiet)
    if dry_run:
        shown.print_estimate(sources, chosen, threads)
        return
    wanted = [size_of(word) for word in sizes.split(",")] if sizes else [chosen.train.vocab_size]
    again = force or ((out / MARK).is_file() and (bool(like) or _asked_so(out, chosen, sources, wanted)))
    check_folder(out, TOKENIZER, same=lambda _: again)
    options = RunOptions(dictionary, like, None if cache else False, lexicon, threads, measured=True)
    if frontier:
        _draw(sources, chosen, out, wanted, options, compare=compare, force=force, quiet=quiet)
        return
    if log is not None and log != "json":  # an error comes before the training
        if not Path(log).absolute().parent.is_dir():
            raise InputError(f"there is no folder for the log `{log}`", hint="--log json")
        if check_file(log, shown.is_log).is_file() and Path(log).stat().st_size and not again:
            raise refuse_another(Path(log), "log")
    with ConsoleProgress(quiet=quiet) as progress:
        training = train_tokenizer(
            sources, chosen, **vars(replace(options, on_progress=shown.announced(progress, chosen)))
        )
        progress("measure", 0, None)
        if compare and training.reading.complete:
            shown.note_comparison(training, progress)
        compared = compare_with_peers(training, peer=compare)
        training.save(out, compared.rows, force=force)
    if not quiet:
        shown.print_training(training, compared, out)
    if log is not None:
        shown.write_log(log, training)


def _asked_so(folder: Path, recipe: Recipe, sources: Sequence[Source], sizes: Sequence[int]) -> bool:
    """Whether a folder was trained with this recipe on sources of these names; their text is compared when the folder is written."""
    from koktok.errors import ArtifactError
    from koktok.recipe import Recipe
    from koktok.runtimes.folder import MARK, read_folder

    if (folder / "frontier.json").is_file():
        rows = json.loads((folder / "frontier.json").read_text(encoding="utf-8"))["rows"]
        return Recipe.load(folder / MARK) == recipe and {row["vocab_size"] for row in rows} == {*sizes}
    try:
        there = read_folder(folder)[0]
    except ArtifactError:
        return False
    ours, theirs = ([(source.name, source.weight) for source in some] for some in (sources, there.sources))
    return ours == theirs and there.model_copy(update={"sources": (), "holdout": recipe.holdout}) == recipe


def _draw(
    sources: Sequence[Source],
    recipe: Recipe,
    out: Path,
    sizes: list[int],
    options: RunOptions,
    *,
    compare: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Print the curve as a table, and write it with a drawing and the recipe."""
    from koktok.files import write_folder
    from koktok.pipeline import curve
    from koktok.progress import ConsoleProgress, table
    from koktok.report.frontier import (
        NARROW,
        SIZES_NOTE,
        SIZES_TITLE,
        TITLE,
        cells,
        cells_of_sizes,
        draw,
        to_json,
        to_markdown,
        tokens_by_size,
    )
    from koktok.runtimes.folder import MARK, TOKENIZER

    with ConsoleProgress(quiet=quiet) as progress:
        try:
            rows, against = curve.train_frontier(
                sources, recipe, vocab_sizes=sizes, options=replace(options, on_progress=progress), peer=compare
            )
        except VocabSizeError as error:
            raise VocabSizeError(error.message, error.hint.replace("--vocab-size", "--sizes")) from error
    files: dict[str, str | bytes] = {
        "frontier.md": to_markdown(rows, against),
        "frontier.json": to_json(rows, against),
        "frontier.svg": draw(rows, against),
        MARK: recipe.to_toml(),
    }
    write_folder(out, files, TOKENIZER, force=force)
    if sys.stdout.isatty():
        lines = [row | {"point": f"{row['point']} {row['front']}".strip()} for row in cells(rows, against)]
        table(TITLE, NARROW, [[row[column] for column in NARROW] for row in lines])
        print("★ no other point has both fewer tokens and a higher F1\n")
        columns, of_sizes = cells_of_sizes(tokens_by_size(rows))
        if of_sizes:
            table(SIZES_TITLE, columns, of_sizes)
            print(SIZES_NOTE)
    else:
        print(to_markdown(rows, against))
    if not quiet:
        print(f"drawing: {out / CURVE[2]}; table: {out / CURVE[0]}, {CURVE[1]}", file=sys.stderr)
