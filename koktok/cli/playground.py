"""`koktok playground`: a tokenizer as one HTML page that anybody can try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from koktok.cli.options import Field, Folder, Folders, Force, Quiet, lines_of_paths

if TYPE_CHECKING:
    from koktok.runtimes import LibraryTokenizer
    from koktok.tokenizer import TrainedTokenizer


def playground(
    tokenizer: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.", show_default=False)],
    others: Folders = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", help="File, folder or glob with words to include; may be repeated."),
    ] = None,
    words: Annotated[int | None, typer.Option(min=0, help="Words with morphemes on the page. [40000]")] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Also show token counts relative to this tokenizer: a folder, or package:o200k_base."),
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "koktok playground",
    field: Field = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write an HTML page that runs tokenizers in the browser, without a server or a network.

    The page includes the morphemes of frequent words, of --text, or of koktok's own small corpus and the vocabulary. Besides
    folders of koktok it runs tiktoken ranks with a published pattern: package:o200k_base, tiktoken:FILE#llama3.

    Example: koktok playground my-tokenizer -o page.html
    """
    from koktok.files import check_file, write_file
    from koktok.report.playground.web_page import is_page
    from koktok.text.names import distinct
    from koktok.tokenizer.open import load

    check_file(out, is_page)
    references = [*map(str, [tokenizer, *(others or ()), *filter(None, [against])])]
    tokenizers = [load(one) for one in references]
    names = distinct([name_of(one) for one in references], references)
    page = page_of(
        dict(zip(names, tokenizers, strict=True)),
        _lines(text, field),
        title=title,
        words=words,
        quiet=quiet,
        against=names[-1] if against else "",
    )
    write_file(out, page.encode(), ours=is_page, force=force, what="page")
    print(out)


def name_of(reference: str) -> str:
    """What the page calls a tokenizer.

    Examples
    --------
    >>> name_of("made/my-tokenizer/"), name_of("package:o200k_base")
    ('my-tokenizer', 'o200k_base')
    """
    return Path(reference).resolve().name.rpartition(":")[2].partition("#")[0]


def page_of(
    tokenizers: Mapping[str, TrainedTokenizer | LibraryTokenizer],
    lines: Iterable[str],
    *,
    title: str,
    words: int | None = None,
    quiet: bool = False,
    against: str = "",
) -> str:
    """The page, with the morphemes of the words of some lines, of the vocabularies and of its own examples."""
    from koktok.progress import ConsoleProgress
    from koktok.report.playground.lexicon import WORDS, lexicon, runs_of, words_of
    from koktok.report.playground.web_page import examples, to_page
    from koktok.runtimes import LibraryTokenizer
    from koktok.segment import DEFAULT
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import in_subprocess

    counts = runs_of(lines)
    for tokenizer in tokenizers.values():
        if not isinstance(tokenizer, LibraryTokenizer):
            counts.update(words_of(tokenizer.vocab))
    counts.update({word: counts.total() for word in runs_of(examples())})
    with ConsoleProgress(quiet=quiet) as progress:
        progress("looking up morphemes", 0, 1)
        known = lexicon(counts, CachedSegmenter(in_subprocess(DEFAULT)), WORDS if words is None else words)
        progress("looking up morphemes", 1, 1)
    return to_page(tokenizers, known, title=title, against=against)


def _lines(paths: list[str] | None, field: str | None) -> Iterator[str]:
    """The user's text, and koktok's own small corpus."""
    from koktok.corpora.paths import as_source
    from koktok.text.sources import read

    if paths:
        yield from lines_of_paths(paths, field)
    for block in read(as_source("corpus:mini")):
        yield from block.lines()
