"""`koktok train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from koktok.cli.options import Field, Paths, RecipeFile, sources_of
from koktok.errors import UsageError

MODELS = "unigram | unigram-em | bpe | bpe-bytes | wordpiece | wordpiece-bytes | word | syllable | jamo | ngram | morpheme. [unigram]"


def train(
    paths: Paths,
    out: Annotated[Path, typer.Option(help="Folder to write.", show_default=False)] = Path("koktok-tokenizer"),
    recipe: RecipeFile = None,
    vocab_size: Annotated[int | None, typer.Option(help="All ids: bytes, pieces, specials. [32000]")] = None,
    model: Annotated[str | None, typer.Option(help=MODELS)] = None,
    preset: Annotated[str | None, typer.Option(help="short | balanced | aligned. [balanced]")] = None,
    lam: Annotated[float | None, typer.Option(help="Cost of a token.")] = None,
    mu: Annotated[float | None, typer.Option(help="Cost of a cut inside a morpheme.")] = None,
    nu: Annotated[float | None, typer.Option(help="Cost of a boundary swallowed by a piece.")] = None,
    superwords: Annotated[float | None, typer.Option(help="At most this share of pieces crosses spaces. [0]")] = None,
    reserve_script: Annotated[
        list[str] | None, typer.Option(help="SCRIPT=SHARE of the pieces, e.g. latin=0.3.")
    ] = None,
    share: Annotated[float | None, typer.Option(help="BPE: share of merges inside morphemes. [0.8]")] = None,
    backend: Annotated[str | None, typer.Option(help="koktok | spm: whose trainer. [koktok]")] = None,
    segmenter: Annotated[str | None, typer.Option(help="kiwi | mecab | whitespace. [kiwi]")] = None,
    policy: Annotated[
        str | None, typer.Option(help="Which boundaries count, e.g. morphemes, josa, j,e,vcp,xsv.")
    ] = None,
    user_dictionary: Annotated[Path | None, typer.Option(help="Dictionary for Kiwi: form TAB tag TAB score.")] = None,
    split: Annotated[str | None, typer.Option(help="eojeol | scripts. [eojeol]")] = None,
    digits: Annotated[str | None, typer.Option(help="single | groups | free. [single]")] = None,
    jamo: Annotated[bool | None, typer.Option("--jamo", help="Train on conjoining jamo.")] = None,
    min_count: Annotated[
        int | None, typer.Option(help="Rarer words are not trained on. [1, or 2 for much text]")
    ] = None,
    specials: Annotated[str | None, typer.Option(help="Special tokens, separated by commas.")] = None,
    reserved: Annotated[int | None, typer.Option(help="Slots kept free for later. [0]")] = None,
    weight: Annotated[list[str] | None, typer.Option(help="NAME=W: counts of that source times W.")] = None,
    field: Field = None,
    holdout: Annotated[float | None, typer.Option(help="Share of lines kept for the closing table. [0.05]")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the analyser. [all]")] = None,
    cache: Annotated[bool, typer.Option(help="Keep analyses for the next training.")] = True,
    compare: Annotated[bool, typer.Option(help="Train plain SentencePiece beside it.")] = True,
    frontier: Annotated[bool, typer.Option("--frontier", help="Draw tokens against boundary F1 instead.")] = False,
    sizes: Annotated[str | None, typer.Option(help="Sizes for --frontier, separated by commas. [--vocab-size]")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done and cost.")] = False,
    log: Annotated[str | None, typer.Option(help="File for the trainer's log (JSON); `json` for stderr.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No talk on stderr.")] = False,
) -> None:
    """Train a tokenizer on Korean text and write its folder."""
    from koktok.recipe import Recipe

    base = Recipe.load(recipe) if recipe else Recipe()
    chosen = base.changed(
        segment={"segmenter": segmenter, "policy": policy},
        pretokenize={"split": split, "digits": digits},
        train={
            "vocab_size": vocab_size,
            "model": model,
            "backend": backend,
            "preset": preset,
            "lam": lam,
            "mu": mu,
            "nu": nu,
            "superwords": superwords,
            "reserve_script": dict(item.split("=", 1) for item in reserve_script if "=" in item)
            if reserve_script
            else None,
            "share": share,
            "min_count": min_count,
            "specials": tuple(specials.split(",")) if specials is not None else None,
            "reserved": reserved,
        },
        jamo=jamo,
        holdout=holdout,
        sources=(),
    )
    from koktok.export.folder import check_target

    check_target(out)
    sources = sources_of(paths, field, weight or [], quiet=quiet)
    from koktok import closing
    from koktok.console import Talk

    if dry_run:
        closing.print_estimate(sources, chosen)
        return
    if frontier:
        with Talk(quiet=quiet) as talk:
            closing.run_frontier(
                sources,
                chosen,
                out,
                vocab_sizes=_sizes(sizes) if sizes else [chosen.train.vocab_size],
                talk=talk,
                user_dictionary=str(user_dictionary) if user_dictionary else None,
                threads=threads,
                cache=cache,
            )
        return
    with Talk(quiet=quiet) as talk:
        closing.run(
            sources,
            chosen,
            out,
            talk=talk,
            user_dictionary=str(user_dictionary) if user_dictionary else None,
            threads=threads,
            cache=cache,
            compare=compare,
            log=log,
        )


def _sizes(text: str) -> list[int]:
    """Sizes of vocabularies as a user lists them."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise UsageError(f"`--sizes {text}` wants whole numbers", hint="--sizes 8000,16000,32000") from error
