"""`koktok extend`: Korean pieces for the vocabulary of an existing model, and the rows for its embeddings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from koktok.cli.options import MOST_THREADS, Field, Quiet, fraction, pairs, size_of, sources_of, whole_number
from koktok.errors import UsageError

BASE = "tokenizer.json or its folder, SentencePiece model, tiktoken ranks, package:NAME; with --apply the folder of an extension."
TEXT = "Files, folders, globs, `corpus:NAME`, or `-` for standard input."
FILL = "reserved | unused | FILE: slots that the base keeps free, in place of ids behind all others."
INIT = "mean | eeve | weighted: how rows of the embeddings are made. [mean]"


def extend(
    base: Annotated[str, typer.Argument(help=BASE, show_default=False)],
    paths: Annotated[list[str] | None, typer.Argument(help=TEXT, show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.", show_default=False)] = Path("extended"),
    add: Annotated[int | None, typer.Option(parser=size_of, metavar="N", help="New pieces; 8k is 8000. [8192]")] = None,
    frontier: Annotated[
        str | None, typer.Option(help="Sizes to tell of from one run, separated by commas; the largest is written.")
    ] = None,
    keep: Annotated[
        float | None, typer.Option(help="Share of the borders of morphemes that stay borders of tokens; finds --nu.")
    ] = None,
    nu: Annotated[
        float | None, typer.Option(help="What swallowing such a border costs a join, as a share of what it saves. [1]")
    ] = None,
    fill: Annotated[str | None, typer.Option(help=FILL)] = None,
    pad_to_multiple: Annotated[int, typer.Option(min=1, help="Rows of a matrix that grows, to a multiple.")] = 1,
    prune: Annotated[
        int | None,
        typer.Option(
            parser=size_of, metavar="N", help="Add nothing: take out N pieces that the text never uses; ids move."
        ),
    ] = None,
    keep_scripts: Annotated[
        str | None, typer.Option(help="With --prune: pieces with letters of these scripts stay (Latin,Han,Hangul).")
    ] = None,
    init: Annotated[str | None, typer.Option(help=INIT)] = None,
    apply: Annotated[
        Path | None, typer.Option(help="Folder of a model (safetensors): write it with rows for the new ids.")
    ] = None,
    pattern: Annotated[str | None, typer.Option(help="For ranks: a name, or a regular expression.")] = None,
    special: Annotated[list[str] | None, typer.Option(help="For ranks: TOKEN=ID; repeatable.")] = None,
    policy: Annotated[str, typer.Option(help="Which boundaries count.")] = "morphemes",
    blocklist: Annotated[Path | None, typer.Option(help="File: words that no piece may hold, one a line.")] = None,
    personal_data: Annotated[str, typer.Option(help="drop | keep: pieces that look like telephone numbers.")] = "drop",
    user_dictionary: Annotated[str | None, typer.Option(help="Dictionary for Kiwi: form TAB tag TAB score.")] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            min=1, help="A piece saves at least so many tokens; rarer words are not learnt from. [2; all words]"
        ),
    ] = None,
    holdout: Annotated[float, typer.Option(help="Share of lines kept for the figures.")] = 0.05,
    field: Field = None,
    threads: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads of the analyser. [all]")] = None,
    quiet: Quiet = False,
) -> None:
    """Add Korean pieces to an existing tokenizer: ids kept, English unchanged, proven; rows for the model's embeddings."""
    from koktok.progress import Talk, table

    if apply is not None:
        idle = {"TEXT": paths, "--add": add, "--frontier": frontier, "--keep": keep, "--nu": nu, "--fill": fill}
        idle |= {"--prune": prune, "--keep-scripts": keep_scripts}
        if used := [name for name, value in idle.items() if value]:
            raise UsageError(
                f"`{used[0]}` does nothing with --apply", hint=f"koktok extend {base} --apply {apply} --out NEW"
            )
        from koktok.extend.embeddings import apply_extension

        with Talk(quiet=quiet) as talk:
            notes = apply_extension(base, apply, out, method=init or "mean", pad_to=pad_to_multiple, tell=talk)
        _tell(notes, quiet=quiet)
        print(out)
        return
    if not paths:
        raise UsageError("no text came to learn pieces from", hint=f"koktok extend {base} TEXT --add 8192 --out {out}")
    if prune is not None:
        idle = {"--add": add, "--frontier": frontier, "--keep": keep, "--nu": nu, "--fill": fill, "--init": init}
        if used := [name for name, value in idle.items() if value]:
            raise UsageError(
                f"`{used[0]}` does nothing with --prune", hint="prune first, then extend the folder that it wrote"
            )
        from koktok.extend.fewer import prune as prune_tokenizer

        specials = pairs("--special", special, whole_number, wanted="TOKEN=ID", example="'<|a|>=7'")
        scripts = [word.strip() for word in keep_scripts.split(",")] if keep_scripts else []
        read = sources_of(paths, field, [], quiet=quiet)
        with Talk(quiet=quiet) as talk:
            pruned = prune_tokenizer(
                base, read, out, drop=prune, keep_scripts=scripts, pattern=pattern, specials=specials or None, tell=talk
            )
        _tell(pruned.notes, quiet=quiet)
        print(out)
        return
    if keep_scripts is not None:
        raise UsageError("--keep-scripts does nothing without --prune", hint="--prune 10000")
    if keep is not None and nu is not None:
        raise UsageError("--keep finds --nu; one of them was wanted", hint="--keep 0.8")
    if personal_data not in ("drop", "keep"):
        raise UsageError(
            f"`--personal-data {personal_data}` came; drop or keep was wanted", hint="--personal-data drop"
        )
    try:
        fraction(str(holdout))
    except ValueError:
        raise UsageError(f"--holdout {holdout} came; a share from 0 to 1 was wanted", hint="--holdout 0.05") from None
    sizes = [size_of(word) for word in frontier.split(",")] if frontier else []
    largest = add or max(sizes, default=8192)
    specials = pairs("--special", special, whole_number, wanted="TOKEN=ID", example="'<|a|>=7'")
    from koktok.blocklist import PERSONAL_DEFAULT, Blocklist
    from koktok.extend.cost_card import COLUMNS, frontier_rows
    from koktok.extend.learn import NU
    from koktok.extend.make import extend as extend_tokenizer

    personal = PERSONAL_DEFAULT if personal_data == "drop" else ()
    blocked = Blocklist.load(blocklist, personal) if blocklist else Blocklist(personal=personal)
    sources = sources_of(paths, field, [], quiet=quiet)
    with Talk(quiet=quiet) as talk:
        made = extend_tokenizer(
            base,
            sources,
            out,
            add=largest,
            fill=fill,
            keep=keep,
            nu=NU if nu is None else nu,
            sizes=sizes,
            init=init or "mean",
            policy=policy,
            user_dictionary=user_dictionary,
            blocklist=blocked,
            min_count=min_count,
            holdout=holdout,
            pad_to=pad_to_multiple,
            pattern=pattern,
            specials=specials or None,
            threads=threads,
            tell=talk,
        )
    if not quiet:
        print(f"{made.looked:,} facts of law 13 proven, none refuted", file=sys.stderr)
    _tell(made.notes, quiet=quiet)
    table(str(out), COLUMNS, frontier_rows(made.points))


def _tell(notes: list[str] | tuple[str, ...], *, quiet: bool) -> None:
    for note in () if quiet else notes:
        print(f"note: {note}", file=sys.stderr)
