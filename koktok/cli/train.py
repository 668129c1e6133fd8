"""`koktok train`."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from koktok.cli.options import MOST_THREADS, Field, Paths, Quiet, RecipeFile, fraction, pairs, size_of, sources_of
from koktok.errors import InputError

if TYPE_CHECKING:
    from koktok.pipeline.road import Options
    from koktok.recipe import Recipe
    from koktok.text.sources import Source

CURVE = ("frontier.md", "frontier.json", "frontier.svg")

MODELS = "unigram | unigram-em | bpe | bpe-bytes | wordpiece | wordpiece-bytes | word | syllable | jamo | ngram | morpheme. [unigram]"
STYLE = "plain | bert | roberta | gpt | llama | t5: whose special tokens, roles and template. [plain]"
TEMPLATE = "What stands around a text: none | bos | eos | bos-eos | cls-sep | cls-sep-sep. [the style's]"
CHAT = "chatml | llama-3 | file with a Jinja template."

REQUIRE = (
    "Characters that must have a piece: ks-x-1001 (2,350 syllables) | none | a file of characters. "
    "[ks-x-1001 from 14,100 ids on]"
)

FRONTIER = (
    "Draw tokens against boundary F1 instead: the presets and points between them, at --sizes. Text, analyser, split, "
    "digits, specials and blocklist act; --preset, --keep and the costs do not."
)


DATA, MODEL, KOREAN, SPECIAL, OUTPUT = "Data", "Model", "Korean", "Special tokens", "Output"
"""The groups of options in `--help`."""


def train(
    paths: Paths,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write.", show_default=False, rich_help_panel=OUTPUT)
    ] = Path("koktok-tokenizer"),
    recipe: RecipeFile = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            parser=size_of,
            metavar="N",
            help="All ids: bytes, pieces, specials; 32k is 32000. [32000]",
            rich_help_panel=MODEL,
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help=MODELS, rich_help_panel=MODEL)] = None,
    preset: Annotated[
        str | None, typer.Option(help="short | balanced | aligned. [balanced]", rich_help_panel=MODEL)
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            help="Share of the morpheme boundaries that stay token borders, e.g. 0.8. [the preset's]",
            rich_help_panel=MODEL,
        ),
    ] = None,
    tokens_per_eojeol: Annotated[
        float | None, typer.Option(help="As many tokens as this, e.g. 1.8.", rich_help_panel=MODEL)
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="As many tokens as this SentencePiece model.", rich_help_panel=MODEL)
    ] = None,
    lam: Annotated[float | None, typer.Option(help="Cost of a token.", rich_help_panel=MODEL)] = None,
    mu: Annotated[float | None, typer.Option(help="Cost of a cut inside a morpheme.", rich_help_panel=MODEL)] = None,
    nu: Annotated[
        float | None, typer.Option(help="Cost of a boundary swallowed by a piece.", rich_help_panel=MODEL)
    ] = None,
    superwords: Annotated[
        float | None,
        typer.Option(
            help="At most this share of pieces crosses spaces; not for QA and NER. [0]", rich_help_panel=MODEL
        ),
    ] = None,
    inner_superwords: Annotated[
        bool | None,
        typer.Option("--inner-superwords", help="Superwords may swallow cuts inside words.", rich_help_panel=MODEL),
    ] = None,
    blocklist: Annotated[
        Path | None, typer.Option(help="File: words that no piece may hold, one a line.", rich_help_panel=MODEL)
    ] = None,
    personal_data: Annotated[
        str | None,
        typer.Option(
            help="drop | keep: pieces that look like telephone numbers and the like. [drop]", rich_help_panel=MODEL
        ),
    ] = None,
    junk: Annotated[
        str | None,
        typer.Option(help="drop | keep: pieces of web addresses, runs of one character. [drop]", rich_help_panel=MODEL),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="Share of the running characters that get a piece. [0.9995]", rich_help_panel=MODEL),
    ] = None,
    require: Annotated[str | None, typer.Option(help=REQUIRE, rich_help_panel=MODEL)] = None,
    reserve_script: Annotated[
        list[str] | None, typer.Option(help="SCRIPT=SHARE of the pieces, e.g. latin=0.3.", rich_help_panel=MODEL)
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="BPE: share of merges inside morphemes. [0.8]", rich_help_panel=MODEL)
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="koktok | spm: whose trainer. [koktok]", rich_help_panel=MODEL)
    ] = None,
    segmenter: Annotated[
        str | None, typer.Option(help="kiwi | mecab | whitespace. [kiwi]", rich_help_panel=KOREAN)
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Which boundaries count, e.g. morphemes, josa, j,e,vcp,xsv.", rich_help_panel=KOREAN),
    ] = None,
    segment_mass: Annotated[
        float | None,
        typer.Option(
            help="Analyse words that cover this share of the text; endings tell the rest. [1]", rich_help_panel=KOREAN
        ),
    ] = None,
    user_dictionary: Annotated[
        str | None,
        typer.Option(help="Dictionary for Kiwi: form TAB tag TAB score. [that of --recipe]", rich_help_panel=KOREAN),
    ] = None,
    split: Annotated[str | None, typer.Option(help="eojeol | scripts. [eojeol]", rich_help_panel=KOREAN)] = None,
    digits: Annotated[str | None, typer.Option(help="single | groups | free. [single]", rich_help_panel=KOREAN)] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="koktok, or for bpe-bytes gpt2 | llama3 | qwen2 | o200k | cl100k. [koktok]", rich_help_panel=KOREAN
        ),
    ] = None,
    prefix_space: Annotated[
        bool | None,
        typer.Option(
            help="A space before the first word, off again in decoding. [on for --style bert, roberta, t5]",
            rich_help_panel=KOREAN,
        ),
    ] = None,
    jamo: Annotated[
        bool | None, typer.Option("--jamo", help="Train on conjoining jamo.", rich_help_panel=KOREAN)
    ] = None,
    jamo_fallback: Annotated[
        bool,
        typer.Option(
            "--jamo-fallback", help="Syllables whole; jamo only for those without a piece.", rich_help_panel=KOREAN
        ),
    ] = False,
    min_count: Annotated[
        int | None,
        typer.Option(
            help="Rarer words are not trained on. [all count, of much text the rare ones by a sample]",
            rich_help_panel=DATA,
        ),
    ] = None,
    specials: Annotated[
        str | None, typer.Option(help="Special tokens, separated by commas.", rich_help_panel=SPECIAL)
    ] = None,
    reserved: Annotated[
        int | None, typer.Option(help="Slots kept free for later. [0]", rich_help_panel=SPECIAL)
    ] = None,
    style: Annotated[str | None, typer.Option(help=STYLE, rich_help_panel=SPECIAL)] = None,
    template: Annotated[str | None, typer.Option(help=TEMPLATE, rich_help_panel=SPECIAL)] = None,
    chat_template: Annotated[str | None, typer.Option(help=CHAT, rich_help_panel=SPECIAL)] = None,
    model_max_length: Annotated[
        int | None, typer.Option(help="Longest input in tokens. [the style's]", rich_help_panel=SPECIAL)
    ] = None,
    padding_side: Annotated[
        str | None, typer.Option(help="left | right. [the style's]", rich_help_panel=SPECIAL)
    ] = None,
    pad_to_multiple: Annotated[
        int | None, typer.Option(help="Reserved slots up to a multiple, e.g. 64. [1]", rich_help_panel=SPECIAL)
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option(help="NAME=W: counts of that source times W.", rich_help_panel=DATA)
    ] = None,
    field: Field = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of lines kept for the closing table. [0.05]", rich_help_panel=DATA)
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads of the analyser. [all]")] = None,
    cache: Annotated[bool, typer.Option(help="Keep analyses for the next training.")] = True,
    lexicon: Annotated[
        Path | None,
        typer.Option(
            help="Words that were analysed elsewhere: Parquet, see the guide to many machines.", rich_help_panel=KOREAN
        ),
    ] = None,
    compare: Annotated[bool, typer.Option(help="Train plain SentencePiece beside it.", rich_help_panel=OUTPUT)] = True,
    frontier: Annotated[bool, typer.Option("--frontier", help=FRONTIER, rich_help_panel=OUTPUT)] = False,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes for --frontier, separated by commas. [--vocab-size]", rich_help_panel=OUTPUT),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done and cost.", rich_help_panel=OUTPUT)
    ] = False,
    log: Annotated[
        str | None, typer.Option(help="File for the trainer's log (JSON); `json` for stderr.", rich_help_panel=OUTPUT)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a tokenizer on Korean text and write its folder."""
    from koktok.blocklist import Blocklist
    from koktok.formats.styles import chat_template_of
    from koktok.recipe import SCRIPTS, Recipe

    base = Recipe.load(recipe) if recipe else Recipe()
    without = {"user_dictionary": "", "user_dictionary_sha256": ""} if user_dictionary == "" else {}
    chosen = base.changed(
        segment={"segmenter": segmenter, "policy": policy, "mass": segment_mass, **without},
        pretokenize={"split": split, "digits": digits, "pattern": pattern, "prefix_space": prefix_space},
        train={
            "vocab_size": vocab_size,
            "model": model,
            "backend": backend,
            "preset": preset,
            "keep": keep,
            "tokens_per_eojeol": tokens_per_eojeol,
            "lam": lam,
            "mu": mu,
            "nu": nu,
            "superwords": superwords,
            "inner_superwords": inner_superwords,
            "blocklist": Blocklist.load(blocklist).lines if blocklist else None,
            "personal_data": personal_data,
            "junk": junk,
            "character_coverage": coverage,
            "required": _required(require),
            "reserve_script": pairs(
                "--reserve-script",
                reserve_script,
                fraction,
                wanted=f"SCRIPT=SHARE with one of {', '.join(SCRIPTS)}, and a share from 0 to 1",
                example="latin=0.3",
                names=SCRIPTS,
            )
            or None,
            "share": share,
            "min_count": min_count,
            "specials": tuple(specials.split(",")) if specials is not None else None,
            "reserved": reserved,
        },
        special={
            "style": style,
            "template": template,
            "chat_template": chat_template_of(chat_template),
            "model_max_length": model_max_length,
            "padding_side": padding_side,
            "pad_to_multiple": pad_to_multiple,
        },
        jamo="fallback" if jamo_fallback else jamo,
        holdout=holdout,
        sources=(),
    )
    from koktok.cli import training_shown as shown
    from koktok.files import check_file, check_folder
    from koktok.formats.folder import CARD, TOKENIZER
    from koktok.pipeline import road
    from koktok.pipeline.baseline import compare as compare_with_peers
    from koktok.pipeline.road import Options
    from koktok.pipeline.user_dictionary import with_dictionary
    from koktok.progress import Talk
    from koktok.train.summary import summary

    chosen, dictionary = with_dictionary(chosen, user_dictionary or None)
    check_folder(out, TOKENIZER, CURVE if frontier else (CARD,))
    sources = sources_of(paths, field, weight or [], quiet=quiet)
    if dry_run:
        shown.print_estimate(sources, chosen, threads)
        return
    options = Options(dictionary, like, None if cache else False, lexicon, threads, measured=True)
    if frontier:
        _draw(sources, chosen, out, _sizes(sizes) if sizes else [chosen.train.vocab_size], options, quiet=quiet)
        return
    if log is not None and log != "json":  # what is wrong with its place is better told now than behind the training
        if not Path(log).absolute().parent.is_dir():
            raise InputError(f"there is no folder for the log `{log}`", hint="--log json")
        check_file(log, shown.is_log)
    with Talk(quiet=quiet) as talk:
        made = road.train(sources, chosen, **vars(replace(options, tell=shown.announced(talk, chosen))))
        talk("measure", 0, None)
        if compare and not made.reading.pruned:
            shown.tell_of_peer(made, talk)
        compared = compare_with_peers(made, peer=compare)
        made.save(out, compared.rows)
    shown.print_training(made, compared, out)
    for line in summary(made.log):
        talk.note(line)
    if log is not None:
        shown.write_log(log, {**made.log, "stages_seconds": made.seconds, "digest": made.tokenizer.vocab.digest()})


def _draw(
    sources: Sequence[Source], recipe: Recipe, out: Path, sizes: list[int], options: Options, *, quiet: bool
) -> None:
    """The curve: a table and a plot on stdout; the same, a drawing and the recipe in the folder."""
    import json

    from koktok.files import write_folder
    from koktok.formats.folder import MARK, TOKENIZER
    from koktok.pipeline import curve
    from koktok.progress import Talk, stdout, table
    from koktok.report.frontier import COLUMNS, TITLE, cells, draw, plot, to_dict, to_markdown

    with Talk(quiet=quiet) as talk:
        rows, against = curve.train_frontier(sources, recipe, vocab_sizes=sizes, options=replace(options, tell=talk))
    files: dict[str, str | bytes] = {
        "frontier.md": to_markdown(rows, against),
        "frontier.json": json.dumps(to_dict(rows, against), ensure_ascii=False, indent=2) + "\n",
        "frontier.svg": draw(rows, against),
        MARK: recipe.to_toml(),
    }
    write_folder(out, files, TOKENIZER)
    if sys.stdout.isatty():
        table(TITLE, COLUMNS, cells(rows, against))
        print("★ no other point has both fewer tokens and a higher F1\n")
    else:
        print(to_markdown(rows, against))
    stdout().print(plot(rows, against))


def _required(name: str | None) -> str | list[str] | None:
    """What `--require` names: a list of its own, or the lines of a file of characters."""
    if name in (None, "auto", "none", "ks-x-1001"):
        return name
    try:
        lines = Path(str(name)).read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"`--require {name}` is no known list, and cannot be read as a file of characters: {error}",
            hint="--require ks-x-1001 | none | FILE",
        ) from error
    if not lines:
        raise InputError(f"`{name}` holds no characters", hint="--require ks-x-1001 | none | FILE")
    return [unicodedata.normalize("NFC", line) for line in lines]


def _sizes(text: str) -> list[int]:
    """Sizes of vocabularies as a user lists them."""
    return [size_of(word) for word in text.split(",")]
