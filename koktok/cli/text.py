"""Text in, something of it out: `koktok encode`, `decode`, `normalize` and `segment`."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from koktok.cli.options import (
    MOST_THREADS,
    Field,
    Folder,
    Force,
    Quiet,
    RecipeFile,
    batches,
    lines_of_paths,
    sources_of,
    tell_left_out,
)
from koktok.errors import InputError, UsageError

if TYPE_CHECKING:
    from koktok.protocol.tokenizer import Tokenizer
    from koktok.text.sources import Source


def encode(
    tokenizer: Folder,
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    shape: Annotated[
        Literal["ids", "pieces", "json"] | None, typer.Option("--as", help="Output for each line. [ids]")
    ] = None,
    format: Annotated[  # noqa: A002
        Literal["npy", "arrow", "bin"] | None,
        typer.Option(help="Write token files for pre-training to --out, not lines."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for token files.")] = None,
    shard_tokens: Annotated[int | None, typer.Option(help="Tokens per file. [67108864]")] = None,
    documents: Annotated[
        Literal["records", "files"] | None,
        typer.Option(help="Token files: a document is a line or record, or a whole file. [records]"),
    ] = None,
    bos: Annotated[bool, typer.Option("--bos", help="Token files: add the BOS token before every document.")] = False,
    eos: Annotated[
        bool, typer.Option("--eos", help="Token files: add the token that ends a document after every document.")
    ] = False,
    eos_token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Token files: add this special token after every document.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MOST_THREADS, help="Token files: number of threads. [one for each core]")
    ] = None,
    field: Field = None,
    sample_alpha: Annotated[
        float | None, typer.Option(help="Sample (Unigram): larger values stay closer to the best path.")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Sample (BPE, WordPiece): probability of skipping a merge.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed for sampling. [0]")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    r"""Encode line by line, or record by record: ids, pieces (spaces shown as ▁), or JSON with offsets. With --format, into token files.

    Each line of text, or record, is one line of output; a line break inside a record is shown as \n. Token files contain flat ids
    and the boundaries of documents, for memory mapping by numpy, Arrow or Megatron-LM. The same command resumes a stopped run after
    its last finished file.

    Example: koktok encode my-tokenizer text.txt --as pieces
    """
    import json

    from koktok.model.vocab import readable
    from koktok.progress import SPACE, print_line, print_record
    from koktok.tokenizer import TrainedTokenizer
    from koktok.tokenizer.open import load_folder

    loaded = load_folder(tokenizer)
    if format is not None or out is not None:
        if format is None or out is None:
            raise UsageError(
                "expected both --format and --out for token files, got one of them", hint="--format npy --out FOLDER"
            )
        if sample_alpha is not None or dropout is not None or seed is not None:
            raise UsageError("token files hold no samples", hint="leave out --sample-alpha, --dropout and --seed")
        if shape is not None:
            raise UsageError("`--as` is for lines, and token files hold ids", hint="leave out --as")
        options: dict[str, Any] = {
            "format": format,
            "documents": documents or "records",
            "threads": threads,
            "force": force,
        }
        options |= {"before": loaded.edge("bos", token=bos), "after": loaded.edge("eos", token=eos_token or eos)}
        if shard_tokens is not None:
            options["shard_tokens"] = shard_tokens
        _write_token_files(loaded, sources_of(paths or ["-"], field, [], quiet=quiet), out, options, quiet=quiet)
        return
    if shard_tokens is not None or documents or bos or eos or eos_token or threads is not None:
        raise UsageError(
            "--shard-tokens, --documents, --bos, --eos, --eos-token and --threads are for token files",
            hint="--format npy --out FOLDER",
        )
    solve = loaded.encode
    if sample_alpha is not None or dropout is not None:
        import numpy as np

        drawn = np.random.default_rng(seed or 0)  # one for all lines: equal lines get samples of their own
        solve = partial(loaded.sample, alpha=sample_alpha, dropout=dropout, seed_or_rng=drawn)
    elif seed is not None:
        raise UsageError("`--seed` is for samples", hint="--sample-alpha 0.1 or --dropout 0.1")
    kind = loaded.vocab.kind if isinstance(loaded, TrainedTokenizer) else ""
    for number, line in enumerate(lines_of_paths(paths, field, aligned=True, quiet=quiet), start=1):
        encoding = solve(line)
        match shape:
            case "ids" | None:
                print(*encoding.ids)
            case "pieces":
                print_record(" ".join(readable(piece, kind).replace(" ", SPACE) for piece in encoding.pieces))
            case "json":
                row = {"record": number, "ids": encoding.ids, "pieces": encoding.pieces, "offsets": encoding.offsets}
                print_line(json.dumps(row, ensure_ascii=False))


def _write_token_files(
    tokenizer: Tokenizer,
    sources: list[Source],
    out: Path,
    options: dict[str, Any],
    *,
    quiet: bool,
) -> None:
    from koktok.progress import ConsoleProgress, counted
    from koktok.text.records import ReadReport
    from koktok.token_files import write_token_files

    report = ReadReport()
    with ConsoleProgress(quiet=quiet) as progress:
        manifest = write_token_files(
            tokenizer,
            sources,
            out,
            report=report,
            on_progress=progress,
            **options,
        )
    n = sum(shard["documents"] for shard in manifest["shards"])
    size = f"{counted(manifest['tokens'], 'token')} ({manifest['dtype']})"
    if not quiet:
        print(f"{size}, {counted(n, 'document')}, {counted(len(manifest['shards']), 'file')} in {out}", file=sys.stderr)
    if not quiet:
        tell_left_out(report)


def decode(
    tokenizer: Folder,
    paths: Annotated[list[str] | None, typer.Argument(help="Files of ids; standard input by default.")] = None,
    skip_special_tokens: Annotated[bool, typer.Option("--skip-special-tokens", help="Omit special tokens.")] = False,
    quiet: Quiet = False,
) -> None:
    """Decode line by line: ids separated by spaces become text.

    Example: koktok decode my-tokenizer ids.txt
    """
    from koktok.progress import print_line
    from koktok.tokenizer.open import load_folder

    loaded = load_folder(tokenizer)
    for number, line in enumerate(lines_of_paths(paths, None, aligned=True, quiet=quiet), start=1):
        try:
            ids = [int(word) for word in line.split()]
        except ValueError as error:
            raise InputError(
                f"expected ids separated by spaces, got `{line.strip()[:40]}` in line {number}",
                hint="koktok encode FOLDER TEXT.txt | koktok decode FOLDER",
            ) from error
        print_line(loaded.decode(ids, skip_special_tokens=skip_special_tokens))


FOLDS = (
    "Folds.zero_width Folds.fullwidth Folds.spaces Folds.quotes Folds.dashes Folds.halfwidth_jamo Folds.repeats "
    "Folds.compatibility Folds.lone_jamo"
)
NORMALIZE_OPTIONS = {"Optional normalization (default: that of the recipe)": FOLDS}
"""What `koktok normalize` takes of the Recipe."""


def normalize(
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    recipe: RecipeFile = None,
    *,
    report: Annotated[bool, typer.Option("--report", help="Print the changes, not the text.")] = False,
    field: Field = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    r"""Normalize line by line or record by record, or report what normalization changes (rule TAB before TAB after TAB count).

    A line break inside a record is printed as \n, so that each record is one line.

    Example: koktok normalize text.txt --fullwidth
    """
    from collections import Counter

    from koktok.progress import counted, print_line, print_record
    from koktok.recipe import Recipe

    normalizer = (Recipe.load(recipe) if recipe else Recipe()).changed(normalize=settings).normalizer
    changes: Counter[tuple[str, str, str]] = Counter()
    private = 0
    for line in lines_of_paths(paths, field, aligned=True, quiet=quiet):
        if report:
            changes.update(normalizer.changes(line))
            private += len(HANYANG.findall(line))
        else:
            print_record(normalizer(line))
    for (rule, before, after), times in sorted(changes.items(), key=lambda item: (-item[1], item[0])):
        print_line(f"{rule}\t{before}\t{after}\t{times}")
    if report and not changes and not quiet:
        print("normalization changes nothing", file=sys.stderr)
    if private and not quiet:
        print(
            f"{counted(private, 'character')} in private use, as old Hangul is written by HWP: each becomes three bytes\n"
            "hint: pip install hypua2jamo, and hypua2jamo.translate(text) before training and encoding",
            file=sys.stderr,
        )


HANYANG = re.compile("[\ue0bc-\uf8f7]")
"""Hanyang's code points of old Hangul, in Unicode's private use."""

SEGMENT_OPTIONS = {"": "segmenter policy user_dictionary"}
"""What `koktok segment` takes of the Recipe."""


def segment(
    paths: Annotated[list[str] | None, typer.Argument(help="Files; standard input by default.")] = None,
    *,
    tsv: Annotated[bool, typer.Option("--tsv", help="One word per line: word, pieces, kinds of its cuts.")] = False,
    labels: Annotated[
        Literal["bytes", "characters"] | None,
        typer.Option(
            help="Print each line as JSON: its cuts, and a label for each byte or character (eojeol, particle, morpheme, inside or none)."
        ),
    ] = None,
    learn: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Learn a segmentation from the words alone, for `--segmenter dpe:FOLDER`; --segmenter adds the tags of an analyser.",
        ),
    ] = None,
    field: Field = None,
    force: Force = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Show where words are cut: `|` between the pieces, colours on a terminal, or TSV. With --learn, learn a segmentation.

    Example: koktok segment text.txt
    """
    from koktok.count import count_words
    from koktok.count.prepared import prepare
    from koktok.progress import print_line, print_pieces
    from koktok.recipe import Recipe
    from koktok.segment import Policy, segment_counts, segmenter_for
    from koktok.segment.labels import labelled, line_cuts
    from koktok.text.normalize import Normalizer
    from koktok.text.pretokenize import Pattern

    if labels and (tsv or learn):
        raise UsageError("`--labels` prints JSON, without --tsv and --learn", hint="koktok segment FILE --labels bytes")
    recipe = Recipe().changed(**(settings | {"user_dictionary": None}))
    if learn is not None:
        if tsv:
            raise UsageError("--tsv shows cuts, and --learn writes a folder", hint="leave out --tsv")
        _learn_segmenter(sources_of(paths or ["-"], field, [], quiet=quiet), learn, settings, force=force, quiet=quiet)
        return
    chosen = Policy.parse(recipe.segment.policy)
    analyser = segmenter_for(recipe.segment.segmenter, user_dictionary=settings.get("user_dictionary") or None)
    normalizer, pattern = Normalizer(), Pattern()
    for records in batches(lines_of_paths(paths, field, aligned=True, quiet=quiet)):
        counts = prepare(count_words(line for record in records for line in record.split("\n")), normalizer, pattern)
        segmented = segment_counts(counts, analyser, chosen)
        row = {word: i for i, word in enumerate(segmented.words)}
        for record in records:
            words = pattern.pretokenize(normalizer(record))
            if labels:  # a run of line breaks is a pretoken, and no word
                cuts = line_cuts([(word, segmented.cuts(row[word]) if word in row else ()) for word in words])
                print_line(labelled(normalizer(record), cuts, of_bytes=labels == "bytes"))
            elif tsv:
                for i in (row[word] for word in words if word in row):
                    kinds = " ".join(cut.kind.label for cut in segmented.cuts(i))
                    print_line(
                        "\t".join([segmented.words[i].strip(" "), "|".join(segmented.pieces(i)).strip(" "), kinds])
                    )
            else:
                print_pieces(
                    piece for word in words for piece in (segmented.pieces(row[word]) if word in row else [word])
                )


def _learn_segmenter(sources: list[Source], out: Path, settings: dict[str, Any], *, force: bool, quiet: bool) -> None:
    from collections import Counter

    from koktok.count.counting import read
    from koktok.count.prepared import prepare
    from koktok.files import check_folder
    from koktok.progress import ConsoleProgress, counted
    from koktok.recipe import Recipe
    from koktok.segment import analyser_of, segmenter_for, text_to_analyse
    from koktok.segment.dpe.learnt import FOLDER
    from koktok.training.dpe import learn_cuts

    name = settings.get("segmenter", "")
    alone = not name or not analyser_of(name).analyses
    analyser = None if alone else segmenter_for(name, user_dictionary=settings.get("user_dictionary"))
    recipe = Recipe()
    check_folder(out, FOLDER)
    with ConsoleProgress(quiet=quiet) as progress:
        reading = read(sources, holdout=0.0, on_progress=progress)
        words: Counter[str] = Counter()
        for word, n in prepare(reading.train, recipe.normalizer, recipe.pattern).items():
            words[text_to_analyse(word)] += n
        del words[""]
        progress("learn", 0, None)
        learnt = learn_cuts(words, analyser, name=name, on_progress=lambda done, total: progress("learn", done, total))
        learnt.save(out, force=force)
    figures = f"{counted(learnt.about['words'], 'word')}, {counted(len(learnt.pieces), 'piece')}, {learnt.about['nats'][-1]:.3f} nats a word"
    if not quiet:
        print(f"{figures}; koktok train --segmenter dpe:{out}", file=sys.stderr)
    print(out)
