"""Any tokenizer examined: `koktok report`, `diff` and `doctor`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from koktok.cli.options import Field, Force, Quiet, lines_of_paths, tell_skipped
from koktok.errors import InputError, KoktokError, UsageError

if TYPE_CHECKING:
    from koktok.metrics import Difference
    from koktok.metrics.gold import GoldCorpus
    from koktok.metrics.gold.spans import SpanCorpus
    from koktok.report import Report
    from koktok.report.diff import Changes
    from koktok.report.doctor import Diagnosis

SPEC = "koktok:DIR|NAME hf:PATH sp:FILE wordpiece:FILE tiktoken:FILE#PATTERN package:NAME cuts:FILE kiwi mecab-ko syllables, or a path."

Spec = Annotated[str, typer.Argument(help=f"A tokenizer: {SPEC}", show_default=False)]
Texts = Annotated[list[str] | None, typer.Option("--text", help="File, folder, glob or corpus:NAME; may be repeated.")]
Gold = Annotated[
    list[Path] | None, typer.Option(help="File of gold morphemes: CoNLL-U, KLUE-DP, Sejong or Kiwi; may be repeated.")
]
Spans = Annotated[
    list[Path] | None,
    typer.Option(help="File of marked spans, entities or answers: KLUE-NER or SQuAD's JSON; may be repeated."),
]
HumanGold = Annotated[
    list[Path] | None,
    typer.Option(help="As --gold, for a file annotated by people; UD Kaist and KSL are recognized by checksum."),
]


SHOWN_SENTENCES = 6
"""Sentences with their tokens on the page of a report."""

Named = TypeVar("Named", "GoldCorpus", "SpanCorpus")


@contextmanager
def errors_exit_2() -> Iterator[None]:
    """Errors end with 2, as those of Unix's `diff` do, so that 1 is always a finding."""
    try:
        yield
    except KoktokError as error:
        error.exit_code = 2
        raise


def doctor(
    spec: Spec,
    text: Texts = None,
    blocklist: Annotated[
        Path | None, typer.Option(help="Strings that no piece may contain, one per line: word, =word, !word, /regex/.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Pieces shown per finding.")] = 10,
    fail_on: Annotated[
        Literal["note", "warning", "error", "never"], typer.Option(help="Exit with 1 from this severity on.")
    ] = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    field: Field = None,
    quiet: Quiet = False,
) -> None:
    """Audit a vocabulary: unreachable, broken and duplicate pieces, junk, personal data, coverage of Korean.

    Exit code: 0 without findings of the severity --fail-on or above, 1 with findings, 2 on error.

    Example: koktok doctor my-tokenizer --text text.txt
    """
    from koktok.progress import ConsoleProgress, print_line
    from koktok.report.doctor import SEVERITIES, diagnose
    from koktok.text.blocklist import Blocklist
    from koktok.tokenizer.open import load

    with errors_exit_2(), ConsoleProgress(quiet=quiet) as progress:
        if field and not text:
            raise UsageError("`--field` is for the records of --text", hint="--text FILE")
        blocked = Blocklist.load(blocklist) if blocklist else None
        lines = [*lines_of_paths(text, field)] if text else None
        diagnosis = diagnose(load(spec), lines, blocklist=blocked, examples=examples, on_progress=progress)
    if as_json:
        print_line(diagnosis.to_json().removesuffix("\n"))
    else:
        _show_diagnosis(diagnosis)
    gravest = diagnosis.gravest()
    if gravest and fail_on != "never" and SEVERITIES.index(gravest) >= SEVERITIES.index(fail_on):
        raise typer.Exit(1)


def _show_diagnosis(diagnosis: Diagnosis) -> None:
    from koktok.progress import table

    print(f"{diagnosis.name}: {diagnosis.size:,} ids, digest with its recipe {diagnosis.digest}\n")
    rows = [
        [name, f"{value:,.0f}" if value > 1 or not value else f"{value:.1%}"] for name, value in diagnosis.facts.items()
    ]
    rows += [
        [f"pieces in {script}", f"{count:,} ({count / diagnosis.size:.1%})"]
        for script, count in diagnosis.scripts.items()
    ]
    table("Contents", ["", ""], rows)
    print(f"\nlongest: {'  '.join(map(_visible, diagnosis.longest))}\n")
    for finding in diagnosis.findings:
        print(f"{finding.severity}: {finding.count:,} {finding.title} [{finding.check}]")
        for i, piece, why in finding.examples:
            print(f"    {'' if i < 0 else i:>7}  {_visible(piece)}{f'  ({_printable(why)})' if why else ''}")
    if not diagnosis.findings:
        print("nothing found")
    ways = {"blocklist": "--blocklist FILE", "unused": "--text FILE"}
    for check in diagnosis.not_checked:
        print(f"not checked: {check} (give `{ways[check]}`)")


def _visible(piece: str) -> str:
    from koktok.progress import SPACE

    return _printable(piece).replace(" ", SPACE)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def diff(
    a: Spec,
    b: Spec,
    text: Texts = None,
    gold: Gold = None,
    human_gold: HumanGold = None,
    words: Annotated[int, typer.Option(min=0, help="Changed words listed.")] = 30,
    lines: Annotated[int, typer.Option(min=0, help="Changed lines listed.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    field: Field = None,
    quiet: Quiet = False,
) -> None:
    """Show where two tokenizers cut the same text differently; without --text, read standard input.

    Exit code, as of `diff`: 0 the same, 1 different, 2 on error.

    Example: koktok diff koktok:ko-16k koktok:ko-32k --text text.txt
    """
    from koktok.progress import ConsoleProgress, print_line
    from koktok.report.diff import difference
    from koktok.tokenizer.open import load

    with errors_exit_2(), ConsoleProgress(quiet=quiet) as progress:
        corpora = _golds(gold, human_gold)
        domains = _domains(text, field)[0] if text and "-" not in text else {"": [*lines_of_paths(text, field)]}
        changes = difference(
            load(a), load(b), domains, gold=corpora, words=words, examples=lines, seed=seed, on_progress=progress
        )
    if as_json:
        print_line(changes.to_json().removesuffix("\n"))
    else:
        _show_difference(changes)
    if not changes.same:
        raise typer.Exit(1)


def _show_difference(changes: Changes) -> None:
    from koktok.progress import counted, print_line, table

    for mark, side in (("A", changes.a), ("B", changes.b)):
        size = f"{side.size:,} ids" if side.size else "open vocabulary"
        print_line(f"{mark}: {side.name} ({size}), {counted(side.tokens, 'token')}, {side.fertility:.3f} per eojeol")
    print(f"B - A: {_interval(changes.fertility_difference, changes.units)} tokens per eojeol")
    print(f"lines cut differently: {changes.lines_changed:,} of {changes.lines:,}")
    print(f"eojeols cut differently: {changes.eojeols_changed:,} of {changes.eojeols:,}")
    print(f"cuts inside eojeols that only A makes: {changes.only_a:,}; that only B makes: {changes.only_b:,}")
    if changes.lines_same_cuts_other_ids:
        print(f"lines with the same tokens and other ids: {changes.lines_same_cuts_other_ids:,}")
    for verdict in changes.judged:
        both = f"F1 A {verdict.f1_a:.3f}, B {verdict.f1_b:.3f}, B - A {_interval(verdict.difference, verdict.units)}"
        only_a = f"where only A cuts it is right {verdict.only_a_right:,} times of {verdict.only_a:,}"
        only_b = f"where only B cuts {verdict.only_b_right:,} of {verdict.only_b:,}"
        print_line(f"{verdict.gold} ({verdict.standing}): {both}; {only_a}, {only_b}")
    if changes.words:
        print()
        rows = [[item.word, f"{item.times:,}", item.a, item.b] for item in changes.words]
        table("Words cut differently, by frequency", ["eojeol", "times", "A", "B"], rows)
    for item in changes.examples:
        print_line(f"\nline {item.number}\n< {item.a}\n> {item.b}")


def _interval(difference: Difference, units: str) -> str:
    if difference.low is None or difference.high is None:
        return f"{difference.value:+.4f} ({units}: too few for an interval)"
    p = "" if difference.p is None else f", p {'< .001' if difference.p < 0.001 else f'= {difference.p:.3f}'}"
    return f"{difference.value:+.4f}, 95 % [{difference.low:+.4f}, {difference.high:+.4f}]{p} ({units})"


def _show_report(report: Report) -> None:
    from koktok.metrics.registry import columns
    from koktok.progress import print_line, table
    from koktok.report.tables import measured, sections_of

    titles = {metric.name: metric.shown.head for metric in columns() if metric.shown.head}  # what fits on 80 columns
    names = [name for name in titles if any(name in row.values for row in report.rows)]
    summary = measured(report, [measure for name in names if (measure := report.measure(name))])
    spans = sections_of(report)["spans"].tables[0].rows if report.spans else []
    expressed = {row.number: [cell.text for cell in cells] for row, cells in spans}
    rows = [
        [
            row.name + " ★" * (row.number in summary.front),
            f"{row.vocab_size:,}" if row.vocab_size else "–",
            *(cell.text for cell in cells),
            *expressed.get(row.number, []),
        ]
        for row, cells in summary.rows
        if row.ran
    ]
    if rows:
        if not any(gold.standing == "human" for gold in report.golds):
            whose = ", ".join(gold.name for gold in report.golds)
            titles |= {"boundary_f1_macro": f"F1 josa eomi to {whose}", "boundary_f1": f"F1 to {whose}"}
        heads = [*(titles[name] for name in names), *(f"spans of {one.name}" for one in report.spans)]
        table(report.title, ["tokenizer", "ids", *heads], rows)
        if summary.front:
            print_line("★ no other vocabulary has both fewer tokens and a higher F1")


def _domains(paths: list[str], field: str | None) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Lines by file, and the files as they were typed; each file is a domain, named by its stem."""
    from koktok.corpora.paths import as_source
    from koktok.text.kinds import kind_at
    from koktok.text.names import distinct
    from koktok.text.sources import check_field

    sources = [as_source(path, field=field) for path in paths]
    check_field(sources)
    for source in sources:
        tell_skipped(source)
    files = [str(file) for source in sources for file in source.paths]
    names = distinct([Path(file).name.split(".")[0] for file in files], files)
    lines_of = {
        name: [
            *lines_of_paths(
                [file], None if kind_at(Path(file), field) == "text" else field, may_be_empty=len(files) > 1
            )
        ]
        for name, file in zip(names, files, strict=True)
    }
    if not any(lines_of.values()):
        raise InputError(f"`{files[0]}` is empty", hint=f"ls -l {shlex.quote(files[0])}")
    typed = [  # the files of a corpus lie in the cache, where nobody looks for them
        str(file) if not path.startswith("corpus:") else path if len(source.paths) == 1 else f"{path}: {file.name}"
        for path, source in zip(paths, sources, strict=True)
        for file in source.paths
    ]
    return {name: lines for name, lines in lines_of.items() if lines}, dict(zip(names, typed, strict=True))


def _golds(paths: list[Path] | None, human: list[Path] | None) -> list[GoldCorpus]:
    from koktok.metrics.gold import read_gold

    corpora = [read_gold(path) for path in paths or ()] + [read_gold(path, human=True) for path in human or ()]
    return _told_apart(corpora, [*(paths or ()), *(human or ())])


def _spans(paths: list[Path] | None) -> list[SpanCorpus]:
    from koktok.metrics.gold.spans import read_spans

    return _told_apart([read_spans(path) for path in paths or ()], paths or [])


def _told_apart(corpora: list[Named], files: list[Path]) -> list[Named]:
    from koktok.text.names import distinct

    names = distinct([corpus.name for corpus in corpora], [str(file) for file in files])
    return [replace(corpus, name=name) for corpus, name in zip(corpora, names, strict=True)]


def report(
    specs: Annotated[
        list[str] | None, typer.Argument(help=f"Tokenizers, `NAME=SPEC` to name a row: {SPEC}", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for report.json, .md, .html.", show_default=False)
    ] = None,
    text: Texts = None,
    gold: Gold = None,
    human_gold: HumanGold = None,
    spans: Spans = None,
    parallel: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="KOREAN OTHER",
            help="Two files whose lines say the same, Korean and another language: Korean tokens per token of the other.",
        ),
    ] = None,
    reference: Annotated[str | None, typer.Option(help="Tokenizer to compare with. [the first that runs]")] = None,
    extended: Annotated[
        bool, typer.Option("--extended", help="Also round trip, robustness, reachability: minutes per tokenizer.")
    ] = False,
    resamples: Annotated[int, typer.Option(min=0, help="Resamples behind the 95 % intervals; 0 for none.")] = 1000,
    submit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Measure on koktok's benchmark and write one JSON file for its leaderboard."),
    ] = None,
    field: Field = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Measure tokenizers on Korean text and gold morphemes: JSON, Markdown and one HTML page with plots.

    The same inputs give the same bytes on the same day. A tokenizer that cannot be opened or measured gets a row with the reason, and
    the exit code is 1. Prints a summary; its last line is the file to open.

    Example: koktok report my-tokenizer syllables --text text.txt -o out
    """
    from koktok.files import check_folder, write_folder
    from koktok.metrics import Parallel, Settings, Text
    from koktok.metrics.gold.silver import silver_gold
    from koktok.progress import ConsoleProgress
    from koktok.report import to_html, to_markdown
    from koktok.report.measure import ReportMaterial, entries_of, measure, showcase
    from koktok.report.schema import FOLDER

    if submit:
        if out or text or gold or human_gold or spans or parallel or field:
            raise UsageError(
                "--submit measures on the benchmark's own text and gold, and writes one file",
                hint="koktok report TOKENIZER --submit FILE.json",
            )
        _submit(specs or [], submit, force=force, quiet=quiet)
        return
    if out is None:
        raise UsageError("expected a folder to write, got none", hint="koktok report TOKENIZER --text FILE -o FOLDER")
    check_folder(out, FOLDER, ("report.json", "report.md", "report.html"))
    sides = Parallel(*([*lines_of_paths([str(file)], field)] for file in parallel)) if parallel else None
    text = text or ([str(parallel[0])] if parallel else None)
    domains, files = _domains(text, field) if text else ({}, {})
    korean = Text.of(domains) if text else None
    corpora = _golds(gold, human_gold)
    if korean and not corpora:
        corpora = [silver_gold(korean.lines)]
        if not quiet:
            print("boundaries are Kiwi's (automatic): --gold FILE measures against a treebank", file=sys.stderr)
    material = ReportMaterial(
        text=korean,
        golds=corpora,
        spans=_spans(spans),
        parallel=sides,
        shown=showcase(korean.lines if korean else [], SHOWN_SENTENCES, 0, corpora),
    )
    with ConsoleProgress(quiet=quiet) as progress:
        measured = measure(
            entries_of(specs or []),
            material,
            Settings(extended, resamples=resamples),
            title="Korean tokenizers",
            command=shlex.join(["koktok", *sys.argv[1:]]),
            made=date.today().isoformat(),
            reference=reference,
            on_progress=progress,
        )
    for remark in measured.remarks:
        print(remark, file=sys.stderr)
    rendered = {
        "report.json": measured.to_json(),
        "report.md": to_markdown(measured, files),
        "report.html": to_html(measured, files),
    }
    write_folder(out, rendered, FOLDER, force=force)
    _tell_report(measured, out / [*rendered][-1])


def _submit(specs: list[str], file: Path, *, force: bool, quiet: bool) -> None:
    """Rows for the leaderboard: measured as `docs/benchmark.md` says."""
    from koktok.files import write_file
    from koktok.metrics import Settings
    from koktok.progress import ConsoleProgress
    from koktok.report.benchmark import BENCHMARK, SAMPLE, material
    from koktok.report.measure import entries_of, measure
    from koktok.report.schema import is_report

    with ConsoleProgress(quiet=quiet) as progress:
        measured = measure(
            entries_of(specs),
            material(),
            Settings(extended=True, sample=SAMPLE),
            title=f"koktok benchmark {BENCHMARK}",
            on_progress=progress,
        )
    _tell_report(measured, write_file(file, measured.to_json().encode(), ours=is_report, force=force, what="report"))


def _tell_report(report: Report, place: Path) -> None:
    """The summary, rows that did not run, the file; ends with 1 where a row did not run."""
    for row in report.rows:
        if not row.ran:
            print(f"{'failed' if row.failed else 'not run'}: {row.name}: {row.why}", file=sys.stderr)
    _show_report(report)
    print(place)
    if not all(row.ran for row in report.rows):
        raise typer.Exit(1)
