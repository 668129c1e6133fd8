"""`koktok extend`: Korean pieces for the vocabulary of an existing model, and the rows for its embeddings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from koktok.cli.option_schema import option_of
from koktok.cli.options import MOST_THREADS, Field, Force, Quiet, sources_of
from koktok.errors import UsageError

BASE = "tokenizer.json or its folder, SentencePiece model, tiktoken ranks, package:NAME; with --apply the folder of an extension."
TEXT = "Files, folders, globs, `corpus:NAME`, or `-` for standard input."

OPTIONS = {
    "New pieces": (
        "ExtendOptions.add ExtendOptions.sizes ExtendOptions.keep ExtendOptions.nu ExtendOptions.fill ExtendOptions.min_count "
        "policy user_dictionary blocklist "
        "personal_data holdout"
    ),
    "Model": "ExtendOptions.init ExtendOptions.pad_to",
    "Fewer pieces": "PruneOptions.drop PruneOptions.keep_scripts",
    "tiktoken ranks": "ExtendOptions.pattern ExtendOptions.specials",
}
"""Fields of `ExtendOptions` and `PruneOptions`, and fields of the Recipe that mean the same here."""

EFFECT = {
    "New pieces": ("",),
    "Model": ("", "--apply"),
    "Fewer pieces": ("--prune",),
    "tiktoken ranks": ("", "--prune"),
}
"""What of `--apply` and `--prune` the options of a heading have an effect with; "" is without both."""


def extend(
    base: Annotated[str, typer.Argument(help=BASE, show_default=False)],
    paths: Annotated[list[str] | None, typer.Argument(help=TEXT, show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.", show_default=False)] = Path("extended"),
    *,
    apply: Annotated[
        Path | None,
        typer.Option(
            help="Model folder (safetensors): write the model with rows for the new ids.", rich_help_panel="Model"
        ),
    ] = None,
    field: Field = None,
    threads: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads of the analyser. [all]")] = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Add Korean pieces to an existing tokenizer, check that old ids and English text are unchanged, and extend the embeddings.

    Example: koktok extend path/to/model text.txt --add 8192 -o wider
    """
    from koktok.progress import ConsoleProgress, table

    hint = "koktok extend --help"
    if apply is not None:
        hint = f"koktok extend {base} --apply {apply} --out NEW"
        if paths:
            raise UsageError("--apply takes no text", hint=hint)
    elif not paths:
        raise UsageError(
            "no text was given to learn pieces from", hint=f"koktok extend {base} TEXT --add 8192 --out {out}"
        )
    elif "drop" in settings:
        hint = "prune first, then extend the folder that it wrote"
    mode = "--apply" if apply is not None else "--prune" if "drop" in settings else ""
    _refuse_idle(
        {**settings, **({"field": field} if field else {}), **({"threads": threads} if threads else {})}, mode, hint
    )
    if apply is not None:
        from koktok.extension.embeddings import apply_extension

        with ConsoleProgress(quiet=quiet) as progress:
            notes = apply_extension(
                base,
                apply,
                out,
                method=settings.get("init"),
                pad_to=settings.get("pad_to"),
                force=force,
                on_progress=progress,
            )
        _tell(notes, quiet=quiet)
        print(out)
        return
    ranks = {name: settings.pop(name, None) for name in ("pattern", "specials")}
    assert paths
    if mode:
        from koktok.extension.prune import prune as prune_tokenizer

        read = sources_of(paths, field, [], quiet=quiet)
        with ConsoleProgress(quiet=quiet) as progress:
            pruned = prune_tokenizer(base, read, out, **settings, **ranks, force=force, on_progress=progress)
        _tell(pruned.notes, quiet=quiet)
        print(out)
        return
    from koktok.extension.cost_card import COLUMNS, frontier_rows
    from koktok.extension.extend import extend as extend_tokenizer
    from koktok.recipe import Recipe
    from koktok.text.blocklist import PERSONAL_DEFAULT, Blocklist

    user_dictionary = settings.pop("user_dictionary", None)
    of_training = {
        name: settings.pop(name) for name in ("policy", "blocklist", "personal_data", "holdout") if name in settings
    }
    recipe = Recipe().changed(**of_training)
    personal = PERSONAL_DEFAULT if recipe.train.personal_data == "drop" else ()
    sources = sources_of(paths, field, [], quiet=quiet)
    with ConsoleProgress(quiet=quiet) as progress:
        extension = extend_tokenizer(
            base,
            sources,
            out,
            **settings,
            **ranks,
            policy=recipe.segment.policy,
            user_dictionary=user_dictionary,
            blocklist=Blocklist(recipe.train.blocklist, personal),
            holdout=recipe.holdout,
            threads=threads,
            force=force,
            on_progress=progress,
        )
    if not quiet:
        print(f"{extension.checked:,} checks of the guarantees passed", file=sys.stderr)
    _tell(extension.notes, quiet=quiet)
    table(str(out), COLUMNS, frontier_rows(extension.points))


def _refuse_idle(given: Mapping[str, Any], mode: str, hint: str) -> None:
    """Refuse options that would do nothing."""
    effect = {name: EFFECT[heading] for heading, names in OPTIONS.items() for name in names.split()}
    effect |= {"threads": ("",), "field": ("", "--prune")}
    for name, modes in effect.items():
        if name.rpartition(".")[2] in given and mode not in modes:
            beside = f"with {mode}" if mode else f"without {' or '.join(modes)}"
            raise UsageError(f"`{option_of(name)}` does nothing {beside}", hint=hint)


def _tell(notes: list[str] | tuple[str, ...], *, quiet: bool) -> None:
    for note in () if quiet else notes:
        print(f"note: {note}", file=sys.stderr)
