"""The standing comparison: train every peer on the same text, measure, and write a dated report with signatures.

    python -m eval quick
    python -m eval full DATA|corpus:bench-ko [--mirror DIR_OR_URL] [--size 32000] [--limit EOJEOLS] [--sample LINES] [--draw K] [--speed]

`quick` needs nothing but the repository and takes less than a minute. `full` reads DATA (`text/`, `gold/`, `tokenizers/`), or
fetches it: corpus:bench-ko, with gold-ko, vocabularies-ko, open-en and code beside it.
Trained peers are kept in the work folder, so that a run that was stopped goes on where it was.
The reports are eval/reports/DATE-SUITE.json, .md and .html; the same inputs give the same JSON, dates are in names only. With
--speed there is DATE-SUITE.speed.json, too, which is never the same twice: megabytes a second, one thread, on a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from eval.machine import machine
from eval.peers import CURVE, PEERS, train_peer
from eval.rows import open_row
from eval.speed import measure_speed
from eval.suites import Suite, full, quick
from eval.texts import data_of
from koktok.files import cache_dir, write_file
from koktok.progress import ConsoleProgress
from koktok.report import Report, to_html, to_markdown
from koktok.report.benchmark import SAMPLE
from koktok.report.measure import Entry, measure

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m eval", description=__doc__.split("\n")[0])
    parser.add_argument("suite", choices=["quick", "full"])
    parser.add_argument("data", nargs="?", help="full: folder with text/, gold/ and tokenizers/, or corpus:bench-ko")
    parser.add_argument("--mirror", help="full: folder or address with copies of the repositories [$KOKTOK_MIRROR]")
    parser.add_argument("--size", type=int, default=32_000, help="full: ids of every trained row")
    parser.add_argument("--limit", type=int, help="full: at most so many eojeols a text and words a gold corpus")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="full: lines for the measures that encode again")
    parser.add_argument("--draw", type=int, default=0, help="full: another draw of the training text (1, 2, …)")
    parser.add_argument("--rows", default="", help="only rows whose name or spec matches this regular expression")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where trained peers are kept")
    parser.add_argument("--speed", action="store_true", help="also time every row")
    parser.add_argument("--out", type=Path, default=HERE / "reports")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="in the names of the files")
    parser.add_argument("-q", "--quiet", action="store_true")
    given = parser.parse_args()
    if (given.suite == "full") != (given.data is not None):
        parser.error("`full` wants the folder DATA, and `quick` wants none")
    clock = time.perf_counter()
    if given.suite == "quick":
        suite = quick()
    else:
        data = data_of(given.data, given.mirror)
        suite = full(data, size=given.size, limit=given.limit, sample=given.sample, draw=given.draw)
    entries = rows_of(suite, given.work, rows=given.rows, quiet=given.quiet)
    report = run(suite, entries, quiet=given.quiet)
    stem = f"{given.date}-{given.suite}" + f"-draw{given.draw}" * bool(given.draw)
    write_file(given.out / f"{stem}.json", report.to_json().encode())
    write_file(given.out / f"{stem}.md", to_markdown(report).encode())
    print(write_file(given.out / f"{stem}.html", to_html(report).encode()))
    if given.speed:
        assert suite.material.text is not None
        lines = suite.material.text.sample(given.sample, 0).lines
        ran = [
            (row.number, row.name, partial(open_row, entry.spec))
            for row, entry in zip(report.rows, entries, strict=True)
            if row.ran
        ]
        write_file(
            given.out / f"{stem}.speed.json", (measure_speed(ran, lines).model_dump_json(indent=1) + "\n").encode()
        )
    idle = [row for row in report.rows if not row.ran]
    print(
        f"{len(report.rows) - len(idle)} rows, {len(idle)} not run, {time.perf_counter() - clock:.0f} s; {machine()}",
        file=sys.stderr,
    )
    for row in idle:
        print(f"not run: {row.name}: {row.why}", file=sys.stderr)


def rows_of(suite: Suite, work: Path, *, rows: str = "", quiet: bool = False) -> list[Entry]:
    """Train what is to be trained; with what is measured as it is. Only rows that match, where an expression is given."""
    entries = []
    with ConsoleProgress(quiet=quiet) as progress:
        chosen = [peer for peer in (*PEERS, *(CURVE if rows else ())) if re.search(rows, peer.name)]
        for done, peer in enumerate(chosen):
            progress("training", done, len(chosen))
            try:
                spec = train_peer(peer, suite.train, suite.size, work)
            except Exception as error:  # a peer that cannot run is a row that says why
                entries.append(Entry(peer.name, peer.name, "trained here", f"{type(error).__name__}: {error}"[:200]))
                continue
            entries.append(Entry(spec, peer.name, f"{spec.partition(':')[0]}:trained here"))
        progress("training", len(chosen), len(chosen))
    return [*entries, *(entry for entry in suite.beside if re.search(rows, entry.shown or entry.spec))]


def run(suite: Suite, entries: Sequence[Entry], *, quiet: bool = False) -> Report:
    """Measure everything."""
    with ConsoleProgress(quiet=quiet) as progress:
        return measure(
            entries,
            suite.material,
            suite.settings,
            title=suite.title,
            remarks=suite.remarks,
            on_progress=progress,
            opener=open_row,
        )


if __name__ == "__main__":
    main()
