"""`koktok vocabulary list`, `show`, `get` and `build`: the vocabularies that are part of the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from koktok.cli.options import Force, Quiet, list_rows, sources_of

vocabulary_app = typer.Typer(
    help="Ready vocabularies, included in koktok: use `koktok:NAME` as a tokenizer.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(help="Name of a vocabulary.", show_default=False)]


@vocabulary_app.command("list")
def vocabulary_list() -> None:
    """List the vocabularies: name, ids, model, purpose.

    Example: koktok vocabulary list
    """
    from koktok.tokenizer.ready import ready_vocabularies

    rows = [(ready.name, ready.recipe.train, ready.title) for ready in ready_vocabularies()]
    list_rows(
        ("name", "ids", "model", "purpose"),
        [[name, f"{options.vocab_size}", options.model, title] for name, options, title in rows],
    )


@vocabulary_app.command("show")
def vocabulary_show(name: Name) -> None:
    """Show the training text of a vocabulary, the command that trains it again, and its model card.

    Example: koktok vocabulary show ko-32k
    """
    from koktok.progress import print_line
    from koktok.tokenizer.ready import find

    ready = find(name)
    rows = {
        "ids": f"{ready.recipe.train.vocab_size:,}",
        "digest": ready.digest,
        "text": ", ".join(ready.text),
        "recipe": str(ready.file),
        "train it again": f"koktok vocabulary build {ready.name} -o {ready.name}",
    }
    print_line("\n".join([f"{ready.name}: {ready.title}", *(f"  {k}: {v}" for k, v in rows.items())]))
    print_line(f"\n{ready.card}")


@vocabulary_app.command("get")
def vocabulary_get(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write. [NAME]", show_default=False)] = None,
    force: Force = False,
    quiet: Quiet = False,  # noqa: ARG001 - as every verb that writes; it has no progress
) -> None:
    """Write the folder of a vocabulary, for transformers, tokenizers and sentencepiece; print its name.

    Example: koktok vocabulary get ko-32k -o my-tokenizer
    """
    from koktok.tokenizer.ready import find

    ready = find(name)
    print(ready.write(out or Path(ready.name), force=force))


@vocabulary_app.command("build")
def vocabulary_build(
    name: Name,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write. [NAME]", show_default=False)] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train a vocabulary again by its recipe, and check that the files are identical to the included ones.

    Exit code 1 if it differs: another version of Kiwi, for instance, may cut words differently.

    Example: koktok vocabulary build ko-32k
    """
    from koktok.cli.training_shown import announced
    from koktok.files import check_folder
    from koktok.pipeline.baseline import compare
    from koktok.pipeline.train import train
    from koktok.progress import ConsoleProgress
    from koktok.runtimes.folder import CARD, TOKENIZER
    from koktok.tokenizer.ready import find

    ready = find(name)
    folder = check_folder(
        out or Path(ready.name), TOKENIZER, (CARD,), same=lambda there: force or not ready.differences(there)
    )
    sources = sources_of([*ready.text], None, [], quiet=quiet)
    with ConsoleProgress(quiet=quiet) as progress:
        training = train(sources, ready.recipe, on_progress=announced(progress, ready.recipe), measured=True)
        progress("measure", 0, None)
        training.save(folder, compare(training).rows, force=force)
        differs = ready.differences(folder)
        if differs:
            progress.note(f"different from the included vocabulary: {', '.join(differs)}")
        else:
            progress.note("identical to the included vocabulary")
    print(folder)
    raise typer.Exit(1 if differs else 0)
