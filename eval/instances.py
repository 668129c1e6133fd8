"""Training instances: how fast they are packed and made, whether workers change a byte, and whether long words are masked less.

    python -m eval.instances TOKENIZER TEXT [--length 128] [--rate 0.15] [--known] [--memory]

TOKENIZER is a folder with a mask token (`koktok export TOKENIZER --to hf --style bert -o FOLDER`), TEXT a file of lines, each
a document. Speed is megabytes of UTF-8 a second of processor time, so that other programs on the machine change little:
*first* asks Kiwi about every distinct word, *again* finds their cuts in the table, *eojeols* packs without morphemes. With
`--known` the user's own cache is taken, so that a text whose words were analysed before is not analysed again. `--memory` runs the verb itself,
with one worker, on the text, and on ten times the text as one document, and takes
what all its processes hold together.
χ² is that of "units of every length are chosen alike", a degree of freedom; 1 is what chance gives. "BERT's rule" is a
re-implementation of what create_pretraining_data.py does (words in random order, one that no longer fits is passed over).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eval.growth import measured
from eval.machine import machine
from koktok import load
from koktok.instances import Instances, Masking, Packed, Plan, write_instances, write_packed
from koktok.instances.borders import EOJEOL, MORPHEME, SPECIAL, SYMBOL
from koktok.instances.masking import IGNORED
from koktok.instances.word_cuts import WordCuts
from koktok.segment import Policy, Segmenter, Whitespace
from koktok.segment.cache import CachedSegmenter
from koktok.segment.kiwi import KiwiSegmenter
from koktok.text.sources import Source


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` gives, and the processor seconds that all its threads took."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def units(marks: np.ndarray, offsets: np.ndarray, bits: int) -> list[list[int]]:
    """The units of instances, as lists of tokens; borders where a mark has one of the bits, and at punctuation."""
    found: list[list[int]] = []
    for begin, end in pairwise(offsets.tolist()):
        apart, symbol = True, False
        for i in range(begin, end):
            mark = int(marks[i])
            if mark == SPECIAL:
                apart = True
                continue
            if apart or mark & bits or bool(mark & SYMBOL) != symbol:
                found.append([])
            apart, symbol = False, bool(mark & SYMBOL)
            found[-1].append(i)
    return found


def berts_rule(rows: list[list[list[int]]], sizes: list[int], rate: float, n: int) -> np.ndarray:
    """What is chosen where a word that does not fit the rest of the budget is passed over."""
    chosen, chance = np.zeros(n, np.bool_), np.random.default_rng(12345)
    for words, size in zip(rows, sizes, strict=True):
        budget, done = max(1, round(rate * size)), 0
        for k in chance.permutation(len(words)):
            if done < budget and done + len(words[k]) <= budget:
                chosen[words[k]] = True
                done += len(words[k])
    return chosen


def chi_square(found: list[list[int]], chosen: np.ndarray) -> tuple[float, dict[int, float]]:
    lengths = [min(len(unit), 8) for unit in found]
    all_ = Counter(lengths)
    taken = Counter(n for n, unit in zip(lengths, found, strict=True) if chosen[unit[0]])
    p = sum(taken.values()) / len(found)
    shares = {n: taken[n] / all_[n] for n in sorted(all_)}
    terms = [(taken[n] - p * all_[n]) ** 2 / (p * (1 - p) * all_[n]) for n in all_]
    return sum(terms) / max(1, len(terms) - 1), shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text", type=Path)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--known", action="store_true", help="words were analysed before")
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    tokenizer, megabytes = load(given.tokenizer), given.text.stat().st_size / 1e6
    with tempfile.TemporaryDirectory(prefix="koktok-instances-") as name:
        base = Path(name)
        if not given.known:
            os.environ["KOKTOK_CACHE"] = str(base / "cache")

        def pack(out: str, segmenter: Segmenter, threads: int = 1) -> Packed:
            cuts = WordCuts(segmenter, Policy.parse("morphemes"))
            return write_packed(
                tokenizer,
                Source.of(given.text, name="text"),
                base / out,
                lexicon=cuts,
                documents="lines",
                threads=threads,
            )

        tiny = base / "tiny.txt"
        tiny.write_text("학교에서는 책을 읽습니다.\n" * 3, encoding="utf-8")
        write_packed(
            tokenizer, Source.of(tiny), base / "warm", lexicon=WordCuts(Whitespace(), Policy.parse("morphemes"))
        )  # compiled code is loaded
        print(f"{machine()}\n\n{megabytes:.1f} MB, {tokenizer!r}\n\n| packed | MB/s of processor time |\n|---|---|")
        for what, out, segmenter in (
            ("eojeols alone", "eojeols", Whitespace()),
            (
                "analyses from the cache" if given.known else "first, every distinct word to Kiwi",
                "first",
                CachedSegmenter(KiwiSegmenter(threads=1)),
            ),
            ("again, cuts from the table", "packed", CachedSegmenter(KiwiSegmenter(threads=1))),
        ):
            packed, seconds = timed(lambda out=out, segmenter=segmenter: pack(out, segmenter))
            print(f"| {what} | {megabytes / seconds:.1f} |", flush=True)
        print(f"\n{packed.manifest['n_tokens']:,} tokens, {packed.manifest['n_documents']:,} documents")
        for threads in (2, 8):
            assert digest(pack(f"threads{threads}", CachedSegmenter(KiwiSegmenter()), threads).folder) == digest(
                packed.folder
            )
        plans = {
            unit: Plan("mlm", given.length, 7, Masking(unit, given.rate), across=True)
            for unit in ("token", "eojeol", "morpheme", "span")
        }
        Instances(packed, plans["token"])[0]
        _, seconds = timed(lambda: write_instances(packed, plans["morpheme"], base / "made", workers=1))
        print(f"instances of {given.length} tokens: {megabytes / seconds:.1f} MB/s of processor time")
        for workers in (2, 8):
            write_instances(packed, plans["morpheme"], base / f"made{workers}", workers=workers)
            assert digest(base / f"made{workers}") == digest(base / "made")
        print(
            f"the same bytes for 1, 2 and 8 workers: packed {digest(packed.folder)}, instances {digest(base / 'made')}"
        )
        if given.memory:
            ten = base / "ten.txt"
            ten.write_bytes(given.text.read_bytes().replace(b"\n\n", b"\n") * 10)
            print("\n| one worker, Python and compiled code among it | MiB | seconds |\n|---|---|---|")
            for what, words in (
                ("the text, a line a document", [str(given.text), "--documents", "lines"]),
                ("ten times the text, one document", [str(ten), "--documents", "file"]),
            ):
                out = base / f"memory-{len(words)}-{Path(words[0]).stem}"
                words = ["instances", given.tokenizer, *words, "--workers", "1", "-q", "-o", str(out)]
                seconds, _, peak, _ = measured(*words, module="koktok")
                print(f"| {what} | {peak:,.0f} | {seconds:.1f} |", flush=True)
                shutil.rmtree(f"{out}-packed")
        print(
            "\n| unit | tokens masked | χ² by length | share chosen, by tokens of a unit (8: 8 and more) |\n|---|---|---|---|"
        )
        for unit, plan in plans.items():
            raw = Instances(packed, plan, masked=False)
            n = min(len(raw), 4000)
            batch = raw.batch(range(n))
            marks, offsets = batch.lists["marks"], batch.offsets
            labels = Instances(packed, plan).batch(range(n)).lists["labels"]
            maskable = int((marks != SPECIAL).sum())
            chosen = labels != IGNORED
            row = f"| {unit} | {chosen.sum() / maskable:.4f} |"
            if unit not in ("eojeol", "morpheme"):
                print(f"{row} | |")
                continue
            bits = EOJEOL if unit == "eojeol" else EOJEOL | MORPHEME
            found = units(marks, offsets, bits)
            value, shares = chi_square(found, chosen)
            print(f"{row} {value:.1f} | {' '.join(f'{length}: {share:.3f}' for length, share in shares.items())} |")
            rows = [units(marks, np.array(edge), bits) for edge in pairwise(offsets.tolist())]
            theirs = berts_rule(rows, [b - a for a, b in pairwise(offsets.tolist())], given.rate, len(marks))
            value, shares = chi_square(found, theirs)
            told = " ".join(f"{length}: {share:.3f}" for length, share in shares.items())
            print(f"| {unit}, BERT's rule | {theirs.sum() / maskable:.4f} | {value:.1f} | {told} |")


if __name__ == "__main__":
    main()
