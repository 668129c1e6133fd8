"""`koktok playground`: a tokenizer as one HTML page that anybody can try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from koktok.cli.options import Field, Folder, Quiet, lines_of_paths


def playground(
    tokenizer: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page, an HTML file.", show_default=False)],
    others: Annotated[
        list[Path] | None, typer.Argument(help="More tokenizers, to compare with.", show_default=False)
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="File, folder or glob whose frequent words the page is to know; may be repeated."),
    ] = None,
    words: Annotated[
        int | None, typer.Option(min=0, help="How many words the page knows the morphemes of. [40000]")
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "koktok playground",
    field: Field = None,
    quiet: Quiet = False,
) -> None:
    """Write a page that runs tokenizers in the browser: type, see the tokens, compare. It needs no server and no network.

    The page knows the morphemes of frequent words: of --text, or of koktok's own small corpus and the vocabulary.
    """
    from koktok.files import check_file, write_file
    from koktok.playground.lexicon import WORDS, lexicon, runs_of, words_of
    from koktok.playground.web_page import examples, is_page, to_page
    from koktok.progress import Talk
    from koktok.report.names import distinct
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import supervised
    from koktok.tokenizer import Tokenizer

    check_file(out, is_page)
    folders = [tokenizer, *(others or ())]
    names = distinct([folder.resolve().name for folder in folders], [str(folder) for folder in folders])
    loaded = dict(zip(names, map(Tokenizer.load, folders), strict=True))
    counts = runs_of(_lines(text, field))
    for made in loaded.values():
        counts.update(words_of(made.vocab))
    counts.update({word: counts.total() for word in runs_of(examples())})
    with Talk(quiet=quiet) as talk:
        talk("looking up morphemes", 0, 1)
        known = lexicon(counts, CachedSegmenter(supervised("kiwi")), WORDS if words is None else words)
        talk("looking up morphemes", 1, 1)
    write_file(out, to_page(loaded, known, title=title).encode(), ours=is_page)
    print(out)


def _lines(paths: list[str] | None, field: str | None) -> Iterator[str]:
    """The user's text, and that which travels with koktok."""
    from koktok.text.sources import Source, read_lines

    if paths:
        yield from lines_of_paths(paths, field)
    yield from read_lines(Source.of("corpus:mini"))
