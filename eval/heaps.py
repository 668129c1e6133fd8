"""More text than there is, with the new words that so much text would have: resampling that keeps Heaps' law.

    python -m eval.heaps DATA OUT [--mb 1000] [--seed 0] [--report FILE]

Text that is merely repeated has no new words, and a count of it stops growing; real text has D(N) = K N^b distinct words
(Heaps 1978). How it is made here:

1. b is fitted to DATA/text, blocks of 50 lines in an order chosen by hash: log D against log N from a quarter of the text
   to all of it, where the exponent is that of large text (it falls with N).
2. The text is doubled until it is long enough: lines are drawn with replacement from all lines so far, so that words recur
   in proportion to how often they stand there already (Simon's process), in their sentences.
3. In the drawn lines as many tokens as the law wants, D(2N) - D(N), become forms that stood nowhere: a share `ONCE` of
   them where a word stood that came once so far, the others where one stood that came 2 to 9 times. With that the share of
   words that come once stays where it is in real text (.71 at 77 MB), which decides how much a minimum count leaves out.
4. A new form is a recombination: the stem of the word that it replaces and the ending of another rare one (an ending is
   its longest suffix of up to 3 syllables among the 500 most frequent by distinct words); where that form is known, the
   first two syllables of a third word go before it, until it is new. Words without Hangul change one character to another
   of their kind.

The table printed on the way compares what was wanted with what came out. Words are numbers meanwhile (eval/forms.py), and
the same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eval.machine import Told, machine
from eval.texts import data_of
from koktok.files import write_file

if TYPE_CHECKING:
    from eval.forms import Text

ONCE = 0.6
"""Share of the new forms that replace a word that came once; by trial, see the table."""


def base_lines(folder: Path) -> list[str]:
    """All lines of DATA/text but those held out, blocks of 50 in an order chosen by hash: every part is like the whole."""
    blocks: list[tuple[bytes, list[str]]] = []
    paths = [path for path in sorted((folder / "text").glob("*.txt*")) if ".held-out." not in path.name]
    if not paths:
        sys.exit(f"eval: `{folder / 'text'}` holds no text; give the folder that holds text/ and gold/")
    for path in paths:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\n") for line in file if line.strip()]
        blocks += [
            (hashlib.sha256(f"{path.name}:{i}".encode()).digest(), lines[i : i + 50]) for i in range(0, len(lines), 50)
        ]
    return [line for _, block in sorted(blocks, key=lambda pair: pair[0]) for line in block]


def fitted(text: Text) -> tuple[float, float]:
    """K and b of Heaps' law, from a quarter of the lines to all of them."""
    ends = [int(text.lines * share) for share in (0.25, 0.35, 0.5, 0.7, 1.0)]
    points = [(np.log(text.running_up_to(end)), np.log(text.distinct_up_to(end))) for end in ends]
    b, k = np.polyfit(*np.array(points).T, 1)
    return float(np.exp(k)), float(b)


def grow(lines: list[str], size: int, seed: int = 0) -> tuple[Text, list[str]]:
    """A text of about `size` bytes, and the rows of the table that compares wanted and made."""
    from eval.forms import Text

    text = Text(("\n".join(lines) + "\n").encode(), seed)
    k, b = fitted(text)
    times = text.times()
    have = text.nbytes
    table = [
        f"Heaps: D = {k:.1f} N^{b:.3f}, fitted on {text.running:,} words",
        "",
        "| MB | running | wanted | made | once |",
        "|---|---|---|---|---|",
        f"| {have / 1e6:.0f} | {text.running:,} | | {text.distinct:,} | {np.mean(times == 1):.3f} |",
    ]
    first = text.distinct / float(text.running) ** b
    while have < size:
        share = min(1.0, (size - have) / have)
        wanted = first * (text.running * (1 + share)) ** b
        need = max(0.0, wanted - text.distinct)
        once, some = times == 1, (times > 1) & (times < 10)
        chances = np.zeros(len(times), np.float32)
        chances[once] = min(1.0, ONCE * need / (max(1, once.sum()) * share))
        chances[some] = min(1.0, (1 - ONCE) * need / (max(1, times[some].sum()) * share))
        words = np.flatnonzero(once if once.any() else times > 0).astype(np.int32)
        del times, some, once
        text.draw(max(1, int(text.lines * share)), chances, words)
        have, times = text.nbytes, text.times()
        table.append(
            f"| {have / 1e6:.0f} | {text.running:,} | {int(wanted):,} | {text.distinct:,} | {np.mean(times == 1):.3f} |"
        )
    return text, table


def part(lines: list[str], size: int) -> list[str]:
    """The first lines of about `size` bytes."""
    ends = np.cumsum([len(line.encode()) + 1 for line in lines])
    return lines[: int(np.searchsorted(ends, size)) + 1]


def write_sized(lines: list[str], size: int, path: Path, seed: int = 0) -> list[str]:
    """Write lines of about `size` bytes: a part where there are so many, grown where not; the table, where there is one."""
    table: list[str] = []

    def write(fresh: Path) -> None:
        with fresh.open("wb") as file:
            if size <= sum(len(line.encode()) + 1 for line in lines):
                file.write(("\n".join(part(lines, size)) + "\n").encode())
            else:
                text, grown = grow(lines, size, seed)
                table.extend(grown)
                text.write(file)

    write_file(path, write)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/, or corpus:bench-ko")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    tell = Told(given.report)
    begun = time.perf_counter()
    table = write_sized(base_lines(given.data), int(given.mb * 1e6), given.out, given.seed)
    tell(
        "\n".join(
            [*table, "", f"{given.out.stat().st_size:,} bytes in {time.perf_counter() - begun:.0f} s; {machine()}"]
        )
    )


if __name__ == "__main__":
    main()
