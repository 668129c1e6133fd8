"""`koktok corpus list`, `show` and `fetch`."""

from __future__ import annotations

from typing import Annotated

import typer

from koktok.cli.options import Quiet, list_rows

corpus_app = typer.Typer(
    help="Public corpora, downloaded by recipe.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@corpus_app.command("list")
def corpus_list() -> None:
    """List the corpora: name, eojeols, domain, licence.

    Example: koktok corpus list
    """
    from koktok.corpora.fetch import list_corpora

    list_rows(
        ("name", "eojeols", "domain", "licence", "title"),
        [[one.name, f"{one.eojeols}", one.domain, one.licence, one.title] for one in list_corpora()],
    )


@corpus_app.command("show")
def corpus_show(name: Annotated[str, typer.Argument(help="Name of a corpus.")]) -> None:
    """Show the recipe of a corpus.

    Example: koktok corpus show mini
    """
    from koktok.corpora.fetch import show
    from koktok.progress import print_line

    print_line(show(name))


@corpus_app.command("fetch")
def corpus_fetch(
    name: Annotated[str, typer.Argument(help="Name of a corpus.")],
    force: Annotated[bool, typer.Option("--force", help="Fetch again.")] = False,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="DIR_OR_URL",
            envvar="KOKTOK_MIRROR",
            help="Take git repositories from here: a folder with OWNER/NAME(.git), or an https address.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch a corpus into the cache and print the folder with its text.

    Example: koktok corpus fetch demo
    """
    from koktok.corpora.fetch import fetch
    from koktok.progress import ConsoleProgress

    with ConsoleProgress(quiet=quiet) as progress:
        print(fetch(name, force=force, mirror=mirror, on_progress=progress))
