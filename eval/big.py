"""A gigabyte on a laptop: `balanced` with 32,000 pieces from 1 GB of raw text, beside peers that finish.

    python -m eval.big DATA [--mb 1000] [--file FILE] [--mass 1] [--rows koktok,spm-sampled,hf] [--patience 3600]
        [--report FILE]

The text is DATA/text resampled so that Heaps' law of new words holds (eval/heaps.py says how, and its table is printed);
`--file` keeps it, or takes it where it is there. Wanted: 20 minutes and 4 GB (10^9 bytes each), the analyser's processes
among it, nothing cached. Peers get the same file with their own way for much text: SentencePiece reads a random 2,000,000
lines (`--rows spm` lets it read all), Hugging Face reads everything, Kiwi's trainer (`--rows kiwi`) analyses everything.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from eval.growth import ROWS, common_options, golds_of, head, table_of
from eval.heaps import base_lines, write_sized
from eval.machine import Told, machine
from eval.texts import data_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--mb", type=float, default=1000)
    parser.add_argument("--file", type=Path, help="where the text is, or shall be kept")
    parser.add_argument("--rows", default="koktok,spm-sampled,hf")
    common_options(parser)
    given = parser.parse_args()
    tell = Told(given.report)
    tell(machine())
    with tempfile.TemporaryDirectory() as folder:
        file = given.file or Path(folder) / "big.txt"
        if not file.is_file():
            begun = time.perf_counter()
            tell("\n".join(write_sized(base_lines(given.data), int(given.mb * 1e6), file)))
            tell(f"\nmade in {time.perf_counter() - begun:.0f} s")
        golds = golds_of(given.data, given.gold)
        tell(f"\nvocabulary {given.size:,}\n\n{head(golds)}")
        rows = [row for row, kind in ROWS.items() if kind in given.rows.split(",")]
        label = f"{file.stat().st_size / 1e6:.0f} MB"
        table_of(file, label, rows, given, folder, golds, tell)


if __name__ == "__main__":
    main()
