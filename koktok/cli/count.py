"""`koktok count` and `koktok count merge`: counts in files, so that many trainings read the text once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from koktok.cli.options import MOST_THREADS, Field, Force, Quiet, sources_of
from koktok.errors import UsageError
from koktok.files import typed

if TYPE_CHECKING:
    from koktok.count.count_files import About
    from koktok.count.shards import Shard
    from koktok.text.records import ReadReport
    from koktok.text.sources import Source


Out = Annotated[Path, typer.Option("--out", "-o", help="Parquet file to write.", show_default=False)]
MinCount = Annotated[int, typer.Option(min=1, max=10**12, help="Leave out words with a smaller count.")]


def count(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, globs, `corpus:NAME`, `-`; or `merge` and count files.", show_default=False
        ),
    ],
    out: Out,
    runs: Annotated[bool, typer.Option("--runs", help="Also count runs of words, for superwords.")] = False,
    min_count: MinCount = 1,
    holdout: Annotated[float, typer.Option(help="Share of lines held out for evaluation.")] = 0.05,
    holdout_by: Annotated[
        Literal["blocks", "documents"] | None,
        typer.Option(help="Blocks of 50 lines, or documents in any order. [blocks; documents on Spark]"),
    ] = None,
    field: Field = None,
    engine: Annotated[Literal["polars", "spark"], typer.Option(help="One machine, or many.")] = "polars",
    master: Annotated[str | None, typer.Option(help="Spark's master, e.g. local[8]. [that of spark-submit]")] = None,
    threads: Annotated[int | None, typer.Option(min=1, max=MOST_THREADS, help="Number of threads. [all]")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Count the words of text into a Parquet file that `koktok train` accepts in place of the text.

    A killed count resumes: its finished shards are in OUT.parts until the file is written.
    `koktok count merge A.parquet B.parquet -o C.parquet` adds counts; their files of runs are merged, too.

    Example: koktok count crawl/*.txt --runs -o crawl.parquet
    """
    if not 0 <= holdout < 1:
        raise UsageError(
            f"expected `--holdout` with a share of the lines from 0 to under 1, got {holdout}", hint="--holdout 0.05"
        )
    if out.suffix != ".parquet":
        raise UsageError(
            f"`--out {out}` is not a .parquet file; counts are kept as Parquet", hint=f"-o {typed(f'{out}.parquet')}"
        )
    if engine == "spark" and threads:
        raise UsageError(
            "`--threads` is not for Spark: `--master` sets their number", hint=f"--master 'local[{threads}]'"
        )
    if engine == "spark" and holdout_by == "blocks":
        raise UsageError(
            "`--holdout-by blocks` is not for Spark, which reads lines in no fixed order", hint="--holdout-by documents"
        )
    from koktok.progress import ConsoleProgress

    with ConsoleProgress(quiet=quiet) as progress:
        if engine == "spark" and paths[0] != "merge":
            from koktok.cluster.spark import count_to_files, read_text, session
            from koktok.count.count_files import runs_file

            progress("spark", 0, None)
            text = read_text(session(master, name="koktok count"), paths, field=field)
            report = count_to_files(
                text, out, holdout=holdout, field=field, runs=runs, min_count=min_count, force=force
            )
            _note_bad_lines(report, progress)
            print(out)
            if runs:
                print(runs_file(out))
        elif paths[0] == "merge":
            _merge(paths[1:], out, min_count=min_count, force=force, progress=progress)
        else:
            how = {"holdout": holdout, "by": holdout_by or "blocks", "runs": runs, "threads": threads}
            _count(sources_of(paths, field, [], quiet=quiet), out, how, min_count, progress, force=force)


def _count(
    sources: list[Source], out: Path, how: dict[str, Any], min_count: int, progress: Any, *, force: bool
) -> None:
    from koktok.count.count_files import About, Counted, CountFile, runs_file
    from koktok.count.counting import counting
    from koktok.count.shards import forget
    from koktok.files import check_file, refuse_another, workplace
    from koktok.progress import counted
    from koktok.text.kinds import is_count

    place, holdout = check_file(out, is_count), how["holdout"]
    if how["runs"]:
        check_file(runs_file(out), is_count)
    place.parent.mkdir(parents=True, exist_ok=True)
    if not force and (there := CountFile.at(place)) is not None:
        counted_there = {(one.name, one.holdout) for one in there.about.sources}
        if counted_there != {(source.name, holdout) for source in sources} or there.about.min_count != min_count:
            raise refuse_another(place, "count")  # else found at the end
    with (
        workplace(place.with_name(f"{place.name}.parts"), wait=1) as parts_folder,
        counting(sources, **how, folder=parts_folder, on_progress=progress) as counts,
    ):
        report = counts.report
        _note_bad_lines(report, progress)
        if resumed := counts.shards.resumed:
            progress.note(
                f"resumed: {resumed} of {counted(resumed + counts.shards.counted, 'shard')} were counted before"
            )
        covered = tuple(
            sorted((Counted(n, d, counts.lines[n], holdout) for n, d in report.digests.items()), key=lambda c: c.name)
        )
        tables: list[tuple[Path, list[Shard], About]] = [(out, counts.shards.words, About("words", covered))]
        if how["runs"]:
            tables.append((runs_file(out), counts.shards.runs, About("runs", covered)))
        _write(tables, min_count, progress, force=force)
        forget(parts_folder)


def _note_bad_lines(report: ReadReport, progress: Any) -> None:
    if report.bad_lines:
        progress.note(report.left_out)


def _merge(files: list[str], out: Path, *, min_count: int, force: bool, progress: Any) -> None:
    from koktok.count.count_files import CountFile, runs_file
    from koktok.count.shards import Shard

    if len(files) < 2:
        raise UsageError(
            f"expected two count files or more to merge, got {len(files)}",
            hint="koktok count merge A.parquet B.parquet -o C.parquet",
        )
    progress("merge", 0, None)
    words = [Path(file) for file in files]
    wide = [runs_file(file) for file in words]
    tables = []
    for target, paths in ((out, words), (runs_file(out), wide if all(file.is_file() for file in wide) else [])):
        if paths:
            first, *others = [CountFile.open(path) for path in paths]
            about = sum((file.about for file in others), first.about)
            tables.append((target, [Shard.of_count(file) for file in (first, *others)], about))
    _write(tables, min_count, progress, force=force)


def _write(tables: Any, min_count: int, progress: Any, *, force: bool) -> None:
    from koktok.count.count_files import write_counts
    from koktok.count.shards import parts

    for file, shards, head in tables:
        progress("sum", 0, None)
        dropped = write_counts(file, parts(shards), head, min_count=min_count, force=force)
        if min_count > 1:
            progress.note(f"{file.name}: left out, as their count is below {min_count}: {dropped}")
        print(file)
