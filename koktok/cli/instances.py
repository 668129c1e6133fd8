"""`koktok instances`: text to training instances, and a look at them."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from koktok.cli.options import MOST_THREADS, Field, Quiet, sources_of, tell_bad_lines
from koktok.errors import UsageError

if TYPE_CHECKING:
    from koktok.instances import Cleaning, Masking, Packed
    from koktok.progress import Talk


class InstanceKind(StrEnum):
    """What `--kind` takes."""

    mlm = "mlm"
    bert = "bert"
    lm = "lm"
    t5 = "t5"
    packed = "packed"


class MaskUnit(StrEnum):
    """What `--mask` takes."""

    token = "token"
    eojeol = "eojeol"
    morpheme = "morpheme"
    stem = "stem"
    span = "span"


class PairsOf(StrEnum):
    """What `--pairs` takes."""

    next = "next"
    order = "order"


class PackBy(StrEnum):
    """What `--pack` takes."""

    chunks = "chunks"
    best_fit = "best-fit"


class By(StrEnum):
    """What `--documents` takes."""

    auto = "auto"
    blank = "blank"
    file = "file"
    record = "record"


class ExportTo(StrEnum):
    """What `--to` takes."""

    hdf5 = "hdf5"
    megatron = "megatron"


class Sentences(StrEnum):
    """What `--sentences` takes."""

    newline = "newline"
    kiwi = "kiwi"


def instances(
    tokenizer: Annotated[
        str,
        typer.Argument(
            help="Folder of a tokenizer, trained or imported; or `show`, `stats`, `export`.", show_default=False
        ),
    ],
    text: Annotated[
        list[str],
        typer.Argument(help="Files, folders, `corpus:NAME`, `-`; or one folder of instances.", show_default=False),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the instances.")] = None,
    kind: Annotated[
        InstanceKind, typer.Option(help="What is made; `packed` stops at ids and borders.")
    ] = InstanceKind.mlm,
    length: Annotated[int, typer.Option(help="Most tokens of an instance.")] = 512,
    mask: Annotated[MaskUnit, typer.Option(help="What is masked together.")] = MaskUnit.eojeol,
    rate: Annotated[str, typer.Option(help="Share of tokens that are masked; 0.3:0.15 changes it by epoch.")] = "0.15",
    masks: Annotated[float, typer.Option(help="Share of these that become the mask token.")] = 0.8,
    randoms: Annotated[float, typer.Option(help="Share of these that become ordinary pieces.")] = 0.1,
    most: Annotated[int | None, typer.Option(help="Most masked tokens of an instance.")] = None,
    content: Annotated[float, typer.Option(help="How many times likelier stems are masked than endings.")] = 1.0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Meet the rate to the token: a unit may be masked in part.")
    ] = False,
    epochs: Annotated[int, typer.Option(help="Epochs that are written, each masked in its own way.")] = 1,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Write no masks: KoktokCollator masks.")] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is left to chance.")] = 0,
    across: Annotated[bool, typer.Option("--across", help="mlm: go on into the next document.")] = False,
    pairs: Annotated[PairsOf, typer.Option(help="bert: next sentence, or sentence order.")] = PairsOf.next,
    short: Annotated[float, typer.Option(help="bert: share of shorter pairs.")] = 0.1,
    pack: Annotated[PackBy, typer.Option(help="lm: the stream cut at the length, or whole documents.")] = PackBy.chunks,
    weight: Annotated[
        list[str] | None, typer.Option(help="NAME=W: how often a source is read beside others.", show_default=False)
    ] = None,
    clean: Annotated[
        str, typer.Option(help="html, control, personal, boilerplate, short, repeats, language; or all, none.")
    ] = "none",
    shortest: Annotated[str, typer.Option(help="clean: fewest characters of a line and of a document.")] = "6:30",
    hangul: Annotated[float, typer.Option(help="clean: least share of Hangul in a document.")] = 0.3,
    alike: Annotated[float, typer.Option(help="clean: similarity from which a line repeats another.")] = 0.8,
    documents: Annotated[By, typer.Option(help="Where a document ends.")] = By.auto,
    sentences: Annotated[Sentences, typer.Option(help="What a sentence is.")] = Sentences.newline,
    segmenter: Annotated[str, typer.Option(help="As koktok train; whitespace: no morphemes.")] = "kiwi",
    policy: Annotated[str, typer.Option(help="Which borders of morphemes count.")] = "morphemes",
    packed: Annotated[Path | None, typer.Option(help="Folder for ids and borders. [OUT-packed]")] = None,
    shard_tokens: Annotated[int | None, typer.Option(help="Tokens in a packed file. [16777216]")] = None,
    shard_instances: Annotated[int | None, typer.Option(help="Instances in a file. [65536]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="[one for each core]")] = None,
    field: Field = None,
    n: Annotated[int, typer.Option("--n", help="show: how many instances.")] = 3,
    to: Annotated[
        ExportTo | None, typer.Option(help="export: for NVIDIA's BERT, or Megatron.", show_default=False)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make training instances of text.

    `koktok instances show FOLDER` looks at them, `koktok instances stats FOLDER [-o PAGE.html]` counts them, and
    `koktok instances export FOLDER --to hdf5 | megatron -o OUT` writes them for other trainers (for Megatron the packed folder).

    Ids and the borders of sentences, eojeols and morphemes are packed once; instances are made of that, each a function of
    seed, epoch and document. A run that was stopped goes on when the same command is given again.
    """
    if tokenizer == "show":
        for folder in text:
            _show(folder, n)
        return
    if tokenizer == "stats":
        _stats(text[0], out)
        return
    if out is None:
        raise UsageError("instances want a folder", hint="--out FOLDER")
    if tokenizer == "export":
        _export(text[0], to, out, documents=kind == InstanceKind.lm, quiet=quiet)
        return
    from koktok.instances import Packed, Plan, write_instances
    from koktok.instances.write import SHARD_INSTANCES
    from koktok.progress import Talk, counted

    masking = _masking(mask.value, rate, epochs, masks, randoms, most, content, exact=exact)
    cleaning = _cleaning(clean, shortest, hangul, alike)
    plan = None
    if kind != InstanceKind.packed:
        plan = Plan(
            kind.value, length, seed, masking, across, pairs.value, short, pack.value, _weights(weight or [])  # type: ignore[arg-type]
        )  # fmt: skip
    with Talk(quiet=quiet) as talk:
        if len(text) == 1 and (Path(text[0]) / "tokens.json").is_file():
            made = Packed.open(text[0])
            if cleaning:
                raise UsageError(
                    f"`{text[0]}` is packed, and cleaning goes before", hint="--clean none, or the text itself"
                )
        else:
            place = out if plan is None else packed or out.with_name(f"{out.name}-packed")
            made = _packed(
                tokenizer, text, place, field, weight or [], documents.value, sentences.value, segmenter, policy,
                shard_tokens, workers, talk, cleaning, quiet=quiet,
            )  # fmt: skip
        if plan is None:
            done = f"{counted(made.manifest['n_tokens'], 'token')}, {counted(made.manifest['n_documents'], 'document')}"
        else:
            manifest = write_instances(
                made,
                plan,
                out,
                epochs=epochs,
                masked=not dynamic,
                shard_instances=shard_instances or SHARD_INSTANCES,
                workers=workers,
                tell=talk,
            )
            done = counted(sum(manifest["n_instances"]), "instance")
    if not quiet:
        print(f"{done} in {out}", file=sys.stderr)


def _masking(
    unit: str, rate: str, epochs: int, masks: float, randoms: float, most: int | None, content: float, *, exact: bool
) -> Masking:
    from koktok.instances import Masking

    try:
        rates = tuple(float(part) for part in rate.split(":"))
    except ValueError:
        rates = (0.0,)
    given = rates[0] if len(rates) == 1 else rates
    return Masking(unit, given, epochs, masks, randoms, most, content, exact)  # type: ignore[arg-type]


def _cleaning(steps: str, shortest: str, hangul: float, alike: float) -> Cleaning | None:
    from koktok.instances import Cleaning

    try:
        line, document = (int(part) for part in shortest.split(":"))
    except ValueError:
        raise UsageError(f"`{shortest}`; wanted two whole numbers", hint="--shortest 6:30") from None
    return Cleaning.parse(steps, line=line, document=document, hangul=hangul, alike=alike)


def _weights(given: list[str]) -> tuple[tuple[str, float], ...]:
    found = []
    for word in given:
        name, _, number = word.rpartition("=")
        try:
            found.append((name, float(number)))
        except ValueError:
            raise UsageError(f"`{word}`; wanted NAME=W with a number above 0", hint="--weight news=2") from None
    return tuple(found)


def _packed(
    tokenizer: str,
    text: list[str],
    place: Path,
    field: str | None,
    weights: list[str],
    documents: str,
    sentences: str,
    segmenter: str,
    policy: str,
    shard_tokens: int | None,
    workers: int | None,
    talk: Talk,
    cleaning: Cleaning | None,
    *,
    quiet: bool,
) -> Packed:
    from koktok.foreign import load
    from koktok.instances.packing import SHARD_TOKENS, write_packed
    from koktok.instances.word_cuts import WordCuts
    from koktok.segment import Policy
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import Workers, supervised
    from koktok.text.sources import ReadReport

    report = ReadReport()
    analyser = supervised(segmenter, processes=workers)
    try:
        made = write_packed(
            load(tokenizer),
            sources_of(text, field, weights, quiet=quiet),
            place,
            lexicon=WordCuts(
                analyser if segmenter == "whitespace" else CachedSegmenter(analyser), Policy.parse(policy)
            ),
            documents=documents,  # type: ignore[arg-type]
            sentences=sentences,  # type: ignore[arg-type]
            cleaning=cleaning,
            shard_tokens=shard_tokens or SHARD_TOKENS,
            threads=workers,
            report=report,
            tell=talk,
        )
    finally:
        if isinstance(analyser, Workers):
            analyser.close()
    if report.bad_lines and not quiet:
        tell_bad_lines(report, "left out")
    return made


STYLES = {"text": "", "special": "dim", "mask": "bold yellow", "random": "bold magenta", "kept": "bold cyan"}


def _show(folder: str, n: int) -> None:
    from rich.text import Text

    from koktok.instances.display import rows_of, tokens_of_row
    from koktok.progress import stdout

    for number, row in enumerate(rows_of(folder, n)):
        line = Text(f"{number}: ", style="dim")
        for i, (shown, part) in enumerate(tokens_of_row(folder, row)):
            line.append(" " if i else "")
            line.append(shown, style=STYLES[part])
        told = ", ".join(f"{name} {value}" for name, value in row.items() if isinstance(value, int))
        line.append(f"\n{told}" if told else "", style="dim")
        stdout().print(line)


def _stats(folder: str, out: Path | None) -> None:
    from koktok.files import write_file
    from koktok.instances.instance_statistics import statistics_of
    from koktok.progress import print_line, table
    from koktok.report.instance_page import sheets_of, statistics_page

    found = statistics_of(folder)
    if out is not None:
        write_file(out, statistics_page(found, Path(folder).name).encode())
    for i, sheet in enumerate(sheets_of(found)):
        if i:
            print_line()
        columns = [english for english, _ in sheet.columns]
        table(sheet.title[0], columns, [[row[0].split("|")[0], *row[1:]] for row in sheet.rows])
        for step, texts in sheet.examples.items():
            print_line(f"{step}, for instance: {texts[0][:50]}")


def _export(folder: str, to: ExportTo | None, out: Path, *, documents: bool, quiet: bool) -> None:
    from koktok.instances import Packed
    from koktok.instances.exporting import to_hdf5, to_megatron
    from koktok.progress import counted

    if to is None:
        raise UsageError("the layout is missing", hint="--to hdf5 | megatron")
    if to == ExportTo.hdf5:
        done = counted(to_hdf5(folder, out)["n_instances"], "instance")
    else:
        done = counted(to_megatron(Packed.open(folder), out, documents=documents)["n_sequences"], "sequence")
    if not quiet:
        print(f"{done} in {out}", file=sys.stderr)
