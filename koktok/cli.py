"""The verbs. Each parses its words, calls the library, and prints: data on stdout, talk on stderr.

This file adds nothing but the surface: whatever a verb does can be done from Python with the functions that it calls.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from koktok.errors import InputError, KoktokError, UsageError

if TYPE_CHECKING:
    from koktok.corpus import Source

app = typer.Typer(
    name="koktok",
    help="Korean vocabularies that know where morphemes end, as ordinary Hugging Face and SentencePiece tokenizers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
corpus_app = typer.Typer(help="Corpora that koktok knows recipes for.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(corpus_app, name="corpus")


MODELS = "unigram | unigram-em | bpe | bpe-bytes | wordpiece | wordpiece-bytes | word | syllable | jamo | ngram | morpheme. [unigram]"
INTERRUPTED = 130
"""What a shell calls a process that SIGINT ended."""


class Shape(StrEnum):
    """How encoded lines are printed."""

    ids = "ids"
    pieces = "pieces"
    json = "json"


Paths = Annotated[
    list[str],
    typer.Argument(help="Files, folders, globs, `corpus:NAME`, or `-` for standard input.", show_default=False),
]
Field = Annotated[str | None, typer.Option(help="Field or column that holds the text (JSON lines, tables).")]
Folder = Annotated[Path, typer.Argument(help="Folder of a trained tokenizer.", show_default=False)]
RecipeFile = Annotated[Path | None, typer.Option(help="koktok.toml, or a trained folder, to start from.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(installed("koktok"))
        raise typer.Exit


@app.command()
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
    sources = _sources(paths, field, weight or [], quiet=quiet)
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


@app.command()
def encode(
    tokenizer: Folder,
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    shape: Annotated[Shape, typer.Option("--as", help="What a line becomes.")] = Shape.ids,
    field: Field = None,
    sample_alpha: Annotated[float | None, typer.Option(help="Sample (unigram): larger is nearer to the best.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Sample (BPE, WordPiece): share of joins passed over.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples. [0]")] = None,
) -> None:
    """Encode line by line: ids, pieces (spaces shown as ▁), or JSON with offsets."""
    import json

    from koktok.tokenizer import Tokenizer

    loaded = Tokenizer.load(tokenizer)
    solve = loaded.encode
    if sample_alpha is not None or dropout is not None:
        import numpy as np

        drawn = np.random.default_rng(seed or 0)  # one for all lines: equal lines get samples of their own
        solve = partial(loaded.sample, alpha=sample_alpha, dropout=dropout, seed_or_rng=drawn)
    elif seed is not None:
        raise UsageError("`--seed` is for samples", hint="--sample-alpha 0.1 or --dropout 0.1")
    for line in _lines(paths, field):
        encoding = solve(line)
        match shape:
            case Shape.ids:
                print(*encoding.ids)
            case Shape.pieces:
                print(*(piece.replace(" ", "▁") for piece in encoding.pieces))
            case Shape.json:
                row = {"ids": encoding.ids, "pieces": encoding.pieces, "offsets": encoding.offsets}
                print(json.dumps(row, ensure_ascii=False))


@app.command()
def decode(
    tokenizer: Folder,
    paths: Annotated[list[str] | None, typer.Argument(help="Files of ids; standard input by default.")] = None,
    skip_special_tokens: Annotated[bool, typer.Option("--skip-special-tokens")] = False,
) -> None:
    """Decode line by line: ids separated by spaces become text."""
    from koktok.tokenizer import Tokenizer

    loaded = Tokenizer.load(tokenizer)
    for number, line in enumerate(_lines(paths, None), start=1):
        try:
            ids = [int(word) for word in line.split()]
        except ValueError as error:
            raise InputError(f"line {number} holds something that is no id: {error}", hint="koktok encode") from error
        print(loaded.decode(ids, skip_special_tokens=skip_special_tokens))


@app.command()
def normalize(
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    recipe: RecipeFile = None,
    fold: Annotated[list[str] | None, typer.Option(help="Switch a fold on; repeats=2 takes a number.")] = None,
    no_fold: Annotated[list[str] | None, typer.Option(help="Switch a fold off.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Print what changed, not the text.")] = False,
    field: Field = None,
) -> None:
    """Normalize line by line, or report what normalization changes (rule TAB before TAB after TAB times)."""
    from collections import Counter

    from koktok.normalize import Folds, Normalizer
    from koktok.recipe import Recipe

    values: dict[str, bool | int] = {}
    for name in fold or []:
        key, _, number = name.partition("=")
        if number and not number.isdecimal():
            raise UsageError(f"`{name}` wants a whole number", hint=f"--fold {key}=2")
        values[key] = int(number) if number else True
    values |= {name: 0 if name == "repeats" else False for name in no_fold or []}
    chosen = (Recipe.load(recipe) if recipe else Recipe()).changed(normalize=values)
    normalizer = Normalizer(Folds(**chosen.normalize.model_dump()))
    changes: Counter[tuple[str, str, str]] = Counter()
    for line in _lines(paths, field):
        if report:
            changes.update(normalizer.changes(line))
        else:
            print(normalizer(line))
    for (rule, before, after), times in sorted(changes.items(), key=lambda item: (-item[1], item[0])):
        print(rule, before, after, times, sep="\t")


@app.command()
def segment(
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    segmenter: Annotated[str, typer.Option(help="kiwi | mecab | whitespace.")] = "kiwi",
    policy: Annotated[str, typer.Option(help="Which boundaries count.")] = "morphemes",
    user_dictionary: Annotated[Path | None, typer.Option(help="Dictionary for Kiwi.")] = None,
    tsv: Annotated[bool, typer.Option("--tsv", help="A word a line: word, pieces, kinds of its cuts.")] = False,
    field: Field = None,
) -> None:
    """Show where words are cut: coloured on a terminal, with `|` elsewhere, or as TSV."""
    from koktok.build import prepare
    from koktok.console import coloured, stdout
    from koktok.count import count_words
    from koktok.normalize import Normalizer
    from koktok.pretokenize import Pattern
    from koktok.segment import Policy, segment_counts, segmenter_for

    chosen = Policy.parse(policy)
    analyser = segmenter_for(segmenter, user_dictionary=str(user_dictionary) if user_dictionary else None)
    normalizer, pattern = Normalizer(), Pattern()
    console = stdout()
    for lines in _batches(_lines(paths, field)):
        counts = prepare(count_words(lines), normalizer, pattern)
        found = segment_counts(counts, analyser, chosen)
        row = {word: i for i, word in enumerate(found.words)}
        for line in lines:
            words = [row[word] for word in pattern.pretokenize(normalizer(line))]
            if tsv:
                for i in words:
                    kinds = " ".join(cut.kind.label for cut in found.cuts(i))
                    print(found.words[i].strip(" "), "|".join(found.pieces(i)).strip(" "), kinds, sep="\t")
            else:
                console.print(coloured(piece for i in words for piece in found.pieces(i)))


@corpus_app.command("list")
def corpus_list() -> None:
    """List the corpora: name, eojeols, domain, licence."""
    from koktok.fetch import list_corpora

    for found in list_corpora():
        print(found.name, f"{found.eojeols}", found.domain, found.licence, found.title, sep="\t")


@corpus_app.command("show")
def corpus_show(name: Annotated[str, typer.Argument(help="Name of a corpus.")]) -> None:
    """Show the recipe of a corpus."""
    from koktok.fetch import show

    print(show(name))


@corpus_app.command("fetch")
def corpus_fetch(
    name: Annotated[str, typer.Argument(help="Name of a corpus.")],
    force: Annotated[bool, typer.Option("--force", help="Fetch again.")] = False,
) -> None:
    """Fetch a corpus into the cache and print the folder with its text."""
    from koktok.console import Talk
    from koktok.fetch import fetch

    with Talk() as talk:
        print(fetch(name, force=force, on_progress=talk))


def _sizes(text: str) -> list[int]:
    """Sizes of vocabularies as a user lists them."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise UsageError(f"`--sizes {text}` wants whole numbers", hint="--sizes 8000,16000,32000") from error


def _sources(paths: list[str], field: str | None, weights: list[str], *, quiet: bool) -> list[Source]:
    """A source per path, corpora fetched with progress, names made distinct, weights by name."""
    from koktok.console import Talk
    from koktok.corpus import Source
    from koktok.fetch import fetch

    sources: list[Source] = []
    for path in paths:
        if path.startswith("corpus:"):
            with Talk(quiet=quiet) as talk:
                fetch(path.removeprefix("corpus:"), on_progress=talk)
        source = Source.of(path, field=field)
        same = sum(other.name.split("#")[0] == source.name for other in sources)
        name = f"{source.name}#{same + 1}" if same else source.name
        sources.append(Source(name, source.paths, 1.0, field))
    by_name = {source.name: i for i, source in enumerate(sources)}
    for item in weights:
        name, _, number = item.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if name not in by_name or not 0 < value < float("inf"):
            raise UsageError(
                f"`--weight {item}` wants NAME=W with a number above 0 and one of the names {', '.join(by_name)}",
                hint=f"--weight {next(iter(by_name))}=2",
            )
        old = sources[by_name[name]]
        sources[by_name[name]] = Source(old.name, old.paths, value, field)
    return sources


def _lines(paths: list[str] | None, field: str | None) -> Iterator[str]:
    """Lines of files, or of standard input; what could not be decoded is told at the end."""
    from koktok.corpus import ReadReport, Source, read_lines

    report = ReadReport()
    yield from read_lines(Source.of(*(paths or ["-"]), field=field, name="text"), report=report)
    if report.bad_lines:
        places = ", ".join(report.bad_places)
        print(f"warning: {report.bad_lines} undecodable lines were left out: {places}", file=sys.stderr)


def _batches(lines: Iterator[str], size: int = 1000) -> Iterator[list[str]]:
    from itertools import islice

    while batch := list(islice(lines, size)):
        yield batch


def main() -> None:
    """Run the command line; every error that koktok knows becomes one message and an exit code."""
    # Typer 0.16 took click inside; where the class lives depends on the version, its name does not.
    wrong_words: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:  # newer Typers return this where older ones raise
            raise KeyboardInterrupt
        sys.exit(code)
    except KoktokError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except wrong_words as error:
        error.show()
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        print("\nstopped; the analyses so far are kept, and the same command goes on from there", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has gone: not our failure, and nothing more can be said on that pipe.
        sys.stderr.close()
        sys.exit(0)
