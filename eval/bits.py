"""Bits per character of an n-gram model over the tokens, by text and order: from where on they tell vocabularies apart.

    python -m eval.bits DATA|corpus:bench-ko [--peers 8000,12000,16000,24000,32000,48000,64000] [--rows '^koktok [a-z]+$']
        [--sizes 32000] [--orders 3,4,5] [--proxy kn,cm] [--megabytes 1,2,5,10] [--report FILE]

With `--proxy cm` a context-mixing model (`eval.context_mixing`), stronger by some percent, is a further order, "cm"; it takes 4 GB.
An interpolated Kneser-Ney model is trained on the tokens of the training lines of `python -m eval full`, and asked of the held-out
lines, ends of lines included; 16 bits are added for each character inside an unknown token. Every row is asked with so many
megabytes of the training lines and with all of them, each a part of the next, and at every order. Vocabularies are compared at equal
tokens: beside each row of `--rows` (names as in eval/peers.py, trained at `--sizes`) stands by how much it is over SentencePiece Unigram with as
many tokens, which is read off the line between the two of `--peers` that lie nearest. The held-out text is two halves of
the sources (every other one, by name). A figure is one only where orders, halves and the larger texts agree on its sign.

Trained vocabularies and finished rows are kept in the work folder, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from eval.context_mixing import characters_of, context_mixing
from eval.machine import Told, machine
from eval.peers import PEERS, digest_of, train_peer
from eval.placebo import PLACEBOS
from eval.texts import data_of, parts
from koktok.files import cache_dir, write_file
from koktok.foreign import load
from koktok.metrics.language_model import kneser_ney, lines_of, unknown_bits
from koktok.report.markdown import table
from koktok.tokenizer.any_tokenizer import Tokenizer

PEER: Final = "SentencePiece Unigram, defaults"
"""Whose line of sizes the others are compared with."""

HALVES: Final = "AB"

Row = dict[str, Any]


class Material:
    """Training lines in an order of their own, and held-out lines of two halves of the sources."""

    def __init__(self, folder: Path, orders: Sequence[int | str], megabytes: Sequence[int]) -> None:
        train, held = parts(folder / "text")
        self.lines = [line for lines in train.values() for line in lines]
        self.orders = orders
        self.halves = [sorted(held)[i::2] for i in range(2)]
        self.held = [[line for name in half for line in held[name]] for half in self.halves]
        self.order = np.random.default_rng(0).permutation(len(self.lines))
        ends = np.cumsum([len(self.lines[i].encode()) + 1 for i in self.order])
        self.all = round(float(ends[-1]) / 1e6, 1)
        self.shares: dict[float, int] = {mb: int(np.searchsorted(ends, mb * 1e6)) for mb in megabytes if mb < self.all}
        self.shares[self.all] = len(self.lines)
        self.digest = digest_of([*self.lines, *map("\n".join, self.held), Path(__file__).read_text(encoding="utf-8")])

    def row(self, name: str, subject: Tokenizer) -> Row:
        """Tokens per eojeol, and bits per character by order and megabytes, of each half."""
        train, rows = lines_of(subject.encode_lines(self.lines)), [subject.encode_lines(lines) for lines in self.held]
        asked = [lines_of(found) for found in rows]
        test = [line for lines in asked for line in lines]
        half = np.repeat(range(len(asked)), list(map(len, asked)))
        characters = [sum(len(line) + 1 for line in lines) for lines in self.held]
        lost = [float(unknown_bits(subject, found).sum()) for found in rows]
        eojeols = [sum(len(line.split()) for line in lines) for lines in self.held]
        tokens = [sum(map(len, lines)) / n for lines, n in zip(asked, eojeols, strict=True)]
        size = subject.size or 1 + max(int(line.max(initial=0)) for line in [*train, *test])  # syllables have no list
        bits: dict[str, list[float]] = {}
        for order in self.orders:
            for share, count in self.shares.items():
                part = [train[i] for i in self.order[:count]]
                if order == "cm":
                    each = context_mixing(part, test, characters_of(subject, size))
                else:
                    each = [float(line.sum()) for line in kneser_ney(part, test, order=int(order), size=size)]
                sums = np.bincount(half, weights=each) + lost
                bits[f"{order} {share}"] = (sums / characters).tolist()
        return {"name": name, "ids": size, "tokens": tokens, "bits": bits}

    def kept(self, name: str, spec: str, work: Path) -> Row:
        """The row that the work folder has, or else a new one."""
        subject = load(spec)
        key = json.dumps(
            [name, subject.digest(), subject.libraries, self.digest, self.orders, [*self.shares]], sort_keys=True
        )
        place = work / "bits" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        if not place.exists():
            write_file(place, json.dumps(self.row(name, subject)).encode())
            print(f"{name}, {subject.size:,}", file=sys.stderr, flush=True)
        found: Row = json.loads(place.read_text(encoding="utf-8"))
        return found


def compared(rows: Sequence[Row], order: int | str, shares: Sequence[float]) -> Iterator[list[str]]:
    """Bits per character with all the text, and by how much each row is over the peer's line, by megabytes."""
    for half, name in enumerate(HALVES):
        line = sorted((row["tokens"][half], row["bits"]) for row in rows if row["name"] == PEER)
        for row in rows:
            points = {share: [(tokens, bits[f"{order} {share}"][half]) for tokens, bits in line] for share in shares}
            mine = {share: row["bits"][f"{order} {share}"][half] for share in shares}
            tokens = row["tokens"][half]
            cells = ["" if row["name"] == PEER else excess(tokens, mine[share], points[share]) for share in shares]
            yield [name, row["name"], f"{row['ids']:,}", f"{tokens:.3f}", f"{mine[shares[-1]]:.4f}", *cells]


def excess(tokens: float, bits: float, line: Sequence[tuple[float, float]]) -> str:
    """In percent; empty where the line has no such tokens.

    Examples
    --------
    >>> excess(1.5, 3.8, [(1.0, 4.1), (2.0, 3.9)])
    '-5.00 %'
    """
    at = [x for x, _ in line]
    if len(line) < 2 or not at[0] <= tokens <= at[-1]:
        return ""
    return f"{bits / float(np.interp(tokens, at, [y for _, y in line])) - 1:+.2%}".replace("%", " %")


def numbers(given: str) -> list[int]:
    return [int(size) for size in given.split(",")]


def wanted(given: argparse.Namespace) -> Mapping[tuple[str, int], str]:
    """Specs of the vocabularies, by name and size."""
    peers = {peer.name: peer for peer in (*PEERS, *PLACEBOS)}
    asked = [(PEER, size) for size in numbers(given.peers)]
    asked += [(name, size) for name in peers if re.search(given.rows, name) for size in numbers(given.sizes)]
    return {(name, size): train_peer(peers[name], given.lines, size, given.work) for name, size in asked}


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
    parser.add_argument("--work", type=Path, default=cache_dir() / "eval", help="where vocabularies and rows are kept")
    parser.add_argument("--report", type=Path, help="a Markdown file for what is told")
    given = parser.parse_args()
    proxies = given.proxy.split(",")
    if not proxies or {*proxies} - {"kn", "cm"}:
        parser.error(f"expected --proxy kn, cm or kn,cm, got {given.proxy}")
    orders = [*(given.orders if "kn" in proxies else []), *(["cm"] if "cm" in proxies else [])]
    material = Material(given.data, orders, given.megabytes)
    given.lines = material.lines
    rows = [material.kept(name, spec, given.work) for (name, _), spec in wanted(given).items()]
    tell, shares = Told(given.report), [*material.shares]
    tell(f"{machine()}\n\n{len(material.lines):,} training lines, {material.all} MB")
    for name, half in zip(HALVES, material.halves, strict=True):
        tell(f"\nText {name}: {', '.join(half)}")
    heads = ["text", "tokenizer", "ids", "tokens", "bits per character", *(f"{share:g} MB" for share in shares)]
    for order in orders:
        model = "Context mixing" if order == "cm" else f"Order {order}"
        tell(f"\n{model}; by how much the bits are over {PEER} at as many tokens, by what the model saw:\n")
        tell(table(heads, "ll" + "r" * (len(heads) - 2), compared(rows, order, shares)))


if __name__ == "__main__":
    main()
