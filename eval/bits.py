"""Bits per character of an n-gram model over the tokens, by text and order: from where on they tell vocabularies apart.

    python -m eval.bits DATA|corpus:bench-ko [--peers 8000,12000,16000,24000,32000,48000,64000] [--rows '^koktok [a-z]+$']
        [--sizes 32000] [--orders 3,4,5] [--proxy kn,cm] [--megabytes 1,2,5,10] [--draws 3] [--report FILE]

With `--proxy cm` a context-mixing model (`eval.context_mixing`), stronger by some percent, is a further order, "cm"; it takes 4 GB.
An interpolated Kneser-Ney model is trained on the tokens of the training lines of `python -m eval full`, and asked of the held-out
lines, ends of lines included; 16 bits are added for each character inside an unknown token. Every row is asked with so many
megabytes of the training lines and with all of them, each a part of the next, and at every order. Vocabularies are compared at equal
tokens: beside each row of `--rows` (names as in eval/peers.py, trained at `--sizes`) stands by how much it is over SentencePiece Unigram with as
many tokens, which is read off the line between the two of `--peers` that lie nearest: for the halves of the sources (every other one, by
name) and for the whole. A figure is one only where orders, halves and the larger texts agree on its sign.

With `--draws N` vocabularies and models are trained on the first N draws of the training text, cuts at random with a seed each, and a
figure is the mean over draws. Its interval is over sources (a bootstrap) and draws (their variance), Student's t by Satterthwaite.

Trained vocabularies and finished rows are kept in the work folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from eval.context_mixing import FORMULA as MIXING
from eval.context_mixing import characters_of, context_mixing
from eval.kneser_ney import FORMULA as SMOOTHING
from eval.kneser_ney import kneser_ney, lines_of, unknown_bits
from eval.machine import Told, machine
from eval.peers import CURVE, PEERS, digest_of, train_peer
from eval.placebo import PLACEBOS, placebos
from eval.texts import data_of, parts
from koktok.files import cache_dir, write_file
from koktok.metrics.registry import Floats
from koktok.metrics.statistics import Table, around, combined, standard_error
from koktok.protocol.tokenizer import Tokenizer
from koktok.report.markdown import table
from koktok.tokenizer.open import load

PEER: Final = "SentencePiece Unigram, defaults"
"""Whose line of sizes the others are compared with."""

HALVES: Final = "AB"
RESAMPLES: Final = 1000

Row = dict[str, Any]


class Material:
    """Training lines of a draw in an order of their own, and held-out lines of every source."""

    def __init__(self, folder: Path, orders: Sequence[int | str], megabytes: Sequence[int], draw: int = 0) -> None:
        train, held = parts(folder / "text", draw=draw)
        self.lines = [line for lines in train.values() for line in lines]
        self.orders = orders
        self.sources = sorted(held)
        self.held = [held[name] for name in self.sources]
        self.order = np.random.default_rng(0).permutation(len(self.lines))
        ends = np.cumsum([len(self.lines[i].encode()) + 1 for i in self.order])
        self.all = round(float(ends[-1]) / 1e6, 1)
        self.shares: dict[float, int] = {mb: int(np.searchsorted(ends, mb * 1e6)) for mb in megabytes if mb < self.all}
        self.shares[self.all] = len(self.lines)
        self.digest = digest_of([*self.lines, *map("\n".join, self.held)])
        self.characters = np.array([sum(len(line) + 1 for line in lines) for lines in self.held])
        self.eojeols = np.array([sum(len(line.split()) for line in lines) for lines in self.held])

    def rows(self, subject: Tokenizer, orders: Sequence[int | str]) -> Iterator[Row]:
        """Of each order: tokens of each source, and its bits by megabytes."""
        train, found = lines_of(subject.encode_lines(self.lines)), [subject.encode_lines(lines) for lines in self.held]
        asked = [lines_of(lines) for lines in found]
        test = [line for lines in asked for line in lines]
        source = np.repeat(range(len(asked)), list(map(len, asked)))
        lost = [float(unknown_bits(subject, lines).sum()) for lines in found]
        tokens = [sum(map(len, lines)) for lines in asked]
        size = subject.size or 1 + max(int(line.max(initial=0)) for line in [*train, *test])  # syllables have no list
        for order in orders:
            bits: list[list[float]] = []
            for count in self.shares.values():
                part = [train[i] for i in self.order[:count]]
                if order == "cm":
                    each = context_mixing(part, test, characters_of(subject, size))
                else:
                    each = [float(line.sum()) for line in kneser_ney(part, test, order=int(order), size=size)]
                bits.append((np.bincount(source, weights=each, minlength=len(asked)) + lost).tolist())
            yield {"ids": size, "tokens": tokens, "bits": bits}

    def kept(self, name: str, spec: str, work: Path) -> dict[int | str, Row]:
        """A row by order: what the work folder has, and the rest made now."""
        subject = load(spec)
        key = [name, subject.digest(), subject.libraries, self.digest, [MIXING, SMOOTHING], [*self.shares]]
        places = {order: work / "bits" / f"{digest_of([json.dumps([*key, order])])}.json" for order in self.orders}
        missing = [order for order, place in places.items() if not place.exists()]
        for order, row in zip(missing, self.rows(subject, missing) if missing else (), strict=True):
            write_file(places[order], json.dumps(row).encode())
            print(f"{name}, {row['ids']:,}, order {order}", file=sys.stderr, flush=True)
        return {order: json.loads(place.read_text(encoding="utf-8")) for order, place in places.items()}


@dataclass(frozen=True)
class Compared:
    """A row beside the peer's line, draw by draw; a column of `table` is tokens or bits by draw, of the row or of one of the peer's."""

    table: Table
    peers: int
    draws: int

    @classmethod
    def of(cls, rows: Sequence[Row], line: Sequence[Sequence[Row]], share: int, material: Material) -> Compared:
        """The row of each draw, and the peer's at its sizes of each draw."""
        columns = {"characters": material.characters, "eojeols": material.eojeols}
        for draw, (row, peers) in enumerate(zip(rows, line, strict=True)):
            for k, one in enumerate([row, *peers]):
                columns |= {
                    f"{draw} {k} tokens": np.array(one["tokens"]),
                    f"{draw} {k} bits": np.array(one["bits"][share]),
                }
        return cls(Table(columns, np.arange(len(material.characters))), len(line[0]), len(rows))

    def at(self, sums: Mapping[str, Floats], draw: int, k: int) -> tuple[Floats, Floats]:
        """Tokens per eojeol and bits per character of the row (0) or one of the peer's sizes."""
        return sums[f"{draw} {k} tokens"] / sums["eojeols"], sums[f"{draw} {k} bits"] / sums["characters"]

    def excess(self, sums: Mapping[str, Floats], draw: int) -> Floats:
        """By how much the bits are over the peer's with as many tokens, of each resample; nan where the line has no such tokens."""
        tokens, bits = (np.atleast_1d(part) for part in self.at(sums, draw, 0))
        line = [tuple(map(np.atleast_1d, self.at(sums, draw, k + 1))) for k in range(self.peers)]
        found = [
            excess(float(tokens[i]), float(bits[i]), sorted((float(x[i]), float(y[i])) for x, y in line))
            for i in range(len(tokens))
        ]
        return np.array(found)

    def mean(self, sums: Mapping[str, Floats]) -> Floats:
        """The excess over all draws."""
        return np.asarray(np.mean([self.excess(sums, draw) for draw in range(self.draws)], axis=0))

    def figures(self, half: int | None = None) -> tuple[float, float, float]:
        """Tokens, bits and excess of all sources or a half of them, means of the draws."""
        units = self.table.units
        within = np.ones(len(units), dtype=bool) if half is None else units % len(HALVES) == half
        sums = self.table.where(within, units).sums()
        tokens, bits = np.mean([self.at(sums, draw, 0) for draw in range(self.draws)], axis=0).tolist()
        return tokens, bits, float(self.mean(sums)[0])

    def interval(self) -> tuple[float | None, float | None]:
        """95 % of the excess on all sources."""
        error, freedom = standard_error(self.table.draws(RESAMPLES, 0), self.mean)
        if error is None:
            return None, None
        parts = [(error**2, freedom)]
        if self.draws > 1:
            by_draw = [self.excess(self.table.sums(), draw)[0] for draw in range(self.draws)]
            parts.append((float(np.var(by_draw, ddof=1)) / self.draws, self.draws - 1))
        error, freedom = combined(parts)
        return around(self.figures()[2], error, freedom)


def excess(tokens: float, bits: float, line: Sequence[tuple[float, float]]) -> float:
    """By how much bits are over those of a line of (tokens, bits), as a share; nan where the line has no such tokens.

    Examples
    --------
    >>> round(excess(1.5, 3.8, [(1.0, 4.1), (2.0, 3.9)]), 3)
    -0.05
    """
    at = [x for x, _ in line]
    if len(line) < 2 or not at[0] <= tokens <= at[-1]:
        return math.nan
    return bits / float(np.interp(tokens, at, [y for _, y in line])) - 1


def percent(share: float | None) -> str:
    """Empty for what is not known.

    Examples
    --------
    >>> percent(-0.0052), percent(float("nan"))
    ('-0.52 %', '')
    """
    return "" if share is None or math.isnan(share) else f"{share:+.2%}".replace("%", " %")


def cells(name: str, ids: int, by_share: Sequence[Compared]) -> list[str]:
    """A line of the table: the halves by megabytes, then the whole."""
    tokens, bits, whole = by_share[-1].figures()
    parts = [percent(one.figures(half)[2]) for half in range(len(HALVES)) for one in by_share]
    interval = ", ".join(map(percent, by_share[-1].interval())) if not math.isnan(whole) else ""
    return [name, f"{ids:,}", f"{tokens:.3f}", f"{bits:.4f}", *parts, percent(whole), interval and f"[{interval}]"]


def numbers(given: str) -> list[int]:
    return [int(size) for size in given.split(",")]


def wanted(given: argparse.Namespace, lines: Sequence[str], draw: int) -> dict[tuple[str, int], str]:
    """Specs of the vocabularies, by name and size."""
    peers = {peer.name: peer for peer in (*PEERS, *CURVE)}
    peers |= {peer.name: other for peer, other in zip(PLACEBOS, placebos(draw), strict=True)}
    asked = [(PEER, size) for size in numbers(given.peers)]
    asked += [(name, size) for name in peers if re.search(given.rows, name) for size in numbers(given.sizes)]
    return {(name, size): train_peer(peers[name], lines, size, given.work) for name, size in asked}


def told(
    materials: Sequence[Material],
    rows: Sequence[Mapping[tuple[str, int], Mapping[int | str, Row]]],
    tell: Callable[[str], None],
) -> None:
    """Print a table an order; `rows` are those of each draw by name and ids."""
    first = materials[0]
    for half, name in enumerate(HALVES):
        tell(f"\nText {name}: {', '.join(first.sources[half::2])}")
    shares = [*first.shares]
    heads = [
        "tokenizer",
        "ids",
        "tokens",
        "bits per character",
        *(f"{half}, {mb:g} MB" for half in HALVES for mb in shares),
    ]
    heads += [f"all, {shares[-1]:g} MB", "95 %"]
    for order in first.orders:
        model = "Context mixing" if order == "cm" else f"Order {order}"
        tell(f"\n{model}; by how much the bits are over {PEER} at as many tokens, by text and by what the model saw:\n")
        line = [[row[order] for (name, _), row in draw.items() if name == PEER] for draw in rows]
        shown = []
        for name, ids in rows[0]:
            mine = [draw[name, ids][order] for draw in rows]
            peers = line if name != PEER else [[] for _ in rows]
            compared = [Compared.of(mine, peers, k, first) for k in range(len(shares))]
            shown.append(cells(name, ids, compared))
        tell(table(heads, "l" + "r" * (len(heads) - 1), shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=data_of, help="folder with text/ and gold/, or corpus:bench-ko")
    parser.add_argument("--peers", default="8000,12000,16000,24000,32000,48000,64000", help="sizes of the line")
    parser.add_argument(
        "--rows", default=r"^koktok [a-z]+$", help="regular expression for names of eval/peers.py and eval/placebo.py"
    )
    parser.add_argument("--sizes", default="32000", help="of the rows")
    parser.add_argument("--orders", type=numbers, default=[3, 4, 5])
    parser.add_argument(
        "--proxy", default="kn", help="kn: Kneser-Ney at --orders; cm: context mixing; with a comma both"
    )
    parser.add_argument("--megabytes", type=numbers, default=[1, 2, 5, 10], help="of training text; then all of it")
    parser.add_argument("--draws", type=int, default=1, help="of the training text")
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where vocabularies and rows are kept")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    proxies = given.proxy.split(",")
    if not proxies or {*proxies} - {"kn", "cm"}:
        parser.error(f"expected --proxy kn, cm or kn,cm, got {given.proxy}")
    orders = [*(given.orders if "kn" in proxies else []), *(["cm"] if "cm" in proxies else [])]
    materials, rows = [], []
    for draw in range(given.draws):
        material = Material(given.data, orders, given.megabytes, draw)
        specs = wanted(given, material.lines, draw)
        rows.append({row: material.kept(row[0], spec, given.work) for row, spec in specs.items()})
        materials.append(material)
    tell = Told(given.report)
    texts = "; ".join(f"{len(one.lines):,} training lines, {one.all} MB" for one in materials)
    tell(f"{machine()}\n\n{texts}")
    told(materials, rows, tell)


if __name__ == "__main__":
    main()
