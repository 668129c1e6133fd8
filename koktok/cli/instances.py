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
    from koktok.instances import Masking, Packed
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


class Sentences(StrEnum):
    """What `--sentences` takes."""

    newline = "newline"
    kiwi = "kiwi"


def instances(
    tokenizer: Annotated[
        str, typer.Argument(help="Folder of a tokenizer, trained or imported; or `show`.", show_default=False)
    ],
    text: Annotated[
        list[str],
        typer.Argument(help="Files, folders, `corpus:NAME`, `-`; or one packed folder.", show_default=False),
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
    epochs: Annotated[int, typer.Option(help="Epochs that are written, each masked in its own way.")] = 1,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Write no masks: KoktokCollator masks.")] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is left to chance.")] = 0,
    across: Annotated[bool, typer.Option("--across", help="mlm: go on into the next document.")] = False,
    pairs: Annotated[PairsOf, typer.Option(help="bert: next sentence, or sentence order.")] = PairsOf.next,
    short: Annotated[float, typer.Option(help="bert: share of shorter pairs.")] = 0.1,
    pack: Annotated[PackBy, typer.Option(help="lm: the stream cut at the length, or whole documents.")] = PackBy.chunks,
    documents: Annotated[By, typer.Option(help="Where a document ends.")] = By.auto,
    sentences: Annotated[Sentences, typer.Option(help="What a sentence is.")] = Sentences.newline,
    segmenter: Annotated[str, typer.Option(help="kiwi | mecab | whitespace (no morphemes).")] = "kiwi",
    policy: Annotated[str, typer.Option(help="Which borders of morphemes count.")] = "morphemes",
    packed: Annotated[Path | None, typer.Option(help="Folder for ids and borders. [OUT-packed]")] = None,
    shard_tokens: Annotated[int | None, typer.Option(help="Tokens in a packed file. [16777216]")] = None,
    shard_instances: Annotated[int | None, typer.Option(help="Instances in a file. [65536]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="[one for each core]")] = None,
    field: Field = None,
    n: Annotated[int, typer.Option("--n", help="show: how many instances.")] = 3,
    quiet: Quiet = False,
) -> None:
    """Make training instances of text; `koktok instances show FOLDER` looks at them.

    Ids and the borders of sentences, eojeols and morphemes are packed once; instances are made of that, each a function of
    seed, epoch and document. A run that was stopped goes on when the same command is given again.
    """
    if tokenizer == "show":
        for folder in text:
            _show(folder, n)
        return
    if out is None:
        raise UsageError("instances want a folder", hint="--out FOLDER")
    from koktok.instances import Packed, Plan, write_instances
    from koktok.instances.write import SHARD_INSTANCES
    from koktok.progress import Talk, counted

    masking = _masking(mask.value, rate, epochs, masks, randoms, most, content)
    plan = None
    if kind != InstanceKind.packed:
        plan = Plan(kind.value, length, seed, masking, across, pairs.value, short, pack.value)  # type: ignore[arg-type]
    with Talk(quiet=quiet) as talk:
        if len(text) == 1 and (Path(text[0]) / "tokens.json").is_file():
            made = Packed.open(text[0])
        else:
            place = out if plan is None else packed or out.with_name(f"{out.name}-packed")
            made = _packed(
                tokenizer, text, place, field, documents.value, sentences.value, segmenter, policy,
                shard_tokens, workers, talk, quiet=quiet,
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
    unit: str, rate: str, epochs: int, masks: float, randoms: float, most: int | None, content: float
) -> Masking:
    from koktok.instances import Masking

    try:
        rates = tuple(float(part) for part in rate.split(":"))
    except ValueError:
        rates = (0.0,)
    given = rates[0] if len(rates) == 1 else rates
    return Masking(unit, given, epochs, masks, randoms, most, content)  # type: ignore[arg-type]


def _packed(
    tokenizer: str,
    text: list[str],
    place: Path,
    field: str | None,
    documents: str,
    sentences: str,
    segmenter: str,
    policy: str,
    shard_tokens: int | None,
    workers: int | None,
    talk: Talk,
    *,
    quiet: bool,
) -> Packed:
    from koktok.foreign import load
    from koktok.instances.borders import WordCuts
    from koktok.instances.packing import SHARD_TOKENS, write_packed
    from koktok.segment import Policy
    from koktok.segment.cache import CachedSegmenter
    from koktok.segment.workers import Workers, supervised
    from koktok.text.sources import ReadReport

    report = ReadReport()
    analyser = supervised(segmenter, processes=workers)
    try:
        made = write_packed(
            load(tokenizer),
            sources_of(text, field, [], quiet=quiet),
            place,
            lexicon=WordCuts(
                analyser if segmenter == "whitespace" else CachedSegmenter(analyser), Policy.parse(policy)
            ),
            documents=documents,  # type: ignore[arg-type]
            sentences=sentences,  # type: ignore[arg-type]
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
